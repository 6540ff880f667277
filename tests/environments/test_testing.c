/* The Benchmarks that other tests stand on do what they promise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/play.h"
#include "support/support.h"

static void allow(void)
{
    ck_assert_int_eq(setenv("EPG_TEST_BENCHMARKS", "1", 1), 0);
}

static epg_policy_failure answer(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)observation;
    (void)step;
    epg_value_put_i64(action, *(const int *)context);
    return EPG_POLICY_OK;
}

static epg_policy_failure fail_first(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    int *calls = context;
    int three = 3;
    return (*calls)++ == 0 ? EPG_POLICY_EXCEPTION : answer(&three, observation, step, action);
}

START_TEST(without_the_variable_there_are_no_test_benchmarks)
{
    (void)unsetenv("EPG_TEST_BENCHMARKS");
    epg_benchmark *benchmark = NULL;
    epg_error err = {0};
    epg_assert_code(epg_benchmark_open("test/one-step", &(epg_benchmark_options){0}, &benchmark, &err), EPG_ERR_USAGE,
                    &err);
    size_t count = 0;
    const epg_builtin *listed = epg_builtin_benchmarks(&count);
    for (size_t i = 0; i < count; i++) {
        ck_assert(strncmp(listed[i].name, "test/", 5) != 0);
    }
}
END_TEST

START_TEST(one_step_rewards_the_action_and_counts_a_failure_as_minus_one)
{
    allow();
    epg_benchmark *benchmark = epg_test_benchmark("test/one-step");
    int calls = 0;
    epg_test_run *run = epg_test_play(benchmark, "train", 0, 2, fail_first, &calls);
    epg_feedback feedback = {0};
    epg_test_feedback(benchmark, run, &feedback);
    ck_assert_double_eq(feedback.score, (-1.0 + 3.0) / 2.0);
    ck_assert_uint_eq(feedback.artifact_count, 2);
    ck_assert_str_eq(feedback.artifacts[1].name, "bulk/frames.bin");
    ck_assert(feedback.artifacts[1].bulk && !feedback.artifacts[0].bulk);
    uint8_t hash[EPG_SHA256_SIZE];
    char hex[EPG_SHA256_HEX];
    epg_sha256_once(feedback.artifacts[1].content.data, feedback.artifacts[1].content.size, hash);
    epg_hex(hash, sizeof hash, hex);
    ck_assert_str_eq(hex, "be45cb2605bf36bebde684841a28f0fd43c69850a3dce5fedba69928ee3a8991");
    epg_feedback_free(&feedback);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(one_step_faults_on_action_99)
{
    allow();
    epg_benchmark *benchmark = epg_test_benchmark("test/one-step");
    epg_episode_spec spec = {0};
    epg_environment *environment = NULL;
    epg_error err = {0};
    EPG_AUTO_BUFFER action = {0};
    epg_step step = {0};
    epg_value_put_i64(&action, 99);
    epg_assert_ok(benchmark->vtable->open(benchmark, &spec, &environment, &err), &err);
    epg_assert_code(benchmark->vtable->step(environment, epg_buffer_span(&action), &step, &err), EPG_ERR_BENCHMARK,
                    &err);
    epg_assert_ok(benchmark->vtable->close(environment, &err), &err);
    epg_step_free(&step);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(idle_lasts_as_long_as_it_is_told)
{
    allow();
    int zero = 0;
    epg_benchmark *benchmark = epg_test_benchmark("test/idle?steps=17&floats=2");
    epg_test_run *run = epg_test_play(benchmark, "test", 5, 2, answer, &zero);
    ck_assert_uint_eq(epg_test_steps(run, 1), 17);
    ck_assert_uint_eq(epg_test_initial(run, 0).size, 9 + 2 * 9);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

/* Plays one Episode as an evaluator would, up to the first fault. */
static epg_code play_to_fault(epg_benchmark *benchmark, epg_error *err)
{
    const epg_benchmark_vtable *call = benchmark->vtable;
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {0};
    EPG_CLEANUP(epg_episode_spec_free) epg_episode_spec episode = {0};
    EPG_CLEANUP(epg_step_free) epg_step step = {0};
    EPG_AUTO_BUFFER observation = {0};
    EPG_AUTO_BUFFER action = {0};
    epg_environment *environment = NULL;
    epg_value_put_i64(&action, 1);
    EPG_TRY(epg_benchmark_spec(benchmark, &spec, err));
    EPG_TRY(call->episodes(benchmark, "train", 0, 1, &episode, err));
    EPG_TRY(call->open(benchmark, &episode, &environment, err));
    epg_code code = call->reset(environment, &observation, err);
    code = code == EPG_OK ? epg_observation_check(epg_buffer_span(&observation), err) : code;
    double sum = 0.0;
    for (uint64_t i = 0; code == EPG_OK && !step.truncated; i++) {
        code = call->step(environment, epg_buffer_span(&action), &step, err);
        code = code == EPG_OK ? epg_step_check(&step, err) : code;
        sum += step.reward;
        if (code == EPG_OK && i >= spec.max_episode_steps) {
            code = epg_fail(err, EPG_ERR_BENCHMARK, "the horizon passed");
        }
    }
    if (code == EPG_OK && !isfinite(sum)) {
        code = epg_fail(err, EPG_ERR_BENCHMARK, "the sum of rewards is not finite");
    }
    epg_code closed = call->close(environment, code == EPG_OK ? err : NULL);
    return code == EPG_OK ? closed : code;
}

