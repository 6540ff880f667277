/* The system calls that a contained process may make, as a seccomp filter. Private to this room. */
#ifndef EPG_EXECUTION_FILTER_H
#define EPG_EXECUTION_FILTER_H

#include <stdbool.h>

#include "base/error.h"

typedef enum epg_filter_kind {
    EPG_FILTER_GUEST,  /* a Policy: Unix sockets only */
    EPG_FILTER_SERVER, /* the fork server, which never runs guest code: may make the namespaces of a cell too */
    EPG_FILTER_CELL,   /* on top of the server's, from which a cell inherits it: takes that back; a dozen instructions,
                        * for it is loaded once an Episode */
    EPG_FILTER_AGENT   /* an Agent: internet sockets too; its network namespace says what they reach */
} epg_filter_kind;

/* A memory file with the program for `--seccomp FD`, read from its start. `uncounted`: there is no memory cgroup, so
 * memory that no process limit counts (memory files, System V segments and queues) is refused.
 * UNAVAILABLE: this machine's library or processor has no such filter. */
epg_code epg_filter_make(epg_filter_kind kind, bool uncounted, int *out, epg_error *err);

#endif
