/* The Agent's own timeline (agent/transcript.jsonl, already redacted): its beginning and its end where it is long. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/report_parts.h"
#include "system/files.h"

#include <fcntl.h>

enum { TRANSCRIPT_MAX = 300 * 1024 * 1024, READ_AT_ONCE = 6 * 1024 * 1024, TEXT_SHOWN = 4000 };

typedef struct timeline {
    epg_buffer bytes;
    epg_span *lines; /* into bytes */
    size_t count;
} timeline;

static void timeline_free(timeline *self)
{
    epg_buffer_free(&self->bytes);
    free(self->lines);
}

static bool read_range(int fd, off_t from, size_t size, epg_buffer *out)
{
    while (size > 0) {
        uint8_t *to = epg_buffer_reserve(out, size);
        ssize_t got = pread(fd, to, size, from);
        if (got <= 0) {
            return got == 0;
        }
        out->size += (size_t)got;
        from += got;
        size -= (size_t)got;
    }
    return true;
}

static bool read_transcript(const epg_reading *reading, epg_buffer *out)
{
    EPG_AUTO_CLOSE int directory = -1;
    struct stat info;
    if (epg_dir_open(reading->run, "agent", &directory, NULL) != EPG_OK) {
        return false;
    }
    EPG_AUTO_CLOSE int fd = openat(directory, "transcript.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    if (info.st_size <= 2 * READ_AT_ONCE) {
        return read_range(fd, 0, (size_t)info.st_size, out);
    }
    return read_range(fd, 0, READ_AT_ONCE, out) &&
           read_range(fd, info.st_size - READ_AT_ONCE, READ_AT_ONCE, out); /* what the join spoils is no JSON */
}

static void split_lines(timeline *self)
{
    size_t from = 0;
    size_t room = 0;
    while (from < self->bytes.size) {
        const uint8_t *end = memchr(self->bytes.data + from, '\n', self->bytes.size - from);
        size_t size = end != NULL ? (size_t)(end - self->bytes.data) - from : self->bytes.size - from;
        if (self->count == room) {
            room = room * 2 + 64;
            self->lines = epg_grow_array(self->lines, room, sizeof *self->lines);
        }
        self->lines[self->count++] = epg_span_of(self->bytes.data + from, size);
        from += size + 1;
    }
}

/* What a line takes at most. */
static size_t line_cost(epg_span line)
{
    size_t cost = epg_report_cost(line) + 64;
    return cost < 3 * TEXT_SHOWN ? cost : 3 * TEXT_SHOWN;
}

/* How many lines of the beginning and of the end there is room for. */
static void choose(const timeline *self, size_t room, size_t *head, size_t *tail)
{
    size_t used = 0;
    *head = *tail = 0;
    while (*head < self->count && used + line_cost(self->lines[*head]) <= room / 2) {
        used += line_cost(self->lines[(*head)++]);
    }
    while (*head + *tail < self->count && used + line_cost(self->lines[self->count - 1 - *tail]) <= room) {
        used += line_cost(self->lines[self->count - 1 - (*tail)++]);
    }
}

static void put_value(epg_json_writer *writer, const char *key, const json_t *value)
{
    if (json_is_string(value)) {
        EPG_AUTO_BUFFER kept = {0};
        size_t left =
            epg_report_text(epg_span_of(json_string_value(value), json_string_length(value)), TEXT_SHOWN, &kept);
        if (left > 0) {
            (void)epg_buffer_format(&kept, " ... (%zu bytes more)", left);
        }
        epg_json_put_text(writer, key, epg_buffer_cstr(&kept));
    } else if (json_is_object(value) || json_is_array(value)) {
        EPG_AUTO_FREE char *dumped = json_dumps(value, JSON_COMPACT);
        EPG_AUTO_JSON *text = json_string(dumped != NULL ? dumped : "");
        put_value(writer, key, text);
    } else {
        epg_json_put_json(writer, key, value);
    }
}

/* The members that the page shows. */
static void put_event(epg_json_writer *writer, const json_t *event)
{
    static const char *const keys[] = {"bytes",  "detail", "event",  "exit_code", "failed", "fault",
                                       "final",  "id",     "input",  "message",   "model",  "name",
                                       "output", "reason", "signal", "status",    "text",   "time_unix_ns"};
    const json_t *usage = json_object_get(event, "usage");
    const json_t *counted = usage != NULL ? usage : event;
    epg_json_object(writer, NULL);
    for (size_t i = 0; i < EPG_COUNT(keys); i++) {
        const json_t *value = json_object_get(event, keys[i]);
        if (value != NULL && !json_is_null(value)) {
            put_value(writer, keys[i], value);
        }
    }
    const json_t *tokens = json_object_get(counted, "tokens");
    if (json_is_object(tokens)) {
        epg_json_put_json(writer, "tokens", tokens);
        const json_t *cost = json_object_get(counted, "cost");
        if (json_is_number(cost)) {
            epg_json_put_json(writer, "usd", cost);
        }
    }
    epg_json_end(writer);
}

void epg_report_put_timeline(const epg_reading *reading, epg_report_room *room, epg_json_writer *writer)
{
    EPG_CLEANUP(timeline_free) timeline self = {0};
    size_t head = 0;
    size_t tail = 0;
    if (read_transcript(reading, &self.bytes)) {
        split_lines(&self);
    }
    choose(&self, room->timeline, &head, &tail);
    room->events_left = self.count - head - tail;
    epg_json_object(writer, "timeline");
    epg_json_array(writer, "events");
    for (size_t i = 0; i < self.count; i++) {
        EPG_AUTO_JSON *event = NULL;
        if ((i < head || i >= self.count - tail) &&
            epg_json_parse(self.lines[i], "transcript.jsonl", &event, NULL) == EPG_OK && json_is_object(event)) {
            put_event(writer, event);
        }
    }
    epg_json_end(writer);
    epg_json_put_u64(writer, "left_after", head);
    epg_json_end(writer);
}
