/* Each wrapper has one shape: pass the point (which may kill, fail or shorten), do the call until it is not
 * interrupted, and tell the log. The counters and the directives are the state of this file: a point is by nature
 * counted over the whole process. */
#include "system/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"

typedef enum io_call {
    CALL_OPEN,
    CALL_WRITE,
    CALL_FSYNC,
    CALL_FDATASYNC,
    CALL_RENAME,
    CALL_MKDIR,
    CALL_UNLINK,
    CALL_CHMOD,
    CALL_TRUNCATE,
    CALL_SYMLINK,
    CALL_BIND,
    CALL_BOUNDARY,
    CALL_COUNT /* also: any call */
} io_call;

static const char *const call_names[] = {"open",   "write", "fsync",    "fdatasync", "rename", "mkdir",
                                         "unlink", "chmod", "truncate", "symlink",   "bind",   "boundary"};

typedef enum io_action { ACTION_NONE, ACTION_KILL, ACTION_TORN, ACTION_ERRNO, ACTION_SHORT } io_action;

typedef struct io_directive {
    io_action action;
    int error;
    uint64_t point;
    bool onwards;
    io_call call;
} io_directive;

enum { DIRECTIVES = 8, FAULT_EXIT = 70 };

static struct {
    bool ready;
    bool playing; /* EPG_IO_FAULT was given */
    uint64_t points;
    uint64_t calls[CALL_COUNT];
    size_t count;
    io_directive directives[DIRECTIVES];
    int log;
} seam = {.log = -1};

static const struct {
    const char *name;
    int value;
} errno_names[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},     {"EDQUOT", EDQUOT}, {"EROFS", EROFS},
                   {"EACCES", EACCES}, {"EPERM", EPERM}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE},
                   {"ENOMEM", ENOMEM}, {"EFBIG", EFBIG}, {"EINTR", EINTR}};

static _Noreturn void refuse(const char *text)
{
    (void)fprintf(stderr, "EPG_IO_FAULT: can't read '%s'\n", text);
    _exit(FAULT_EXIT);
}

static bool read_action(io_directive *directive, const char *text, size_t size)
{
    static const struct {
        const char *name;
        io_action action;
    } actions[] = {{"kill", ACTION_KILL}, {"torn", ACTION_TORN}, {"short", ACTION_SHORT}};
    for (size_t i = 0; i < EPG_COUNT(actions); i++) {
        if (strlen(actions[i].name) == size && strncmp(actions[i].name, text, size) == 0) {
            directive->action = actions[i].action;
            return true;
        }
    }
    for (size_t i = 0; i < EPG_COUNT(errno_names); i++) {
        const char *name = errno_names[i].name;
        if (size == strlen("errno=") + strlen(name) && strncmp(text, "errno=", strlen("errno=")) == 0 &&
            strncmp(text + strlen("errno="), name, strlen(name)) == 0) {
            directive->action = ACTION_ERRNO;
            directive->error = errno_names[i].value;
            return true;
        }
    }
    return false;
}

static bool read_directive(io_directive *directive, char *text)
{
    char *call = strchr(text, ':');
    directive->call = CALL_COUNT;
    if (call != NULL) {
        *call++ = '\0';
        for (int i = 0; i < CALL_COUNT; i++) {
            if (strcmp(call, call_names[i]) == 0) {
                directive->call = (io_call)i;
            }
        }
        if (directive->call == CALL_COUNT) {
            return false;
        }
    }
    char *at = strchr(text, '@');
    if (at == NULL || !read_action(directive, text, (size_t)(at - text))) {
        return false;
    }
    size_t digits = strlen(at + 1);
    directive->onwards = digits > 1 && at[digits] == '+';
    return epg_parse_u64(at + 1, digits - directive->onwards, UINT64_MAX, &directive->point);
}

static void read_faults(const char *text)
{
    EPG_AUTO_FREE char *copy = epg_strdup(text);
    char *next = copy;
    while (next != NULL && *next != '\0') {
        char *item = next;
        if (epg_starts_with(item, "log=")) {
            seam.log = open(item + strlen("log="), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
            if (seam.log < 0) {
                refuse(item);
            }
            return;
        }
        next = strchr(item, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (seam.count == DIRECTIVES || !read_directive(&seam.directives[seam.count], item)) {
            refuse(item);
        }
        seam.count++;
    }
}

static void start(void)
{
    seam.ready = true;
    const char *text = getenv("EPG_IO_FAULT");
    if (text != NULL && *text != '\0') {
        seam.playing = true;
        read_faults(text);
    }
}

static _Noreturn void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;) {
        (void)pause();
    }
}

/* The directive that concerns the point just counted, or NULL. */
static const io_directive *directive_now(io_call call)
{
    for (size_t i = 0; i < seam.count; i++) {
        const io_directive *directive = &seam.directives[i];
        if (directive->call != CALL_COUNT && directive->call != call) {
            continue;
        }
        uint64_t now = directive->call == CALL_COUNT ? seam.points : seam.calls[call];
        if (now == directive->point || (directive->onwards && now > directive->point)) {
            return directive;
        }
    }
    return NULL;
}

