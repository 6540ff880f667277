/* The session: what an Agent may do with its budget. Rules and state only: no I/O, no clock.
 *
 * A request is checked first (epg_session_check, which changes nothing) and takes effect by a transition afterwards, so
 * the caller can make each effect durable before it counts, and a Run is resumed by playing the recorded transitions:
 *
 *   submit:  check -> capture and store the Program -> charge -> evaluate -> publish -> published
 *                                                          \-> fault: failed
 *   finish:  check -> finish
 *
 * At most one submission runs at a time; the caller checks a submit or a finish only when none does. */
#ifndef EPG_RUNS_SESSION_H
#define EPG_RUNS_SESSION_H

#include "base/hash.h"
#include "benchmark/benchmark.h"
#include "runs/config.h"
#include "runs/selector.h"

enum { EPG_SUBMISSION_ID_TEXT = 32, EPG_SESSION_MESSAGE = 256 };

/* "submission-000001" for 1; more digits from a million on. */
void epg_submission_id(uint64_t number, char out[EPG_SUBMISSION_ID_TEXT]);
/* The number of a well-formed id; 0 when it is none. */
uint64_t epg_submission_number(const char *id);

typedef enum epg_submission_state {
    EPG_SUBMISSION_RUNNING,   /* charged, not ended */
    EPG_SUBMISSION_PUBLISHED, /* has a score; can be a candidate */
    EPG_SUBMISSION_FAILED     /* a trusted fault: `failure` names which */
} epg_submission_state;

typedef struct epg_submission {
    uint64_t number; /* 1, 2, ... */
    epg_indices indices;
    char program_digest[EPG_DIGEST_TEXT];
    epg_submission_state state;
    double score;                /* when published */
    uint64_t policy_failures;    /* when published */
    uint64_t episodes_used;      /* by this submission */
    uint64_t episodes_remaining; /* in the Run, after it */
    const char *failure;         /* "evaluation_failed", "publication_failed" or "session_failed" */
} epg_submission;
void epg_submission_free(epg_submission *submission);

/* Why the Agent's authority is closed. */
typedef enum epg_session_end {
    EPG_SESSION_OPEN,
    EPG_SESSION_FINISHED, /* finish was accepted: there are candidates */
    EPG_SESSION_FAILED,   /* a trusted fault */
    EPG_SESSION_CLOSED    /* the Host closed it: the Agent ended, its time ran out, the operator stopped the Run */
} epg_session_end;

typedef struct epg_past_submission epg_past_submission;

typedef struct epg_session {
    const epg_config *config; /* resolved; borrowed */
    epg_direction direction;  /* of scores: which one is "best"; set by who knows the Benchmark */
    epg_session_end end;
    const char *failure; /* the code that closed a failed session, else NULL */
    uint64_t episodes_remaining;
    size_t submission_count;
    /* A long Run has many submissions: only the latest is kept as it is, those before it in some 80 bytes each. */
    epg_submission *latest;    /* NULL: none yet */
    epg_past_submission *past; /* by number - 1 */
    epg_buffer past_indices;
    uint64_t *candidates; /* numbers, in the order of finish */
    size_t candidate_count;
} epg_session;

void epg_session_init(epg_session *session, const epg_config *config);
void epg_session_free(epg_session *session);
/* The submission that runs; NULL when none does. Valid until the next charge. */
epg_submission *epg_session_running(const epg_session *session);
/* The submission with that number, as it is now; false: there is none. epg_submission_free. */
bool epg_session_recall(const epg_session *session, uint64_t number, epg_submission *out);
/* Whether the submission with that number is published, and then its score. */
bool epg_session_score(const epg_session *session, uint64_t number, double *score);
uint64_t epg_session_submissions_remaining(const epg_session *session);

typedef enum epg_method {
    EPG_METHOD_NONE, /* not decided: the request was refused before */
    EPG_METHOD_SUBMIT,
    EPG_METHOD_FINISH,
    EPG_METHOD_STATUS, /* ours: read-only, answered in every state */
    EPG_METHOD_WAIT    /* ours: read-only, answered in every state */
} epg_method;

/* What a check came to. `code` NULL: admitted, and the member of the method is set. Otherwise the error to answer.
 * Owned; epg_decision_free. */
typedef struct epg_decision {
    epg_method method;
    const char *code; /* static: "invalid_request", ... */
    char message[EPG_SESSION_MESSAGE];
    epg_indices indices;  /* submit */
    uint64_t *candidates; /* finish: numbers in the order given */
    size_t candidate_count;
    uint64_t wait_for; /* wait: the number of a submission that exists */
    /* The event that a refused finish leaves in the ledger (finish_rejected with these fields). */
    bool record_rejection;
    bool has_candidate_count;    /* then candidate_count tells it, with `candidates` NULL */
    bool has_episodes_remaining; /* then the session's episodes_remaining */
} epg_decision;
void epg_decision_free(epg_decision *decision);

/* The number of the published submission that an Agent's or an operator's word stands for: "submission-000003", "3",
 * "best" (by training score), "last". 0: there is none. */
uint64_t epg_session_named(const epg_session *session, const char *word);

/* Checks a decoded request (a JSON object of any content) in the order of CONTRACTS section 8. Admits or refuses;
 * changes nothing. `request` NULL stands for an undecodable one. */
void epg_session_check(const epg_session *session, const json_t *request, epg_decision *out);
/* What method a request names (NONE when its protocol or method is unknown), without judging it: for the gateway. */
epg_method epg_session_method_of(const json_t *request);

/* For an operator's hand-over after the Agent's end: the checks of finish on ids alone, without the one for an open
 * session, and without budget_remaining when `any_budget`. */
void epg_session_check_candidates(const epg_session *session, const char *const *ids, size_t count, bool any_budget,
                                  epg_decision *out);

/* Transitions. Each is called once its effect is durable (or is about to be answered for). */
epg_submission *epg_session_charge(epg_session *session, const epg_indices *indices,
                                   const char program_digest[EPG_DIGEST_TEXT]);
void epg_session_published(epg_session *session, double score, uint64_t policy_failures);
/* `code`: "evaluation_failed", "publication_failed" or "session_failed"; the running submission, if any, has failed and
 * authority is closed. Nothing is refunded. */
void epg_session_failed(epg_session *session, const char *code);
void epg_session_finish(epg_session *session, const uint64_t *candidates, size_t count);
void epg_session_close(epg_session *session); /* by the Host; nothing when it is closed already */

#endif
