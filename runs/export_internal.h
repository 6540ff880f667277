/* What the two forms of an export share: a walk over the Run in the order of time. */
#ifndef EPG_RUNS_EXPORT_INTERNAL_H
#define EPG_RUNS_EXPORT_INTERNAL_H

#include "runs/export.h"

typedef struct epg_export_state {
    const epg_reading *reading;
    epg_submission_mark *marks;
    epg_buffer out;
    epg_export_sink *sink;
    void *context;
} epg_export_state;

/* One form: called in this order, `agent` and `submission` in the order of time. All may be called with a big buffer in
 * `state->out`; the walk empties it. */
typedef struct epg_export_form {
    epg_code (*begin)(void *form, epg_export_state *state, const char *task, epg_error *err); /* task NULL: unknown */
    epg_code (*agent)(void *form, epg_export_state *state, const json_t *event, epg_error *err);
    /* `feedback` NULL: it failed, or runs */
    epg_code (*submission)(void *form, epg_export_state *state, uint64_t number, const json_t *feedback,
                           epg_error *err);
    epg_code (*end)(void *form, epg_export_state *state, epg_error *err);
} epg_export_form;

epg_code epg_export_walk(epg_export_state *state, const epg_export_form *form, void *self, epg_error *err);

epg_code epg_export_atif(epg_export_state *state, epg_error *err);
epg_code epg_export_jsonl(epg_export_state *state, epg_error *err);

#endif
