/* Redaction: no secret in anything that is kept of an agent.
 *
 * A redactor holds what to hide: exact values (of the agent's secret variables; also as base64 at any alignment,
 * percent- encoded, and escaped as in a JSON string) and patterns of known kinds of keys. All of it is one compiled
 * PCRE2 expression over bytes. A filter runs a stream through it: chunks go in as they come, redacted bytes come out,
 * and what might be the beginning of a secret is held back until more has come, so a secret cut by a chunk's border is
 * still found. What is held back is bounded (EPG_REDACTION_HOLD). Each secret found becomes `[redacted]` and is
 * counted. */
#ifndef EPG_AGENTS_REDACTION_H
#define EPG_AGENTS_REDACTION_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum {
    EPG_REDACTION_HOLD = 64 * 1024, /* most bytes that a filter holds back */
    EPG_REDACTION_VALUE_MIN = 6,    /* shorter values are not hidden: they would hide ordinary text */
};
#define EPG_REDACTED "[redacted]"

typedef struct epg_redactor epg_redactor;

/* A redactor that knows the patterns of common keys. Free with epg_redactor_free. */
epg_redactor *epg_redactor_new(void);
void epg_redactor_free(epg_redactor *redactor);
void epg_redactor_cleanup(epg_redactor **redactor);

/* Adds an exact value, before epg_redactor_ready. Values shorter than EPG_REDACTION_VALUE_MIN are passed over. */
void epg_redactor_add_value(epg_redactor *redactor, const char *value);
/* Adds a PCRE2 pattern of the adapter's or the user's own. INVALID names what is wrong with it. */
epg_code epg_redactor_add_pattern(epg_redactor *redactor, const char *pattern, epg_error *err);
/* Compiles what was added; call once, before the redactor is used. */
epg_code epg_redactor_ready(epg_redactor *redactor, epg_error *err);

/* A whole text at once: appends the redacted form of `text` to `out` and returns how many secrets were found. */
uint64_t epg_redact(const epg_redactor *redactor, epg_span text, epg_buffer *out);

/* One stream. The redactor is borrowed and must outlive it. */
typedef struct epg_redaction {
    const epg_redactor *redactor;
    epg_buffer pending; /* held back, after `context` bytes that were already let out */
    size_t context;
    uint64_t found;
} epg_redaction;
void epg_redaction_begin(epg_redaction *stream, const epg_redactor *redactor);
void epg_redaction_feed(epg_redaction *stream, epg_span chunk, epg_buffer *out); /* appends what can be let out now */
void epg_redaction_end(epg_redaction *stream, epg_buffer *out);                  /* appends the rest, and frees */

#endif
