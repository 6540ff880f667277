/* Actions drawn from spaces, and values from public JSON. */
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "benchmark/draw.h"
#include "benchmark/public_json.h"
#include "support/support.h"

/* The value of a JSON text in which ' stands for ". */
static epg_code value_of(const char *text, epg_buffer *out, epg_error *err)
{
    EPG_AUTO_FREE char *copy = epg_strdup(text);
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    EPG_AUTO_JSON *json = NULL;
    EPG_TRY(epg_json_parse(epg_span_text(copy), "a test's text", &json, err));
    return epg_value_from_public_json(json, out, err);
}

START_TEST(public_json_comes_back_as_it_was)
{
    static const char *const texts[] = {
        "null",
        "true",
        "-9223372036854775808",
        "18446744073709551615",
        "0.5",
        "-0.0",
        "1e300",
        "''",
        "'a\\u0000b'",
        "[]",
        "[1,1.0,[null]]",
        "{}",
        "{'':1,'a':{'b':[false]},'b':2}",
        "{'$type':'bytes','base64':'AP8='}",
        "{'$type':'tuple','items':[1,'x']}",
        "{'$type':'tensor','base64':'AQI=','dtype':'uint8','shape':[2]}",
        "{'$type':'tensor','base64':'AAAAAAAA8D8=','dtype':'float64','shape':[]}",
    };
    for (size_t i = 0; i < EPG_COUNT(texts); i++) {
        EPG_AUTO_BUFFER first = {0};
        EPG_AUTO_BUFFER again = {0};
        EPG_AUTO_BUFFER text = {0};
        EPG_AUTO_JSON *json = NULL;
        epg_error err = {.text = ""};
        epg_json_writer writer;
        epg_assert_ok(value_of(texts[i], &first, &err), &err);
        epg_json_begin(&writer, &text, 0);
        epg_value_to_json(epg_buffer_span(&first), &writer, NULL);
        epg_json_finish(&writer);
        epg_assert_ok(epg_json_parse(epg_buffer_span(&text), "what was written", &json, &err), &err);
        epg_assert_ok(epg_value_from_public_json(json, &again, &err), &err);
        ck_assert_msg(epg_span_equal(epg_buffer_span(&first), epg_buffer_span(&again)), "%s", texts[i]);
    }
}
END_TEST

START_TEST(ints_and_floats_of_json_stay_apart)
{
    EPG_AUTO_BUFFER whole = {0};
    EPG_AUTO_BUFFER real = {0};
    epg_error err = {.text = ""};
    epg_assert_ok(value_of("1", &whole, &err), &err);
    epg_assert_ok(value_of("1.0", &real, &err), &err);
    ck_assert_int_eq(epg_value_kind(epg_buffer_span(&whole)), 'I');
    ck_assert_int_eq(epg_value_kind(epg_buffer_span(&real)), 'F');
}
END_TEST

START_TEST(json_that_is_no_value_is_refused)
{
    static const char *const texts[] = {
        "{'$type':'set','items':[]}",
        "{'$type':'bytes'}",
        "{'$type':'bytes','base64':'A'}",
        "{'$type':'tuple'}",
        "{'$type':'tensor','base64':'AQI=','dtype':'uint8','shape':[3]}",
        "{'$type':'tensor','base64':'AQI=','dtype':'uint9','shape':[2]}",
        "{'$type':'tensor','base64':'AQI=','dtype':'uint8','shape':[-2]}",
        "{'$type':'tensor','base64':'AQI=','dtype':'uint8'}",
        "{'$type':'tensor','base64':'Ag==','dtype':'bool','shape':[1]}",
    };
    for (size_t i = 0; i < EPG_COUNT(texts); i++) {
        EPG_AUTO_BUFFER out = {0};
        epg_error err = {.text = ""};
        ck_assert_msg(value_of(texts[i], &out, &err) != EPG_OK, "%s was taken", texts[i]);
    }
}
END_TEST

