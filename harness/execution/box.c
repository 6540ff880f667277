/* How a sandbox comes to be: contain outside -> bwrap -> contain inside -> the command, each by exec. The last of them
 * tells us that it got there, on a packet socket whose end then says that the command runs (it is close-on-exec). What
 * any of them prints goes to a memory file that we read only when it went wrong: so a failed set-up is told with its
 * step, and never taken for a command that ended. */
#include "execution/box.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "system/socket.h"

void epg_words_take(epg_words *words, char *text)
{
    words->texts = epg_grow_array(words->texts, words->count + 2, sizeof *words->texts);
    words->texts[words->count++] = text;
    words->texts[words->count] = NULL;
}

void epg_words_add(epg_words *words, const char *text)
{
    epg_words_take(words, epg_strdup(text));
}

void epg_words_free(epg_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->texts[i]);
    }
    free(words->texts);
    *words = (epg_words){0};
}

static char *find_in_path(const char *name)
{
    const char *path = getenv("PATH");
    EPG_AUTO_FREE char *all = epg_format("%s:/usr/local/bin:/usr/bin:/bin", path != NULL ? path : "");
    char *rest = NULL;
    for (char *entry = strtok_r(all, ":", &rest); entry != NULL; entry = strtok_r(NULL, ":", &rest)) {
        EPG_AUTO_FREE char *file = epg_format("%s/%s", entry, name);
        if (*entry == '/' && access(file, X_OK) == 0) {
            return EPG_TAKE(file);
        }
    }
    return NULL;
}

epg_code epg_tools_find(char **directory, epg_error *err)
{
    EPG_AUTO_FREE char *own = epg_own_executable();
    char *slash = strrchr(own, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    EPG_AUTO_FREE char *installed = epg_format("%s/../libexec/evopolicygym", own);
    EPG_AUTO_FREE char *above = epg_format("%s/..", own); /* the tests' own programs in a build tree */
    const char *const places[] = {installed, own, above, EPG_LIBEXEC_DIRECTORY};
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        EPG_AUTO_FREE char *contain = epg_format("%s/" EPG_CONTAIN, places[i]);
        EPG_AUTO_FREE char *cell = epg_format("%s/" EPG_CELL, places[i]);
        if (access(contain, X_OK) == 0 && access(cell, R_OK) == 0) {
            char *real = realpath(places[i], NULL);
            if (real != NULL) {
                *directory = real;
                return EPG_OK;
            }
        }
    }
    return epg_fail(err, EPG_ERR_UNAVAILABLE, EPG_CONTAIN " is not in %s: install evopolicygym again",
                    EPG_LIBEXEC_DIRECTORY);
}

/* --- Who it runs as. --- */

/* A user that nobody is: from a range that no distribution hands out, told apart by our process id, so that sandboxes
 * of different workers share no user. In a container with fewer users, from the upper half of those that there are. */
static epg_code choose_user(epg_box_role role, uint32_t *out, epg_error *err)
{
    const uint32_t base = UINT32_C(1879048192);
    const uint32_t pids = UINT32_C(1) << 22;
    uint32_t wanted = base + (role == EPG_BOX_AGENT ? pids : 0) + (uint32_t)getpid() % pids;
    unsigned long long inside = 0;
    unsigned long long outside = 0;
    unsigned long long count = 0;
    unsigned long long most = 0;
    FILE *map = fopen("/proc/self/uid_map", "re");
    while (map != NULL && fscanf(map, "%llu %llu %llu", &inside, &outside, &count) == 3) {
        if (wanted >= inside && wanted - inside < count) {
            (void)fclose(map);
            *out = wanted;
            return EPG_OK;
        }
        if (inside < 1000000 && inside + count > most) {
            most = inside + count;
        }
    }
    if (map != NULL) {
        (void)fclose(map);
    }
    if (most < 2000) {
        return epg_fail(err, EPG_ERR_UNAVAILABLE,
                        "root can't become another user here (/proc/self/uid_map): run as an ordinary user");
    }
    unsigned long long half = most / 2;
    *out = (uint32_t)(half + ((unsigned long long)getpid() * 2 + (role == EPG_BOX_AGENT)) % (half - 100));
    return EPG_OK;
}

/* --- What it is made of. --- */

static void map_fd(epg_box *box, int from, int to)
{
    if (box->fd_count == EPG_BOX_FDS) {
        abort(); /* ours and below ten of the command's: a fault of this project */
    }
    box->fds[box->fd_count++] = (epg_fd_map){.from = from, .to = to};
}

