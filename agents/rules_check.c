/* The shape of an adapter's `stream` and `errors`. */
#include <string.h>

#include "agents/pattern.h"
#include "agents/rules.h"
#include "base/memory.h"

enum { DEPTH_MAX = 8 };

static epg_code wrong(const char *place, const char *why, epg_error *err)
{
    return epg_fail(err, EPG_ERR_INVALID, "%s: %s", place, why);
}

static bool one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static epg_code check_keys(const json_t *object, const char *place, const char *const *names, size_t count,
                           epg_error *err)
{
    if (!json_is_object(object)) {
        return wrong(place, "is not an object", err);
    }
    const char *key = NULL;
    json_t *value = NULL;
    json_t *walked = epg_json_unconst(object);
    json_object_foreach(walked, key, value)
    {
        if (!one_of(key, names, count)) {
            return epg_fail(err, EPG_ERR_INVALID, "%s: \"%s\" is not a key that is known here", place, key);
        }
    }
    return EPG_OK;
}
#define CHECK_KEYS(object, place, err, ...)                                                                            \
    check_keys(object, place, (const char *const[]){__VA_ARGS__}, EPG_COUNT(((const char *const[]){__VA_ARGS__})), err)

static epg_code check_pattern(const json_t *pattern, const char *place, epg_error *err)
{
    EPG_AUTO_PATTERN *compiled = NULL;
    if (!json_is_string(pattern)) {
        return wrong(place, "pattern is not a string", err);
    }
    if (epg_pattern_new(json_string_value(pattern), false, &compiled, err) != EPG_OK) {
        return epg_fail_within(err, "%s", place);
    }
    return EPG_OK;
}

static bool all_texts(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!json_is_string(json_array_get(list, i))) {
            return false;
        }
    }
    return json_is_array(list) && json_array_size(list) > 0;
}

static epg_code check_bool(const json_t *spec, const char *key, const char *place, epg_error *err)
{
    const json_t *value = json_object_get(spec, key);
    return value == NULL || json_is_boolean(value)
               ? EPG_OK
               : epg_fail(err, EPG_ERR_INVALID, "%s.%s: is not true or false", place, key);
}

/* A value: a path, or an object that says how to come by it. */
static epg_code check_value(const json_t *value, const char *place, epg_error *err)
{
    if (json_is_string(value)) {
        return EPG_OK;
    }
    EPG_TRY(CHECK_KEYS(value, place, err, "path", "literal", "first", "pattern", "json"));
    const json_t *path = json_object_get(value, "path");
    const json_t *first = json_object_get(value, "first");
    const json_t *pattern = json_object_get(value, "pattern");
    int sources = (path != NULL) + (first != NULL) + (json_object_get(value, "literal") != NULL);
    if (sources != 1 || (path != NULL && !json_is_string(path)) || (first != NULL && !all_texts(first))) {
        return wrong(place, "needs a path, or one of \"path\", \"literal\" and \"first\"", err);
    }
    EPG_TRY(check_bool(value, "json", place, err));
    return pattern != NULL ? check_pattern(pattern, place, err) : EPG_OK;
}

static epg_code check_values(const json_t *spec, const char *place, const char *const *names, size_t count,
                             epg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(spec, names[i]);
        EPG_AUTO_FREE char *inner = epg_format("%s.%s", place, names[i]);
        if (json_is_array(value)) {
            for (size_t k = 0; k < json_array_size(value); k++) {
                EPG_TRY(check_value(json_array_get(value, k), inner, err));
            }
        } else if (value != NULL) {
            EPG_TRY(check_value(value, inner, err));
        }
    }
    return EPG_OK;
}

static epg_code check_expected(const json_t *expected, const char *place, epg_error *err)
{
    if (!json_is_object(expected)) {
        return json_is_array(expected) ? wrong(place, "is a list; write {\"one_of\": [...]}", err) : EPG_OK;
    }
    EPG_TRY(CHECK_KEYS(expected, place, err, "present", "not", "one_of", "pattern"));
    if (json_object_size(expected) != 1) {
        return wrong(place, "needs exactly one of \"present\", \"not\", \"one_of\" and \"pattern\"", err);
    }
    const json_t *present = json_object_get(expected, "present");
    const json_t *choices = json_object_get(expected, "one_of");
    const json_t *pattern = json_object_get(expected, "pattern");
    if ((present != NULL && !json_is_boolean(present)) || (choices != NULL && !json_is_array(choices))) {
        return wrong(place, "\"present\" takes true or false, \"one_of\" a list", err);
    }
    return pattern != NULL ? check_pattern(pattern, place, err) : EPG_OK;
}