/* Draws 200 Actions; each must be of the kind, a number among them within the bounds, and not all the same. */
static void check_draws(const char *space_text, char kind, double low, double high)
{
    EPG_AUTO_BUFFER space = {0};
    EPG_AUTO_BUFFER first = {0};
    epg_error err = {.text = ""};
    bool differ = false;
    uint64_t state = 5;
    epg_assert_ok(value_of(space_text, &space, &err), &err);
    for (int i = 0; i < 200; i++) {
        EPG_AUTO_BUFFER action = {0};
        epg_assert_ok(epg_draw_action(epg_buffer_span(&space), &state, &action, &err), &err);
        epg_span drawn = epg_buffer_span(&action);
        ck_assert_int_eq(epg_value_kind(drawn), kind);
        double number = low;
        int64_t whole = 0;
        if (epg_value_get_i64(drawn, &whole)) {
            number = (double)whole;
        }
        (void)epg_value_get_float(drawn, &number);
        ck_assert_double_ge(number, low);
        ck_assert_double_le(number, high);
        differ = differ || (i > 0 && !epg_span_equal(drawn, epg_buffer_span(&first)));
        if (i == 0) {
            (void)epg_buffer_append_span(&first, drawn);
        }
    }
    ck_assert(differ);
}

START_TEST(actions_are_drawn_within_their_space)
{
    check_draws("{'type': 'discrete', 'values': [0, 1, 2]}", 'I', 0, 2);
    check_draws("{'type': 'int', 'minimum': -3, 'maximum': 4}", 'I', -3, 4);
    check_draws("{'type': 'float', 'minimum': -1.5, 'maximum': 2}", 'F', -1.5, 2);
    check_draws("{'type': 'bool'}", 'B', 0, 0);
    check_draws("{'type': 'string', 'values': ['a', 'b']}", 'S', 0, 0);
    check_draws("{'type': 'vector', 'shape': [3], 'minimum': 0.0, 'maximum': 1.0}", 'L', 0, 0);
    check_draws("{'type': 'list', 'length': 2, 'items': {'type': 'bool'}}", 'L', 0, 0);
    check_draws("{'type': 'tuple', 'items': [{'type': 'bool'}, {'type': 'int', 'minimum': 0, 'maximum': 9}]}", 'U', 0,
                0);
    check_draws("{'type': 'object', 'fields': {'x': {'type': 'bool'}, 'y': {'type': 'null'}}}", 'M', 0, 0);
}
END_TEST

START_TEST(the_whole_range_of_ints_can_be_drawn)
{
    EPG_AUTO_BUFFER space = {0};
    EPG_AUTO_BUFFER action = {0};
    epg_error err = {.text = ""};
    uint64_t state = 1;
    epg_assert_ok(
        value_of("{'type': 'int', 'minimum': -9223372036854775808, 'maximum': 9223372036854775807}", &space, &err),
        &err);
    epg_assert_ok(epg_draw_action(epg_buffer_span(&space), &state, &action, &err), &err);
}
END_TEST

START_TEST(a_space_that_is_not_understood_is_told)
{
    static const char *const texts[] = {
        "'text'",
        "{}",
        "{'type': 'string'}",
        "{'type': 'int'}",
        "{'type': 'int', 'minimum': 2, 'maximum': 1}",
        "{'type': 'float', 'minimum': -1e308, 'maximum': 1e308}",
        "{'type': 'discrete', 'values': []}",
        "{'type': 'list', 'length': 100000, 'items': {'type': 'bool'}}",
        "{'type': 'object', 'fields': {'x': {'type': 'thing'}}}",
    };
    for (size_t i = 0; i < EPG_COUNT(texts); i++) {
        EPG_AUTO_BUFFER space = {0};
        EPG_AUTO_BUFFER action = {0};
        epg_error err = {.text = ""};
        uint64_t state = 1;
        epg_assert_ok(value_of(texts[i], &space, &err), &err);
        epg_assert_code(epg_draw_action(epg_buffer_span(&space), &state, &action, &err), EPG_ERR_USAGE, &err);
        ck_assert_uint_eq(action.size, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("draw");
    TCase *tests = tcase_create("draw");
    tcase_add_test(tests, public_json_comes_back_as_it_was);
    tcase_add_test(tests, ints_and_floats_of_json_stay_apart);
    tcase_add_test(tests, json_that_is_no_value_is_refused);
    tcase_add_test(tests, actions_are_drawn_within_their_space);
    tcase_add_test(tests, the_whole_range_of_ints_can_be_drawn);
    tcase_add_test(tests, a_space_that_is_not_understood_is_told);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
