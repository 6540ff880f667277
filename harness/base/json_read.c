/* Reading. jansson refuses integers over 2^63-1, so those up to 2^64-1 are rewritten, before it sees the text, into
 * strings that start with a mark which no decoded JSON string of ours has otherwise: NUL "u64:". */
#include <string.h>

#include "base/json.h"
#include "base/text.h"

static const char u64_mark[] = "\\u0000u64:";
static const char u64_mark_decoded[] = "\0u64:";
enum { MARK_SIZE = sizeof u64_mark_decoded - 1 };

/* Length of the number token at `text`; *is_big: an unsigned integer in 2^63 .. 2^64-1. */
static size_t number_token(const char *text, size_t size, bool *is_big)
{
    size_t length = 0;
    while (length < size && memchr("+-.0123456789eE", text[length], 15) != NULL) {
        length++;
    }
    uint64_t value = 0;
    *is_big = length >= 19 && length <= 20 && epg_parse_u64(text, length, UINT64_MAX, &value) && value > INT64_MAX;
    return length;
}

/* Returns how many there are; 0, and `out` left empty, is the common case. *deepest: the levels of nesting. */
static size_t mark_big_integers(epg_span text, epg_buffer *out, size_t *deepest)
{
    size_t depth = 0;
    const char *bytes = (const char *)text.data;
    bool in_string = false;
    size_t found = 0;
    size_t copied = 0;
    for (size_t at = 0; at < text.size;) {
        char c = bytes[at];
        if (in_string) {
            at += c == '\\' ? 2 : 1;
            in_string = c != '"';
            continue;
        }
        if (c < '0' || c > '9') {
            in_string = c == '"';
            at++;
            depth += c == '[' || c == '{';
            depth -= (c == ']' || c == '}') && depth > 0;
            *deepest = depth > *deepest ? depth : *deepest;
            if (c == '-' || c == '+' || c == '.') {
                while (at < text.size && memchr("+-.0123456789eE", bytes[at], 15) != NULL) {
                    at++;
                }
            }
            continue;
        }
        bool big = false;
        size_t length = number_token(bytes + at, text.size - at, &big);
        if (big) {
            found++;
            (void)epg_buffer_append(out, bytes + copied, at - copied);
            (void)epg_buffer_format(out, "\"%s%.*s\"", u64_mark, (int)length, bytes + at);
            copied = at + length;
        }
        at += length;
    }
    if (found > 0) {
        (void)epg_buffer_append(out, bytes + copied, text.size - copied);
    }
    return found;
}

/* How many strings below `value` read as a marked integer. */
static size_t count_marked(json_t *value)
{
    size_t count = 0;
    size_t index = 0;
    const char *key = NULL;
    json_t *item = NULL;
    if (json_is_string(value)) {
        return json_string_length(value) >= MARK_SIZE &&
               memcmp(json_string_value(value), u64_mark_decoded, MARK_SIZE) == 0;
    }
    json_object_foreach(value, key, item)
    {
        count += count_marked(item);
    }
    json_array_foreach(value, index, item)
    {
        count += count_marked(item);
    }
    return count;
}

/* A string of someone else's that starts with the mark would pass for an integer: there must be no more than we put
 * there. Only text with an escaped NUL can hold one, so that most documents aren't walked. */
static bool only_our_marks(json_t *value, epg_span source, size_t marked)
{
    static const char escaped_nul[] = "\\u0000";
    return source.data == NULL || memmem(source.data, source.size, escaped_nul, sizeof escaped_nul - 1) == NULL ||
           count_marked(value) <= marked;
}

static epg_code parse(epg_span text, const char *what, size_t flags, json_t **out, epg_error *err)
{
    EPG_AUTO_BUFFER marked = {0};
    size_t deepest = 0;
    size_t count = mark_big_integers(text, &marked, &deepest);
    if ((flags & JSON_REJECT_DUPLICATES) != 0 && deepest > EPG_JSON_READ_DEPTH) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: nested deeper than %d levels", what, EPG_JSON_READ_DEPTH);
    }
    epg_span source = count > 0 ? epg_buffer_span(&marked) : text;
    json_error_t why;
    json_t *value = json_loadb(source.data != NULL ? (const char *)source.data : "", source.size,
                               flags | JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    if (value == NULL) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: not valid JSON: line %d column %d: %s", what, why.line, why.column,
                        why.text);
    }
    if (!only_our_marks(value, source, count)) {
        json_decref(value);
        return epg_fail(err, EPG_ERR_INVALID, "%s: holds a string that starts with NUL \"u64:\"", what);
    }
    *out = value;
    return EPG_OK;
}

epg_code epg_json_parse(epg_span text, const char *what, json_t **out, epg_error *err)
{
    return parse(text, what, JSON_REJECT_DUPLICATES, out, err);
}

epg_code epg_json_parse_lenient(epg_span text, const char *what, json_t **out, epg_error *err)
{
    return parse(text, what, 0, out, err);
}

void epg_json_cleanup(json_t **value)
{
    json_decref(*value);
}

bool epg_json_is_u64(const json_t *value, uint64_t *out)
{
    if (json_is_integer(value)) {
        json_int_t number = json_integer_value(value);
        if (number < 0) {
            return false;
        }
        *out = (uint64_t)number;
        return true;
    }
    if (!json_is_string(value) || json_string_length(value) <= MARK_SIZE ||
        memcmp(json_string_value(value), u64_mark_decoded, MARK_SIZE) != 0) {
        return false;
    }
    return epg_parse_u64(json_string_value(value) + MARK_SIZE, json_string_length(value) - MARK_SIZE, UINT64_MAX, out);
}

static epg_code wrong(const json_t *object, const char *key, const char *what, const char *wanted, epg_error *err)
{
    if (!json_is_object(object)) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: not a JSON object", what);
    }
    if (json_object_get(object, key) == NULL) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: \"%s\" is missing", what, key);
    }
    return epg_fail(err, EPG_ERR_INVALID, "%s: \"%s\" is not %s", what, key, wanted);
}

epg_code epg_json_u64(const json_t *object, const char *key, const char *what, uint64_t *out, epg_error *err)
{
    if (!epg_json_is_u64(json_object_get(object, key), out)) {
        return wrong(object, key, what, "an unsigned integer", err);
    }
    return EPG_OK;
}

epg_code epg_json_i64(const json_t *object, const char *key, const char *what, int64_t *out, epg_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) {
        return wrong(object, key, what, "an integer", err);
    }
    *out = json_integer_value(value);
    return EPG_OK;
}

epg_code epg_json_double(const json_t *object, const char *key, const char *what, double *out, epg_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) {
        return wrong(object, key, what, "a number", err);
    }
    *out = json_number_value(value);
    return EPG_OK;
}

epg_code epg_json_bool(const json_t *object, const char *key, const char *what, bool *out, epg_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value)) {
        return wrong(object, key, what, "true or false", err);
    }
    *out = json_is_true(value);
    return EPG_OK;
}

epg_code epg_json_text(const json_t *object, const char *key, const char *what, const char **out, epg_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value)) {
        return wrong(object, key, what, "a string", err);
    }
    *out = json_string_value(value);
    return EPG_OK;
}

epg_code epg_json_member(const json_t *object, const char *key, const char *what, json_type type, json_t **out,
                         epg_error *err)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null",
    };
    json_t *value = json_object_get(object, key);
    if (value == NULL || json_typeof(value) != type) {
        return wrong(object, key, what, names[type], err);
    }
    *out = value;
    return EPG_OK;
}
