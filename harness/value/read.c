#include "value/value.h"

#include <string.h>

#include "value/reader.h"

/* Passes over one value's own bytes: a scalar whole, of a container only its head, whose count goes to *items. */
static bool skip_head(epg_value_reader *reader, uint64_t *items, bool *is_map)
{
    uint8_t kind = 0;
    uint64_t number = 0;
    epg_span span = {0};
    *items = 0;
    *is_map = false;
    if (!epg_value_read_byte(reader, &kind)) {
        return false;
    }
    switch (kind) {
    case 'N':
        return true;
    case 'B':
        return epg_value_read_byte(reader, &kind);
    case 'F':
        return epg_value_read_be64(reader, &number);
    case 'I':
    case 'S':
    case 'Y':
        return epg_value_read_prefixed(reader, &span);
    case 'T':
        if (!epg_value_read_prefixed(reader, &span) || !epg_value_read_be64(reader, &number)) {
            return false;
        }
        for (; number > 0; number--) {
            if (!epg_value_read_prefixed(reader, &span)) {
                return false;
            }
        }
        return epg_value_read_prefixed(reader, &span);
    case 'M':
        *is_map = true;
        return epg_value_read_be64(reader, items);
    case 'L':
    case 'U':
        return epg_value_read_be64(reader, items);
    default:
        return false;
    }
}

size_t epg_value_length(epg_span bytes)
{
    struct {
        uint64_t left;
        bool is_map;
    } stack[EPG_VALUE_DEPTH_MAX + 1]; /* open containers */
    size_t depth = 0;
    epg_value_reader reader = epg_value_reader_of(bytes);
    epg_span key = {0};
    do {
        uint64_t items = 0;
        bool is_map = false;
        if (depth > 0) {
            stack[depth - 1].left--;
            if (stack[depth - 1].is_map && !epg_value_read_prefixed(&reader, &key)) {
                return 0;
            }
        }
        if (!skip_head(&reader, &items, &is_map)) {
            return 0;
        }
        if (items > 0) {
            if (depth >= EPG_COUNT(stack)) {
                return 0;
            }
            stack[depth].left = items;
            stack[depth].is_map = is_map;
            depth++;
        }
        while (depth > 0 && stack[depth - 1].left == 0) {
            depth--;
        }
    } while (depth > 0);
    return (size_t)(reader.at - bytes.data);
}

char epg_value_kind(epg_span bytes)
{
    return bytes.size == 0 ? '\0' : (char)bytes.data[0];
}

/* Starts reading after the tag; false when the value is of another kind. */
static bool open_kind(epg_span bytes, char kind, epg_value_reader *reader)
{
    if (epg_value_kind(bytes) != kind) {
        return false;
    }
    *reader = epg_value_reader_of(epg_span_of(bytes.data + 1, bytes.size - 1));
    return true;
}

bool epg_value_get_bool(epg_span bytes, bool *out)
{
    epg_value_reader reader;
    uint8_t byte = 0;
    if (!open_kind(bytes, 'B', &reader) || !epg_value_read_byte(&reader, &byte)) {
        return false;
    }
    *out = byte == '1';
    return true;
}

static bool get_int(epg_span bytes, bool *negative, uint64_t *magnitude)
{
    epg_value_reader reader;
    epg_span text = {0};
    return open_kind(bytes, 'I', &reader) && epg_value_read_prefixed(&reader, &text) &&
           epg_value_decimal(text, negative, magnitude);
}

bool epg_value_get_i64(epg_span bytes, int64_t *out)
{
    bool negative = false;
    uint64_t magnitude = 0;
    if (!get_int(bytes, &negative, &magnitude) || (!negative && magnitude > INT64_MAX)) {
        return false;
    }
    *out = negative ? -(int64_t)(magnitude - 1) - 1 : (int64_t)magnitude; /* -2^63 has no positive counterpart */
    return true;
}

bool epg_value_get_u64(epg_span bytes, uint64_t *out)
{
    bool negative = false;
    uint64_t magnitude = 0;
    if (!get_int(bytes, &negative, &magnitude) || negative) {
        return false;
    }
    *out = magnitude;
    return true;
}

