#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

epg_span epg_span_text(const char *text)
{
    return epg_span_of(text, strlen(text));
}

bool epg_span_equal(epg_span a, epg_span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

int epg_span_compare(epg_span a, epg_span b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
    if (order != 0) {
        return order;
    }
    return a.size < b.size ? -1 : a.size > b.size;
}

uint8_t *epg_buffer_reserve(epg_buffer *buffer, size_t size)
{
    size_t wanted = 0;
    if (__builtin_add_overflow(buffer->size, size, &wanted) || (buffer->limit > 0 && wanted > buffer->limit) ||
        wanted > SIZE_MAX / 2 - 1) {
        buffer->overflow = true;
        return NULL;
    }
    if (wanted + 1 > buffer->capacity) {
        size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
        while (capacity < wanted + 1) {
            capacity *= 2;
        }
        buffer->data = epg_grow_array(buffer->data, capacity, 1);
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->size;
}

bool epg_buffer_append(epg_buffer *buffer, const void *data, size_t size)
{
    uint8_t *to = epg_buffer_reserve(buffer, size);
    if (to == NULL) {
        return false;
    }
    if (size > 0) {
        memcpy(to, data, size);
    }
    buffer->size += size;
    buffer->data[buffer->size] = 0;
    return true;
}

bool epg_buffer_append_span(epg_buffer *buffer, epg_span span)
{
    return epg_buffer_append(buffer, span.data, span.size);
}

bool epg_buffer_text(epg_buffer *buffer, const char *text)
{
    return epg_buffer_append(buffer, text, strlen(text));
}

bool epg_buffer_byte(epg_buffer *buffer, uint8_t byte)
{
    return epg_buffer_append(buffer, &byte, 1);
}

bool epg_buffer_be32(epg_buffer *buffer, uint32_t value)
{
    uint8_t bytes[4];
    epg_write_be32(bytes, value);
    return epg_buffer_append(buffer, bytes, sizeof bytes);
}

bool epg_buffer_be64(epg_buffer *buffer, uint64_t value)
{
    uint8_t bytes[8];
    epg_write_be64(bytes, value);
    return epg_buffer_append(buffer, bytes, sizeof bytes);
}

bool epg_buffer_format(epg_buffer *buffer, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0) {
        abort();
    }
    bool fits = epg_buffer_append(buffer, text, (size_t)size);
    free(text);
    return fits;
}

void epg_buffer_drop_front(epg_buffer *buffer, size_t size)
{
    if (size == 0) {
        return;
    }
    buffer->size -= size;
    memmove(buffer->data, buffer->data + size, buffer->size);
    buffer->data[buffer->size] = 0;
}

void epg_buffer_clear(epg_buffer *buffer)
{
    buffer->size = 0;
    buffer->overflow = false;
    if (buffer->data != NULL) {
        buffer->data[0] = 0;
    }
}

void epg_buffer_free(epg_buffer *buffer)
{
    free(buffer->data);
    *buffer = (epg_buffer){0};
}

const char *epg_buffer_cstr(const epg_buffer *buffer)
{
    return buffer->data != NULL ? (const char *)buffer->data : "";
}

char *epg_buffer_take_text(epg_buffer *buffer)
{
    char *text = buffer->data != NULL ? (char *)buffer->data : epg_alloc(1);
    *buffer = (epg_buffer){0};
    return text;
}
