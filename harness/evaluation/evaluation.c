/* The scheduler: hands Episodes to idle workers, keeps their records in spool files, and has one worker make the
 * Feedback. Driven by the coordinator's poll loop: every turn takes what workers have sent and hands out what is next.
 *
 *   Episodes --all finished--> Feedback --result--> done
 * A trusted fault at any point ends the evaluation: busy workers are ended at once, and started anew when needed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "evaluation/pool.h"
#include "evaluation/spool.h"

typedef enum phase { PHASE_EPISODES, PHASE_FEEDBACK, PHASE_DONE } phase;

struct epg_evaluation {
    epg_pool *pool;
    epg_evaluation_plan plan;
    epg_evaluation_result result;
    epg_spools spools;
    phase phase;
    size_t next; /* the first Episode that may still have to be handed out */
    size_t completed;
    uint64_t artifact_size; /* of the artifact being received */
};

void epg_episode_result_free(epg_episode_result *result)
{
    free(result->detail);
    free(result->log);
    free(result->killed_by);
    *result = (epg_episode_result){0};
}

void epg_evaluation_result_free(epg_evaluation_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        epg_episode_result_free(&result->episodes[i]);
    }
    free(result->episodes);
    epg_feedback_free(&result->feedback);
    *result = (epg_evaluation_result){0};
}

static void take_over(epg_evaluation *self)
{
    for (size_t i = 0; i < self->plan.count; i++) {
        epg_episode_result *result = &self->result.episodes[i];
        result->index = self->plan.episodes[i].index;
        const epg_episode_result *done = self->plan.done != NULL ? &self->plan.done[i] : NULL;
        if (done == NULL || !done->finished ||
            !epg_spool_holds(&self->spools, done->spool, done->record_offset, done->record_size, done->record_sha256)) {
            continue; /* an outcome without its record is no outcome: the Episode is run again */
        }
        *result = *done;
        result->detail = result->detail != NULL ? epg_strdup(result->detail) : NULL;
        result->log = result->log != NULL ? epg_strdup(result->log) : NULL;
        result->killed_by = result->killed_by != NULL ? epg_strdup(result->killed_by) : NULL;
        self->completed++;
    }
}

epg_code epg_evaluation_start(epg_pool *pool, const epg_evaluation_plan *plan, epg_evaluation **out, epg_error *err)
{
    if (pool->active != NULL) {
        return epg_fail(err, EPG_ERR_INTERNAL, "an evaluation is running already");
    }
    epg_evaluation *self = epg_alloc(sizeof *self);
    self->pool = pool;
    self->plan = *plan;
    self->result.count = plan->count;
    self->result.episodes = epg_alloc_array(plan->count, sizeof *self->result.episodes);
    epg_spools_open(&self->spools, pool->spool_directory, plan->name, pool->durable);
    take_over(self);
    pool->active = self;
    *out = self;
    return EPG_OK;
}

static bool next_task(epg_evaluation *self, size_t *task)
{
    while (self->next < self->plan.count && self->result.episodes[self->next].finished) {
        self->next++;
    }
    if (self->next == self->plan.count) {
        return false;
    }
    *task = self->next++;
    return true;
}

static unsigned place_of(const epg_evaluation *self, const epg_pool_worker *worker)
{
    return (unsigned)(worker - self->pool->workers);
}

static epg_code give_episode(epg_evaluation *self, epg_pool_worker *worker, size_t task, epg_error *err)
{
    const epg_program *program = self->plan.program;
    EPG_AUTO_BUFFER body = {0};
    if (strcmp(worker->program_digest, program->digest) != 0) {
        epg_program_pack(program, &body);
        EPG_TRY(epg_pool_send(worker, EPG_WIRE_PROGRAM, epg_buffer_span(&body), err));
        memcpy(worker->program_digest, program->digest, sizeof worker->program_digest);
        epg_buffer_clear(&body);
    }
    const epg_planned_episode *episode = &self->plan.episodes[task];
    EPG_TRY(epg_spool_begin(&self->spools, place_of(self, worker), err));
    epg_wire_put_episode(&body, episode->spec, episode->policy_seed);
    EPG_TRY(epg_pool_send(worker, EPG_WIRE_EPISODE, epg_buffer_span(&body), err));
    worker->state = EPG_WORKER_EPISODE;
    worker->task = task;
    return EPG_OK;
}

