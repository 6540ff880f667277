/* What a guest could try, tried in a guest's place: in the same sandbox or cell, after the same steps.
 *   contain probe [--absent PATH]... [--scratch BYTES FILES] [--network]
 * Descriptor 3 is a packet socket to the Host. Each check is one packet, "ok NAME" or "no NAME DETAIL"; the last one is
 * "end", after which the probe waits to be let go, so that the Host can look at it from outside. --network: the user
 * gave this sandbox internet sockets. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "execution/inside/inside.h"

enum { CHANNEL = 3 };

/* `subject` and `detail` are told when it does not hold. */
static void tell(int ok, const char *name, const char *subject, const char *detail)
{
    char text[512];
    int size = ok ? snprintf(text, sizeof text, "ok %s", name)
                  : snprintf(text, sizeof text, "no %s %s%s%s", name, subject, *subject != '\0' ? " " : "", detail);
    (void)!send(CHANNEL, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1, MSG_NOSIGNAL);
}

/* The value of a line of /proc/self/status, in `text`. */
static const char *status_of(const char *name, char *text, size_t size)
{
    FILE *file = fopen("/proc/self/status", "re");
    size_t length = strlen(name);
    const char *found = "";
    while (file != NULL && fgets(text, (int)size, file) != NULL) {
        if (strncmp(text, name, length) == 0 && text[length] == ':') {
            text[strcspn(text, "\n")] = '\0';
            found = text + length + 1 + strspn(text + length + 1, " \t");
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

static void check_status(void)
{
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    char text[256];
    const char *value = status_of("Seccomp", text, sizeof text);
    tell(strcmp(value, "2") == 0, "seccomp", "no filter: mode", value);
    value = status_of("NoNewPrivs", text, sizeof text);
    tell(strcmp(value, "1") == 0, "no_new_privs", "is", value);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        value = status_of(sets[i], text, sizeof text);
        if (strtoull(value, NULL, 16) != 0 || *value == '\0') {
            tell(0, "capabilities", sets[i], value);
            return;
        }
    }
    tell(1, "capabilities", "", "");
}

/* Each attempt gives -1 and an errno, or something else when it worked. */
static long try_inet(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}
static long try_inet6(void)
{
    return socket(AF_INET6, SOCK_DGRAM, 0);
}
static long try_vsock(void)
{
    return socket(AF_VSOCK, SOCK_STREAM, 0);
}
static long try_netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW, 0);
}
static long try_unshare(void)
{
    return unshare(CLONE_NEWUSER);
}
static long try_clone(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        _exit(0);
    }
    return child;
}
static long try_mount(void)
{
    return mount("none", "/tmp", "tmpfs", 0, NULL);
}
static long try_ptrace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
static long try_bpf(void)
{
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    return syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attributes, sizeof attributes);
}
static long try_keyctl(void)
{
    return syscall(SYS_keyctl, 0, -3, 1); /* KEYCTL_GET_KEYRING_ID, the session's, made when it is not there */
}
static long try_perf(void)
{
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_SOFTWARE;
    return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}
static long try_userfaultfd(void)
{
    return syscall(SYS_userfaultfd, 1);
}
static long try_io_uring(void)
{
    char parameters[120] = {0};
    return syscall(SYS_io_uring_setup, 1, parameters);
}

static void check_calls(int network)
{
    static const struct {
        const char *name;
        long (*attempt)(void);
        int expected;
        int of_network;
    } calls[] = {
        {"internet_sockets", try_inet, EAFNOSUPPORT, 1},
        {"internet6_sockets", try_inet6, EAFNOSUPPORT, 1},
        {"vsock_sockets", try_vsock, EAFNOSUPPORT, 0},
        {"netlink_sockets", try_netlink, EAFNOSUPPORT, 1},
        {"unshare", try_unshare, EPERM, 0},
        {"clone_namespaces", try_clone, EPERM, 0},
        {"mount", try_mount, EPERM, 0},
        {"ptrace", try_ptrace, EPERM, 0},
        {"bpf", try_bpf, EPERM, 0},
        {"keyctl", try_keyctl, EPERM, 0},
        {"perf_event_open", try_perf, EPERM, 0},
        {"userfaultfd", try_userfaultfd, EPERM, 0},
        {"io_uring", try_io_uring, EPERM, 0},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (network && calls[i].of_network) {
            continue;
        }
        errno = 0;
        long result = calls[i].attempt();
        int error = errno;
        tell(result < 0 && error == calls[i].expected, calls[i].name, "", result >= 0 ? "it worked" : strerror(error));
    }
}

/* Nothing outside the scratch can be written; what the Host has is not there. */
static void check_files(void)
{
    static const char *const written[] = {"/epg-probe", "/usr/epg-probe", "/etc/epg-probe", "/dev/epg-probe",
                                          EPG_INSIDE_DIRECTORY "/epg-probe"};
    static const char *const settings[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
                                           "/proc/sys/vm/drop_caches", "/proc/sys/fs/file-max", "/proc/sysrq-trigger"};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        int fd = open(written[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) {
            tell(0, "read_only_system", written[i], "could be written");
            return;
        }
    }
    tell(1, "read_only_system", "", "");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (open(settings[i], O_WRONLY | O_CLOEXEC) >= 0) {
            tell(0, "kernel_settings", settings[i], "could be written");
            return;
        }
    }
    tell(1, "kernel_settings", "", "");
}

static int absent(const char *path)
{
    if (access(path, F_OK) == 0 || errno != ENOENT) {
        tell(0, "host_files", path, "is there");
        return 0;
    }
    return 1;
}

/* Of bounded size: the kernel says what it was mounted with. */
static void check_scratch(const char *bytes, const char *files)
{
    static const char *const places[] = {"/tmp", "/dev/shm"};
    for (size_t i = 0; i < 2; i++) {
        struct statfs info;
        unsigned long long size = strtoull(bytes, NULL, 10);
        unsigned long long count = strtoull(files, NULL, 10);
        if (statfs(places[i], &info) != 0) {
            tell(0, "private_scratch", places[i], strerror(errno));
            return;
        }
        unsigned long long has = (unsigned long long)info.f_blocks * (unsigned long long)info.f_bsize;
        if (has > size + (unsigned long long)info.f_bsize || (i == 0 && count > 0 && info.f_files > count)) {
            tell(0, "private_scratch", places[i], "holds more than it may");
            return;
        }
    }
    tell(1, "private_scratch", "", "");
}

int epg_contain_probe(int argc, char **argv)
{
    int network = 0;
    int all_absent = 1;
    char byte = 0;
    (void)signal(SIGSYS, SIG_DFL);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--absent") == 0 && i + 1 < argc) {
            all_absent = all_absent && absent(argv[++i]);
        } else if (strcmp(argv[i], "--scratch") == 0 && i + 2 < argc) {
            check_scratch(argv[i + 1], argv[i + 2]);
            i += 2;
        } else if (strcmp(argv[i], "--network") == 0) {
            network = 1;
        }
    }
    if (all_absent) {
        tell(1, "host_files", "", "");
    }
    check_status();
    check_calls(network);
    check_files();
    (void)!send(CHANNEL, "end", 3, MSG_NOSIGNAL);
    (void)!recv(CHANNEL, &byte, 1, 0);
    return 0;
}
