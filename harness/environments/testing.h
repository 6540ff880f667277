/* Benchmarks for this project's own tests: found by name with EPG_TEST_BENCHMARKS=1 in the environment, never listed.
 *
 * test/one-step             one step; observation [0.0, 1.0]; the Action, any int, is the reward, and 99 a trusted
 * fault in step. Score: the mean, a failed Episode counting -1. Two artifacts: trace.txt (permanent) and
 * bulk/frames.bin (bulk, the bytes 0 to 15). test/idle?steps=N&floats=K   N steps of reward 1.0; observation: a list of
 * K zeros; Actions 0 and 1. test/faults?at=WHAT&after=N&milliseconds=M&steps=K   test/idle that breaks: at=CALL that
 * call fails: spec, episodes, open, reset, step, close, feedback at=hang-CALL            ... never returns at=slow-CALL
 * ... takes M ms at=crash-CALL           ... kills its process  at=exit-CALL   ... ends its process with status 3
 *   at=observation-nan, -deep, -large, -junk   the step's observation breaks the rules
 *   at=reset-observation-deep, reward-nan, reward-huge (1e308 each), metrics-junk, never-ends
 *   at=score-nan, content-junk, artifact-name, artifact-large
 *   Faults of a step happen in step N, counted from 0. */
#ifndef EPG_ENVIRONMENTS_TESTING_H
#define EPG_ENVIRONMENTS_TESTING_H

#include "environments/simple.h"

extern const epg_simple_kind epg_idle_kind;
epg_code epg_one_step_open(const char *parameters, epg_benchmark **out, epg_error *err);
epg_code epg_faults_open(const char *parameters, epg_benchmark **out, epg_error *err);

#endif
