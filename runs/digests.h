/* Step digests: eight bytes a step, kept when the records of Episodes go (RUN/traces/NAME.digests), so that a replay
 * can name the first step that differs in any Episode.
 *
 * A file is the line "evopolicygym/step-digests/v1" and for each Episode in plan order be64 index, be64 count of items
 * and the items. An item is 4 bytes of the SHA-256 of an Action and 4 bytes of that of what came of it (observation,
 * reward, flags, metrics); the first item is the initial observation, with zeros for an Action. They are evidence only:
 * a Run without them is whole. */
#ifndef EPG_RUNS_DIGESTS_H
#define EPG_RUNS_DIGESTS_H

#include "evaluation/evaluation.h"

/* Over this many bytes of records a submission leaves no digests. */
#define EPG_DIGESTS_RECORDS_MAX (UINT64_C(64) * 1024 * 1024)

/* Into the directory `traces`, from the records that stand in the directory `records` under `name`. NOT_FOUND when a
 * record is not there any more. */
epg_code epg_digests_write(int traces, int records, const char *name, const epg_evaluation_result *result,
                           epg_error *err);

/* The first step of an Episode that differs from what `file` holds for its index. */
typedef struct epg_digest_difference {
    bool found;
    uint64_t step;    /* as in traces: the Action of step n answers the observation of step n */
    const char *what; /* "action", or "observation" (or the reward or metrics that came with it) */
    char *value;      /* the replayed one as JSON; owned; NULL: there is none */
} epg_digest_difference;
epg_code epg_digests_compare(epg_span file, int records, const char *name, const epg_episode_result *episode,
                             epg_digest_difference *out, epg_error *err);

#endif
