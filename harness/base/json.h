/* JSON: reading through jansson, writing through an emitter.
 *
 * Reading is strict: valid UTF-8, one document, duplicate keys refused, depth bounded. jansson's integers end at
 * 2^63-1; integers up to 2^64-1 are read too (inside, as a marked string), and epg_json_u64 hides the difference.
 * Writing is streaming: keys must be given in the order of their bytes (checked, a fault of ours otherwise), so every
 * file has sorted keys; doubles are written in their shortest exact form; u64 in full. */
#ifndef EPG_BASE_JSON_H
#define EPG_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Parses one whole document; `what` names it in the error ("run.json"). The caller owns *out (json_decref). */
epg_code epg_json_parse(epg_span text, const char *what, json_t **out, epg_error *err);
/* As above without the refusals of duplicate keys (the last wins) and of depth, for what foreign peers send: not to be
 * written again as it is. */
epg_code epg_json_parse_lenient(epg_span text, const char *what, json_t **out, epg_error *err);

/* jansson walks and counts references through plain pointers only: for walking a value that is only read. */
static inline json_t *epg_json_unconst(const json_t *value)
{
    const union {
        const json_t *given;
        json_t *plain;
    } same = {value};
    return same.plain;
}

void epg_json_cleanup(json_t **value);
#define EPG_AUTO_JSON EPG_CLEANUP(epg_json_cleanup) json_t

/* Reading members of an object. Each fails with INVALID and names `what` and the key when the member is missing or
 * of another type. Returned texts and values are borrowed from `object`. */
bool epg_json_is_u64(const json_t *value, uint64_t *out);
epg_code epg_json_u64(const json_t *object, const char *key, const char *what, uint64_t *out, epg_error *err);
epg_code epg_json_i64(const json_t *object, const char *key, const char *what, int64_t *out, epg_error *err);
epg_code epg_json_double(const json_t *object, const char *key, const char *what, double *out, epg_error *err);
epg_code epg_json_bool(const json_t *object, const char *key, const char *what, bool *out, epg_error *err);
epg_code epg_json_text(const json_t *object, const char *key, const char *what, const char **out, epg_error *err);
epg_code epg_json_member(const json_t *object, const char *key, const char *what, json_type type, json_t **out,
                         epg_error *err);

/* The emitter. `indent` 0: compact, one line; 2: indented by two. Keys are NULL inside arrays and at the root. */
enum { EPG_JSON_DEPTH = 256 };
/* Deeper text is refused by epg_json_parse, so that what was read can be written again, within a document of ours. */
enum { EPG_JSON_READ_DEPTH = EPG_JSON_DEPTH - 16 };
typedef struct epg_json_writer {
    epg_buffer *out;
    unsigned indent;
    unsigned depth;
    bool first[EPG_JSON_DEPTH];
    bool is_array[EPG_JSON_DEPTH];
    char *last_key[EPG_JSON_DEPTH];
} epg_json_writer;

void epg_json_begin(epg_json_writer *writer, epg_buffer *out, unsigned indent);
void epg_json_object(epg_json_writer *writer, const char *key);
void epg_json_array(epg_json_writer *writer, const char *key);
void epg_json_end(epg_json_writer *writer); /* closes the innermost object or array */
void epg_json_put_null(epg_json_writer *writer, const char *key);
void epg_json_put_bool(epg_json_writer *writer, const char *key, bool value);
void epg_json_put_i64(epg_json_writer *writer, const char *key, int64_t value);
void epg_json_put_u64(epg_json_writer *writer, const char *key, uint64_t value);
void epg_json_put_double(epg_json_writer *writer, const char *key, double value); /* finite */
/* The same, or null for what is not known. */
void epg_json_put_known(epg_json_writer *writer, const char *key, bool known, double value);
/* For what was computed from numbers of others: null where the result is not finite. */
void epg_json_put_computed(epg_json_writer *writer, const char *key, double value);
void epg_json_put_text(epg_json_writer *writer, const char *key, const char *value); /* NULL writes null */
void epg_json_put_span(epg_json_writer *writer, const char *key, epg_span utf8);
/* Keys are sorted on the way; NULL writes null. */
void epg_json_put_json(epg_json_writer *writer, const char *key, const json_t *value);
/* As the ones above for keys with a length of their own (map keys of a PolicyValue may hold NUL). */
void epg_json_key_span(epg_json_writer *writer, epg_span key); /* the next put or begin must pass key = NULL */
/* Ends a document: adds the closing newline for indent > 0, and frees the writer's own memory. */
void epg_json_finish(epg_json_writer *writer);

#endif
