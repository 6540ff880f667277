/* A list of what is allowed, so that a system call which a newer kernel adds is not there for a guest: it gets ENOSYS,
 * on which C libraries and interpreters fall back. What is refused on purpose gets EPERM, as it would without the right
 * to do it. Calls of another architecture (32-bit, x32) end the process.
 *
 * Refused are the calls that change what the sandbox is made of (namespaces, mounts), that look into other processes,
 * that reach large and seldom used parts of the kernel (bpf, io_uring, keys, perf, userfaultfd), and that need a
 * privilege anyway. */
#include "execution/filter.h"

#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

static const char *const allowed[] = {
    /* files and directories */
    "access", "chdir", "chmod", "chown", "chown32", "close", "close_range", "copy_file_range", "creat", "dup", "dup2",
    "dup3", "faccessat", "faccessat2", "fadvise64", "fadvise64_64", "fallocate", "fchdir", "fchmod", "fchmodat",
    "fchmodat2", "fchown", "fchown32", "fchownat", "fcntl", "fcntl64", "fdatasync", "fgetxattr", "flistxattr", "flock",
    "fremovexattr", "fsetxattr", "fstat", "fstat64", "fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate",
    "ftruncate64", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "inotify_add_watch", "inotify_init",
    "inotify_init1", "inotify_rm_watch", "ioctl", "lchown", "lchown32", "lgetxattr", "link", "linkat", "listxattr",
    "llistxattr", "lremovexattr", "lseek", "_llseek", "lsetxattr", "lstat", "lstat64", "mkdir", "mkdirat", "mknod",
    "mknodat", "newfstatat", "open", "openat", "openat2", "readahead", "readlink", "readlinkat", "removexattr",
    "rename", "renameat", "renameat2", "rmdir", "setxattr", "stat", "stat64", "statfs", "statfs64", "statx", "symlink",
    "symlinkat", "sync", "sync_file_range", "syncfs", "truncate", "truncate64", "umask", "unlink", "unlinkat", "utime",
    "utimensat", "utimensat_time64", "utimes",
    /* reading, writing, waiting */
    "_newselect", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd",
    "eventfd2", "pipe", "pipe2", "poll", "ppoll", "ppoll_time64", "pread64", "preadv", "preadv2", "pselect6",
    "pselect6_time64", "pwrite64", "pwritev", "pwritev2", "read", "readv", "select", "sendfile", "sendfile64",
    "signalfd", "signalfd4", "splice", "tee", "timerfd_create", "timerfd_gettime", "timerfd_gettime64",
    "timerfd_settime", "timerfd_settime64", "vmsplice", "write", "writev",
    /* sockets; which families, is said below */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recv", "recvfrom",
    "recvmmsg", "recvmmsg_time64", "recvmsg", "send", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    /* memory */
    "brk", "get_mempolicy", "madvise", "map_shadow_stack", "mincore", "mlock", "mlock2", "mlockall", "mmap", "mmap2",
    "mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free",
    "pkey_mprotect", "remap_file_pages",
    /* processes and threads; clone is said below */
    "arch_prctl", "capget", "execve", "execveat", "exit", "exit_group", "fork", "futex", "futex_requeue",
    "futex_time64", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "get_thread_area", "getcpu",
    "getegid", "getegid32", "geteuid", "geteuid32", "getgid", "getgid32", "getgroups", "getgroups32", "getpgid",
    "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresgid32", "getresuid", "getresuid32", "getrlimit",
    "getrusage", "getsid", "gettid", "getuid", "getuid32", "ioprio_get", "ioprio_set", "membarrier", "nice", "pause",
    "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "restart_syscall", "rseq", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler",
    "sched_rr_get_interval", "sched_rr_get_interval_time64", "sched_setaffinity", "sched_setattr", "sched_setparam",
    "sched_setscheduler", "sched_yield", "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid",
    "setfsgid32", "setfsuid", "setfsuid32", "setgid", "setgid32", "setgroups", "setgroups32", "setpgid", "setpriority",
    "setregid", "setregid32", "setresgid", "setresgid32", "setresuid", "setresuid32", "setreuid", "setreuid32",
    "setrlimit", "setsid", "setuid", "setuid32", "sysinfo", "times", "ugetrlimit", "uname", "vfork", "wait4", "waitid",
    "waitpid",
    /* signals */
    "alarm", "getitimer", "kill", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_tgsigqueueinfo", "setitimer", "sigaltstack",
    "sigreturn", "tgkill", "tkill",
    /* time, to read it */
    "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64", "clock_nanosleep",
    "clock_nanosleep_time64", "gettimeofday", "nanosleep", "time", "timer_create", "timer_delete", "timer_getoverrun",
    "timer_gettime", "timer_gettime64", "timer_settime", "timer_settime64",
    /* between processes of one Episode */
    "ipc", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedreceive_time64", "mq_timedsend",
    "mq_timedsend_time64", "mq_unlink", "semctl", "semget", "semop", "semtimedop", "semtimedop_time64", "shmat",
    "shmctl", "shmdt",
    /* the rest */
    "getrandom"};

