/* A request read back from RUN/config.json: what the Run was asked to do, for `resume`, `finish` and `run --like`. */
#ifndef EPG_RUNS_REQUEST_H
#define EPG_RUNS_REQUEST_H

#include "runs/history.h"
#include "runs/run.h"

typedef struct epg_stored_request {
    epg_run_request request; /* borrows from what follows and from the history */
    epg_pool_config pool;
    char *guest_root;
    epg_adapter adapter;
    bool has_adapter;
    epg_program initial; /* digest only */
    epg_skill *skills;   /* names and digests only */
    char **command;      /* owned, NULL-terminated */
    const char **inherit;
    const char **secret;
    const char **shown;
    epg_pair *options; /* names borrowed */
    char *missing;     /* why the Agent can't be started (a secret that is not kept and not there now); NULL: it can */
} epg_stored_request;
void epg_stored_request_free(epg_stored_request *stored);

/* USAGE when the document lacks something. `directory`: the Run's absolute path, borrowed. */
epg_code epg_stored_request_read(const char *directory, const epg_history *history, const epg_run_again_request *again,
                                 epg_stored_request *out, epg_error *err);

/* Opens the pool of a Run that was started before. A Benchmark of the user's own may be named from the directory in
 * which that was done: a refusal of one says so. */
epg_code epg_stored_request_open_pool(const epg_pool_config *config, epg_pool **out, epg_error *err);

/* What config.json says of traces; a Run of an older version says nothing and keeps digests. */
void epg_stored_request_traces(const json_t *document, bool *full, uint64_t *bytes);

#endif
