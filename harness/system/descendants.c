/* Ending a tree from its top.
 *
 * The caller is a subreaper: when a process dies, its children become the caller's. So it is enough to kill the
 * caller's own children, reap them, and look again: a tree of any shape comes up level by level, and the end is told
 * by the kernel (no child is left). A process that forks while its siblings are killed loses as soon as it is listed.
 *
 * No other process can be hit. A child of ours keeps its pid until we reap it. For one further down, its pidfd is
 * opened, then /proc is asked who the parent of that pid is, then the parent is seen to live still. If the process
 * behind the pidfd lives when it is signalled, it had that pid all along, so the answer was about it; and the parent,
 * which lived all along, was ours by the same reasoning. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "system/children.h"
#include "system/process.h"

enum { HELD_DEPTH = 64, HELD_AT_ONCE = 256 };

typedef struct keep_list {
    const pid_t *pids;
    size_t count;
} keep_list;

static bool kept(keep_list keep, pid_t pid)
{
    for (size_t i = 0; i < keep.count; i++) {
        if (keep.pids[i] == pid) {
            return true;
        }
    }
    return false;
}

static bool has_ended(int pidfd)
{
    struct pollfd look = {.fd = pidfd, .events = POLLIN};
    return poll(&look, 1, 0) > 0;
}

/* A pidfd of `pid` that is a living child of the living process `parent` (parent_fd: its pidfd, -1 when it is us). */
static int hold_child(pid_t pid, pid_t parent, int parent_fd)
{
    EPG_AUTO_CLOSE int fd = pidfd_open(pid, 0);
    pid_t told = 0;
    bool ended = false;
    if (fd < 0 || !epg_child_look(pid, &told, &ended) || ended || told != parent) {
        return -1;
    }
    if (parent_fd >= 0 && has_ended(parent_fd)) {
        return -1;
    }
    return epg_take_fd(&fd);
}

/* Pidfds of what is to be signalled, taken before the first signal changes the tree. */
typedef struct held_list {
    int fds[HELD_AT_ONCE];
    size_t count;
} held_list;

static void hold_below(pid_t parent, int parent_fd, keep_list keep, unsigned depth, held_list *held)
{
    EPG_AUTO_PIDS children = {0};
    epg_children_list(parent, &children);
    for (size_t i = 0; i < children.count && held->count < HELD_AT_ONCE; i++) {
        EPG_AUTO_CLOSE int fd = hold_child(children.pids[i], parent, parent_fd);
        if (fd < 0) {
            continue;
        }
        int own = fd;
        if (!kept(keep, children.pids[i])) {
            held->fds[held->count++] = epg_take_fd(&fd);
        }
        if (depth < HELD_DEPTH) {
            hold_below(children.pids[i], own, keep, depth + 1, held);
        }
    }
}

unsigned epg_descendants_signal(const pid_t *keep, size_t keep_count, int signal)
{
    held_list held = {.count = 0};
    unsigned sent = 0;
    hold_below(getpid(), -1, (keep_list){keep, keep_count}, 0, &held);
    for (size_t i = 0; i < held.count; i++) {
        sent += pidfd_send_signal(held.fds[i], signal, NULL, 0) == 0;
        (void)close(held.fds[i]);
    }
    return sent;
}

/* Living processes below `root`, without those kept (what is below those counts). */
static size_t count_below(pid_t root, keep_list keep)
{
    EPG_AUTO_PIDS found = {0};
    size_t count = 0;
    epg_children_list(root, &found);
    for (size_t i = 0; i < found.count; i++) {
        pid_t pid = found.pids[i];
        pid_t parent = 0;
        bool ended = false;
        if (epg_child_look(pid, &parent, &ended) && !ended) {
            count += !kept(keep, pid);
            epg_children_list(pid, &found);
        }
    }
    return count;
}

size_t epg_descendants_count(pid_t of)
{
    return count_below(of, (keep_list){NULL, 0});
}

/* Reaps the child if it has ended. *killed is counted up when it was SIGKILL. */
static bool reaped(pid_t pid, unsigned *killed)
{
    siginfo_t info = {0};
    int result = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG);
    if (result == 0 && info.si_pid == pid) {
        *killed += info.si_code == CLD_KILLED && info.si_status == SIGKILL;
        return true;
    }
    return result < 0 && errno == ECHILD;
}

static void reap_children(keep_list keep, unsigned *killed)
{
    EPG_AUTO_PIDS children = {0};
    epg_children_list(getpid(), &children);
    for (size_t i = 0; i < children.count; i++) {
        if (!kept(keep, children.pids[i])) {
            (void)reaped(children.pids[i], killed);
        }
    }
}

