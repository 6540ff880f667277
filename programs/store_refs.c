#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "programs/store_internal.h"
#include "system/files.h"
#include "system/io.h"

epg_code epg_store_check_name(const char *name, epg_error *err)
{
    size_t size = strlen(name);
    bool fine = size > 0 && size < EPG_STORE_NAME && name[0] != '.' && name[0] != '-' && name[size - 1] != '.' &&
                strstr(name, "..") == NULL && !epg_ends_with(name, ".lock");
    for (size_t i = 0; i < size; i++) {
        bool letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z');
        fine = fine && (letter || (name[i] >= '0' && name[i] <= '9') || strchr("-_.", name[i]) != NULL);
    }
    if (!fine) {
        EPG_AUTO_FREE char *shown = epg_printable(name, size);
        return epg_fail(err, EPG_ERR_INVALID, "\"%s\" is not the name of a snapshot", shown);
    }
    return EPG_OK;
}

/* A reference's own file, as git and the store write it. */
static bool read_own_file(const epg_store *store, const char *name, git_oid *out, bool *missing)
{
    EPG_AUTO_BUFFER text = {0};
    epg_code code = epg_file_read(store->directory, name, EPG_OBJECT_ID_TEXT, &text, NULL);
    *missing = code == EPG_ERR_NOT_FOUND;
    if (code != EPG_OK || text.size != EPG_OBJECT_ID_TEXT || text.data[text.size - 1] != '\n') {
        return false;
    }
    text.data[text.size - 1] = '\0';
    return git_oid_fromstr(out, epg_buffer_cstr(&text)) == 0;
}

/* As libgit2 does, which would hold all of packed-refs in memory; it is asked where these files are not as expected. */
epg_code epg_store_get_ref(epg_store *store, const char *name, git_oid *out, epg_error *err)
{
    bool missing = false;
    if (read_own_file(store, name, out, &missing)) {
        return EPG_OK;
    }
    epg_code code = missing ? epg_store_find_packed(store, name, out, err) : EPG_ERR_INVALID;
    if (code == EPG_OK) {
        return EPG_OK;
    }
    if (code == EPG_ERR_IO) { /* libgit2 would not miss the end of a file that was cut off */
        return epg_fail_as(err, EPG_ERR_INVALID, "can't read %s of the history", name);
    }
    int failed = code == EPG_ERR_NOT_FOUND ? GIT_ENOTFOUND : git_reference_name_to_id(out, store->repo, name);
    if (failed == GIT_ENOTFOUND) {
        return epg_fail(err, EPG_ERR_NOT_FOUND, "the history has no %s", name);
    }
    return failed == 0 ? EPG_OK : epg_store_fail(err, EPG_ERR_INVALID, "can't read %s of the history", name);
}

epg_code epg_store_get_tag(epg_store *store, const char *name, git_oid *out, epg_error *err)
{
    EPG_TRY(epg_store_check_name(name, err));
    EPG_AUTO_FREE char *tag = epg_format(EPG_STORE_TAGS "%s", name);
    epg_code code = epg_store_get_ref(store, tag, out, err);
    if (code == EPG_ERR_NOT_FOUND) {
        return epg_fail(err, code, "the history has no snapshot \"%s\"", name);
    }
    return code;
}

/* A lock is another git's for a moment, or a dead writer's for ever. */
static bool try_again(const epg_store *store, const char *lock, int *tries)
{
    enum { PATIENT_TRIES = 20 };
    static const struct timespec pause = {.tv_nsec = 25 * EPG_MILLISECOND};
    if ((*tries)++ < PATIENT_TRIES) {
        (void)nanosleep(&pause, NULL);
        return true;
    }
    (void)epg_io_unlink(store->directory, lock, 0);
    return *tries == PATIENT_TRIES + 1;
}

void epg_store_file_free(epg_store_file *file)
{
    epg_output_free(&file->output);
    epg_close_cleanup(&file->directory);
    free(file->name);
}

epg_code epg_store_begin_file(epg_store *store, const char *path, epg_store_file *file, epg_error *err)
{
    EPG_AUTO_FREE char *lock = epg_format("%s.lock", path);
    const char *slash = strrchr(path, '/');
    EPG_AUTO_FREE char *above = slash != NULL ? epg_strndup(path, (size_t)(slash - path)) : epg_strdup(".");
    EPG_TRY(epg_dir_open_beneath(store->directory, above, &file->directory, err));
    file->name = epg_strdup(slash != NULL ? slash + 1 : path);
    EPG_AUTO_FREE char *lock_name = epg_format("%s.lock", file->name);
    int tries = 0;
    epg_code code = EPG_OK;
    do {
        code = epg_output_begin(&file->output, file->directory, lock_name, err);
    } while (code == EPG_ERR_EXISTS && try_again(store, lock, &tries));
    return code;
}

epg_code epg_store_end_file(epg_store_file *file, epg_error *err)
{
    EPG_AUTO_FREE char *lock_name = epg_format("%s.lock", file->name);
    EPG_TRY(epg_output_end(&file->output, 0644, true, err));
    if (epg_io_rename(file->directory, lock_name, file->directory, file->name) != 0) {
        int why = errno;
        (void)epg_io_unlink(file->directory, lock_name, 0);
        return epg_fail_errno(err, why, "can't put %s in its place", file->name);
    }
    return epg_dir_sync(file->directory, err);
}

static epg_code replace_file(epg_store *store, const char *path, epg_span content, epg_error *err)
{
    EPG_CLEANUP(epg_store_file_free) epg_store_file file = {.directory = -1};
    EPG_TRY(epg_store_begin_file(store, path, &file, err));
    epg_output_put(&file.output, content);
    return epg_store_end_file(&file, err);
}

epg_code epg_store_set_ref(epg_store *store, const char *name, const git_oid *id, epg_error *err)
{
    char line[EPG_OBJECT_ID_TEXT + 1];
    (void)git_oid_tostr(line, EPG_OBJECT_ID_TEXT, id);
    line[EPG_OBJECT_ID_TEXT - 1] = '\n';
    epg_code code = replace_file(store, name, epg_span_of(line, EPG_OBJECT_ID_TEXT), err);
    return code == EPG_OK ? EPG_OK : epg_fail_as(err, EPG_ERR_IO, "can't write %s of the history", name);
}

epg_code epg_store_delete_ref(epg_store *store, const char *name, epg_error *err)
{
    epg_code code = epg_store_unpack_ref(store, name, err);
    if (code == EPG_OK && epg_io_unlink(store->directory, name, 0) != 0 && errno != ENOENT) {
        code = epg_fail_errno(err, errno, "removing it");
    }
    if (code != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_IO, "can't delete %s of the history", name);
    }
    return epg_store_sync_ref(store, name, err);
}

epg_code epg_store_sync_ref(epg_store *store, const char *name, epg_error *err)
{
    const char *slash = strrchr(name, '/');
    EPG_AUTO_FREE char *path = epg_strndup(name, (size_t)(slash - name));
    EPG_AUTO_CLOSE int directory = -1;
    EPG_TRY(epg_dir_open_beneath(store->directory, path, &directory, err));
    return epg_dir_sync(directory, err);
}
