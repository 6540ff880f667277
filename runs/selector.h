/* Episode selectors: "0,4:8" on the client's command line (CONTRACTS section 8). */
#ifndef EPG_RUNS_SELECTOR_H
#define EPG_RUNS_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct epg_indices {
    uint64_t *items; /* strictly increasing */
    size_t count;
} epg_indices;
void epg_indices_free(epg_indices *indices);
void epg_indices_copy(const epg_indices *from, epg_indices *out);

/* Comma-separated decimal indices and half-open START:END ranges, strictly increasing, no overlap, no white space, at
 * most 2,048 indices in all. INVALID or LIMIT; the text says what is wrong and where. */
epg_code epg_selector_parse(const char *text, epg_indices *out, epg_error *err);

/* To keep many: a few bytes for each run of neighbours, appended to `out`. unpack is given what begins with them; false
 * when that can't be. */
void epg_indices_pack(const epg_indices *indices, epg_buffer *out);
bool epg_indices_unpack(epg_span bytes, epg_indices *out);

/* "0,4,5,6": every index, as events write them. */
void epg_indices_text(const epg_indices *indices, epg_buffer *out);
/* "0,4:7": as short as a selector can say it. */
void epg_selector_text(const epg_indices *indices, epg_buffer *out);

#endif
