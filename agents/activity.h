/* Is anything of the Agent's tree at work? The processor time that a process and all its descendants have used, those
 * that ended and were waited for included. */
#ifndef EPG_AGENTS_ACTIVITY_H
#define EPG_AGENTS_ACTIVITY_H

#include <stdint.h>
#include <sys/types.h>

/* Nanoseconds, of the living descendants of `root` and their children that ended; 0 when `root` is gone. Takes a walk
 * through /proc: for a few times a minute, not for every turn of a loop. */
int64_t epg_activity_cpu_ns(pid_t root);

#endif
