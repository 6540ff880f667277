/* A new file that is written piece by piece, for content that is larger than what should be held in memory.
 *
 * Bytes are gathered and written in blocks, so that many small pieces cost few system calls. A failure on the way is
 * kept and told by the end; a file that did not come to its end is removed. */
#ifndef EPG_SYSTEM_OUTPUT_H
#define EPG_SYSTEM_OUTPUT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct epg_output {
    int dir; /* borrowed */
    char *name;
    int fd; /* -1: none, or at its end */
    epg_buffer waiting;
    int why; /* the errno of the first write that failed; 0: none did */
} epg_output;

/* Makes `name` (without '/') in `dir`, which stays open until the end; EXISTS when it is there. */
epg_code epg_output_begin(epg_output *output, int dir, const char *name, epg_error *err);
void epg_output_put(epg_output *output, epg_span bytes);
/* Writes what waits, sets the mode, syncs when `sync`, and closes. */
epg_code epg_output_end(epg_output *output, mode_t mode, bool sync, epg_error *err);
void epg_output_free(epg_output *output); /* removes the file when it has not come to its end */
#define EPG_AUTO_OUTPUT EPG_CLEANUP(epg_output_free) epg_output

#endif