/* Hands out what is next to those who wait, and starts workers while there is more to do than hands. */
static epg_code hand_out_episodes(epg_evaluation *self, epg_error *err)
{
    epg_pool *pool = self->pool;
    size_t busy = 0;
    for (unsigned i = 0; i < pool->config.jobs; i++) {
        epg_pool_worker *worker = &pool->workers[i];
        size_t task = 0;
        if (worker->state == EPG_WORKER_IDLE && next_task(self, &task)) {
            EPG_TRY(give_episode(self, worker, task, err));
        }
        busy += worker->state == EPG_WORKER_EPISODE || worker->state == EPG_WORKER_STARTING;
    }
    size_t open = self->plan.count - self->completed;
    for (unsigned i = 0; i < pool->config.jobs && busy < open; i++) {
        if (pool->workers[i].state == EPG_WORKER_NONE) {
            EPG_TRY(epg_pool_start_worker(pool, &pool->workers[i], err));
            busy++;
        }
    }
    return EPG_OK;
}

static epg_pool_worker *find_worker(epg_pool *pool, epg_worker_state state)
{
    for (unsigned i = 0; i < pool->config.jobs; i++) {
        if (pool->workers[i].state == state) {
            return &pool->workers[i];
        }
    }
    return NULL;
}

/* One worker makes the Feedback; called every turn until it is done. */
static epg_code ask_for_feedback(epg_evaluation *self, epg_error *err)
{
    epg_pool *pool = self->pool;
    if (find_worker(pool, EPG_WORKER_FEEDBACK) != NULL) {
        return EPG_OK;
    }
    epg_pool_worker *worker = find_worker(pool, EPG_WORKER_IDLE);
    if (worker != NULL) {
        EPG_AUTO_BUFFER body = {0};
        epg_value_put_u64(&body, self->plan.count);
        EPG_TRY(epg_pool_send(worker, EPG_WIRE_FEEDBACK, epg_buffer_span(&body), err));
        worker->state = EPG_WORKER_FEEDBACK;
        return EPG_OK;
    }
    if (find_worker(pool, EPG_WORKER_STARTING) != NULL) {
        return EPG_OK; /* it will be idle */
    }
    worker = find_worker(pool, EPG_WORKER_NONE);
    return worker != NULL ? epg_pool_start_worker(pool, worker, err)
                          : epg_fail(err, EPG_ERR_INTERNAL, "no worker can make the Feedback");
}

static epg_code hand_out(epg_evaluation *self, epg_error *err)
{
    if (self->phase == PHASE_EPISODES && self->completed < self->plan.count) {
        return hand_out_episodes(self, err);
    }
    if (self->phase == PHASE_EPISODES) {
        self->phase = PHASE_FEEDBACK;
    }
    return self->phase == PHASE_FEEDBACK ? ask_for_feedback(self, err) : EPG_OK;
}

static epg_code episode_ended(epg_evaluation *self, epg_pool_worker *worker, epg_span body, epg_error *err)
{
    epg_episode_result *result = &self->result.episodes[worker->task];
    unsigned place = place_of(self, worker);
    EPG_TRY(epg_wire_get_outcome(body, result, err));
    epg_spool_end(&self->spools, place, &result->record_offset, &result->record_size, result->record_sha256);
    result->spool = place;
    result->finished = true;
    worker->state = EPG_WORKER_IDLE;
    self->completed++;
    if (self->plan.observer != NULL) {
        return self->plan.observer(self->plan.observer_context, result, self->completed, self->plan.count, err);
    }
    return EPG_OK;
}

