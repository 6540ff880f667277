#include "agents/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agents/pattern.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

enum { PATTERNS_MAX = 256 };

struct epg_patterns {
    struct {
        char *text;
        epg_pattern *pattern;
    } items[PATTERNS_MAX];
    size_t count;
};

epg_patterns *epg_patterns_new(void)
{
    return epg_alloc(sizeof(epg_patterns));
}

void epg_patterns_free(epg_patterns *patterns)
{
    for (size_t i = 0; patterns != NULL && i < patterns->count; i++) {
        free(patterns->items[i].text);
        epg_pattern_free(patterns->items[i].pattern);
    }
    free(patterns);
}

const epg_pattern *epg_patterns_get(epg_patterns *patterns, const char *text)
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (strcmp(patterns->items[i].text, text) == 0) {
            return patterns->items[i].pattern;
        }
    }
    epg_pattern *made = NULL;
    if (patterns->count == PATTERNS_MAX || epg_pattern_new(text, false, &made, NULL) != EPG_OK) {
        return NULL;
    }
    patterns->items[patterns->count].text = epg_strdup(text);
    patterns->items[patterns->count].pattern = made;
    patterns->count++;
    return made;
}

/* Where a rule stands: the whole document, and the item that paths start from. */
typedef struct place {
    const json_t *document;
    const json_t *item;
    epg_patterns *patterns;
    epg_event_sink *sink;
    void *context;
} place;

static const json_t *step(const json_t *value, const char *name)
{
    uint64_t index = 0;
    if (json_is_array(value)) {
        return epg_parse_u64(name, strlen(name), SIZE_MAX, &index) ? json_array_get(value, (size_t)index) : NULL;
    }
    return json_object_get(value, name);
}

static const json_t *at_path(const place *at, const char *path)
{
    const json_t *value = at->item;
    if (strncmp(path, "$.", 2) == 0) {
        value = at->document;
        path += 2;
    }
    EPG_AUTO_FREE char *copy = epg_strdup(path);
    char *rest = copy;
    for (char *name = strsep(&rest, "."); name != NULL && value != NULL; name = strsep(&rest, ".")) {
        value = step(value, name);
    }
    return value;
}

static bool value_matches(const place *at, const json_t *value, const json_t *expected)
{
    if (!json_is_object(expected)) {
        return value != NULL && json_equal(value, expected);
    }
    const json_t *part = json_object_get(expected, "present");
    if (part != NULL) {
        return (value != NULL && !json_is_null(value)) == json_is_true(part);
    }
    part = json_object_get(expected, "not");
    if (part != NULL) {
        return value == NULL || !json_equal(value, part);
    }
    part = json_object_get(expected, "one_of");
    for (size_t i = 0; i < json_array_size(part); i++) {
        if (value != NULL && json_equal(value, json_array_get(part, i))) {
            return true;
        }
    }
    part = json_object_get(expected, "pattern");
    const epg_pattern *pattern = part != NULL ? epg_patterns_get(at->patterns, json_string_value(part)) : NULL;
    return pattern != NULL && json_is_string(value) &&
           epg_pattern_matches(pattern, epg_span_of(json_string_value(value), json_string_length(value)));
}

static bool matches(const place *at, const json_t *conditions)
{
    const char *path = NULL;
    json_t *expected = NULL;
    json_t *walked = epg_json_unconst(conditions);
    json_object_foreach(walked, path, expected)
    {
        if (!value_matches(at, at_path(at, path), expected)) {
            return false;
        }
    }
    return true;
}

/* What a value's description stands for: a new reference, or NULL. */
static json_t *resolve(const place *at, const json_t *described)
{
    if (json_is_string(described)) {
        return json_incref(epg_json_unconst(at_path(at, json_string_value(described))));
    }
    const json_t *literal = json_object_get(described, "literal");
    if (literal != NULL) {
        return json_incref(epg_json_unconst(literal));
    }
    const json_t *first = json_object_get(described, "first");
    for (size_t i = 0; i < json_array_size(first); i++) {
        const json_t *value = at_path(at, json_string_value(json_array_get(first, i)));
        if (value != NULL && !json_is_null(value)) {
            return json_incref(epg_json_unconst(value));
        }
    }
    const char *path = json_string_value(json_object_get(described, "path"));
    const json_t *value = path != NULL ? at_path(at, path) : NULL;
    if (!json_is_string(value)) {
        return json_incref(epg_json_unconst(value));
    }
    epg_span text = epg_span_of(json_string_value(value), json_string_length(value));
    const json_t *pattern_text = json_object_get(described, "pattern");
    if (pattern_text != NULL) {
        const epg_pattern *pattern = epg_patterns_get(at->patterns, json_string_value(pattern_text));
        epg_span group;
        return pattern != NULL && epg_pattern_capture(pattern, text, NULL, &group)
                   ? json_stringn((const char *)group.data, group.size)
                   : NULL;
    }
    json_t *parsed = NULL;
    if (json_is_true(json_object_get(described, "json")) && epg_json_parse_lenient(text, "", &parsed, NULL) == EPG_OK) {
        return parsed;
    }
    return json_incref(epg_json_unconst(value));
}

