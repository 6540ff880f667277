/* The built-in Benchmarks' kinds, one file each. */
#ifndef EPG_ENVIRONMENTS_KINDS_H
#define EPG_ENVIRONMENTS_KINDS_H

#include "environments/simple.h"

extern const epg_simple_kind epg_cartpole_kind;

#endif