/* Allowed only where their memory is counted. */
static const char *const counted[] = {"memfd_create", "msgctl", "msgget", "msgrcv", "msgsnd", "shmget"};

static const char *const refused[] = {"acct",
                                      "add_key",
                                      "adjtimex",
                                      "afs_syscall",
                                      "bpf",
                                      "capset",
                                      "chroot",
                                      "clock_adjtime",
                                      "clock_adjtime64",
                                      "clock_settime",
                                      "clock_settime64",
                                      "delete_module",
                                      "fanotify_init",
                                      "fanotify_mark",
                                      "finit_module",
                                      "fsconfig",
                                      "fsmount",
                                      "fsopen",
                                      "fspick",
                                      "init_module",
                                      "io_uring_enter",
                                      "io_uring_register",
                                      "io_uring_setup",
                                      "ioperm",
                                      "iopl",
                                      "kcmp",
                                      "kexec_file_load",
                                      "kexec_load",
                                      "keyctl",
                                      "lookup_dcookie",
                                      "mbind",
                                      "migrate_pages",
                                      "modify_ldt",
                                      "mount",
                                      "mount_setattr",
                                      "move_mount",
                                      "move_pages",
                                      "name_to_handle_at",
                                      "open_by_handle_at",
                                      "open_tree",
                                      "perf_event_open",
                                      "pidfd_getfd",
                                      "pivot_root",
                                      "process_madvise",
                                      "process_mrelease",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "ptrace",
                                      "quotactl",
                                      "quotactl_fd",
                                      "reboot",
                                      "request_key",
                                      "seccomp",
                                      "set_mempolicy",
                                      "setdomainname",
                                      "sethostname",
                                      "setns",
                                      "settimeofday",
                                      "stime",
                                      "swapoff",
                                      "swapon",
                                      "syslog",
                                      "umount",
                                      "umount2",
                                      "unshare",
                                      "userfaultfd",
                                      "vhangup"};

/* What makes a cell (inside/cell.c). */
static const char *const for_cells[] = {"capset", "mount", "seccomp", "setns", "unshare"};

/* Names that this library does not know for this processor are calls that it can't make either. */
static int each(scmp_filter_ctx context, uint32_t action, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);
        int result = call == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(context, action, call, 0);
        if (result != 0 && result != -EDOM) {
            return result;
        }
    }
    return 0;
}

