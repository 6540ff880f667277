/* The running Agent: its owned process tree, its output, its end.
 *
 * The tree is owned (system/owner.h): nothing of it outlives the Run. What the Agent writes to stdout and stderr is
 * read without ever blocking the caller, goes through redaction, and is kept in `stdout.log` and `stderr.log`: the head
 * as it comes, the tail when it ends, and a line between that tells how much was cut. The bytes go to the transcript as
 * well. Driven by the coordinator's poll loop. */
#ifndef EPG_AGENTS_RUNNER_H
#define EPG_AGENTS_RUNNER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "agents/redaction.h"
#include "agents/transcript.h"
#include "execution/agent_sandbox.h"
#include "system/process.h"

enum { EPG_AGENT_LOG_HEAD = 8 * 1024 * 1024, EPG_AGENT_LOG_TAIL = 1024 * 1024 };

typedef struct epg_agent_start {
    const epg_spawn *spawn;           /* argv, environment, working directory; descriptors 0 to 2 are set here */
    const epg_agent_sandbox *sandbox; /* NULL: no containment; else its argv and environment go before spawn's, and its
                                       * descriptors are set here */
    int stdin_fd;                     /* -1: /dev/null */
    int log_directory;                /* where the logs are made: RUN/agent */
    bool append;                      /* the logs exist: an Agent that is started again */
    const epg_redactor *redactor;
    epg_transcript *transcript; /* may be NULL; borrowed */
    int transcript_fd;          /* its lines go here; -1: nowhere; borrowed */
} epg_agent_start;

typedef struct epg_agent epg_agent;

/* NOT_FOUND or IO when the command can't be started; UNAVAILABLE or EXECUTION when the sandbox can't be made. */
epg_code epg_agent_open(const epg_agent_start *start, epg_agent **out, epg_error *err);

enum { EPG_AGENT_FDS = 3 };
size_t epg_agent_poll_fds(const epg_agent *self, struct pollfd *fds, size_t room);
/* Takes what it wrote and what became of it. PUBLICATION when the logs can't be written. */
epg_code epg_agent_turn(epg_agent *self, epg_error *err);

bool epg_agent_exited(const epg_agent *self, epg_exit *how); /* the command itself has ended */
bool epg_agent_finished(const epg_agent *self);              /* and nothing of its tree is left */
int64_t epg_agent_last_output(const epg_agent *self);        /* monotonic time; the start when it never wrote */
pid_t epg_agent_tree(const epg_agent *self);                 /* the process that all of its tree is below */
pid_t epg_agent_pid(const epg_agent *self);

/* The box that it runs in; NULL without a sandbox. */
const epg_agent_box *epg_agent_boxed(const epg_agent *self);

void epg_agent_terminate(epg_agent *self, int64_t grace_ns); /* SIGTERM to the tree, SIGKILL after the grace */
void epg_agent_kill(epg_agent *self);

typedef struct epg_agent_end {
    epg_exit exit;
    epg_ended ended;
    bool owned_to_the_end;                   /* false: somebody killed the monitor */
    uint64_t stdout_bytes, stderr_bytes;     /* written by the Agent */
    uint64_t stdout_dropped, stderr_dropped; /* of these, not kept */
    uint64_t secrets_redacted;
} epg_agent_end;

/* Blocks until its tree is gone (killing what is left), takes the last output, completes the logs, frees. */
epg_code epg_agent_close(epg_agent *self, epg_agent_end *out, epg_error *err);

#endif
