/* A Python package through the Host comes to what it comes to alone: score, steps, artifact. And the Python side's own
 * checks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "support/play.h"
#include "support/processes.h"
#include "support/support.h"
#include "system/owner.h"

static const char corridor[] = "python:evopolicygym_corridor:make_benchmark?length=7";

static epg_policy_failure right(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    const uint64_t *fails_at = context;
    (void)observation;
    if (fails_at != NULL && step == *fails_at) {
        return EPG_POLICY_TIMEOUT;
    }
    epg_value_put_u64(action, 1);
    return EPG_POLICY_OK;
}

static epg_benchmark *open_limited(const char *text)
{
    epg_error err = {.text = ""};
    epg_benchmark *benchmark = NULL;
    const epg_benchmark_options options = {.call_limit_ns = 60 * EPG_SECOND};
    epg_assert_ok(epg_benchmark_open(text, &options, &benchmark, &err), &err);
    return benchmark;
}

static void describe(const epg_test_run *run, uint64_t count, const epg_feedback *feedback, epg_buffer *out)
{
    EPG_AUTO_BUFFER steps = {0};
    char hash[EPG_SHA256_HEX];
    for (uint64_t i = 0; i < count; i++) {
        (void)epg_buffer_format(&steps, "%s%llu", i == 0 ? "" : ",", (unsigned long long)epg_test_steps(run, i));
    }
    ck_assert_uint_eq(feedback->artifact_count, 1);
    ck_assert_str_eq(feedback->artifacts[0].name, "trace/steps.jsonl");
    ck_assert(feedback->artifacts[0].bulk);
    uint8_t digest[EPG_SHA256_SIZE];
    epg_sha256_once(feedback->artifacts[0].content.data, feedback->artifacts[0].content.size, digest);
    for (size_t i = 0; i < EPG_SHA256_SIZE; i++) {
        (void)snprintf(hash + 2 * i, 3, "%02x", digest[i]);
    }
    (void)epg_buffer_format(out, "%.17g %s %s\n", feedback->score, epg_buffer_cstr(&steps), hash);
}

/* What the package comes to without us. */
static void alone(epg_buffer *out)
{
    FILE *pipe = popen("python3 corridor_alone.py", "r"); /* NOLINT: a fixed command */
    char line[512];
    ck_assert_ptr_nonnull(pipe);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, pipe));
    ck_assert_int_eq(pclose(pipe), 0);
    char *rest = NULL;
    double score = strtod(line, &rest);
    (void)epg_buffer_format(out, "%.17g%s", score, rest);
}

START_TEST(a_package_comes_to_what_it_comes_to_alone)
{
    enum { COUNT = 6 };
    EPG_AUTO_BUFFER hosted = {0};
    EPG_AUTO_BUFFER own = {0};
    epg_feedback feedback = {.score = 0.0};
    epg_benchmark *benchmark = open_limited(corridor);
    epg_test_run *run = epg_test_play(benchmark, "test", 11, COUNT, right, NULL);
    epg_test_feedback(benchmark, run, &feedback);
    describe(run, COUNT, &feedback, &hosted);
    epg_feedback_free(&feedback);
    epg_test_feedback(benchmark, run, &feedback); /* twice the same */
    describe(run, COUNT, &feedback, &own);
    ck_assert_str_eq(epg_buffer_cstr(&hosted), epg_buffer_cstr(&own));
    epg_buffer_clear(&own);
    alone(&own);
    ck_assert_str_eq(epg_buffer_cstr(&hosted), epg_buffer_cstr(&own));
    epg_feedback_free(&feedback);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(a_failed_policy_is_told_to_the_package)
{
    uint64_t fails_at = 2;
    epg_feedback feedback = {.score = 0.0};
    epg_benchmark *benchmark = open_limited(corridor);
    epg_test_run *run = epg_test_play(benchmark, "train", 1, 2, right, &fails_at);
    epg_test_feedback(benchmark, run, &feedback);
    ck_assert_double_eq(feedback.score, -4.0);
    epg_span failures = epg_test_member(epg_buffer_span(&feedback.content), "failures");
    ck_assert_uint_eq(epg_test_u64(epg_test_member(failures, "timeout")), 1);
    epg_feedback_free(&feedback);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(long_episodes_are_streamed_in_pieces)
{
    uint64_t fails_at = 5000;
    epg_error err = {.text = ""};
    epg_feedback feedback = {.score = 0.0};
    epg_benchmark *benchmark = open_limited("python:long:make");
    epg_test_run *run = epg_test_play(benchmark, "train", 1, 2, right, &fails_at);
    epg_assert_ok(benchmark->vtable->feedback(benchmark, epg_test_records(run), &feedback, &err), &err);
    ck_assert_double_eq(feedback.score, 10000.0);
    epg_feedback_free(&feedback);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

START_TEST(a_benchmark_that_does_not_listen_to_its_end_is_ended)
{
    size_t before = epg_test_open_descriptors();
    epg_error err = {.text = ""};
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {.id = NULL};
    epg_benchmark *benchmark = open_limited("python:long:make?deaf=true");
    epg_assert_ok(epg_benchmark_spec(benchmark, &spec, &err), &err);
    epg_benchmark_destroy(benchmark);
    epg_test_no_child_left();
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

START_TEST(the_python_side_checks_what_it_is_given)
{
    ck_assert_int_eq(system("python3 -W ignore ../authoring.py '" EPG_TEST_SOURCE "'"), 0);
}
END_TEST

static Suite *python_suite(void)
{
    Suite *suite = suite_create("benchmark python");
    TCase *tests = tcase_create("python");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_package_comes_to_what_it_comes_to_alone);
    tcase_add_test(tests, a_failed_policy_is_told_to_the_package);
    tcase_add_test(tests, long_episodes_are_streamed_in_pieces);
    tcase_add_test(tests, a_benchmark_that_does_not_listen_to_its_end_is_ended);
    tcase_add_test(tests, the_python_side_checks_what_it_is_given);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "monitor") == 0) {
        return epg_monitor_main(argc, argv);
    }
    static const char packages[] = EPG_TEST_SOURCE "/tests/benchmark/packages";
    (void)setenv("PYTHONPATH", EPG_TEST_SOURCE "/harness/benchmark/python:" EPG_TEST_SOURCE "/tests/benchmark/packages",
                 1);
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    if (chdir(packages) != 0) {
        return EXIT_FAILURE;
    }
    return epg_test_main(python_suite());
}
