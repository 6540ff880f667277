/* Who is whose child, as the kernel tells it now. For what is built on it (descendants.c) and its tests.
 *
 * A list may miss a child that came or went while it was read: callers look again until nothing is left. */
#ifndef EPG_SYSTEM_CHILDREN_H
#define EPG_SYSTEM_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct epg_pid_list {
    pid_t *pids;
    size_t count;
    size_t room;
} epg_pid_list;

void epg_pid_list_add(epg_pid_list *list, pid_t pid);
void epg_pid_list_free(epg_pid_list *list);
#define EPG_AUTO_PIDS EPG_CLEANUP(epg_pid_list_free) epg_pid_list

/* Adds the children of `parent`, ended ones that nobody reaped yet too: from the kernel's own lists, or, on a kernel
 * without them, from a pass over all processes. */
void epg_children_list(pid_t parent, epg_pid_list *list);
bool epg_children_from_kernel(pid_t parent, epg_pid_list *list); /* false: the kernel has no such lists */
void epg_children_from_scan(pid_t parent, epg_pid_list *list);

/* The parent of `pid`, and whether it has ended (a zombie). False when there is no such process. */
bool epg_child_look(pid_t pid, pid_t *parent, bool *ended);

#endif
