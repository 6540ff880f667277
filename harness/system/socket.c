#include "system/socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "system/files.h"
#include "system/io.h"

enum { BACKLOG = 64 };
static const char socket_name[] = "session.sock";
static const char bound_name[] = "session.sock.new"; /* until somebody listens */

/* A private directory below `base`, short enough for a socket in it; NULL with errno when it can't be had. */
static char *private_directory(const char *base)
{
    EPG_AUTO_FREE char *name = epg_file_temporary_name("epg-");
    EPG_AUTO_FREE char *directory = epg_format("%s/%s", base, name);
    struct sockaddr_un address;
    if (strlen(directory) + 1 + sizeof bound_name > sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return epg_io_mkdir(AT_FDCWD, directory, 0700) < 0 ? NULL : EPG_TAKE(directory);
}

static char *choose_directory(epg_error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char *directory = runtime != NULL && *runtime == '/' ? private_directory(runtime) : NULL;
    if (directory == NULL) {
        directory = private_directory("/tmp");
    }
    if (directory == NULL) {
        (void)epg_fail_errno(err, errno, "can't make a directory for the session's socket in /tmp");
    }
    return directory;
}

/* True when nobody listens in `directory`, at `path`: not in our network namespace, which the kernel's list tells
 * without touching the socket, nor in another's, which only a connection tells. A Host that has just begun may not be
 * in the list, but its socket has the name only when it listens. */
static bool is_deserted(const char *directory, const char *path, const epg_buffer *listeners)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    EPG_AUTO_FREE char *below = epg_format("%s/", directory);
    if (strlen(path) >= sizeof address.sun_path || strstr(epg_buffer_cstr(listeners), below) != NULL) {
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    EPG_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
}

static bool is_session_directory(int base, const char *name)
{
    enum { NAME_SIZE = sizeof "epg-0123456789abcdef" - 1 };
    struct stat info;
    return strlen(name) == NAME_SIZE && strncmp(name, "epg-", 4) == 0 &&
           strspn(name + 4, "0123456789abcdef") == NAME_SIZE - 4 &&
           fstatat(base, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & 07777) == 0700;
}

/* A Host that was killed between making its directory and listening in it left no socket of that name. One that has
 * just begun looks the same, but not for long. */
static void sweep_unfinished(int base, const char *name)
{
    enum { OLD_S = 600 };
    struct stat info;
    if (fstatat(base, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || time(NULL) - info.st_mtime < OLD_S) {
        return;
    }
    EPG_AUTO_CLOSE int directory = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory >= 0 && faccessat(directory, socket_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
        (void)epg_io_unlink(directory, bound_name, 0);
        (void)epg_io_unlink(base, name, AT_REMOVEDIR);
    }
}

/* What killed Hosts have left is taken away by the next one; bounded, and nothing depends on it. */
static void sweep(const char *directory)
{
    enum { NAMES_MAX = 4096, LIST_MAX = 16 * 1024 * 1024 };
    EPG_AUTO_BUFFER listeners = {0};
    EPG_AUTO_FREE char *base = epg_strndup(directory, (size_t)(strrchr(directory, '/') - directory));
    EPG_AUTO_CLOSE int list = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
    DIR *listing = opendir(base);
    if (listing == NULL || list < 0 || epg_file_read_fd(list, "sockets", LIST_MAX, &listeners, NULL) != EPG_OK) {
        if (listing != NULL) {
            (void)closedir(listing);
        }
        return;
    }
    const struct dirent *entry = NULL;
    for (int i = 0; i < NAMES_MAX && (entry = readdir(listing)) != NULL; i++) {
        EPG_AUTO_FREE char *found = epg_format("%s/%s", base, entry->d_name);
        EPG_AUTO_FREE char *path = epg_format("%s/%s", found, socket_name);
        if (!is_session_directory(dirfd(listing), entry->d_name)) {
            continue;
        }
        if (is_deserted(found, path, &listeners)) {
            epg_socket_remove(EPG_TAKE(found), EPG_TAKE(path));
        } else {
            sweep_unfinished(dirfd(listing), entry->d_name);
        }
    }
    (void)closedir(listing);
}

/* Bound under another name and renamed once it listens: what has the name and does not listen was left by a dead Host.
 */
static int listen_at(const char *directory, const char *path)
{
    EPG_AUTO_FREE char *bound = epg_format("%s/%s", directory, bound_name);
    EPG_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || epg_io_bind_unix(fd, bound, 0600) < 0) {
        return -1;
    }
    if (listen(fd, BACKLOG) < 0 || epg_io_rename(AT_FDCWD, bound, AT_FDCWD, path) < 0) {
        int why = errno;
        (void)epg_io_unlink(AT_FDCWD, bound, 0);
        errno = why;
        return -1;
    }
    return epg_take_fd(&fd);
}

epg_code epg_socket_listen(int *fd, char **directory, char **path, epg_error *err)
{
    char *made = choose_directory(err);
    if (made == NULL) {
        return EPG_ERR_IO;
    }
    char *whole = epg_format("%s/%s", made, socket_name);
    int listener = listen_at(made, whole);
    if (listener < 0) {
        epg_code code = epg_fail_errno(err, errno, "can't listen at '%s'", whole);
        epg_socket_remove(made, whole);
        return code;
    }
    sweep(made);
    *fd = listener;
    *directory = made;
    *path = whole;
    return EPG_OK;
}

void epg_socket_remove(char *directory, char *path)
{
    if (path != NULL) {
        (void)epg_io_unlink(AT_FDCWD, path, 0);
        free(path);
    }
    if (directory != NULL) {
        (void)epg_io_unlink(AT_FDCWD, directory, AT_REMOVEDIR);
        free(directory);
    }
}

/* How long connect(2) may wait for room in the listener's queue. */
static struct timeval time_left(int64_t deadline)
{
    int64_t left = deadline == EPG_NEVER ? 0 : deadline - epg_monotonic_ns();
    if (deadline != EPG_NEVER && left < EPG_MILLISECOND) {
        left = EPG_MILLISECOND; /* 0 would mean for ever */
    }
    return (struct timeval){.tv_sec = left / EPG_SECOND, .tv_usec = (left % EPG_SECOND) / 1000};
}

static void set_send_timeout(int fd, struct timeval timeout)
{
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

epg_code epg_socket_connect(const char *path, int64_t deadline, int *fd, epg_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path) {
        return epg_fail(err, EPG_ERR_USAGE, "a socket's path has at most %zu bytes: '%s'", sizeof address.sun_path - 1,
                        path);
    }
    memcpy(address.sun_path, path, size + 1);
    EPG_AUTO_CLOSE int opened = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (opened < 0) {
        return epg_fail_errno(err, errno, "can't make a socket");
    }
    for (;;) {
        set_send_timeout(opened, time_left(deadline));
        if (connect(opened, (const struct sockaddr *)&address, sizeof address) == 0) {
            break;
        }
        if (errno == EAGAIN) {
            return epg_fail(err, EPG_ERR_TIMEOUT, "nobody answers at '%s'", path);
        }
        if (errno == EINTR) {
            continue;
        }
        int error = errno;
        epg_code code = epg_fail_errno(err, error, "can't connect to '%s'", path);
        if (error == ENOENT || error == ECONNREFUSED) {
            return epg_fail_as(err, error == ENOENT ? EPG_ERR_NOT_FOUND : EPG_ERR_CLOSED, "no Host listens here");
        }
        return code;
    }
    set_send_timeout(opened, (struct timeval){0});
    *fd = epg_take_fd(&opened);
    return EPG_OK;
}

int epg_socket_pair(int *ours, int *theirs)
{
    int ends[2] = {-1, -1};
    int on = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
        epg_close_cleanup(&ends[0]);
        epg_close_cleanup(&ends[1]);
        return -1;
    }
    *ours = ends[0];
    *theirs = ends[1];
    return 0;
}

ssize_t epg_socket_receive(int ours, void *packet, size_t size, pid_t *sender)
{
    union {
        struct cmsghdr head; /* for its alignment */
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control = {.space = {0}};
    struct iovec data = {packet, size};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    ssize_t got = recvmsg(ours, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS) {
        struct ucred who;
        memcpy(&who, CMSG_DATA(head), sizeof who);
        *sender = who.pid;
    }
    return got;
}
