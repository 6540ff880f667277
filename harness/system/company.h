/* Processes that take turns, kept on one core.
 *
 * A worker, its Policy and its Benchmark never work at the same time: each waits for another's frame. Where cores are
 * idle the kernel spreads them, and then every frame wakes a sleeping core, which takes longer than most turns do; on
 * one core a frame costs a switch. So once turns were seen to be quick, a company claims a core and binds the caller
 * and its members to it. A core has one company at most, whichever Hosts run on the machine: the claim is an abstract
 * socket's name, which goes with the process that has it. Who finds no core free stays as it was.
 *
 * Nobody loses a core that he could use: a turn that takes longer than 10 ms frees all of them until the next
 * gathering, with the threads and the children that they made since; and one who chose his cores himself keeps them.
 *
 * Functions take NULL for a company where there is none. All is best effort: nothing fails but speed. */
#ifndef EPG_SYSTEM_COMPANY_H
#define EPG_SYSTEM_COMPANY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct epg_company epg_company;

epg_company *epg_company_new(void);
void epg_company_free(epg_company *company); /* frees its members first */

/* The main thread of `pid` takes turns with the caller, until it leaves, which it does before it is reaped. */
void epg_company_enter(epg_company *company, pid_t pid);
void epg_company_leave(epg_company *company, pid_t pid);

/* A turn, that is all who have one, took this long. */
void epg_company_turn(epg_company *company, int64_t took_ns);
/* When the caller, who waits for a member until `deadline`, should first call epg_company_late. */
int64_t epg_company_patience(const epg_company *company, int64_t deadline);
/* Somebody takes long: all are free, and stay so until epg_company_rest. */
void epg_company_late(epg_company *company);
/* These turns are over; others may follow. All are free. */
void epg_company_rest(epg_company *company);

bool epg_company_bound(const epg_company *company);

#endif
