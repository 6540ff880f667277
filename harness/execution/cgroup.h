/* Control groups for memory and the number of processes, where this machine lets us have them: version 1 hierarchies
 * or the one of version 2, below our own group or, with the right to it, further up.
 *
 * A group is a directory that is removed when it is done with; one that a killed Host left behind is empty and is
 * removed by the next one that looks. */
#ifndef EPG_EXECUTION_CGROUP_H
#define EPG_EXECUTION_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Where groups can be made. Looked for once in a process. */
typedef struct epg_cgroup_places {
    char *memory; /* absolute directory, NULL: none */
    char *processes;
    bool unified; /* version 2: both are the same directory */
} epg_cgroup_places;
const epg_cgroup_places *epg_cgroup_find(void);

typedef struct epg_cgroup {
    char *memory; /* our group's directory, NULL: none */
    char *processes;
    bool unified;
} epg_cgroup;

/* A new group with these limits (0: none) for each kind that can be had. Best effort: what is NULL in the result has
 * no limit by this means. */
void epg_cgroup_make(uint64_t memory_bytes, uint64_t processes, epg_cgroup *out);
/* Whether the process is in the memory group. */
bool epg_cgroup_holds(const epg_cgroup *group, pid_t pid);
/* Descriptors of cgroup.procs, for a process that joins by itself; at most 2; returns how many. */
int epg_cgroup_open_joins(const epg_cgroup *group, int out[2]);

typedef struct epg_cgroup_events {
    uint64_t memory_kills;     /* processes that were killed for memory */
    uint64_t processes_denied; /* forks that were refused */
} epg_cgroup_events;
void epg_cgroup_read(const epg_cgroup *group, epg_cgroup_events *out);

/* Removes the group, whose processes have ended; waits a little for the kernel to see that. */
void epg_cgroup_remove(epg_cgroup *group);

#endif
