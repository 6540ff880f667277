/* Reads that wait for a peer in the read itself: the cheapest wait there is, where answers take microseconds.
 *
 * A blocking read can't look at deadlines or at anything else. So each time reads from a descriptor are let block, a
 * timer is set; when it goes off, its handler makes the descriptor non-blocking again. A read that waits is then begun
 * anew by the kernel and returns, and one that is yet to come does not wait at all: the signal can't come at a wrong
 * moment. The caller then waits the dearer way. Other calls that a signal interrupts are restarted too, except for
 * those that never are (poll and its like).
 *
 * Uses the signal SIGRTMIN. */
#ifndef EPG_SYSTEM_PATIENCE_H
#define EPG_SYSTEM_PATIENCE_H

#include <stdbool.h>

typedef struct epg_patience epg_patience;

/* For one descriptor, which is non-blocking now and stays open until epg_patience_close. NULL: no timer can be had. */
epg_patience *epg_patience_open(int fd);
void epg_patience_close(epg_patience *patience); /* may be NULL */

/* Lets reads wait, for 10 ms from now. False when that can't be. */
bool epg_patience_begin(epg_patience *patience);
/* Ends it before its time. */
void epg_patience_end(epg_patience *patience);

/* Keeps the signal from this thread while other people's code runs; then no more. */
void epg_patience_hush(bool hush);

#endif
