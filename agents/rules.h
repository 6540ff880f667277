/* Rules: which events stand in one JSON document of an agent's stream, as an adapter's `stream` says.
 *
 * A rule is an object. `match` (paths to what must stand there) decides whether it applies; every rule that applies
 * counts. `each` (a path to a list) with `rules` applies rules to each item of the list. The rest of a rule makes
 * events: session, message, thinking, tool_call, tool_result, usage, notice, error, result. `ignore` says that the line
 * is known and makes none. Paths are "a.b.0.c" from the item at hand, "$.a.b" from the whole document. docs/adapters.md
 * has the details. */
#ifndef EPG_AGENTS_RULES_H
#define EPG_AGENTS_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agents/transcript.h"
#include "base/buffer.h"
#include "base/error.h"

typedef enum epg_event_kind {
    EPG_EVENT_SESSION,
    EPG_EVENT_MESSAGE,
    EPG_EVENT_THINKING,
    EPG_EVENT_TOOL_CALL,
    EPG_EVENT_TOOL_RESULT,
    EPG_EVENT_USAGE,
    EPG_EVENT_NOTICE,
    EPG_EVENT_ERROR,
    EPG_EVENT_RESULT
} epg_event_kind;

/* How a report of usage counts. */
typedef enum epg_count {
    EPG_COUNT_TOTAL,  /* all of the session so far */
    EPG_COUNT_ADD,    /* its own part; a later one with the same key takes the earlier one's place */
    EPG_COUNT_PARTIAL /* as ADD, and known to be less than was used */
} epg_count;

typedef struct epg_event {
    epg_event_kind kind;
    epg_buffer id;   /* session, tool call, tool result; the key of usage */
    epg_buffer name; /* tool's name; session's model */
    epg_buffer text; /* message, thinking, output of a tool, error's message, final text */
    json_t *input;   /* of a tool call; NULL: none */
    bool partial;    /* message: goes on in the next */
    bool failed;     /* tool result */
    bool final;      /* error */
    bool has_exit_code;
    int64_t exit_code;
    int64_t status; /* error: HTTP status or 0 */
    epg_count count;
    bool has_tokens;
    epg_tokens tokens;
    bool has_cost;
    double cost;
} epg_event;
typedef void epg_event_sink(void *context, const epg_event *event);

/* Checks `stream` and `errors` of an adapter (each may be NULL). INVALID. */
epg_code epg_rules_check(const json_t *stream, const json_t *errors, epg_error *err);

/* Patterns of an adapter, compiled when first needed, found by their text. */
typedef struct epg_patterns epg_patterns;
epg_patterns *epg_patterns_new(void);
void epg_patterns_free(epg_patterns *patterns);
const struct epg_pattern *epg_patterns_get(epg_patterns *patterns, const char *text); /* NULL: does not compile */

/* Applies checked rules to one document. False when no rule applied. */
bool epg_rules_apply(const json_t *rules, const json_t *document, epg_patterns *patterns, epg_event_sink *sink,
                     void *context);

bool epg_agent_fault_parse(const char *name, epg_agent_fault *out); /* any but "none" */

/* What an error is: the adapter's `errors` (may be NULL) first, then what HTTP statuses and common words mean. */
epg_agent_fault epg_fault_classify(const json_t *errors, epg_patterns *patterns, int64_t status, epg_span message);

#endif
