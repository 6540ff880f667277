/* Runs read back: in a hurry and whole, the same; another Host's; a big one. */
#include "runs/reading.h"

#include <stdlib.h>
#include <string.h>

#include "runs/summary.h"
#include "support/support.h"

#define SAMPLE EPG_TEST_SOURCE "/tests/vectors/data/sample-run"

static char *directory;
static epg_error err;

static void set_up(void)
{
    directory = epg_test_directory();
}

static void tear_down(void)
{
    epg_test_directory_free(directory);
}

static char *made_run(const char *submissions, const char *episodes)
{
    char *path = epg_format("%s/made", directory);
    EPG_AUTO_FREE char *command = epg_format("'%s/epg-make-run' '%s' %s %s", EPG_TEST_BIN, path, submissions, episodes);
    ck_assert_int_eq(system(command), 0);
    return path;
}

static void expect_same(const epg_history *a, const epg_history *b)
{
    ck_assert_uint_eq(a->event_count, b->event_count);
    ck_assert_uint_eq(a->submission_count, b->submission_count);
    ck_assert_uint_eq(a->selected, b->selected);
    ck_assert_uint_eq(a->candidate_count, b->candidate_count);
    ck_assert_int_eq(a->first_unix_ns, b->first_unix_ns);
    ck_assert_int_eq(a->last_unix_ns, b->last_unix_ns);
    ck_assert_int_eq(a->agent_used_ns, b->agent_used_ns);
    ck_assert_str_eq(a->terminal_reason, b->terminal_reason);
    ck_assert_str_eq(a->benchmark_id, b->benchmark_id);
    ck_assert_str_eq(a->environment_digest, b->environment_digest);
    ck_assert_int_eq(a->has_record, b->has_record);
    ck_assert(a->direction_known && b->direction_known && a->direction == b->direction);
    ck_assert(a->assessment.score == b->assessment.score);
    for (size_t i = 0; i < a->submission_count; i++) {
        const epg_history_submission *x = &a->submissions[i];
        const epg_history_submission *y = &b->submissions[i];
        ck_assert(x->facts.score == y->facts.score && x->facts.state == y->facts.state);
        ck_assert_uint_eq(x->facts.indices.count, y->facts.indices.count);
        ck_assert_mem_eq(x->facts.indices.items, y->facts.indices.items, x->facts.indices.count * sizeof(uint64_t));
        ck_assert_str_eq(x->facts.program_digest, y->facts.program_digest);
        ck_assert_int_eq(x->started_unix_ns, y->started_unix_ns);
        ck_assert_int_eq(x->ended_unix_ns, y->ended_unix_ns);
        ck_assert_uint_eq(x->tokens, y->tokens);
        ck_assert(x->cost == y->cost);
    }
}

static void compare_depths(const char *path)
{
    epg_reading whole;
    epg_reading skimmed;
    epg_assert_ok(epg_reading_open(path, EPG_READ_EPISODES, &whole, &err), &err);
    epg_assert_ok(epg_reading_open(path, EPG_READ_SUBMISSIONS, &skimmed, &err), &err);
    ck_assert_uint_gt(whole.history.submission_count, 0);
    ck_assert(whole.history.submissions[0].episodes[0].finished);
    ck_assert_ptr_null(skimmed.history.submissions[0].episodes);
    expect_same(&whole.history, &skimmed.history);
    epg_reading_free(&whole);
    epg_reading_free(&skimmed);
}

START_TEST(skimmed_and_whole_are_the_same)
{
    compare_depths(SAMPLE);
    EPG_AUTO_FREE char *path = made_run("30", "7");
    compare_depths(path);
}
END_TEST

START_TEST(a_big_run)
{
    EPG_AUTO_FREE char *path = made_run("3000", "3");
    epg_reading reading;
    epg_summary summary;
    epg_assert_ok(epg_reading_open(path, EPG_READ_SUBMISSIONS, &reading, &err), &err);
    epg_summary_of(&reading, &summary);
    ck_assert_uint_eq(summary.submissions, 3000);
    ck_assert_uint_eq(summary.published, 3000);
    ck_assert_uint_eq(summary.episodes_used, 9000);
    ck_assert(summary.tokens_known && summary.tokens == 3000 * 1000 + 3000 * 3001 / 2);
    ck_assert(summary.cost == 750 && summary.usage_is_least);
    ck_assert_str_eq(summary.state, "budget_exhausted");
    double best = 0;
    ck_assert(epg_summary_best_within(&reading.history, 3, &best));
    ck_assert(best == reading.history.submissions[0].facts.score);
    ck_assert(!epg_summary_best_within(&reading.history, 2, &best));
    EPG_AUTO_JSON *feedback = NULL;
    epg_assert_ok(epg_reading_feedback(&reading, 2999, &feedback, &err), &err);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(feedback, "content"), "made_up")), 2999);
    epg_reading_free(&reading);
}
END_TEST

static const struct {
    const char *word;
    uint64_t number;
} words[] = {{"initial", 0}, {"1", 1}, {"submission-000003", 3}, {"last", 3}, {"best", 1}, {"final", 2}};

START_TEST(words_for_submissions)
{
    epg_reading reading;
    uint64_t number = 77;
    epg_assert_ok(epg_reading_open(SAMPLE, EPG_READ_SUBMISSIONS, &reading, &err), &err);
    epg_assert_ok(epg_reading_find(&reading, words[_i].word, &number, &err), &err);
    ck_assert_uint_eq(number, words[_i].number);
    epg_reading_free(&reading);
}
END_TEST

static const char *const no_words[] = {"", "0", "4", "submission-000004", "submission-1", "-1", "worst", "\x1b[31m"};

START_TEST(words_for_nothing)
{
    epg_reading reading;
    uint64_t number = 77;
    epg_assert_ok(epg_reading_open(SAMPLE, EPG_READ_SUBMISSIONS, &reading, &err), &err);
    epg_assert_code(epg_reading_find(&reading, no_words[_i], &number, &err), EPG_ERR_USAGE, &err);
    ck_assert_uint_eq(number, 77);
    ck_assert_ptr_null(strchr(err.text, '\x1b'));
    epg_reading_free(&reading);
}
END_TEST

/* Links in a Run lead nowhere. */
START_TEST(feedback_behind_a_link)
{
    EPG_AUTO_FREE char *path = made_run("2", "1");
    EPG_AUTO_FREE char *command =
        epg_format("cd '%s/submissions' && mv submission-000001 elsewhere && ln -s elsewhere submission-000001", path);
    epg_reading reading;
    json_t *feedback = NULL;
    ck_assert_int_eq(system(command), 0);
    epg_assert_ok(epg_reading_open(path, EPG_READ_SUBMISSIONS, &reading, &err), &err);
    epg_assert_code(epg_reading_feedback(&reading, 1, &feedback, &err), EPG_ERR_INVALID, &err);
    ck_assert_ptr_null(feedback);
    epg_reading_free(&reading);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reading");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, skimmed_and_whole_are_the_same);
    tcase_add_test(tests, a_big_run);
    tcase_add_loop_test(tests, words_for_submissions, 0, (int)EPG_COUNT(words));
    tcase_add_loop_test(tests, words_for_nothing, 0, (int)EPG_COUNT(no_words));
    tcase_add_test(tests, feedback_behind_a_link);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
