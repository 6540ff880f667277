/* A Run's history, read back from its ledger and its documents: what resume goes on from, and what every command that
 * reads a Run shows. Works for a Run that is complete, one that is still running and one whose Host was killed: the
 * ledger is read up to its last whole line. Reads only. */
#ifndef EPG_RUNS_HISTORY_H
#define EPG_RUNS_HISTORY_H

#include "evaluation/evaluation.h"
#include "runs/session.h"

typedef struct epg_history_submission {
    epg_submission facts; /* state RUNNING: charged, and neither published nor failed */
    char commit[48];      /* "" when the event does not tell */
    char feedback_sha256[EPG_SHA256_HEX];
    int64_t started_unix_ns, ended_unix_ns; /* 0: not known */
    /* facts.indices.count items; those that ended are `finished`; NULL: not read, which see */
    epg_episode_result *episodes;
    char *stopped;                 /* why its evaluation was stopped; NULL: it was not */
    bool tokens_known, cost_known; /* of the Agent since the submission before; else the numbers are 0 */
    uint64_t tokens;               /* in and out */
    double cost;                   /* US dollars */
} epg_history_submission;

/* One evaluation of Validation or Assessment. */
typedef struct epg_history_measure {
    uint64_t number; /* submission */
    uint64_t episode_count;
    bool completed;
    double score;
    uint64_t policy_failures;
    epg_episode_result *episodes; /* episode_count items */
} epg_history_measure;

/* Of the first `bytes` bytes of a document; UINT64_MAX: of the whole. */
typedef struct epg_history_seal {
    char *path; /* from the Run directory */
    uint64_t bytes;
    char sha256[EPG_SHA256_HEX];
    bool reopened; /* a Host has gone on since, which writes it anew, and may have died before it sealed it */
} epg_history_seal;

typedef struct epg_history {
    json_t *request;   /* config.json; NULL for a foreign Host's Run */
    json_t *record;    /* run.json; NULL while there is none, and when skimmed beside a config.json */
    bool has_record;   /* there is a run.json */
    uint64_t recorded; /* events that there were when it was written; 0: it does not tell */
    epg_config config; /* defaults but for episode_budget when there is neither of these */
    char *benchmark_id;
    char *environment_digest;
    char *initial_digest;
    char *provider; /* who the Agent was: "command" or an adapter's name; and its model, NULL when not told */
    char *model;
    char *metric; /* of the score; NULL, as `direction_known` false: a foreign Host's Run has not told yet */
    bool direction_known;
    epg_direction direction;

    epg_history_submission *submissions; /* by number - 1 */
    size_t submission_count;
    uint64_t *candidates; /* in the order of finish */
    size_t candidate_count;
    char *finished_by; /* "agent", "host" or "operator"; NULL: nobody finished */

    bool validation_started;
    epg_history_measure *validation;
    size_t validation_count;
    uint64_t selected; /* 0: none */
    bool assessment_started;
    epg_history_measure assessment;

    bool agent_started, agent_over, agent_timed_out, agent_start_failed;
    int agent_returncode;
    char *agent_limit; /* that the Agent passed; NULL: none */
    char *fault;       /* the event of the trusted fault that ended the Run ("publication_failed", ...); NULL: none */
    epg_code fault_code;
    int64_t agent_used_ns;                      /* of its time, over all the times it was started */
    bool tokens_known, cost_known, usage_exact; /* of the Agent in all, as the Run's end tells; else numbers are 0 */
    uint64_t tokens;                            /* in and out */
    double cost;                                /* US dollars */
    int64_t first_unix_ns, last_unix_ns;
    bool created;            /* the ledger begins with run_created: what the Run's documents are is sealed */
    epg_history_seal *seals; /* in their order; not when skimmed. See seal.h */
    size_t seal_count;
    bool interrupted;      /* the last that happened is an operator's interruption */
    bool ended;            /* run_finished stands in the ledger */
    char *terminal_reason; /* as the ledger or run.json tells; NULL: none yet */
    uint64_t event_count;
    char head[EPG_SHA256_HEX];
    bool chain_broken;
    bool torn;
} epg_history;

/* `run`: the Run directory, open. INVALID when it holds no Run that can be read, or one of a newer schema. Of the
 * submissions, only one whose evaluation has not ended has `episodes`: there may be a million of them. */
epg_code epg_history_read(int run, epg_history *out, epg_error *err);
/* As above, with the Episodes of all submissions. */
epg_code epg_history_read_episodes(int run, epg_history *out, epg_error *err);
/* As above for who shows submissions, many times faster: Episodes but those of Assessment are passed over unread (their
 * `episodes` are NULL), the ledger's chain is not checked, nor is run.json read where there is a config.json. */
epg_code epg_history_skim(int run, epg_history *out, epg_error *err);
void epg_history_free(epg_history *history);
/* Forgets the submissions, which a session has taken over. */
void epg_history_forget_submissions(epg_history *history);

/* run.json tells what the last event does: it is not that of a Host before one that was cut off. */
bool epg_history_is_recorded(const epg_history *history);

/* "finished", "interrupted", "running" (by the lock), "killed": for people. */
const char *epg_history_state(const epg_history *history, bool locked);

/* Lays the history's submissions and candidates into a fresh session. */
void epg_history_session(const epg_history *history, epg_session *session);

/* The best published submission in a direction; NULL: none. */
const epg_history_submission *epg_history_best(const epg_history *history, epg_direction direction);

#endif
