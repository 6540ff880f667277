/* The ATIF form. A step is held back until the next one begins: an Agent's message takes up the thinking before it, the
 * tool calls after it and their results, and the usage that is told meanwhile. A submission's answer is a step of the
 * system, with the Feedback as its message's data. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "runs/export_internal.h"

#define VERSION "ATIF-v1.4"

typedef struct atif {
    epg_json_writer writer;
    uint64_t steps;
    /* the Agent's step that is held back; message NULL and no calls: none */
    char *message;
    epg_buffer thinking;
    json_t *calls;
    json_t *results;
    int64_t when;
    /* usage as told last, and when the last step was written */
    json_t *usage, *usage_before;
} atif;

static void atif_free(atif *self)
{
    free(self->message);
    epg_buffer_free(&self->thinking);
    json_decref(self->calls);
    json_decref(self->results);
    json_decref(self->usage);
    json_decref(self->usage_before);
}

static void put_time(epg_json_writer *writer, int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / EPG_SECOND);
    struct tm utc;
    char text[64] = "";
    if (unix_ns <= 0 || gmtime_r(&seconds, &utc) == NULL) {
        return;
    }
    size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    EPG_AUTO_FREE char *whole = epg_format("%.*s.%06lldZ", (int)size, text, (long long)(unix_ns % EPG_SECOND / 1000));
    epg_json_put_text(writer, "timestamp", whole);
}

/* --- usage: an Agent tells totals, a step wants its own --- */

static bool usage_number(const json_t *usage, const char *group, const char *key, double *out)
{
    const json_t *value = json_object_get(group != NULL ? json_object_get(usage, group) : usage, key);
    *out = json_number_value(value);
    return json_is_number(value);
}

static void put_difference(atif *self, const char *as, const char *group, const char *key, bool whole)
{
    epg_json_writer *writer = &self->writer;
    double now = 0;
    double before = 0;
    if (!usage_number(self->usage, group, key, &now)) {
        return;
    }
    (void)usage_number(self->usage_before, group, key, &before);
    double difference = now > before ? now - before : 0;
    if (whole && difference < 0x1p63) {
        epg_json_put_u64(writer, as, (uint64_t)difference);
    } else {
        epg_json_put_computed(writer, as, difference);
    }
}

static void put_metrics(atif *self)
{
    if (self->usage == self->usage_before) {
        return;
    }
    epg_json_object(&self->writer, "metrics");
    put_difference(self, "cached_tokens", "tokens", "cached_input", true);
    put_difference(self, "completion_tokens", "tokens", "output", true);
    put_difference(self, "cost_usd", NULL, "cost", false);
    put_difference(self, "prompt_tokens", "tokens", "input", true);
    epg_json_end(&self->writer);
    json_decref(self->usage_before);
    self->usage_before = json_incref(self->usage);
}

/* --- the Agent's step --- */

static bool is_held(const atif *self)
{
    return self->message != NULL || self->thinking.size > 0 || json_array_size(self->calls) > 0 ||
           json_array_size(self->results) > 0;
}

static void put_results(atif *self)
{
    if (json_array_size(self->results) == 0) {
        return;
    }
    epg_json_object(&self->writer, "observation");
    epg_json_put_json(&self->writer, "results", self->results);
    epg_json_end(&self->writer);
}

static void write_held(atif *self, const epg_export_state *state)
{
    const char *model = state->reading->history.model;
    if (!is_held(self)) {
        return;
    }
    epg_json_object(&self->writer, NULL);
    epg_json_put_text(&self->writer, "message", self->message != NULL ? self->message : "");
    put_metrics(self);
    if (model != NULL) {
        epg_json_put_text(&self->writer, "model_name", model);
    }
    put_results(self);
    if (self->thinking.size > 0) {
        epg_json_put_text(&self->writer, "reasoning_content", epg_buffer_cstr(&self->thinking));
    }
    epg_json_put_text(&self->writer, "source", "agent");
    epg_json_put_u64(&self->writer, "step_id", ++self->steps);
    put_time(&self->writer, self->when);
    if (json_array_size(self->calls) > 0) {
        epg_json_put_json(&self->writer, "tool_calls", self->calls);
    }
    epg_json_end(&self->writer);
    free(EPG_TAKE(self->message));
    epg_buffer_clear(&self->thinking);
    (void)json_array_clear(self->calls);
    (void)json_array_clear(self->results);
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text != NULL ? text : "";
}

