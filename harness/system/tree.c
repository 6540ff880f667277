#include "system/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "system/files.h"
#include "system/io.h"

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* What a name may say when the tree changes under us: it is gone, or it is something else by now. */
static bool changed_away(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

static int open_directory(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A stream over its own description of the directory, so that `fd` stays free for the calls below it. */
static DIR *stream_of(int fd)
{
    int own = open_directory(fd, ".");
    DIR *stream = own < 0 ? NULL : fdopendir(own);
    if (stream == NULL && own >= 0) {
        (void)close(own);
    }
    return stream;
}

/* Walking. */

typedef struct name_list {
    char **names;
    size_t count;
} name_list;

static void name_list_free(name_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->names[i]);
    }
    free(list->names);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static epg_code list_names(int dir, const char *path, name_list *list, epg_error *err)
{
    DIR *stream = stream_of(dir);
    if (stream == NULL) {
        return epg_fail_errno(err, errno, "can't list '%s'", path);
    }
    size_t room = 0;
    const struct dirent *entry = NULL;
    errno = 0;
    while ((entry = readdir(stream)) != NULL) {
        if (is_dots(entry->d_name)) {
            continue;
        }
        if (list->count == EPG_TREE_NAMES) {
            (void)closedir(stream);
            return epg_fail(err, EPG_ERR_LIMIT, "the directory '%s' holds more than %d entries",
                            *path != '\0' ? path : ".", EPG_TREE_NAMES);
        }
        if (list->count == room) {
            room = room == 0 ? 16 : 2 * room;
            list->names = epg_grow_array(list->names, room, sizeof *list->names);
        }
        list->names[list->count++] = epg_strdup(entry->d_name);
        errno = 0;
    }
    int error = errno;
    (void)closedir(stream);
    if (error != 0) {
        return epg_fail_errno(err, error, "can't list '%s'", path);
    }
    if (list->count > 1) {
        qsort(list->names, list->count, sizeof *list->names, by_bytes);
    }
    return EPG_OK;
}

typedef struct tree_walk {
    epg_tree_visit *visit;
    void *context;
    epg_buffer path; /* of the directory being walked, "" at the root */
    bool stopped;
} tree_walk;

static epg_code walk_directory(tree_walk *walk, int dir, unsigned depth, epg_error *err);

static epg_code enter(tree_walk *walk, int dir, const char *name, unsigned depth, epg_error *err)
{
    EPG_AUTO_CLOSE int below = open_directory(dir, name);
    if (below < 0) {
        int error = errno;
        return changed_away(error) ? EPG_OK
                                   : epg_fail_errno(err, error, "can't open '%s'", epg_buffer_cstr(&walk->path));
    }
    if (depth == EPG_TREE_DEPTH) {
        return epg_fail(err, EPG_ERR_LIMIT, "directories are nested deeper than %d", (int)EPG_TREE_DEPTH);
    }
    return walk_directory(walk, below, depth + 1, err);
}

static void truncate_path(epg_buffer *path, size_t size)
{
    path->size = size;
    if (path->data != NULL) {
        path->data[size] = '\0';
    }
}

static epg_code walk_entry(tree_walk *walk, int dir, const char *name, unsigned depth, epg_error *err)
{
    epg_tree_entry entry = {.dir = dir, .name = name};
    if (fstatat(dir, name, &entry.info, AT_SYMLINK_NOFOLLOW) < 0) {
        int error = errno;
        return error == ENOENT ? EPG_OK : epg_fail_errno(err, error, "can't look at '%s'", name);
    }
    size_t before = walk->path.size;
    if (before > 0) {
        (void)epg_buffer_byte(&walk->path, '/');
    }
    (void)epg_buffer_text(&walk->path, name);
    entry.path = epg_buffer_cstr(&walk->path);
    epg_code code = EPG_OK;
    epg_tree_step step = walk->visit(walk->context, &entry, &code, err);
    if (step == EPG_TREE_STOP) {
        walk->stopped = true;
    } else if (step == EPG_TREE_CONTINUE && S_ISDIR(entry.info.st_mode)) {
        code = enter(walk, dir, name, depth, err);
    }
    truncate_path(&walk->path, before);
    return code;
}

static epg_code walk_directory(tree_walk *walk, int dir, unsigned depth, epg_error *err)
{
    EPG_CLEANUP(name_list_free) name_list list = {0};
    EPG_TRY(list_names(dir, epg_buffer_cstr(&walk->path), &list, err));
    for (size_t i = 0; i < list.count && !walk->stopped; i++) {
        EPG_TRY(walk_entry(walk, dir, list.names[i], depth, err));
    }
    return EPG_OK;
}

epg_code epg_tree_walk(int root, epg_tree_visit *visit, void *context, epg_error *err)
{
    tree_walk walk = {.visit = visit, .context = context};
    epg_code code = walk_directory(&walk, root, 1, err);
    epg_buffer_free(&walk.path);
    return code;
}

/* Removing. A tree may be nested deeper than descriptors can follow: what lies below the bound of depth is first moved
 * up to the top directory of the removal, under a new name, and removed from there. */

typedef struct tree_removal {
    int top; /* the directory that is being removed, -1 before it was entered */
    size_t limit;
    size_t removed;
} tree_removal;

static epg_code remove_entry(tree_removal *removal, int dir, const char *name, unsigned depth, epg_error *err);

static epg_code count_one(tree_removal *removal, epg_error *err)
{
    if (removal->limit != 0 && removal->removed == removal->limit) {
        return epg_fail(err, EPG_ERR_LIMIT, "more than %zu entries are there to remove", removal->limit);
    }
    removal->removed++;
    return EPG_OK;
}

static epg_code unlink_one(tree_removal *removal, int dir, const char *name, int flags, epg_error *err)
{
    EPG_TRY(count_one(removal, err));
    /* EISDIR: a directory by now, for the next pass. */
    if (epg_io_unlink(dir, name, flags) < 0 && errno != ENOENT && errno != EISDIR) {
        return epg_fail_errno(err, errno, "can't remove '%s'", name);
    }
    return EPG_OK;
}

/* Removes what is in the directory. Names that appear meanwhile are taken in the next pass over it. */
static epg_code empty_directory(tree_removal *removal, int dir, const char *path, unsigned depth, epg_error *err)
{
    DIR *stream = stream_of(dir);
    if (stream == NULL) {
        return epg_fail_errno(err, errno, "can't list '%s'", path);
    }
    epg_code code = EPG_OK;
    bool again = true;
    while (again && code == EPG_OK) {
        again = false;
        rewinddir(stream);
        const struct dirent *entry = NULL;
        while (code == EPG_OK && (entry = readdir(stream)) != NULL) {
            if (!is_dots(entry->d_name)) {
                again = true;
                code = remove_entry(removal, dir, entry->d_name, depth, err);
            }
        }
    }
    (void)closedir(stream);
    return code;
}

static epg_code move_to_top(const tree_removal *removal, int dir, const char *name, epg_error *err)
{
    EPG_AUTO_FREE char *fresh = epg_file_temporary_name(EPG_FILE_TEMPORARY);
    if (epg_io_rename(dir, name, removal->top, fresh) < 0 && errno != ENOENT) {
        return epg_fail_errno(err, errno, "can't remove '%s'", name);
    }
    return EPG_OK;
}

static epg_code remove_directory(tree_removal *removal, int dir, const char *name, unsigned depth, epg_error *err)
{
    EPG_AUTO_CLOSE int below = open_directory(dir, name);
    if (below < 0) {
        /* Something else by now: the pass over `dir` comes by again. */
        int error = errno;
        return changed_away(error) ? EPG_OK : epg_fail_errno(err, error, "can't open '%s'", name);
    }
    bool is_top = removal->top < 0;
    if (is_top) {
        removal->top = below;
    }
    epg_code code = empty_directory(removal, below, name, depth + 1, err);
    if (is_top) {
        removal->top = -1;
    }
    EPG_TRY(code);
    EPG_TRY(count_one(removal, err));
    if (epg_io_unlink(dir, name, AT_REMOVEDIR) < 0 && !changed_away(errno) && errno != ENOTEMPTY) {
        return epg_fail_errno(err, errno, "can't remove '%s'", name);
    }
    return EPG_OK;
}

static epg_code remove_entry(tree_removal *removal, int dir, const char *name, unsigned depth, epg_error *err)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
        int error = errno;
        return error == ENOENT ? EPG_OK : epg_fail_errno(err, error, "can't look at '%s'", name);
    }
    if (!S_ISDIR(info.st_mode)) {
        return unlink_one(removal, dir, name, 0, err);
    }
    if ((info.st_mode & S_IRWXU) != S_IRWXU) {
        (void)epg_io_chmod(dir, name, S_IRWXU); /* what fails here is told by what comes after */
    }
    if (depth == EPG_TREE_DEPTH) {
        return move_to_top(removal, dir, name, err);
    }
    return remove_directory(removal, dir, name, depth, err);
}

epg_code epg_tree_remove(int dir, const char *name, size_t limit, epg_error *err)
{
    enum { TRIES = 100 };
    tree_removal removal = {.top = -1, .limit = limit};
    struct stat info;
    for (int i = 0; i < TRIES; i++) {
        EPG_TRY(remove_entry(&removal, dir, name, 0, err));
        if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
            return EPG_OK;
        }
    }
    return epg_fail(err, EPG_ERR_CHANGED, "'%s' is made again as often as it is removed", name);
}

epg_code epg_tree_temporary(const char *prefix, char **path, int *fd, epg_error *err)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || *base != '/') {
        base = "/tmp";
    }
    EPG_AUTO_FREE char *name = epg_file_temporary_name(prefix);
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", base, name);
    if (epg_io_mkdir(AT_FDCWD, whole, 0700) < 0) {
        return epg_fail_errno(err, errno, "can't make the temporary directory '%s' (TMPDIR names another place)",
                              whole);
    }
    epg_code code = epg_dir_open(AT_FDCWD, whole, fd, err);
    if (code != EPG_OK) {
        (void)epg_io_unlink(AT_FDCWD, whole, AT_REMOVEDIR);
        return code;
    }
    *path = EPG_TAKE(whole);
    return EPG_OK;
}
