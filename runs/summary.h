/* The facts of a Run in short, as `log`, `list`, `compare` and `export` tell them: derived from a reading. */
#ifndef EPG_RUNS_SUMMARY_H
#define EPG_RUNS_SUMMARY_H

#include "runs/reading.h"

typedef struct epg_summary {
    const char *state; /* borrowed from the history */
    uint64_t submissions, published, failed;
    uint64_t episodes_used;   /* charged */
    uint64_t policy_failures; /* of published submissions */
    uint64_t best;            /* submission number; 0: none, or the direction is not known */
    uint64_t final;           /* 0: none */
    bool has_validation;      /* of the selected submission */
    double validation;
    bool has_assessment;
    double assessment;
    double wall_seconds;                           /* from the first event to the last */
    double agent_seconds;                          /* while an Agent ran */
    bool tokens_known, cost_known, usage_is_least; /* `least`: at least what is told */
    uint64_t tokens;                               /* in and out */
    double cost;                                   /* US dollars */
} epg_summary;

void epg_summary_of(const epg_reading *reading, epg_summary *out);

/* The best published score within the first `episodes` Episodes that were charged; false: there is none. */
bool epg_summary_best_within(const epg_history *history, uint64_t episodes, double *score);

/* What a submission comes to in the order of the Run. */
typedef struct epg_submission_mark {
    bool improves;   /* better than all before it; false when the direction is not known */
    bool best;       /* of all */
    bool same;       /* the Program of the submission before, or the initial one */
    bool has_change; /* both this and one before have a score */
    double change;   /* from the score of the last published before */
} epg_submission_mark;
/* `marks`: array of submission_count. */
void epg_summary_marks(const epg_reading *reading, epg_submission_mark *marks);

/* JSON objects: docs/histories.md tells their members. */
void epg_summary_run_json(const epg_reading *reading, epg_json_writer *writer, const char *key);
void epg_summary_submission_json(const epg_reading *reading, uint64_t number, const epg_submission_mark *mark,
                                 epg_json_writer *writer, const char *key);

const char *epg_submission_state_name(epg_submission_state state); /* "running", "published", "failed" */
/* "published", "failed", "running", and "pending" for one that no Host evaluates now. */
const char *epg_summary_submission_state(const epg_reading *reading, uint64_t number);

#endif
