#include "runs/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/files.h"
#include "system/io.h"

static const char file_name[] = "events.jsonl";
enum { FIELDS_MAX = 32, OWN_FIELDS = 5, READ_SIZE = 65536 };

struct epg_ledger {
    int fd;
    uint64_t count;
    char head[EPG_SHA256_HEX];
    off_t size;          /* of the whole lines */
    int64_t dirty_since; /* when the oldest line that is not durable was written; EPG_NEVER: none */
    bool broken;
    epg_code (*before)(void *context, epg_error *err);
    void *context;
    epg_buffer line; /* kept for its memory */
};

static void genesis(char head[EPG_SHA256_HEX])
{
    memset(head, '0', EPG_SHA256_HEX - 1);
    head[EPG_SHA256_HEX - 1] = '\0';
}

static void advance_head(char head[EPG_SHA256_HEX], epg_span line)
{
    uint8_t hash[EPG_SHA256_SIZE];
    epg_sha256_once(line.data, line.size, hash);
    epg_hex(hash, sizeof hash, head);
}

static epg_ledger *ledger_new(int fd)
{
    epg_ledger *ledger = epg_alloc(sizeof *ledger);
    *ledger = (epg_ledger){.fd = fd, .dirty_since = EPG_NEVER};
    genesis(ledger->head);
    return ledger;
}

epg_code epg_ledger_create(int run, epg_ledger **out, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = epg_io_open(run, file_name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0644);
    if (fd < 0 && errno == EEXIST) {
        return epg_fail(err, EPG_ERR_EXISTS, "%s exists already", file_name);
    }
    if (fd < 0 || epg_io_fsync(fd) != 0) {
        return epg_fail_errno(err, errno, "cannot make %s", file_name);
    }
    EPG_TRY(epg_dir_sync(run, err));
    *out = ledger_new(epg_take_fd(&fd));
    return EPG_OK;
}

void epg_ledger_close(epg_ledger *ledger)
{
    if (ledger != NULL) {
        (void)epg_ledger_sync(ledger, NULL);
        (void)close(ledger->fd);
        epg_buffer_free(&ledger->line);
        free(ledger);
    }
}

/* --- Appending --- */

static int compare_fields(const void *a, const void *b)
{
    return strcmp((*(const epg_field *const *)a)->key, (*(const epg_field *const *)b)->key);
}

static void put_field(epg_json_writer *json, const epg_field *field)
{
    switch (field->kind) {
    case EPG_FIELD_NULL:
        epg_json_put_null(json, field->key);
        break;
    case EPG_FIELD_BOOL:
        epg_json_put_bool(json, field->key, field->value.boolean);
        break;
    case EPG_FIELD_I64:
        epg_json_put_i64(json, field->key, field->value.i64);
        break;
    case EPG_FIELD_U64:
        epg_json_put_u64(json, field->key, field->value.u64);
        break;
    case EPG_FIELD_DOUBLE:
        epg_json_put_double(json, field->key, field->value.number);
        break;
    case EPG_FIELD_TEXT:
        epg_json_put_text(json, field->key, field->value.text);
        break;
    }
}

static void format_line(epg_ledger *ledger, const char *event, const epg_field *fields, size_t count)
{
    const epg_field own[OWN_FIELDS] = {
        epg_field_text("event", event),
        epg_field_i64("monotonic_ns", epg_monotonic_ns()),
        epg_field_text("previous", ledger->head),
        epg_field_text("schema", EPG_EVENT_SCHEMA),
        epg_field_i64("time_unix_ns", epg_unix_ns()),
    };
    const epg_field *sorted[FIELDS_MAX + OWN_FIELDS];
    for (size_t i = 0; i < OWN_FIELDS; i++) {
        sorted[i] = &own[i];
    }
    for (size_t i = 0; i < count; i++) {
        sorted[OWN_FIELDS + i] = &fields[i];
    }
    qsort(sorted, OWN_FIELDS + count, sizeof sorted[0], compare_fields); /* NOLINT(bugprone-sizeof-expression) */
    epg_json_writer json;
    epg_buffer_clear(&ledger->line);
    epg_json_begin(&json, &ledger->line, 0);
    epg_json_object(&json, NULL);
    for (size_t i = 0; i < OWN_FIELDS + count; i++) {
        put_field(&json, sorted[i]);
    }
    epg_json_end(&json);
    epg_json_finish(&json);
}