bool epg_value_get_float(epg_span bytes, double *out)
{
    epg_value_reader reader;
    uint64_t bits = 0;
    if (!open_kind(bytes, 'F', &reader) || !epg_value_read_be64(&reader, &bits)) {
        return false;
    }
    *out = epg_value_double_of(bits);
    return true;
}

bool epg_value_get_string(epg_span bytes, epg_span *out)
{
    epg_value_reader reader;
    return open_kind(bytes, 'S', &reader) && epg_value_read_prefixed(&reader, out);
}

bool epg_value_get_bytes(epg_span bytes, epg_span *out)
{
    epg_value_reader reader;
    return open_kind(bytes, 'Y', &reader) && epg_value_read_prefixed(&reader, out);
}

bool epg_value_get_tensor(epg_span bytes, epg_value_tensor *out)
{
    epg_value_reader reader;
    epg_value_tensor tensor = {0};
    if (!open_kind(bytes, 'T', &reader) || !epg_value_read_prefixed(&reader, &tensor.dtype) ||
        !epg_value_read_be64(&reader, &tensor.rank)) {
        return false;
    }
    const uint8_t *first = reader.at;
    for (uint64_t i = 0; i < tensor.rank; i++) {
        epg_span text = {0};
        if (!epg_value_read_prefixed(&reader, &text)) {
            return false;
        }
    }
    tensor.shape = epg_span_of(first, (size_t)(reader.at - first));
    if (!epg_value_read_prefixed(&reader, &tensor.data)) {
        return false;
    }
    *out = tensor;
    return true;
}

bool epg_value_next_dimension(epg_span *shape, uint64_t *out)
{
    epg_value_reader reader = epg_value_reader_of(*shape);
    epg_span text = {0};
    bool negative = false;
    if (!epg_value_read_prefixed(&reader, &text) || !epg_value_decimal(text, &negative, out)) {
        return false;
    }
    *shape = epg_span_of(reader.at, epg_value_reader_left(&reader));
    return true;
}

bool epg_value_enter(epg_span bytes, epg_value_cursor *cursor)
{
    epg_value_reader reader;
    uint64_t count = 0;
    bool is_map = epg_value_kind(bytes) == 'M';
    if (!(is_map ? open_kind(bytes, 'M', &reader) : open_kind(bytes, 'L', &reader) || open_kind(bytes, 'U', &reader)) ||
        !epg_value_read_be64(&reader, &count)) {
        return false;
    }
    cursor->rest = epg_span_of(reader.at, epg_value_reader_left(&reader));
    cursor->left = count;
    cursor->is_map = is_map;
    return true;
}

bool epg_value_next(epg_value_cursor *cursor, epg_span *key, epg_span *value)
{
    if (cursor->left == 0) {
        return false;
    }
    epg_value_reader reader = epg_value_reader_of(cursor->rest);
    epg_span found = {0};
    if (cursor->is_map && !epg_value_read_prefixed(&reader, &found)) {
        return false;
    }
    size_t size = epg_value_length(epg_span_of(reader.at, epg_value_reader_left(&reader)));
    if (size == 0) {
        return false;
    }
    if (key != NULL) {
        *key = found;
    }
    *value = epg_span_of(reader.at, size);
    cursor->rest = epg_span_of(reader.at + size, epg_value_reader_left(&reader) - size);
    cursor->left--;
    return true;
}

bool epg_value_lookup(epg_span map, const char *key, epg_span *value)
{
    epg_value_cursor cursor;
    epg_span wanted = epg_span_of(key, strlen(key));
    epg_span found = {0};
    epg_span item = {0};
    if (!epg_value_enter(map, &cursor) || !cursor.is_map) {
        return false;
    }
    while (epg_value_next(&cursor, &found, &item)) {
        int order = epg_span_compare(found, wanted);
        if (order == 0) {
            *value = item;
            return true;
        }
        if (order > 0) {
            return false;
        }
    }
    return false;
}
