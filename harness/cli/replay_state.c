#include "cli/replay_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "system/files.h"
#include "system/io.h"

#define SCHEMA "evopolicygym/replay-state/v1"
enum { SIZE_MAX_READ = 256 * 1024 * 1024 };

static json_t *text(const char *value)
{
    return value != NULL ? json_string(value) : json_null();
}

/* Which replay it is. */
static json_t *header(const epg_reading *reading, const epg_replay_on *on, const char *python)
{
    const epg_history *history = &reading->history;
    char seed[24];
    json_t *episodes = NULL;
    if (on != NULL) {
        (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)on->seed);
        EPG_AUTO_FREE char *split = epg_printable(on->split, strlen(on->split));
        episodes = json_pack("{s:I, s:s, s:s}", "episodes", (json_int_t)on->episodes, "seed", seed, "split", split);
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:I}", "benchmark", text(history->benchmark_id),
                     "environment_digest", text(history->environment_digest), "initial_program_digest",
                     text(history->initial_digest), "on", episodes != NULL ? episodes : json_null(), "python",
                     text(python), "schema", SCHEMA, "run_started_unix_ns", (json_int_t)history->first_unix_ns);
}

/* "training submission-000003"; fresh Episodes have no phase. */
static char *key_of(const char *phase, const char *id)
{
    return epg_format("%s %s", phase != NULL ? phase : "fresh", id);
}

/* A record is never written to: no file of ours goes below a directory that holds a ledger. */
static epg_code check_place(const char *path, epg_error *err)
{
    const char *slash = strrchr(path, '/');
    EPG_AUTO_FREE char *above = slash == NULL ? epg_strdup(".") : epg_strndup(path, (size_t)(slash - path) + 1);
    EPG_AUTO_FREE char *whole = realpath(above, NULL);
    if (whole == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "--state '%s': there is no directory '%s'", path, above);
    }
    for (;;) {
        EPG_AUTO_FREE char *ledger = epg_format("%s/events.jsonl", whole);
        if (access(ledger, F_OK) == 0) {
            return epg_fail(err, EPG_ERR_USAGE, "--state '%s' lies in a Run's record; name a file elsewhere", path);
        }
        char *last = strrchr(whole, '/');
        if (last == NULL || last == whole) {
            return EPG_OK;
        }
        *last = '\0';
    }
}

static epg_code add_line(int fd, const json_t *value, epg_error *err)
{
    EPG_AUTO_FREE char *line = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    EPG_AUTO_FREE char *whole = line != NULL ? epg_format("%s\n", line) : NULL;
    if (whole == NULL || epg_io_write_all(fd, whole, strlen(whole)) != 0 || epg_io_fdatasync(fd) != 0) {
        return epg_fail_errno(err, errno, "can't write the --state file");
    }
    return EPG_OK;
}

static void take_line(epg_replay_state *self, const json_t *line)
{
    const char *id = json_string_value(json_object_get(line, "submission_id"));
    if (id != NULL) {
        EPG_AUTO_FREE char *key = key_of(json_string_value(json_object_get(line, "phase")), id);
        json_object_set(self->done, key, epg_json_unconst(line));
    }
}

/* Takes what stands there; *size: up to the last whole line. */
static epg_code read_lines(epg_replay_state *self, const json_t *expected, const char *path, size_t *size,
                           epg_error *err)
{
    EPG_AUTO_BUFFER file = {0};
    EPG_TRY(epg_file_read_fd(self->fd, path, SIZE_MAX_READ, &file, err));
    for (;;) {
        const uint8_t *start = file.data + *size;
        const uint8_t *end = file.size > *size ? memchr(start, '\n', file.size - *size) : NULL;
        if (end == NULL) {
            return EPG_OK;
        }
        EPG_AUTO_JSON *line = NULL;
        epg_code code = epg_json_parse(epg_span_of(start, (size_t)(end - start)), path, &line, NULL);
        if (code != EPG_OK || (*size == 0 && json_equal(line, expected) != 1)) {
            return epg_fail(err, EPG_ERR_USAGE,
                            "--state '%s' holds something else than this replay (another Run, other Episodes or "
                            "another interpreter); name a new file",
                            path);
        }
        take_line(self, line);
        *size += (size_t)(end - start) + 1;
    }
}

static epg_code open_state(epg_replay_state *self, const char *path, const json_t *expected, epg_error *err)
{
    struct stat status;
    size_t size = 0;
    self->fd = epg_io_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW, 0600);
    if (self->fd < 0 || fstat(self->fd, &status) != 0) {
        (void)epg_fail_errno(err, errno, "can't open --state '%s'", path);
        return epg_fail_as(err, EPG_ERR_USAGE, "name a file that can be written");
    }
    if (!S_ISREG(status.st_mode)) {
        return epg_fail(err, EPG_ERR_USAGE, "--state '%s' is no file", path);
    }
    if (flock(self->fd, LOCK_EX | LOCK_NB) != 0) {
        return epg_fail(err, EPG_ERR_USAGE, "another replay works on --state '%s'; wait for it, or end it", path);
    }
    EPG_TRY(read_lines(self, expected, path, &size, err));
    if (epg_io_ftruncate(self->fd, (off_t)size) != 0) {
        return epg_fail_errno(err, errno, "can't go on with --state '%s'", path);
    }
    return size == 0 ? add_line(self->fd, expected, err) : EPG_OK;
}

epg_code epg_replay_state_open(const char *path, const epg_reading *reading, const epg_replay_on *on,
                               const char *python, epg_replay_state *out, epg_error *err)
{
    EPG_AUTO_JSON *expected = header(reading, on, python);
    epg_replay_state self = {.fd = -1};
    EPG_TRY(check_place(path, err));
    self.done = json_object();
    epg_code code = open_state(&self, path, expected, err);
    if (code != EPG_OK) {
        epg_replay_state_close(&self);
        return code;
    }
    *out = self;
    return EPG_OK;
}

void epg_replay_state_close(epg_replay_state *state)
{
    epg_close_cleanup(&state->fd);
    json_decref(state->done);
    *state = (epg_replay_state){.fd = -1};
}

epg_code epg_replay_state_find(const epg_replay_state *state, const epg_reading *reading, const char *phase,
                               uint64_t number, const json_t **found, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_reading_name(number, id);
    EPG_AUTO_FREE char *key = key_of(phase, id);
    const json_t *line = json_object_get(state->done, key);
    const char *digest = json_string_value(json_object_get(line, "program_digest"));
    if (line != NULL && (digest == NULL || strcmp(digest, epg_reading_digest(reading, number)) != 0)) {
        return epg_fail(err, EPG_ERR_USAGE, "the --state file tells of another Program of %s; name a new file", id);
    }
    *found = line;
    return EPG_OK;
}

epg_code epg_replay_state_add(epg_replay_state *state, const json_t *told, epg_error *err)
{
    return state->fd >= 0 ? add_line(state->fd, told, err) : EPG_OK;
}
