/* Owning a whole tree of processes, so that nothing of it outlives us, even when we are killed.
 *
 * A monitor process (this binary, `evopolicygym monitor`) is a subreaper that starts the command and holds one end of a
 * pipe to us. It ends every descendant when we ask, when the command ends, or when the pipe tells that we are gone; it
 * reports the command's exit and what was ended.
 *
 * Monitor and command each have a session of their own; the monitor ignores what a terminal or an operator sends to
 * stop the Host, and can't be traced or reached through /proc by what it owns. The command ends with the monitor. If
 * somebody kills the monitor, `ended.complete` stays false: a Host that is a subreaper then finds what is left among
 * its own descendants. The program that calls this must route `argv[1] == "monitor"` to epg_monitor_main. */
#ifndef EPG_SYSTEM_OWNER_H
#define EPG_SYSTEM_OWNER_H

#include <stdint.h>

#include "system/process.h"

typedef struct epg_owned {
    epg_process monitor;
    int control; /* ours to the monitor: closing it means "end the tree now" */
    int report;  /* readable: the monitor has something to say (exit, ended) or is gone */
    pid_t command_pid;
    bool started, exited, finished;
    bool told_end; /* `ended` is what the monitor reported */
    epg_exit exit;
    epg_ended ended;
    int start_errno;
} epg_owned;

/* Starts the monitor and the command, and waits until the command runs. Errors as those of epg_process_spawn (nothing
 * is left then). `new_session` and `die_with_parent` are always as if set. */
epg_code epg_owned_start(const epg_spawn *spawn, epg_owned *out, epg_error *err);
/* Takes what the monitor has reported, without blocking; `exited` turns true when the command itself has ended,
 * `finished` when its whole tree is gone and the monitor reaped. EXECUTION (and `finished`): the monitor was killed. */
epg_code epg_owned_poll(epg_owned *owned, epg_error *err);
void epg_owned_terminate(epg_owned *owned,
                         int64_t grace_ns); /* asks the monitor: TERM, KILL after grace; returns at once */
void epg_owned_kill(epg_owned *owned);      /* asks for KILL at once; returns at once */
/* Kills what is left, blocks until the tree is gone (bounded by `deadline`, then the monitor itself is killed:
 * TIMEOUT), and closes the descriptors. What was learned stays readable in `owned`. */
epg_code epg_owned_finish(epg_owned *owned, int64_t deadline, epg_error *err);

/* The monitor's own main, for the hidden subcommand; argv as main got it. */
int epg_monitor_main(int argc, char **argv);

#endif
