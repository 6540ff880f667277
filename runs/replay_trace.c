#include "runs/replay_trace.h"

#include <string.h>

#include "base/json.h"
#include "system/files.h"

#define TRACE "trace.jsonl"
enum { VALUE_SHOWN = 2000 };

static epg_span replayed_trace(const epg_feedback *feedback)
{
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        if (strcmp(feedback->artifacts[i].name, TRACE) == 0) {
            return epg_buffer_span(&feedback->artifacts[i].content);
        }
    }
    return epg_span_of(NULL, 0);
}

static epg_code recorded_trace(const epg_reading *reading, uint64_t number, epg_buffer *out)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_CLOSE int directory = -1;
    epg_reading_name(number, id);
    EPG_AUTO_FREE char *path = epg_format("submissions/%s/artifacts", id);
    EPG_TRY(epg_dir_open_beneath(reading->run, path, &directory, NULL));
    return epg_file_read(directory, TRACE, EPG_ARTIFACT_BYTES_MAX, out, NULL);
}

/* The next line of the Episode at `place`; NULL: there is none. */
static json_t *next_line(epg_span *rest, size_t place)
{
    while (rest->size > 0) {
        const uint8_t *end = memchr(rest->data, '\n', rest->size);
        size_t size = end != NULL ? (size_t)(end - rest->data) : rest->size;
        json_t *line = NULL;
        epg_code code = epg_json_parse_lenient(epg_span_of(rest->data, size), TRACE, &line, NULL);
        size_t taken = size < rest->size ? size + 1 : size;
        *rest = epg_span_of(rest->data + taken, rest->size - taken);
        const json_t *episode = code == EPG_OK ? json_object_get(line, "episode") : NULL;
        if (json_is_integer(episode) && (uint64_t)json_integer_value(episode) == place) {
            return line;
        }
        json_decref(line);
    }
    return NULL;
}

static char *shown(const json_t *value)
{
    EPG_AUTO_FREE char *text =
        value != NULL ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
    return text != NULL ? epg_strndup(text, strnlen(text, VALUE_SHOWN)) : epg_strdup("nothing");
}

/* In the order in which they happen: what the Policy saw, what it chose, what that earned. */
static bool differ(const json_t *before, const json_t *now, epg_replay_result *out)
{
    static const char *const parts[] = {"observation", "action",     "reward",    "metrics",
                                        "steps",       "terminated", "truncated", "failure"};
    for (size_t i = 0; i < EPG_COUNT(parts); i++) {
        const json_t *a = json_object_get(before, parts[i]);
        const json_t *b = json_object_get(now, parts[i]);
        if ((a == NULL) != (b == NULL) || (a != NULL && !json_equal(a, b))) {
            const json_t *step = json_object_get(before, "step");
            step = step != NULL ? step : json_object_get(now, "step");
            step = step != NULL ? step : json_object_get(before, "steps");
            out->step_known = true;
            out->step = json_is_integer(step) ? (uint64_t)json_integer_value(step) : 0;
            out->what = epg_strdup(parts[i]);
            out->recorded_value = shown(a);
            out->value = shown(b);
            return true;
        }
    }
    return false;
}

void epg_replay_lines(const char *recorded, const char *replayed, epg_replay_result *out)
{
    EPG_AUTO_JSON *a = NULL;
    EPG_AUTO_JSON *b = NULL;
    if (epg_json_parse_lenient(epg_span_text(recorded), "a trace", &a, NULL) == EPG_OK &&
        epg_json_parse_lenient(epg_span_text(replayed), "a trace", &b, NULL) == EPG_OK) {
        (void)differ(a, b, out);
    }
}

void epg_replay_trace(const epg_reading *reading, uint64_t number, const epg_feedback *feedback, size_t place,
                      epg_replay_result *out)
{
    EPG_AUTO_BUFFER recorded = {0};
    if (recorded_trace(reading, number, &recorded) != EPG_OK) {
        return;
    }
    epg_span before = epg_buffer_span(&recorded);
    epg_span now = replayed_trace(feedback);
    for (;;) {
        EPG_AUTO_JSON *a = next_line(&before, place);
        EPG_AUTO_JSON *b = next_line(&now, place);
        if (a == NULL || b == NULL || differ(a, b, out)) {
            return;
        }
        if (json_object_get(a, "steps_left_out") != NULL || json_object_get(b, "steps_left_out") != NULL) {
            return; /* behind the gap the steps that are kept need not be the first that differ */
        }
    }
}
