/* How a snapshot becomes durable, and what each death leaves:
 *
 *   1. objects      new blobs, trees and the commit, in one pack (pack.h). Dying here leaves objects that nothing
 * names.
 *   2. the tag      The snapshot exists from here on.
 *   3. main         Dying before this leaves main one behind its newest tag: the repeated commit finds the tag, and
 *                   moves main.
 *
 * libgit2 only reads: every file of the repository is written through system/io.h, so that deaths, full disks and power
 * loss can be played at each step. References are written as git does: a lock file, synced, renamed, their directory
 * synced. A lock that a dead writer left behind would refuse every later one; since a store has one writer at a time, a
 * lock that does not go away soon is taken to be that, and removed. */
#include "programs/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "programs/store_internal.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

epg_code epg_store_fail(epg_error *err, epg_code code, const char *format, ...)
{
    const git_error *last = git_error_last();
    EPG_AUTO_BUFFER text = {0};
    va_list arguments;
    va_start(arguments, format);
    char head[256];
    (void)vsnprintf(head, sizeof head, format, arguments);
    va_end(arguments);
    (void)epg_buffer_text(&text, last != NULL && last->message != NULL ? last->message : "no reason given");
    EPG_AUTO_FREE char *reason = epg_printable(epg_buffer_cstr(&text), text.size);
    return epg_fail(err, code, "%s: %s", head, reason);
}

/* The library's state is the process's: the same for every store. Nothing of the user's git configuration counts, what
 * is written is synced, and nothing is cached beyond need: of all packs together, MAPPED bytes are in memory at most
 * (but for an object that is larger, while it is read). */
static epg_code start_library(epg_error *err)
{
    if (git_libgit2_init() < 0) {
        return epg_store_fail(err, EPG_ERR_UNAVAILABLE, "libgit2 does not start");
    }
    enum { WINDOW = 64 * 1024, MAPPED = 512 * 1024 };
    static const git_config_level_t levels[] = {GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM,
                                                GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL};
    for (size_t i = 0; i < EPG_COUNT(levels); i++) {
        (void)git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
    }
    (void)git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    (void)git_libgit2_opts(GIT_OPT_ENABLE_CACHING, 0);
    (void)git_libgit2_opts(GIT_OPT_SET_MWINDOW_SIZE, (size_t)WINDOW);
    (void)git_libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, (size_t)MAPPED);
    (void)git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0); /* objects are checked, and nothing in there is run */
    return EPG_OK;
}

static void detach(epg_store *store)
{
    git_odb_free(store->odb);
    git_repository_free(store->repo);
}

epg_code epg_store_attach(epg_store *store, epg_error *err)
{
    git_repository *repo = NULL;
    git_odb *odb = NULL;
    int failed = git_repository_open_bare(&repo, store->path);
    if (failed == 0) {
        failed = git_repository_odb(&odb, repo);
    }
    if (failed != 0) {
        git_repository_free(repo);
        return epg_store_fail(err, failed == GIT_ENOTFOUND ? EPG_ERR_NOT_FOUND : EPG_ERR_INVALID,
                              "can't open the history \"%s\"", store->path);
    }
    detach(store);
    store->repo = repo;
    store->odb = odb;
    return EPG_OK;
}

void epg_store_close(epg_store *store)
{
    if (store != NULL) {
        if (store->note_count > 0) {
            (void)epg_store_write_notes(store, NULL); /* a note says again what the Run's record says */
        }
        epg_store_forget_notes(store);
        detach(store);
        epg_pack_free(store->pack);
        epg_close_cleanup(&store->packs);
        epg_close_cleanup(&store->directory);
        free(store->path);
        free(store);
        (void)git_libgit2_shutdown();
    }
}

static epg_tree_step refuse_other(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    (void)context;
    if (S_ISREG(entry->info.st_mode) || S_ISDIR(entry->info.st_mode)) {
        return EPG_TREE_CONTINUE;
    }
    EPG_AUTO_FREE char *shown = epg_printable(entry->path, strlen(entry->path));
    *code = epg_fail(err, EPG_ERR_INVALID, "the history's %s is no file", shown);
    return EPG_TREE_STOP;
}

/* libgit2 would follow links out of the history, and wait for ever for a writer to a pipe. */
static epg_code check_kinds(const char *path, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    return epg_dir_open(AT_FDCWD, path, &directory, NULL) == EPG_OK ? epg_tree_walk(directory, refuse_other, NULL, err)
                                                                    : EPG_OK;
}

epg_code epg_store_open(const char *path, epg_store **out, epg_error *err)
{
    EPG_TRY(check_kinds(path, err));
    EPG_TRY(start_library(err));
    epg_store *store = epg_alloc(sizeof *store);
    *store = (epg_store){.path = epg_strdup(path), .directory = -1, .packs = -1};
    epg_code code = epg_store_attach(store, err);
    if (code == EPG_OK) {
        code = epg_dir_open(AT_FDCWD, path, &store->directory, err);
    }
    if (code == EPG_OK) {
        code = epg_dir_open_beneath(store->directory, "objects/pack", &store->packs, err);
    }
    if (code != EPG_OK) {
        epg_store_close(store);
        return code;
    }
    *out = store;
    return EPG_OK;
}

