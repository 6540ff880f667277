/* A Run's trajectory for other tools and for training: the task, what the Agent said and did, its submissions with
 * their Feedback, and the outcome, in the order of time. Two forms:
 *
 *   ATIF   one JSON document of the Agent Trajectory Interchange Format (schema_version "ATIF-v1.4")
 *   JSONL  one JSON object a line, schema evopolicygym/trajectory/v1: a "run" line, "agent" lines (as in
 *          agent/transcript.jsonl), "submission" lines, an "outcome" line
 *
 * What the Agent did is what agent/transcript.jsonl has, which is redacted already; no held-out content is in it but
 * scores. Works for a Run that is not over too, as far as it came. */
#ifndef EPG_RUNS_EXPORT_H
#define EPG_RUNS_EXPORT_H

#include "runs/summary.h"

typedef enum epg_export_format { EPG_EXPORT_ATIF, EPG_EXPORT_JSONL } epg_export_format;
epg_code epg_export_format_parse(const char *text, epg_export_format *out, epg_error *err); /* USAGE */

/* Takes what was written so far and clears the buffer; called again and again, so that memory stays small. */
typedef epg_code epg_export_sink(void *context, epg_buffer *bytes, epg_error *err);

/* INVALID when the transcript or a Feedback can't be read; what was written by then is no whole document. */
epg_code epg_export(const epg_reading *reading, epg_export_format format, epg_export_sink *sink, void *context,
                    epg_error *err);

#endif
