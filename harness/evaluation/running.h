/* What a worker is doing, seen from outside: which call of a Benchmark runs inside it. When the worker dies in one, its
 * death is the Benchmark's fault and is told as that.
 *
 * A page of memory that the coordinator makes and the worker maps (descriptor 3 of its start), sealed so that it can't
 * shrink. It is written without a system call and read only once the worker is gone. */
#ifndef EPG_EVALUATION_RUNNING_H
#define EPG_EVALUATION_RUNNING_H

#include "base/error.h"

enum { EPG_RUNNING_DESCRIPTOR = 3 };

typedef struct epg_running epg_running;

/* The coordinator's: *descriptor is given to the worker and closed here. NULL when there can be none. */
epg_running *epg_running_new(int *descriptor);
/* The worker's: NULL when it was started without one. Closes the descriptor. */
epg_running *epg_running_join(void);
void epg_running_close(epg_running *running);

/* Whose calls run in this process; without it, none does. Both are fine with NULL. */
void epg_running_name(epg_running *running, const char *benchmark);
void epg_running_enter(epg_running *running, const char *call); /* NULL: none runs any more */

/* The name, cut where it is long; "" without one. Safe in a signal handler of the worker. */
const char *epg_running_benchmark(const epg_running *running);

/* "lib:./mine.so: Environment.step", printable; NULL when no call of a Benchmark runs in it. Free it. */
char *epg_running_text(const epg_running *running);

#endif
