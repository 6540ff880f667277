/* A Run opened for reading: its history and, by submission, its Programs and Feedback. For every command that shows
 * Runs. Works for a Run that is complete, running, interrupted or killed, and for one that another Host left (no
 * history.git, no config.json), as far as that goes. Reads only; all that stands in a Run is checked as it is read. */
#ifndef EPG_RUNS_READING_H
#define EPG_RUNS_READING_H

#include "programs/store.h"
#include "runs/history.h"

typedef struct epg_reading {
    char *path;
    int run;
    bool locked; /* a Host holds it now */
    epg_history history;
    epg_store **store; /* the git history, opened when a Program is first asked for, since that costs; own use */
} epg_reading;

typedef enum epg_reading_depth {
    EPG_READ_SUBMISSIONS, /* epg_history_skim: no Episodes */
    EPG_READ_EPISODES     /* epg_history_read */
} epg_reading_depth;

/* Whether a Host holds the Run directory that is open at `run` now. */
bool epg_run_is_held(int run);

/* USAGE when the path holds no Run, or one that can't be read; the text names it. */
epg_code epg_reading_open(const char *path, epg_reading_depth depth, epg_reading *out, epg_error *err);
void epg_reading_free(epg_reading *reading);
const char *epg_reading_state(const epg_reading *reading); /* as epg_history_state */

/* The number that a user's word stands for: "submission-000003", "3", "initial" (0), "last", "best" (by training
 * score), "final" (the selected one). USAGE when there is none. */
epg_code epg_reading_find(const epg_reading *reading, const char *word, uint64_t *number, epg_error *err);
/* "initial" for 0, else the submission's id; also its tag in history.git. */
void epg_reading_name(uint64_t number, char out[EPG_SUBMISSION_ID_TEXT]);
/* NULL for 0. */
const epg_history_submission *epg_reading_submission(const epg_reading *reading, uint64_t number);
const char *epg_reading_digest(const epg_reading *reading, uint64_t number); /* as recorded; may be "" */

/* The snapshot, from history.git or else from the Host's copy, checked against the recorded digest: INVALID when it
 * differs, NOT_FOUND when none is left. */
epg_code epg_reading_program(const epg_reading *reading, uint64_t number, epg_program *out, epg_error *err);
/* A unified diff of two snapshots, as `git diff` prints it; as epg_store_diff. */
epg_code epg_reading_diff(const epg_reading *reading, uint64_t from, uint64_t to, epg_buffer *out, epg_error *err);
/* The Host's feedback.json; NOT_FOUND when there is none, INVALID when it is not what the ledger says was published. */
epg_code epg_reading_feedback(const epg_reading *reading, uint64_t number, json_t **out, epg_error *err);
/* A JSON document below the Run ("assessment/report.json"); NOT_FOUND. */
epg_code epg_reading_document(const epg_reading *reading, const char *path, json_t **out, epg_error *err);

#endif
