#include "runs/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/coordinator.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

/* Opens the directory that holds `path`; *name points into `path`. */
static epg_code open_parent(int run, const char *path, int *directory, const char **name, epg_error *err)
{
    const char *slash = strrchr(path, '/');
    EPG_AUTO_FREE char *above = slash != NULL ? epg_strndup(path, (size_t)(slash - path)) : epg_strdup(".");
    *name = slash != NULL ? slash + 1 : path;
    return epg_dir_open_beneath(run, above, directory, err);
}

static epg_code hash_fd(int fd, const char *path, uint64_t limit, char sha256[EPG_SHA256_HEX], epg_error *err)
{
    uint8_t chunk[65536];
    uint8_t hash[EPG_SHA256_SIZE];
    epg_sha256 *sum = epg_sha256_new();
    ssize_t got = 1;
    while (limit > 0 && got != 0) {
        got = read(fd, chunk, limit < sizeof chunk ? (size_t)limit : sizeof chunk);
        if (got < 0 && errno != EINTR) {
            int why = errno;
            epg_sha256_free(sum);
            return epg_fail_errno(err, why, "can't read '%s'", path);
        }
        epg_sha256_update(sum, chunk, got > 0 ? (size_t)got : 0);
        limit -= got > 0 ? (uint64_t)got : 0;
    }
    epg_sha256_finish(sum, hash);
    epg_hex(hash, sizeof hash, sha256);
    return EPG_OK;
}

static epg_code open_document(int directory, const char *name, const char *path, int *out, uint64_t *bytes,
                              epg_error *err)
{
    struct stat info;
    EPG_AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        int why = errno;
        return why == ENOENT ? epg_fail(err, EPG_ERR_NOT_FOUND, "'%s' is not there", path)
                             : epg_fail_errno(err, why, "can't open '%s'", path);
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return epg_fail(err, EPG_ERR_INVALID, "'%s' is no regular file", path);
    }
    *bytes = (uint64_t)info.st_size;
    *out = epg_take_fd(&fd);
    return EPG_OK;
}

epg_code epg_seal_hash(int run, const char *path, uint64_t limit, char sha256[EPG_SHA256_HEX], uint64_t *bytes,
                       epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_AUTO_CLOSE int fd = -1;
    const char *name = NULL;
    EPG_TRY(open_parent(run, path, &directory, &name, err));
    EPG_TRY(open_document(directory, name, path, &fd, bytes, err));
    return hash_fd(fd, path, limit, sha256, err);
}

const epg_history_seal *epg_seal_find(const epg_history *history, const char *path)
{
    for (size_t i = history != NULL ? history->seal_count : 0; i > 0; i--) {
        if (strcmp(history->seals[i - 1].path, path) == 0) {
            return &history->seals[i - 1];
        }
    }
    return NULL;
}

const char *epg_seal_check(int run, const epg_history_seal *seal, bool grows)
{
    char sha256[EPG_SHA256_HEX];
    uint64_t bytes = 0;
    epg_error why = {.text = ""};
    epg_code code = epg_seal_hash(run, seal->path, seal->bytes, sha256, &bytes, &why);
    if (code != EPG_OK) {
        return code == EPG_ERR_NOT_FOUND ? "is missing" : "can't be read, or is no file";
    }
    if (strcmp(sha256, seal->sha256) != 0) {
        return "is not as the events sealed it: it was altered";
    }
    return bytes > seal->bytes && !grows ? "is longer than the events sealed it: something was added" : NULL;
}

/* --- the Host's own --- */

/* What is sealed must not be lost before its seal is. */
static epg_code sync_document(int run, const char *path, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_AUTO_CLOSE int fd = -1;
    const char *name = NULL;
    uint64_t bytes = 0;
    EPG_TRY(open_parent(run, path, &directory, &name, err));
    EPG_TRY(open_document(directory, name, path, &fd, &bytes, err));
    if (epg_io_fsync(fd) != 0) {
        return epg_fail_errno(err, errno, "can't sync '%s'", path);
    }
    return epg_dir_sync(directory, err);
}