epg_code epg_ledger_append(epg_ledger *ledger, const char *event, const epg_field *fields, size_t count, epg_error *err)
{
    if (ledger->broken) {
        return epg_fail(err, EPG_ERR_PUBLICATION, "%s could not be written before; %s is not recorded", file_name,
                        event);
    }
    if (count > FIELDS_MAX) {
        return epg_fail(err, EPG_ERR_INTERNAL, "event %s has %zu fields", event, count);
    }
    format_line(ledger, event, fields, count);
    size_t size = ledger->line.size;
    (void)epg_buffer_byte(&ledger->line, '\n');
    if (epg_io_write_all(ledger->fd, ledger->line.data, size + 1) != 0) {
        int why = errno;
        ledger->broken = epg_io_ftruncate(ledger->fd, ledger->size) != 0;
        (void)epg_fail_errno(err, why, "cannot write %s to %s", event, file_name);
        return epg_fail_as(err, EPG_ERR_PUBLICATION, "the ledger");
    }
    advance_head(ledger->head, epg_span_of(ledger->line.data, size));
    ledger->count++;
    ledger->size += (off_t)(size + 1);
    if (ledger->dirty_since == EPG_NEVER) {
        ledger->dirty_since = epg_monotonic_ns();
    }
    return EPG_OK;
}

epg_code epg_ledger_sync(epg_ledger *ledger, epg_error *err)
{
    if (ledger->broken) {
        return epg_fail(err, EPG_ERR_PUBLICATION, "%s could not be written before", file_name);
    }
    if (ledger->dirty_since == EPG_NEVER) {
        return EPG_OK;
    }
    if (ledger->before != NULL && ledger->before(ledger->context, err) != EPG_OK) {
        ledger->broken = true;
        return epg_fail_as(err, EPG_ERR_PUBLICATION, "before %s", file_name);
    }
    if (epg_io_fdatasync(ledger->fd) != 0) {
        ledger->broken = true; /* what the kernel dropped can't be told: a second sync would say "done" and lie */
        (void)epg_fail_errno(err, errno, "cannot sync %s", file_name);
        return epg_fail_as(err, EPG_ERR_PUBLICATION, "the ledger");
    }
    ledger->dirty_since = EPG_NEVER;
    return EPG_OK;
}

void epg_ledger_before_sync(epg_ledger *ledger, epg_code (*before)(void *context, epg_error *err), void *context)
{
    ledger->before = before;
    ledger->context = context;
}

int64_t epg_ledger_deadline(const epg_ledger *ledger)
{
    return ledger->dirty_since == EPG_NEVER ? EPG_NEVER : ledger->dirty_since + EPG_LEDGER_GROUP_NS;
}

epg_code epg_ledger_sync_due(epg_ledger *ledger, epg_error *err)
{
    return epg_monotonic_ns() >= epg_ledger_deadline(ledger) ? epg_ledger_sync(ledger, err) : EPG_OK;
}

uint64_t epg_ledger_count(const epg_ledger *ledger)
{
    return ledger->count;
}

void epg_ledger_head(const epg_ledger *ledger, char out[EPG_SHA256_HEX])
{
    memcpy(out, ledger->head, EPG_SHA256_HEX);
}

/* --- Reading --- */

typedef enum depth {
    PARSE,  /* lines are parsed and chained */
    FOLLOW, /* lines are chained */
    SKIM    /* neither */
} depth;

typedef struct reader {
    int fd;
    epg_buffer input;
    uint64_t count;
    char head[EPG_SHA256_HEX];
    off_t size; /* of the whole lines read */
    bool torn;  /* the rest is what a power cut left of lines that were never synced */
    depth depth;
    epg_ledger_visit *visit;
    void *context;
} reader;