/* Counts a point. 0: go on; -1: the call fails with errno set. *part (for a write) is set for torn and short. */
static int pass(io_call call, io_action *part)
{
    if (!seam.ready) {
        start();
    }
    seam.points++;
    seam.calls[call]++;
    if (!seam.playing) {
        return 0;
    }
    const io_directive *directive = directive_now(call);
    if (directive == NULL) {
        return 0;
    }
    bool whole = part == NULL;
    switch (directive->action) {
    case ACTION_KILL:
        die();
    case ACTION_TORN:
        if (whole) {
            die();
        }
        *part = ACTION_TORN;
        return 0;
    case ACTION_SHORT:
        if (!whole) {
            *part = ACTION_SHORT;
        }
        return 0;
    case ACTION_ERRNO:
        /* An interrupted call is tried again by every wrapper here: that the first try failed shows nowhere else. */
        if (directive->error == EINTR) {
            return 0;
        }
        errno = directive->error;
        return -1;
    case ACTION_NONE:
        break;
    }
    return 0;
}

#define RETRY(result, expression)                                                                                      \
    do {                                                                                                               \
        (result) = (expression);                                                                                       \
    } while ((result) < 0 && errno == EINTR)

/* The log. */

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
    (void)epg_buffer_format(line, ",\"device\":%ju,\"inode\":%ju", (uintmax_t)info->st_dev, (uintmax_t)info->st_ino);
}

static void log_inode_of(epg_buffer *line, int fd)
{
    struct stat info;
    if (fstat(fd, &info) == 0) {
        log_inode(line, &info);
    }
}

static void log_begin(epg_buffer *line, io_call call)
{
    (void)epg_buffer_format(line, "{\"call\":\"%s\",\"point\":%ju,\"pid\":%d", call_names[call], (uintmax_t)seam.points,
                            (int)getpid());
}

/* One write(2) a line: O_APPEND keeps the lines of several processes whole. */
static void log_end(epg_buffer *line)
{
    (void)epg_buffer_text(line, "}\n");
    size_t done = 0;
    while (done < line->size) {
        ssize_t wrote = 0;
        RETRY(wrote, write(seam.log, line->data + done, line->size - done));
        if (wrote < 0) {
            refuse("log: can't write it");
        }
        done += (size_t)wrote;
    }
}

static void log_fd_call(io_call call, int fd)
{
    EPG_AUTO_BUFFER line = {0};
    log_begin(&line, call);
    log_inode_of(&line, fd);
    log_path_of(&line, "path", fd);
    log_end(&line);
}

