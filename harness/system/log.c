#include "system/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 65536 };

void epg_log_open(epg_log *log, uint64_t limit)
{
    *log = (epg_log){.half = (size_t)(limit / 2)};
}

static void append_tail(epg_log *log, const uint8_t *data, size_t size)
{
    log->tail_total += size;
    if (log->half == 0) {
        return;
    }
    if (log->tail == NULL) {
        log->tail = epg_alloc(log->half);
    }
    if (size > log->half) {
        data += size - log->half;
        size = log->half;
    }
    size_t at = (size_t)((log->tail_total - size) % log->half);
    size_t first = size < log->half - at ? size : log->half - at;
    memcpy(log->tail + at, data, first);
    memcpy(log->tail, data + first, size - first);
}

void epg_log_append(epg_log *log, const uint8_t *data, size_t size)
{
    size_t room = log->half - log->head.size;
    size_t first = size < room ? size : room;
    if (first > 0) {
        (void)epg_buffer_append(&log->head, data, first);
    }
    if (size > first) {
        append_tail(log, data + first, size - first);
    }
}

bool epg_log_read(epg_log *log, int fd)
{
    uint8_t chunk[READ_SIZE];
    ssize_t got = read(fd, chunk, sizeof chunk);
    if (got > 0) {
        epg_log_append(log, chunk, (size_t)got);
        return true;
    }
    return got < 0 && (errno == EINTR || errno == EAGAIN);
}

uint64_t epg_log_dropped(const epg_log *log)
{
    return log->tail_total > log->half ? log->tail_total - log->half : 0;
}

void epg_log_text(const epg_log *log, epg_buffer *out)
{
    uint64_t dropped = epg_log_dropped(log);
    (void)epg_buffer_append_span(out, epg_buffer_span(&log->head));
    if (dropped == 0) {
        (void)epg_buffer_append(out, log->tail, (size_t)log->tail_total);
        return;
    }
    (void)epg_buffer_format(out, "\n[%" PRIu64 " bytes not kept]\n", dropped);
    if (log->half > 0) {
        size_t at = (size_t)(log->tail_total % log->half);
        (void)epg_buffer_append(out, log->tail + at, log->half - at);
        (void)epg_buffer_append(out, log->tail, at);
    }
}

void epg_log_close(epg_log *log)
{
    epg_buffer_free(&log->head);
    free(log->tail);
    *log = (epg_log){0};
}
