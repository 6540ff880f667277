/* Episodes to be drawn, from the trace.jsonl that the built-in Benchmarks leave with their Feedback: a line a step
 * with its observation, Action and reward, a line for what was cut and one for the end. */
#include <string.h>

#include "base/text.h"
#include "runs/report_parts.h"
#include "system/files.h"

enum { TRACE_MAX = 16 * 1024 * 1024, EPISODES_SHOWN = 3 };

/* Without another's bytes: the artifact that the Feedback names, checked against its hash. */
static epg_code read_trace(const epg_reading *reading, uint64_t number, const json_t *feedback, epg_buffer *out)
{
    const json_t *artifacts = json_object_get(feedback, "artifacts");
    for (size_t i = 0; i < json_array_size(artifacts); i++) {
        const json_t *one = json_array_get(artifacts, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *sha256 = json_string_value(json_object_get(one, "sha256"));
        if (name == NULL || sha256 == NULL || strcmp(name, "trace.jsonl") != 0) {
            continue;
        }
        char id[EPG_SUBMISSION_ID_TEXT];
        uint8_t hash[EPG_SHA256_SIZE];
        char hex[EPG_SHA256_HEX];
        EPG_AUTO_CLOSE int directory = -1;
        epg_reading_name(number, id);
        EPG_AUTO_FREE char *path = epg_format("submissions/%s/artifacts", id);
        EPG_TRY(epg_dir_open_beneath(reading->run, path, &directory, NULL));
        EPG_TRY(epg_file_read(directory, "trace.jsonl", TRACE_MAX, out, NULL));
        epg_sha256_once(out->data, out->size, hash);
        epg_hex(hash, sizeof hash, hex);
        return strcmp(hex, sha256) == 0 ? EPG_OK : EPG_ERR_INVALID;
    }
    return EPG_ERR_NOT_FOUND;
}

static json_t *rounded(const json_t *value)
{
    if (json_is_real(value)) {
        return json_real(epg_report_round(json_real_value(value)));
    }
    if (json_is_array(value)) {
        json_t *out = json_array();
        for (size_t i = 0; i < json_array_size(value); i++) {
            json_array_append_new(out, rounded(json_array_get(value, i)));
        }
        return out;
    }
    if (json_is_object(value)) {
        json_t *out = json_object();
        const char *key = NULL;
        json_t *item = NULL;
        json_t *walked = (json_t *)(uintptr_t)value;
        json_object_foreach(walked, key, item)
        {
            json_object_set_new(out, key, rounded(item));
        }
        return out;
    }
    return json_deep_copy(value);
}

typedef struct replay {
    json_t *episodes; /* what is drawn */
    json_t *fields;   /* keys of the observations that are maps; NULL: none was seen */
    json_t *current;  /* borrowed: the Episode that is read */
    int64_t number;   /* of it */
    size_t room;
    bool full;
} replay;

static void begin_episode(replay *self, int64_t number)
{
    if (json_array_size(self->episodes) == EPISODES_SHOWN) {
        self->full = true;
        return;
    }
    self->number = number;
    self->current = json_pack("{s:I, s:[]}", "episode", (json_int_t)number, "steps");
    json_array_append_new(self->episodes, self->current);
}

/* An observation that is a map of the same keys as the first one is told by its values alone. */
static json_t *observation_of(replay *self, const json_t *line)
{
    json_t *whole = rounded(json_object_get(line, "observation"));
    if (!json_is_object(whole)) {
        return whole;
    }
    const char *key = NULL;
    json_t *item = NULL;
    if (self->fields == NULL) {
        self->fields = json_array();
        json_object_foreach(whole, key, item)
        {
            json_array_append_new(self->fields, json_string(key));
        }
    }
    json_t *values = json_array();
    for (size_t i = 0; i < json_array_size(self->fields); i++) {
        json_array_append(values, json_object_get(whole, json_string_value(json_array_get(self->fields, i))));
    }
    bool same = json_array_size(values) == json_object_size(whole);
    json_decref(same ? whole : values);
    return same ? values : whole;
}

static bool take_room(replay *self, const json_t *value)
{
    EPG_AUTO_FREE char *text = json_dumps(value, JSON_COMPACT);
    size_t cost = text != NULL ? epg_report_cost(epg_span_text(text)) + 1 : self->room + 1;
    self->full = self->full || cost > self->room;
    self->room -= self->full ? 0 : cost;
    return !self->full;
}

static void take_step(replay *self, const json_t *line)
{
    EPG_AUTO_JSON *step = json_array();
    json_array_append(step, json_object_get(line, "step"));
    json_array_append_new(step, rounded(json_object_get(line, "action")));
    json_array_append(step, json_object_get(line, "reward"));
    json_array_append_new(step, observation_of(self, line));
    if (take_room(self, step)) {
        json_array_append(json_object_get(self->current, "steps"), step);
    }
}

static void take_end(replay *self, const json_t *line)
{
    EPG_AUTO_JSON *end = rounded(line);
    if (json_object_get(end, "observation") != NULL) {
        json_object_set_new(end, "observation", observation_of(self, line));
    }
    if (take_room(self, end)) {
        json_object_set(self->current, "end", end);
    }
}

static void take_line(replay *self, const json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));
    const json_t *episode = json_object_get(line, "episode");
    if (type == NULL || !json_is_integer(episode)) {
        return; /* "about" */
    }
    if (self->current == NULL || json_integer_value(episode) != self->number) {
        begin_episode(self, json_integer_value(episode));
    }
    if (self->full) {
        return;
    }
    if (strcmp(type, "step") == 0) {
        take_step(self, line);
    } else if (strcmp(type, "cut") == 0) {
        json_object_set(self->current, "left", json_object_get(line, "steps_left_out"));
    } else {
        take_end(self, line);
    }
}

/* Drops the last Episode when it has no end: there was no room for it. */
static void finish(replay *self)
{
    size_t count = json_array_size(self->episodes);
    if (count > 0 && json_object_get(json_array_get(self->episodes, count - 1), "end") == NULL) {
        json_array_remove(self->episodes, count - 1);
    }
}

json_t *epg_report_replay(const epg_reading *reading, uint64_t number, const json_t *feedback, size_t room)
{
    EPG_AUTO_BUFFER trace = {0};
    if (read_trace(reading, number, feedback, &trace) != EPG_OK) {
        return NULL;
    }
    replay self = {.episodes = json_array(), .number = -1, .room = room};
    size_t from = 0;
    while (from < trace.size && !self.full) {
        const uint8_t *end = memchr(trace.data + from, '\n', trace.size - from);
        size_t size = end != NULL ? (size_t)(end - trace.data) - from : trace.size - from;
        EPG_AUTO_JSON *line = NULL;
        if (epg_json_parse(epg_span_of(trace.data + from, size), "trace.jsonl", &line, NULL) == EPG_OK) {
            take_line(&self, line);
        }
        from += size + 1;
    }
    finish(&self);
    return json_pack("{s:o, s:o*}", "episodes", self.episodes, "fields", self.fields);
}