static void take_message(atif *self, const epg_export_state *state, const json_t *event)
{
    if (self->message != NULL || json_array_size(self->calls) > 0) {
        write_held(self, state);
    }
    self->message = epg_strdup(text_of(event, "text"));
    self->when = json_integer_value(json_object_get(event, "time_unix_ns"));
}

static void take_thinking(atif *self, const epg_export_state *state, const json_t *event)
{
    if (self->message != NULL || json_array_size(self->calls) > 0) {
        write_held(self, state);
    }
    (void)epg_buffer_format(&self->thinking, "%s%s", self->thinking.size > 0 ? "\n" : "", text_of(event, "text"));
    self->when = json_integer_value(json_object_get(event, "time_unix_ns"));
}

/* ATIF wants an object of arguments. */
static json_t *arguments_of(const json_t *event)
{
    json_t *input = json_object_get(event, "input");
    if (json_is_object(input)) {
        return json_incref(input);
    }
    json_t *box = json_object();
    if (input != NULL && !json_is_null(input)) {
        (void)json_object_set(box, "input", input);
    }
    return box;
}

static void take_call(atif *self, const epg_export_state *state, const json_t *event)
{
    if (json_array_size(self->results) > 0) {
        write_held(self, state); /* calls after a result are another turn */
    }
    if (!is_held(self)) {
        self->when = json_integer_value(json_object_get(event, "time_unix_ns"));
    }
    (void)json_array_append_new(self->calls,
                                json_pack("{s:s,s:s,s:o}", "tool_call_id", text_of(event, "id"), "function_name",
                                          text_of(event, "name"), "arguments", arguments_of(event)));
}

/* A result may name a call of its own step only. */
static void take_result(atif *self, const json_t *event)
{
    const char *id = text_of(event, "id");
    bool called = false;
    for (size_t i = 0; i < json_array_size(self->calls); i++) {
        called = called || strcmp(text_of(json_array_get(self->calls, i), "tool_call_id"), id) == 0;
    }
    if (!is_held(self)) {
        self->when = json_integer_value(json_object_get(event, "time_unix_ns"));
    }
    json_t *result = json_pack("{s:s}", "content", text_of(event, "output"));
    if (called) {
        (void)json_object_set_new(result, "source_call_id", json_string(id));
    }
    (void)json_array_append_new(self->results, result);
}

static void put_system_step(atif *self, const epg_export_state *state, int64_t when, const char *message,
                            const json_t *extra)
{
    write_held(self, state);
    epg_json_object(&self->writer, NULL);
    if (extra != NULL) {
        epg_json_put_json(&self->writer, "extra", extra);
    }
    epg_json_put_text(&self->writer, "message", message);
    epg_json_put_text(&self->writer, "source", "system");
    epg_json_put_u64(&self->writer, "step_id", ++self->steps);
    put_time(&self->writer, when);
    epg_json_end(&self->writer);
}

static epg_code agent(void *form, epg_export_state *state, const json_t *event, epg_error *err)
{
    (void)err;
    atif *self = form;
    const char *kind = text_of(event, "event");
    if (strcmp(kind, "message") == 0 || strcmp(kind, "output") == 0) {
        take_message(self, state, event);
    } else if (strcmp(kind, "thinking") == 0) {
        take_thinking(self, state, event);
    } else if (strcmp(kind, "tool_call") == 0) {
        take_call(self, state, event);
    } else if (strcmp(kind, "tool_result") == 0) {
        take_result(self, event);
    } else if (strcmp(kind, "usage") == 0) {
        json_decref(self->usage);
        self->usage = json_deep_copy(event);
    } else if (strcmp(kind, "error") == 0) {
        put_system_step(self, state, json_integer_value(json_object_get(event, "time_unix_ns")),
                        text_of(event, "message"), event);
    }
    return EPG_OK;
}

