/* One line of a ledger, taken apart without a tree: a flat object of scalars, as every event is (CONTRACTS section 9).
 * Several times cheaper than a JSON parser, for who reads a hundred thousand of them. */
#ifndef EPG_RUNS_EVENT_LINE_H
#define EPG_RUNS_EVENT_LINE_H

#include "base/buffer.h"
#include "base/error.h"

enum { EPG_EVENT_LINE_FIELDS = 48 };

typedef struct epg_event_line {
    epg_buffer text; /* a copy, cut up in place */
    struct {
        const char *key;
        const char *value; /* a string's content, else the literal ("12", "null") */
        bool is_text;
    } fields[EPG_EVENT_LINE_FIELDS];
    size_t count;
} epg_event_line;

/* Takes a line (without its newline) apart; `line` may be used again and again. INVALID for what is no flat object. */
epg_code epg_event_line_read(epg_event_line *line, epg_span text, epg_error *err);
void epg_event_line_free(epg_event_line *line);

/* Valid until the next read; NULL, 0 or 0.0 for a member that is missing or of another kind. */
const char *epg_event_line_text(const epg_event_line *line, const char *key);
uint64_t epg_event_line_u64(const epg_event_line *line, const char *key);
int64_t epg_event_line_i64(const epg_event_line *line, const char *key);
double epg_event_line_double(const epg_event_line *line, const char *key);
bool epg_event_line_is_number(const epg_event_line *line, const char *key);

#endif