static bool listed(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int refuse(scmp_filter_ctx context, epg_filter_kind kind)
{
    for (size_t i = 0; i < EPG_COUNT(refused); i++) {
        if (kind == EPG_FILTER_SERVER && listed(refused[i], for_cells, EPG_COUNT(for_cells))) {
            continue;
        }
        int result = each(context, SCMP_ACT_ERRNO(EPERM), &refused[i], 1);
        if (result != 0) {
            return result;
        }
    }
    return kind == EPG_FILTER_SERVER ? each(context, SCMP_ACT_ALLOW, for_cells, EPG_COUNT(for_cells)) : 0;
}

/* A family of sockets; NETLINK_ROUTE alone of the netlink ones, by which programs list addresses. */
static int allow_family(scmp_filter_ctx context, int family)
{
    int result = 0;
    if (family == AF_NETLINK) {
        return seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK, 0),
                                SCMP_A2(SCMP_CMP_EQ, 0, 0));
    }
    result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, (unsigned)family, 0));
    if (result == 0 && family == AF_UNIX) {
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
    }
    return result;
}

static int limit_sockets(scmp_filter_ctx context, epg_filter_kind kind)
{
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    size_t count = kind == EPG_FILTER_AGENT ? EPG_COUNT(families) : 1;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        result = allow_family(context, families[i]);
    }
    /* The families above have rules that match more exactly; all others are said not to exist. */
    for (int family = 0; family < AF_MAX + 16 && result == 0; family++) {
        bool open = false;
        for (size_t i = 0; i < count; i++) {
            open = open || (families[i] == family && family != AF_NETLINK);
        }
        if (!open && !(family == AF_NETLINK && kind == EPG_FILTER_AGENT)) {
            result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                      SCMP_A0(SCMP_CMP_EQ, (unsigned)family, 0));
        }
    }
    return result;
}

/* clone3 is not in the list: what it asks for stands in memory, where a filter can't look; libraries then use clone. */
static int limit_arguments(scmp_filter_ctx context)
{
    const uint64_t namespaces =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    int result =
        seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0));
    for (uint64_t bit = 1; bit <= CLONE_NEWNET && result == 0; bit <<= 1) {
        if ((namespaces & bit) != 0) {
            result = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                      SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
        }
    }
    static const unsigned personas[] = {0, 8, UINT32_MAX}; /* Linux, 32-bit names, "which one?" */
    for (size_t i = 0; i < EPG_COUNT(personas) && result == 0; i++) {
        result =
            seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1, SCMP_A0(SCMP_CMP_EQ, personas[i], 0));
    }
    return result;
}

static int fill(scmp_filter_ctx context, epg_filter_kind kind, bool uncounted)
{
    if (kind == EPG_FILTER_CELL) {
        return each(context, SCMP_ACT_ERRNO(EPERM), for_cells, EPG_COUNT(for_cells));
    }
    int result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0) {
        (void)seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree instead of a chain */
        result = each(context, SCMP_ACT_ALLOW, allowed, EPG_COUNT(allowed));
    }
    if (result == 0 && !uncounted) {
        result = each(context, SCMP_ACT_ALLOW, counted, EPG_COUNT(counted));
    }
    if (result == 0) {
        result = refuse(context, kind);
    }
    if (result == 0) {
        result = limit_sockets(context, kind);
    }
    return result == 0 ? limit_arguments(context) : result;
}

epg_code epg_filter_make(epg_filter_kind kind, bool uncounted, int *out, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = memfd_create("seccomp-filter", MFD_CLOEXEC);
    if (fd < 0) {
        return epg_fail_errno(err, errno, "can't make a file for a seccomp filter");
    }
    scmp_filter_ctx context = seccomp_init(kind == EPG_FILTER_CELL ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(ENOSYS));
    int result = context == NULL ? -ENOMEM : fill(context, kind, uncounted);
    if (result == 0) {
        result = seccomp_export_bpf(context, fd);
    }
    seccomp_release(context);
    if (result != 0) {
        (void)epg_fail_errno(err, -result, "can't make a seccomp filter");
        return epg_fail_as(err, EPG_ERR_UNAVAILABLE, "seccomp");
    }
    (void)lseek(fd, 0, SEEK_SET);
    *out = epg_take_fd(&fd);
    return EPG_OK;
}
