#include <string.h>

#include "base/options.h"
#include "base/text.h"
#include "support/support.h"

static epg_options options;

static void set_up(void)
{
    static const epg_option table[] = {
        {.name = "episodes", .short_name = 'n', .kind = EPG_OPTION_VALUE, .value_name = "N", .help = "how many"},
        {.name = "json", .kind = EPG_OPTION_FLAG, .help = "one document"},
        {.name = "skill", .kind = EPG_OPTION_LIST, .value_name = "DIR", .help = "a skill\nmay be repeated"},
        {.name = "timeout", .kind = EPG_OPTION_VALUE, .value_name = "S", .help = "seconds"},
        EPG_OPTIONS_END,
    };
    epg_options_add(&options, table);
}

static void tear_down(void)
{
    epg_options_free(&options);
}

static epg_code parse(epg_error *err, int argc, const char *const argv[])
{
    return epg_options_parse(&options, argc, (char *const *)(uintptr_t)argv, err);
}

START_TEST(values_flags_lists_operands_and_the_rest_are_told_apart)
{
    epg_error err;
    const char *argv[] = {"DIR", "--episodes=5", "--json", "--skill", "a", "--skill=b", "-", "--", "cmd", "--json"};
    epg_assert_ok(parse(&err, 10, argv), &err);
    ck_assert_str_eq(epg_option_text(&options, "episodes"), "5");
    ck_assert(epg_option_given(&options, "json"));
    ck_assert(!epg_option_given(&options, "timeout"));
    ck_assert_ptr_null(epg_option_text(&options, "timeout"));
    ck_assert_uint_eq(epg_option_find(&options, "skill")->value_count, 2);
    ck_assert_str_eq(epg_option_find(&options, "skill")->values[1], "b");
    ck_assert_uint_eq(options.operand_count, 2);
    ck_assert_str_eq(options.operands[1], "-");
    ck_assert_uint_eq(options.rest_count, 2);
    ck_assert_str_eq(options.rest[1], "--json");
}
END_TEST

START_TEST(a_short_option_takes_its_value_joined_or_next)
{
    epg_error err;
    const char *joined[] = {"-n7"};
    epg_assert_ok(parse(&err, 1, joined), &err);
    unsigned long long value = 0;
    epg_assert_ok(epg_option_u64(&options, "episodes", 1, 10, &value, &err), &err);
    ck_assert_uint_eq(value, 7);
}
END_TEST

START_TEST(mistakes_are_told_in_one_line_that_says_what_to_do)
{
    static const struct {
        const char *argv[2];
        int argc;
        const char *text;
    } cases[] = {
        {{"--episode"}, 1, "unknown option --episode; did you mean --episodes?"},
        {{"--zzzzzz"}, 1, "unknown option --zzzzzz; --help lists the options"},
        {{"-x"}, 1, "unknown option -x; --help lists the options"},
        {{"--episodes"}, 1, "--episodes needs a value: --episodes N"},
        {{"--json=1"}, 1, "--json takes no value"},
        {{"--json", "--json"}, 2, "--json is given twice"},
    };
    epg_error err;
    epg_assert_code(parse(&err, cases[_i].argc, cases[_i].argv), EPG_ERR_USAGE, &err);
    ck_assert_str_eq(err.text, cases[_i].text);
}
END_TEST

START_TEST(tables_add_up_and_keep_no_result)
{
    static const epg_option first[] = {{.name = "skill", .kind = EPG_OPTION_LIST}, EPG_OPTIONS_END};
    static const epg_option second[] = {{.name = "json", .kind = EPG_OPTION_FLAG}, EPG_OPTIONS_END};
    static const char *const argv[] = {"--skill=a", "--json"};
    for (int i = 0; i < 2; i++) {
        EPG_CLEANUP(epg_options_free) epg_options both = {0};
        epg_error err;
        epg_options_add(&both, first);
        epg_options_add(&both, second);
        epg_assert_ok(epg_options_parse(&both, 2, (char *const *)(uintptr_t)argv, &err), &err);
        ck_assert_uint_eq(epg_option_find(&both, "skill")->value_count, 1);
        ck_assert(epg_option_given(&both, "json"));
    }
}
END_TEST

START_TEST(numbers_out_of_range_are_refused)
{
    epg_error err;
    const char *argv[] = {"--episodes", "0", "--timeout", "-1"};
    epg_assert_ok(parse(&err, 4, argv), &err);
    unsigned long long value = 3;
    epg_assert_code(epg_option_u64(&options, "episodes", 1, 10, &value, &err), EPG_ERR_USAGE, &err);
    ck_assert_str_eq(err.text, "--episodes takes a whole number from 1 to 10, not \"0\"");
    ck_assert_uint_eq(value, 3);
    double seconds = 2;
    epg_assert_code(epg_option_seconds(&options, "timeout", &seconds, &err), EPG_ERR_USAGE, &err);
    ck_assert(seconds == 2);
}
END_TEST

START_TEST(help_stands_under_headings_within_eighty_columns)
{
    static const epg_option table[] = {
        {.name = "model",
         .short_name = 'm',
         .kind = EPG_OPTION_VALUE,
         .value_name = "NAME",
         .help = "which\n model",
         .group = "Agent"},
        {.name = "hidden", .kind = EPG_OPTION_FLAG},
        {.name = "budget",
         .kind = EPG_OPTION_VALUE,
         .group = "Budget",
         .help = "a long text that has to go on in another line because it does not fit into the first one"},
        {.name = "an-option-with-a-long-name", .kind = EPG_OPTION_FLAG, .help = "stands alone"},
        {.name = "effort", .kind = EPG_OPTION_FLAG, .help = "how hard", .group = "Agent"},
        EPG_OPTIONS_END,
    };
    EPG_CLEANUP(epg_options_free) epg_options grouped = {0};
    epg_options_add(&grouped, table);
    EPG_AUTO_BUFFER out = {0};
    epg_options_help(&grouped, &out);
    ck_assert_str_eq(epg_buffer_cstr(&out),
                     "Agent:\n"
                     "  -m, --model NAME          which model\n"
                     "  --effort                  how hard\n"
                     "\n"
                     "Budget:\n"
                     "  --budget VALUE            a long text that has to go on in another line\n"
                     "                            because it does not fit into the first one\n"
                     "  --an-option-with-a-long-name\n"
                     "                            stands alone\n");
    epg_buffer_clear(&out);
    epg_options_help(&options, &out);
    ck_assert_msg(epg_starts_with(epg_buffer_cstr(&out), "Options:\n  -n, --episodes N "), "%s", epg_buffer_cstr(&out));
}
END_TEST

static Suite *options_suite(void)
{
    Suite *suite = suite_create("base options");
    TCase *tests = tcase_create("options");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, values_flags_lists_operands_and_the_rest_are_told_apart);
    tcase_add_test(tests, a_short_option_takes_its_value_joined_or_next);
    tcase_add_loop_test(tests, mistakes_are_told_in_one_line_that_says_what_to_do, 0, 6);
    tcase_add_test(tests, tables_add_up_and_keep_no_result);
    tcase_add_test(tests, numbers_out_of_range_are_refused);
    tcase_add_test(tests, help_stands_under_headings_within_eighty_columns);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(options_suite());
}
