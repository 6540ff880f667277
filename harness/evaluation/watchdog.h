/* The limit on trusted calls: an Environment that hangs is the Benchmark's fault after its own limit, never a hang of
 * ours.
 *
 * A worker runs straight-line code, so a timer's signal looks at which trusted call is running and since when. When one
 * has passed its limit the handler writes a ready-made fault frame on the worker's output and ends the process: its
 * memory can't be trusted to go on. Beginning and ending a call cost two clock readings and no system call. */
#ifndef EPG_EVALUATION_WATCHDOG_H
#define EPG_EVALUATION_WATCHDOG_H

#include <stdint.h>

#include "evaluation/running.h"

typedef struct epg_watchdog epg_watchdog;

/* `out`: descriptor for the fault frame. limit_ns 0: no limit. `running` (borrowed, or NULL) is told of each call. One
 * per process. */
epg_code epg_watchdog_open(int out, int64_t limit_ns, epg_running *running, epg_watchdog **result, epg_error *err);
void epg_watchdog_close(epg_watchdog *watchdog);
/* `call` is a static text ("Environment.step"); NULL watchdogs are fine. Returns the time it began. */
int64_t epg_watchdog_begin(epg_watchdog *watchdog, const char *call);
int64_t epg_watchdog_end(epg_watchdog *watchdog, int64_t began); /* how long it took */

#endif
