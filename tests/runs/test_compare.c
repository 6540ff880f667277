/* Rankings and their intervals, against what statistics says they must be; and Runs that may not be compared. */
#include "runs/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

enum { RUNS = 3 };
static epg_reading readings[RUNS];
static epg_comparison comparison;
static epg_error err;

/* A Run whose Assessment gave `score`, with `count` Episodes that are value(i). */
static void give(size_t at, double (*value)(size_t), size_t count)
{
    epg_history *history = &readings[at].history;
    double sum = 0;
    readings[at] = (epg_reading){.path = epg_format("run-%zu", at), .run = -1};
    epg_config_init(&history->config);
    history->config.episode_budget = 100;
    history->request = json_object();
    history->benchmark_id = epg_strdup("a/benchmark");
    history->environment_digest = epg_strdup("sha256:1");
    history->provider = epg_strdup("agent");
    history->direction_known = true;
    history->assessment = (epg_history_measure){
        .episode_count = count, .completed = true, .episodes = epg_alloc_array(count, sizeof(epg_episode_result))};
    for (size_t i = 0; i < count; i++) {
        history->assessment.episodes[i] = (epg_episode_result){.index = i, .reward = value(i), .finished = true};
        sum += value(i);
    }
    history->assessment.score = sum / (double)count;
}

static void tear_down(void)
{
    epg_comparison_free(&comparison);
    for (size_t i = 0; i < RUNS; i++) {
        if (readings[i].path != NULL) {
            epg_reading_free(&readings[i]);
        }
    }
}

static double coin(size_t i)
{
    return i % 2 == 0 ? 1 : 0;
}

static double ramp(size_t i)
{
    return (double)i;
}

static double five(size_t i)
{
    (void)i;
    return 5;
}

static void compare(size_t count)
{
    epg_assert_ok(epg_compare(readings, count, NULL, 0, &comparison, &err), &err);
}

/* Of a mean of many, the interval is the mean and 1.96 standard errors to each side. */
START_TEST(the_interval_of_a_mean)
{
    give(0, coin, 400);
    compare(1);
    const epg_interval *interval = &comparison.runs[0].interval;
    double error = 1.959964 * 0.5 / sqrt(400);
    ck_assert(interval->known);
    ck_assert(fabs(interval->low - (0.5 - error)) < 0.1 * error);
    ck_assert(fabs(interval->high - (0.5 + error)) < 0.1 * error);
}
END_TEST

START_TEST(equal_episodes_leave_no_doubt)
{
    give(0, five, 10);
    compare(1);
    ck_assert(comparison.runs[0].interval.low == 5 && comparison.runs[0].interval.high == 5);
}
END_TEST

/* A failed Episode counts as what makes the mean the score: here -100, as the Benchmark had it. */
START_TEST(failed_episodes_count)
{
    give(0, five, 4);
    epg_history_measure *measure = &readings[0].history.assessment;
    measure->episodes[2].failure = EPG_POLICY_EXCEPTION;
    measure->episodes[2].reward = 0;
    measure->score = (5.0 * 3 - 100) / 4;
    compare(1);
    ck_assert(comparison.runs[0].interval.known);
    ck_assert(fabs(comparison.runs[0].interval.low - (5.0 - 300) / 4) <
              1e-9); /* three of the four draws are the failed one */
    ck_assert(comparison.runs[0].interval.high == 5);
}
END_TEST

START_TEST(a_score_that_is_no_mean_has_no_interval)
{
    give(0, ramp, 10);
    readings[0].history.assessment.score = 9; /* the best of them, say */
    compare(1);
    ck_assert(!comparison.runs[0].interval.known);
}
END_TEST

START_TEST(the_same_runs_give_the_same_numbers)
{
    give(0, ramp, 50);
    compare(1);
    epg_interval first = comparison.runs[0].interval;
    epg_comparison_free(&comparison);
    compare(1);
    ck_assert(first.low == comparison.runs[0].interval.low && first.high == comparison.runs[0].interval.high);
}
END_TEST

START_TEST(ranked_in_the_direction)
{
    give(0, coin, 10);
    give(1, five, 10);
    give(2, ramp, 10);
    for (size_t i = 0; i < RUNS; i++) {
        readings[i].history.direction = EPG_MINIMIZE;
    }
    readings[1].history.assessment.completed = false;
    compare(3);
    ck_assert_ptr_eq(comparison.runs[0].reading, &readings[0]);
    ck_assert_ptr_eq(comparison.runs[1].reading, &readings[2]);
    ck_assert_ptr_eq(comparison.runs[2].reading, &readings[1]); /* not measured */
    ck_assert_uint_eq(comparison.group_count, 1);
    ck_assert_uint_eq(comparison.groups[0].runs, 3);
    ck_assert_uint_eq(comparison.groups[0].measured, 2);
    ck_assert(comparison.groups[0].mean == (0.5 + 4.5) / 2);
}
END_TEST

/* Between Runs there is doubt that the Episodes of one alone don't show. */
START_TEST(runs_of_an_agent_differ)
{
    give(0, five, 20);
    give(1, coin, 20);
    compare(2);
    const epg_interval *interval = &comparison.groups[0].interval;
    ck_assert(interval->known && interval->low < 1 && interval->high == 5);
}
END_TEST

START_TEST(quarters_of_the_smallest_budget)
{
    give(0, five, 4);
    give(1, five, 4);
    readings[1].history.config.episode_budget = 10;
    compare(2);
    static const uint64_t expected[] = {2, 5, 7, 10};
    ck_assert_uint_eq(comparison.budget_count, 4);
    ck_assert_mem_eq(comparison.budgets, expected, sizeof expected);
}
END_TEST

static void refused(const char *why)
{
    epg_assert_code(epg_compare(readings, 2, NULL, 0, &comparison, &err), EPG_ERR_USAGE, &err);
    ck_assert_msg(strstr(err.text, why) != NULL && strstr(err.text, "run-0") != NULL &&
                      strstr(err.text, "run-1") != NULL,
                  "%s", err.text);
}

START_TEST(what_may_not_be_mixed)
{
    give(0, five, 4);
    give(1, five, 4);
    readings[1].history.direction = EPG_MINIMIZE;
    refused("do not agree");
    readings[1].history.environment_digest[7] = '2';
    refused("environment digests differ");
    readings[1].history.benchmark_id[0] = 'b';
    refused("different Benchmarks");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, the_interval_of_a_mean);
    tcase_add_test(tests, equal_episodes_leave_no_doubt);
    tcase_add_test(tests, failed_episodes_count);
    tcase_add_test(tests, a_score_that_is_no_mean_has_no_interval);
    tcase_add_test(tests, the_same_runs_give_the_same_numbers);
    tcase_add_test(tests, ranked_in_the_direction);
    tcase_add_test(tests, runs_of_an_agent_differ);
    tcase_add_test(tests, quarters_of_the_smallest_budget);
    tcase_add_test(tests, what_may_not_be_mixed);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
