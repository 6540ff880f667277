#include "agents/lines.h"

#include <string.h>

#include "base/text.h"

enum { KEPT_OF_LONG = 4096 };

static void emit(epg_lines *lines, epg_line_sink *sink, void *context)
{
    epg_span line = epg_buffer_span(&lines->pending);
    if (line.size > 0 && line.data[line.size - 1] == '\r') {
        line.size--;
    }
    sink(context, line, lines->passed);
    epg_buffer_clear(&lines->pending);
    lines->passed = 0;
}

static void take(epg_lines *lines, epg_span part)
{
    if (lines->passed > 0) {
        lines->passed += part.size;
    } else if (part.size > lines->limit - lines->pending.size) {
        lines->passed = lines->pending.size + part.size;
        size_t room = lines->pending.size < KEPT_OF_LONG ? KEPT_OF_LONG - lines->pending.size : 0;
        epg_buffer_append(&lines->pending, part.data, room < part.size ? room : part.size);
        if (lines->pending.size > KEPT_OF_LONG) {
            lines->pending.size = KEPT_OF_LONG;
        }
    } else {
        epg_buffer_append_span(&lines->pending, part);
    }
}

void epg_lines_feed(epg_lines *lines, epg_span bytes, epg_line_sink *sink, void *context)
{
    while (bytes.size > 0) {
        const uint8_t *end = memchr(bytes.data, '\n', bytes.size);
        size_t size = end != NULL ? (size_t)(end - bytes.data) : bytes.size;
        take(lines, epg_span_of(bytes.data, size));
        if (end == NULL) {
            return;
        }
        emit(lines, sink, context);
        bytes = epg_span_of(end + 1, bytes.size - size - 1);
    }
}

void epg_lines_end(epg_lines *lines, epg_line_sink *sink, void *context)
{
    if (lines->pending.size > 0 || lines->passed > 0) {
        emit(lines, sink, context);
    }
    epg_buffer_free(&lines->pending);
}

static size_t sequence_size(uint8_t first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

void epg_utf8_clean(epg_span text, epg_buffer *out)
{
    if (epg_utf8_valid(text.data, text.size)) {
        epg_buffer_append_span(out, text);
        return;
    }
    for (size_t at = 0; at < text.size;) {
        size_t size = sequence_size(text.data[at]);
        if (size <= text.size - at && epg_utf8_valid(text.data + at, size)) {
            epg_buffer_append(out, text.data + at, size);
            at += size;
        } else {
            epg_buffer_text(out, "\xef\xbf\xbd");
            at++;
        }
    }
}
