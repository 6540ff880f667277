#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/json.h"
#include "support/support.h"

START_TEST(documents_are_written_indented_with_sorted_keys)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 2);
    epg_json_object(&writer, NULL);
    epg_json_array(&writer, "a");
    epg_json_put_u64(&writer, NULL, UINT64_MAX);
    epg_json_put_i64(&writer, NULL, INT64_MIN);
    epg_json_put_double(&writer, NULL, 1.0);
    epg_json_end(&writer);
    epg_json_array(&writer, "b");
    epg_json_end(&writer);
    epg_json_object(&writer, "c");
    epg_json_put_text(&writer, "t", "\"\\\n\x01\xc3\xa9");
    epg_json_end(&writer);
    epg_json_put_null(&writer, "d");
    epg_json_end(&writer);
    epg_json_finish(&writer);
    ck_assert_str_eq(epg_buffer_cstr(&out), "{\n"
                                            "  \"a\": [\n"
                                            "    18446744073709551615,\n"
                                            "    -9223372036854775808,\n"
                                            "    1.0\n"
                                            "  ],\n"
                                            "  \"b\": [],\n"
                                            "  \"c\": {\n"
                                            "    \"t\": \"\\\"\\\\\\n\\u0001\xc3\xa9\"\n"
                                            "  },\n"
                                            "  \"d\": null\n"
                                            "}\n");
}
END_TEST

START_TEST(keys_out_of_order_are_a_fault)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 0);
    epg_json_object(&writer, NULL);
    epg_json_put_null(&writer, "b");
    epg_json_put_null(&writer, "a");
}
END_TEST

START_TEST(text_that_is_no_utf8_is_written_so_that_it_can_be_read)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 0);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "a", "na\xefve/\xff");
    epg_json_put_text(&writer, "b", "na\xc3\xafve");
    epg_json_end(&writer);
    epg_json_finish(&writer);
    ck_assert_str_eq(epg_buffer_cstr(&out), "{\"a\":\"na\\\\xefve/\\\\xff\",\"b\":\"na\xc3\xafve\"}");
}
END_TEST

/* `depth` arrays in each other, the innermost empty. */
static char *nested(size_t depth)
{
    char *text = epg_alloc(2 * depth + 1);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    return text;
}

START_TEST(what_is_read_can_be_written_within_a_document_and_deeper_text_is_refused)
{
    epg_error err = {0};
    EPG_AUTO_JSON *value = NULL;
    EPG_AUTO_FREE char *fits = nested(EPG_JSON_READ_DEPTH);
    EPG_AUTO_FREE char *deeper = nested(EPG_JSON_READ_DEPTH + 1);
    epg_assert_ok(epg_json_parse(epg_span_text(fits), "it", &value, &err), &err);
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 0);
    epg_json_object(&writer, NULL);
    epg_json_put_json(&writer, "a", value);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    ck_assert_uint_eq(out.size, strlen(fits) + strlen("{\"a\":}"));
    json_t *untouched = NULL;
    ck_assert_int_eq(epg_json_parse(epg_span_text(deeper), "it", &untouched, &err), EPG_ERR_INVALID);
    ck_assert_ptr_null(untouched);
}
END_TEST

START_TEST(what_was_computed_and_is_not_finite_is_null)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 0);
    epg_json_array(&writer, NULL);
    epg_json_put_computed(&writer, NULL, 0.5);
    epg_json_put_computed(&writer, NULL, HUGE_VAL);
    epg_json_put_computed(&writer, NULL, -HUGE_VAL);
    epg_json_put_computed(&writer, NULL, (double)NAN);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    ck_assert_str_eq(epg_buffer_cstr(&out), "[0.5,null,null,null]");
}
END_TEST

START_TEST(integers_up_to_2_64_survive_reading_and_writing)
{
    epg_error err;
    EPG_AUTO_JSON *value = NULL;
    const char *text =
        "{\"a\":18446744073709551615,\"b\":[9223372036854775808,-3,1.5e3],\"s\":\"18446744073709551615\"}";
    epg_assert_ok(epg_json_parse(epg_span_text(text), "x", &value, &err), &err);
    uint64_t number = 0;
    epg_assert_ok(epg_json_u64(value, "a", "x", &number, &err), &err);
    ck_assert_uint_eq(number, UINT64_MAX);
    const char *string = NULL;
    epg_assert_ok(epg_json_text(value, "s", "x", &string, &err), &err);
    ck_assert_str_eq(string, "18446744073709551615");
    epg_assert_code(epg_json_text(value, "a", "x", &string, &err), EPG_ERR_INVALID, &err);
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 0);
    epg_json_put_json(&writer, NULL, value);
    epg_json_finish(&writer);
    ck_assert_str_eq(
        epg_buffer_cstr(&out),
        "{\"a\":18446744073709551615,\"b\":[9223372036854775808,-3,1500.0],\"s\":\"18446744073709551615\"}");
}
END_TEST

