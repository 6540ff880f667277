#include "runs/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/store.h"
#include "runs/records.h"
#include "system/files.h"
#include "system/tree.h"

enum { DOCUMENT_MAX = 256 * 1024 * 1024 };

/* Looked at, never kept: a Host that starts meanwhile tries again. */
bool epg_run_is_held(int run)
{
    EPG_AUTO_CLOSE int fd = openat(run, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void epg_reading_free(epg_reading *reading)
{
    epg_history_free(&reading->history);
    epg_close_cleanup(&reading->run);
    if (reading->store != NULL) {
        epg_store_close(*reading->store);
    }
    free((void *)reading->store);
    free(reading->path);
    *reading = (epg_reading){.run = -1};
}

epg_code epg_reading_open(const char *path, epg_reading_depth depth, epg_reading *out, epg_error *err)
{
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    EPG_TRY(epg_run_directory_open(path, &reading.run, err));
    reading.path = epg_strdup(path);
    reading.store = (epg_store **)epg_alloc(sizeof(epg_store *));
    reading.locked = epg_run_is_held(reading.run);
    epg_code code = depth == EPG_READ_EPISODES ? epg_history_read_episodes(reading.run, &reading.history, err)
                                               : epg_history_skim(reading.run, &reading.history, err);
    if (code != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "the Run '%s' can't be read", path);
    }
    *out = reading;
    reading = (epg_reading){.run = -1};
    return EPG_OK;
}

const char *epg_reading_state(const epg_reading *reading)
{
    return epg_history_state(&reading->history, reading->locked);
}

void epg_reading_name(uint64_t number, char out[EPG_SUBMISSION_ID_TEXT])
{
    if (number == 0) {
        memcpy(out, "initial", sizeof "initial");
    } else {
        epg_submission_id(number, out);
    }
}

const epg_history_submission *epg_reading_submission(const epg_reading *reading, uint64_t number)
{
    return number >= 1 && number <= reading->history.submission_count ? &reading->history.submissions[number - 1]
                                                                      : NULL;
}

const char *epg_reading_digest(const epg_reading *reading, uint64_t number)
{
    const char *initial = reading->history.initial_digest;
    return number > 0 ? reading->history.submissions[number - 1].facts.program_digest : initial != NULL ? initial : "";
}

/* --- which submission --- */

static epg_code find_best(const epg_reading *reading, uint64_t *number, epg_error *err)
{
    const epg_history *history = &reading->history;
    if (!history->direction_known) {
        return epg_fail(err, EPG_ERR_USAGE, "this Run does not tell whether a high score is the best; name a number");
    }
    const epg_history_submission *best = epg_history_best(history, history->direction);
    if (best == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "no submission of this Run has a score");
    }
    *number = best->facts.number;
    return EPG_OK;
}

epg_code epg_reading_find(const epg_reading *reading, const char *word, uint64_t *number, epg_error *err)
{
    const epg_history *history = &reading->history;
    uint64_t count = history->submission_count;
    if (strcmp(word, "initial") == 0) {
        *number = 0;
        return EPG_OK;
    }
    if (strcmp(word, "best") == 0) {
        return find_best(reading, number, err);
    }
    if (strcmp(word, "final") == 0 && history->selected == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "no submission of '%s' was selected", reading->path);
    }
    uint64_t found = epg_submission_number(word);
    if (strcmp(word, "final") == 0) {
        found = history->selected;
    } else if (strcmp(word, "last") == 0) {
        found = count;
    } else if (found == 0 && !epg_parse_u64(word, strlen(word), UINT64_MAX, &found)) {
        EPG_AUTO_FREE char *shown = epg_printable(word, strlen(word));
        return epg_fail(err, EPG_ERR_USAGE,
                        "no submission is called \"%s\": name submission-000001, 1, initial, last, best or final",
                        shown);
    }
    if (found == 0 || found > count) {
        return epg_fail(err, EPG_ERR_USAGE, "'%s' has no submission %llu; it has %llu", reading->path,
                        (unsigned long long)found, (unsigned long long)count);
    }
    *number = found;
    return EPG_OK;
}

/* --- Programs --- */

