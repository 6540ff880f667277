/* Bytes: a span that borrows, a buffer that owns and grows up to a bound. */
#ifndef EPG_BASE_BUFFER_H
#define EPG_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct epg_span {
    const uint8_t *data;
    size_t size;
} epg_span;

static inline epg_span epg_span_of(const void *data, size_t size)
{
    return (epg_span){(const uint8_t *)data, size};
}
epg_span epg_span_text(const char *text); /* without the NUL */
bool epg_span_equal(epg_span a, epg_span b);
int epg_span_compare(epg_span a, epg_span b); /* bytes, then the shorter first */

/* Owned bytes. `{0}` is an empty one without a bound; set `limit` (0: none) to bound it.
 * `data` always has one more byte than `size`, which is NUL, once anything was appended. */
typedef struct epg_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t limit;
    bool overflow; /* an append was refused; the content is as it was before that append */
} epg_buffer;

/* Appends return false, and set `overflow`, when the bound would be passed. */
bool epg_buffer_append(epg_buffer *buffer, const void *data, size_t size);
bool epg_buffer_append_span(epg_buffer *buffer, epg_span span);
bool epg_buffer_text(epg_buffer *buffer, const char *text);
bool epg_buffer_byte(epg_buffer *buffer, uint8_t byte);
bool epg_buffer_be32(epg_buffer *buffer, uint32_t value);
bool epg_buffer_be64(epg_buffer *buffer, uint64_t value);
bool epg_buffer_format(epg_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for `size` more bytes and returns where they go; the caller then adds to `size`. NULL: over the bound. */
uint8_t *epg_buffer_reserve(epg_buffer *buffer, size_t size);
void epg_buffer_drop_front(epg_buffer *buffer, size_t size); /* size <= buffer->size */
void epg_buffer_clear(epg_buffer *buffer);                   /* keeps the memory and the bound */
void epg_buffer_free(epg_buffer *buffer);                    /* back to {0} */
static inline epg_span epg_buffer_span(const epg_buffer *buffer)
{
    return (epg_span){buffer->data, buffer->size};
}
const char *epg_buffer_cstr(const epg_buffer *buffer); /* "" when empty; valid until the next append */
char *epg_buffer_take_text(epg_buffer *buffer);        /* NUL-terminated, caller frees; the buffer is empty after */
#define EPG_AUTO_BUFFER EPG_CLEANUP(epg_buffer_free) epg_buffer

static inline uint32_t epg_read_be32(const uint8_t *bytes)
{
    return ((uint32_t)bytes[0] << 24) | ((uint32_t)bytes[1] << 16) | ((uint32_t)bytes[2] << 8) | bytes[3];
}
static inline uint64_t epg_read_be64(const uint8_t *bytes)
{
    return ((uint64_t)epg_read_be32(bytes) << 32) | epg_read_be32(bytes + 4);
}
static inline void epg_write_be32(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)(value >> 24);
    bytes[1] = (uint8_t)(value >> 16);
    bytes[2] = (uint8_t)(value >> 8);
    bytes[3] = (uint8_t)value;
}
static inline void epg_write_be64(uint8_t *bytes, uint64_t value)
{
    epg_write_be32(bytes, (uint32_t)(value >> 32));
    epg_write_be32(bytes + 4, (uint32_t)value);
}

#endif