void epg_box_add_fd(epg_box *box, int from, int to)
{
    map_fd(box, from, to);
    box->owned[box->owned_count++] = from;
}

void epg_box_option(epg_box *box, const char *const *words)
{
    for (; *words != NULL; words++) {
        (void)epg_buffer_append(&box->options, *words, strlen(*words) + 1);
    }
}

/* Where bwrap finds `path`: as root, where it was staged. */
static char *source_of(epg_box *box, const char *path, const char *how)
{
    if (box->drop == 0) {
        return epg_strdup(path);
    }
    epg_words_add(&box->outside, how);
    epg_words_add(&box->outside, path);
    return epg_format(EPG_STAGE "/%zu", box->staged++);
}

void epg_box_show(epg_box *box, const char *path, const char *at)
{
    EPG_AUTO_FREE char *source = source_of(box, path, "--stage");
    EPG_BOX_OPTION(box, "--ro-bind", source, at);
}

void epg_box_show_here(epg_box *box, const char *path)
{
    char target[4096];
    ssize_t size = readlink(path, target, sizeof target - 1);
    if (size > 0) {
        target[size] = '\0';
        EPG_BOX_OPTION(box, "--symlink", target, path);
    } else {
        epg_box_show(box, path, path);
    }
}

void epg_box_give(epg_box *box, const char *path, const char *at, bool writable)
{
    EPG_AUTO_FREE char *source = source_of(box, path, "--own");
    EPG_BOX_OPTION(box, writable ? "--bind" : "--ro-bind", source, at);
}

void epg_box_scratch(epg_box *box, const char *at, uint64_t bytes)
{
    EPG_AUTO_FREE char *size = epg_format("%" PRIu64, bytes);
    if (bytes > 0) {
        EPG_BOX_OPTION(box, "--size", size);
    }
    EPG_BOX_OPTION(box, "--perms", "1777", "--tmpfs", at);
}

static void show_directories(epg_box *box)
{
    static const char *const places[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        char target[256];
        struct stat info;
        if (lstat(places[i], &info) != 0) {
            continue;
        }
        ssize_t size = S_ISLNK(info.st_mode) ? readlink(places[i], target, sizeof target - 1) : 0;
        if (size > 0) {
            target[size] = '\0';
            EPG_BOX_OPTION(box, "--symlink", target, places[i]);
        } else if (S_ISDIR(info.st_mode)) {
            EPG_BOX_OPTION(box, "--ro-bind", places[i], places[i]);
        }
    }
}

/* A Policy's zone is UTC, wherever its Host is. */
static void show_settings(epg_box *box, epg_box_role role)
{
    static const char *const files[] = {"/etc/ld.so.cache", "/etc/alternatives",
                                        /* from here on: what an Agent's tools look for */
                                        "/etc/localtime", "/etc/mime.types", "/etc/resolv.conf", "/etc/hosts",
                                        "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
                                        "/etc/protocols", "/etc/ssl", "/etc/ca-certificates", "/etc/pki"};
    enum { FOR_POLICIES = 2 };
    for (size_t i = 0; i < (role == EPG_BOX_AGENT ? EPG_COUNT(files) : FOR_POLICIES); i++) {
        EPG_AUTO_FREE char *real = realpath(files[i], NULL); /* resolv.conf may be a link to somewhere in /run */
        if (real != NULL && access(real, R_OK) == 0) {
            EPG_BOX_OPTION(box, "--ro-bind", real, files[i]);
        }
    }
    EPG_BOX_OPTION(box, "--perms", "0444", "--file", "12", "/etc/passwd");
    EPG_BOX_OPTION(box, "--perms", "0444", "--file", "13", "/etc/group");
}

/* bwrap's own --dev brings terminals, which an Agent's tools use, and a file system without a bound, so it is closed.
 */
static void show_devices(epg_box *box, epg_box_role role)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"}};
    if (role == EPG_BOX_AGENT) {
        EPG_BOX_OPTION(box, "--dev", "/dev", "--remount-ro", "/dev");
        return;
    }
    EPG_BOX_OPTION(box, "--size", "65536", "--tmpfs", "/dev");
    for (size_t i = 0; i < EPG_COUNT(devices); i++) {
        EPG_BOX_OPTION(box, "--dev-bind", devices[i], devices[i]);
    }
    for (size_t i = 0; i < EPG_COUNT(links); i++) {
        EPG_BOX_OPTION(box, "--symlink", links[i][0], links[i][1]);
    }
    EPG_BOX_OPTION(box, "--symlink", "/tmp", "/dev/shm", "--remount-ro", "/dev"); /* one bound for both */
}

