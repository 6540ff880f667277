/* Lines of ledgers taken apart without a tree: what a JSON parser finds in them is found, and what is no flat object is
 * refused. */
#include "runs/event_line.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "support/support.h"

static epg_event_line line;

static void tear_down(void)
{
    epg_event_line_free(&line);
}

static epg_code take(const char *text)
{
    return epg_event_line_read(&line, epg_span_text(text), NULL);
}

START_TEST(every_kind_of_member)
{
    ck_assert_int_eq(
        take("{\"a\":\"text\",\"b\":12,\"c\":-3,\"d\":1.5e3,\"e\":null,\"f\":true,\"g\":18446744073709551615}"),
        EPG_OK);
    ck_assert_uint_eq(line.count, 7);
    ck_assert_str_eq(epg_event_line_text(&line, "a"), "text");
    ck_assert_uint_eq(epg_event_line_u64(&line, "b"), 12);
    ck_assert_int_eq(epg_event_line_i64(&line, "c"), -3);
    ck_assert(epg_event_line_double(&line, "d") == 1500);
    ck_assert(!epg_event_line_is_number(&line, "e"));
    ck_assert_ptr_null(epg_event_line_text(&line, "e"));
    ck_assert(!epg_event_line_is_number(&line, "f"));
    ck_assert(epg_event_line_u64(&line, "g") == UINT64_MAX);
    ck_assert(epg_event_line_is_number(&line, "g"));
}
END_TEST

START_TEST(what_is_missing_or_of_another_kind)
{
    ck_assert_int_eq(take("{\"a\":\"12\",\"b\":12,\"c\":1.5}"), EPG_OK);
    ck_assert_uint_eq(epg_event_line_u64(&line, "a"), 0);
    ck_assert_ptr_null(epg_event_line_text(&line, "b"));
    ck_assert_uint_eq(epg_event_line_u64(&line, "c"), 0);
    ck_assert_ptr_null(epg_event_line_text(&line, "z"));
    ck_assert_int_eq(epg_event_line_i64(&line, "z"), 0);
    ck_assert(epg_event_line_double(&line, "z") == 0);
}
END_TEST

START_TEST(escapes_and_spaces)
{
    ck_assert_int_eq(take("{ \"a\" : \"q\\\"\\u00e4\\n\\\\\" , \"b\" : 1 , \"c\": \"\"} "), EPG_OK);
    ck_assert_str_eq(epg_event_line_text(&line, "a"), "q\"\xc3\xa4\n\\");
    ck_assert_uint_eq(epg_event_line_u64(&line, "b"), 1);
    ck_assert_str_eq(epg_event_line_text(&line, "c"), "");
}
END_TEST

static const char *const refused[] = {"",
                                      "{",
                                      "{}",
                                      "[]",
                                      "null",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1",
                                      "{\"a\":1}x",
                                      "{\"a\":1,}",
                                      "{\"a\":1 \"b\":2}",
                                      "{\"a\":{\"b\":1}}",
                                      "{\"a\":[1]}",
                                      "{\"a\":\"open}",
                                      "{\"a\":\"\\",
                                      "{\"a\":\"\\\"",
                                      "{\"a\":\"\\x\"}",
                                      "{a:1}"};

START_TEST(what_is_no_flat_object)
{
    ck_assert_msg(take(refused[_i]) == EPG_ERR_INVALID, "taken: %s", refused[_i]);
}
END_TEST

START_TEST(too_many_members)
{
    EPG_AUTO_BUFFER text = {0};
    for (int i = 0; i <= EPG_EVENT_LINE_FIELDS; i++) {
        (void)epg_buffer_format(&text, "%s\"k%d\":1", i == 0 ? "{" : ",", i);
    }
    (void)epg_buffer_byte(&text, '}');
    ck_assert_int_eq(epg_event_line_read(&line, epg_buffer_span(&text), NULL), EPG_ERR_INVALID);
}
END_TEST

START_TEST(a_nul_inside)
{
    static const char text[] = "{\"a\":\"x\0y\"}";
    ck_assert_int_eq(epg_event_line_read(&line, epg_span_of(text, sizeof text - 1), NULL), EPG_ERR_INVALID);
}
END_TEST

/* Every line of the published sample, member by member, as jansson reads it. */
START_TEST(as_the_parser_reads_it)
{
    char *all = epg_test_read_text(EPG_TEST_SOURCE "/tests/vectors/data/sample-run", "events.jsonl");
    char *rest = all;
    size_t lines = 0;
    ck_assert_ptr_nonnull(all);
    for (char *one = strsep(&rest, "\n"); one != NULL && *one != '\0'; one = strsep(&rest, "\n"), lines++) {
        EPG_AUTO_JSON *parsed = json_loads(one, 0, NULL);
        const char *key = NULL;
        json_t *value = NULL;
        ck_assert_int_eq(take(one), EPG_OK);
        ck_assert_uint_eq(line.count, json_object_size(parsed));
        json_object_foreach(parsed, key, value)
        {
            if (json_is_string(value)) {
                ck_assert_str_eq(epg_event_line_text(&line, key), json_string_value(value));
            } else if (json_is_integer(value)) {
                ck_assert_int_eq(epg_event_line_i64(&line, key), json_integer_value(value));
            } else if (json_is_real(value)) {
                ck_assert(epg_event_line_double(&line, key) == json_real_value(value));
            }
        }
    }
    ck_assert_uint_gt(lines, 20);
    free(all);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("event line");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, every_kind_of_member);
    tcase_add_test(tests, what_is_missing_or_of_another_kind);
    tcase_add_test(tests, escapes_and_spaces);
    tcase_add_loop_test(tests, what_is_no_flat_object, 0, (int)(sizeof refused / sizeof refused[0]));
    tcase_add_test(tests, too_many_members);
    tcase_add_test(tests, a_nul_inside);
    tcase_add_test(tests, as_the_parser_reads_it);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
