/* Processes: start one with exact descriptors and environment, learn of its end by pidfd, end it, reap it.
 *
 * Whoever starts a process ends it. No SIGCHLD handler is needed: a child's end is a readable pidfd. The child gets the
 * default signal dispositions, an empty signal mask, PDEATHSIG SIGKILL where asked, and no descriptor but those named.
 */
#ifndef EPG_SYSTEM_PROCESS_H
#define EPG_SYSTEM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct epg_fd_map {
    int from; /* ours */
    int to;   /* the number in the child */
} epg_fd_map;

typedef struct epg_spawn {
    const char *const *argv;        /* argv[0] is looked up in `search_path` when it has no '/' */
    const char *const *environment; /* NAME=value, NULL-terminated; NULL: empty */
    const char *search_path; /* a PATH for argv[0], its absolute entries count; NULL: argv[0] is a path (seen from
                              * the working directory when it is relative) */
    int working_directory;   /* descriptor, or -1: ours */
    const epg_fd_map *fds;   /* 0, 1 and 2 are /dev/null unless mapped */
    size_t fd_count;
    const int *groups; /* cgroup.procs files, open for writing: it puts itself into each before anything runs */
    size_t group_count;
    uint64_t data_bytes; /* limit on its private memory (RLIMIT_DATA), as for all that it starts; 0: as ours */
    bool new_session;
    bool die_with_parent;
    bool never_stopped; /* epg_owned_start only: the monitor continues the command whenever a signal has stopped it, so
                         * that the limits that it keeps itself pass */
    const char *remove_after; /* epg_owned_start only: absolute path of a directory removed when the tree is gone */
} epg_spawn;

typedef struct epg_process {
    pid_t pid;
    int pidfd; /* readable once it ended */
} epg_process;

typedef struct epg_exit {
    int code;   /* exit code, or -1 */
    int signal; /* signal, or 0 */
} epg_exit;

/* NOT_FOUND when the executable is missing; IO with the errno of the step that failed in the child otherwise: nothing
 * is left behind. */
epg_code epg_process_spawn(const epg_spawn *spawn, epg_process *out, epg_error *err);
bool epg_process_running(const epg_process *process);
void epg_process_signal(const epg_process *process, int signal); /* through the pidfd: never another process */
/* Waits for the end, reaps and closes the pidfd (it is -1 then). TIMEOUT leaves it as it is. `out` may be NULL. */
epg_code epg_process_wait(epg_process *process, int64_t deadline, epg_exit *out, epg_error *err);
/* SIGTERM when `grace_deadline` is ahead, SIGKILL after it, reap. Nothing when it was reaped already; `out` may be
 * NULL. */
void epg_process_end(epg_process *process, int64_t grace_deadline, epg_exit *out);

/* What ending a tree took, for the Run's evidence. */
typedef struct epg_ended {
    unsigned terminated; /* processes sent SIGTERM */
    unsigned killed;     /* processes sent SIGKILL */
    unsigned orphans;    /* living children of the caller when it began: what it started itself and did not keep, and
                          * what had left its parent before */
    unsigned rounds;     /* passes with SIGKILL */
    bool complete;       /* nothing was left */
} epg_ended;

/* For a subreaper: ends every descendant of the calling process except those in `keep` (and their own descendants are
 * ended unless kept): TERM to all when grace_deadline is ahead, then KILL, round after round, until none is left or
 * `deadline` passes. Reaps what was ours. */
void epg_descendants_end(const pid_t *keep, size_t keep_count, int64_t grace_deadline, int64_t deadline,
                         epg_ended *out);
/* One signal to every descendant but those in `keep` (at most 256 of them, 64 levels down); returns how many got it. */
unsigned epg_descendants_signal(const pid_t *keep, size_t keep_count, int signal);
/* Reaps our children that have ended, but those in `keep`; returns how many descendants but those in `keep` live. */
size_t epg_descendants_reap(const pid_t *keep, size_t keep_count);
/* Our own children, adopted ones too, but those in `keep`, that live now. */
size_t epg_children_count(const pid_t *keep, size_t keep_count);
/* Descendants alive now, for tests and evidence. */
size_t epg_descendants_count(pid_t of);

int epg_become_subreaper(void);

/* This program's own binary, for starting workers and monitors (/proc/self/exe resolved once). Caller frees. */
char *epg_own_executable(void);

#endif
