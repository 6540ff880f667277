/* Starting something in a Policy's sandbox: what the launcher and the probe share. Private to this room. */
#ifndef EPG_EXECUTION_SANDBOX_H
#define EPG_EXECUTION_SANDBOX_H

#include "execution/execution.h"

#define EPG_INSIDE_SCRATCH "/policy"
#define EPG_INSIDE_GUEST "/run/evopolicygym/guest"

/* `spawn->argv[0]` is the interpreter. *inside: the process of the command, as we see it. */
epg_code epg_sandbox_start(const epg_execution *execution, epg_guest_mode mode, const epg_spawn *spawn,
                           epg_process *out, pid_t *inside, epg_ground **ground, epg_error *err);

#endif
