/* A cell: the namespaces, limits and filter of one Policy process. This file is a library that the fork server's
 * interpreter loads before anything else; it stands in for the C library's fork().
 *
 * Why so. A fresh interpreter costs some 50 ms, a forked one 17 ms, and only the forked process itself can give up its
 * rights: nobody can do it for another. An interpreter has no means for that of its own which is everywhere, and
 * loading one (ctypes) would cost each of its children memory. So the fork that the server asks for makes a cell, and
 * comes back in the child when the child is inside.
 *
 * The server lives in a sandbox that bubblewrap made, as an unprivileged user of the Host, in namespaces of its own,
 * where it has CAP_SYS_ADMIN over those namespaces alone. For each fork it
 *   1. asks for a new PID namespace for its next child; forks; takes that back.
 * The child, process 1 of that namespace, then
 *   2. takes a mount namespace of its own: a fresh /proc of its own PID namespace (processes only, where the kernel
 *      can) and an empty /tmp of bounded size and number of files; the rest stays as bubblewrap left it, read-only;
 *   3. takes a user namespace, and IPC, UTS and network namespaces that belong to it. Mounts and PIDs belong to the
 *      namespace above, over which it has no rights any more, nor could get any;
 *   4. lays limits on itself, gives up every capability, for ever (no_new_privs), and loads the filter.
 * A child that could not be confined says why on stderr, which the Host keeps, and ends before any code of the
 * interpreter runs. The Host waits for a word from the child itself, and looks at it from outside, before a Program
 * reaches it.
 *
 * When process 1 ends the kernel ends all others of the namespace. Nothing but the pages of the pristine server is
 * shared between Episodes, and those are copied when written. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "execution/inside/inside.h"

enum { FILTER_MAX = 4096, CAPABILITIES_MAX = 64 };

/* The numbers of EPG_CELL_VARIABLE, in this order; 0: none. */
typedef struct cell {
    unsigned long long processes, descriptors, file_bytes, cpu_seconds, data_bytes, space_bytes, scratch_bytes,
        scratch_inodes;
} cell;

static struct {
    int armed; /* in the server only: what a Policy forks is a plain child */
    int own_pids;
    pid_t (*fork)(void);
    cell limits;
    struct sock_fprog filter;
} self = {.own_pids = -1};

static struct sock_filter filter_code[FILTER_MAX];

static void give_up(const char *step)
{
    (void)fprintf(stderr, "cell: %s: %s\n", step, strerror(errno));
    _exit(125);
}

static void read_filter(void)
{
    char *to = (char *)filter_code;
    size_t size = 0;
    ssize_t got = 0;
    while (size < sizeof filter_code &&
           (got = pread(EPG_FD_CELL_FILTER, to + size, sizeof filter_code - size, (off_t)size)) > 0) {
        size += (size_t)got;
    }
    if (got != 0 || size == 0 || size % sizeof filter_code[0] != 0) {
        give_up("reading the filter");
    }
    (void)close(EPG_FD_CELL_FILTER);
    self.filter.len = (unsigned short)(size / sizeof filter_code[0]);
    self.filter.filter = filter_code;
}

/* Before the interpreter's main. Loaded without its variable, this library does nothing. */
__attribute__((constructor)) static void arm(void)
{
    const char *numbers = getenv(EPG_CELL_VARIABLE);
    cell *limits = &self.limits;
    /* A symbol's address as a function: POSIX says that this works, ISO C does not. */
    void *address = dlsym(RTLD_NEXT, "fork");
    memcpy(&self.fork, &address, sizeof self.fork);
    if (numbers == NULL || self.fork == NULL) {
        return;
    }
    if (sscanf(numbers, "%llu %llu %llu %llu %llu %llu %llu %llu", &limits->processes, &limits->descriptors,
               &limits->file_bytes, &limits->cpu_seconds, &limits->data_bytes, &limits->space_bytes,
               &limits->scratch_bytes, &limits->scratch_inodes) != 8) {
        give_up("reading " EPG_CELL_VARIABLE);
    }
    self.own_pids = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (self.own_pids < 0) {
        give_up("open(/proc/self/ns/pid)");
    }
    read_filter();
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv(EPG_CELL_VARIABLE);
    self.armed = 1;
}

static const char *write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t size = strlen(text);
    int written = fd >= 0 && write(fd, text, size) == (ssize_t)size;
    int error = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = error;
    return written ? NULL : path;
}

