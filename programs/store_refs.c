#include <errno.h>
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

epg_code epg_store_get_ref(epg_store *store, const char *name, git_oid *out, epg_error *err)
{
    int failed = git_reference_name_to_id(out, store->repo, name);
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
static bool try_again(const epg_store *store, const char *name, int *tries)
{
    enum { PATIENT_TRIES = 20 };
    static const struct timespec pause = {.tv_nsec = 25 * EPG_MILLISECOND};
    if ((*tries)++ < PATIENT_TRIES) {
        (void)nanosleep(&pause, NULL);
        return true;
    }
    EPG_AUTO_FREE char *lock = epg_format("%s.lock", name);
    (void)epg_io_unlink(store->directory, lock, 0);
    (void)epg_io_unlink(store->directory, "packed-refs.lock", 0);
    return *tries == PATIENT_TRIES + 1;
}

epg_code epg_store_set_ref(epg_store *store, const char *name, const git_oid *id, epg_error *err)
{
    EPG_TRY(epg_store_boundary("store: before a reference is written", err));
    int tries = 0;
    int failed = 0;
    do {
        EPG_AUTO_GIT(git_reference) *made = NULL;
        failed = git_reference_create(&made, store->repo, name, id, 1, NULL);
    } while (failed == GIT_ELOCKED && try_again(store, name, &tries));
    if (failed != 0) {
        return epg_store_fail(err, EPG_ERR_IO, "can't write %s of the history", name);
    }
    return epg_store_boundary("store: after a reference is written", err);
}

/* libgit2 packs the references all at once: a new packed-refs, synced and renamed, then the loose ones go. */
epg_code epg_store_pack_refs(epg_store *store, epg_error *err)
{
    EPG_TRY(epg_store_boundary("store: before references are packed", err));
    EPG_AUTO_GIT(git_refdb) *refs = NULL;
    int tries = 0;
    int failed = git_repository_refdb(&refs, store->repo);
    do {
        failed = failed == 0 || failed == GIT_ELOCKED ? git_refdb_compress(refs) : failed;
    } while (failed == GIT_ELOCKED && try_again(store, "packed-refs", &tries));
    if (failed != 0) {
        return epg_store_fail(err, EPG_ERR_IO, "can't pack the history's references");
    }
    return epg_store_boundary("store: after references are packed", err);
}

epg_code epg_store_delete_ref(epg_store *store, const char *name, epg_error *err)
{
    EPG_TRY(epg_store_boundary("store: before a reference is deleted", err));
    int tries = 0;
    int failed = 0;
    do {
        failed = git_reference_remove(store->repo, name);
    } while (failed == GIT_ELOCKED && try_again(store, name, &tries));
    if (failed != 0) {
        return epg_store_fail(err, EPG_ERR_IO, "can't delete %s of the history", name);
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
