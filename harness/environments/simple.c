#include "environments/simple.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "benchmark/defaults.h"
#include "benchmark/public_json.h"

typedef struct simple_benchmark {
    epg_benchmark base;
    const epg_simple_kind *kind;
    void *parameters;
    epg_spec spec;
} simple_benchmark;

typedef enum phase { FRESH, RUNNING, ENDED } phase;

typedef struct simple_environment {
    epg_environment base;
    const epg_simple_kind *kind;
    const void *parameters;
    uint64_t limit;
    uint64_t steps;
    uint64_t seed;
    phase phase;
    epg_random random;
    alignas(max_align_t) unsigned char state[];
} simple_environment;

/* --- Plans --- */

static epg_code plan(epg_benchmark *benchmark, const char *split, uint64_t seed, uint64_t count, epg_episode_spec *out,
                     epg_error *err)
{
    const simple_benchmark *self = (const simple_benchmark *)benchmark;
    return epg_default_episodes(self->kind->name, split, seed, count, out, err);
}

/* --- Environments --- */

static epg_code open_environment(epg_benchmark *benchmark, const epg_episode_spec *episode, epg_environment **out,
                                 epg_error *err)
{
    (void)err;
    const simple_benchmark *self = (const simple_benchmark *)benchmark;
    simple_environment *environment = epg_alloc(sizeof *environment + self->kind->state_size);
    environment->base.benchmark = benchmark;
    environment->kind = self->kind;
    environment->parameters = self->parameters;
    environment->limit = self->spec.max_episode_steps;
    environment->seed = episode->environment_seed;
    *out = &environment->base;
    return EPG_OK;
}

static epg_code reset(epg_environment *environment, epg_buffer *observation, epg_error *err)
{
    (void)err;
    simple_environment *self = (simple_environment *)environment;
    epg_random_seed(&self->random, self->seed);
    memset(self->state, 0, self->kind->state_size);
    self->kind->reset(self->state, self->parameters, &self->random);
    self->steps = 0;
    self->phase = RUNNING;
    epg_buffer_clear(observation);
    self->kind->observe(self->state, self->parameters, observation);
    return EPG_OK;
}

static const char *kind_text(char kind)
{
    switch (kind) {
    case 'N':
        return "null";
    case 'B':
        return "a bool";
    case 'I':
        return "an int";
    case 'F':
        return "a float";
    case 'S':
        return "a string";
    case 'Y':
        return "bytes";
    case 'T':
        return "a tensor";
    case 'L':
        return "a list";
    case 'U':
        return "a tuple";
    default:
        return "a map";
    }
}

/* The Action that was sent, for its sender: a small value itself, and of what kind it is where another was asked for.
 */
static char *action_text(epg_span action, char wanted)
{
    enum { SHOWN = 40 };
    char kind = epg_value_kind(action);
    if (kind != 'I' && kind != 'F' && kind != 'S') {
        return epg_strdup(kind_text(kind));
    }
    EPG_AUTO_BUFFER json = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &json, 0);
    epg_value_to_json(action, &writer, NULL);
    epg_json_finish(&writer);
    EPG_AUTO_FREE char *shown = epg_printable(epg_buffer_cstr(&json), json.size < SHOWN ? json.size : SHOWN);
    const char *cut = json.size > SHOWN ? "..." : "";
    return kind == wanted ? epg_format("%s%s", shown, cut) : epg_format("%s%s (%s)", shown, cut, kind_text(kind));
}

enum { ONE_DIGIT = 10 }; /* the size of a canonical int of one digit: tag, length, digit */

/* Exactly what the action space says: an int is no float, a bool is no int, nothing is clipped. */
static bool read_action(const epg_simple_kind *kind, epg_span bytes, epg_action *out, char **reason)
{
    if (kind->action_count > 0) {
        int64_t number = -1;
        unsigned digit = bytes.size == ONE_DIGIT ? (unsigned)bytes.data[ONE_DIGIT - 1] - '0' : kind->action_count;
        if (digit < kind->action_count && bytes.data[0] == 'I') {
            out->index = digit; /* nearly every Action: no parsing */
            return true;
        }
        if (epg_value_get_i64(bytes, &number) && number >= 0 && number < (int64_t)kind->action_count) {
            out->index = (unsigned)number;
            return true;
        }
        EPG_AUTO_FREE char *sent = action_text(bytes, 'I');
        *reason = epg_format("the Action must be an int from 0 to %u, not %s", kind->action_count - 1, sent);
        return false;
    }
    double value = 0.0;
    if (epg_value_get_float(bytes, &value) && value >= kind->action_low && value <= kind->action_high) {
        out->value = value;
        return true;
    }
    EPG_AUTO_FREE char *sent = action_text(bytes, 'F');
    *reason = epg_format("the Action must be a float from %g to %g, not %s", kind->action_low, kind->action_high, sent);
    return false;
}

