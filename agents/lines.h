/* Lines out of a stream of bytes, in bounded memory. */
#ifndef EPG_AGENTS_LINES_H
#define EPG_AGENTS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* `line` has no line end (LF or CR LF). When `dropped` is not 0 the line was longer than the bound: that many bytes in
 * all, and `line` holds its beginning. */
typedef void epg_line_sink(void *context, epg_span line, uint64_t dropped);

typedef struct epg_lines {
    size_t limit; /* longest line kept whole */
    epg_buffer pending;
    uint64_t passed; /* bytes of an over-long line so far, 0: the line is not over-long */
} epg_lines;

void epg_lines_feed(epg_lines *lines, epg_span bytes, epg_line_sink *sink, void *context);
void epg_lines_end(epg_lines *lines, epg_line_sink *sink, void *context); /* the last line without an end; frees */

/* Appends `text` with every byte that is not UTF-8 replaced by U+FFFD. */
void epg_utf8_clean(epg_span text, epg_buffer *out);

#endif