/* The text of a value: a string itself, a block its `text`, a list its blocks one after another, anything else as JSON.
 */
static void put_text(const json_t *value, epg_buffer *out, unsigned depth)
{
    if (value == NULL || json_is_null(value)) {
        return;
    }
    const json_t *inner = json_object_get(value, "text");
    if (json_is_string(value)) {
        epg_buffer_append(out, json_string_value(value), json_string_length(value));
    } else if (json_is_string(inner)) {
        put_text(inner, out, depth);
    } else if (json_is_array(value) && depth < 4) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i > 0) {
                epg_buffer_byte(out, '\n');
            }
            put_text(json_array_get(value, i), out, depth + 1);
        }
    } else {
        EPG_AUTO_FREE char *dumped = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        epg_buffer_text(out, dumped != NULL ? dumped : "");
    }
}

static void text_member(const place *at, const json_t *spec, const char *key, epg_buffer *out)
{
    const json_t *described = json_object_get(spec, key);
    EPG_AUTO_JSON *value = described != NULL ? resolve(at, described) : NULL;
    put_text(value, out, 0);
}

static bool number_of(const json_t *value, double *out)
{
    uint64_t whole = 0;
    if (epg_json_is_u64(value, &whole)) {
        *out = (double)whole;
        return true;
    }
    if (json_is_string(value)) {
        return epg_parse_double(json_string_value(value), out);
    }
    if (!json_is_number(value)) {
        return false;
    }
    *out = json_number_value(value);
    return isfinite(*out);
}

/* The sum of what stands at one path or several. False when nothing does. */
static bool sum_member(const place *at, const json_t *spec, const char *key, double *out)
{
    const json_t *described = json_object_get(spec, key);
    size_t count = json_is_array(described) ? json_array_size(described) : described != NULL ? 1 : 0;
    bool found = false;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        EPG_AUTO_JSON *value = resolve(at, json_is_array(described) ? json_array_get(described, i) : described);
        double number = 0;
        if (number_of(value, &number) && number >= 0) {
            sum += number;
            found = true;
        }
    }
    if (found) {
        *out = sum;
    }
    return found;
}

static bool integer_member(const place *at, const json_t *spec, const char *key, int64_t *out)
{
    double number = 0;
    const json_t *described = json_object_get(spec, key);
    EPG_AUTO_JSON *value = described != NULL ? resolve(at, described) : NULL;
    if (!number_of(value, &number) || fabs(number) > 1e15) {
        return false;
    }
    *out = (int64_t)number;
    return true;
}

/* A report over this is taken for none: nobody pays so much, and sums of the rest stay finite. */
static bool cost_member(const place *at, const json_t *spec, double *out)
{
    double number = 0;
    if (!sum_member(at, spec, "cost", &number) || number > 1e15) {
        return false;
    }
    *out = number;
    return true;
}

static bool tokens_member(const place *at, const json_t *spec, const char *key, uint64_t *out)
{
    double number = 0;
    if (!sum_member(at, spec, key, &number) || number > 1e15) {
        return false;
    }
    *out = (uint64_t)number;
    return true;
}

static void fill_usage(const place *at, const json_t *spec, epg_event *event)
{
    const char *count = json_string_value(json_object_get(spec, "count"));
    event->count = strcmp(count, "total") == 0                        ? EPG_COUNT_TOTAL
                   : json_is_false(json_object_get(spec, "complete")) ? EPG_COUNT_PARTIAL
                                                                      : EPG_COUNT_ADD;
    text_member(at, spec, "key", &event->id);
    bool in = tokens_member(at, spec, "input", &event->tokens.input);
    bool out = tokens_member(at, spec, "output", &event->tokens.output);
    event->has_tokens = in || out;
    (void)tokens_member(at, spec, "cached_input", &event->tokens.cached_input);
    (void)tokens_member(at, spec, "cache_write", &event->tokens.cache_write);
    (void)tokens_member(at, spec, "reasoning", &event->tokens.reasoning);
    event->has_cost = cost_member(at, spec, &event->cost);
}

