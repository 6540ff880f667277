/* The lifecycle of one Episode (CONTRACTS section 7), straight-line, in a worker.
 *
 * In this order: a fresh Environment; reset; fresh scratch with the Program in it; a fresh Policy process; make_policy
 * once; then act -> validated Action -> step, until a Step ends it or the horizon is reached. The Policy process and
 * then the Environment are closed on every way out. The Policy's time is what the Host waits on it. */
#ifndef EPG_EVALUATION_EPISODE_H
#define EPG_EVALUATION_EPISODE_H

#include "evaluation/record.h"
#include "evaluation/watchdog.h"
#include "guest/guest.h"
#include "programs/program.h"

typedef struct epg_episode_setup {
    epg_benchmark *benchmark;
    const epg_spec *spec;
    epg_guest *guest;
    const epg_program *program;
    int scratch; /* directory descriptor in which the Episode's own directory is made */
    const char *scratch_path;
    int64_t policy_limit_ns;
    epg_watchdog *watchdog;
    epg_company *company; /* of the worker, the Policy and an external Benchmark; NULL: none */
    /* Takes the record's bytes as they come (and empties the buffer); called whenever some have gathered. */
    epg_code (*sink)(void *context, epg_buffer *record, epg_error *err);
    void *sink_context;
} epg_episode_setup;

typedef struct epg_episode_outcome {
    epg_record_end end;
    epg_policy_cause cause;
    char *detail; /* Host-only; may be NULL */
    epg_policy_end policy;
    int64_t policy_ns, environment_ns, total_ns;
} epg_episode_outcome;
void epg_episode_outcome_free(epg_episode_outcome *outcome);

/* A trusted fault fails with BENCHMARK or EXECUTION; a Policy's failure is an outcome. */
epg_code epg_episode_run(const epg_episode_setup *setup, const epg_episode_spec *episode, uint64_t policy_seed,
                         epg_episode_outcome *out, epg_error *err);

#endif
