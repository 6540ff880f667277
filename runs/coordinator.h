/* The coordinator of one Run: what its parts share. Private to runs/.
 *
 * One thread, one poll loop (loop.c): signals, the Agent, the session's gateway, the evaluation under way, the
 * ledger's and the Agent's deadlines. submit.c answers the session, phases.c does what comes after the Agent. */
#ifndef EPG_RUNS_COORDINATOR_H
#define EPG_RUNS_COORDINATOR_H

#include "agents/runner.h"
#include "programs/store.h"
#include "runs/gateway.h"
#include "runs/history.h"
#include "runs/ledger.h"
#include "runs/publication.h"
#include "runs/records.h"
#include "runs/retention.h"
#include "runs/run.h"

/* Why the Agent's phase is being ended by the Host. */
typedef enum epg_stop {
    EPG_STOP_NONE,
    EPG_STOP_FINISHED, /* finish was accepted: grace, then the end */
    EPG_STOP_TIMEOUT,
    EPG_STOP_LIMIT, /* self->limit tells which */
    EPG_STOP_FAULT, /* a trusted fault closed the session */
    EPG_STOP_SIGNAL
} epg_stop;

/* watch.c's own */
typedef struct epg_run_watch {
    int64_t active;  /* when the Agent was seen to do something */
    int64_t sampled; /* when its processor time was looked at */
    int64_t cpu_ns;  /* what it was then */
} epg_run_watch;

/* What the Agent used up to the publication of a submission, since the one before. */
typedef struct epg_run_interval {
    uint64_t submission;
    epg_usage usage;
} epg_run_interval;

#define EPG_RUN_AGENT_HOME "home" /* in RUN/agent */

typedef struct epg_run_state {
    const epg_run_request *request;
    const epg_config *config;
    const epg_spec *spec;
    const epg_history *history;                    /* of a Run that goes on; NULL for a new one */
    const epg_run_again_request *operators_choice; /* candidates that the operator names; NULL: none */
    epg_buffer task;                               /* the task text */
    int run;                                       /* the Run directory */
    int lock;
    char *path;
    char *workspace;
    char *agent_home; /* the Agent's private home; NULL: it has none */
    epg_pool *pool;
    epg_store *store;
    epg_ledger *ledger;
    epg_publisher *publisher;
    epg_retention *retention;
    epg_session session;
    epg_evidence_list evidence;
    int evidence_log; /* RUN/evidence.jsonl */
    epg_progress progress;
    epg_progress_state shown;
    char best_id[EPG_SUBMISSION_ID_TEXT];
    char shown_id[EPG_SUBMISSION_ID_TEXT];

    epg_episode_spec *training; /* the pool, config->episode_pool_size items */
    int signals;
    int interrupted; /* the signal that ends the Run; 0: none */
    bool hurry;      /* a second one came */

    epg_gateway *gateway; /* NULL outside the Agent's phase */
    epg_agent *agent;     /* NULL: not started, or closed */
    epg_invocation invocation;
    epg_redactor *redactor;
    epg_transcript *transcript;
    int transcript_fd;
    json_t *agent_box; /* what holds for the Agent in its sandbox; NULL: it had none */
    int64_t agent_deadline;
    epg_stop stop;
    const char *limit; /* "idle", "max_tokens" or "max_cost"; NULL: none was passed */
    epg_run_watch watch;
    epg_usage interval;          /* that the submission under way closes */
    epg_run_interval *intervals; /* of those that were published, and about which anything is known */
    size_t interval_count;
    uint64_t agent_starts; /* by this Host */
    uint64_t past_starts;  /* of the Agent that have ended, by whatever Host */
    epg_usage past_usage;  /* of these */
    int64_t grace_deadline;
    bool agent_terminated; /* we asked it to end */
    bool agent_start_failed;
    bool agent_timed_out;
    bool agent_stopped_after_terminal;
    bool has_agent_end;
    epg_agent_end agent_end;

    epg_evaluation *evaluation; /* under way; NULL: none */
    epg_program program;        /* of the submission under way */
    epg_planned_episode *planned;

    bool traces_counted;  /* what stands in RUN/traces is in: */
    uint64_t trace_bytes; /* of whole traces kept */
    bool traces_told;     /* that their budget is spent */

    epg_error fault;        /* the trusted fault that ended the Run */
    const char *fault_code; /* "evaluation_failed", ...; NULL: none */
    int64_t began;
} epg_run_state;

/* --- setup.c --- */
epg_code epg_run_prepare(epg_run_state *self, epg_error *err); /* checks all, creates nothing */
epg_code epg_run_create(epg_run_state *self, epg_error *err);
epg_code epg_run_reopen(epg_run_state *self, epg_error *err);
epg_code epg_run_prepare_again(epg_run_state *self, double seconds_left, epg_error *err);
/* At the end: the Agent's copy of its task, where an earlier Host died before it sealed it and this one did not start
 * the Agent. */
epg_code epg_run_settle_task(epg_run_state *self, epg_error *err);
/* USAGE names the process that holds it. */
epg_code epg_run_lock(int run, int *out, epg_error *err);