/* *out NULL: the Run has no git history. Borrowed from the reading. */
static epg_code open_store(const epg_reading *reading, epg_store **out, epg_error *err)
{
    struct stat info;
    *out = *reading->store;
    if (*out != NULL || fstatat(reading->run, "history.git", &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return EPG_OK;
    }
    EPG_AUTO_FREE char *path = epg_format("%s/history.git", reading->path);
    EPG_TRY(epg_store_open(path, reading->store, err));
    *out = *reading->store;
    return EPG_OK;
}

static void close_store(epg_store **store)
{
    epg_store_close(*store);
}

static epg_code capture_copy(const epg_reading *reading, const char *name, epg_program *out, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_AUTO_FREE char *path =
        strcmp(name, "initial") == 0 ? epg_strdup("initial/program") : epg_format("submissions/%s/program", name);
    epg_code code = epg_dir_open_beneath(reading->run, path, &directory, err);
    if (code == EPG_ERR_NOT_FOUND) {
        return epg_fail(err, EPG_ERR_NOT_FOUND, "no snapshot of %s is left in '%s'", name, reading->path);
    }
    EPG_TRY(code);
    return epg_program_capture(directory, &epg_program_default_limits, out, err);
}

epg_code epg_reading_program(const epg_reading *reading, uint64_t number, epg_program *out, epg_error *err)
{
    char name[EPG_SUBMISSION_ID_TEXT];
    epg_store *store = NULL;
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    epg_reading_name(number, name);
    EPG_TRY(open_store(reading, &store, err));
    if (store != NULL) {
        EPG_TRY(epg_store_load(store, name, &program, err));
    } else {
        EPG_TRY(capture_copy(reading, name, &program, err));
    }
    const char *recorded = epg_reading_digest(reading, number);
    if (recorded[0] != '\0' && strcmp(recorded, program.digest) != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "%s in '%s' is not the Program that was recorded (%s)", name,
                        reading->path, recorded);
    }
    *out = program;
    program = (epg_program){0};
    return EPG_OK;
}

/* Without a git history one is made for the two, and removed. */
static epg_code diff_copies(const epg_reading *reading, uint64_t from, uint64_t to, const char *path, epg_buffer *out,
                            epg_error *err)
{
    const uint64_t numbers[] = {from, to};
    static const char *const names[] = {"from", "to"};
    epg_store *store EPG_CLEANUP(close_store) = NULL;
    EPG_TRY(epg_store_create(path, &store, err));
    for (size_t i = 0; i < EPG_COUNT(numbers); i++) {
        char id[EPG_OBJECT_ID_TEXT];
        EPG_CLEANUP(epg_program_free) epg_program program = {0};
        EPG_TRY(epg_reading_program(reading, numbers[i], &program, err));
        EPG_TRY(epg_store_commit(store, &program, names[i], names[i], NULL, 0, id, err));
    }
    return epg_store_diff(store, names[0], names[1], out, err);
}

epg_code epg_reading_diff(const epg_reading *reading, uint64_t from, uint64_t to, epg_buffer *out, epg_error *err)
{
    char a[EPG_SUBMISSION_ID_TEXT];
    char b[EPG_SUBMISSION_ID_TEXT];
    epg_store *store = NULL;
    epg_reading_name(from, a);
    epg_reading_name(to, b);
    EPG_TRY(open_store(reading, &store, err));
    if (store != NULL) {
        return epg_store_diff(store, a, b, out, err);
    }
    EPG_AUTO_FREE char *directory = NULL;
    EPG_AUTO_CLOSE int fd = -1;
    EPG_TRY(epg_tree_temporary("epg-diff-", &directory, &fd, err));
    EPG_AUTO_FREE char *path = epg_format("%s/history.git", directory);
    epg_code code = diff_copies(reading, from, to, path, out, err);
    (void)epg_tree_remove(AT_FDCWD, directory, 0, NULL);
    return code;
}

/* --- documents --- */

static epg_code read_below(const epg_reading *reading, const char *path, epg_buffer *out, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    const char *slash = strrchr(path, '/');
    EPG_AUTO_FREE char *above = slash != NULL ? epg_strndup(path, (size_t)(slash - path)) : epg_strdup(".");
    epg_code code = epg_dir_open_beneath(reading->run, above, &directory, err);
    if (code == EPG_OK) {
        code = epg_file_read(directory, slash != NULL ? slash + 1 : path, DOCUMENT_MAX, out, err);
    }
    return code == EPG_OK ? EPG_OK : epg_fail_within(err, "%s/%s", reading->path, path);
}

epg_code epg_reading_document(const epg_reading *reading, const char *path, json_t **out, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_TRY(read_below(reading, path, &text, err));
    return epg_json_parse(epg_buffer_span(&text), path, out, err);
}

epg_code epg_reading_feedback(const epg_reading *reading, uint64_t number, json_t **out, epg_error *err)
{
    const epg_history_submission *submission = epg_reading_submission(reading, number);
    char name[EPG_SUBMISSION_ID_TEXT];
    epg_reading_name(number, name);
    if (submission == NULL || submission->facts.state != EPG_SUBMISSION_PUBLISHED) {
        return epg_fail(err, EPG_ERR_NOT_FOUND, "%s has no Feedback", name);
    }
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_FREE char *path = epg_format("submissions/%s/feedback.json", name);
    EPG_TRY(read_below(reading, path, &text, err));
    uint8_t hash[EPG_SHA256_SIZE];
    char hex[EPG_SHA256_HEX];
    epg_sha256_once(text.data, text.size, hash);
    epg_hex(hash, sizeof hash, hex);
    if (submission->feedback_sha256[0] != '\0' && strcmp(submission->feedback_sha256, hex) != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "%s/%s is not what was published: it was altered", reading->path, path);
    }
    return epg_json_parse(epg_buffer_span(&text), path, out, err);
}
