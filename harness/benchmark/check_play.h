/* Inside a check's own process: the Benchmark's calls, watched, and Episodes kept in memory. */
#ifndef EPG_BENCHMARK_CHECK_PLAY_H
#define EPG_BENCHMARK_CHECK_PLAY_H

#include "benchmark/check.h"

/* Shared with the process that watches: which call runs, and since when. Texts are static: the same in both. */
typedef struct epg_trial_mark {
    const char *volatile call; /* NULL: none */
    volatile int64_t began;
} epg_trial_mark;

typedef struct epg_trial {
    const epg_benchmark_check_request *request;
    epg_trial_mark *mark;
    int out; /* where lines for the watching process go */
    epg_benchmark *benchmark;
    epg_spec spec;
    epg_episode_spec *plan;
} epg_trial;

/* One line for the report: a finding of an aspect, a note, or a number ("steps"). */
void epg_trial_finding(epg_trial *self, const char *aspect, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void epg_trial_note(epg_trial *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
void epg_trial_number(epg_trial *self, const char *name, double value);
void epg_trial_id(epg_trial *self, const char *id);

typedef struct epg_trial_step {
    epg_buffer action;
    epg_step step;
} epg_trial_step;

typedef struct epg_trial_episode {
    epg_buffer initial;
    epg_trial_step *steps;
    uint64_t count;
    double sum;
    bool opened, ended, faulted;
    epg_policy_failure failure; /* INVALID_ACTION, or TIMEOUT when it was not played to its end */
    int64_t open_ns, step_ns;
} epg_trial_episode;
void epg_trial_episode_free(epg_trial_episode *episode);

/* The Environment's calls; a fault is told as a finding, and false. */
bool epg_trial_open(epg_trial *self, uint64_t index, epg_environment **out);
bool epg_trial_reset(epg_trial *self, epg_environment *environment, epg_buffer *observation);
bool epg_trial_close(epg_trial *self, epg_environment *environment);
/* For Actions that may be refused: the code is for the caller to judge. */
epg_code epg_trial_step_call(epg_trial *self, epg_environment *environment, epg_span action, epg_step *out,
                             epg_error *err);

/* Plays Episode `index` of the plan. The Actions are the request's, or drawn: the same each time. USAGE when they can't
 * be; faults of the Benchmark are findings. `tell`: whether to tell what is wrong (the first time). */
epg_code epg_trial_play(epg_trial *self, uint64_t index, bool tell, epg_trial_episode *out, epg_error *err);

/* Feedback for `count` kept Episodes, or for as many in which the Policy failed at once when `all_fail`. */
epg_code epg_trial_feedback(epg_trial *self, const epg_trial_episode *episodes, uint64_t count, bool all_fail,
                            epg_feedback *out, epg_error *err);

uint64_t epg_trial_policy_seed(const epg_trial *self, uint64_t index);

/* Everything, on an opened Benchmark. */
epg_code epg_trial_rules(epg_trial *self, epg_error *err);

#endif
