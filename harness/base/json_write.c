#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

static void fault(const char *what, const char *key)
{
    (void)fprintf(stderr, "evopolicygym: JSON writer: %s (%s)\n", what, key != NULL ? key : "no key");
    abort();
}

/* As Python's json with ensure_ascii=False: only what JSON demands is escaped. Names of files need not be UTF-8: such a
 * text is written in its printable form, so that what is written can always be read. */
static void put_string(epg_buffer *out, epg_span text)
{
    EPG_AUTO_FREE char *printable = NULL;
    if (text.size > 0 && !epg_utf8_valid(text.data, text.size)) {
        printable = epg_printable((const char *)text.data, text.size);
        text = epg_span_text(printable);
    }
    (void)epg_buffer_byte(out, '"');
    size_t copied = 0;
    for (size_t at = 0; at < text.size; at++) {
        uint8_t c = text.data[at];
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        (void)epg_buffer_append(out, text.data + copied, at - copied);
        copied = at + 1;
        const char *plain = "\"\\\b\f\n\r\t";
        const char *letters = "\"\\bfnrt";
        const char *found = c != 0 ? strchr(plain, c) : NULL;
        if (found != NULL) {
            char escape[2] = {'\\', letters[found - plain]};
            (void)epg_buffer_append(out, escape, 2);
        } else {
            (void)epg_buffer_format(out, "\\u%04x", c);
        }
    }
    if (text.size > copied) { /* an empty span's data may be NULL */
        (void)epg_buffer_append(out, text.data + copied, text.size - copied);
    }
    (void)epg_buffer_byte(out, '"');
}

static void new_line(epg_json_writer *writer)
{
    if (writer->indent == 0) {
        return;
    }
    (void)epg_buffer_byte(writer->out, '\n');
    for (unsigned i = 0; i < writer->depth * writer->indent; i++) {
        (void)epg_buffer_byte(writer->out, ' ');
    }
}

/* What stands before any value: the comma, the line, and the key. An empty `separator` key was put by key_span. */
static void before_value(epg_json_writer *writer, const char *key)
{
    if (writer->depth == 0) {
        return;
    }
    unsigned level = writer->depth - 1;
    if (!writer->is_array[level] && key == NULL) {
        if (writer->last_key[level] == NULL || writer->out->size == 0 ||
            writer->out->data[writer->out->size - 1] == '"') {
            fault("a member without a key", NULL);
        }
        return; /* epg_json_key_span has written it */
    }
    if (!writer->first[level]) {
        (void)epg_buffer_byte(writer->out, ',');
    }
    writer->first[level] = false;
    new_line(writer);
    if (writer->is_array[level]) {
        if (key != NULL) {
            fault("a key inside an array", key);
        }
        return;
    }
    if (writer->last_key[level] != NULL && strcmp(writer->last_key[level], key) >= 0) {
        fault("keys out of order", key);
    }
    free(writer->last_key[level]);
    writer->last_key[level] = epg_strdup(key);
    put_string(writer->out, epg_span_text(key));
    (void)epg_buffer_text(writer->out, writer->indent > 0 ? ": " : ":");
}

void epg_json_key_span(epg_json_writer *writer, epg_span key)
{
    unsigned level = writer->depth - 1;
    if (!writer->first[level]) {
        (void)epg_buffer_byte(writer->out, ',');
    }
    writer->first[level] = false;
    new_line(writer);
    put_string(writer->out, key);
    (void)epg_buffer_text(writer->out, writer->indent > 0 ? ": " : ":");
    if (writer->last_key[level] == NULL) {
        writer->last_key[level] = epg_strdup("");
    }
}

void epg_json_begin(epg_json_writer *writer, epg_buffer *out, unsigned indent)
{
    *writer = (epg_json_writer){.out = out, .indent = indent};
}

static void open_level(epg_json_writer *writer, const char *key, bool is_array)
{
    before_value(writer, key);
    if (writer->depth == EPG_JSON_DEPTH) {
        fault("too deep", key);
    }
    (void)epg_buffer_byte(writer->out, is_array ? '[' : '{');
    writer->first[writer->depth] = true;
    writer->is_array[writer->depth] = is_array;
    writer->last_key[writer->depth] = NULL;
    writer->depth++;
}

void epg_json_object(epg_json_writer *writer, const char *key)
{
    open_level(writer, key, false);
}

void epg_json_array(epg_json_writer *writer, const char *key)
{
    open_level(writer, key, true);
}

