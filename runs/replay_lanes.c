#include "runs/replay_lanes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { AHEAD = 4 }; /* tasks looked at, a lane */

typedef struct lane {
    epg_pool *pool;      /* NULL: not opened */
    epg_lane_task *task; /* NULL: it has nothing to do */
} lane;

typedef struct lanes {
    const epg_pool_config *config;
    const epg_lane_work *work;
    const char *records;
    lane *items; /* config->jobs; the first one's pool is borrowed */
    size_t busy; /* Episodes that are played at a time by those that run */
    epg_lane_task **queue;
    size_t queued, room;
    uint64_t made; /* tasks so far */
    bool over;     /* there are no more */
    struct pollfd *fds;
} lanes;

static void task_free(lanes *self, epg_lane_task *task)
{
    if (task->running != NULL) {
        epg_evaluation_free(task->running);
    }
    if (task->pool != NULL) {
        epg_evaluation_discard_records(task->pool, task->name);
    }
    epg_evaluation_result_free(&task->result);
    epg_program_free(&task->program);
    free(task->episodes);
    self->work->drop(task->own);
    free(task);
}

static void lanes_free(lanes *self)
{
    for (size_t i = 0; i < self->queued; i++) {
        task_free(self, self->queue[i]);
    }
    for (unsigned i = 1; i < self->config->jobs; i++) {
        epg_pool_close(self->items[i].pool);
    }
    free(self->items);
    free((void *)self->queue);
    free(self->fds);
}

static epg_code look_ahead(lanes *self, epg_error *err)
{
    while (!self->over && self->queued < self->room) {
        bool have = false;
        epg_lane_task *task = epg_alloc(sizeof *task);
        self->queue[self->queued++] = task;
        epg_code code = self->work->next(self->work->context, task, &have, err);
        if (code != EPG_OK || !have) {
            task_free(self, self->queue[--self->queued]);
            self->over = true;
            return code;
        }
        (void)snprintf(task->name, sizeof task->name, "replay-%llu", (unsigned long long)self->made++);
        task->done = task->count == 0;
    }
    return EPG_OK;
}

static size_t demand_of(const lanes *self, const epg_lane_task *task)
{
    return task->count < self->config->jobs ? task->count : self->config->jobs;
}

static epg_code turn(lanes *self, lane *where, epg_error *err)
{
    epg_lane_task *task = where->task;
    bool done = false;
    EPG_TRY(epg_evaluation_turn(task->running, &done, err));
    if (done) {
        epg_evaluation_take(task->running, &task->result);
        epg_evaluation_free(EPG_TAKE(task->running));
        task->done = true;
        where->task = NULL;
        self->busy -= demand_of(self, task);
    }
    return EPG_OK;
}

static epg_code start(lanes *self, epg_lane_task *task, epg_error *err)
{
    lane *where = self->items;
    while (where->task != NULL) {
        where++; /* each task that runs has an Episode at least: there are not more of them than lanes */
    }
    if (where->pool == NULL) {
        EPG_TRY(epg_pool_open(self->config, &where->pool, err));
        EPG_TRY(epg_pool_keep_records(where->pool, self->records, false, err));
    }
    task->plan = (epg_evaluation_plan){
        .name = task->name, .program = &task->program, .episodes = task->episodes, .count = task->count};
    task->pool = where->pool;
    EPG_TRY(epg_evaluation_start(where->pool, &task->plan, &task->running, err));
    where->task = task;
    self->busy += demand_of(self, task);
    return turn(self, where, err);
}

/* In order: a task that needs many hands is not passed by. */
static epg_code start_some(lanes *self, epg_error *err)
{
    for (size_t i = 0; i < self->queued; i++) {
        epg_lane_task *task = self->queue[i];
        if (task->done || task->running != NULL) {
            continue;
        }
        if (self->busy > 0 && self->busy + demand_of(self, task) > self->config->jobs) {
            return EPG_OK;
        }
        EPG_TRY(start(self, task, err));
    }
    return EPG_OK;
}

static epg_code hand_back(lanes *self, epg_error *err)
{
    size_t taken = 0;
    epg_code code = EPG_OK;
    while (code == EPG_OK && taken < self->queued && self->queue[taken]->done) {
        code = self->work->take(self->work->context, self->queue[taken], err);
        task_free(self, self->queue[taken++]);
    }
    self->queued -= taken;
    for (size_t i = 0; i < self->queued; i++) {
        self->queue[i] = self->queue[i + taken];
    }
    return code;
}

/* Until a worker of any lane has something to say; then all that run take their turns. */
static epg_code wait_and_turn(lanes *self, int cancel, epg_error *err)
{
    unsigned jobs = self->config->jobs;
    size_t count = 0;
    for (unsigned i = 0; i < jobs; i++) {
        if (self->items[i].task != NULL) {
            count += epg_evaluation_poll_fds(self->items[i].task->running, self->fds + count, jobs);
        }
    }
    if (count == 0) {
        return EPG_OK;
    }
    self->fds[count] = (struct pollfd){.fd = cancel, .events = POLLIN};
    if (poll(self->fds, count + 1, -1) < 0 && errno != EINTR) {
        return epg_fail_errno(err, errno, "can't wait for workers");
    }
    if (self->fds[count].revents != 0) {
        return epg_fail(err, EPG_ERR_INTERRUPTED, "interrupted");
    }
    for (unsigned i = 0; i < jobs; i++) {
        if (self->items[i].task != NULL) {
            EPG_TRY(turn(self, &self->items[i], err));
        }
    }
    return EPG_OK;
}

epg_code epg_lanes_run(const epg_pool_config *config, epg_pool *first, const char *records, const epg_lane_work *work,
                       int cancel, epg_error *err)
{
    size_t jobs = config->jobs;
    EPG_CLEANUP(lanes_free)
    lanes self = {.config = config,
                  .work = work,
                  .records = records,
                  .items = epg_alloc_array(jobs, sizeof *self.items),
                  .room = AHEAD * jobs,
                  .queue = (epg_lane_task **)epg_alloc(AHEAD * jobs * sizeof(epg_lane_task *)),
                  .fds = epg_alloc_array(jobs * jobs + 1, sizeof *self.fds)};
    self.items[0].pool = first;
    for (;;) {
        EPG_TRY(look_ahead(&self, err));
        if (self.queued == 0) {
            return EPG_OK;
        }
        EPG_TRY(start_some(&self, err));
        EPG_TRY(wait_and_turn(&self, cancel, err));
        EPG_TRY(hand_back(&self, err));
    }
}
