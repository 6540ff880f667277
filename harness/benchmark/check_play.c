#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "benchmark/check_play.h"
#include "benchmark/draw.h"
#include "benchmark/public_json.h"
#include "system/io.h"

enum { KEPT_BYTES_MAX = 256 * 1024 * 1024 };

static void tell_line(epg_trial *self, char type, const char *name, const char *text)
{
    EPG_AUTO_FREE char *shown = epg_printable(text, strlen(text));
    EPG_AUTO_FREE char *line = epg_format("%c\t%s\t%s\n", type, name, shown);
    (void)epg_io_write_all(self->out, line, strlen(line));
}

void epg_trial_finding(epg_trial *self, const char *aspect, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tell_line(self, 'F', aspect, text);
}

void epg_trial_note(epg_trial *self, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tell_line(self, 'N', "note", text);
}

void epg_trial_number(epg_trial *self, const char *name, double value)
{
    char text[EPG_DOUBLE_TEXT];
    (void)epg_double_text(value, text);
    tell_line(self, 'V', name, text);
}

void epg_trial_id(epg_trial *self, const char *id)
{
    tell_line(self, 'I', "id", id);
}

void epg_trial_episode_free(epg_trial_episode *episode)
{
    for (uint64_t i = 0; i < episode->count; i++) {
        epg_buffer_free(&episode->steps[i].action);
        epg_step_free(&episode->steps[i].step);
    }
    free(episode->steps);
    epg_buffer_free(&episode->initial);
    *episode = (epg_trial_episode){.count = 0};
}

static void begin(epg_trial *self, const char *call)
{
    self->mark->began = epg_monotonic_ns();
    self->mark->call = call;
}

static int64_t end(epg_trial *self)
{
    self->mark->call = NULL;
    return epg_monotonic_ns() - self->mark->began;
}

/* --- Calls --- */

bool epg_trial_open(epg_trial *self, uint64_t index, epg_environment **out)
{
    epg_error err = {.text = ""};
    begin(self, "making an Environment");
    epg_code code = self->benchmark->vtable->open(self->benchmark, &self->plan[index], out, &err);
    (void)end(self);
    if (code != EPG_OK) {
        epg_trial_finding(self, "structure", "Episode %llu: no Environment could be made: %s",
                          (unsigned long long)index, err.text);
    }
    return code == EPG_OK;
}

bool epg_trial_reset(epg_trial *self, epg_environment *environment, epg_buffer *observation)
{
    epg_error err = {.text = ""};
    begin(self, "Environment.reset");
    epg_code code = self->benchmark->vtable->reset(environment, observation, &err);
    (void)end(self);
    if (code != EPG_OK) {
        epg_trial_finding(self, "structure", "Environment.reset failed: %s", err.text);
        return false;
    }
    code = epg_observation_check(epg_buffer_span(observation), &err);
    if (code != EPG_OK) {
        epg_trial_finding(self, "limits", "Environment.reset: %s", err.text);
    }
    return code == EPG_OK;
}

bool epg_trial_close(epg_trial *self, epg_environment *environment)
{
    epg_error err = {.text = ""};
    begin(self, "Environment.close");
    epg_code code = self->benchmark->vtable->close(environment, &err);
    (void)end(self);
    if (code != EPG_OK) {
        epg_trial_finding(self, "cleanup", "Environment.close failed: %s", err.text);
    }
    return code == EPG_OK;
}

epg_code epg_trial_step_call(epg_trial *self, epg_environment *environment, epg_span action, epg_step *out,
                             epg_error *err)
{
    begin(self, "Environment.step");
    epg_code code = self->benchmark->vtable->step(environment, action, out, err);
    (void)end(self);
    return code;
}

/* --- One Episode --- */