void epg_json_end(epg_json_writer *writer)
{
    if (writer->depth == 0) {
        fault("an end without a beginning", NULL);
    }
    writer->depth--;
    free(EPG_TAKE(writer->last_key[writer->depth]));
    if (!writer->first[writer->depth]) {
        new_line(writer);
    }
    (void)epg_buffer_byte(writer->out, writer->is_array[writer->depth] ? ']' : '}');
}

void epg_json_put_null(epg_json_writer *writer, const char *key)
{
    before_value(writer, key);
    (void)epg_buffer_text(writer->out, "null");
}

void epg_json_put_bool(epg_json_writer *writer, const char *key, bool value)
{
    before_value(writer, key);
    (void)epg_buffer_text(writer->out, value ? "true" : "false");
}

void epg_json_put_i64(epg_json_writer *writer, const char *key, int64_t value)
{
    before_value(writer, key);
    (void)epg_buffer_format(writer->out, "%lld", (long long)value);
}

void epg_json_put_u64(epg_json_writer *writer, const char *key, uint64_t value)
{
    before_value(writer, key);
    (void)epg_buffer_format(writer->out, "%llu", (unsigned long long)value);
}

void epg_json_put_double(epg_json_writer *writer, const char *key, double value)
{
    if (!isfinite(value)) {
        fault("a number that is not finite", key);
    }
    char text[EPG_DOUBLE_TEXT];
    before_value(writer, key);
    (void)epg_buffer_append(writer->out, text, epg_double_text(value, text));
}

void epg_json_put_known(epg_json_writer *writer, const char *key, bool known, double value)
{
    if (known) {
        epg_json_put_double(writer, key, value);
    } else {
        epg_json_put_null(writer, key);
    }
}

void epg_json_put_computed(epg_json_writer *writer, const char *key, double value)
{
    epg_json_put_known(writer, key, isfinite(value), value);
}

void epg_json_put_text(epg_json_writer *writer, const char *key, const char *value)
{
    if (value == NULL) {
        epg_json_put_null(writer, key);
    } else {
        epg_json_put_span(writer, key, epg_span_text(value));
    }
}

void epg_json_put_span(epg_json_writer *writer, const char *key, epg_span utf8)
{
    before_value(writer, key);
    put_string(writer->out, utf8);
}

static int compare_keys(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

static void put_json_object(epg_json_writer *writer, const char *key, const json_t *value)
{
    size_t count = json_object_size(value);
    EPG_AUTO_FREE const char **keys = epg_alloc_array(count, sizeof *keys);
    size_t at = 0;
    const char *name = NULL;
    json_t *member = NULL;
    json_t *object = json_incref((json_t *)(uintptr_t)value);
    json_object_foreach(object, name, member)
    {
        keys[at++] = name;
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    epg_json_object(writer, key);
    for (size_t i = 0; i < count; i++) {
        epg_json_put_json(writer, keys[i], json_object_get(value, keys[i]));
    }
    epg_json_end(writer);
    json_decref(object);
}

void epg_json_put_json(epg_json_writer *writer, const char *key, const json_t *value)
{
    uint64_t number = 0;
    switch (value != NULL ? json_typeof(value) : JSON_NULL) {
    case JSON_OBJECT:
        put_json_object(writer, key, value);
        return;
    case JSON_ARRAY:
        epg_json_array(writer, key);
        for (size_t i = 0; i < json_array_size(value); i++) {
            epg_json_put_json(writer, NULL, json_array_get(value, i));
        }
        epg_json_end(writer);
        return;
    case JSON_STRING:
        if (epg_json_is_u64(value, &number)) {
            epg_json_put_u64(writer, key, number);
        } else {
            epg_json_put_span(writer, key, epg_span_of(json_string_value(value), json_string_length(value)));
        }
        return;
    case JSON_INTEGER:
        epg_json_put_i64(writer, key, json_integer_value(value));
        return;
    case JSON_REAL:
        epg_json_put_double(writer, key, json_real_value(value));
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        epg_json_put_bool(writer, key, json_is_true(value));
        return;
    case JSON_NULL:
        epg_json_put_null(writer, key);
        return;
    }
}

void epg_json_finish(epg_json_writer *writer)
{
    if (writer->depth != 0) {
        fault("a document that was not closed", NULL);
    }
    if (writer->indent > 0) {
        (void)epg_buffer_byte(writer->out, '\n');
    }
}
