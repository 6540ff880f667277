/* Execution profiles: what a guest (a Policy, later an Agent) may touch, behind one interface.
 *
 * `process`: a process of the same user. No containment; must be acknowledged; named unsafe in every record.
 * `sandbox`: bubblewrap, namespaces, seccomp, limits.
 * A profile that can't be had is refused (EPG_ERR_UNAVAILABLE, with the step and the reason); nothing ever runs under a
 * lesser one. */
#ifndef EPG_EXECUTION_EXECUTION_H
#define EPG_EXECUTION_EXECUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "system/process.h"

typedef enum epg_profile { EPG_PROFILE_PROCESS, EPG_PROFILE_SANDBOX } epg_profile;
const char *epg_profile_name(epg_profile profile);
epg_code epg_profile_parse(const char *text, epg_profile *out, epg_error *err);

typedef struct epg_guest_limits { /* 0: none */
    uint64_t memory_bytes;
    uint64_t processes;
    uint64_t cpu_seconds;
    uint64_t descriptors;
    uint64_t file_bytes;
    uint64_t scratch_bytes;
    uint64_t scratch_inodes;
    uint64_t log_bytes; /* of a Policy's stdout and stderr together, kept per Episode */
} epg_guest_limits;
extern const epg_guest_limits epg_guest_default_limits;

typedef struct epg_execution {
    epg_profile profile;
    const char *python;     /* resolved absolute path of the real interpreter */
    const char *guest_root; /* directory that holds the `evopolicygym` guest package (harness/guest/python) */
    const char *preload;    /* modules that the fork server imports beforehand, comma-separated; NULL: none */
    const char *scratch;    /* absolute path of the directory in which every Program of this worker is materialised; a
                             * sandbox shows it, read-only, so it holds nothing else, and what is in it may be read by
                             * all (a directory above it keeps others out); NULL: no Program will be run */
    epg_guest_limits limits;
} epg_execution;

/* Checks that the profile can be had, by doing it. UNAVAILABLE with step and reason. */
epg_code epg_execution_check(const epg_execution *execution, epg_error *err);

/* --- The seam between the guest room and the profiles. ---
 *
 * A guest interpreter is started in one way whatever the profile: the launcher runs `python -s guest_root/server.py
 * mode [preload...]` with exactly the descriptors named (0, 1 and 2 are /dev/null unless mapped) and an environment
 * that holds nothing of ours. A launcher must leave two things true: the started process, or one that stands for it,
 * is a child of ours whose end is the end of all that runs inside; and the descriptors are the interpreter's own. */

typedef enum epg_guest_mode {
    EPG_GUEST_SERVER, /* the fork server: descriptor 3 is its control socket */
    EPG_GUEST_PLAIN   /* one Policy process: 3 read from us, 4 write to us, 5 stdout and stderr */
} epg_guest_mode;

/* What everything that one launch brought about has in common: its control group, where one can be had. */
typedef struct epg_ground epg_ground;

/* *ground: to leave when all processes of this launch are gone; NULL when there is nothing to leave. */
epg_code epg_execution_launch(const epg_execution *execution, epg_guest_mode mode, const epg_fd_map *fds,
                              size_t fd_count, epg_process *out, epg_ground **ground, epg_error *err);
void epg_execution_leave(epg_ground *ground); /* NULL is fine */

/* How a guest calls a path of ours that lies in `scratch` or `guest_root`. Caller frees. */
char *epg_execution_inside(const epg_execution *execution, const char *path);

/* What holds one Policy process. */
typedef struct epg_hold epg_hold;

/* Lays the limits on a Policy process that has not seen its Program yet, and looks from outside whether it is contained
 * as its profile says; EXECUTION otherwise. `process`: its own one, or for EPG_GUEST_PLAIN what was launched; `ground`
 * outlives the hold. */
epg_code epg_execution_confine(const epg_execution *execution, epg_guest_mode mode, const epg_ground *ground,
                               const epg_process *process, epg_hold **out, epg_error *err);

/* Looks at what can only be seen while a guest that failed still lives: whether its scratch is full, or it has as many
 * processes as it may. */
void epg_execution_observe(epg_hold *hold);

typedef struct epg_guest_end {
    epg_exit exit;
    int64_t cpu_ns;
    bool failed; /* the Policy failed, in whatever way */
    bool ended;  /* by us: its signal tells nothing */
} epg_guest_end;

/* Lets go of a guest that has ended (NULL is fine). Returns what ended it or stood in its way: "memory", "processes",
 * "cpu", "disk", "seccomp", "signal", or NULL (static text). */
const char *epg_execution_release(epg_hold *hold, const epg_guest_end *end);

/* What the profile gives on this machine, for records: an object with the profile's name, whether it contains, each
 * limit with its value and the means that enforce it ("cgroup", "rlimit", "mount", null), and `degraded`, a list of
 * texts. */
void epg_execution_describe(const epg_execution *execution, epg_json_writer *writer, const char *key);

#endif
