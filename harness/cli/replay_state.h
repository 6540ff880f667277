/* What a replay has done so far, in a file of the user's (--state), so that one that was cut off goes on.
 *
 * JSON Lines: the first tells which replay it is (schema `evopolicygym/replay-state/v1`: the Run, the Episodes, the
 * interpreter), each other one is an evaluation as --json tells it, added and synced as it ends. A line that was cut
 * off is dropped. The file belongs to one replay at a time (flock), and is never in a Run directory. */
#ifndef EPG_CLI_REPLAY_STATE_H
#define EPG_CLI_REPLAY_STATE_H

#include "runs/replay.h"

typedef struct epg_replay_state {
    int fd;       /* -1: there is no file */
    json_t *done; /* evaluations by "PHASE SUBMISSION"; NULL: no file */
} epg_replay_state;

/* `on` NULL: the recorded Episodes. `python` NULL: the Run's. USAGE when the file is of another replay, is in use, or
 * lies in a Run. */
epg_code epg_replay_state_open(const char *path, const epg_reading *reading, const epg_replay_on *on,
                               const char *python, epg_replay_state *out, epg_error *err);
void epg_replay_state_close(epg_replay_state *state);

/* The evaluation that stands there (borrowed); NULL: none. USAGE when it was of another Program. */
epg_code epg_replay_state_find(const epg_replay_state *state, const epg_reading *reading, const char *phase,
                               uint64_t number, const json_t **found, epg_error *err);
epg_code epg_replay_state_add(epg_replay_state *state, const json_t *told, epg_error *err);

#endif
