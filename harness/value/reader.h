/* Bounded reading of canonical bytes, and the two tables of the encoding: shared by the files of this room.
 *
 * A reader never passes its end: each function returns false, and moves nothing, when what it wants isn't there. */
#ifndef EPG_VALUE_READER_H
#define EPG_VALUE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

typedef struct epg_value_reader {
    const uint8_t *at;
    const uint8_t *end;
} epg_value_reader;

static inline epg_value_reader epg_value_reader_of(epg_span bytes)
{
    return (epg_value_reader){bytes.data, bytes.data == NULL ? NULL : bytes.data + bytes.size};
}

static inline size_t epg_value_reader_left(const epg_value_reader *reader)
{
    return reader->at == NULL ? 0 : (size_t)(reader->end - reader->at);
}

static inline bool epg_value_read_byte(epg_value_reader *reader, uint8_t *out)
{
    if (epg_value_reader_left(reader) < 1) {
        return false;
    }
    *out = *reader->at++;
    return true;
}

static inline bool epg_value_read_be64(epg_value_reader *reader, uint64_t *out)
{
    if (epg_value_reader_left(reader) < 8) {
        return false;
    }
    *out = epg_read_be64(reader->at);
    reader->at += 8;
    return true;
}

/* P(x): its length, then that many bytes, borrowed. */
static inline bool epg_value_read_prefixed(epg_value_reader *reader, epg_span *out)
{
    epg_value_reader ahead = *reader;
    uint64_t size = 0;
    if (!epg_value_read_be64(&ahead, &size) || size > epg_value_reader_left(&ahead)) {
        return false;
    }
    *out = epg_span_of(ahead.at, (size_t)size);
    reader->at = ahead.at + size;
    return true;
}

static inline double epg_value_double_of(uint64_t bits)
{
    union {
        uint64_t bits;
        double number;
    } both = {.bits = bits};
    return both.number;
}

/* Canonical decimal text: an optional '-', then digits without a leading zero, and no "-0"; -2^63 .. 2^64-1. */
bool epg_value_decimal(epg_span text, bool *negative, uint64_t *magnitude);

typedef struct epg_value_dtype {
    const char *name;
    unsigned size;     /* bytes of one item */
    unsigned exponent; /* of a floating type: the bits that are all set in what isn't finite; else 0 */
} epg_value_dtype;

/* The tensor type of that name; NULL when there is none. */
const epg_value_dtype *epg_value_dtype_find(epg_span name);

#endif
