/* The proof that a sandbox holds, taken from inside by a probe guest that comes to be in the same way as a Policy. */
#ifndef EPG_EXECUTION_PROBE_H
#define EPG_EXECUTION_PROBE_H

#include <stdbool.h>

#include "execution/execution.h"

typedef struct epg_probe_check {
    char name[48]; /* "seccomp", "internet_sockets", "outside_user", ... */
    bool holds;
    char detail[200]; /* why not */
} epg_probe_check;

enum { EPG_PROBE_CHECKS = 48 };

typedef struct epg_probe {
    epg_probe_check checks[EPG_PROBE_CHECKS];
    size_t count;
    bool forked; /* a cell of a fork server; false: a sandbox of its own, made anew each time */
} epg_probe;

/* Runs the probe in a cell (`forked`) or in a sandbox of its own. UNAVAILABLE: it could not even be started, with the
 * step; otherwise OK, whatever the checks say. */
epg_code epg_containment_probe(const epg_execution *execution, bool forked, epg_probe *out, epg_error *err);
/* The first check that does not hold, NULL when all do. */
const epg_probe_check *epg_containment_miss(const epg_probe *probe);

/* What a user of this machine can do so that sandboxes can be made here: one line, found by looking at the usual
 * reasons (a kernel setting, AppArmor's rule, a container). Caller frees. */
char *epg_containment_advice(void);

/* Looks at a process from outside: its filters (at least `filters`), no_new_privs, capabilities, user, and PID
 * namespaces (`depth` below ours). INVALID with what is wrong. */
epg_code epg_containment_look(pid_t pid, unsigned filters, unsigned depth, epg_error *err);

#endif
