/* Plays Episodes of a Benchmark in this process, without a Policy process, and keeps their records in memory. */
#ifndef EPG_TESTS_PLAY_H
#define EPG_TESTS_PLAY_H

#include "benchmark/benchmark.h"

/* Opens a Benchmark; fails the test when it can't be. Free with epg_benchmark_destroy. */
epg_benchmark *epg_test_benchmark(const char *text);

/* For `EPG_TEST_AUTO_BENCHMARK *benchmark = NULL;`, which is destroyed at the end of its scope; an Environment is
 * closed, and declared after its Benchmark. */
void epg_test_benchmark_cleanup(epg_benchmark **benchmark);
void epg_test_environment_cleanup(epg_environment **environment);
#define EPG_TEST_AUTO_BENCHMARK EPG_CLEANUP(epg_test_benchmark_cleanup) epg_benchmark
#define EPG_TEST_AUTO_ENVIRONMENT EPG_CLEANUP(epg_test_environment_cleanup) epg_environment

/* Writes the Action for an observation, or returns a failure, which ends the Episode as a failing Policy would. */
typedef epg_policy_failure epg_test_policy(void *context, epg_span observation, uint64_t step, epg_buffer *action);

typedef struct epg_test_run epg_test_run;
/* Plans and plays `count` Episodes to their ends (an invalid Action is a failure too). */
epg_test_run *epg_test_play(epg_benchmark *benchmark, const char *split, uint64_t seed, uint64_t count,
                            epg_test_policy *policy, void *context);
void epg_test_run_free(epg_test_run *run);

/* A fresh pass over the records. */
epg_records *epg_test_records(epg_test_run *run);
double epg_test_return(const epg_test_run *run, uint64_t episode);
uint64_t epg_test_steps(const epg_test_run *run, uint64_t episode);
epg_policy_failure epg_test_failure(const epg_test_run *run, uint64_t episode);
epg_span epg_test_initial(const epg_test_run *run, uint64_t episode);
/* The metrics of the Episode's last step: for the built-in ones, how it ended. NUL-terminated; "" without one. */
const char *epg_test_end(const epg_test_run *run, uint64_t episode);

/* The Benchmark's Feedback for the records, checked. */
void epg_test_feedback(epg_benchmark *benchmark, epg_test_run *run, epg_feedback *out);

/* A member of a map of canonical bytes; fails the test when it is missing. */
epg_span epg_test_member(epg_span map, const char *key);
double epg_test_float(epg_span value);
uint64_t epg_test_u64(epg_span value);

#endif