static epg_code check_match(const json_t *match, const char *place, epg_error *err)
{
    if (match != NULL && !json_is_object(match)) {
        return wrong(place, "is not an object", err);
    }
    const char *path = NULL;
    json_t *expected = NULL;
    json_t *walked = epg_json_unconst(match);
    json_object_foreach(walked, path, expected)
    {
        EPG_AUTO_FREE char *inner = epg_format("%s.%s", place, path);
        EPG_TRY(check_expected(expected, inner, err));
    }
    return EPG_OK;
}

/* What each kind of event takes: values first, then what is not a value. */
static const struct {
    const char *name;
    const char *values[8];
    const char *others[3];
    const char *needed;
} events[] = {
    {"session", {"id", "model"}, {NULL}, "id"},
    {"message", {"text"}, {"partial"}, "text"},
    {"thinking", {"text"}, {"partial"}, "text"},
    {"tool_call", {"id", "name", "input"}, {NULL}, "name"},
    {"tool_result", {"id", "output", "exit_code"}, {"failed"}, "output"},
    {"usage",
     {"key", "input", "cached_input", "cache_write", "output", "reasoning", "cost"},
     {"count", "complete"},
     "count"},
    {"notice", {"text"}, {NULL}, "text"},
    {"error", {"message", "status"}, {"final"}, "message"},
    {"result", {"text"}, {NULL}, NULL},
};

static epg_code check_event(const json_t *spec, size_t kind, const char *place, epg_error *err)
{
    const char *names[EPG_COUNT(events[0].values) + EPG_COUNT(events[0].others)];
    size_t values = 0;
    while (values < EPG_COUNT(events[kind].values) && events[kind].values[values] != NULL) {
        names[values] = events[kind].values[values];
        values++;
    }
    size_t count = values;
    for (size_t i = 0; i < EPG_COUNT(events[kind].others) && events[kind].others[i] != NULL; i++) {
        names[count++] = events[kind].others[i];
    }
    EPG_TRY(check_keys(spec, place, names, count, err));
    EPG_TRY(check_values(spec, place, names, values, err));
    if (events[kind].needed != NULL && json_object_get(spec, events[kind].needed) == NULL) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: \"%s\" is missing", place, events[kind].needed);
    }
    EPG_TRY(check_bool(spec, "partial", place, err));
    EPG_TRY(check_bool(spec, "final", place, err));
    EPG_TRY(check_bool(spec, "complete", place, err));
    EPG_TRY(check_match(json_object_get(spec, "failed"), place, err));
    const json_t *way = json_object_get(spec, "count");
    if (way != NULL && (!json_is_string(way) ||
                        (strcmp(json_string_value(way), "total") != 0 && strcmp(json_string_value(way), "add") != 0))) {
        return wrong(place, "\"count\" must be \"total\" or \"add\"", err);
    }
    return EPG_OK;
}

static epg_code check_rules(const json_t *rules, const char *place, unsigned depth, epg_error *err);

static epg_code check_rule(const json_t *rule, const char *place, unsigned depth, epg_error *err)
{
    EPG_TRY(CHECK_KEYS(rule, place, err, "match", "each", "rules", "ignore", "session", "message", "thinking",
                       "tool_call", "tool_result", "usage", "notice", "error", "result"));
    EPG_TRY(check_match(json_object_get(rule, "match"), place, err));
    EPG_TRY(check_bool(rule, "ignore", place, err));
    const json_t *each = json_object_get(rule, "each");
    const json_t *inner = json_object_get(rule, "rules");
    if ((each == NULL) != (inner == NULL) || (each != NULL && !json_is_string(each))) {
        return wrong(place, "\"each\" (a path) and \"rules\" go together", err);
    }
    if (inner != NULL) {
        EPG_TRY(check_rules(inner, place, depth + 1, err));
    }
    for (size_t i = 0; i < EPG_COUNT(events); i++) {
        const json_t *spec = json_object_get(rule, events[i].name);
        EPG_AUTO_FREE char *event_place = epg_format("%s.%s", place, events[i].name);
        if (spec != NULL) {
            EPG_TRY(check_event(spec, i, event_place, err));
        }
    }
    return EPG_OK;
}

