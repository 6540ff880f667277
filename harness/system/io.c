/* Each wrapper has one shape: pass the point (which may kill, fail or shorten), do the call until it is not
 * interrupted, and tell the log when it worked. */
#include "system/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "system/io_seam.h"

int epg_io_open(int dir, const char *path, int flags, mode_t mode)
{
    bool counted = (flags & (O_CREAT | O_TRUNC)) != 0;
    if (counted && epg_io_pass(EPG_IO_OPEN, NULL) < 0) {
        return -1;
    }
    /* A pipe that stands where a file is to be would have us wait for its reader. */
    int more = O_CLOEXEC | ((flags & O_CREAT) != 0 ? O_NONBLOCK | O_NOCTTY : 0);
    int fd = -1;
    EPG_IO_RETRY(fd, openat(dir, path, flags | more, mode));
    if (fd >= 0 && counted) {
        epg_io_log_open(fd, dir, path, (flags & O_TRUNC) != 0);
    }
    return fd;
}

static int write_rest(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t wrote = 0;
        EPG_IO_RETRY(wrote, write(fd, data, size));
        if (wrote < 0) {
            return -1;
        }
        data += wrote;
        size -= (size_t)wrote;
    }
    return 0;
}

/* Where the next write goes: the end of a file that appends, the offset otherwise. */
static off_t write_offset(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    struct stat info;
    if (flags >= 0 && (flags & O_APPEND) != 0 && fstat(fd, &info) == 0) {
        return info.st_size;
    }
    return lseek(fd, 0, SEEK_CUR);
}

int epg_io_write_all(int fd, const void *data, size_t size)
{
    epg_io_part part = EPG_IO_WHOLE;
    if (epg_io_pass(EPG_IO_WRITE, &part) < 0) {
        return -1;
    }
    off_t offset = epg_io_log_fd() >= 0 ? write_offset(fd) : 0;
    size_t first = part == EPG_IO_WHOLE ? size : size / 2;
    const uint8_t *bytes = data;
    int result = write_rest(fd, bytes, first);
    if (part == EPG_IO_TORN) {
        epg_io_die();
    }
    if (result == 0) {
        result = write_rest(fd, bytes + first, size - first);
    }
    if (result == 0) {
        epg_io_log_write(fd, offset, data, size);
    }
    return result;
}

/* Tells the log of a call on a descriptor or on a path, when it worked. */
static int on_fd(epg_io_call call, int fd, int result)
{
    if (result == 0) {
        epg_io_log_on_fd(call, fd);
    }
    return result;
}

static int on_path(epg_io_call call, int dir, const char *path, int result)
{
    if (result == 0) {
        epg_io_log_on_path(call, dir, path);
    }
    return result;
}

int epg_io_fsync(int fd)
{
    if (epg_io_pass(EPG_IO_FSYNC, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, fsync(fd));
    return on_fd(EPG_IO_FSYNC, fd, result);
}

int epg_io_fdatasync(int fd)
{
    if (epg_io_pass(EPG_IO_FDATASYNC, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, fdatasync(fd));
    return on_fd(EPG_IO_FDATASYNC, fd, result);
}

static int renamed(int result, int from_dir, const char *from, int to_dir, const char *to)
{
    if (result == 0) {
        epg_io_log_rename(from_dir, from, to_dir, to);
    }
    return result;
}

int epg_io_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    if (epg_io_pass(EPG_IO_RENAME, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, renameat(from_dir, from, to_dir, to));
    return renamed(result, from_dir, from, to_dir, to);
}

int epg_io_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
    if (epg_io_pass(EPG_IO_RENAME, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE));
    if (result < 0 && (errno == EINVAL || errno == ENOSYS)) {
        /* NFS and some others can't do it in one step: look, then rename. */
        struct stat info;
        if (fstatat(to_dir, to, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            errno = EEXIST;
            return -1;
        }
        EPG_IO_RETRY(result, renameat(from_dir, from, to_dir, to));
    }
    return renamed(result, from_dir, from, to_dir, to);
}

int epg_io_mkdir(int dir, const char *path, mode_t mode)
{
    if (epg_io_pass(EPG_IO_MKDIR, NULL) < 0) {
        return -1;
    }
    /* One thread, so that the mask can be lifted for one call: no moment in which the mode is another. */
    mode_t mask = umask(0);
    int result = 0;
    EPG_IO_RETRY(result, mkdirat(dir, path, mode));
    (void)umask(mask);
    return on_path(EPG_IO_MKDIR, dir, path, result);
}

int epg_io_unlink(int dir, const char *path, int flags)
{
    if (epg_io_pass(EPG_IO_UNLINK, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, unlinkat(dir, path, flags));
    return on_path(EPG_IO_UNLINK, dir, path, result);
}

int epg_io_fchmod(int fd, mode_t mode)
{
    if (epg_io_pass(EPG_IO_CHMOD, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, fchmod(fd, mode));
    return on_fd(EPG_IO_CHMOD, fd, result);
}

int epg_io_chmod(int dir, const char *path, mode_t mode)
{
    if (epg_io_pass(EPG_IO_CHMOD, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, fchmodat(dir, path, mode, AT_SYMLINK_NOFOLLOW));
    return on_path(EPG_IO_CHMOD, dir, path, result);
}

int epg_io_ftruncate(int fd, off_t size)
{
    if (epg_io_pass(EPG_IO_TRUNCATE, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, ftruncate(fd, size));
    if (result == 0) {
        epg_io_log_truncate(fd, size);
    }
    return result;
}

int epg_io_symlink(const char *target, int dir, const char *path)
{
    if (epg_io_pass(EPG_IO_SYMLINK, NULL) < 0) {
        return -1;
    }
    int result = 0;
    EPG_IO_RETRY(result, symlinkat(target, dir, path));
    if (result == 0) {
        epg_io_log_symlink(target, dir, path);
    }
    return result;
}

int epg_io_bind_unix(int fd, const char *path, mode_t mode)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, size + 1);
    if (epg_io_pass(EPG_IO_BIND, NULL) < 0) {
        return -1;
    }
    mode_t mask = umask(0777 & ~mode);
    int result = bind(fd, (const struct sockaddr *)&address, sizeof address);
    (void)umask(mask);
    return on_path(EPG_IO_BIND, AT_FDCWD, path, result);
}

int epg_io_boundary(const char *name)
{
    if (epg_io_pass(EPG_IO_BOUNDARY, NULL) < 0) {
        return -1;
    }
    epg_io_log_boundary(name);
    return 0;
}