/* The Action of a step: *have is false when the request's sequence is over. */
static epg_code next_action(epg_trial *self, uint64_t index, uint64_t step, uint64_t *draw, epg_buffer *out, bool *have,
                            epg_error *err)
{
    const json_t *actions = self->request->actions;
    *have = true;
    if (actions == NULL) {
        return epg_draw_action(epg_buffer_span(&self->spec.action_space), draw, out, err);
    }
    const json_t *sequence = json_array_get(actions, index % json_array_size(actions));
    const json_t *action = json_array_get(sequence, step);
    *have = action != NULL;
    if (!*have) {
        return EPG_OK;
    }
    if (epg_value_from_public_json(action, out, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "Action %llu of Episode %llu in --actions", (unsigned long long)step,
                           (unsigned long long)index);
    }
    return EPG_OK;
}

/* Whether the step may stand in the record. */
static bool step_is_right(epg_trial *self, uint64_t index, uint64_t number, epg_code code, const epg_step *step,
                          const epg_error *fault, bool tell)
{
    epg_error err = {.text = ""};
    if (code != EPG_OK) {
        if (tell) {
            epg_trial_finding(self, "structure", "Episode %llu, step %llu: Environment.step failed: %s",
                              (unsigned long long)index, (unsigned long long)number, fault->text);
        }
        return false;
    }
    if (epg_step_check(step, &err) != EPG_OK) {
        if (tell) {
            epg_trial_finding(self, "limits", "Episode %llu, step %llu: %s", (unsigned long long)index,
                              (unsigned long long)number, err.text);
        }
        return false;
    }
    return true;
}

static void keep(epg_trial_episode *episode, epg_trial_step *taken)
{
    episode->steps = epg_grow_array(episode->steps, episode->count + 1, sizeof *episode->steps);
    episode->steps[episode->count++] = *taken;
    episode->sum += taken->step.reward;
    episode->ended = taken->step.terminated || taken->step.truncated;
    *taken = (epg_trial_step){.step = {.reward = 0.0}};
}

static void taken_free(epg_trial_step *taken)
{
    epg_buffer_free(&taken->action);
    epg_step_free(&taken->step);
}

/* One step more; *more is false when the Episode is over for us. */
static epg_code play_step(epg_trial *self, epg_environment *environment, uint64_t index, uint64_t *draw, bool tell,
                          epg_trial_episode *out, bool *more, epg_error *err)
{
    EPG_CLEANUP(taken_free) epg_trial_step taken = {.step = {.reward = 0.0}};
    *more = false;
    bool have = false;
    EPG_TRY(next_action(self, index, out->count, draw, &taken.action, &have, err));
    if (!have) {
        return EPG_OK;
    }
    epg_error fault = {.text = ""};
    int64_t began = epg_monotonic_ns();
    epg_code code = epg_trial_step_call(self, environment, epg_buffer_span(&taken.action), &taken.step, &fault);
    out->step_ns += epg_monotonic_ns() - began;
    if (!step_is_right(self, index, out->count, code, &taken.step, &fault, tell)) {
        out->faulted = true;
        return EPG_OK;
    }
    if (taken.step.invalid_action) {
        out->failure = EPG_POLICY_INVALID_ACTION;
        if (tell) {
            epg_trial_finding(self, "structure",
                              "Episode %llu, step %llu: an Action of the action space was refused: %s",
                              (unsigned long long)index, (unsigned long long)out->count,
                              taken.step.invalid_reason != NULL ? taken.step.invalid_reason : "no reason told");
        }
        return EPG_OK;
    }
    keep(out, &taken);
    *more = !out->ended;
    return EPG_OK;
}

