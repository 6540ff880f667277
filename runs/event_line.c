#include "runs/event_line.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

void epg_event_line_free(epg_event_line *line)
{
    epg_buffer_free(&line->text);
    line->count = 0;
}

static char *skip_space(char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r') {
        at++;
    }
    return at;
}

/* Escapes are rare; what they stand for is never longer than they are. */
static bool unescape(char *quote, const char *end)
{
    EPG_AUTO_JSON *value = json_loadb(quote, (size_t)(end - quote) + 1, JSON_DECODE_ANY, NULL);
    if (!json_is_string(value)) {
        return false;
    }
    memcpy(quote + 1, json_string_value(value), json_string_length(value) + 1);
    return true;
}

/* A string whose opening quote is at `at`: ends it with a NUL and returns what follows it; NULL when it is none. */
static char *take_text(char *at, const char **out)
{
    bool escaped = false;
    char *end = at + 1;
    for (; *end != '"'; end++) {
        if (*end == '\0') {
            return NULL;
        }
        if (*end == '\\') {
            escaped = true;
            end += end[1] != '\0';
        }
    }
    if (escaped && !unescape(at, end)) {
        return NULL;
    }
    *end = '\0';
    *out = at + 1;
    return end + 1;
}

/* A number or a name; *ended tells what stood after it, which is a NUL now. */
static char *take_literal(char *at, const char **out, char *ended)
{
    size_t size = strspn(at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
    if (size == 0) {
        return NULL;
    }
    *out = at;
    *ended = at[size];
    at[size] = '\0';
    return at + size;
}

/* One member; returns what follows its comma, or the closing brace with *last set. */
static char *take_member(epg_event_line *line, char *at, bool *last)
{
    const char *key = NULL;
    const char *value = NULL;
    char next = '\0';
    if (*at != '"' || line->count == EPG_EVENT_LINE_FIELDS || (at = take_text(at, &key)) == NULL) {
        return NULL;
    }
    at = skip_space(at);
    if (*at != ':') {
        return NULL;
    }
    at = skip_space(at + 1);
    bool is_text = *at == '"';
    at = is_text ? take_text(at, &value) : take_literal(at, &value, &next);
    if (at == NULL) {
        return NULL;
    }
    if (is_text || next == ' ' || next == '\t') {
        at = skip_space(is_text ? at : at + 1);
        next = *at;
    }
    line->fields[line->count].key = key;
    line->fields[line->count].value = value;
    line->fields[line->count++].is_text = is_text;
    *last = next == '}';
    return *last || next == ',' ? skip_space(at + 1) : NULL;
}

epg_code epg_event_line_read(epg_event_line *line, epg_span text, epg_error *err)
{
    epg_buffer_clear(&line->text);
    (void)epg_buffer_append_span(&line->text, text);
    line->count = 0;
    bool whole = text.size > 1 && memchr(text.data, '\0', text.size) == NULL;
    char *at = whole ? skip_space((char *)line->text.data) : NULL;
    bool last = false;
    at = at != NULL && *at == '{' ? skip_space(at + 1) : NULL;
    while (at != NULL && !last) {
        at = take_member(line, at, &last);
    }
    return at != NULL && *at == '\0' ? EPG_OK : epg_fail(err, EPG_ERR_INVALID, "no flat JSON object");
}

static const char *find(const epg_event_line *line, const char *key, bool is_text)
{
    for (size_t i = 0; i < line->count; i++) {
        if (line->fields[i].is_text == is_text && strcmp(line->fields[i].key, key) == 0) {
            return line->fields[i].value;
        }
    }
    return NULL;
}

const char *epg_event_line_text(const epg_event_line *line, const char *key)
{
    return find(line, key, true);
}

uint64_t epg_event_line_u64(const epg_event_line *line, const char *key)
{
    const char *value = find(line, key, false);
    uint64_t out = 0;
    return value != NULL && epg_parse_u64(value, strlen(value), UINT64_MAX, &out) ? out : 0;
}

int64_t epg_event_line_i64(const epg_event_line *line, const char *key)
{
    const char *value = find(line, key, false);
    bool negative = value != NULL && *value == '-';
    uint64_t out = 0;
    value = negative ? value + 1 : value;
    if (value == NULL || !epg_parse_u64(value, strlen(value), INT64_MAX, &out)) {
        return 0;
    }
    return negative ? -(int64_t)out : (int64_t)out;
}

double epg_event_line_double(const epg_event_line *line, const char *key)
{
    const char *value = find(line, key, false);
    double out = 0;
    return value != NULL && epg_parse_double(value, &out) ? out : 0;
}

bool epg_event_line_is_number(const epg_event_line *line, const char *key)
{
    const char *value = find(line, key, false);
    return value != NULL && (*value == '-' || (*value >= '0' && *value <= '9'));
}