static void check_fault(const char *at, const char *told)
{
    EPG_AUTO_FREE char *text = epg_format("test/faults?at=%s&after=1", at);
    epg_benchmark *benchmark = epg_test_benchmark(text);
    epg_error err = {0};
    epg_code code = play_to_fault(benchmark, &err);
    ck_assert_msg(code == EPG_ERR_BENCHMARK, "%s: %s: %s", at, epg_code_name(code), err.text);
    ck_assert_msg(strstr(err.text, told) != NULL, "%s: %s", at, err.text);
    epg_benchmark_destroy(benchmark);
}

START_TEST(faults_breaks_each_call_and_value_where_it_is_told)
{
    allow();
    check_fault("spec", "spec");
    check_fault("episodes", "episodes");
    check_fault("open", "open");
    check_fault("reset", "reset");
    check_fault("step", "step");
    check_fault("close", "close");
    check_fault("reset-observation-deep", "the observation");
    check_fault("observation-nan", "the observation");
    check_fault("observation-deep", "the observation");
    check_fault("observation-large", "the observation");
    check_fault("observation-junk", "the observation");
    check_fault("reward-nan", "the reward");
    check_fault("reward-huge", "the sum of rewards");
    check_fault("metrics-junk", "metrics");
    check_fault("never-ends", "horizon");
}
END_TEST

START_TEST(faults_breaks_feedback_where_it_is_told)
{
    static const char *const faults[] = {"feedback", "score-nan", "content-junk", "artifact-name", "artifact-large"};
    allow();
    int one = 1;
    for (size_t i = 0; i < EPG_COUNT(faults); i++) {
        EPG_AUTO_FREE char *text = epg_format("test/faults?at=%s", faults[i]);
        epg_benchmark *benchmark = epg_test_benchmark(text);
        epg_test_run *run = epg_test_play(benchmark, "train", 0, 1, answer, &one);
        epg_feedback feedback = {0};
        epg_error err = {0};
        epg_code code = benchmark->vtable->feedback(benchmark, epg_test_records(run), &feedback, &err);
        code = code == EPG_OK ? epg_feedback_check(&feedback, &err) : code;
        ck_assert_msg(code == EPG_ERR_BENCHMARK, "%s", faults[i]);
        epg_feedback_free(&feedback);
        epg_test_run_free(run);
        epg_benchmark_destroy(benchmark);
    }
}
END_TEST

START_TEST(faults_without_a_fault_plays_through)
{
    allow();
    int one = 1;
    epg_benchmark *benchmark = epg_test_benchmark("test/faults");
    epg_test_run *run = epg_test_play(benchmark, "train", 0, 1, answer, &one);
    ck_assert_uint_eq(epg_test_steps(run, 0), 3);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("testing");
    TCase *tests = tcase_create("testing");
    tcase_add_test(tests, without_the_variable_there_are_no_test_benchmarks);
    tcase_add_test(tests, one_step_rewards_the_action_and_counts_a_failure_as_minus_one);
    tcase_add_test(tests, one_step_faults_on_action_99);
    tcase_add_test(tests, idle_lasts_as_long_as_it_is_told);
    tcase_add_test(tests, faults_breaks_each_call_and_value_where_it_is_told);
    tcase_add_test(tests, faults_breaks_feedback_where_it_is_told);
    tcase_add_test(tests, faults_without_a_fault_plays_through);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
