/* What a profile provides: one constant table each. Private to this room. */
#ifndef EPG_EXECUTION_LAUNCHER_H
#define EPG_EXECUTION_LAUNCHER_H

#include "execution/execution.h"

typedef struct epg_launcher {
    epg_code (*check)(const epg_execution *execution, epg_error *err);
    /* `spawn` is complete; a profile may wrap its argv and add to it. */
    epg_code (*launch)(const epg_execution *execution, const epg_spawn *spawn, epg_process *out, epg_error *err);
    epg_code (*confine)(const epg_execution *execution, const epg_process *process, epg_error *err);
} epg_launcher;

extern const epg_launcher epg_process_launcher;

#endif
