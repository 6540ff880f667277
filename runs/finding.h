/* Finding Runs: every directory with an events.jsonl, below a directory. */
#ifndef EPG_RUNS_FINDING_H
#define EPG_RUNS_FINDING_H

#include "runs/reading.h"

typedef struct epg_found_run {
    char *path;
    bool readable;
    epg_reading reading; /* EPG_READ_SUBMISSIONS, when readable; its `run` is closed (-1): many may be found */
    char *why;           /* when not */
} epg_found_run;

typedef struct epg_found_runs {
    epg_found_run *items; /* in byte order of paths, a search after the other */
    size_t count;
} epg_found_runs;
void epg_found_runs_free(epg_found_runs *runs);

/* Adds the Runs below `directory`, itself included. Runs are not entered, links not followed, directories that may not
 * be read passed over. USAGE when `directory` can't be read. */
epg_code epg_find_runs(const char *directory, epg_found_runs *runs, epg_error *err);

#endif
