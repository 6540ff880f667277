/* An Episode's record: the bytes that hold all that Feedback and replay need, in the order in which it happened.
 *
 *   'H' be64 environment_seed, be64 policy_seed, be32 size + scenario
 *   'O' be32 size + initial observation                               (at most once)
 *   'T' be32 sizes of action, observation, metrics; 8 bytes reward (IEEE double, big-endian); 1 byte flags
 *       (1 terminated, 2 truncated); the three values                 (once a step)
 *   'Z' 1 byte failure, be64 steps, 8 bytes reward sum                (once, last)
 * Values are canonical bytes. A record holds no clock, so the same Episode gives the same bytes. */
#ifndef EPG_EVALUATION_RECORD_H
#define EPG_EVALUATION_RECORD_H

#include "benchmark/benchmark.h"

typedef struct epg_record_end {
    epg_policy_failure failure;
    uint64_t steps;
    double reward;
} epg_record_end;

void epg_record_put_head(epg_buffer *out, const epg_episode_spec *spec, uint64_t policy_seed);
void epg_record_put_observation(epg_buffer *out, epg_span observation);
void epg_record_put_step(epg_buffer *out, epg_span action, const epg_step *step);
void epg_record_put_end(epg_buffer *out, const epg_record_end *end);

/* Where a reader gets the bytes of record `index` from, from `offset` on: fills `out` with some, at least one; sets the
 * record's whole size and how it ended. */
typedef epg_code epg_record_source(void *context, uint64_t index, uint64_t offset, epg_buffer *out, uint64_t *size,
                                   epg_record_end *end, epg_error *err);

/* Reads `count` records forward, a bounded piece at a time. */
typedef struct epg_record_reader epg_record_reader;
epg_record_reader *epg_record_reader_new(epg_record_source *source, void *context, uint64_t count);
void epg_record_reader_free(epg_record_reader *reader);
void epg_record_reader_records(epg_record_reader *reader, epg_records *out);

#endif
