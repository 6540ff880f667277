/* Reading a transcript back. The agent could have written to it: nothing in it is trusted. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/lines.h"
#include "agents/pattern.h"
#include "agents/transcript.h"
#include "base/memory.h"

enum { CHUNK = 65536, TOLD_MAX = 4096 };

/* The lines that are looked for are short, and few are: the rest is not even parsed. */
static void take_session(void *context, epg_span line, uint64_t dropped)
{
    static const char mark[] = "\"event\":\"session\"";
    char **last = context;
    EPG_AUTO_JSON *document = NULL;
    if (dropped > 0 || line.size == 0 || memmem(line.data, line.size, mark, sizeof mark - 1) == NULL ||
        epg_json_parse_lenient(line, "transcript", &document, NULL) != EPG_OK) {
        return;
    }
    const char *event = json_string_value(json_object_get(document, "event"));
    const char *id = json_string_value(json_object_get(document, "id"));
    if (event != NULL && strcmp(event, "session") == 0 && id != NULL &&
        epg_pattern_once("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", true, epg_span_text(id))) {
        free(*last);
        *last = epg_strdup(id);
    }
}

static void read_lines(int directory, epg_line_sink *sink, void *context)
{
    EPG_AUTO_CLOSE int fd = openat(directory, "transcript.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return;
    }
    epg_lines lines = {.limit = TOLD_MAX};
    char chunk[CHUNK];
    for (ssize_t size = read(fd, chunk, sizeof chunk); size > 0; size = read(fd, chunk, sizeof chunk)) {
        epg_lines_feed(&lines, epg_span_of(chunk, (size_t)size), sink, context);
    }
    epg_lines_end(&lines, sink, context);
}

char *epg_transcript_last_session(int directory)
{
    char *last = NULL;
    read_lines(directory, take_session, &last);
    return last;
}

/* --- What was used --- */

typedef struct past {
    uint64_t starts;
    epg_usage sum;  /* of the starts before the last */
    epg_usage last; /* of the last, as far as it has told */
    epg_past_interval *interval;
    void *context;
} past;

static uint64_t count_in(const json_t *tokens, const char *key)
{
    uint64_t value = 0;
    const json_t *number = json_object_get(tokens, key);
    return number != NULL && epg_json_is_u64(number, &value) ? value : 0;
}

static epg_known known_in(const json_t *usage, const char *key)
{
    const char *name = json_string_value(json_object_get(usage, key));
    for (int i = EPG_KNOWN_NOT; name != NULL && i <= EPG_KNOWN_EXACTLY; i++) {
        if (strcmp(name, epg_known_name((epg_known)i)) == 0) {
            return (epg_known)i;
        }
    }
    return EPG_KNOWN_NOT;
}

static epg_usage usage_of(const json_t *usage)
{
    const json_t *tokens = json_object_get(usage, "tokens");
    double cost = json_number_value(json_object_get(usage, "cost"));
    return (epg_usage){.tokens_known = known_in(usage, "tokens_known"),
                       .tokens = {.input = count_in(tokens, "input"),
                                  .cached_input = count_in(tokens, "cached_input"),
                                  .cache_write = count_in(tokens, "cache_write"),
                                  .output = count_in(tokens, "output"),
                                  .reasoning = count_in(tokens, "reasoning")},
                       .cost_known = known_in(usage, "cost_known"),
                       .cost = isfinite(cost) && cost > 0 ? cost : 0};
}

static void close_start(past *self)
{
    if (self->starts == 1) {
        self->sum = self->last;
    } else if (self->starts > 1) {
        epg_usage_add(&self->sum, &self->last);
    }
    self->last = (epg_usage){0};
}

/* May say yes to a text that only looks so. */
static bool is_event(epg_span line, const char *name)
{
    EPG_AUTO_FREE char *mark = epg_format("\"event\":\"%s\"", name);
    return line.size > 0 && memmem(line.data, line.size, mark, strlen(mark)) != NULL;
}

static void take_note(const past *self, const json_t *note)
{
    const char *name = json_string_value(json_object_get(note, "name"));
    const char *id = json_string_value(json_object_get(note, "id"));
    const json_t *told = json_object_get(note, "usage");
    if (self->interval != NULL && name != NULL && id != NULL && told != NULL) {
        epg_usage usage = usage_of(told);
        self->interval(self->context, name, id, &usage);
    }
}

static void take_usage(void *context, epg_span line, uint64_t dropped)
{
    past *self = context;
    EPG_AUTO_JSON *document = NULL;
    if (dropped > 0 ||
        !(is_event(line, "transcript") || is_event(line, "usage") || is_event(line, "note") || is_event(line, "end")) ||
        epg_json_parse_lenient(line, "transcript", &document, NULL) != EPG_OK) {
        return;
    }
    const char *event = json_string_value(json_object_get(document, "event"));
    if (event == NULL) {
        return;
    }
    if (strcmp(event, "transcript") == 0) {
        close_start(self);
        self->starts++;
    } else if (strcmp(event, "usage") == 0) {
        self->last = usage_of(document);
    } else if (strcmp(event, "note") == 0) {
        take_note(self, document);
    } else if (strcmp(event, "end") == 0) {
        self->last = usage_of(json_object_get(document, "usage"));
    }
}

uint64_t epg_transcript_past(int directory, epg_usage *out, epg_past_interval *interval, void *context)
{
    past self = {.interval = interval, .context = context};
    read_lines(directory, take_usage, &self);
    close_start(&self);
    *out = self.sum;
    return self.starts;
}
