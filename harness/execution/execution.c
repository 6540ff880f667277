#include "execution/execution.h"

#include <signal.h>
#include <string.h>

#include "base/memory.h"
#include "execution/launcher.h"

const epg_guest_limits epg_guest_default_limits = {
    .memory_bytes = UINT64_C(4) << 30,
    .processes = 64,
    .cpu_seconds = 0,
    .descriptors = 1024,
    .file_bytes = UINT64_C(1) << 30,
    .scratch_bytes = UINT64_C(256) << 20,
    .scratch_inodes = 16384,
    .log_bytes = 64 * 1024,
};

static const char *const profile_names[] = {[EPG_PROFILE_PROCESS] = "process", [EPG_PROFILE_SANDBOX] = "sandbox"};

const char *epg_profile_name(epg_profile profile)
{
    return profile_names[profile];
}

epg_code epg_profile_parse(const char *text, epg_profile *out, epg_error *err)
{
    for (size_t i = 0; i < EPG_COUNT(profile_names); i++) {
        if (strcmp(text, profile_names[i]) == 0) {
            *out = (epg_profile)i;
            return EPG_OK;
        }
    }
    return epg_fail(err, EPG_ERR_USAGE, "unknown execution profile '%.64s': use process or sandbox", text);
}

/* NULL, and the error told, when the profile can't be had. */
static const epg_launcher *launcher_of(const epg_execution *execution, epg_error *err)
{
    switch (execution->profile) {
    case EPG_PROFILE_PROCESS:
        return &epg_process_launcher;
    case EPG_PROFILE_SANDBOX:
        break;
    }
    (void)epg_fail(err, EPG_ERR_UNAVAILABLE, "execution profile %s is not built into this version: use process",
                   epg_profile_name(execution->profile));
    return NULL;
}

epg_code epg_execution_check(const epg_execution *execution, epg_error *err)
{
    const epg_launcher *launcher = launcher_of(execution, err);
    if (launcher == NULL) {
        return EPG_ERR_UNAVAILABLE;
    }
    return launcher->check(execution, err);
}

/* Hash seed and encodings are fixed so that equal Episodes run equally; numerical libraries get one thread, for one
 * Episode has one core and a library that starts threads when imported can't be forked. */
static const char *const guest_environment[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "LANG=C.UTF-8",
    "HOME=/",
    "PYTHONHASHSEED=0",
    "PYTHONUTF8=1",
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONNOUSERSITE=1",
    "OMP_NUM_THREADS=1",
    "OPENBLAS_NUM_THREADS=1",
    "MKL_NUM_THREADS=1",
    NULL,
};

enum { FIXED_ARGUMENTS = 4 };

epg_code epg_execution_launch(const epg_execution *execution, epg_guest_mode mode, const epg_fd_map *fds,
                              size_t fd_count, epg_process *out, epg_error *err)
{
    const epg_launcher *launcher = launcher_of(execution, err);
    if (launcher == NULL) {
        return EPG_ERR_UNAVAILABLE;
    }
    EPG_AUTO_FREE char *script = epg_format("%s/server.py", execution->guest_root);
    EPG_AUTO_FREE char *preload = epg_strdup(execution->preload != NULL ? execution->preload : "");
    EPG_AUTO_FREE const char **argv = epg_alloc_array(FIXED_ARGUMENTS + strlen(preload) + 2, sizeof *argv);
    size_t count = 0;
    argv[count++] = execution->python;
    argv[count++] = "-s";
    argv[count++] = script;
    argv[count++] = mode == EPG_GUEST_SERVER ? "server" : "plain";
    char *rest = NULL;
    for (char *name = strtok_r(preload, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        argv[count++] = name;
    }
    epg_spawn spawn = {
        .argv = argv,
        .environment = guest_environment,
        .working_directory = -1,
        .fds = fds,
        .fd_count = fd_count,
        .new_session = true,
        .die_with_parent = true,
    };
    return launcher->launch(execution, &spawn, out, err);
}

epg_code epg_execution_confine(const epg_execution *execution, const epg_process *process, epg_error *err)
{
    const epg_launcher *launcher = launcher_of(execution, err);
    if (launcher == NULL) {
        return EPG_ERR_UNAVAILABLE;
    }
    return launcher->confine(execution, process, err);
}

const char *epg_execution_killed_by(const epg_execution *execution, int signal)
{
    if (signal == SIGXCPU && execution->limits.cpu_seconds > 0) {
        return "cpu";
    }
    return signal == SIGSYS ? "seccomp" : NULL;
}