size_t epg_descendants_reap(const pid_t *keep, size_t keep_count)
{
    unsigned killed = 0;
    keep_list list = {keep, keep_count};
    reap_children(list, &killed);
    return count_below(getpid(), list);
}

size_t epg_children_count(const pid_t *keep, size_t keep_count)
{
    EPG_AUTO_PIDS children = {0};
    size_t count = 0;
    epg_children_list(getpid(), &children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t parent = 0;
        bool ended = false;
        bool ours = !kept((keep_list){keep, keep_count}, children.pids[i]);
        count += ours && epg_child_look(children.pids[i], &parent, &ended) && !ended;
    }
    return count;
}

/* Kills the children of a kept process. They are reaped by it; what is below them comes to us. */
static size_t kill_below_kept(pid_t parent, int parent_fd, keep_list keep, unsigned *killed)
{
    EPG_AUTO_PIDS children = {0};
    size_t left = 0;
    epg_children_list(parent, &children);
    for (size_t i = 0; i < children.count; i++) {
        EPG_AUTO_CLOSE int fd = hold_child(children.pids[i], parent, parent_fd);
        if (fd < 0) {
            continue;
        }
        if (kept(keep, children.pids[i])) {
            left += kill_below_kept(children.pids[i], fd, keep, killed);
            continue;
        }
        left++;
        if (pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0) {
            enum { DYING_MS = 100 };
            struct pollfd wait = {.fd = fd, .events = POLLIN};
            *killed += poll(&wait, 1, DYING_MS) > 0; /* so that the next round does not count it again */
        }
    }
    return left;
}

/* One round over our children: reap what ended, kill the rest. *living: how many had to be killed. Returns how many
 * were there at all: what a reaped one leaves to us may have come after the list was read. */
static size_t kill_round(keep_list keep, unsigned *killed, size_t *living)
{
    EPG_AUTO_PIDS children = {0};
    size_t seen = 0;
    *living = 0;
    epg_children_list(getpid(), &children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t pid = children.pids[i];
        if (kept(keep, pid)) {
            EPG_AUTO_CLOSE int fd = pidfd_open(pid, 0);
            size_t below = fd < 0 ? 0 : kill_below_kept(pid, fd, keep, killed);
            seen += below;
            *living += below;
            continue;
        }
        seen++;
        if (!reaped(pid, killed)) {
            (void)kill(pid, SIGKILL); /* ours and not reaped: the pid can't be another's */
            (*living)++;
        }
    }
    return seen;
}

static bool no_child_at_all(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/* Sleeps until a child of ours ends, at most `most_ns`; SIGCHLD is blocked by the caller. */
static void wait_for_child(const sigset_t *child_signal, int64_t most_ns)
{
    struct timespec most = {.tv_sec = most_ns / EPG_SECOND, .tv_nsec = most_ns % EPG_SECOND};
    (void)sigtimedwait(child_signal, NULL, &most);
}

static int64_t shorter_wait(int64_t deadline)
{
    const int64_t look_again = 10 * EPG_MILLISECOND;
    int64_t left = deadline - epg_monotonic_ns();
    return left < 0 ? 0 : left < look_again ? left : look_again;
}

static void end_all(keep_list keep, int64_t grace_deadline, int64_t deadline, const sigset_t *child_signal,
                    epg_ended *out)
{
    if (grace_deadline > epg_monotonic_ns()) {
        out->terminated = epg_descendants_signal(keep.pids, keep.count, SIGTERM);
        while (count_below(getpid(), keep) > 0 && epg_monotonic_ns() < grace_deadline) {
            wait_for_child(child_signal, shorter_wait(grace_deadline));
            reap_children(keep, &out->killed);
        }
    }
    /* Two rounds that saw nothing: one may end just before a child of a kept process's child comes to us. */
    for (unsigned empty = 0; empty < 2 && !no_child_at_all();) {
        size_t living = 0;
        out->rounds++;
        empty = kill_round(keep, &out->killed, &living) == 0 ? empty + 1 : 0;
        if (empty == 0 && epg_monotonic_ns() >= deadline) {
            return;
        }
        if (living > 0) {
            wait_for_child(child_signal, shorter_wait(deadline));
        }
    }
    out->complete = true;
}

void epg_descendants_end(const pid_t *keep, size_t keep_count, int64_t grace_deadline, int64_t deadline, epg_ended *out)
{
    sigset_t child_signal;
    sigset_t before;
    (void)sigemptyset(&child_signal);
    (void)sigaddset(&child_signal, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &child_signal, &before);
    epg_ended ended = {.orphans = (unsigned)epg_children_count(keep, keep_count)};
    end_all((keep_list){keep, keep_count}, grace_deadline, deadline, &child_signal, &ended);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    *out = ended;
}
