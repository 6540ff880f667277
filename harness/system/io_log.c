/* The log of the write seam: one line of JSON for each call that worked. */
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "system/io.h"
#include "system/io_seam.h"

static void log_text(epg_buffer *line, const char *key, const char *text)
{
    (void)epg_buffer_format(line, ",\"%s\":\"", key);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c < 0x20 || *c >= 0x7f || *c == '"' || *c == '\\') {
            (void)epg_buffer_format(line, "\\u%04x", (unsigned)*c);
        } else {
            (void)epg_buffer_byte(line, *c);
        }
    }
    (void)epg_buffer_byte(line, '"');
}

static void log_path_of(epg_buffer *line, const char *key, int fd)
{
    char link[64];
    char path[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size > 0) {
        path[size] = '\0';
        log_text(line, key, path);
    }
}

/* dir/name as an absolute path. */
static void log_path_at(epg_buffer *line, const char *key, int dir, const char *name)
{
    char base[PATH_MAX] = "";
    if (*name != '/') {
        char link[64] = "/proc/self/cwd";
        if (dir != AT_FDCWD) {
            (void)snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        }
        ssize_t size = readlink(link, base, sizeof base - 2);
        if (size > 0) {
            base[size] = '/';
            base[size + 1] = '\0';
        }
    }
    EPG_AUTO_FREE char *whole = epg_format("%s%s", base, name);
    log_text(line, key, whole);
}

static void log_inode(epg_buffer *line, const struct stat *info)
{
    (void)epg_buffer_format(line, ",\"device\":%ju,\"inode\":%ju,\"mode\":%u", (uintmax_t)info->st_dev,
                            (uintmax_t)info->st_ino, (unsigned)(info->st_mode & 07777));
}

static void log_inode_of(epg_buffer *line, int fd)
{
    struct stat info;
    if (fstat(fd, &info) == 0) {
        log_inode(line, &info);
    }
}

static void log_inode_at(epg_buffer *line, int dir, const char *path)
{
    struct stat info;
    if (fstatat(dir, path, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        log_inode(line, &info);
    }
}

/* False: no log is kept. */
static bool log_begin(epg_buffer *line, epg_io_call call)
{
    if (epg_io_log_fd() < 0) {
        return false;
    }
    (void)epg_buffer_format(line, "{\"call\":\"%s\",\"point\":%ju,\"pid\":%d", epg_io_call_names[call],
                            (uintmax_t)epg_io_points(), (int)getpid());
    return true;
}

/* One write(2) a line: O_APPEND keeps the lines of several processes whole. */
static void log_end(epg_buffer *line)
{
    (void)epg_buffer_text(line, "}\n");
    size_t done = 0;
    while (done < line->size) {
        ssize_t wrote = 0;
        EPG_IO_RETRY(wrote, write(epg_io_log_fd(), line->data + done, line->size - done));
        if (wrote < 0) {
            epg_io_refuse("log: can't write it");
        }
        done += (size_t)wrote;
    }
}

void epg_io_log_open(int fd, int dir, const char *path, bool truncated)
{
    EPG_AUTO_BUFFER line = {0};
    if (log_begin(&line, EPG_IO_OPEN)) {
        log_inode_of(&line, fd);
        log_path_at(&line, "path", dir, path);
        (void)epg_buffer_format(&line, ",\"truncate\":%s", truncated ? "true" : "false");
        log_end(&line);
    }
}

void epg_io_log_write(int fd, off_t offset, const void *data, size_t size)
{
    EPG_AUTO_BUFFER line = {0};
    if (log_begin(&line, EPG_IO_WRITE)) {
        log_inode_of(&line, fd);
        log_path_of(&line, "path", fd);
        (void)epg_buffer_format(&line, ",\"offset\":%jd,\"size\":%zu,\"data\":\"", (intmax_t)offset, size);
        epg_base64_encode(epg_span_of(data, size), &line);
        (void)epg_buffer_text(&line, "\"");
        log_end(&line);
    }
}

void epg_io_log_truncate(int fd, off_t size)
{
    EPG_AUTO_BUFFER line = {0};
    if (log_begin(&line, EPG_IO_TRUNCATE)) {
        log_inode_of(&line, fd);
        log_path_of(&line, "path", fd);
        (void)epg_buffer_format(&line, ",\"size\":%jd", (intmax_t)size);
        log_end(&line);
    }
}

void epg_io_log_on_fd(epg_io_call call, int fd)
{
    EPG_AUTO_BUFFER line = {0};
    if (log_begin(&line, call)) {
        log_inode_of(&line, fd);
        log_path_of(&line, "path", fd);
        log_end(&line);
    }
}

void epg_io_log_on_path(epg_io_call call, int dir, const char *path)
{
    EPG_AUTO_BUFFER line = {0};
    if (log_begin(&line, call)) {
        log_inode_at(&line, dir, path);
        log_path_at(&line, "path", dir, path);
        log_end(&line);
    }
}

void epg_io_log_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    EPG_AUTO_BUFFER line = {0};
    if (log_begin(&line, EPG_IO_RENAME)) {
        log_inode_at(&line, to_dir, to);
        log_path_at(&line, "path", from_dir, from);
        log_path_at(&line, "to", to_dir, to);
        log_end(&line);
    }
}

void epg_io_log_symlink(const char *target, int dir, const char *path)
{
    EPG_AUTO_BUFFER line = {0};
    if (log_begin(&line, EPG_IO_SYMLINK)) {
        log_inode_at(&line, dir, path);
        log_path_at(&line, "path", dir, path);
        log_text(&line, "target", target);
        log_end(&line);
    }
}

void epg_io_log_boundary(const char *name)
{
    EPG_AUTO_BUFFER line = {0};
    if (log_begin(&line, EPG_IO_BOUNDARY)) {
        log_text(&line, "name", name);
        log_end(&line);
    }
}
