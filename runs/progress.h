/* What a person, or a machine, is told while a Run goes on: always on stderr, never needed for anything.
 *
 * On a terminal: one live line (phase, submission, Episodes, score, best so far, budget, time left) under lines that
 * stay. Otherwise plain lines. JSON: one object a line, schema `evopolicygym/progress/v1`. A stderr that can't be
 * written to any more (the terminal went away, the reader of the pipe has stopped) is left alone; the Run goes on. */
#ifndef EPG_RUNS_PROGRESS_H
#define EPG_RUNS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum epg_progress_mode {
    EPG_PROGRESS_AUTO,
    EPG_PROGRESS_PLAIN,
    EPG_PROGRESS_JSON,
    EPG_PROGRESS_NONE
} epg_progress_mode;
epg_code epg_progress_mode_parse(const char *text, epg_progress_mode *out,
                                 epg_error *err); /* auto, plain, json, none */

typedef struct epg_progress_state {
    const char *phase;      /* "agent", "validation", "assessment", "ending" */
    const char *submission; /* being evaluated; NULL: none */
    uint64_t completed;     /* Episodes of it */
    uint64_t total;
    bool has_score; /* of the last published submission */
    double score;
    bool has_best;
    double best;
    const char *best_submission;
    uint64_t submissions; /* published */
    uint64_t budget_remaining;
    uint64_t budget;
    int64_t deadline; /* EPG_NEVER: none */
} epg_progress_state;

typedef struct epg_progress {
    bool stuck;             /* stderr is a pipe or terminal that nobody reads from at the moment */
    epg_progress_mode mode; /* AUTO is never kept: the live line is `live` */
    bool live;
    bool shown; /* the live line is on the screen */
    int64_t last;
    int64_t began;
} epg_progress;

void epg_progress_open(epg_progress *progress, epg_progress_mode mode);
/* "1 Episode", "20 Episodes", "3 of 20 Episodes failed", for a line. Caller frees. */
char *epg_progress_episodes(uint64_t count, uint64_t failed);
/* A line that stays, for people filled into 80 columns: plain text without a newline. `event` names it for JSON. */
void epg_progress_line(epg_progress *progress, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The live line, at most ten times a second unless `now`. */
void epg_progress_show(epg_progress *progress, const epg_progress_state *state, bool now);
void epg_progress_close(epg_progress *progress); /* takes the live line away */

#endif