epg_code epg_run_seal(epg_run_state *self, const char *path, epg_sealing how, epg_error *err)
{
    char sha256[EPG_SHA256_HEX];
    uint64_t bytes = 0;
    const epg_history_seal *before = epg_seal_find(self->history, path);
    epg_error why = {.text = ""};
    /* What no longer fits its seal, or may not grow, keeps the seal that it has: `verify` tells. */
    if (before != NULL &&
        (how == EPG_SEAL_ONCE || (how == EPG_SEAL_GROWN && epg_seal_check(self->run, before, true) != NULL))) {
        return EPG_OK;
    }
    epg_code code = sync_document(self->run, path, &why);
    if (code != EPG_OK && code != EPG_ERR_NOT_FOUND && how == EPG_SEAL_GROWN) {
        epg_run_evidence_fault(self, path, &why); /* a log is sealed as it is: only a power cut can take of it */
        code = EPG_OK;
    }
    if (code == EPG_OK) {
        code = epg_seal_hash(self->run, path, UINT64_MAX, sha256, &bytes, &why);
    }
    if (code == EPG_ERR_NOT_FOUND || (code == EPG_OK && before != NULL && strcmp(before->sha256, sha256) == 0)) {
        return EPG_OK;
    }
    if (code != EPG_OK && how == EPG_SEAL_GROWN) { /* the Agent has been at it: `verify` tells that it is not sealed */
        epg_run_evidence_fault(self, path, &why);
        return EPG_OK;
    }
    if (code != EPG_OK) {
        return epg_fail(err, EPG_ERR_PUBLICATION, "sealing %s: %s", path, why.text);
    }
    return EPG_EVENT(self->ledger, "document_sealed", err, epg_field_u64("bytes", bytes), epg_field_text("path", path),
                     epg_field_text("sha256", sha256));
}

typedef struct leftovers {
    epg_run_state *run;
    const epg_history *history; /* as the ledger tells it now */
    const char *below;
} leftovers;

static epg_tree_step seal_leftover(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    leftovers *self = context;
    EPG_AUTO_FREE char *path = epg_format("%s/%s", self->below, entry->path);
    if (S_ISREG(entry->info.st_mode) && epg_seal_find(self->history, path) == NULL) {
        *code = epg_run_seal(self->run, path, EPG_SEAL_ONCE, err);
    }
    return *code == EPG_OK ? EPG_TREE_CONTINUE : EPG_TREE_STOP;
}

/* What stands there although the event that should have sealed it could not be written, or was not when a Host died. */
static epg_code seal_leftovers(epg_run_state *self, epg_error *err)
{
    static const char *const places[] = {"assessment", "traces", "validation"};
    EPG_CLEANUP(epg_history_free) epg_history now = {0};
    EPG_TRY(epg_history_read(self->run, &now, err));
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        EPG_AUTO_CLOSE int place = -1;
        leftovers what = {self, &now, places[i]};
        if (epg_dir_open(self->run, places[i], &place, NULL) == EPG_OK) {
            EPG_TRY(epg_tree_walk(place, seal_leftover, &what, err));
        }
    }
    return EPG_OK;
}

epg_code epg_run_seal_logs(epg_run_state *self, epg_error *err)
{
    if (self->fault_code != NULL || (self->history != NULL && self->interrupted != 0)) {
        EPG_TRY(seal_leftovers(self, err));
    }
    static const char *const logs[] = {"agent/stderr.log", "agent/stdout.log", "agent/transcript.jsonl",
                                       "evidence.jsonl"};
    for (size_t i = 0; i < EPG_COUNT(logs); i++) {
        EPG_TRY(epg_run_seal(self, logs[i], EPG_SEAL_GROWN, err));
    }
    return EPG_OK;
}

epg_code epg_run_created(epg_run_state *self, epg_error *err)
{
    static const char *const laid[] = {"agent/adapter.json", "config.json", "agent/instructions.md",
                                       "agent/invocation.json"};
    char sha256[EPG_COUNT(laid)][EPG_SHA256_HEX];
    for (size_t i = 0; i < EPG_COUNT(laid); i++) {
        uint64_t bytes = 0;
        epg_error why = {.text = ""};
        sha256[i][0] = '\0';
        epg_code code = epg_seal_hash(self->run, laid[i], UINT64_MAX, sha256[i], &bytes, &why);
        if (code != EPG_OK && code != EPG_ERR_NOT_FOUND) {
            return epg_fail(err, code, "%s", why.text);
        }
    }
    EPG_TRY(EPG_EVENT(
        self->ledger, "run_created", err, epg_field_text("adapter_sha256", sha256[0][0] != '\0' ? sha256[0] : NULL),
        epg_field_text("benchmark_id", self->spec->id), epg_field_text("config_sha256", sha256[1]),
        epg_field_text("environment_digest", self->spec->environment_digest),
        epg_field_text("initial_program_digest", self->request->initial->digest),
        epg_field_text("instructions_sha256", sha256[2]), epg_field_text("invocation_sha256", sha256[3])));
    return epg_ledger_sync(self->ledger, err);
}
