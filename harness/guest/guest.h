/* The Host's side of Policy processes: one fresh process an Episode, forked from a warmed server that never ran guest
 * code, with a spare one parked and ready.
 *
 * A worker opens one epg_guest; each Episode begins one epg_policy, starts it with a context (make_policy), asks it to
 * act, and ends it. Failures of the Policy are data (epg_policy_reply), never an epg_error: an epg_error from here is a
 * fault of execution (EPG_ERR_EXECUTION) or an interruption. */
#ifndef EPG_GUEST_GUEST_H
#define EPG_GUEST_GUEST_H

#include "execution/execution.h"
#include "system/company.h"
#include "system/frame.h"
#include "value/outcome.h"
#include "value/value.h"

typedef struct epg_guest epg_guest;
typedef struct epg_policy epg_policy;

/* Finds the real interpreter for `name` (NULL: python3): an absolute path with shims (pyenv) resolved, version >= 3.9.
 * USAGE with one line that says what to do. *path: caller frees. */
epg_code epg_python_find(const char *name, char **path, epg_error *err);
/* Checks that `modules` are names of modules, separated by commas, and that this interpreter can import them, as the
 * fork server will. USAGE. */
epg_code epg_python_imports(const char *python, const char *modules, epg_error *err);
/* The directory of the guest package: beside the installed binary, or in the source tree it was built from. */
epg_code epg_guest_root_find(char **path, epg_error *err);

/* Makes the caller a subreaper and starts the fork server without waiting for it: what is wrong with the interpreter is
 * told by the first epg_policy_begin. `cancel`: readable ends any wait with INTERRUPTED (-1: none). The texts that
 * `execution` points to, and `cancel`, must outlive the guest. */
epg_code epg_guest_open(const epg_execution *execution, int cancel, epg_guest **out, epg_error *err);
/* Policy processes are members of `company`, which outlives the guest. */
void epg_guest_join(epg_guest *guest, epg_company *company);
void epg_guest_close(epg_guest *guest); /* NULL is fine; after its policies are finished */
/* A child of the caller that is not a Policy's (a Benchmark's process): never taken for one that a Policy left behind.
 */
void epg_guest_keep(epg_guest *guest, pid_t pid);
void epg_guest_forget(epg_guest *guest, pid_t pid); /* it was reaped */

/* Which internal classification a failure had: Host-only evidence. */
typedef enum epg_policy_cause {
    EPG_CAUSE_NONE = 0,
    EPG_CAUSE_LOAD,        /* policy.py missing make_policy, or its import raised */
    EPG_CAUSE_MAKE_POLICY, /* make_policy raised */
    EPG_CAUSE_ACT,         /* act raised */
    EPG_CAUSE_TIMEOUT_START,
    EPG_CAUSE_TIMEOUT_ACT,
    EPG_CAUSE_TIMEOUT_WRITE,   /* it stopped reading */
    EPG_CAUSE_MALFORMED_FRAME, /* complete but malformed */
    EPG_CAUSE_PARTIAL_FRAME,
    EPG_CAUSE_OVERSIZED_FRAME,
    EPG_CAUSE_INADMISSIBLE_VALUE,
    EPG_CAUSE_UNEXPECTED_MESSAGE, /* wrong type or sequence number, or it spoke out of turn */
    EPG_CAUSE_DIED,               /* exit or signal */
    EPG_CAUSE_REFUSED_ACTION      /* the Environment's invalid action */
} epg_policy_cause;
const char *epg_policy_cause_name(epg_policy_cause cause);

typedef struct epg_policy_reply {
    epg_policy_failure failure; /* EPG_POLICY_OK: `action` is set */
    epg_policy_cause cause;
    epg_span action; /* checked canonical bytes, valid until the next call */
    char *detail;    /* Host-only: exception text, exit status; owned by the policy, may be NULL */
} epg_policy_reply;

/* Takes the parked process (or makes one) for the Program materialised at the absolute `program_path` (read-only to it
 * where the profile can). That becomes the Policy's working directory and the first place of its imports; the directory
 * that holds it is the Episode's private scratch, the Policy's HOME and TMPDIR. */
epg_code epg_policy_begin(epg_guest *guest, const char *program_path, epg_policy **out, epg_error *err);
/* Sends the context (canonical map: action_space, environment_parameters, metadata, observation_space, policy_seed) and
 * waits for make_policy; then has the next process made. Start and act: a failed Policy is asked nothing more. */
epg_code epg_policy_start(epg_policy *policy, epg_span context, int64_t deadline, epg_policy_reply *reply,
                          epg_error *err);
/* `observation`: canonical bytes within epg_value_policy_limits (one that is too long is BENCHMARK). */
epg_code epg_policy_act(epg_policy *policy, epg_span observation, int64_t deadline, epg_policy_reply *reply,
                        epg_error *err);

/* How it ended, for evidence. */
typedef struct epg_policy_end {
    epg_exit exit;
    epg_ended ended;        /* descendants and what it took */
    epg_buffer log;         /* its stdout and stderr, bounded: head and tail, the cut told */
    uint64_t log_dropped;   /* bytes not kept */
    uint64_t max_rss_bytes; /* 0: not known */
    int64_t cpu_ns;
    const char *killed_by; /* "memory", "cpu", "seccomp", ... or NULL (static text) */
} epg_policy_end;
void epg_policy_end_free(epg_policy_end *end);

/* Asks, then SIGTERM, then SIGKILL; reaps it and every descendant; frees, whatever it returns. */
epg_code epg_policy_finish(epg_policy *policy, epg_policy_end *out, epg_error *err);

/* Numbers for the bench: processes forked, started plainly, and taken while they were parked. */
typedef struct epg_guest_stats {
    uint64_t forked, spawned, parked_hits;
} epg_guest_stats;
void epg_guest_statistics(const epg_guest *guest, epg_guest_stats *out);

#endif