/* What `git init --bare` makes, as far as a repository needs it. */
static const char *const directories[] = {"objects",    "objects/info", "objects/pack", "refs",
                                          "refs/heads", "refs/notes",   "refs/tags"};
static const struct {
    const char *name;
    const char *content;
} files[EPG_STORE_FIXED] = {
    {"HEAD", "ref: " EPG_STORE_MAIN "\n"},
    {"config", "[core]\n\tbare = true\n\trepositoryformatversion = 0\n\tfilemode = true\n"},
    {"description", "The Programs of one EvoPolicyGym Run, one commit a submission\n"},
};

const char *epg_store_fixed_name(size_t i)
{
    return files[i].name;
}

const char *epg_store_fixed_content(const char *path)
{
    for (size_t i = 0; i < EPG_COUNT(files); i++) {
        if (strcmp(files[i].name, path) == 0) {
            return files[i].content;
        }
    }
    return NULL;
}

/* An empty repository at `path`, all of it synced but its name. */
static epg_code initialise(const char *path, epg_error *err)
{
    EPG_AUTO_CLOSE int root = -1;
    if (epg_io_mkdir(AT_FDCWD, path, 0700) != 0) {
        return epg_fail_errno(err, errno, "can't make the history \"%s\"", path);
    }
    EPG_TRY(epg_dir_open(AT_FDCWD, path, &root, err));
    for (size_t i = 0; i < EPG_COUNT(directories); i++) {
        if (epg_io_mkdir(root, directories[i], 0700) != 0) {
            return epg_fail_errno(err, errno, "can't make \"%s\"", directories[i]);
        }
    }
    for (size_t i = 0; i < EPG_COUNT(directories); i++) {
        EPG_AUTO_CLOSE int made = -1;
        EPG_TRY(epg_dir_open_beneath(root, directories[i], &made, err));
        EPG_TRY(epg_dir_sync(made, err));
    }
    for (size_t i = 0; i < EPG_COUNT(files); i++) {
        EPG_TRY(epg_file_write_new(root, files[i].name, epg_span_text(files[i].content), 0644, true, err));
    }
    return epg_dir_sync(root, err);
}

/* Made beside its place and renamed into it, so that a death leaves no half repository under the name. */
static epg_code create(const char *path, epg_error *err)
{
    EPG_AUTO_FREE char *made = epg_format("%s.making", path);
    const char *slash = strrchr(path, '/');
    EPG_AUTO_FREE char *parent = slash == NULL   ? epg_strdup(".")
                                 : slash == path ? epg_strdup("/")
                                                 : epg_strndup(path, (size_t)(slash - path));
    if (access(path, F_OK) == 0) {
        return epg_fail(err, EPG_ERR_EXISTS, "\"%s\" exists already", path);
    }
    EPG_AUTO_CLOSE int directory = -1;
    EPG_TRY(epg_dir_open(AT_FDCWD, parent, &directory, err));
    EPG_TRY(epg_tree_remove(AT_FDCWD, made, 0, err));
    EPG_TRY(initialise(made, err));
    if (epg_io_rename_new(AT_FDCWD, made, AT_FDCWD, path) != 0) {
        return epg_fail_errno(err, errno, "can't rename \"%s\" to \"%s\"", made, path);
    }
    return epg_dir_sync(directory, err);
}

epg_code epg_store_create(const char *path, epg_store **out, epg_error *err)
{
    EPG_TRY(start_library(err));
    epg_code code = create(path, err);
    (void)git_libgit2_shutdown();
    return code == EPG_OK ? epg_store_open(path, out, err) : code;
}

static epg_code check_lines(const char *subject, const char *trailers, epg_error *err)
{
    bool plain = subject[0] != '\0' && epg_utf8_valid(subject, strlen(subject)) && strchr(subject, '\n') == NULL;
    if (!plain) {
        return epg_fail(err, EPG_ERR_INVALID, "a snapshot's subject must be one line of text");
    }
    if (trailers != NULL && trailers[0] != '\0' &&
        (!epg_utf8_valid(trailers, strlen(trailers)) || trailers[0] == '\n' || strstr(trailers, "\n\n") != NULL ||
         !epg_ends_with(trailers, "\n"))) {
        return epg_fail(err, EPG_ERR_INVALID, "a snapshot's trailers must be \"Key: value\" lines");
    }
    return EPG_OK;
}

/* Moves main to a snapshot whose tag was made but which main does not name yet. */
static epg_code catch_up(epg_store *store, const git_commit *snapshot, epg_error *err)
{
    git_oid main;
    const git_oid *parent = git_commit_parent_id(snapshot, 0);
    epg_code code = epg_store_get_ref(store, EPG_STORE_MAIN, &main, err);
    bool behind = parent == NULL ? code == EPG_ERR_NOT_FOUND : code == EPG_OK && git_oid_equal(&main, parent) != 0;
    if (behind) {
        return epg_store_set_ref(store, EPG_STORE_MAIN, git_commit_id(snapshot), err);
    }
    return code == EPG_ERR_NOT_FOUND ? epg_fail(err, EPG_ERR_INVALID, "the history's main branch is gone") : code;
}