static void log_at_call(io_call call, int dir, const char *path)
{
    EPG_AUTO_BUFFER line = {0};
    struct stat info;
    log_begin(&line, call);
    if (fstatat(dir, path, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        log_inode(&line, &info);
    }
    log_path_at(&line, "path", dir, path);
    log_end(&line);
}

static void log_write(int fd, off_t offset, const void *data, size_t size)
{
    EPG_AUTO_BUFFER line = {0};
    log_begin(&line, CALL_WRITE);
    log_inode_of(&line, fd);
    log_path_of(&line, "path", fd);
    (void)epg_buffer_format(&line, ",\"offset\":%jd,\"size\":%zu,\"data\":\"", (intmax_t)offset, size);
    epg_base64_encode(epg_span_of(data, size), &line);
    (void)epg_buffer_text(&line, "\"");
    log_end(&line);
}

/* A failing or succeeding call keeps its errno over the log's own calls. */
static int finished(int result, bool logged)
{
    return result >= 0 && logged && seam.log >= 0;
}

int epg_io_open(int dir, const char *path, int flags, mode_t mode)
{
    bool counted = (flags & (O_CREAT | O_TRUNC)) != 0;
    if (counted && pass(CALL_OPEN, NULL) < 0) {
        return -1;
    }
    int fd = -1;
    RETRY(fd, openat(dir, path, flags | O_CLOEXEC, mode));
    if (finished(fd, counted)) {
        EPG_AUTO_BUFFER line = {0};
        log_begin(&line, CALL_OPEN);
        log_inode_of(&line, fd);
        log_path_at(&line, "path", dir, path);
        (void)epg_buffer_format(&line, ",\"truncate\":%s", (flags & O_TRUNC) != 0 ? "true" : "false");
        log_end(&line);
    }
    return fd;
}

static int write_rest(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t wrote = 0;
        RETRY(wrote, write(fd, data, size));
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
    io_action part = ACTION_NONE;
    if (pass(CALL_WRITE, &part) < 0) {
        return -1;
    }
    off_t offset = seam.log >= 0 ? write_offset(fd) : 0;
    size_t first = part == ACTION_NONE ? size : size / 2;
    const uint8_t *bytes = data;
    int result = write_rest(fd, bytes, first);
    if (part == ACTION_TORN) {
        die();
    }
    if (result == 0) {
        result = write_rest(fd, bytes + first, size - first);
    }
    if (finished(result, true)) {
        log_write(fd, offset, data, size);
    }
    return result;
}

static int on_fd(io_call call, int fd, int result)
{
    if (finished(result, true)) {
        log_fd_call(call, fd);
    }
    return result;
}

int epg_io_fsync(int fd)
{
    if (pass(CALL_FSYNC, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, fsync(fd));
    return on_fd(CALL_FSYNC, fd, result);
}

int epg_io_fdatasync(int fd)
{
    if (pass(CALL_FDATASYNC, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, fdatasync(fd));
    return on_fd(CALL_FDATASYNC, fd, result);
}

static int renamed(int result, int from_dir, const char *from, int to_dir, const char *to)
{
    if (finished(result, true)) {
        EPG_AUTO_BUFFER line = {0};
        struct stat info;
        log_begin(&line, CALL_RENAME);
        if (fstatat(to_dir, to, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            log_inode(&line, &info);
        }
        log_path_at(&line, "path", from_dir, from);
        log_path_at(&line, "to", to_dir, to);
        log_end(&line);
    }
    return result;
}

int epg_io_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    if (pass(CALL_RENAME, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, renameat(from_dir, from, to_dir, to));
    return renamed(result, from_dir, from, to_dir, to);
}

int epg_io_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
    if (pass(CALL_RENAME, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE));
    if (result < 0 && (errno == EINVAL || errno == ENOSYS)) {
        /* NFS and some others can't do it in one step: look, then rename. */
        struct stat info;
        if (fstatat(to_dir, to, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            errno = EEXIST;
            return -1;
        }
        RETRY(result, renameat(from_dir, from, to_dir, to));
    }
    return renamed(result, from_dir, from, to_dir, to);
}

static int on_path(io_call call, int dir, const char *path, int result)
{
    if (finished(result, true)) {
        log_at_call(call, dir, path);
    }
    return result;
}

int epg_io_mkdir(int dir, const char *path, mode_t mode)
{
    if (pass(CALL_MKDIR, NULL) < 0) {
        return -1;
    }
    /* One thread, so that the mask can be lifted for one call: no moment in which the mode is another. */
    mode_t mask = umask(0);
    int result = 0;
    RETRY(result, mkdirat(dir, path, mode));
    (void)umask(mask);
    return on_path(CALL_MKDIR, dir, path, result);
}

int epg_io_unlink(int dir, const char *path, int flags)
{
    if (pass(CALL_UNLINK, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, unlinkat(dir, path, flags));
    return on_path(CALL_UNLINK, dir, path, result);
}

int epg_io_fchmod(int fd, mode_t mode)
{
    if (pass(CALL_CHMOD, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, fchmod(fd, mode));
    return on_fd(CALL_CHMOD, fd, result);
}

int epg_io_chmod(int dir, const char *path, mode_t mode)
{
    if (pass(CALL_CHMOD, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, fchmodat(dir, path, mode, AT_SYMLINK_NOFOLLOW));
    return on_path(CALL_CHMOD, dir, path, result);
}

int epg_io_ftruncate(int fd, off_t size)
{
    if (pass(CALL_TRUNCATE, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, ftruncate(fd, size));
    if (finished(result, true)) {
        EPG_AUTO_BUFFER line = {0};
        log_begin(&line, CALL_TRUNCATE);
        log_inode_of(&line, fd);
        log_path_of(&line, "path", fd);
        (void)epg_buffer_format(&line, ",\"size\":%jd", (intmax_t)size);
        log_end(&line);
    }
    return result;
}

int epg_io_symlink(const char *target, int dir, const char *path)
{
    if (pass(CALL_SYMLINK, NULL) < 0) {
        return -1;
    }
    int result = 0;
    RETRY(result, symlinkat(target, dir, path));
    if (finished(result, true)) {
        EPG_AUTO_BUFFER line = {0};
        log_begin(&line, CALL_SYMLINK);
        log_path_at(&line, "path", dir, path);
        log_text(&line, "target", target);
        log_end(&line);
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
    if (pass(CALL_BIND, NULL) < 0) {
        return -1;
    }
    mode_t mask = umask(0777 & ~mode);
    int result = bind(fd, (const struct sockaddr *)&address, sizeof address);
    (void)umask(mask);
    return on_path(CALL_BIND, AT_FDCWD, path, result);
}

int epg_io_boundary(const char *name)
{
    if (pass(CALL_BOUNDARY, NULL) < 0) {
        return -1;
    }
    if (seam.log >= 0) {
        EPG_AUTO_BUFFER line = {0};
        log_begin(&line, CALL_BOUNDARY);
        log_text(&line, "name", name);
        log_end(&line);
    }
    return 0;
}

uint64_t epg_io_points(void)
{
    return seam.points;
}
