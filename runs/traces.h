/* Whole traces: every step of every Episode of an evaluation, kept when its records go (RUN/traces/NAME.jsonl.gz),
 * where the Run asked for them, so that a replay can name the first difference with both values, and so that people and
 * tools can read what happened (zcat).
 *
 * A file is gzip'd JSON Lines, in plan order:
 *   {"episodes":2,"schema":"evopolicygym/traces/v1","type":"about"}
 *   {"environment_seed":..,"episode":0,"episode_index":4,"policy_seed":..,"scenario":..,"type":"episode"}
 *   {"action":..,"episode":0,"metrics":..,"observation":..,"reward":..,"step":0,"type":"step"}     the observation that
 *       the Policy saw, the Action with which it answered, and the reward and metrics which that brought
 *   {"episode":0,"failure":null,"observation":..,"reward":..,"steps":..,"terminated":..,"truncated":..,"type":"end"}
 * "episode" counts from 0 within the evaluation, "episode_index" is that of the pool. Values are in the public JSON
 * form. A step that was asked for and never answered has no line. They are evidence only: a Run without them is whole.
 */
#ifndef EPG_RUNS_TRACES_H
#define EPG_RUNS_TRACES_H

#include "evaluation/evaluation.h"

#define EPG_TRACES_BYTES (UINT64_C(256) * 1024 * 1024) /* a Run's budget, when it names none */

/* Writes the file of `name` into the directory `traces`, from the records in the directory `records` under
 * `evaluation`. A file over `room` bytes is not kept: *bytes is 0 then, else the size of the file. */
epg_code epg_traces_write(int traces, int records, const char *evaluation, const char *name,
                          const epg_evaluation_result *result, uint64_t room, uint64_t *bytes, epg_error *err);
char *epg_traces_path(const char *name); /* in a Run directory; owned */
bool epg_traces_exist(int traces, const char *name);
/* What the files in a directory come to. */
uint64_t epg_traces_bytes(int traces);

/* Compares a kept trace with a replayed Episode line by line, up to the first that differs. `recorded`, `replayed`: the
 * lines, owned; NULL: there is none. Both NULL: no line differs, or nothing was kept of this Episode. */
typedef struct epg_trace_lines {
    char *recorded, *replayed;
} epg_trace_lines;
epg_code epg_traces_compare(int traces, const char *name, int records, const char *replay,
                            const epg_episode_result *episode, epg_trace_lines *out, epg_error *err);

#endif