static const char *mount_scratch(void)
{
    char options[128];
    int size = snprintf(options, sizeof options, "mode=1777");
    if (self.limits.scratch_bytes > 0) {
        size += snprintf(options + size, sizeof options - (size_t)size, ",size=%llu", self.limits.scratch_bytes);
    }
    if (self.limits.scratch_inodes > 0) {
        (void)snprintf(options + size, sizeof options - (size_t)size, ",nr_inodes=%llu", self.limits.scratch_inodes);
    }
    return mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options) == 0 ? NULL : "mount(/tmp)";
}

static const char *take_mounts(void)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (unshare(CLONE_NEWNS) != 0) {
        return "unshare(CLONE_NEWNS)";
    }
    if (mount("proc", "/proc", "proc", flags, "subset=pid") != 0 && mount("proc", "/proc", "proc", flags, NULL) != 0) {
        return "mount(/proc)";
    }
    return mount_scratch();
}

/* The one user and group of the namespace above is the one here. */
static const char *take_namespaces(void)
{
    char map[64];
    if (unshare(CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET) != 0) {
        return "unshare(CLONE_NEWUSER, IPC, UTS, NET)";
    }
    (void)snprintf(map, sizeof map, "%d %d 1", EPG_INSIDE_ID, EPG_INSIDE_ID);
    const char *failed = write_file("/proc/self/setgroups", "deny");
    if (failed == NULL) {
        failed = write_file("/proc/self/uid_map", map);
    }
    return failed != NULL ? failed : write_file("/proc/self/gid_map", map);
}

static const char *lay_limits(void)
{
    const cell *limits = &self.limits;
    const struct {
        __rlimit_resource_t resource;
        rlim_t value;
        rlim_t slack; /* from the soft limit, whose signal tells why, to the hard one */
    } table[] = {
        {RLIMIT_NPROC, limits->processes, 0},  {RLIMIT_NOFILE, limits->descriptors, 0},
        {RLIMIT_FSIZE, limits->file_bytes, 0}, {RLIMIT_CPU, limits->cpu_seconds, 1},
        {RLIMIT_DATA, limits->data_bytes, 0},  {RLIMIT_AS, limits->space_bytes, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct rlimit limit;
        if (table[i].value == 0) {
            continue;
        }
        if (getrlimit(table[i].resource, &limit) != 0) {
            return "getrlimit";
        }
        if (limit.rlim_max > table[i].value + table[i].slack) {
            limit.rlim_max = table[i].value + table[i].slack;
        }
        limit.rlim_cur = table[i].value < limit.rlim_max ? table[i].value : limit.rlim_max;
        if (setrlimit(table[i].resource, &limit) != 0) {
            return "setrlimit";
        }
    }
    return NULL;
}

static const char *give_up_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct nothing[2] = {{0, 0, 0}, {0, 0, 0}};
    for (int capability = 0; capability < CAPABILITIES_MAX; capability++) {
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
            if (errno == EINVAL && capability > CAP_SETPCAP) {
                break; /* the kernel knows no more */
            }
            return "prctl(PR_CAPBSET_DROP)";
        }
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
        return "prctl(PR_CAP_AMBIENT)";
    }
    if (syscall(SYS_capset, &header, nothing) != 0) {
        return "capset";
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return "prctl(PR_SET_NO_NEW_PRIVS)";
    }
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &self.filter) == 0 ? NULL : "seccomp";
}

static const char *enter(void)
{
    (void)close(self.own_pids); /* it names the server's namespace */
    const char *failed = take_mounts();
    if (failed == NULL) {
        (void)write_file("/proc/self/oom_score_adj", "1000"); /* before the server, when memory is out */
        failed = take_namespaces();
    }
    if (failed == NULL) {
        failed = lay_limits();
    }
    return failed != NULL ? failed : give_up_rights();
}

static pid_t fork_cell(void)
{
    if (unshare(CLONE_NEWPID) != 0) {
        return -1;
    }
    pid_t child = self.fork();
    if (child == 0) {
        self.armed = 0;
        const char *failed = enter();
        if (failed != NULL) {
            give_up(failed);
        }
        return 0;
    }
    int error = errno;
    if (setns(self.own_pids, CLONE_NEWPID) != 0) {
        give_up("setns(CLONE_NEWPID)"); /* the next child would join the namespace of this one */
    }
    errno = error;
    return child;
}

__attribute__((visibility("default"))) pid_t fork(void)
{
    if (self.fork == NULL) {
        errno = ENOSYS;
        return -1;
    }
    return self.armed ? fork_cell() : self.fork();
}
