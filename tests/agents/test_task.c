/* The task text says what an Agent must know, and its example is one that the session takes. */
#include "agents/task.h"

#include <stdlib.h>
#include <string.h>

#include "runs/selector.h"
#include "support/support.h"

static epg_spec spec;

static void set_up(void)
{
    epg_error err = {0};
    epg_benchmark *benchmark = NULL;
    epg_assert_ok(epg_benchmark_open("cartpole", NULL, &benchmark, &err), &err);
    epg_assert_ok(epg_benchmark_spec(benchmark, &spec, &err), &err);
    epg_benchmark_destroy(benchmark);
}

static void tear_down(void)
{
    epg_spec_free(&spec);
}

static epg_task small_task(void)
{
    return (epg_task){.spec = &spec,
                      .episode_budget = 30,
                      .episode_pool_size = 12,
                      .max_submissions = 7,
                      .max_episodes_per_submission = 5,
                      .episode_timeout_seconds = 30,
                      .agent_timeout_seconds = 3600,
                      .finish_grace_seconds = 25,
                      .bulk_feedback_retention_bytes = 1048576,
                      .program_max_files = 1000,
                      .program_max_bytes = 67108864,
                      .program_max_file_bytes = 16777216};
}

static char *text_of(const epg_task *task)
{
    epg_buffer out = {0};
    epg_task_text(task, &out);
    return epg_buffer_take_text(&out);
}

static void says(const char *text, const char *words)
{
    ck_assert_msg(strstr(text, words) != NULL, "the task does not say \"%s\":\n%s", words, text);
}

static void says_not(const char *text, const char *words)
{
    ck_assert_msg(strstr(text, words) == NULL, "the task says \"%s\"", words);
}

START_TEST(all_that_must_be_said_is_said)
{
    epg_task task = small_task();
    EPG_AUTO_FREE char *text = text_of(&task);
    static const char *const words[] = {"`program/policy.py`",
                                        "make_policy(context)",
                                        "Only this directory is submitted",
                                        "`analysis/`",
                                        "read-only",
                                        "evopolicygym-session submit program --episodes 0:5",
                                        "evopolicygym-session status",
                                        "evopolicygym-session wait",
                                        "evopolicygym-session finish SUBMISSION-ID\n",
                                        "Episodes in all: 30",
                                        "Training pool: 12",
                                        "at most 7",
                                        "at most 5",
                                        "before the budget is spent",
                                        "never run two at once",
                                        "only permitted way",
                                        "do not use the network",
                                        "Every use of an index costs one Episode",
                                        "from 0 to 11",
                                        "may be removed",
                                        "1048576",
                                        "3600 seconds",
                                        "exactly one submission id",
                                        "within 25 seconds",
                                        "\"observation_space\"",
                                        "maximized"};
    for (size_t i = 0; i < EPG_COUNT(words); i++) {
        says(text, words[i]);
    }
    says(text, spec.id);
    says(text, spec.primary_metric);
    says(text, spec.environment_digest);
    says_not(text, "Validation");
    says_not(text, "Assessment");
    says_not(text, "skills/");
    says_not(text, "seed\":");
    EPG_AUTO_FREE char *again = text_of(&task);
    ck_assert_str_eq(text, again);
}
END_TEST

START_TEST(what_is_configured_is_told)
{
    static const char *const skills[] = {"careful-work", "plotting"};
    epg_task task = small_task();
    task.has_validation = true;
    task.validation_episodes = 17;
    task.validation_max_candidates = 3;
    task.has_assessment = true;
    task.assessment_episodes = 41;
    task.require_budget_exhaustion = true;
    task.skills = skills;
    task.skill_count = 2;
    EPG_AUTO_FREE char *text = text_of(&task);
    says(text, "`skills/careful-work/SKILL.md`, `skills/plotting/SKILL.md`");
    says(text, "Read these before you begin");
    says(text, "finish SUBMISSION-ID [SUBMISSION-ID...]");
    says(text, "at most 3 submission ids");
    says(text, "17 held-out");
    says(text, "41 other held-out Assessment Episodes");
    says(text, "whole Episode budget must be spent");
}
END_TEST

/* budget, pool, submissions, cap, strict: the example must be in the pool, under the caps, and spend enough. */
START_TEST(the_example_selector_would_be_taken)
{
    static const struct {
        uint64_t budget, pool, submissions, cap;
        bool strict;
    } cases[] = {
        {1, 1, 1, 0, false},         {1000, 1000, 1000, 0, false}, {30, 12, 7, 5, false},
        {100, 50, 2, 0, true},       {100, 100, 1, 0, true},       {10, 3, 4, 0, true},
        {5000, 5000, 3, 2048, true}, {60, 60, 60, 1, false},       {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, true},
    };
    for (size_t i = 0; i < EPG_COUNT(cases); i++) {
        epg_error err = {0};
        epg_task task = small_task();
        EPG_AUTO_BUFFER text = {0};
        EPG_CLEANUP(epg_indices_free) epg_indices indices = {0};
        task.episode_budget = cases[i].budget;
        task.episode_pool_size = cases[i].pool;
        task.max_submissions = cases[i].submissions;
        task.max_episodes_per_submission = cases[i].cap;
        task.require_budget_exhaustion = cases[i].strict;
        epg_task_example_selector(&task, &text);
        epg_assert_ok(epg_selector_parse(epg_buffer_cstr(&text), &indices, &err), &err);
        ck_assert_uint_ge(indices.count, 1);
        ck_assert_uint_lt(indices.items[indices.count - 1], cases[i].pool);
        ck_assert_uint_le(indices.count, cases[i].budget);
        uint64_t most = cases[i].cap != 0 ? cases[i].cap : cases[i].pool;
        ck_assert_uint_le(indices.count, most);
        if (cases[i].strict && cases[i].budget < 100000) {
            ck_assert_uint_ge(indices.count + (cases[i].submissions - 1) * most, cases[i].budget);
        }
    }
}
END_TEST

START_TEST(the_note_after_an_interruption_has_the_facts)
{
    EPG_AUTO_BUFFER out = {0};
    epg_task_progress progress = {.submissions = 3,
                                  .last_submission = "submission-000003",
                                  .last_score = 12.5,
                                  .episodes_remaining = 9,
                                  .submissions_remaining = 4,
                                  .seconds_remaining = 1234};
    epg_task_resume_note(&progress, &out);
    says(epg_buffer_cstr(&out), "`submission-000003` with score 12.5");
    says(epg_buffer_cstr(&out), "9 Episodes, 4 submissions and 1234 seconds");
    epg_buffer_clear(&out);
    progress = (epg_task_progress){0};
    epg_task_resume_note(&progress, &out);
    says(epg_buffer_cstr(&out), "Nothing was published yet");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("task");
    TCase *group = tcase_create("task");
    tcase_add_checked_fixture(group, set_up, tear_down);
    tcase_add_test(group, all_that_must_be_said_is_said);
    tcase_add_test(group, what_is_configured_is_told);
    tcase_add_test(group, the_example_selector_would_be_taken);
    tcase_add_test(group, the_note_after_an_interruption_has_the_facts);
    suite_add_tcase(suite, group);
    return epg_test_main(suite);
}
