#include "agents/template.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

static size_t name_length(const char *text)
{
    if (*text < 'a' || *text > 'z') {
        return 0;
    }
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
}

/* Length of the placeholder that starts at `text`, 0 when none does. */
static size_t placeholder(const char *text, char **name, bool *as_json)
{
    static const char json_mark[] = ":json";
    if (text[0] != '{') {
        return 0;
    }
    size_t size = name_length(text + 1);
    const char *after = text + 1 + size;
    *as_json = size > 0 && strncmp(after, json_mark, sizeof json_mark - 1) == 0;
    if (*as_json) {
        after += sizeof json_mark - 1;
    }
    if (size == 0 || *after != '}') {
        return 0;
    }
    *name = epg_strndup(text + 1, size);
    return (size_t)(after + 1 - text);
}

static void put_json_text(const char *value, epg_buffer *out)
{
    if (value[0] == '[') {
        epg_buffer_text(out, value);
        return;
    }
    epg_json_writer writer;
    epg_json_begin(&writer, out, 0);
    epg_json_put_text(&writer, NULL, value);
    epg_json_finish(&writer);
}

epg_code epg_template_expand(const char *text, epg_lookup *lookup, void *context, epg_buffer *out, epg_error *err)
{
    for (const char *at = text; *at != '\0';) {
        EPG_AUTO_FREE char *name = NULL;
        bool as_json = false;
        size_t size = placeholder(at, &name, &as_json);
        if (size == 0) {
            bool doubled = at[0] == '{' && at[1] == '{';
            epg_buffer_byte(out, (uint8_t)*at);
            at += doubled ? 2 : 1;
            continue;
        }
        const char *value = lookup(context, name);
        if (value == NULL) {
            return epg_fail(err, EPG_ERR_USAGE, "\"%s\" needs a value for \"%s\"", text, name);
        }
        if (as_json) {
            put_json_text(value, out);
        } else {
            epg_buffer_text(out, value);
        }
        at += size;
    }
    return EPG_OK;
}

static epg_code expand_object(const json_t *value, epg_lookup *lookup, void *context, json_t *out, epg_error *err)
{
    const char *key = NULL;
    json_t *item = NULL;
    json_t *object = epg_json_unconst(value);
    json_object_foreach(object, key, item)
    {
        EPG_AUTO_BUFFER name = {0};
        EPG_AUTO_JSON *inner = NULL;
        EPG_TRY(epg_template_expand(key, lookup, context, &name, err));
        EPG_TRY(epg_template_expand_json(item, lookup, context, &inner, err));
        json_object_set(out, epg_buffer_cstr(&name), inner);
    }
    return EPG_OK;
}

epg_code epg_template_expand_json(const json_t *value, epg_lookup *lookup, void *context, json_t **out, epg_error *err)
{
    EPG_AUTO_JSON *made = NULL;
    if (json_is_object(value)) {
        made = json_object();
        EPG_TRY(expand_object(value, lookup, context, made, err));
    } else if (json_is_array(value)) {
        made = json_array();
        for (size_t i = 0; i < json_array_size(value); i++) {
            EPG_AUTO_JSON *inner = NULL;
            EPG_TRY(epg_template_expand_json(json_array_get(value, i), lookup, context, &inner, err));
            json_array_append(made, inner);
        }
    } else if (json_is_string(value)) {
        EPG_AUTO_BUFFER text = {0};
        EPG_TRY(epg_template_expand(json_string_value(value), lookup, context, &text, err));
        made = json_stringn(epg_buffer_cstr(&text), text.size);
        if (made == NULL) {
            return epg_fail(err, EPG_ERR_USAGE, "a value for \"%s\" is not UTF-8", json_string_value(value));
        }
    } else {
        made = json_deep_copy(value);
    }
    *out = json_incref(made);
    return EPG_OK;
}

int epg_version_compare(const char *a, const char *b)
{
    for (;;) {
        char *after_a = NULL;
        char *after_b = NULL;
        unsigned long left = isdigit((unsigned char)*a) ? strtoul(a, &after_a, 10) : 0;
        unsigned long right = isdigit((unsigned char)*b) ? strtoul(b, &after_b, 10) : 0;
        if (left != right) {
            return left < right ? -1 : 1;
        }
        a = after_a != NULL && *after_a == '.' ? after_a + 1 : "";
        b = after_b != NULL && *after_b == '.' ? after_b + 1 : "";
        if (*a == '\0' && *b == '\0') {
            return 0;
        }
    }
}

