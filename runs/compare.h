/* Comparing Runs that measured the same thing: held-out scores with bootstrap confidence intervals, and a ranking.
 *
 * The interval of a group of Runs is the percentile interval of a bootstrap in two levels, Runs and within each the
 * Episodes of its Assessment; for one Run only its Episodes are drawn. It is had only where the score is the mean over
 * Episodes (checked against the recorded score), a failed Episode counting as the value that makes it so. The draws
 * start from a fixed seed: the same Runs give the same numbers. */
#ifndef EPG_RUNS_COMPARE_H
#define EPG_RUNS_COMPARE_H

#include "runs/summary.h"

enum { EPG_COMPARE_BUDGETS = 8 };

typedef struct epg_interval {
    bool known;
    double low, high; /* 95% */
} epg_interval;

typedef struct epg_compared {
    const epg_reading *reading;
    epg_summary summary;
    epg_interval interval;
    bool has_best_at[EPG_COMPARE_BUDGETS];
    double best_at[EPG_COMPARE_BUDGETS]; /* best training score within each budget */
} epg_compared;

typedef struct epg_compared_group {
    const char *provider; /* borrowed; NULL: not known */
    const char *model;
    size_t runs, measured; /* those that have a held-out score */
    double mean;           /* of their held-out scores */
    epg_interval interval;
} epg_compared_group;

typedef struct epg_comparison {
    uint64_t budgets[EPG_COMPARE_BUDGETS]; /* Episodes */
    size_t budget_count;
    epg_compared *runs; /* best held-out score first; those without one last, as they were given */
    size_t run_count;
    epg_compared_group *groups; /* an Agent and its model each, in the same order */
    size_t group_count;
    bool splits_differ; /* held-out Episodes came from different splits: scores hardly compare */
} epg_comparison;
void epg_comparison_free(epg_comparison *comparison);

/* `budgets` NULL: quarters of the smallest episode_budget. USAGE when Benchmarks, environment digests or score
 * directions differ, with the two Runs named. Borrows from `readings` (EPG_READ_SUBMISSIONS is enough). */
epg_code epg_compare(const epg_reading *readings, size_t count, const uint64_t *budgets, size_t budget_count,
                     epg_comparison *out, epg_error *err);

#endif
