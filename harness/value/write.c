#include "value/value.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void put_prefixed(epg_buffer *out, const void *data, size_t size)
{
    (void)epg_buffer_be64(out, size);
    (void)epg_buffer_append(out, data, size);
}

static void put_tag_be64(epg_buffer *out, char tag, uint64_t value)
{
    uint8_t bytes[9];
    bytes[0] = (uint8_t)tag;
    epg_write_be64(bytes + 1, value);
    (void)epg_buffer_append(out, bytes, sizeof bytes);
}

static void put_tag_span(epg_buffer *out, char tag, epg_span span)
{
    put_tag_be64(out, tag, span.size);
    (void)epg_buffer_append_span(out, span);
}

enum { DECIMAL_TEXT = 21 };

/* Writes the decimal text of -/+ `magnitude` to the end of `text`; returns where it starts. */
static size_t decimal(bool negative, uint64_t magnitude, char text[DECIMAL_TEXT])
{
    size_t at = DECIMAL_TEXT;
    do {
        text[--at] = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude != 0);
    if (negative) {
        text[--at] = '-';
    }
    return at;
}

static void put_int(epg_buffer *out, bool negative, uint64_t magnitude)
{
    char text[DECIMAL_TEXT];
    size_t at = decimal(negative, magnitude, text);
    put_tag_span(out, 'I', epg_span_of(text + at, DECIMAL_TEXT - at));
}

void epg_value_put_null(epg_buffer *out)
{
    (void)epg_buffer_byte(out, 'N');
}

void epg_value_put_bool(epg_buffer *out, bool value)
{
    (void)epg_buffer_append(out, value ? "B1" : "B0", 2);
}

void epg_value_put_i64(epg_buffer *out, int64_t value)
{
    put_int(out, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void epg_value_put_u64(epg_buffer *out, uint64_t value)
{
    put_int(out, false, value);
}

void epg_value_put_float(epg_buffer *out, double value)
{
    assert(isfinite(value));
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    put_tag_be64(out, 'F', bits);
}

void epg_value_put_text(epg_buffer *out, const char *utf8)
{
    put_tag_span(out, 'S', epg_span_of(utf8, strlen(utf8)));
}

void epg_value_put_string(epg_buffer *out, epg_span utf8)
{
    put_tag_span(out, 'S', utf8);
}

void epg_value_put_bytes(epg_buffer *out, epg_span bytes)
{
    put_tag_span(out, 'Y', bytes);
}

void epg_value_put_list(epg_buffer *out, uint64_t count)
{
    put_tag_be64(out, 'L', count);
}

void epg_value_put_tuple(epg_buffer *out, uint64_t count)
{
    put_tag_be64(out, 'U', count);
}

void epg_value_put_map(epg_buffer *out, uint64_t count)
{
    put_tag_be64(out, 'M', count);
}

void epg_value_put_key(epg_buffer *out, const char *utf8)
{
    put_prefixed(out, utf8, strlen(utf8));
}

void epg_value_put_key_span(epg_buffer *out, epg_span utf8)
{
    put_prefixed(out, utf8.data, utf8.size);
}

void epg_value_put_tensor(epg_buffer *out, const char *dtype, const uint64_t *shape, size_t rank, epg_span data)
{
    put_tag_span(out, 'T', epg_span_of(dtype, strlen(dtype)));
    (void)epg_buffer_be64(out, rank);
    for (size_t i = 0; i < rank; i++) {
        char text[DECIMAL_TEXT];
        size_t at = decimal(false, shape[i], text);
        put_prefixed(out, text + at, DECIMAL_TEXT - at);
    }
    put_prefixed(out, data.data, data.size);
}