static epg_code check_rules(const json_t *rules, const char *place, unsigned depth, epg_error *err)
{
    if (!json_is_array(rules) || depth > DEPTH_MAX) {
        return wrong(place, "rules are not a list, or too deep", err);
    }
    for (size_t i = 0; i < json_array_size(rules); i++) {
        EPG_AUTO_FREE char *inner = epg_format("%s[%zu]", place, i);
        EPG_TRY(check_rule(json_array_get(rules, i), inner, depth, err));
    }
    return EPG_OK;
}

static epg_code check_stderr(const json_t *list, epg_error *err)
{
    if (list != NULL && !json_is_array(list)) {
        return wrong("stream.stderr", "is not a list", err);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        EPG_TRY(CHECK_KEYS(one, "stream.stderr", err, "pattern", "final"));
        EPG_TRY(check_pattern(json_object_get(one, "pattern"), "stream.stderr", err));
        EPG_TRY(check_bool(one, "final", "stream.stderr", err));
    }
    return EPG_OK;
}

static epg_code check_files(const json_t *list, epg_error *err)
{
    if (list != NULL && !json_is_array(list)) {
        return wrong("stream.files", "is not a list", err);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        EPG_TRY(CHECK_KEYS(one, "stream.files", err, "glob", "rules"));
        const char *glob = json_string_value(json_object_get(one, "glob"));
        if (glob == NULL ||
            !epg_pattern_once("(?!.*(?:^|/)\\.\\.?(?:/|$))[^/]+(?:/[^/]+)*", true, epg_span_text(glob))) {
            return wrong("stream.files", "\"glob\" is not a relative path", err);
        }
        EPG_TRY(check_rules(json_object_get(one, "rules"), "stream.files.rules", 0, err));
    }
    return EPG_OK;
}

static epg_code check_errors(const json_t *errors, epg_error *err)
{
    for (size_t i = 0; i < json_array_size(errors); i++) {
        const json_t *one = json_array_get(errors, i);
        EPG_AUTO_FREE char *place = epg_format("errors[%zu]", i);
        EPG_TRY(CHECK_KEYS(one, place, err, "pattern", "status", "fault"));
        const json_t *pattern = json_object_get(one, "pattern");
        const json_t *status = json_object_get(one, "status");
        const char *fault = json_string_value(json_object_get(one, "fault"));
        epg_agent_fault ignored;
        if (pattern == NULL && status == NULL) {
            return wrong(place, "needs \"pattern\" or \"status\"", err);
        }
        if (pattern != NULL) {
            EPG_TRY(check_pattern(pattern, place, err));
        }
        for (size_t k = 0; k < json_array_size(status); k++) {
            if (!json_is_integer(json_array_get(status, k))) {
                return wrong(place, "\"status\" is not a list of integers", err);
            }
        }
        if (fault == NULL || !epg_agent_fault_parse(fault, &ignored)) {
            return wrong(place,
                         "\"fault\" must be login, quota, model, root, version, rate_limit, overload, network or other",
                         err);
        }
    }
    return EPG_OK;
}

epg_code epg_rules_check(const json_t *stream, const json_t *errors, epg_error *err)
{
    EPG_TRY(check_errors(errors, err));
    if (stream == NULL) {
        return EPG_OK;
    }
    EPG_TRY(CHECK_KEYS(stream, "stream", err, "format", "rules", "stderr", "files"));
    const char *format = json_string_value(json_object_get(stream, "format"));
    bool lines = format != NULL && strcmp(format, "json-lines") == 0;
    if (!lines && (format == NULL || strcmp(format, "text") != 0)) {
        return wrong("stream.format", "must be \"json-lines\" or \"text\"", err);
    }
    const json_t *rules = json_object_get(stream, "rules");
    if (lines || rules != NULL) {
        EPG_TRY(check_rules(rules, "stream.rules", 0, err));
    }
    EPG_TRY(check_stderr(json_object_get(stream, "stderr"), err));
    return check_files(json_object_get(stream, "files"), err);
}