static epg_code play_steps(epg_trial *self, epg_environment *environment, uint64_t index, bool tell,
                           epg_trial_episode *out, epg_error *err)
{
    uint64_t draw = self->request->seed + index * UINT64_C(0xd1342543de82ef95);
    uint64_t bytes = 0;
    bool more = true;
    while (more && out->count < self->request->steps && bytes < KEPT_BYTES_MAX) {
        if (out->count == self->spec.max_episode_steps) {
            if (tell) {
                epg_trial_finding(self, "ends", "Episode %llu did not end within its horizon of %llu steps",
                                  (unsigned long long)index, (unsigned long long)self->spec.max_episode_steps);
            }
            break;
        }
        EPG_TRY(play_step(self, environment, index, &draw, tell, out, &more, err));
        bytes += out->count == 0 ? 0 : out->steps[out->count - 1].step.observation.size;
    }
    if (!isfinite(out->sum)) {
        out->faulted = true;
        if (tell) {
            epg_trial_finding(self, "limits", "Episode %llu: the rewards sum to infinity", (unsigned long long)index);
        }
    }
    if (!out->ended && out->failure == EPG_POLICY_OK) {
        out->failure = EPG_POLICY_TIMEOUT;
    }
    return EPG_OK;
}

epg_code epg_trial_play(epg_trial *self, uint64_t index, bool tell, epg_trial_episode *out, epg_error *err)
{
    epg_environment *environment = NULL;
    int64_t began = epg_monotonic_ns();
    out->faulted = true;
    if (!epg_trial_open(self, index, &environment)) {
        return EPG_OK;
    }
    epg_code code = EPG_OK;
    if (epg_trial_reset(self, environment, &out->initial)) {
        out->faulted = false;
        out->opened = true;
        out->open_ns = epg_monotonic_ns() - began;
        code = play_steps(self, environment, index, tell, out, err);
    }
    if (!epg_trial_close(self, environment)) {
        out->faulted = true;
    }
    return code;
}

/* --- Feedback --- */

typedef struct reader {
    const epg_trial *checker;
    const epg_trial_episode *episodes;
    uint64_t count, at, step;
    bool all_fail;
} reader;

uint64_t epg_trial_policy_seed(const epg_trial *self, uint64_t index)
{
    return epg_seed_indexed("evopolicygym/policy-seed/v1", self->request->seed, index);
}

static epg_code next_record(void *context, epg_record_head *head, bool *have, epg_error *err)
{
    (void)err;
    reader *self = context;
    *have = self->at < self->count;
    if (!*have) {
        return EPG_OK;
    }
    const epg_trial_episode *episode = &self->episodes[self->at];
    const epg_episode_spec *spec = &self->checker->plan[self->at];
    *head = (epg_record_head){
        .environment_seed = spec->environment_seed,
        .scenario = epg_buffer_span(&spec->scenario),
        .policy_seed = epg_trial_policy_seed(self->checker, self->at),
        .has_observation = true,
        .initial_observation = epg_buffer_span(&episode->initial),
        .failure = self->all_fail ? EPG_POLICY_EXCEPTION : episode->failure,
        .steps = self->all_fail ? 0 : episode->count,
        .reward = self->all_fail ? 0.0 : episode->sum,
    };
    self->at++;
    self->step = 0;
    return EPG_OK;
}

static epg_code next_step(void *context, epg_transition *step, bool *have, epg_error *err)
{
    (void)err;
    reader *self = context;
    const epg_trial_episode *episode = &self->episodes[self->at - 1];
    *have = !self->all_fail && self->step < episode->count;
    if (*have) {
        const epg_trial_step *taken = &episode->steps[self->step++];
        *step = (epg_transition){
            .action = epg_buffer_span(&taken->action),
            .observation = epg_buffer_span(&taken->step.observation),
            .metrics = epg_buffer_span(&taken->step.metrics),
            .reward = taken->step.reward,
            .terminated = taken->step.terminated,
            .truncated = taken->step.truncated,
        };
    }
    return EPG_OK;
}

epg_code epg_trial_feedback(epg_trial *self, const epg_trial_episode *episodes, uint64_t count, bool all_fail,
                            epg_feedback *out, epg_error *err)
{
    reader context = {.checker = self, .episodes = episodes, .count = count, .all_fail = all_fail};
    epg_records records = {&context, count, next_record, next_step};
    begin(self, "feedback");
    epg_code code = self->benchmark->vtable->feedback(self->benchmark, &records, out, err);
    (void)end(self);
    return code == EPG_OK ? epg_feedback_check(out, err) : code;
}