static void fill(const place *at, const json_t *spec, epg_event *event)
{
    const json_t *failed = json_object_get(spec, "failed");
    text_member(at, spec, "id", &event->id);
    switch (event->kind) {
    case EPG_EVENT_SESSION:
        text_member(at, spec, "model", &event->name);
        break;
    case EPG_EVENT_MESSAGE:
    case EPG_EVENT_THINKING:
    case EPG_EVENT_NOTICE:
    case EPG_EVENT_RESULT:
        text_member(at, spec, "text", &event->text);
        event->partial = json_is_true(json_object_get(spec, "partial"));
        break;
    case EPG_EVENT_TOOL_CALL:
        text_member(at, spec, "name", &event->name);
        if (json_object_get(spec, "input") != NULL) {
            event->input = resolve(at, json_object_get(spec, "input"));
        }
        break;
    case EPG_EVENT_TOOL_RESULT:
        text_member(at, spec, "output", &event->text);
        event->has_exit_code = integer_member(at, spec, "exit_code", &event->exit_code);
        event->failed = failed != NULL && matches(at, failed);
        break;
    case EPG_EVENT_USAGE:
        fill_usage(at, spec, event);
        break;
    case EPG_EVENT_ERROR:
        text_member(at, spec, "message", &event->text);
        (void)integer_member(at, spec, "status", &event->status);
        event->final = json_is_true(json_object_get(spec, "final"));
        break;
    }
}

static void make_event(const place *at, const json_t *rule, const char *key, epg_event_kind kind)
{
    const json_t *spec = json_object_get(rule, key);
    if (spec == NULL) {
        return;
    }
    epg_event event = {.kind = kind};
    fill(at, spec, &event);
    bool empty = (kind == EPG_EVENT_MESSAGE || kind == EPG_EVENT_THINKING) && event.text.size == 0;
    bool unused = kind == EPG_EVENT_USAGE && !event.has_tokens && !event.has_cost;
    if (!empty && !unused) {
        at->sink(at->context, &event);
    }
    epg_buffer_free(&event.id);
    epg_buffer_free(&event.name);
    epg_buffer_free(&event.text);
    json_decref(event.input);
}

static bool apply_list(const place *at, const json_t *rules);

static void apply_each(const place *at, const json_t *rule)
{
    const json_t *list = at_path(at, json_string_value(json_object_get(rule, "each")));
    if (!json_is_array(list)) {
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        place inner = *at;
        inner.item = json_array_get(list, i);
        (void)apply_list(&inner, json_object_get(rule, "rules"));
    }
}

static bool apply_rule(const place *at, const json_t *rule)
{
    if (!matches(at, json_object_get(rule, "match"))) {
        return false;
    }
    make_event(at, rule, "session", EPG_EVENT_SESSION);
    make_event(at, rule, "thinking", EPG_EVENT_THINKING);
    make_event(at, rule, "message", EPG_EVENT_MESSAGE);
    make_event(at, rule, "tool_call", EPG_EVENT_TOOL_CALL);
    make_event(at, rule, "tool_result", EPG_EVENT_TOOL_RESULT);
    if (json_object_get(rule, "each") != NULL) {
        apply_each(at, rule);
    }
    make_event(at, rule, "usage", EPG_EVENT_USAGE);
    make_event(at, rule, "notice", EPG_EVENT_NOTICE);
    make_event(at, rule, "error", EPG_EVENT_ERROR);
    make_event(at, rule, "result", EPG_EVENT_RESULT);
    return true;
}

static bool apply_list(const place *at, const json_t *rules)
{
    bool applied = false;
    for (size_t i = 0; i < json_array_size(rules); i++) {
        applied = apply_rule(at, json_array_get(rules, i)) || applied;
    }
    return applied;
}

bool epg_rules_apply(const json_t *rules, const json_t *document, epg_patterns *patterns, epg_event_sink *sink,
                     void *context)
{
    const place at = {document, document, patterns, sink, context};
    return apply_list(&at, rules);
}
