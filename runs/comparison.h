/* What two submissions of a Run have in common and not: Episode by Episode where their indices match, and value by
 * value in their Feedback. Programs are compared by epg_reading_diff. */
#ifndef EPG_RUNS_COMPARISON_H
#define EPG_RUNS_COMPARISON_H

#include "base/json.h"

typedef struct epg_pair_row {
    char *name;      /* "3" for an Episode; "returns.mean" for a value of Feedback content */
    const json_t *a; /* borrowed; NULL: not in this one */
    const json_t *b;
} epg_pair_row;

typedef struct epg_pair {
    epg_pair_row *episodes; /* in order of indices; a and b are members of "episodes" */
    size_t episode_count;
    epg_pair_row *values; /* scalars of "content", depth first; lists are passed over */
    size_t value_count;
} epg_pair;
void epg_pair_free(epg_pair *pair);

/* Of two feedback.json documents, either may be NULL. `out` borrows from both. */
void epg_pair_feedback(const json_t *a, const json_t *b, epg_pair *out);

#endif