static epg_code skim_line(reader *state, epg_span text, epg_error *err)
{
    epg_ledger_line line = {.number = ++state->count, .text = text, .event = ""};
    return state->visit(state->context, &line, err);
}

/* A line was visited: the next one follows it. */
static void pass_line(reader *state, epg_span text)
{
    state->count++;
    state->size += (off_t)(text.size + 1);
    advance_head(state->head, text);
}

/* The hash in a line's "previous", without parsing it: inside a JSON text the quotes would be escaped. */
static const uint8_t *find_previous(epg_span text)
{
    static const char member[] = "\"previous\":\"";
    size_t size = sizeof member - 1;
    const uint8_t *found = text.size > 0 ? memmem(text.data, text.size, member, size) : NULL;
    size_t rest = found != NULL ? text.size - size - (size_t)(found - text.data) : 0;
    return rest >= EPG_SHA256_HEX && found[size + EPG_SHA256_HEX - 1] == '"' ? found + size : NULL;
}

static epg_code follow_line(reader *state, epg_span text, epg_error *err)
{
    const uint8_t *previous = find_previous(text);
    epg_ledger_line line = {.number = state->count + 1,
                            .text = text,
                            .event = "",
                            .has_previous = previous != NULL,
                            .chained = previous != NULL && memcmp(previous, state->head, EPG_SHA256_HEX - 1) == 0};
    EPG_TRY(state->visit(state->context, &line, err));
    pass_line(state, text);
    return EPG_OK;
}

static epg_code read_line(reader *state, epg_span text, epg_error *err)
{
    EPG_AUTO_FREE char *what = epg_format("%s line %llu", file_name, (unsigned long long)state->count + 1);
    EPG_AUTO_JSON *object = NULL;
    EPG_TRY(epg_json_parse(text, what, &object, err));
    if (!json_is_object(object)) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: not a JSON object", what);
    }
    const char *event = json_string_value(json_object_get(object, "event"));
    const char *previous = json_string_value(json_object_get(object, "previous"));
    epg_ledger_line line = {
        .number = state->count + 1,
        .text = text,
        .object = object,
        .event = event != NULL ? event : "",
        .has_previous = previous != NULL,
        .chained = previous != NULL && strcmp(previous, state->head) == 0,
    };
    EPG_TRY(state->visit(state->context, &line, err));
    pass_line(state, text);
    return EPG_OK;
}

/* Takes the whole lines from the input; what is left is the start of the next one. */
static epg_code take_lines(reader *state, epg_error *err)
{
    size_t at = 0;
    const uint8_t *newline = NULL;
    while (state->input.size > at && (newline = memchr(state->input.data + at, '\n', state->input.size - at)) != NULL) {
        size_t size = (size_t)(newline - (state->input.data + at));
        epg_span line = epg_span_of(state->input.data + at, size);
        /* No line of ours holds a NUL: the file was longer than what had come to the disk. Nothing after that was
         * synced either. */
        if (memchr(line.data, 0, size) != NULL) {
            state->torn = true;
            break;
        }
        EPG_TRY(state->depth == PARSE    ? read_line(state, line, err)
                : state->depth == FOLLOW ? follow_line(state, line, err)
                                         : skim_line(state, line, err));
        at += size + 1;
    }
    if (at > 0) {
        epg_buffer_drop_front(&state->input, at);
    }
    if (!state->torn && state->input.size > EPG_LEDGER_LINE_MAX) {
        return epg_fail(err, EPG_ERR_LIMIT, "%s line %llu is over %d bytes", file_name,
                        (unsigned long long)state->count + 1, EPG_LEDGER_LINE_MAX);
    }
    return EPG_OK;
}

static epg_code read_all(reader *state, epg_error *err)
{
    for (;;) {
        uint8_t *room = epg_buffer_reserve(&state->input, READ_SIZE);
        ssize_t got = read(state->fd, room, READ_SIZE);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return epg_fail_errno(err, errno, "cannot read %s", file_name);
        }
        if (got == 0) {
            state->torn = state->torn || state->input.size > 0;
            return EPG_OK;
        }
        state->input.size += (size_t)got;
        EPG_TRY(take_lines(state, err));
        if (state->torn) {
            return EPG_OK;
        }
    }
}

