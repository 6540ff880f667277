/* What a Benchmark may leave to us: Episode seeds, and Feedback by the mean return. The built-in ones do, and those of
 * a shared library may. */
#ifndef EPG_BENCHMARK_DEFAULTS_H
#define EPG_BENCHMARK_DEFAULTS_H

#include "benchmark/benchmark.h"

/* Splits train, validation and test. The seed of Episode i: the first 8 bytes, big-endian, of SHA-256 over
 * "evopolicygym-NAME/episode-seed/v1\0" + split + "\0" + be64(seed) + be64(i). Scenario: null. USAGE: another split. */
epg_code epg_default_episodes(const char *name, const char *split, uint64_t seed, uint64_t count, epg_episode_spec *out,
                              epg_error *err);

typedef struct epg_mean_return {
    const char *metric;    /* what the mean is called in the content */
    double failed_return;  /* what an Episode counts in which the Policy failed */
    unsigned action_count; /* ints 0 .. action_count - 1 are counted, at most EPG_ACTIONS_COUNTED; 0: floats are */
} epg_mean_return;
enum { EPG_ACTIONS_COUNTED = 8 };

/* Score: the mean return over all Episodes. Content: how returns are distributed, how Episodes ended (a string that the
 * last step left in its metrics; "unfinished" otherwise), which Actions were chosen, each of the first Episodes. One
 * artifact, trace.jsonl: the first and last steps of the first Episodes. Bounded, and tells what it leaves out. */
epg_code epg_mean_return_feedback(const epg_mean_return *rule, const epg_records *records, epg_feedback *out,
                                  epg_error *err);

#endif
