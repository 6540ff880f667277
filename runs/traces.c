#include "runs/traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/json.h"
#include "base/text.h"
#include "runs/kept_records.h"
#include "system/files.h"
#include "system/io.h"
#include "value/value.h"

#define SCHEMA "evopolicygym/traces/v1"
#define SUFFIX ".jsonl.gz"
enum { OUT_SIZE = 64 * 1024, LEVEL = 3, LINE_MAX_BYTES = 64 * 1024 * 1024, GZIP = 16 + MAX_WBITS };

/* --- lines --- */

/* Gets each line, without its newline. False in *more stops. */
typedef epg_code line_visit(void *context, const epg_buffer *line, bool *more, epg_error *err);

typedef struct trace_line {
    epg_json_writer writer;
    epg_buffer text;
} trace_line;

static void line_free(trace_line *self)
{
    epg_buffer_free(&self->text);
}

static void line_begin(trace_line *self)
{
    epg_buffer_clear(&self->text);
    epg_json_begin(&self->writer, &self->text, 0);
    epg_json_object(&self->writer, NULL);
}

static epg_code line_end(trace_line *self, const char *type, line_visit *visit, void *context, bool *more,
                         epg_error *err)
{
    epg_json_put_text(&self->writer, "type", type);
    epg_json_end(&self->writer);
    epg_json_finish(&self->writer);
    return visit(context, &self->text, more, err);
}

static void put_value(trace_line *self, const char *key, epg_span value)
{
    if (value.size > 0) {
        epg_value_to_json(value, &self->writer, key);
    } else {
        epg_json_put_null(&self->writer, key);
    }
}

static void begin_episode(trace_line *self, const epg_record_head *head, uint64_t place, uint64_t index)
{
    line_begin(self);
    epg_json_put_u64(&self->writer, "environment_seed", head->environment_seed);
    epg_json_put_u64(&self->writer, "episode", place);
    epg_json_put_u64(&self->writer, "episode_index", index);
    epg_json_put_u64(&self->writer, "policy_seed", head->policy_seed);
    put_value(self, "scenario", head->scenario);
}

static void begin_step(trace_line *self, const epg_transition *step, epg_span observation, uint64_t place,
                       uint64_t number)
{
    line_begin(self);
    put_value(self, "action", step->action);
    epg_json_put_u64(&self->writer, "episode", place);
    put_value(self, "metrics", step->metrics);
    put_value(self, "observation", observation);
    epg_json_put_double(&self->writer, "reward", step->reward);
    epg_json_put_u64(&self->writer, "step", number);
}

static void begin_end(trace_line *self, const epg_record_head *head, epg_span observation, uint64_t place,
                      unsigned flags)
{
    line_begin(self);
    epg_json_put_u64(&self->writer, "episode", place);
    epg_json_put_text(&self->writer, "failure", epg_policy_failure_name(head->failure));
    put_value(self, "observation", observation);
    if (head->failure == EPG_POLICY_OK) {
        epg_json_put_double(&self->writer, "reward", head->reward);
    } else {
        epg_json_put_null(&self->writer, "reward");
    }
    epg_json_put_u64(&self->writer, "steps", head->steps);
    epg_json_put_bool(&self->writer, "terminated", (flags & 1U) != 0);
    epg_json_put_bool(&self->writer, "truncated", (flags & 2U) != 0);
}

/* The lines of the next Episode. */
static epg_code episode_lines(const epg_records *records, uint64_t place, uint64_t index, line_visit *visit,
                              void *context, bool *more, epg_error *err)
{
    EPG_CLEANUP(line_free) trace_line out = {.text = {.limit = LINE_MAX_BYTES}};
    EPG_AUTO_BUFFER seen = {0}; /* the observation that stands */
    epg_record_head head;
    epg_transition step;
    bool have = false;
    unsigned flags = 0;
    EPG_TRY(records->next_record(records->context, &head, &have, err));
    if (!have) {
        return EPG_OK;
    }
    (void)epg_buffer_append_span(&seen, head.has_observation ? head.initial_observation : epg_span_of(NULL, 0));
    begin_episode(&out, &head, place, index);
    EPG_TRY(line_end(&out, "episode", visit, context, more, err));
    for (uint64_t number = 0; *more; number++) {
        EPG_TRY(records->next_step(records->context, &step, &have, err));
        if (!have) {
            break;
        }
        begin_step(&out, &step, epg_buffer_span(&seen), place, number);
        EPG_TRY(line_end(&out, "step", visit, context, more, err));
        epg_buffer_clear(&seen);
        (void)epg_buffer_append_span(&seen, step.observation);
        flags = (step.terminated ? 1U : 0U) | (step.truncated ? 2U : 0U);
    }
    if (*more) {
        begin_end(&out, &head, epg_buffer_span(&seen), place, flags);
        EPG_TRY(line_end(&out, "end", visit, context, more, err));
    }
    return out.text.overflow ? epg_fail(err, EPG_ERR_INVALID, "a step is too large for a trace") : EPG_OK;
}

