#include "runs/contested.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/files.h"
#include "system/io.h"

/* An Agent that puts obstacles back as fast as we move them wins this many times; then it is a fault. */
enum { TRIES = 32, DISPLACED_MAX = 1000000 };

void epg_evidence_note(epg_evidence_list *list, const char *path, const char *format, ...)
{
    if (list == NULL) {
        return;
    }
    if (list->count == EPG_EVIDENCE_MAX) {
        list->omitted++;
        return;
    }
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    list->items = epg_grow_array(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = (epg_evidence){epg_strdup(path), epg_strdup(what)};
}

void epg_evidence_free(epg_evidence_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].what);
    }
    free(list->items);
    *list = (epg_evidence_list){0};
}

static const char *kind_of(mode_t mode)
{
    return S_ISLNK(mode)   ? "a symbolic link"
           : S_ISDIR(mode) ? "a directory"
           : S_ISREG(mode) ? "a file"
                           : "a special file";
}

/* The name that something displaced gets: the first free number, and the start of its old name. */
static int rename_into(int dir, const char *name, int displaced, char *fresh, size_t room)
{
    for (unsigned number = 1; number < DISPLACED_MAX; number++) {
        (void)snprintf(fresh, room, "%06u-%.64s", number, name);
        if (epg_io_rename_new(dir, name, displaced, fresh) == 0) {
            return 0;
        }
        if (errno != EEXIST && errno != ENOTEMPTY) {
            return -1;
        }
    }
    return -1;
}

/* Moves dir/name into RUN/displaced. Gone already is success. */
static epg_code move_aside(int run, int dir, const char *name, const char *path, epg_evidence_list *evidence,
                           epg_error *err)
{
    struct stat info;
    char fresh[96];
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? EPG_OK : epg_fail_errno(err, errno, "can't look at '%s'", path);
    }
    if (epg_io_mkdir(run, "displaced", 0700) != 0 && errno != EEXIST) {
        return epg_fail_errno(err, errno, "can't make 'displaced'");
    }
    EPG_AUTO_CLOSE int displaced = -1;
    EPG_TRY(epg_dir_open(run, "displaced", &displaced, err));
    int moved = rename_into(dir, name, displaced, fresh, sizeof fresh);
    if (moved != 0 && errno == EACCES && S_ISDIR(info.st_mode)) {
        /* Whoever is not root can give a directory another parent only if it may write to the directory itself. */
        (void)epg_io_chmod(dir, name, 0700);
        moved = rename_into(dir, name, displaced, fresh, sizeof fresh);
    }
    if (moved != 0) {
        return errno == ENOENT ? EPG_OK : epg_fail_errno(err, errno, "can't move aside what stands at '%s'", path);
    }
    epg_evidence_note(evidence, path, "%s stood here; moved to displaced/%s", kind_of(info.st_mode), fresh);
    return EPG_OK;
}

/* Sets the mode back to what it was made with, when the owner's rights are less than all. */
static epg_code admit_ourselves(int fd, mode_t mode, const char *path, epg_evidence_list *evidence, epg_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return epg_fail_errno(err, errno, "can't look at '%s'", path);
    }
    if ((info.st_mode & 0700) == 0700) {
        return EPG_OK;
    }
    epg_evidence_note(evidence, path, "its mode was %03o; set back", (unsigned)(info.st_mode & 0777));
    return epg_io_fchmod(fd, mode) == 0 ? EPG_OK : epg_fail_errno(err, errno, "can't set the mode of '%s'", path);
}

static epg_code make_again(int parent, const char *name, mode_t mode, const char *path, epg_evidence_list *evidence,
                           epg_error *err)
{
    if (epg_io_mkdir(parent, name, mode) != 0) {
        return errno == EEXIST ? EPG_OK : epg_fail_errno(err, errno, "can't make '%s'", path);
    }
    epg_evidence_note(evidence, path, "was gone; made again");
    return epg_dir_sync(parent, err);
}

epg_code epg_contested_directory(int run, int parent, const char *name, mode_t mode, const char *path, int *out,
                                 epg_evidence_list *evidence, epg_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        EPG_AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            EPG_TRY(admit_ourselves(fd, mode, path, evidence, err));
            *out = epg_take_fd(&fd);
            return EPG_OK;
        }
        if (errno == ENOENT) {
            EPG_TRY(make_again(parent, name, mode, path, evidence, err));
        } else if (errno == EACCES) {
            epg_evidence_note(evidence, path, "its mode kept the Host out");
            if (epg_io_chmod(parent, name, mode) != 0 && errno != ENOENT) {
                return epg_fail_errno(err, errno, "can't set the mode of '%s'", path);
            }
        } else if (errno == ELOOP || errno == ENOTDIR) {
            EPG_TRY(move_aside(run, parent, name, path, evidence, err));
        } else {
            return epg_fail_errno(err, errno, "can't open '%s'", path);
        }
    }
    return epg_fail(err, EPG_ERR_CHANGED, "'%s' is replaced as often as it is put right", path);
}

epg_code epg_contested_install(int run, int staging, const char *staged, int dir, const char *name, const char *path,
                               epg_evidence_list *evidence, epg_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        if (epg_io_rename_new(staging, staged, dir, name) == 0) {
            return EPG_OK;
        }
        if (errno != EEXIST && errno != ENOTEMPTY) {
            return epg_fail_errno(err, errno, "can't install '%s'", path);
        }
        EPG_TRY(move_aside(run, dir, name, path, evidence, err));
    }
    return epg_fail(err, EPG_ERR_CHANGED, "'%s' is put back as often as it is moved aside", path);
}

/* Notes a link or another thing that a rename silently replaces. */
static void note_replaced(int dir, const char *name, const char *path, epg_evidence_list *evidence)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        epg_evidence_note(evidence, path, "%s stood here; replaced", kind_of(info.st_mode));
    }
}

static epg_code rename_over(int run, int staging, const char *staged, int dir, const char *name, const char *path,
                            epg_evidence_list *evidence, epg_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        note_replaced(dir, name, path, evidence);
        if (epg_io_rename(staging, staged, dir, name) == 0) {
            return EPG_OK;
        }
        if (errno != EISDIR && errno != EEXIST && errno != ENOTEMPTY) {
            return epg_fail_errno(err, errno, "can't replace '%s'", path);
        }
        EPG_TRY(move_aside(run, dir, name, path, evidence, err));
    }
    return epg_fail(err, EPG_ERR_CHANGED, "'%s' is put back as often as it is moved aside", path);
}

epg_code epg_contested_replace(int run, int dir, const char *name, epg_span content, mode_t mode, const char *path,
                               epg_evidence_list *evidence, epg_error *err)
{
    EPG_AUTO_CLOSE int staging = -1;
    EPG_TRY(epg_contested_staging(run, &staging, err));
    EPG_AUTO_FREE char *staged = epg_file_temporary_name(EPG_FILE_TEMPORARY);
    EPG_TRY(epg_file_write_new(staging, staged, content, mode, true, err));
    epg_code code = rename_over(run, staging, staged, dir, name, path, evidence, err);
    if (code != EPG_OK) {
        (void)epg_io_unlink(staging, staged, 0);
        return code;
    }
    return epg_dir_sync(dir, err);
}

epg_code epg_contested_staging(int run, int *out, epg_error *err)
{
    return epg_contested_directory(run, run, "staging", 0700, "staging", out, NULL, err);
}
