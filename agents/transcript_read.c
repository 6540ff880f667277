/* Reading a transcript back. The agent could have written to it: nothing in it is trusted. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/lines.h"
#include "agents/pattern.h"
#include "agents/transcript.h"
#include "base/memory.h"

enum { CHUNK = 65536, SESSION_LINE_MAX = 4096 };

/* Lines of sessions are short, and few lines are: the rest is not even parsed. */
static void take_line(void *context, epg_span line, uint64_t dropped)
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

char *epg_transcript_last_session(int directory)
{
    EPG_AUTO_CLOSE int fd = openat(directory, "transcript.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    char *last = NULL;
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return NULL;
    }
    epg_lines lines = {.limit = SESSION_LINE_MAX};
    char chunk[CHUNK];
    for (ssize_t size = read(fd, chunk, sizeof chunk); size > 0; size = read(fd, chunk, sizeof chunk)) {
        epg_lines_feed(&lines, epg_span_of(chunk, (size_t)size), take_line, &last);
    }
    epg_lines_end(&lines, take_line, &last);
    return last;
}