static epg_code step(epg_environment *environment, epg_span action, epg_step *out, epg_error *err)
{
    simple_environment *self = (simple_environment *)environment;
    const epg_simple_kind *kind = self->kind;
    if (self->phase != RUNNING) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "step was called %s",
                        self->phase == FRESH ? "before reset" : "after the Episode's end");
    }
    epg_step_clear(out);
    epg_action checked = {0};
    if (!read_action(kind, action, &checked, &out->invalid_reason)) {
        out->invalid_action = true;
        return EPG_OK;
    }
    epg_outcome outcome = {0};
    kind->step(self->state, self->parameters, &self->random, checked, &outcome);
    self->steps++;
    kind->observe(self->state, self->parameters, &out->observation);
    out->reward = outcome.reward;
    out->terminated = outcome.terminated;
    out->truncated = self->steps >= self->limit;
    if (out->terminated || out->truncated) {
        self->phase = ENDED;
        epg_value_put_text(&out->metrics, out->terminated ? outcome.end : "time_limit");
    } else {
        epg_value_put_null(&out->metrics);
    }
    return EPG_OK;
}

static epg_code close_environment(epg_environment *environment, epg_error *err)
{
    (void)err;
    free(environment);
    return EPG_OK;
}

/* --- The Benchmark --- */

static epg_code get_spec(epg_benchmark *benchmark, epg_spec *out, epg_error *err)
{
    (void)err;
    const simple_benchmark *self = (const simple_benchmark *)benchmark;
    epg_spec_copy(&self->spec, out);
    return EPG_OK;
}

static epg_code make_feedback(epg_benchmark *benchmark, const epg_records *records, epg_feedback *out, epg_error *err)
{
    const simple_benchmark *self = (const simple_benchmark *)benchmark;
    const epg_mean_return rule = {.metric = self->kind->primary_metric,
                                  .failed_return = self->kind->worst_return(self->parameters),
                                  .action_count = self->kind->action_count};
    return epg_mean_return_feedback(&rule, records, out, err);
}

static void destroy(epg_benchmark *benchmark)
{
    simple_benchmark *self = (simple_benchmark *)benchmark;
    epg_spec_free(&self->spec);
    free(self->parameters);
    free(self);
}

static const epg_benchmark_vtable simple_vtable = {
    .spec = get_spec,
    .episodes = plan,
    .open = open_environment,
    .reset = reset,
    .step = step,
    .close = close_environment,
    .feedback = make_feedback,
    .destroy = destroy,
};

static epg_code prepare(simple_benchmark *self, const char *parameters, epg_error *err)
{
    const epg_simple_kind *kind = self->kind;
    self->parameters = epg_alloc(kind->parameters_size);
    if (kind->configure == NULL) {
        EPG_TRY(epg_parameters_parse(kind->name, parameters, NULL, 0, err));
    } else {
        EPG_TRY(kind->configure(self->parameters, parameters, err));
    }
    self->spec.id = epg_strdup(kind->id);
    self->spec.primary_metric = epg_strdup(kind->primary_metric);
    self->spec.direction = EPG_MAXIMIZE;
    kind->describe(self->parameters, &self->spec);
    if (self->spec.metadata.size == 0) {
        epg_value_put_map(&self->spec.metadata, 0);
    }
    return epg_spec_check(&self->spec, err);
}

epg_code epg_simple_open(const epg_simple_kind *kind, const char *parameters, epg_benchmark **out, epg_error *err)
{
    simple_benchmark *self = epg_alloc(sizeof *self);
    self->base.vtable = &simple_vtable;
    self->kind = kind;
    epg_code code = prepare(self, parameters, err);
    if (code != EPG_OK) {
        destroy(&self->base);
        return code;
    }
    *out = &self->base;
    return EPG_OK;
}

/* --- Values --- */

void epg_simple_put_float32s(epg_buffer *out, const double *values, size_t count)
{
    uint8_t *at = epg_buffer_reserve(out, 9 + 9 * count);
    if (at == NULL) {
        return; /* over the buffer's bound, which it marks */
    }
    at[0] = 'L';
    epg_write_be64(at + 1, count);
    for (size_t i = 0; i < count; i++) {
        double value = epg_float32(values[i]);
        uint64_t bits = 0;
        memcpy(&bits, &value, sizeof bits);
        at[9 + 9 * i] = 'F';
        epg_write_be64(at + 10 + 9 * i, bits);
    }
    out->size += 9 + 9 * count;
    out->data[out->size] = '\0';
}

void epg_simple_literal(epg_buffer *out, const char *json)
{
    EPG_AUTO_FREE char *text = epg_strdup(json);
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\'') {
            *c = '"';
        }
    }
    EPG_AUTO_JSON *value = NULL;
    epg_error err = {0};
    if (epg_json_parse(epg_span_text(text), "a spec's literal", &value, &err) != EPG_OK ||
        epg_value_from_public_json(value, out, &err) != EPG_OK) {
        (void)fprintf(stderr, "%s\n%s\n", err.text, text);
        abort();
    }
}

void epg_simple_literal_number(epg_buffer *text, const char *key, double value)
{
    char number[EPG_DOUBLE_TEXT];
    (void)epg_double_text(value, number);
    (void)epg_buffer_format(text, ", '%s': %s", key, number);
}