/* One term of a condition, taken apart. */
typedef struct term {
    bool negated;
    char *name;
    enum { TERM_SET, TERM_EQUAL, TERM_BELOW, TERM_AT_LEAST } kind;
    const char *value; /* in the term's own text */
} term;

static bool parse_term(char *text, term *out)
{
    *out = (term){0};
    if (*text == '!') {
        out->negated = true;
        text++;
    }
    out->name = text;
    if (epg_starts_with(text, "env:")) {
        return text[4] != '\0' && text[4 + strspn(text + 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
    }
    size_t size = name_length(text);
    char *after = text + size;
    if (size == 0) {
        return false;
    }
    if (*after == '=') {
        out->kind = TERM_EQUAL;
        out->value = after + 1;
    } else if (*after == '<') {
        out->kind = TERM_BELOW;
        out->value = after + 1;
    } else if (after[0] == '>' && after[1] == '=') {
        out->kind = TERM_AT_LEAST;
        out->value = after + 2;
    } else {
        return *after == '\0';
    }
    bool ordered = out->kind != TERM_EQUAL;
    bool sound = *out->value != '\0' && (!ordered || isdigit((unsigned char)*out->value));
    *after = '\0';
    return sound && (!ordered || strcmp(out->name, "version") == 0);
}

static bool term_holds(const term *item, epg_lookup *lookup, void *context)
{
    const char *value = lookup(context, item->name);
    bool holds = false;
    switch (item->kind) {
    case TERM_SET:
        holds = value != NULL;
        break;
    case TERM_EQUAL:
        holds = value != NULL && strcmp(value, item->value) == 0;
        break;
    case TERM_BELOW:
        holds = value != NULL && epg_version_compare(value, item->value) < 0;
        break;
    case TERM_AT_LEAST: /* a version that is not known counts as the newest */
        holds = value == NULL || epg_version_compare(value, item->value) >= 0;
        break;
    }
    return holds != item->negated;
}

static bool text_holds(const char *text, epg_lookup *lookup, void *context)
{
    EPG_AUTO_FREE char *copy = epg_strdup(text);
    char *rest = copy;
    for (char *part = strsep(&rest, "|"); part != NULL; part = strsep(&rest, "|")) {
        term item;
        if (parse_term(part, &item) && term_holds(&item, lookup, context)) {
            return true;
        }
    }
    return false;
}

bool epg_condition_holds(const json_t *when, epg_lookup *lookup, void *context)
{
    if (when == NULL) {
        return true;
    }
    if (json_is_string(when)) {
        return text_holds(json_string_value(when), lookup, context);
    }
    for (size_t i = 0; i < json_array_size(when); i++) {
        if (!text_holds(json_string_value(json_array_get(when, i)), lookup, context)) {
            return false;
        }
    }
    return true;
}

static epg_code check_text(const json_t *value, epg_lookup *known, void *context, epg_error *err)
{
    if (!json_is_string(value)) {
        return epg_fail(err, EPG_ERR_INVALID, "a condition is not a string");
    }
    EPG_AUTO_FREE char *copy = epg_strdup(json_string_value(value));
    char *rest = copy;
    for (char *part = strsep(&rest, "|"); part != NULL; part = strsep(&rest, "|")) {
        term item;
        if (!parse_term(part, &item)) {
            return epg_fail(err, EPG_ERR_INVALID, "\"%s\" is not a condition", json_string_value(value));
        }
        if (known(context, item.name) == NULL) {
            return epg_fail(err, EPG_ERR_INVALID, "the condition \"%s\" asks for \"%s\", which is not known here",
                            json_string_value(value), item.name);
        }
    }
    return EPG_OK;
}

epg_code epg_condition_check(const json_t *when, epg_lookup *known, void *context, epg_error *err)
{
    if (when == NULL) {
        return EPG_OK;
    }
    if (!json_is_array(when)) {
        return check_text(when, known, context, err);
    }
    for (size_t i = 0; i < json_array_size(when); i++) {
        EPG_TRY(check_text(json_array_get(when, i), known, context, err));
    }
    return EPG_OK;
}
