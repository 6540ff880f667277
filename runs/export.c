#include "runs/export_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "system/files.h"

enum { TASK_MAX = 16 * 1024 * 1024, LINE_MAX_BYTES = 16 * 1024 * 1024, FLUSH_AT = 1024 * 1024 };

epg_code epg_export_format_parse(const char *text, epg_export_format *out, epg_error *err)
{
    if (strcmp(text, "atif") == 0) {
        *out = EPG_EXPORT_ATIF;
    } else if (strcmp(text, "jsonl") == 0) {
        *out = EPG_EXPORT_JSONL;
    } else {
        return epg_fail(err, EPG_ERR_USAGE, "--format takes atif or jsonl");
    }
    return EPG_OK;
}

static epg_code flush(epg_export_state *state, size_t at, epg_error *err)
{
    return state->out.size >= at ? state->sink(state->context, &state->out, err) : EPG_OK;
}

/* --- the transcript --- */

static void close_file(FILE **file)
{
    if (*file != NULL) {
        (void)fclose(*file);
    }
}

/* *out NULL: there is none (a foreign Host's Run, or an Agent that never started). */
static epg_code open_transcript(const epg_reading *reading, FILE **out, epg_error *err)
{
    EPG_AUTO_CLOSE int agent = -1;
    struct stat info;
    *out = NULL;
    if (epg_dir_open(reading->run, "agent", &agent, NULL) != EPG_OK) {
        return EPG_OK;
    }
    EPG_AUTO_CLOSE int fd = openat(agent, "transcript.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return EPG_OK;
    }
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return epg_fail(err, EPG_ERR_INVALID, "%s/agent/transcript.jsonl can't be read", reading->path);
    }
    *out = fdopen(fd, "re");
    if (*out == NULL) {
        return epg_fail_errno(err, errno, "%s/agent/transcript.jsonl", reading->path);
    }
    (void)epg_take_fd(&fd);
    return EPG_OK;
}

/* A line that a dying Host left torn is passed over; it can only be the last of its Host. */
static json_t *next_event(FILE *transcript)
{
    EPG_AUTO_FREE char *line = NULL;
    size_t room = 0;
    ssize_t size = 0;
    while ((size = getline(&line, &room, transcript)) > 0) {
        json_t *event = NULL;
        if (size <= LINE_MAX_BYTES &&
            epg_json_parse(epg_span_of(line, (size_t)size), "transcript", &event, NULL) == EPG_OK) {
            return event;
        }
    }
    return NULL;
}

/* --- the walk --- */

static int64_t ended_at(const epg_history_submission *submission)
{
    return submission->ended_unix_ns != 0 ? submission->ended_unix_ns : INT64_MAX;
}

static epg_code put_submission(epg_export_state *state, const epg_export_form *form, void *self, uint64_t number,
                               epg_error *err)
{
    EPG_AUTO_JSON *feedback = NULL;
    epg_code code = epg_reading_feedback(state->reading, number, &feedback, err);
    if (code != EPG_OK && code != EPG_ERR_NOT_FOUND) {
        return code;
    }
    EPG_TRY(form->submission(self, state, number, feedback, err));
    return flush(state, FLUSH_AT, err);
}

static epg_code put_until(epg_export_state *state, const epg_export_form *form, void *self, int64_t when,
                          uint64_t *next, epg_error *err)
{
    const epg_history *history = &state->reading->history;
    while (*next <= history->submission_count && ended_at(&history->submissions[*next - 1]) <= when) {
        EPG_TRY(put_submission(state, form, self, (*next)++, err));
    }
    return EPG_OK;
}

static epg_code read_task(const epg_reading *reading, char **out, epg_error *err)
{
    EPG_AUTO_CLOSE int agent = -1;
    EPG_AUTO_BUFFER text = {0};
    if (epg_dir_open(reading->run, "agent", &agent, NULL) != EPG_OK) {
        return EPG_OK;
    }
    epg_code code = epg_file_read(agent, "instructions.md", TASK_MAX, &text, err);
    if (code == EPG_ERR_NOT_FOUND) {
        return EPG_OK;
    }
    EPG_TRY(code);
    if (!epg_utf8_valid(text.data, text.size) || memchr(epg_buffer_cstr(&text), '\0', text.size) != NULL) {
        return epg_fail(err, EPG_ERR_INVALID, "%s/agent/instructions.md is no text", reading->path);
    }
    *out = epg_buffer_take_text(&text);
    return EPG_OK;
}

epg_code epg_export_walk(epg_export_state *state, const epg_export_form *form, void *self, epg_error *err)
{
    EPG_AUTO_FREE char *task = NULL;
    FILE *transcript EPG_CLEANUP(close_file) = NULL;
    uint64_t next = 1;
    EPG_TRY(read_task(state->reading, &task, err));
    EPG_TRY(open_transcript(state->reading, &transcript, err));
    EPG_TRY(form->begin(self, state, task, err));
    for (json_t *at = NULL; transcript != NULL && (at = next_event(transcript)) != NULL;) {
        EPG_AUTO_JSON *event = at;
        EPG_TRY(put_until(state, form, self, json_integer_value(json_object_get(event, "time_unix_ns")), &next, err));
        EPG_TRY(form->agent(self, state, event, err));
        EPG_TRY(flush(state, FLUSH_AT, err));
    }
    EPG_TRY(put_until(state, form, self, INT64_MAX, &next, err));
    EPG_TRY(form->end(self, state, err));
    return flush(state, 0, err);
}

epg_code epg_export(const epg_reading *reading, epg_export_format format, epg_export_sink *sink, void *context,
                    epg_error *err)
{
    EPG_AUTO_FREE epg_submission_mark *marks = epg_alloc_array(reading->history.submission_count, sizeof *marks);
    epg_export_state state = {.reading = reading, .marks = marks, .sink = sink, .context = context};
    epg_summary_marks(reading, marks);
    epg_code code = format == EPG_EXPORT_ATIF ? epg_export_atif(&state, err) : epg_export_jsonl(&state, err);
    epg_buffer_free(&state.out);
    return code;
}
