/* Where a replayed Episode first differs, by the traces in the Feedback. Private to replay*.c. */
#ifndef EPG_RUNS_REPLAY_TRACE_H
#define EPG_RUNS_REPLAY_TRACE_H

#include "runs/replay.h"

/* Compares the recorded trace.jsonl of a submission with the replayed Feedback's for the Episode at `place` in the
 * plan; fills step_known, step, what and both values of `out` when the traces show the difference, else nothing. */
void epg_replay_trace(const epg_reading *reading, uint64_t number, const epg_feedback *feedback, size_t place,
                      epg_replay_result *out);

/* The same for two lines of traces that differ (traces.h). */
void epg_replay_lines(const char *recorded, const char *replayed, epg_replay_result *out);

#endif
