/* What an external Benchmark prints: kept within bounds, and shown as a few lines that can't do a terminal harm. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "benchmark/external_internal.h"

enum { LINE_SHOWN = 160, READS_MOST = 64 };

void epg_external_take_output(void *context)
{
    epg_external *self = context;
    if (self->output >= 0 && !epg_log_read(&self->log, self->output)) {
        epg_close_cleanup(&self->output);
        self->output = self->channel.aside.fd = -1;
    }
}

static bool takes_more(epg_external *self)
{
    uint64_t before = self->log.head.size + self->log.tail_total;
    epg_external_take_output(self);
    return self->log.head.size + self->log.tail_total > before;
}

/* Where the last `lines` lines of the text begin; *total: how many there are. */
static size_t last_lines(epg_span text, size_t lines, size_t *total)
{
    size_t from = text.size;
    *total = 0;
    for (size_t at = text.size; at > 0; at--) {
        bool starts = at == 1 || text.data[at - 2] == '\n';
        *total += starts;
        from = starts && *total <= lines ? at - 1 : from;
    }
    return from;
}

static void put_line(epg_buffer *out, epg_span line)
{
    bool cut = line.size > LINE_SHOWN;
    EPG_AUTO_FREE char *shown = epg_printable((const char *)line.data, cut ? LINE_SHOWN : line.size);
    (void)epg_buffer_format(out, "  | %s%s\n", shown, cut ? " [...]" : "");
}

void epg_external_show_output(epg_external *self, size_t lines)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_BUFFER shown = {0};
    size_t total = 0;
    for (int reads = 0; reads < READS_MOST && takes_more(self); reads++) {
        /* what is there; a process that we could not end may still print */
    }
    epg_log_text(&self->log, &text);
    epg_span rest = epg_buffer_span(&text);
    if (rest.size == 0) {
        return;
    }
    size_t at = last_lines(rest, lines, &total);
    const char *clear = isatty(STDERR_FILENO) == 1 ? "\r\033[K" : ""; /* of a line that tells progress */
    (void)epg_buffer_format(&shown, "%s%s printed%s:\n", clear, self->name, total > lines ? ", at the end" : "");
    while (at < rest.size) {
        const uint8_t *end = memchr(rest.data + at, '\n', rest.size - at);
        size_t size = end != NULL ? (size_t)(end - rest.data) - at : rest.size - at;
        put_line(&shown, epg_span_of(rest.data + at, size));
        at += size + 1;
    }
    ssize_t ignored = write(STDERR_FILENO, shown.data, shown.size); /* at once, for other workers write there too */
    (void)ignored;
    uint64_t limit = 2 * (uint64_t)self->log.half;
    epg_log_close(&self->log);
    epg_log_open(&self->log, limit);
}
