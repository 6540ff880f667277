/* Owning a whole tree of processes, so that nothing of it outlives us, even when we are killed.
 *
 * A monitor process (this binary, `evopolicygym monitor`) is a subreaper that starts the command and holds one end of a
 * pipe to us. It ends every descendant when we ask, when the command ends, or when the pipe tells that we are gone; it
 * reports the command's exit and what was ended. */
#ifndef EPG_SYSTEM_OWNER_H
#define EPG_SYSTEM_OWNER_H

#include "system/process.h"

typedef struct epg_owned {
    epg_process monitor;
    int control;  /* ours to the monitor: closing it means "end the tree now" */
    int report;   /* readable: the monitor has something to say (start, exit, ended) */
    pid_t command_pid;
    bool started, exited, finished;
    epg_exit exit;
    epg_ended ended;
    int start_errno;
} epg_owned;

/* Starts the monitor and the command. NOT_FOUND / IO when the command can't be started (nothing is left then). */
epg_code epg_owned_start(const epg_spawn *spawn, epg_owned *out, epg_error *err);
/* Takes what the monitor has reported, without blocking; `exited` turns true when the command itself has ended,
 * `finished` when its whole tree is gone and the monitor reaped. */
epg_code epg_owned_poll(epg_owned *owned, epg_error *err);
void epg_owned_terminate(epg_owned *owned, int64_t grace_ns); /* asks the monitor: TERM, KILL after grace; returns at once */
void epg_owned_kill(epg_owned *owned);                        /* asks for KILL at once; returns at once */
/* Blocks until the tree is gone (bounded by `deadline`, then the monitor itself is killed), and frees. */
epg_code epg_owned_finish(epg_owned *owned, int64_t deadline, epg_error *err);

/* The monitor's own main, for the hidden subcommand. */
int epg_monitor_main(int argc, char **argv);

#endif
