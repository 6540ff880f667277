#include "benchmark/library_host.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "benchmark/public_json.h"

static epg_span span_of(evo_value value)
{
    return (epg_span){value.data, value.size};
}

/* --- Writing. What is wrong here (a NaN, no UTF-8) is found when the value is checked. --- */

static void put_null(evo_out *out)
{
    epg_value_put_null(out->buffer);
}

static void put_boolean(evo_out *out, bool value)
{
    epg_value_put_bool(out->buffer, value);
}

static void put_integer(evo_out *out, int64_t value)
{
    epg_value_put_i64(out->buffer, value);
}

static void put_number(evo_out *out, double value)
{
    uint8_t bytes[9] = {'F'};
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits); /* not epg_value_put_float, which demands a finite one of us */
    epg_write_be64(bytes + 1, bits);
    (void)epg_buffer_append(out->buffer, bytes, sizeof bytes);
}

static void put_text(evo_out *out, const char *utf8)
{
    epg_value_put_string(out->buffer, epg_span_text(utf8));
}

static void put_bytes(evo_out *out, const void *data, size_t size)
{
    epg_value_put_bytes(out->buffer, epg_span_of(data, size));
}

static void put_list(evo_out *out, uint64_t count)
{
    epg_value_put_list(out->buffer, count);
}

static void put_tuple(evo_out *out, uint64_t count)
{
    epg_value_put_tuple(out->buffer, count);
}

static void put_map(evo_out *out, uint64_t count)
{
    epg_value_put_map(out->buffer, count);
}

static void put_key(evo_out *out, const char *utf8)
{
    epg_value_put_key_span(out->buffer, epg_span_text(utf8));
}

static void put_tensor(evo_out *out, const char *dtype, const uint64_t *shape, size_t rank, const void *data,
                       size_t size)
{
    epg_value_put_tensor(out->buffer, dtype, shape, rank, epg_span_of(data, size));
}

static void put_copy(evo_out *out, evo_value value)
{
    (void)epg_buffer_append_span(out->buffer, span_of(value));
}

static bool put_json(evo_out *out, const char *text)
{
    EPG_AUTO_FREE char *copy = epg_strdup(text);
    for (char *c = copy; *c != '\0'; c++) {
        if (*c == '\'') {
            *c = '"';
        }
    }
    EPG_AUTO_JSON *value = NULL;
    EPG_AUTO_BUFFER made = {0};
    if (epg_json_parse(epg_span_text(copy), "a literal", &value, NULL) != EPG_OK ||
        epg_value_from_public_json(value, &made, NULL) != EPG_OK) {
        return false;
    }
    return epg_buffer_append_span(out->buffer, epg_buffer_span(&made));
}

/* --- Reading --- */

static char get_kind(evo_value value)
{
    return epg_value_kind(span_of(value));
}

static bool get_boolean(evo_value value, bool *out)
{
    return epg_value_get_bool(span_of(value), out);
}

static bool get_integer(evo_value value, int64_t *out)
{
    return epg_value_get_i64(span_of(value), out);
}

static bool get_number(evo_value value, double *out)
{
    return epg_value_get_float(span_of(value), out);
}

static bool get_text(evo_value value, evo_value *out)
{
    epg_span text;
    bool is = epg_value_get_string(span_of(value), &text);
    *out = is ? epg_library_value(text) : *out;
    return is;
}

static bool get_bytes(evo_value value, evo_value *out)
{
    epg_span bytes;
    bool is = epg_value_get_bytes(span_of(value), &bytes);
    *out = is ? epg_library_value(bytes) : *out;
    return is;
}

static bool enter(evo_value value, evo_cursor *out)
{
    epg_value_cursor cursor;
    if (!epg_value_enter(span_of(value), &cursor)) {
        return false;
    }
    *out = (evo_cursor){epg_library_value(cursor.rest), cursor.left, cursor.is_map};
    return true;
}

static bool next(evo_cursor *at, evo_value *key, evo_value *value)
{
    epg_value_cursor cursor = {.rest = span_of(at->rest), .left = at->left, .is_map = at->is_map};
    epg_span name = {0};
    epg_span item = {0};
    if (!epg_value_next(&cursor, &name, &item)) {
        return false;
    }
    *at = (evo_cursor){epg_library_value(cursor.rest), cursor.left, cursor.is_map};
    *value = epg_library_value(item);
    if (key != NULL) {
        *key = epg_library_value(name);
    }
    return true;
}

static bool lookup(evo_value map, const char *key, evo_value *value)
{
    epg_span found;
    bool is = epg_value_lookup(span_of(map), key, &found);
    *value = is ? epg_library_value(found) : *value;
    return is;
}

/* --- Feedback --- */

static uint64_t record_count(evo_records *records)
{
    return records->records->count;
}

static bool next_record(evo_records *self, evo_record *out)
{
    epg_record_head head;
    bool have = false;
    if (self->code == EPG_OK) {
        self->code = self->records->next_record(self->records->context, &head, &have, &self->err);
    }
    if (self->code != EPG_OK || !have) {
        return false;
    }
    *out = (evo_record){
        .environment_seed = head.environment_seed,
        .scenario = epg_library_value(head.scenario),
        .policy_seed = head.policy_seed,
        .has_observation = head.has_observation,
        .initial_observation = epg_library_value(head.initial_observation),
        .failure = epg_policy_failure_name(head.failure),
        .steps = head.steps,
        .reward = head.reward,
    };
    return true;
}

static bool next_transition(evo_records *self, evo_transition *out)
{
    epg_transition step;
    bool have = false;
    if (self->code == EPG_OK) {
        self->code = self->records->next_step(self->records->context, &step, &have, &self->err);
    }
    if (self->code != EPG_OK || !have) {
        return false;
    }
    *out = (evo_transition){
        .action = epg_library_value(step.action),
        .observation = epg_library_value(step.observation),
        .metrics = epg_library_value(step.metrics),
        .reward = step.reward,
        .terminated = step.terminated,
        .truncated = step.truncated,
    };
    return true;
}

static void put_score(evo_feedback *self, double score)
{
    self->feedback->score = score;
    self->scored = true;
}

static evo_out *content(evo_feedback *self)
{
    return &self->content;
}

static void artifact(evo_feedback *self, const char *name, const char *media_type, bool bulk, const void *data,
                     size_t size)
{
    epg_artifact *made = epg_feedback_add(self->feedback, name, media_type, bulk);
    (void)epg_buffer_append(&made->content, data, size);
}

static int fail(evo_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(evo_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return -1;
}

const evo_host epg_library_host = {
    .abi = EVOPOLICYGYM_BENCHMARK_ABI,
    .null = put_null,
    .boolean = put_boolean,
    .integer = put_integer,
    .number = put_number,
    .text = put_text,
    .bytes = put_bytes,
    .list = put_list,
    .tuple = put_tuple,
    .map = put_map,
    .key = put_key,
    .tensor = put_tensor,
    .copy = put_copy,
    .json = put_json,
    .kind = get_kind,
    .get_boolean = get_boolean,
    .get_integer = get_integer,
    .get_number = get_number,
    .get_text = get_text,
    .get_bytes = get_bytes,
    .enter = enter,
    .next = next,
    .lookup = lookup,
    .record_count = record_count,
    .next_record = next_record,
    .next_transition = next_transition,
    .score = put_score,
    .content = content,
    .artifact = artifact,
    .fail = fail,
};