/* A commit that a crash may have cut off after its tag: finishes it. */
static epg_code repeat(epg_store *store, const git_oid *id, const epg_program *program, const char *name,
                       epg_error *err)
{
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    char digest[EPG_DIGEST_TEXT];
    if (git_commit_lookup(&commit, store->repo, id) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the snapshot \"%s\"", name);
    }
    EPG_TRY(epg_store_claimed_digest(commit, digest, err));
    if (strcmp(digest, program->digest) != 0) {
        return epg_fail(err, EPG_ERR_EXISTS, "the history has a snapshot \"%s\" of another Program", name);
    }
    EPG_TRY(catch_up(store, commit, err));
    EPG_TRY(epg_dir_sync(store->packs, err));
    EPG_TRY(epg_store_sync_ref(store, EPG_STORE_TAGS, err));
    return epg_store_sync_ref(store, EPG_STORE_MAIN, err);
}

static epg_code put_snapshot(epg_store *store, const epg_program *program, const git_oid *parent, const char *message,
                             int64_t time_unix_seconds, git_oid *id, epg_error *err)
{
    git_oid tree;
    epg_code code = epg_store_put_program(store, program, &tree, err);
    if (code == EPG_OK) {
        code = epg_store_put_commit(store, &tree, parent, message, time_unix_seconds, id, err);
    }
    if (code == EPG_OK) {
        code = epg_store_flush(store, err);
    }
    epg_store_abandon(store);
    return code;
}

static epg_code commit_new(epg_store *store, const epg_program *program, const char *name, const char *message,
                           int64_t time_unix_seconds, git_oid *id, epg_error *err)
{
    git_oid main;
    epg_error ignored;
    epg_code found = epg_store_get_ref(store, EPG_STORE_MAIN, &main, &ignored);
    if (found != EPG_OK && found != EPG_ERR_NOT_FOUND) {
        return epg_store_get_ref(store, EPG_STORE_MAIN, &main, err);
    }
    EPG_AUTO_FREE char *tag = epg_format(EPG_STORE_TAGS "%s", name);
    EPG_TRY(put_snapshot(store, program, found == EPG_OK ? &main : NULL, message, time_unix_seconds, id, err));
    EPG_TRY(epg_store_set_ref(store, tag, id, err));
    return epg_store_set_ref(store, EPG_STORE_MAIN, id, err);
}

epg_code epg_store_commit(epg_store *store, const epg_program *program, const char *name, const char *subject,
                          const char *trailers, int64_t time_unix_seconds, char id[EPG_OBJECT_ID_TEXT], epg_error *err)
{
    git_oid found;
    EPG_TRY(epg_store_check_name(name, err));
    EPG_TRY(check_lines(subject, trailers, err));
    epg_error missing;
    epg_code code = epg_store_get_tag(store, name, &found, &missing);
    if (code == EPG_OK) {
        code = repeat(store, &found, program, name, err);
    } else if (code == EPG_ERR_NOT_FOUND) {
        EPG_AUTO_FREE char *message = epg_format("%s\n\nSubmission: %s\nProgram-Digest: %s\n%s", subject, name,
                                                 program->digest, trailers != NULL ? trailers : "");
        code = commit_new(store, program, name, message, time_unix_seconds, &found, err);
    } else if (err != NULL) {
        *err = missing;
    }
    EPG_TRY(code);
    (void)git_oid_tostr(id, EPG_OBJECT_ID_TEXT, &found);
    return EPG_OK;
}

epg_code epg_store_drop(epg_store *store, const char *name, epg_error *err)
{
    git_oid id;
    git_oid main;
    EPG_TRY(epg_store_check_name(name, err));
    epg_code code = epg_store_get_tag(store, name, &id, err);
    if (code == EPG_ERR_NOT_FOUND) {
        return EPG_OK;
    }
    EPG_TRY(code);
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    if (git_commit_lookup(&commit, store->repo, &id) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the snapshot \"%s\"", name);
    }
    const git_oid *parent = git_commit_parent_id(commit, 0);
    code = epg_store_get_ref(store, EPG_STORE_MAIN, &main, err);
    bool is_main = code == EPG_OK && git_oid_equal(&main, &id) != 0;
    bool is_next = parent == NULL ? code == EPG_ERR_NOT_FOUND : code == EPG_OK && git_oid_equal(&main, parent) != 0;
    if (!is_main && !is_next) {
        return epg_fail(err, EPG_ERR_INVALID, "the snapshot \"%s\" is not the newest: it can't be dropped", name);
    }
    if (is_main && parent != NULL) {
        EPG_TRY(epg_store_set_ref(store, EPG_STORE_MAIN, parent, err));
    } else if (is_main) {
        EPG_TRY(epg_store_delete_ref(store, EPG_STORE_MAIN, err));
    }
    EPG_AUTO_FREE char *tag = epg_format(EPG_STORE_TAGS "%s", name);
    return epg_store_delete_ref(store, tag, err);
}