static epg_code reader_open(reader *state, int run, int flags, epg_ledger_visit *visit, void *context, epg_error *err)
{
    *state = (reader){.fd = -1, .visit = visit, .context = context};
    genesis(state->head);
    int fd = openat(run, file_name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        int why = errno;
        return why == ENOENT ? epg_fail(err, EPG_ERR_NOT_FOUND, "there is no %s", file_name)
                             : epg_fail_errno(err, why, "cannot open %s", file_name);
    }
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(fd);
        return epg_fail(err, EPG_ERR_INVALID, "%s is no regular file", file_name);
    }
    state->fd = fd;
    return EPG_OK;
}

static void reader_close(reader *state)
{
    epg_buffer_free(&state->input);
    if (state->fd >= 0) {
        (void)close(state->fd);
    }
}

static epg_code read_chained(int run, depth how, epg_ledger_visit *visit, void *context, uint64_t *count,
                             char head[EPG_SHA256_HEX], bool *torn, epg_error *err)
{
    reader state EPG_CLEANUP(reader_close);
    EPG_TRY(reader_open(&state, run, O_RDONLY, visit, context, err));
    state.depth = how;
    EPG_TRY(read_all(&state, err));
    if (count != NULL) {
        *count = state.count;
    }
    if (head != NULL) {
        memcpy(head, state.head, EPG_SHA256_HEX);
    }
    if (torn != NULL) {
        *torn = state.torn;
    }
    return EPG_OK;
}

epg_code epg_ledger_read(int run, epg_ledger_visit *visit, void *context, uint64_t *count, char head[EPG_SHA256_HEX],
                         bool *torn, epg_error *err)
{
    return read_chained(run, PARSE, visit, context, count, head, torn, err);
}

epg_code epg_ledger_follow(int run, epg_ledger_visit *visit, void *context, uint64_t *count, char head[EPG_SHA256_HEX],
                           bool *torn, epg_error *err)
{
    return read_chained(run, FOLLOW, visit, context, count, head, torn, err);
}

epg_code epg_ledger_skim(int run, epg_ledger_visit *visit, void *context, uint64_t *count, bool *torn, epg_error *err)
{
    reader state EPG_CLEANUP(reader_close);
    EPG_TRY(reader_open(&state, run, O_RDONLY, visit, context, err));
    state.depth = SKIM;
    EPG_TRY(read_all(&state, err));
    *count = state.count;
    *torn = state.torn;
    return EPG_OK;
}

static epg_code demand_chain(void *context, const epg_ledger_line *line, epg_error *err)
{
    (void)context;
    return line->chained ? EPG_OK
                         : epg_fail(err, EPG_ERR_INVALID,
                                    "%s line %llu does not follow from the line before: the ledger was altered",
                                    file_name, (unsigned long long)line->number);
}

epg_code epg_ledger_open(int run, epg_ledger **out, bool *torn, epg_error *err)
{
    reader state EPG_CLEANUP(reader_close);
    EPG_TRY(reader_open(&state, run, O_RDWR | O_APPEND, demand_chain, NULL, err));
    state.depth = FOLLOW; /* what is chained was written by a Host, or is what its Run was found to be */
    EPG_TRY(read_all(&state, err));
    bool cut = state.torn;
    /* Synced in any case: the lines may have been written by a Host that was killed before its sync. */
    if ((cut && epg_io_ftruncate(state.fd, state.size) != 0) || epg_io_fsync(state.fd) != 0) {
        return epg_fail_errno(err, errno, "cannot go on with %s", file_name);
    }
    if (torn != NULL) {
        *torn = cut;
    }
    epg_ledger *ledger = ledger_new(epg_take_fd(&state.fd));
    ledger->count = state.count;
    ledger->size = state.size;
    memcpy(ledger->head, state.head, EPG_SHA256_HEX);
    *out = ledger;
    return EPG_OK;
}
