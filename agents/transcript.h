/* Transcript: what an agent did, in one form for all agents, while it does it.
 *
 * Bytes of the agent's stdout and stderr go in as they come; lines of `agent/transcript.jsonl` come out
 * (docs/transcript.md), and usage, cost, the final text, the session's id and the kind of failure are kept. How a
 * stream is read is data: rules in the adapter's JSON. Without an adapter, or with a stream of plain text, lines of
 * text become `output` events.
 *
 * A line that is not JSON, is not known, is not UTF-8 or is longer than EPG_TRANSCRIPT_LINE_MAX is told and passed
 * over; memory stays bounded whatever the agent prints. The whole transcript is bounded too: past the bound only what
 * is counted goes on. The bytes fed should have gone through redaction; what is emitted goes through it once more, for
 * secrets that JSON escapes hid. */
#ifndef EPG_AGENTS_TRANSCRIPT_H
#define EPG_AGENTS_TRANSCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "agents/adapter.h"
#include "agents/redaction.h"
#include "base/buffer.h"
#include "base/error.h"

#define EPG_TRANSCRIPT_SCHEMA "evopolicygym/agent-transcript/v1"
enum {
    EPG_TRANSCRIPT_LINE_MAX = 4 * 1024 * 1024, /* longest line of the agent's that is parsed */
    EPG_TRANSCRIPT_TEXT_MAX = 64 * 1024,       /* longest text kept in one event; the rest is cut, and that is told */
};
#define EPG_TRANSCRIPT_BYTES_MAX (INT64_C(256) * 1024 * 1024)

/* A number of tokens or a cost, and how well it is known. */
typedef enum epg_known { EPG_KNOWN_NOT, EPG_KNOWN_AT_LEAST, EPG_KNOWN_EXACTLY } epg_known;
const char *epg_known_name(epg_known known); /* "unknown", "lower_bound", "exact" */

typedef struct epg_tokens {
    uint64_t input;        /* all that went in, cached or not */
    uint64_t cached_input; /* of these, read from a cache */
    uint64_t cache_write;  /* of these, written to a cache */
    uint64_t output;       /* all that came out, reasoning too */
    uint64_t reasoning;    /* of these, reasoning */
} epg_tokens;

typedef struct epg_usage {
    epg_known tokens_known;
    epg_tokens tokens; /* zero when not known */
    epg_known cost_known;
    double cost; /* US dollars */
} epg_usage;

/* Why an agent failed, as far as its stream, its stderr and its adapter tell. */
typedef enum epg_agent_fault {
    EPG_FAULT_NONE,
    EPG_FAULT_LOGIN,      /* user's: no key, a wrong one, not logged in */
    EPG_FAULT_QUOTA,      /* user's: nothing left to spend */
    EPG_FAULT_MODEL,      /* user's: model unknown or not allowed */
    EPG_FAULT_ROOT,       /* user's: refuses to run as root */
    EPG_FAULT_VERSION,    /* user's: this CLI or its runtime is too old or too new for the adapter */
    EPG_FAULT_RATE_LIMIT, /* provider's */
    EPG_FAULT_OVERLOAD,   /* provider's: 5xx, overloaded */
    EPG_FAULT_NETWORK,    /* provider's: not reached, connection dropped */
    EPG_FAULT_OTHER       /* the agent's own */
} epg_agent_fault;
const char *epg_agent_fault_name(epg_agent_fault fault); /* "none", "login", "quota", "model", ... */
/* Whose the failure is: "none", "user", "provider" or "agent". */
const char *epg_agent_fault_side(epg_agent_fault fault);

typedef struct epg_agent_error {
    epg_agent_fault fault;
    int64_t status; /* HTTP status, 0: not told */
    bool final;     /* the agent gave up over it; otherwise it was going to try again */
    char *message;  /* one line, redacted, bounded; NULL when fault is NONE */
} epg_agent_error;

typedef struct epg_transcript epg_transcript;

/* `adapter` may be NULL; it and `redactor` are borrowed. Appends the opening line to `out`. */
epg_transcript *epg_transcript_new(const epg_adapter *adapter, const epg_redactor *redactor, epg_buffer *out);
void epg_transcript_free(epg_transcript *transcript);

/* Takes bytes as they came and appends whole lines of the transcript to `out`, which the caller writes and clears. */
void epg_transcript_stdout(epg_transcript *transcript, epg_span bytes, epg_buffer *out);
void epg_transcript_stderr(epg_transcript *transcript, epg_span bytes, epg_buffer *out);

/* Something of the Host's in the agent's timeline ("submission", "finish", ...): `id`, `detail` and `usage` (since the
 * note before) may be NULL. */
void epg_transcript_note(epg_transcript *transcript, const char *name, const char *id, const char *detail,
                         const epg_usage *usage, epg_buffer *out);

/* Reads what the adapter says stands in files of the agent's home (`home`: an open directory): counts that the stream
 * lacks. New lines only; may be called any number of times, while the agent runs too. Nothing to do for most adapters.
 */
void epg_transcript_home(epg_transcript *transcript, int home, epg_buffer *out);

/* The agent has ended (exit code, or signal when code is -1): last partial lines, the closing line. Call
 * epg_transcript_home before it. */
void epg_transcript_end(epg_transcript *transcript, int exit_code, int signal, epg_buffer *out);

/* What is known so far. Before the end counts are lower bounds at best. */
epg_usage epg_transcript_usage(const epg_transcript *transcript);
/* Usage since the last call of this function (or the start), for the interval that a submission closes. What an agent
 * reports only at its end can't be given to an interval: such intervals are lower bounds or unknown. */
epg_usage epg_transcript_interval(epg_transcript *transcript);
uint64_t epg_usage_tokens_total(const epg_usage *usage); /* input + output */
/* {"cost":…,"cost_known":…,"tokens":{…},"tokens_known":…}, numbers null when not known. */
void epg_usage_write(const epg_usage *usage, epg_json_writer *writer, const char *key);

/* Adds what another start of the agent used. A start that reported nothing makes the sum a lower bound. */
void epg_usage_add(epg_usage *sum, const epg_usage *more);

const char *epg_transcript_final_text(const epg_transcript *transcript); /* NULL: none seen */
const char *epg_transcript_session_id(const epg_transcript *transcript); /* NULL: none seen */
/* The error that stands: a final one, else the last that the agent meant to get over, else fault NONE. */
const epg_agent_error *epg_transcript_error(const epg_transcript *transcript);

/* The session of the agent's own that the transcript in `directory` (of an earlier start) told last: what its CLI's
 * resume form takes. NULL when there is none that could be an argument. Caller frees. */
char *epg_transcript_last_session(int directory);

/* What the starts that the transcript in `directory` tells of used in all, and how many there were. As far as they got
 * to tell: the Host of one may have been killed. `interval` (may be NULL) gets the usage of each note that has some. */
typedef void epg_past_interval(void *context, const char *note, const char *id, const epg_usage *usage);
uint64_t epg_transcript_past(int directory, epg_usage *out, epg_past_interval *interval, void *context);

/* Numbers for the record. */
typedef struct epg_transcript_counts {
    uint64_t lines, unknown_lines, broken_lines, long_lines;
    uint64_t messages, tool_calls, tool_results, errors;
    uint64_t bytes; /* emitted */
    bool cut;       /* the transcript reached its bound */
} epg_transcript_counts;
epg_transcript_counts epg_transcript_counts_of(const epg_transcript *transcript);

#endif
