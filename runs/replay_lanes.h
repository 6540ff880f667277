/* Evaluations side by side, so that Programs which play few Episodes each keep all workers busy. Private to replay*.c.
 *
 * A lane is a pool, which evaluates one task at a time. Tasks come in an order and are handed back in that order, some
 * of them ahead of their turn. Together they play at most `jobs` Episodes at a time: one that alone has as many runs
 * alone. One poll loop drives all lanes. */
#ifndef EPG_RUNS_REPLAY_LANES_H
#define EPG_RUNS_REPLAY_LANES_H

#include "evaluation/evaluation.h"

typedef struct epg_lane_task {
    epg_program program;
    epg_planned_episode *episodes;
    size_t count; /* 0: nothing is evaluated, it waits for its turn only */
    void *own;    /* of whoever makes and takes tasks */
    /* Set by the lanes: */
    char name[32]; /* of its records, which stand until the task was taken */
    epg_evaluation_result result;
    epg_evaluation_plan plan;
    epg_pool *pool;
    epg_evaluation *running;
    bool done;
} epg_lane_task;

typedef struct epg_lane_work {
    /* Fills the next task, which the lanes own from then on; *have false: there is none. */
    epg_code (*next)(void *context, epg_lane_task *task, bool *have, epg_error *err);
    epg_code (*take)(void *context, const epg_lane_task *task, epg_error *err); /* each in its turn */
    void (*drop)(void *own);
    void *context;
} epg_lane_work;

/* `first` (borrowed) was opened from `config`; further pools are as needed. `records`: where records of Episodes stand.
 * `cancel`: as for epg_evaluate. */
epg_code epg_lanes_run(const epg_pool_config *config, epg_pool *first, const char *records, const epg_lane_work *work,
                       int cancel, epg_error *err);

#endif
