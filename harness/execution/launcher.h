/* What a profile provides: one constant table each. Private to this room. */
#ifndef EPG_EXECUTION_LAUNCHER_H
#define EPG_EXECUTION_LAUNCHER_H

#include "base/json.h"
#include "execution/cgroup.h"
#include "execution/execution.h"

struct epg_ground {
    epg_cgroup group;
};

struct epg_hold {
    epg_guest_limits limits;
    const epg_ground *ground; /* may be NULL */
    uint64_t memory_kills;    /* that it told of before this guest ran */
    pid_t pid;                /* of the guest itself */
    bool contained;
    bool scratch_full, processes_full;
};

typedef struct epg_launcher {
    epg_code (*check)(const epg_execution *execution, epg_error *err);
    /* How the guest calls a path of ours. Caller frees. */
    char *(*inside)(const epg_execution *execution, const char *path);
    /* `spawn` is complete; a profile may wrap its argv and add to it. *ground: NULL before; left by the caller also
     * when this fails. */
    epg_code (*launch)(const epg_execution *execution, epg_guest_mode mode, const epg_spawn *spawn, epg_process *out,
                       epg_ground **ground, epg_error *err);
    epg_code (*confine)(const epg_execution *execution, epg_guest_mode mode, const epg_process *process, epg_hold *hold,
                        epg_error *err);
    /* By which means each limit holds; NULL: not at all. */
    void (*describe)(const epg_execution *execution, epg_json_writer *writer);
} epg_launcher;

/* A limit of `describe`: its value and means, or null when it is not enforced. */
void epg_describe_limit(epg_json_writer *writer, const char *key, uint64_t value, const char *means);

extern const epg_launcher epg_process_launcher;
extern const epg_launcher epg_sandbox_launcher;

#endif
