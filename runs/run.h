/* A Run: an Agent improves a Program under a fixed Episode budget; the Host selects and measures (CONTRACTS section 9).
 *
 *   set up -> Agent's phase (serve its session) -> Validation -> selection -> Assessment -> run.json
 *
 * Everything that the user may have wrong is checked before anything is created. From then on whatever happens ends in
 * a record that says what happened: a terminal reason in run.json, and the events. */
#ifndef EPG_RUNS_RUN_H
#define EPG_RUNS_RUN_H

#include "agents/invocation.h"
#include "evaluation/evaluation.h"
#include "execution/agent_sandbox.h"
#include "programs/skill.h"
#include "runs/config.h"
#include "runs/progress.h"

typedef struct epg_run_request {
    const char *directory; /* must not exist; its parent must */
    const epg_program *initial;
    const char *initial_origin; /* where the Program came from, for the record; may be NULL */
    const epg_skill *skills;
    size_t skill_count;
    const epg_config *config; /* resolved */
    const epg_pool_config *pool;
    epg_agent_request agent; /* instructions, workspace and home are set here */
    bool agent_private_home; /* the Agent gets a home of the Run's own, RUN/agent/home, removed when it has ended */
    const char *agent_login; /* a home whose login is copied into that; NULL: none */
    epg_profile agent_profile;
    epg_network agent_network;      /* in the sandbox */
    const char *const *agent_shown; /* further paths that the Agent sees read-only in the sandbox */
    size_t agent_shown_count;
    uint64_t best_on_exit; /* an Agent that ended without finish: hand over its K best; 0: no */
    bool full_traces;      /* keep every step of every Episode (traces.h), not step digests alone */
    uint64_t trace_bytes;  /* what they may come to; behind that, digests */
    epg_progress_mode progress;
} epg_run_request;

typedef struct epg_run_outcome {
    char terminal_reason[32];
    uint64_t submissions;
    uint64_t final_submission; /* 0: none */
    bool has_validation_score, has_assessment_score;
    double validation_score, assessment_score;
    epg_code fault; /* of the trusted fault that ended it; EPG_OK: none did */
    char *detail;   /* one line that says why, where the reason needs it; owned; may be NULL */
} epg_run_outcome;
void epg_run_outcome_free(epg_run_outcome *outcome);

/* Runs it all. EPG_OK whenever the record was written, whatever the terminal reason; otherwise a user's mistake before
 * anything was created, or a PUBLICATION fault. */
epg_code epg_run(const epg_run_request *request, epg_run_outcome *out, epg_error *err);

/* A Run that exists: `resume` goes on with one that was cut off, from wherever it was; with candidates it is the
 * operator's hand-over for one that ended without `finish`. */
typedef struct epg_run_again_request {
    const char *const *candidates; /* submission ids; none: resume */
    size_t candidate_count;
    epg_progress_mode progress;
    unsigned jobs; /* 0: as before */
} epg_run_again_request;

/* USAGE when it can't be: complete, held by another Host, altered, or its Benchmark or history no longer fit. */
epg_code epg_run_again(const char *directory, const epg_run_again_request *again, epg_run_outcome *out, epg_error *err);

#endif
