/* How a command line of cmd: is split into words. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "benchmark/external.h"
#include "support/support.h"

static const struct {
    const char *text;
    const char *words[5];
} lines[] = {
    {"./a", {"./a"}},
    {"  ./a \t b\nc  ", {"./a", "b", "c"}},
    {"a 'b c' \"d e\"", {"a", "b c", "d e"}},
    {"a b'c'\"d\"e", {"a", "bcde"}},
    {"a '' \"\"", {"a", "", ""}},
    {"a 'x\\y' \"x\\y\" x\\y", {"a", "x\\y", "x\\y", "xy"}},
    {"a \"q\\\"q\" 'it'\\''s'", {"a", "q\"q", "it's"}},
    {"a $HOME `b` *", {"a", "$HOME", "`b`", "*"}},
    {"a \\ b", {"a", " b"}},
    {"a b\\", {"a", "b\\"}},
};

START_TEST(a_line_is_split_as_a_shell_would_and_nothing_is_expanded)
{
    EPG_AUTO_FREE char **words = NULL;
    epg_error err = {.text = ""};
    epg_assert_ok(epg_command_words(lines[_i].text, &words, &err), &err);
    for (size_t i = 0;; i++) {
        const char *expected = i < EPG_COUNT(lines[_i].words) ? lines[_i].words[i] : NULL;
        if (expected == NULL) {
            ck_assert_ptr_null(words[i]);
            break;
        }
        ck_assert_str_eq(words[i], expected);
    }
}
END_TEST

START_TEST(what_is_no_command_is_refused)
{
    static const char *const wrong[] = {"", "  ", "'a", "\"a", "a \"b\\\"", "''", "'' a"};
    char **words = NULL;
    epg_error err = {.text = ""};
    epg_assert_code(epg_command_words(wrong[_i], &words, &err), EPG_ERR_USAGE, &err);
    ck_assert_ptr_null(words);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("benchmark words");
    TCase *tests = tcase_create("words");
    tcase_add_loop_test(tests, a_line_is_split_as_a_shell_would_and_nothing_is_expanded, 0, EPG_COUNT(lines));
    tcase_add_loop_test(tests, what_is_no_command_is_refused, 0, 7);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