/* --- writing --- */

typedef struct pack {
    z_stream stream;
    int fd;
    uint64_t room, size; /* bytes of the file, at most and now */
    bool over;           /* it does not fit */
} pack;

static epg_code pack_bytes(pack *self, const void *bytes, size_t size, int flush, epg_error *err)
{
    uint8_t out[OUT_SIZE];
    self->stream.next_in = (Bytef *)(uintptr_t)bytes;
    self->stream.avail_in = (uInt)size; /* under LINE_MAX_BYTES */
    do {
        self->stream.next_out = out;
        self->stream.avail_out = sizeof out;
        (void)deflate(&self->stream, flush);
        size_t made = sizeof out - self->stream.avail_out;
        self->size += made;
        self->over = self->over || self->size > self->room;
        if (!self->over && epg_io_write_all(self->fd, out, made) != 0) {
            return epg_fail_errno(err, errno, "can't write a trace");
        }
    } while (self->stream.avail_out == 0 && !self->over);
    return EPG_OK;
}

static epg_code pack_line(void *context, const epg_buffer *text, bool *more, epg_error *err)
{
    pack *self = context;
    EPG_TRY(pack_bytes(self, text->data, text->size, Z_NO_FLUSH, err));
    EPG_TRY(pack_bytes(self, "\n", 1, Z_NO_FLUSH, err));
    *more = !self->over;
    return EPG_OK;
}

static epg_code pack_all(pack *self, int records, const char *name, const epg_evaluation_result *result, epg_error *err)
{
    bool more = true;
    EPG_CLEANUP(line_free) trace_line about = {0};
    EPG_CLEANUP(epg_kept_records_close) epg_kept_records kept = {0};
    line_begin(&about);
    epg_json_put_u64(&about.writer, "episodes", result->count);
    epg_json_put_text(&about.writer, "schema", SCHEMA);
    EPG_TRY(line_end(&about, "about", pack_line, self, &more, err));
    epg_kept_records_open(&kept, records, name, result->episodes, result->count);
    for (size_t i = 0; i < result->count && more; i++) {
        EPG_TRY(episode_lines(&kept.records, i, result->episodes[i].index, pack_line, self, &more, err));
    }
    return more ? pack_bytes(self, NULL, 0, Z_FINISH, err) : EPG_OK;
}

/* Fills a file that nobody sees before it is whole. */
static epg_code write_file(int traces, const char *temporary, const char *file, pack *self, int records,
                           const char *evaluation, const epg_evaluation_result *result, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = epg_io_open(traces, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400);
    if (fd < 0) {
        return epg_fail_errno(err, errno, "can't make a trace");
    }
    self->fd = fd;
    epg_code code = pack_all(self, records, evaluation, result, err);
    if (code == EPG_OK && !self->over &&
        (epg_io_fdatasync(fd) != 0 || epg_io_rename(traces, temporary, traces, file) != 0)) {
        code = epg_fail_errno(err, errno, "can't keep a trace");
    }
    if (code != EPG_OK || self->over) {
        (void)epg_io_unlink(traces, temporary, 0);
    }
    return code;
}

