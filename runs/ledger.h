/* The ledger: RUN/events.jsonl, one compact object a line, appended and never rewritten.
 *
 * Every line has "schema", "event", "time_unix_ns", "monotonic_ns", scalar fields of its own, and "previous": the hex
 * SHA-256 of the line before (without its newline), sixty-four zeros in the first. So a line that was removed, added or
 * altered after the fact breaks the chain.
 *
 * Durability, in one place. epg_ledger_append writes at once (a killed Host loses nothing) but does not sync (a power
 * cut may). epg_ledger_sync is called
 *   - after evaluation_started and before the first Episode of it runs: this is the charge;
 *   - after submission_published, finish_requested and every refusal or failure that is answered, before the answer
 *     leaves: nothing that another party can see rests on an event that may be lost;
 *   - at the start and the end of each phase, and before run.json is written;
 *   - after episode_completed through epg_ledger_sync_due, at most every EPG_LEDGER_GROUP_NS: an Episode whose event
 * was lost is evaluated again, at no charge. Records of Episodes are synced ahead of it (epg_ledger_before_sync). One
 * sync covers all lines before it, and costs nothing when nothing was
 * appended since the last. */
#ifndef EPG_RUNS_LEDGER_H
#define EPG_RUNS_LEDGER_H

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"

#define EPG_EVENT_SCHEMA "evopolicygym/run-event/v1"
#define EPG_LEDGER_GROUP_NS (100 * EPG_MILLISECOND)
enum { EPG_LEDGER_LINE_MAX = 1024 * 1024 };

typedef enum epg_field_kind {
    EPG_FIELD_NULL,
    EPG_FIELD_BOOL,
    EPG_FIELD_I64,
    EPG_FIELD_U64,
    EPG_FIELD_DOUBLE,
    EPG_FIELD_TEXT
} epg_field_kind;

typedef struct epg_field {
    const char *key;
    epg_field_kind kind;
    union {
        bool boolean;
        int64_t i64;
        uint64_t u64;
        double number;
        const char *text;
    } value;
} epg_field;

static inline epg_field epg_field_text(const char *key, const char *text) /* NULL writes null */
{
    return (epg_field){.key = key, .kind = text == NULL ? EPG_FIELD_NULL : EPG_FIELD_TEXT, .value.text = text};
}
static inline epg_field epg_field_u64(const char *key, uint64_t value)
{
    return (epg_field){.key = key, .kind = EPG_FIELD_U64, .value.u64 = value};
}
static inline epg_field epg_field_i64(const char *key, int64_t value)
{
    return (epg_field){.key = key, .kind = EPG_FIELD_I64, .value.i64 = value};
}
static inline epg_field epg_field_bool(const char *key, bool value)
{
    return (epg_field){.key = key, .kind = EPG_FIELD_BOOL, .value.boolean = value};
}
static inline epg_field epg_field_double(const char *key, double value)
{
    return (epg_field){.key = key, .kind = EPG_FIELD_DOUBLE, .value.number = value};
}
static inline epg_field epg_field_null(const char *key)
{
    return (epg_field){.key = key, .kind = EPG_FIELD_NULL};
}

typedef struct epg_ledger epg_ledger;

/* A new one in the Run directory open at `run`; EXISTS when there is one. Both the file and its name are durable. */
epg_code epg_ledger_create(int run, epg_ledger **out, epg_error *err);
/* Goes on with one: reads it whole, checks the chain (INVALID names the line), cuts a torn last line (*torn, may be
 * NULL, tells that there was one). */
epg_code epg_ledger_open(int run, epg_ledger **out, bool *torn, epg_error *err);
void epg_ledger_close(epg_ledger *ledger); /* syncs what it can */

/* Fields in any order, at most 32. PUBLICATION when it could not be written: what was written of the line is
 * taken back, so that the file stays whole; after a failed sync, or when that fails too, the ledger refuses all more.
 */
epg_code epg_ledger_append(epg_ledger *ledger, const char *event, const epg_field *fields, size_t count,
                           epg_error *err);
#define EPG_EVENT(ledger, event, err, ...)                                                                             \
    epg_ledger_append((ledger), (event), (const epg_field[]){__VA_ARGS__},                                             \
                      sizeof((const epg_field[]){__VA_ARGS__}) / sizeof(epg_field), (err))
epg_code epg_ledger_sync(epg_ledger *ledger, epg_error *err);
/* `before` is called ahead of each sync that has something to do: for what must be durable before the events that tell
 * of it are. When it fails, nothing more can be recorded. */
void epg_ledger_before_sync(epg_ledger *ledger, epg_code (*before)(void *context, epg_error *err), void *context);
/* Syncs when the oldest event that is not yet durable is EPG_LEDGER_GROUP_NS old. */
epg_code epg_ledger_sync_due(epg_ledger *ledger, epg_error *err);
/* The deadline at which epg_ledger_sync_due would sync; EPG_NEVER when all is durable. */
int64_t epg_ledger_deadline(const epg_ledger *ledger);

/* Number of lines, and the hash that the next line will carry as "previous": what seals the ledger in run.json. */
uint64_t epg_ledger_count(const epg_ledger *ledger);
void epg_ledger_head(const epg_ledger *ledger, char out[EPG_SHA256_HEX]);

/* Reads the ledger of a Run, line by line. `chained` tells whether the line's "previous" fits (a ledger of a foreign
 * Host has none: it never fits there and `has_previous` is false). A visitor's failure ends the reading and is
 * returned. A torn last line is not visited; *torn (may be NULL) tells of it. `previous_count` and `head` (may be NULL)
 * are as from epg_ledger_count and epg_ledger_head. */
typedef struct epg_ledger_line {
    uint64_t number; /* from 1 */
    epg_span text;   /* without its newline */
    const json_t *object;
    const char *event; /* its "event", "" when it has none */
    bool has_previous;
    bool chained;
} epg_ledger_line;
typedef epg_code epg_ledger_visit(void *context, const epg_ledger_line *line, epg_error *err);
epg_code epg_ledger_read(int run, epg_ledger_visit *visit, void *context, uint64_t *count, char head[EPG_SHA256_HEX],
                         bool *torn, epg_error *err);

/* As epg_ledger_read, several times faster: lines come chained as they stand, but not parsed (`object` NULL, `event`
 * ""); see event_line.h. What is no JSON is for the visitor to see. */
epg_code epg_ledger_follow(int run, epg_ledger_visit *visit, void *context, uint64_t *count, char head[EPG_SHA256_HEX],
                           bool *torn, epg_error *err);
/* As epg_ledger_follow for who reads in a hurry: lines are not chained either. */
epg_code epg_ledger_skim(int run, epg_ledger_visit *visit, void *context, uint64_t *count, bool *torn, epg_error *err);

#endif