/* --- agent_phase.c --- */
/* Starts the Agent, serves its session until it and its tree have ended, closes the session. */
epg_code epg_run_agent_phase(epg_run_state *self, double seconds, epg_error *err);
int epg_run_returncode(const epg_exit *how);        /* the exit code, or -signal */
epg_usage epg_run_usage(const epg_run_state *self); /* of all starts of the Agent */

/* --- loop.c --- */
/* Waits for anything to happen, takes the turns of signals, Agent, gateway and ledger; then returns. INTERRUPTED never:
 * `interrupted` tells. `deadline`: return at the latest then. */
epg_code epg_run_wait(epg_run_state *self, int64_t deadline, epg_error *err);
/* Drives an evaluation to its end outside the Agent's phase. INTERRUPTED when a signal came. */
epg_code epg_run_evaluate(epg_run_state *self, const epg_evaluation_plan *plan, epg_evaluation_result *out,
                          epg_error *err);
void epg_run_show(epg_run_state *self, bool now);

/* --- submit.c --- */
/* Answers what the session was asked; starts evaluations. PUBLICATION when the ledger can't be written. */
epg_code epg_run_serve(epg_run_state *self, epg_error *err);
/* Takes the evaluation's turn; publishes when it is done. */
epg_code epg_run_evaluation_turn(epg_run_state *self, epg_error *err);
/* Takes up a submission that an earlier Host charged and did not publish. */
epg_code epg_run_take_up(epg_run_state *self, epg_error *err);
/* Hands over the candidates that the operator named. */
epg_code epg_run_operators_finish(epg_run_state *self, epg_error *err);
void epg_run_note_best(epg_run_state *self, const epg_submission *submission);
/* A published submission's score and Episodes as a note, for readers of the git history: the record does not rest on
 * it. Notes wait in memory; those that a death took are given again when the Run goes on. */
void epg_run_note_history(epg_run_state *self, const epg_submission *submission);
/* Keeps the git history packed; at the end writes the notes that wait. */
void epg_run_tidy_history(epg_run_state *self, bool at_the_end);
/* Stops the evaluation under way: charged, never published; the event says why. */
epg_code epg_run_evaluation_stop(epg_run_state *self, const char *reason, epg_error *err);

/* --- watch.c: limits on a working Agent, and what it used --- */
void epg_run_watch_begin(epg_run_state *self);
int64_t epg_run_watch_deadline(const epg_run_state *self);
epg_code epg_run_watch_turn(epg_run_state *self, epg_error *err);
void epg_run_watch_request(epg_run_state *self); /* it asked the session for something */
void epg_run_take_home(epg_run_state *self);
/* What the Agent used since the submission before, as far as its stream has told by now: into self->interval. */
void epg_run_close_interval(epg_run_state *self);
void epg_run_note_submission(epg_run_state *self, const epg_submission *submission);
void epg_run_past_usage(epg_run_state *self); /* reads what the Agent used under earlier Hosts */

/* --- evidence.c: RUN/evidence.jsonl, for the Host's eyes alone --- */
epg_code epg_run_evidence_open(epg_run_state *self, epg_error *err);
void epg_run_evidence_episode(epg_run_state *self, const char *what, const epg_episode_result *episode);
void epg_run_evidence_fault(epg_run_state *self, const char *what, const epg_error *fault);
/* The whole traces of an evaluation did not fit into what is left of their budget. */
void epg_run_evidence_traces(epg_run_state *self, const char *what, uint64_t room);
/* --- traces_keep.c --- */
/* Keeps the step digests, and where the Run asked for them the whole traces, of an evaluation whose records are about
 * to go (digests.h, traces.h); a failure is evidence only. `sha256`: of the digests, for the event that seals them; ""
 * when there are none. Whole traces are sealed by an event of their own. */
void epg_run_keep_traces(epg_run_state *self, const char *name, const epg_evaluation_result *result,
                         char sha256[EPG_SHA256_HEX]);
/* What an earlier Host wrote of traces and died before it sealed: its Episodes' records stand, and it is written anew.
 */
void epg_run_drop_unsealed_traces(epg_run_state *self);
void epg_run_evidence_findings(epg_run_state *self, const epg_evidence_list *found, size_t from);

/* --- seal.c: see seal.h --- */
epg_code epg_run_created(epg_run_state *self, epg_error *err); /* the first event, durable: the Run is set up */
/* Seals a document that is written (and makes it durable); one that is not there is passed over. One that was sealed
 * before keeps that seal, unless it grows and its beginning is as it was, or was written anew. */
typedef enum epg_sealing { EPG_SEAL_ONCE, EPG_SEAL_GROWN, EPG_SEAL_ANEW } epg_sealing;
epg_code epg_run_seal(epg_run_state *self, const char *path, epg_sealing how, epg_error *err);
epg_code epg_run_seal_logs(epg_run_state *self, epg_error *err); /* of the Agent, and the evidence */

/* --- phases.c --- */
epg_code epg_run_validate(epg_run_state *self, uint64_t *selected, double *score, epg_error *err);
epg_code epg_run_assess(epg_run_state *self, uint64_t selected, double *score, epg_error *err);

#endif