/* Answers a worker that makes Feedback with the piece of a record that it wants. */
static epg_code give_piece(epg_evaluation *self, epg_pool_worker *worker, epg_span want, epg_error *err)
{
    uint64_t index = want.size == 16 ? epg_read_be64(want.data) : UINT64_MAX;
    if (index >= self->plan.count) {
        return epg_fail(err, EPG_ERR_EXECUTION, "a worker asked for a record that is not there");
    }
    const epg_episode_result *result = &self->result.episodes[index];
    uint64_t offset = epg_read_be64(want.data + 8);
    EPG_AUTO_BUFFER piece = {0};
    uint64_t bits = 0;
    memcpy(&bits, &result->reward, sizeof bits);
    (void)epg_buffer_be64(&piece, result->record_size);
    (void)epg_buffer_byte(&piece, (uint8_t)result->failure);
    (void)epg_buffer_be64(&piece, result->steps);
    (void)epg_buffer_be64(&piece, bits);
    if (offset >= result->record_size) {
        return epg_fail(err, EPG_ERR_EXECUTION, "a worker asked beyond the end of a record");
    }
    uint64_t left = result->record_size - offset;
    size_t size = left < EPG_WIRE_PIECE_SIZE ? (size_t)left : EPG_WIRE_PIECE_SIZE;
    EPG_TRY(epg_spool_read(&self->spools, result->spool, result->record_offset + offset, size, &piece, err));
    return epg_pool_send(worker, EPG_WIRE_PIECE, epg_buffer_span(&piece), err);
}

static epg_code artifact_content(epg_evaluation *self, epg_span bytes, epg_error *err)
{
    epg_feedback *feedback = &self->result.feedback;
    epg_artifact *last = feedback->artifact_count > 0 ? &feedback->artifacts[feedback->artifact_count - 1] : NULL;
    if (last == NULL || bytes.size > self->artifact_size - last->content.size) {
        return epg_fail(err, EPG_ERR_EXECUTION, "a worker sent more of an artifact than it told");
    }
    (void)epg_buffer_append_span(&last->content, bytes);
    return EPG_OK;
}

static epg_code feedback_ended(epg_evaluation *self, epg_pool_worker *worker, epg_span body, epg_error *err)
{
    epg_feedback *feedback = &self->result.feedback;
    EPG_TRY(epg_wire_get_result(body, feedback, err));
    if (epg_feedback_check(feedback, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "feedback");
    }
    for (size_t i = 0; i < self->result.count; i++) {
        self->result.policy_failures += self->result.episodes[i].failure != EPG_POLICY_OK;
    }
    worker->state = EPG_WORKER_IDLE;
    EPG_TRY(epg_evaluation_sync_records(self, err));
    self->phase = PHASE_DONE;
    return EPG_OK;
}

static epg_code take_frame(epg_evaluation *self, epg_pool_worker *worker, const epg_frame *frame, epg_error *err)
{
    if (frame->type == EPG_WIRE_FAULT) {
        return epg_wire_get_fault(frame->body, err);
    }
    if (worker->state == EPG_WORKER_STARTING && frame->type == EPG_WIRE_SPEC) {
        return epg_pool_worker_ready(self->pool, worker, frame->body, err);
    }
    if (worker->state == EPG_WORKER_EPISODE && frame->type == EPG_WIRE_RECORD) {
        return epg_spool_append(&self->spools, place_of(self, worker), frame->body, err);
    }
    if (worker->state == EPG_WORKER_EPISODE && frame->type == EPG_WIRE_OUTCOME) {
        return episode_ended(self, worker, frame->body, err);
    }
    if (worker->state == EPG_WORKER_FEEDBACK) {
        switch (frame->type) {
        case EPG_WIRE_WANT:
            return give_piece(self, worker, frame->body, err);
        case EPG_WIRE_ARTIFACT:
            return epg_wire_get_artifact(frame->body, &self->result.feedback, &self->artifact_size, err);
        case EPG_WIRE_CONTENT:
            return artifact_content(self, frame->body, err);
        case EPG_WIRE_RESULT:
            return feedback_ended(self, worker, frame->body, err);
        default:
            break;
        }
    }
    return epg_fail(err, EPG_ERR_EXECUTION, "a worker sent an unexpected frame of type %u", frame->type);
}

static epg_code take_frames(epg_evaluation *self, epg_pool_worker *worker, epg_error *err)
{
    epg_code filled = epg_channel_fill(&worker->channel, err);
    if (filled != EPG_OK && filled != EPG_ERR_CLOSED) {
        return filled;
    }
    for (;;) {
        epg_frame frame;
        bool have = false;
        EPG_TRY(epg_channel_next(&worker->channel, &frame, &have, NULL, err));
        if (!have) {
            break;
        }
        EPG_TRY(take_frame(self, worker, &frame, err));
    }
    return filled == EPG_ERR_CLOSED ? epg_pool_worker_gone(worker, err) : EPG_OK;
}

