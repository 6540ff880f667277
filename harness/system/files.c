#include "system/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "system/io.h"

char *epg_file_temporary_name(const char *prefix)
{
    uint8_t random[8];
    char hex[2 * sizeof random + 1];
    /* 8 bytes are always given whole, once the machine has started up. */
    while (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
    }
    epg_hex(random, sizeof random, hex);
    return epg_format("%s%s", prefix, hex);
}

/* Gives a failed system call on `name` the code that callers tell apart. */
static epg_code fail_on(const char *doing, const char *name, int error, epg_error *err)
{
    epg_code code = epg_fail_errno(err, error, "can't %s '%s'", doing, name);
    if (error == ENOENT) {
        code = EPG_ERR_NOT_FOUND;
    } else if (error == EEXIST) {
        code = EPG_ERR_EXISTS;
    } else if (error == ELOOP || error == ENOTDIR) {
        code = EPG_ERR_INVALID;
    }
    if (err != NULL) {
        err->code = code;
    }
    return code;
}

/* Writes, sets the mode and syncs; the descriptor stays open. */
static epg_code fill(int fd, const char *name, epg_span content, mode_t mode, bool sync, epg_error *err)
{
    if (epg_io_write_all(fd, content.data, content.size) < 0) {
        return fail_on("write", name, errno, err);
    }
    if (epg_io_fchmod(fd, mode) < 0) {
        return fail_on("set the mode of", name, errno, err);
    }
    if (sync && epg_io_fsync(fd) < 0) {
        return fail_on("sync", name, errno, err);
    }
    return EPG_OK;
}

static epg_code check_name(const char *name, epg_error *err)
{
    if (*name == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return epg_fail(err, EPG_ERR_INVALID, "'%s' is not a file name", name);
    }
    return EPG_OK;
}

/* A new file with content, whole or not there at all. */
static epg_code write_file(int dir, const char *name, epg_span content, mode_t mode, bool sync, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = epg_io_open(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return fail_on("create", name, errno, err);
    }
    epg_code code = fill(fd, name, content, mode, sync, err);
    if (code == EPG_OK && close(epg_take_fd(&fd)) < 0) {
        code = fail_on("close", name, errno, err); /* network file systems tell a full disk here */
    }
    if (code != EPG_OK) {
        (void)epg_io_unlink(dir, name, 0);
    }
    return code;
}

epg_code epg_file_write_new(int dir, const char *name, epg_span content, mode_t mode, bool sync, epg_error *err)
{
    EPG_TRY(check_name(name, err));
    return write_file(dir, name, content, mode, sync, err);
}

epg_code epg_file_write_atomic(int dir, const char *name, epg_span content, mode_t mode, epg_error *err)
{
    EPG_TRY(check_name(name, err));
    EPG_AUTO_FREE char *temporary = epg_file_temporary_name(EPG_FILE_TEMPORARY);
    epg_code code = write_file(dir, temporary, content, mode, true, err);
    if (code != EPG_OK) {
        return epg_fail_within(err, "writing '%s'", name);
    }
    if (epg_io_rename(dir, temporary, dir, name) < 0) {
        int error = errno;
        (void)epg_io_unlink(dir, temporary, 0);
        return fail_on("replace", name, error, err);
    }
    return epg_dir_sync(dir, err);
}

epg_code epg_file_read_fd(int fd, const char *what, size_t limit, epg_buffer *out, epg_error *err)
{
    enum { CHUNK = 65536 };
    EPG_AUTO_BUFFER content = {0};
    for (;;) {
        size_t room = limit - content.size;
        /* One byte more than the bound tells a file that is over it. */
        size_t want = room < CHUNK ? room + 1 : CHUNK;
        uint8_t *at = epg_buffer_reserve(&content, want);
        ssize_t got = at == NULL ? -1 : read(fd, at, want);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_on("read", what, errno, err);
        }
        if (got == 0) {
            break;
        }
        if ((size_t)got > room) {
            return epg_fail(err, EPG_ERR_LIMIT, "'%s' is larger than %zu bytes", what, limit);
        }
        content.size += (size_t)got;
        content.data[content.size] = '\0';
    }
    epg_buffer_free(out);
    *out = content;
    content = (epg_buffer){0};
    return EPG_OK;
}

epg_code epg_file_read(int dir, const char *name, size_t limit, epg_buffer *out, epg_error *err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. */
    EPG_AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return fail_on("open", name, errno, err);
    }
    struct stat info;
    if (fstat(fd, &info) < 0) {
        return fail_on("look at", name, errno, err);
    }
    if (!S_ISREG(info.st_mode)) {
        return epg_fail(err, EPG_ERR_INVALID, "'%s' is not a regular file", name);
    }
    return epg_file_read_fd(fd, name, limit, out, err);
}

epg_code epg_dir_open(int dir, const char *name, int *out, epg_error *err)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return fail_on("open the directory", name, errno, err);
    }
    *out = fd;
    return EPG_OK;
}

epg_code epg_dir_open_beneath(int dir, const char *path, int *out, epg_error *err)
{
    EPG_AUTO_CLOSE int at = -1;
    if (strcmp(path, ".") == 0) {
        return epg_dir_open(dir, ".", out, err);
    }
    const char *part = path;
    do {
        size_t size = strcspn(part, "/");
        EPG_AUTO_FREE char *name = epg_strndup(part, size);
        if (check_name(name, NULL) != EPG_OK) {
            return epg_fail(err, EPG_ERR_INVALID, "'%s' is not a path of the form a/b", path);
        }
        int next = -1;
        if (epg_dir_open(at < 0 ? dir : at, name, &next, err) != EPG_OK) {
            return epg_fail_within(err, "opening '%s'", path);
        }
        if (at >= 0) {
            (void)close(at);
        }
        at = next;
        part += size;
    } while (*part++ == '/');
    *out = epg_take_fd(&at);
    return EPG_OK;
}

epg_code epg_dir_sync(int dir, epg_error *err)
{
    EPG_AUTO_CLOSE int here = -1;
    if (dir == AT_FDCWD) {
        EPG_TRY(epg_dir_open(AT_FDCWD, ".", &here, err));
        dir = here;
    }
    /* A file system without such a thing as syncing a directory says EINVAL. */
    if (epg_io_fsync(dir) < 0 && errno != EINVAL) {
        return fail_on("sync the directory of", "what was written", errno, err);
    }
    return EPG_OK;
}
