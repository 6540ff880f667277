/* How `replay` tells an evaluation: as a JSON object, which its state file holds too, and in words from that object. */
#ifndef EPG_CLI_REPLAY_TOLD_H
#define EPG_CLI_REPLAY_TOLD_H

#include "runs/replay.h"

/* The members of docs/replay.md, of a replay or of a measure on fresh Episodes; owned. */
json_t *epg_replay_told(const epg_replay_result *result, bool fresh);

void epg_replay_told_text(const json_t *told, epg_buffer *out);       /* of a replay: lines */
void epg_replay_told_fresh_text(const json_t *told, epg_buffer *out); /* of a measure: a row */
void epg_replay_told_fresh_head(const epg_replay_on *on, epg_buffer *out);

#endif
