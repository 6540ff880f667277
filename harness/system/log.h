/* The output of a process: the first and the last of it are kept, what lies between is counted. */
#ifndef EPG_SYSTEM_LOG_H
#define EPG_SYSTEM_LOG_H

#include "base/buffer.h"

typedef struct epg_log {
    size_t half; /* bytes kept of each end */
    epg_buffer head;
    uint8_t *tail;       /* a ring of `half` bytes */
    uint64_t tail_total; /* bytes that ever went to the ring */
} epg_log;

void epg_log_open(epg_log *log, uint64_t limit);
void epg_log_append(epg_log *log, const uint8_t *data, size_t size);
/* Takes what can be read from `fd` now: at most one read. False at the end or on an error. */
bool epg_log_read(epg_log *log, int fd);
uint64_t epg_log_dropped(const epg_log *log);
/* Head and tail in one text, with a line between them that tells the cut. */
void epg_log_text(const epg_log *log, epg_buffer *out);
void epg_log_close(epg_log *log);

#endif
