/* PolicyValue: what may cross the boundary between Host, Policy and Benchmark.
 *
 *   null | bool | int (-2^63 .. 2^64-1) | float (finite) | string (UTF-8) | bytes | tensor | list | tuple | map
 *
 * One encoding, the canonical bytes: hashed for the environment digest, sent to a Policy, kept in a record.
 *   null 'N'; bool 'B' '1'|'0'; int 'I' P(decimal ASCII); float 'F' + 8 bytes IEEE double big-endian; string 'S'
 * P(utf8); bytes 'Y' P(bytes); tensor 'T' P(dtype) be64(rank) rank*P(decimal) P(data); list 'L' / tuple 'U' be64(count)
 * items; map 'M' be64(count), per key in UTF-8 byte order: P(key) value.      P(x) = be64(length) + x Canonical means:
 * decimal text without '+', leading zeros or "-0"; keys strictly ascending. There is exactly one encoding of a value,
 * so equal values are equal bytes.
 *
 * Code that only forwards or compares works on bytes after epg_value_check; a cursor reads scalars in place; a tree is
 * built only where code needs one. */
#ifndef EPG_VALUE_VALUE_H
#define EPG_VALUE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

typedef struct epg_value_limits {
    uint32_t depth; /* levels below the root */
    uint32_t nodes;
    size_t bytes; /* of the canonical encoding */
} epg_value_limits;

/* 32, 65,536, 4 MiB: for what a Policy sends, and for observations. */
extern const epg_value_limits epg_value_policy_limits;

/* Room enough for what only trusted parties exchange: EPG_VALUE_DEPTH_MAX, 2^32-1, 1 GiB. A deeper bound than
 * EPG_VALUE_DEPTH_MAX counts as that one. */
enum { EPG_VALUE_DEPTH_MAX = 64 };
extern const epg_value_limits epg_value_trusted_limits;

/* Checks that `bytes` is one value in canonical encoding, nothing after it, within `limits`. Builds nothing.
 * INVALID or LIMIT, the text names what and at which byte. */
epg_code epg_value_check(epg_span bytes, const epg_value_limits *limits, epg_error *err);

/* Length of the value that starts `bytes`, which was checked before; 0 when it is cut. */
size_t epg_value_length(epg_span bytes);

/* --- Writing canonical bytes. The caller gives map keys in ascending order. --- */
void epg_value_put_null(epg_buffer *out);
void epg_value_put_bool(epg_buffer *out, bool value);
void epg_value_put_i64(epg_buffer *out, int64_t value);
void epg_value_put_u64(epg_buffer *out, uint64_t value);
void epg_value_put_float(epg_buffer *out, double value); /* finite */
void epg_value_put_text(epg_buffer *out, const char *utf8);
void epg_value_put_string(epg_buffer *out, epg_span utf8);
void epg_value_put_bytes(epg_buffer *out, epg_span bytes);
void epg_value_put_list(epg_buffer *out, uint64_t count); /* then count values */
void epg_value_put_tuple(epg_buffer *out, uint64_t count);
void epg_value_put_map(epg_buffer *out, uint64_t count); /* then count times key, value */
void epg_value_put_key(epg_buffer *out, const char *utf8);
void epg_value_put_key_span(epg_buffer *out, epg_span utf8);
void epg_value_put_tensor(epg_buffer *out, const char *dtype, const uint64_t *shape, size_t rank, epg_span data);

/* --- Reading scalars in place, of checked bytes; false when it is another kind of value. --- */
char epg_value_kind(epg_span bytes); /* 'N' 'B' 'I' 'F' 'S' 'Y' 'T' 'L' 'U' 'M' */
bool epg_value_get_bool(epg_span bytes, bool *out);
bool epg_value_get_i64(epg_span bytes, int64_t *out); /* false too when it is over INT64_MAX */
bool epg_value_get_u64(epg_span bytes, uint64_t *out);
bool epg_value_get_float(epg_span bytes, double *out);
bool epg_value_get_string(epg_span bytes, epg_span *out);
bool epg_value_get_bytes(epg_span bytes, epg_span *out);

typedef struct epg_value_tensor {
    epg_span dtype; /* "float32" */
    uint64_t rank;
    epg_span shape; /* `rank` dimensions, for epg_value_next_dimension */
    epg_span data;  /* little-endian */
} epg_value_tensor;
bool epg_value_get_tensor(epg_span bytes, epg_value_tensor *out);
bool epg_value_next_dimension(epg_span *shape, uint64_t *out); /* takes the first off `shape`; false: no more */

/* Walks the items of a checked list, tuple or map. */
typedef struct epg_value_cursor {
    epg_span rest;
    uint64_t left;
    bool is_map;
} epg_value_cursor;
bool epg_value_enter(epg_span bytes, epg_value_cursor *cursor);                /* false: not a list, tuple or map */
bool epg_value_next(epg_value_cursor *cursor, epg_span *key, epg_span *value); /* false: no more; key may be NULL */
bool epg_value_lookup(epg_span map, const char *key, epg_span *value);

/* --- Projections. --- */

/* The public JSON projection (CONTRACTS section 1) of checked bytes, under `key` (NULL in arrays). */
void epg_value_to_json(epg_span bytes, epg_json_writer *writer, const char *key);

/* "sha256:..." of environment parameters (a map), CONTRACTS section 4. */
epg_code epg_value_environment_digest(epg_span parameters, char out[EPG_DIGEST_TEXT], epg_error *err);

/* The node form of vectors (CONTRACTS section 1): decoding is strict (map keys in any order, but unique), and appends
 * canonical bytes to `out`. */
epg_code epg_value_from_node(const json_t *node, const epg_value_limits *limits, epg_buffer *out, epg_error *err);
void epg_value_to_node(epg_span bytes, epg_json_writer *writer, const char *key);

#endif