size_t epg_evaluation_poll_fds(const epg_evaluation *self, struct pollfd *fds, size_t room)
{
    size_t count = 0;
    for (unsigned i = 0; i < self->pool->config.jobs && count < room; i++) {
        if (self->pool->workers[i].state != EPG_WORKER_NONE) {
            fds[count++] = (struct pollfd){.fd = self->pool->workers[i].channel.in, .events = POLLIN};
        }
    }
    return count;
}

/* Workers that are in the middle of something can't serve another evaluation. */
static void stop_busy_workers(epg_evaluation *self)
{
    for (unsigned i = 0; i < self->pool->config.jobs; i++) {
        if (self->pool->workers[i].state != EPG_WORKER_IDLE) {
            epg_pool_kill_worker(&self->pool->workers[i]);
        }
    }
}

static epg_code turn(epg_evaluation *self, epg_error *err)
{
    for (unsigned i = 0; i < self->pool->config.jobs; i++) {
        if (self->pool->workers[i].state != EPG_WORKER_NONE) {
            epg_code code = take_frames(self, &self->pool->workers[i], err);
            if (code != EPG_OK) {
                epg_pool_kill_worker(&self->pool->workers[i]);
                return code;
            }
        }
    }
    return self->phase == PHASE_DONE ? EPG_OK : hand_out(self, err);
}

epg_code epg_evaluation_turn(epg_evaluation *self, bool *done, epg_error *err)
{
    epg_code code = turn(self, err);
    if (code != EPG_OK) {
        stop_busy_workers(self);
        self->phase = PHASE_DONE;
    }
    *done = self->phase == PHASE_DONE;
    return code;
}

epg_code epg_evaluation_sync_records(epg_evaluation *self, epg_error *err)
{
    return epg_spools_sync(&self->spools, err);
}

void epg_evaluation_take(epg_evaluation *self, epg_evaluation_result *out)
{
    *out = self->result;
    self->result = (epg_evaluation_result){0};
}

void epg_evaluation_free(epg_evaluation *self)
{
    if (self == NULL) {
        return;
    }
    if (self->phase != PHASE_DONE) {
        stop_busy_workers(self);
    }
    epg_spools_close(&self->spools);
    epg_evaluation_result_free(&self->result);
    self->pool->active = NULL;
    free(self);
}

void epg_evaluation_discard_records(epg_pool *pool, const char *name)
{
    if (pool->spool_directory >= 0) {
        epg_spools_remove(pool->spool_directory, name);
    }
}

static epg_code wait_for_workers(const epg_evaluation *evaluation, unsigned jobs, int cancel, epg_error *err)
{
    EPG_AUTO_FREE struct pollfd *fds = epg_alloc_array(jobs + 1, sizeof *fds);
    size_t count = epg_evaluation_poll_fds(evaluation, fds, jobs);
    fds[count] = (struct pollfd){.fd = cancel, .events = POLLIN};
    if (poll(fds, count + 1, -1) < 0 && errno != EINTR) {
        return epg_fail_errno(err, errno, "can't wait for workers");
    }
    if (fds[count].revents != 0) {
        return epg_fail(err, EPG_ERR_INTERRUPTED, "interrupted");
    }
    return EPG_OK;
}

epg_code epg_evaluate(epg_pool *pool, const epg_evaluation_plan *plan, int cancel, epg_evaluation_result *out,
                      epg_error *err)
{
    epg_evaluation *evaluation = NULL;
    epg_code code = epg_evaluation_start(pool, plan, &evaluation, err);
    if (code != EPG_OK || evaluation == NULL) {
        return code;
    }
    bool done = false;
    code = epg_evaluation_turn(evaluation, &done, err);
    while (code == EPG_OK && !done) {
        code = wait_for_workers(evaluation, pool->config.jobs, cancel, err);
        if (code == EPG_OK) {
            code = epg_evaluation_turn(evaluation, &done, err);
        }
    }
    if (code == EPG_OK) {
        epg_evaluation_take(evaluation, out);
    }
    epg_evaluation_free(evaluation);
    return code;
}
