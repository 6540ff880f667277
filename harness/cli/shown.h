/* How histories are shown on a terminal: colour, numbers in columns, and text of a Run's that may be hostile. */
#ifndef EPG_CLI_SHOWN_H
#define EPG_CLI_SHOWN_H

#include <stdbool.h>

#include "base/buffer.h"
#include "runs/summary.h"

typedef enum epg_shade { EPG_SHADE_GOOD, EPG_SHADE_BAD, EPG_SHADE_FAINT, EPG_SHADE_STRONG } epg_shade;

typedef struct epg_shown {
    epg_buffer text;
    bool colour;   /* standard output is a terminal */
    bool terminal; /* as above, whatever NO_COLOR says: control bytes are made visible */
} epg_shown;
void epg_shown_begin(epg_shown *shown);
void epg_shown_free(epg_shown *shown);

/* `text` in a colour, when there is colour. Plain callers' text, not a Run's. */
void epg_shown_shade(epg_shown *shown, epg_shade shade, const char *text);
/* A Run's text on one line; NULL shows "-". */
void epg_shown_line(epg_shown *shown, const char *text);
/* A Run's text of many lines, each after `indent`: on a terminal what is no text is made visible. */
void epg_shown_text(epg_shown *shown, const char *text, size_t size, const char *indent);
/* The same for a unified diff, added and removed lines in colour. */
void epg_shown_diff(epg_shown *shown, epg_span diff);

/* The Run's line or two on top of `log` and `show`: state, Benchmark, Agent, budget. */
void epg_shown_run(epg_shown *shown, const epg_reading *reading);

/* "1 Episode", "12 Episodes". Owned. */
char *epg_shown_count(uint64_t count, const char *noun);

/* "1.2 s", "340 ms", "2 min 3 s", "-" when not known; "12.3k"; "$0.0123". Each into a text of 24 bytes. */
enum { EPG_SHOWN_NUMBER = 24 };
void epg_shown_seconds(bool known, double seconds, char out[EPG_SHOWN_NUMBER]);
void epg_shown_tokens(bool known, uint64_t tokens, char out[EPG_SHOWN_NUMBER]);
void epg_shown_cost(bool known, double dollars, char out[EPG_SHOWN_NUMBER]);
void epg_shown_score(bool known, double score, char out[EPG_SHOWN_NUMBER]);
void epg_shown_change(bool known, double change, char out[EPG_SHOWN_NUMBER]); /* with its sign */

#endif
