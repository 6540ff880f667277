/* Replay: the recorded snapshots of a Run are evaluated again and compared with what was recorded, or measured on fresh
 * Episodes.
 *
 * How it works: config.json names the Benchmark, the seeds and the workers, so the same Episodes are planned again; the
 * ledger holds for each Episode the hash of its record (its seeds, every observation, Action, metric and reward: no
 * clock in it), its reward, steps and failure. Equal hashes are equal Episodes. Where they differ, the
 * first step that does is sought in what the Run kept: whole traces (traces.h) tell it with both values, so do the
 * steps that the Feedback's trace.jsonl has; step digests (digests.h) tell it for every Episode, with the replayed
 * value.
 *
 * A Run's config.json decides which Benchmark and which interpreter are started: replay only Runs that you trust. That
 * Policies get all rights again (profile process) has to be allowed again. Nothing is written to the Run. */
#ifndef EPG_RUNS_REPLAY_H
#define EPG_RUNS_REPLAY_H

#include "runs/reading.h"

typedef struct epg_replay_setup {
    unsigned jobs;         /* 0: as before */
    const char *execution; /* profile; NULL: as before */
    const char *python;    /* found interpreter; NULL: as before */
    bool allow_unsafe;     /* the user accepts that Policies have all rights */
    int traces;            /* a directory for whole traces of what is replayed (traces.h); -1: none are kept */
    uint64_t trace_bytes;  /* what these may come to */
} epg_replay_setup;

typedef struct epg_replay epg_replay;

/* USAGE when the Run does not tell how it was evaluated, when its Benchmark is another one now, or when it was not
 * contained and that was not allowed. `reading` (with Episodes) is borrowed. */
epg_code epg_replay_open(const epg_reading *reading, const epg_replay_setup *setup, epg_replay **out, epg_error *err);
void epg_replay_close(epg_replay *replay); /* NULL is nothing */
const epg_spec *epg_replay_spec(const epg_replay *replay);

/* One evaluation, again. Owned; zeroed is empty. */
typedef struct epg_replay_result {
    const char *phase; /* "training", "validation", "assessment" */
    uint64_t number;   /* submission */
    size_t episodes;   /* recorded ones, all evaluated again */
    size_t equal;
    bool has_recorded_score; /* all its Episodes were recorded, and it was scored */
    double recorded_score;
    double score;
    uint64_t policy_failures;
    char program_digest[EPG_DIGEST_TEXT];
    const char *recorded_traces; /* what the Run kept of its steps: "full", "digests"; NULL: neither */
    bool traces_kept;            /* of the replay, where they were asked for */
    /* The first Episode (in plan order) that differs, when equal < episodes. */
    uint64_t index;
    bool outcome_differs, reward_differs, steps_differ; /* none: only observations, Actions or metrics do */
    epg_policy_failure recorded_failure, failure;
    double recorded_reward, reward;
    uint64_t recorded_steps, steps;
    bool step_known;      /* what the Run kept tells the first step that differs: */
    const char *evidence; /* "traces", "feedback" (its trace.jsonl) or "digests"; NULL: it does not */
    uint64_t step;
    char *what;                   /* "observation", "action", "reward", "metrics", ... */
    char *recorded_value, *value; /* as JSON; NULL: not known, or there is none */
} epg_replay_result;
void epg_replay_result_free(epg_replay_result *result);
bool epg_replay_is_equal(const epg_replay_result *result); /* Episodes and score */

/* Called for each evaluation, in the order of submissions; a failure of `visit` or `recall` stops. */
typedef struct epg_replay_visitor {
    epg_code (*visit)(void *context, const epg_replay_result *result, epg_error *err);
    /* What an earlier replay told need not be played: `known` says so, ahead of its turn; `recall` is called in place
     * of `visit`. */
    epg_code (*known)(void *context, const char *phase, uint64_t number, bool *known, epg_error *err);
    epg_code (*recall)(void *context, const char *phase, uint64_t number, epg_error *err);
    void *context;
} epg_replay_visitor;

/* All that was recorded of the submissions `first` to `last`: training, Validation and Assessment Episodes. `cancel`:
 * as for epg_evaluate. */
epg_code epg_replay_submissions(epg_replay *replay, uint64_t first, uint64_t last, int cancel,
                                const epg_replay_visitor *visitor, epg_error *err);

/* Other Episodes, the same for every submission. */
typedef struct epg_replay_on {
    const char *split;
    uint64_t episodes;
    uint64_t seed;
} epg_replay_on;
/* Measures them (0: the initial Program). Of a result: score, policy_failures, program_digest, traces_kept, as
 * recorded_score that in training, and as phase "fresh". */
epg_code epg_replay_measure(epg_replay *replay, const epg_replay_on *on, uint64_t first, uint64_t last, int cancel,
                            const epg_replay_visitor *visitor, epg_error *err);

#endif
