/* availability.json: which bulk artifacts of a submission are still there. Part of publication and retention. */
#ifndef EPG_RUNS_AVAILABILITY_H
#define EPG_RUNS_AVAILABILITY_H

#include "base/hash.h"
#include "base/json.h"
#include "benchmark/benchmark.h"

#define EPG_AVAILABILITY_SCHEMA "evopolicygym/artifact-availability/v1"

typedef struct epg_bulk_item {
    char *name;
    char sha256[EPG_SHA256_HEX];
    uint64_t size;
    bool available;
} epg_bulk_item;

typedef struct epg_availability {
    uint64_t number; /* of the submission; 0: none */
    epg_bulk_item *items;
    size_t count;
} epg_availability;
void epg_availability_free(epg_availability *availability);

/* Of a fresh publication: all there. `hashes`: one a Feedback artifact, in its order. */
void epg_availability_of(uint64_t number, const epg_feedback *feedback, const char (*hashes)[EPG_SHA256_HEX],
                         epg_availability *out);
void epg_availability_to_json(const epg_availability *availability, epg_buffer *out);
/* INVALID when the document is not one of submission `number`, or names a path that is none of an artifact's. */
epg_code epg_availability_from_json(const json_t *document, uint64_t number, epg_availability *out, epg_error *err);
uint64_t epg_availability_bytes(const epg_availability *availability); /* of what is there, in one copy */

#endif