START_TEST(what_is_not_known_is_null)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 0);
    epg_json_object(&writer, NULL);
    epg_json_put_known(&writer, "a", true, 0.5);
    epg_json_put_known(&writer, "b", false, 0.5);
    epg_json_put_computed(&writer, "c", INFINITY);
    epg_json_put_json(&writer, "d", NULL);
    epg_json_put_text(&writer, "e", NULL);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    ck_assert_str_eq(epg_buffer_cstr(&out), "{\"a\":0.5,\"b\":null,\"c\":null,\"d\":null,\"e\":null}");
}
END_TEST

START_TEST(what_is_not_strict_json_is_refused)
{
    static const char *const cases[] = {
        "",
        "{",
        "{\"a\":1,\"a\":2}",
        "[1,]",
        "nan",
        "[NaN]",
        "\xff",
        "\"\xed\xa0\x80\"",
        "1 2",
        "[01]",
        "{a:1}",
        "'a'",
        "[18446744073709551616]",
        "[-9223372036854775809]",
        "\"\\u0000u64:5\"",
        "{\"k\":[9223372036854775808,\"\\u0000\\u0075\\u00364:5\"]}",
        "[1e999]",
    };
    epg_error err;
    EPG_AUTO_JSON *value = NULL;
    epg_assert_code(epg_json_parse(epg_span_text(cases[_i]), "here", &value, &err), EPG_ERR_INVALID, &err);
    ck_assert(strncmp(err.text, "here: ", 6) == 0);
    ck_assert_ptr_null(value);
}
END_TEST

START_TEST(strings_that_only_resemble_the_mark_are_strings)
{
    epg_error err;
    EPG_AUTO_JSON *value = NULL;
    uint64_t number = 0;
    const char *text = "[9223372036854775808, \"\\\\u0000u64:5\", \"\\u0000u6\", \"x\\u0000u64:5\"]";
    epg_assert_ok(epg_json_parse(epg_span_text(text), "x", &value, &err), &err);
    ck_assert(epg_json_is_u64(json_array_get(value, 0), &number) && number == UINT64_C(9223372036854775808));
    for (size_t i = 1; i < 4; i++) {
        ck_assert(!epg_json_is_u64(json_array_get(value, i), &number));
    }
    ck_assert_str_eq(json_string_value(json_array_get(value, 1)), "\\u0000u64:5");
}
END_TEST

START_TEST(members_that_are_missing_or_of_another_type_are_named)
{
    epg_error err;
    EPG_AUTO_JSON *value = NULL;
    epg_assert_ok(epg_json_parse(epg_span_text("{\"n\":-1,\"t\":true}"), "x", &value, &err), &err);
    uint64_t number = 5;
    epg_assert_code(epg_json_u64(value, "n", "run.json", &number, &err), EPG_ERR_INVALID, &err);
    ck_assert_str_eq(err.text, "run.json: \"n\" is not an unsigned integer");
    epg_assert_code(epg_json_u64(value, "q", "run.json", &number, &err), EPG_ERR_INVALID, &err);
    ck_assert_str_eq(err.text, "run.json: \"q\" is missing");
    ck_assert_uint_eq(number, 5);
}
END_TEST

static Suite *json_suite(void)
{
    Suite *suite = suite_create("base json");
    TCase *tests = tcase_create("json");
    tcase_add_test(tests, documents_are_written_indented_with_sorted_keys);
    const char *fork_mode = getenv("CK_FORK");
    if (fork_mode == NULL || strcmp(fork_mode, "no") != 0) {
        tcase_add_test_raise_signal(tests, keys_out_of_order_are_a_fault, SIGABRT);
    }
    tcase_add_test(tests, text_that_is_no_utf8_is_written_so_that_it_can_be_read);
    tcase_add_test(tests, what_is_read_can_be_written_within_a_document_and_deeper_text_is_refused);
    tcase_add_test(tests, what_was_computed_and_is_not_finite_is_null);
    tcase_add_test(tests, integers_up_to_2_64_survive_reading_and_writing);
    tcase_add_test(tests, what_is_not_known_is_null);
    tcase_add_loop_test(tests, what_is_not_strict_json_is_refused, 0, 16);
    tcase_add_test(tests, strings_that_only_resemble_the_mark_are_strings);
    tcase_add_test(tests, members_that_are_missing_or_of_another_type_are_named);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(json_suite());
}