epg_code epg_traces_write(int traces, int records, const char *evaluation, const char *name,
                          const epg_evaluation_result *result, uint64_t room, uint64_t *bytes, epg_error *err)
{
    pack self = {.fd = -1, .room = room};
    if (deflateInit2(&self.stream, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return epg_fail(err, EPG_ERR_IO, "can't compress a trace");
    }
    EPG_AUTO_FREE char *file = epg_format("%s" SUFFIX, name);
    EPG_AUTO_FREE char *temporary = epg_file_temporary_name(EPG_FILE_TEMPORARY);
    epg_code code = write_file(traces, temporary, file, &self, records, evaluation, result, err);
    (void)deflateEnd(&self.stream);
    if (code == EPG_OK) {
        *bytes = self.over ? 0 : self.size;
    }
    return code;
}

char *epg_traces_path(const char *name)
{
    return epg_format("traces/%s" SUFFIX, name);
}

bool epg_traces_exist(int traces, const char *name)
{
    EPG_AUTO_FREE char *file = epg_format("%s" SUFFIX, name);
    return faccessat(traces, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

uint64_t epg_traces_bytes(int traces)
{
    uint64_t sum = 0;
    int fd = openat(traces, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        epg_close_cleanup(&fd);
        return 0;
    }
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) { /* NOLINT(concurrency-mt-unsafe): there are no threads */
        struct stat status;
        if (epg_ends_with(entry->d_name, SUFFIX) && fstatat(traces, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode)) {
            sum += (uint64_t)status.st_size;
        }
    }
    (void)closedir(directory);
    return sum;
}

/* --- comparing --- */

typedef struct comparison {
    gzFile recorded;
    epg_buffer line; /* of the record */
    bool begun;      /* behind the replayed Episode's first line */
    epg_trace_lines *out;
} comparison;

/* The next line of the record; false: there is none, or none that can be read. */
static bool next_line(comparison *self)
{
    char piece[16 * 1024];
    epg_buffer_clear(&self->line);
    while (gzgets(self->recorded, piece, sizeof piece) != NULL) {
        size_t size = strlen(piece);
        bool whole = size > 0 && piece[size - 1] == '\n';
        if (!epg_buffer_append(&self->line, piece, size - whole) || size == 0) {
            return false;
        }
        if (whole) {
            return true;
        }
    }
    return false;
}

/* Moves behind the line that begins an Episode; its place there. */
static bool find_episode(comparison *self, uint64_t index, uint64_t *place)
{
    while (next_line(self)) {
        EPG_AUTO_JSON *line = NULL;
        uint64_t found = 0;
        if (strstr(epg_buffer_cstr(&self->line), "\"type\":\"episode\"") != NULL &&
            epg_json_parse(epg_buffer_span(&self->line), "a trace", &line, NULL) == EPG_OK &&
            epg_json_u64(line, "episode_index", "a trace", &found, NULL) == EPG_OK && found == index &&
            epg_json_u64(line, "episode", "a trace", place, NULL) == EPG_OK) {
            return true;
        }
    }
    return false;
}

static epg_code compare_line(void *context, const epg_buffer *text, bool *more, epg_error *err)
{
    (void)err;
    comparison *self = context;
    if (!self->begun) {
        self->begun = true; /* it was sought by this line: seeds are the plan's */
        return EPG_OK;
    }
    bool have = next_line(self);
    *more = have && strcmp(epg_buffer_cstr(&self->line), epg_buffer_cstr(text)) == 0;
    if (have && !*more) {
        self->out->recorded = epg_strdup(epg_buffer_cstr(&self->line));
        self->out->replayed = epg_strdup(epg_buffer_cstr(text));
    }
    return EPG_OK;
}

epg_code epg_traces_compare(int traces, const char *name, int records, const char *replay,
                            const epg_episode_result *episode, epg_trace_lines *out, epg_error *err)
{
    EPG_AUTO_FREE char *file = epg_format("%s" SUFFIX, name);
    EPG_AUTO_CLOSE int fd = openat(traces, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return EPG_OK;
    }
    comparison self = {.line = {.limit = LINE_MAX_BYTES}, .out = out};
    self.recorded = gzdopen(fd, "rb");
    if (self.recorded == NULL) {
        return epg_fail(err, EPG_ERR_IO, "can't read a trace");
    }
    (void)epg_take_fd(&fd);
    uint64_t place = 0;
    epg_code code = EPG_OK;
    if (find_episode(&self, episode->index, &place)) {
        EPG_CLEANUP(epg_kept_records_close) epg_kept_records kept = {0};
        bool more = true;
        epg_kept_records_open(&kept, records, replay, episode, 1);
        code = episode_lines(&kept.records, place, episode->index, compare_line, &self, &more, err);
    }
    (void)gzclose_r(self.recorded);
    epg_buffer_free(&self.line);
    return code;
}
