#include "execution/execution.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/clock.h"
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
static const epg_launcher *launcher_of(const epg_execution *execution)
{
    static const epg_launcher *const launchers[] = {
        [EPG_PROFILE_PROCESS] = &epg_process_launcher, [EPG_PROFILE_SANDBOX] = &epg_sandbox_launcher};
    return launchers[execution->profile];
}

epg_code epg_execution_check(const epg_execution *execution, epg_error *err)
{
    return launcher_of(execution)->check(execution, err);
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
                              size_t fd_count, epg_process *out, epg_ground **ground, epg_error *err)
{
    EPG_AUTO_FREE char *file = epg_format("%s/server.py", execution->guest_root);
    EPG_AUTO_FREE char *script = epg_execution_inside(execution, file);
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
    epg_ground *made = NULL;
    epg_code code = launcher_of(execution)->launch(execution, mode, &spawn, out, &made, err);
    if (code != EPG_OK) {
        epg_execution_leave(made);
        return code;
    }
    *ground = made;
    return EPG_OK;
}

void epg_execution_leave(epg_ground *ground)
{
    if (ground != NULL) {
        epg_cgroup_remove(&ground->group);
        free(ground);
    }
}

char *epg_execution_inside(const epg_execution *execution, const char *path)
{
    return launcher_of(execution)->inside(execution, path);
}

/* --- One Policy process, from its limits to its end. --- */

static uint64_t memory_kills(const epg_ground *ground)
{
    epg_cgroup_events events = {0};
    if (ground != NULL) {
        epg_cgroup_read(&ground->group, &events);
    }
    return events.memory_kills;
}

epg_code epg_execution_confine(const epg_execution *execution, epg_guest_mode mode, const epg_ground *ground,
                               const epg_process *process, epg_hold **out, epg_error *err)
{
    epg_hold *hold = epg_alloc(sizeof *hold);
    *hold = (epg_hold){.limits = execution->limits, .ground = ground, .pid = process->pid};
    epg_code code = launcher_of(execution)->confine(execution, mode, process, hold, err);
    if (code != EPG_OK) {
        free(hold);
        return code;
    }
    hold->memory_kills = memory_kills(ground);
    *out = hold;
    return EPG_OK;
}

/* Where a directory at the top of the file system that `pid` sees can be reached from here. Caller frees. */
static char *inside_of(pid_t pid, const char *directory)
{
    return epg_format("/proc/%d/%s/%s", (int)pid, "root", directory);
}

/* The processes and threads of the PID namespace of `pid`, as its own /proc lists them. */
static uint64_t count_tasks(pid_t pid)
{
    char line[256];
    uint64_t count = 0;
    EPG_AUTO_FREE char *path = inside_of(pid, "proc");
    DIR *directory = opendir(path);
    const struct dirent *entry = NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        unsigned threads = 0;
        EPG_AUTO_FREE char *name = epg_format("%s/%.16s/status", path, entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(name, "re") : NULL;
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            (void)sscanf(line, "Threads: %u", &threads);
        }
        if (file != NULL) {
            (void)fclose(file);
        }
        count += threads;
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    return count;
}

void epg_execution_observe(epg_hold *hold)
{
    struct statfs info;
    EPG_AUTO_FREE char *path = inside_of(hold->pid, "tmp");
    if (!hold->contained) {
        return;
    }
    hold->scratch_full = statfs(path, &info) == 0 && (info.f_bavail == 0 || (info.f_files > 0 && info.f_ffree == 0));
    hold->processes_full = hold->limits.processes > 0 && count_tasks(hold->pid) >= hold->limits.processes;
}

static const char *why(const epg_hold *hold, const epg_guest_end *end)
{
    int signal = end->exit.signal;
    /* The kernel holds the limit against time counted in ticks, which on a busy machine runs ahead of what it reports
     * in the end; and nothing else kills the first process of a PID namespace from outside. */
    bool over_cpu = hold->limits.cpu_seconds > 0 && end->cpu_ns >= (int64_t)hold->limits.cpu_seconds * EPG_SECOND / 2;
    if (end->failed && memory_kills(hold->ground) > hold->memory_kills) {
        return "memory";
    }
    if (signal == SIGXCPU || (signal == SIGKILL && !end->ended && over_cpu)) {
        return "cpu";
    }
    if (signal == SIGSYS) {
        return "seccomp";
    }
    if (end->failed && hold->processes_full) {
        return "processes";
    }
    if (end->failed && hold->scratch_full) {
        return "disk";
    }
    return signal != 0 && !end->ended ? "signal" : NULL;
}

const char *epg_execution_release(epg_hold *hold, const epg_guest_end *end)
{
    if (hold == NULL) {
        return NULL;
    }
    const char *reason = why(hold, end);
    free(hold);
    return reason;
}

void epg_describe_limit(epg_json_writer *writer, const char *key, uint64_t value, const char *means)
{
    if (value == 0 || means == NULL) {
        epg_json_put_null(writer, key);
        return;
    }
    epg_json_object(writer, key);
    epg_json_put_text(writer, "by", means);
    epg_json_put_u64(writer, "value", value);
    epg_json_end(writer);
}

void epg_execution_describe(const epg_execution *execution, epg_json_writer *writer, const char *key)
{
    epg_json_object(writer, key);
    launcher_of(execution)->describe(execution, writer);
    epg_json_end(writer);
}