void epg_box_show_system(epg_box *box, epg_box_role role)
{
    EPG_AUTO_FREE char *contain = epg_format("%s/" EPG_CONTAIN, box->tools);
    show_directories(box);
    show_settings(box, role);
    EPG_BOX_OPTION(box, "--proc", "/proc", "--dir", "/tmp");
    show_devices(box, role);
    epg_box_show(box, contain, EPG_INSIDE_DIRECTORY "/" EPG_CONTAIN);
}

epg_code epg_box_open(epg_box *box, epg_box_role role, epg_error *err)
{
    *box = (epg_box){.ready = -1, .messages = -1};
    EPG_AUTO_FREE char *bwrap = find_in_path("bwrap");
    if (bwrap == NULL) {
        return epg_fail(err, EPG_ERR_UNAVAILABLE, "bwrap is not installed");
    }
    if (geteuid() == 0) {
        EPG_TRY(choose_user(role, &box->drop, err));
    }
    EPG_TRY(epg_tools_find(&box->tools, err));
    EPG_AUTO_FREE char *contain = epg_format("%s/" EPG_CONTAIN, box->tools);
    epg_words_add(&box->argv, contain);
    epg_words_add(&box->argv, "outside");
    if (box->drop != 0) {
        epg_words_add(&box->outside, "--drop");
        epg_words_take(&box->outside, epg_format("%" PRIu32, box->drop));
    }
    epg_words_add(&box->inside, "--");
    epg_words_add(&box->inside, bwrap);
    epg_words_add(&box->inside, "--args");
    epg_words_take(&box->inside, epg_format("%d", EPG_FD_ARGUMENTS));
    epg_words_add(&box->inside, EPG_INSIDE_DIRECTORY "/" EPG_CONTAIN);
    epg_words_add(&box->inside, "inside");
    EPG_BOX_OPTION(box, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup");
    EPG_BOX_OPTION(box, "--die-with-parent", "--new-session", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL");
    return EPG_OK;
}

void epg_box_close(epg_box *box)
{
    for (size_t i = 0; i < box->owned_count; i++) {
        (void)close(box->owned[i]);
    }
    epg_close_cleanup(&box->ready);
    epg_words_free(&box->outside);
    epg_words_free(&box->inside);
    epg_words_free(&box->argv);
    epg_buffer_free(&box->options);
    free(box->tools);
    *box = (epg_box){.ready = -1, .messages = -1};
}

/* --- The command line. --- */

static epg_code add_text(epg_box *box, const void *text, size_t size, int to, epg_error *err)
{
    int fd = memfd_create("sandbox", MFD_CLOEXEC);
    if (fd < 0) {
        return epg_fail_errno(err, errno, "can't make a file for a sandbox");
    }
    epg_box_add_fd(box, fd, to);
    if (write(fd, text, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0) {
        return epg_fail_errno(err, errno, "can't write a file for a sandbox");
    }
    return EPG_OK;
}

static epg_code add_channel(epg_box *box, epg_error *err)
{
    int theirs = -1;
    if (epg_socket_pair(&box->ready, &theirs) != 0) {
        return epg_fail_errno(err, errno, "can't make a socket for a sandbox");
    }
    epg_box_add_fd(box, theirs, EPG_FD_READY);
    box->messages = memfd_create("sandbox-messages", MFD_CLOEXEC);
    if (box->messages < 0) {
        return epg_fail_errno(err, errno, "can't make a file for a sandbox");
    }
    epg_box_add_fd(box, box->messages, STDERR_FILENO);
    return EPG_OK;
}

/* The command's own descriptors; its stderr waits elsewhere until it runs. */
static void add_inner_fds(epg_box *box, const epg_spawn *inner)
{
    bool have_stderr = false;
    for (size_t i = 0; i < inner->fd_count; i++) {
        epg_fd_map map = inner->fds[i];
        if (map.to == STDERR_FILENO) {
            map.to = EPG_FD_STDERR;
            have_stderr = true;
        }
        map_fd(box, map.from, map.to);
    }
    if (!have_stderr) {
        epg_box_add_fd(box, open("/dev/null", O_RDWR | O_CLOEXEC), EPG_FD_STDERR);
    }
    epg_words_add(&box->inside, "--stderr");
    epg_words_take(&box->inside, epg_format("%d", EPG_FD_STDERR));
}

static void append_all(epg_words *to, const epg_words *from)
{
    for (size_t i = 0; i < from->count; i++) {
        epg_words_add(to, from->texts[i]);
    }
}

epg_code epg_box_finish(epg_box *box, const epg_spawn *inner, epg_filter_kind kind, bool uncounted, epg_error *err)
{
    static const char passwd[] = "root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n"
                                 "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
    static const char group[] = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n";
    int filter = -1;
    EPG_BOX_OPTION(box, "--chdir", box->directory != NULL ? box->directory : "/");
    EPG_BOX_OPTION(box, "--remount-ro", "/", "--seccomp", "11");
    EPG_TRY(add_channel(box, err));
    EPG_TRY(epg_filter_make(kind, uncounted, &filter, err));
    epg_box_add_fd(box, filter, EPG_FD_FILTER);
    EPG_TRY(add_text(box, passwd, sizeof passwd - 1, EPG_FD_PASSWD, err));
    EPG_TRY(add_text(box, group, sizeof group - 1, EPG_FD_GROUP, err));
    EPG_TRY(add_text(box, box->options.data, box->options.size, EPG_FD_ARGUMENTS, err));
    add_inner_fds(box, inner);
    append_all(&box->argv, &box->outside);
    append_all(&box->argv, &box->inside);
    epg_words_add(&box->argv, "--");
    for (size_t i = 0; inner->argv[i] != NULL; i++) {
        epg_words_add(&box->argv, inner->argv[i]);
    }
    box->spawn = *inner;
    box->spawn.argv = (const char *const *)box->argv.texts;
    box->spawn.search_path = NULL;
    box->spawn.fds = box->fds;
    box->spawn.fd_count = box->fd_count;
    return EPG_OK;
}

/* --- Its start. --- */

/* The last line of what the tools printed. */
static char *last_message(const epg_box *box)
{
    enum { SIZE = 700 };
    char text[SIZE];
    off_t size = lseek(box->messages, 0, SEEK_END);
    ssize_t got = pread(box->messages, text, sizeof text, size > SIZE ? size - SIZE : 0);
    while (got > 0 && text[got - 1] == '\n') {
        got--;
    }
    if (got <= 0) {
        return epg_strdup("it ended without a word");
    }
    const char *last = memrchr(text, '\n', (size_t)got);
    const char *start = last != NULL ? last + 1 : text;
    return epg_printable(start, (size_t)(text + got - start));
}

epg_code epg_box_await(epg_box *box, int64_t deadline, epg_error *err)
{
    /* Our copies of what the other side holds, so that its end can be seen. */
    for (size_t i = 0; i < box->owned_count; i++) {
        if (box->owned[i] != box->messages) {
            (void)close(box->owned[i]);
            box->owned[i] = -1;
        }
    }
    for (;;) {
        char text[512];
        struct pollfd ready = {.fd = box->ready, .events = POLLIN};
        int count = poll(&ready, 1, epg_poll_timeout_ms(deadline));
        if (count == 0 && epg_monotonic_ns() >= deadline) {
            EPG_AUTO_FREE char *last = last_message(box);
            return epg_fail(err, EPG_ERR_EXECUTION, "a sandbox was not made in time (%s)", last);
        }
        ssize_t got = epg_socket_receive(box->ready, text, sizeof text - 1, &box->pid); /* EAGAIN: too early */
        if (got > 0 && strncmp(text, EPG_READY, strlen(EPG_READY)) == 0) {
            continue;
        }
        if (got == 0 && box->pid != 0) {
            return EPG_OK;
        }
        if (got == 0) {
            EPG_AUTO_FREE char *last = last_message(box);
            return epg_fail(err, EPG_ERR_EXECUTION, "a sandbox could not be made: %s", last);
        }
        if (got > 0) {
            text[got] = '\0';
            char *what = NULL;
            int error = (int)strtol(text, &what, 10);
            EPG_AUTO_FREE char *shown = epg_printable(what, strlen(what));
            (void)epg_fail_errno(err, error, "can't start it in a sandbox:%s", shown);
            return epg_fail_as(err, error == ENOENT ? EPG_ERR_NOT_FOUND : EPG_ERR_EXECUTION, "sandbox");
        }
        if (errno != EAGAIN && errno != EINTR) {
            return epg_fail_errno(err, errno, "can't hear from a sandbox");
        }
    }
}