static epg_code submission(void *form, epg_export_state *state, uint64_t number, const json_t *feedback, epg_error *err)
{
    (void)err;
    const epg_history_submission *one = &state->reading->history.submissions[number - 1];
    char id[EPG_SUBMISSION_ID_TEXT];
    char score[EPG_DOUBLE_TEXT];
    epg_submission_id(number, id);
    (void)epg_double_text(one->facts.score, score);
    bool published = one->facts.state == EPG_SUBMISSION_PUBLISHED;
    EPG_AUTO_FREE char *message = published
                                      ? epg_format("%s was evaluated: score %s", id, score)
                                      : epg_format("%s: %s", id, epg_summary_submission_state(state->reading, number));
    EPG_AUTO_JSON *extra = json_pack("{s:s,s:s}", "submission_id", id, "program_digest", one->facts.program_digest);
    if (feedback != NULL) {
        (void)json_object_set_new(extra, "feedback", json_deep_copy(feedback));
    }
    put_system_step(form, state, one->ended_unix_ns, message, extra);
    return EPG_OK;
}

/* --- the document around the steps --- */

static epg_code begin(void *form, epg_export_state *state, const char *task, epg_error *err)
{
    (void)err;
    atif *self = form;
    const epg_history *history = &state->reading->history;
    epg_json_begin(&self->writer, &state->out, 2);
    epg_json_object(&self->writer, NULL);
    epg_json_object(&self->writer, "agent");
    if (history->model != NULL) {
        epg_json_put_text(&self->writer, "model_name", history->model);
    }
    epg_json_put_text(&self->writer, "name", history->provider != NULL ? history->provider : "unknown");
    epg_json_put_text(&self->writer, "version", "unknown");
    epg_json_end(&self->writer);
    epg_json_object(&self->writer, "extra");
    epg_summary_run_json(state->reading, &self->writer, "evopolicygym");
    epg_json_end(&self->writer);
    epg_summary summary;
    epg_summary_of(state->reading, &summary);
    epg_json_object(&self->writer, "final_metrics");
    epg_json_object(&self->writer, "extra");
    if (summary.has_assessment) {
        epg_json_put_double(&self->writer, "assessment_score", summary.assessment);
    }
    epg_json_put_u64(&self->writer, "episodes_used", summary.episodes_used);
    epg_json_put_u64(&self->writer, "submissions", summary.submissions);
    if (summary.tokens_known) {
        epg_json_put_u64(&self->writer, "total_tokens", summary.tokens);
    }
    epg_json_end(&self->writer);
    if (summary.cost_known) {
        epg_json_put_computed(&self->writer, "total_cost_usd", summary.cost);
    }
    epg_json_end(&self->writer);
    epg_json_put_text(&self->writer, "schema_version", VERSION);
    EPG_AUTO_FREE char *session = epg_format("%s-%lld", history->initial_digest, (long long)history->first_unix_ns);
    epg_json_put_text(&self->writer, "session_id", session);
    epg_json_array(&self->writer, "steps");
    epg_json_object(&self->writer, NULL);
    epg_json_put_text(&self->writer, "message", task != NULL ? task : "");
    epg_json_put_text(&self->writer, "source", "user");
    epg_json_put_u64(&self->writer, "step_id", ++self->steps);
    put_time(&self->writer, history->first_unix_ns);
    epg_json_end(&self->writer);
    return EPG_OK;
}

static epg_code end(void *form, epg_export_state *state, epg_error *err)
{
    (void)err;
    atif *self = form;
    write_held(self, state);
    epg_json_end(&self->writer);
    epg_json_end(&self->writer);
    epg_json_finish(&self->writer);
    return EPG_OK;
}

epg_code epg_export_atif(epg_export_state *state, epg_error *err)
{
    static const epg_export_form form = {begin, agent, submission, end};
    EPG_CLEANUP(atif_free) atif self = {.calls = json_array(), .results = json_array()};
    return epg_export_walk(state, &form, &self, err);
}
