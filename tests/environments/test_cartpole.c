#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "support/play.h"
#include "support/support.h"

static epg_policy_failure push_right(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)context;
    (void)observation;
    (void)step;
    epg_value_put_i64(action, 1);
    return EPG_POLICY_OK;
}

/* Pushes towards where the pole is about to be: keeps it up for all 500 steps. */
static epg_policy_failure balance(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)context;
    (void)step;
    static const double gains[4] = {0.1, 0.3, 1.0, 0.6};
    epg_value_cursor cursor;
    epg_span value;
    double lean = 0.0;
    ck_assert(epg_value_enter(observation, &cursor));
    for (size_t i = 0; epg_value_next(&cursor, NULL, &value); i++) {
        lean += gains[i] * epg_test_float(value);
    }
    epg_value_put_i64(action, lean > 0.0 ? 1 : 0);
    return EPG_POLICY_OK;
}

/* Fails in the second step of every Episode whose number is odd; `context` counts the Episodes. */
static epg_policy_failure fail_every_other(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    unsigned *episodes = context;
    *episodes += step == 0 ? 1 : 0;
    if (step == 1 && *episodes % 2 == 0) {
        return EPG_POLICY_TIMEOUT;
    }
    return push_right(NULL, observation, step, action);
}

START_TEST(a_constant_push_drops_the_pole_in_about_nine_steps)
{
    epg_benchmark *benchmark = epg_test_benchmark("cartpole");
    epg_test_run *run = epg_test_play(benchmark, "train", 0, 50, push_right, NULL);
    double sum = 0.0;
    for (uint64_t i = 0; i < 50; i++) {
        ck_assert_str_eq(epg_test_end(run, i), "pole_fell_left");
        ck_assert_double_eq(epg_test_return(run, i), (double)epg_test_steps(run, i));
        sum += epg_test_return(run, i);
    }
    ck_assert_double_gt(sum / 50.0, 8.0);
    ck_assert_double_lt(sum / 50.0, 11.0);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(a_balanced_pole_ends_by_the_time_limit_truncated)
{
    epg_benchmark *benchmark = epg_test_benchmark("cartpole");
    epg_test_run *run = epg_test_play(benchmark, "validation", 3, 5, balance, NULL);
    for (uint64_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(epg_test_steps(run, i), 500);
        ck_assert_str_eq(epg_test_end(run, i), "time_limit");
    }
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

static void put_node(const char *node, epg_buffer *out)
{
    json_t *value = json_loads(node, 0, NULL);
    epg_error err = {0};
    epg_assert_ok(epg_value_from_node(value, &epg_value_policy_limits, out, &err), &err);
    json_decref(value);
}

START_TEST(only_the_ints_zero_and_one_are_actions)
{
    static const char *const refused[] = {
        "[\"int\",\"2\"]",      "[\"int\",\"-1\"]",
        "[\"bool\",true]",      "[\"float\",\"P/AAAAAAAAA=\"]",
        "[\"none\"]",           "[\"string\",\"1\"]",
        "[\"list\",[]]",        "[\"int\",\"18446744073709551615\"]",
        "[\"bytes\",\"AQ==\"]", "[\"tensor\",\"int64\",[],\"AQAAAAAAAAA=\"]",
        "[\"map\",[]]",         "[\"tuple\",[[\"int\",\"1\"]]]",
    };
    epg_benchmark *benchmark = epg_test_benchmark("cartpole");
    epg_episode_spec spec = {.environment_seed = 1};
    epg_environment *environment = NULL;
    epg_error err = {0};
    EPG_AUTO_BUFFER observation = {0};
    epg_step step = {0};
    epg_assert_ok(benchmark->vtable->open(benchmark, &spec, &environment, &err), &err);
    epg_assert_ok(benchmark->vtable->reset(environment, &observation, &err), &err);
    for (size_t i = 0; i < EPG_COUNT(refused); i++) {
        EPG_AUTO_BUFFER action = {0};
        put_node(refused[i], &action);
        epg_assert_ok(benchmark->vtable->step(environment, epg_buffer_span(&action), &step, &err), &err);
        ck_assert_msg(step.invalid_action, "%s was taken", refused[i]);
        ck_assert_ptr_nonnull(strstr(step.invalid_reason, "int from 0 to 1"));
    }
    EPG_AUTO_BUFFER right = {0};
    put_node("[\"int\",\"0\"]", &right);
    epg_assert_ok(benchmark->vtable->step(environment, epg_buffer_span(&right), &step, &err), &err);
    ck_assert(!step.invalid_action);
    ck_assert_ptr_null(step.invalid_reason);
    ck_assert_double_eq(step.reward, 1.0);
    epg_step_free(&step);
    epg_assert_ok(benchmark->vtable->close(environment, &err), &err);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(stepping_out_of_order_is_the_benchmarks_fault)
{
    epg_benchmark *benchmark = epg_test_benchmark("cartpole");
    epg_episode_spec spec = {.environment_seed = 1};
    epg_environment *environment = NULL;
    epg_error err = {0};
    EPG_AUTO_BUFFER observation = {0};
    EPG_AUTO_BUFFER action = {0};
    epg_step step = {0};
    epg_value_put_i64(&action, 1);
    epg_assert_ok(benchmark->vtable->open(benchmark, &spec, &environment, &err), &err);
    epg_assert_code(benchmark->vtable->step(environment, epg_buffer_span(&action), &step, &err), EPG_ERR_BENCHMARK,
                    &err);
    epg_assert_ok(benchmark->vtable->reset(environment, &observation, &err), &err);
    do {
        epg_assert_ok(benchmark->vtable->step(environment, epg_buffer_span(&action), &step, &err), &err);
    } while (!step.terminated);
    epg_assert_code(benchmark->vtable->step(environment, epg_buffer_span(&action), &step, &err), EPG_ERR_BENCHMARK,
                    &err);
    epg_step_free(&step);
    epg_assert_ok(benchmark->vtable->close(environment, &err), &err);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(the_score_counts_a_failed_episode_as_zero)
{
    epg_benchmark *benchmark = epg_test_benchmark("cartpole");
    unsigned episodes = 0;
    epg_test_run *run = epg_test_play(benchmark, "train", 7, 6, fail_every_other, &episodes);
    double sum = 0.0;
    for (uint64_t i = 0; i < 6; i++) {
        ck_assert_int_eq(epg_test_failure(run, i), i % 2 == 1 ? EPG_POLICY_TIMEOUT : EPG_POLICY_OK);
        sum += i % 2 == 1 ? 0.0 : epg_test_return(run, i);
    }
    epg_feedback feedback = {0};
    epg_test_feedback(benchmark, run, &feedback);
    ck_assert_double_eq(feedback.score, sum / 6.0);
    epg_span content = epg_buffer_span(&feedback.content);
    ck_assert_uint_eq(epg_test_u64(epg_test_member(content, "policy_failures")), 3);
    ck_assert_uint_eq(epg_test_u64(epg_test_member(epg_test_member(content, "ends"), "timeout")), 3);
    ck_assert_uint_eq(epg_test_u64(epg_test_member(epg_test_member(content, "ends"), "pole_fell_left")), 3);
    ck_assert_uint_eq(epg_test_u64(epg_test_member(epg_test_member(content, "actions"), "0")), 0);
    epg_feedback_free(&feedback);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

/* Counts the trace's lines by type and finds what it says was left out; every line must be one JSON object. */
static void read_trace(const epg_artifact *trace, uint64_t *steps, uint64_t *ends, uint64_t *left_out)
{
    EPG_AUTO_FREE char *text = epg_strndup((const char *)trace->content.data, trace->content.size);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *value = json_loads(line, 0, NULL);
        ck_assert_msg(json_is_object(value), "not an object: %s", line);
        const char *type = json_string_value(json_object_get(value, "type"));
        *steps += strcmp(type, "step") == 0 ? 1 : 0;
        *ends += strcmp(type, "end") == 0 ? 1 : 0;
        *left_out += (uint64_t)json_integer_value(json_object_get(value, "steps_left_out"));
        json_decref(value);
    }
}

START_TEST(the_trace_is_bounded_and_tells_what_it_leaves_out)
{
    epg_benchmark *benchmark = epg_test_benchmark("cartpole");
    epg_test_run *run = epg_test_play(benchmark, "train", 1, 12, balance, NULL);
    epg_feedback feedback = {0};
    epg_test_feedback(benchmark, run, &feedback);
    ck_assert_uint_eq(feedback.artifact_count, 1);
    ck_assert_str_eq(feedback.artifacts[0].name, "trace.jsonl");
    ck_assert(!feedback.artifacts[0].bulk);
    uint64_t steps = 0;
    uint64_t ends = 0;
    uint64_t left_out = 0;
    read_trace(&feedback.artifacts[0], &steps, &ends, &left_out);
    ck_assert_uint_eq(ends, 10); /* of 12 Episodes */
    ck_assert_uint_eq(steps + left_out, 10 * 500);
    ck_assert_uint_eq(steps, 10 * 200);
    epg_feedback_free(&feedback);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(an_unknown_split_is_told)
{
    epg_benchmark *benchmark = epg_test_benchmark("cartpole");
    epg_episode_spec spec = {0};
    epg_error err = {0};
    epg_assert_code(benchmark->vtable->episodes(benchmark, "trian", 0, 1, &spec, &err), EPG_ERR_USAGE, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "train, validation and test"));
    epg_benchmark_destroy(benchmark);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cartpole");
    TCase *tests = tcase_create("cartpole");
    tcase_add_test(tests, a_constant_push_drops_the_pole_in_about_nine_steps);
    tcase_add_test(tests, a_balanced_pole_ends_by_the_time_limit_truncated);
    tcase_add_test(tests, only_the_ints_zero_and_one_are_actions);
    tcase_add_test(tests, stepping_out_of_order_is_the_benchmarks_fault);
    tcase_add_test(tests, the_score_counts_a_failed_episode_as_zero);
    tcase_add_test(tests, the_trace_is_bounded_and_tells_what_it_leaves_out);
    tcase_add_test(tests, an_unknown_split_is_told);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
