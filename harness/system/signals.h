/* SIGINT, SIGTERM and SIGHUP as a readable descriptor: the one global of the project. */
#ifndef EPG_SYSTEM_SIGNALS_H
#define EPG_SYSTEM_SIGNALS_H

#include "base/error.h"

/* Blocks the three, and ignores SIGPIPE; *fd becomes readable when one of the three came. */
epg_code epg_signals_open(int *fd, epg_error *err);
int epg_signals_take(int fd); /* the next signal's number, 0 when there is none */

#endif
