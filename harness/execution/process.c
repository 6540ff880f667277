/* The `process` profile: a process of the same user. Limits keep accidents small; they contain nobody. */
#include <errno.h>
#include <sys/resource.h>

#include "execution/launcher.h"

static epg_code check(const epg_execution *execution, epg_error *err)
{
    (void)execution;
    (void)err;
    return EPG_OK;
}

static char *inside(const epg_execution *execution, const char *path)
{
    (void)execution;
    return epg_strdup(path);
}

static epg_code launch(const epg_execution *execution, epg_guest_mode mode, const epg_spawn *spawn, epg_process *out,
                       epg_ground **ground, epg_error *err)
{
    (void)execution;
    (void)mode;
    (void)ground;
    return epg_process_spawn(spawn, out, err);
}

/* RLIMIT_NPROC counts all processes of the user and would strike others, so it is not for this profile. RLIMIT_DATA
 * counts private writable memory, which is what a guest really takes; RLIMIT_AS would count reservations too. */
static epg_code confine(const epg_execution *execution, epg_guest_mode mode, const epg_process *process, epg_hold *hold,
                        epg_error *err)
{
    (void)mode;
    (void)hold;
    const epg_guest_limits *limits = &execution->limits;
    const struct {
        __rlimit_resource_t resource;
        const char *name;
        uint64_t value; /* 0: none */
        uint64_t slack; /* from the soft limit, which sends a signal that tells why, to the hard one */
    } table[] = {
        {RLIMIT_DATA, "memory", limits->memory_bytes, 0},
        {RLIMIT_CPU, "cpu", limits->cpu_seconds, 1},
        {RLIMIT_NOFILE, "descriptors", limits->descriptors, 0},
        {RLIMIT_FSIZE, "file size", limits->file_bytes, 0},
    };
    const struct rlimit no_core = {0, 0};
    (void)prlimit(process->pid, RLIMIT_CORE, &no_core, NULL);
    for (size_t i = 0; i < EPG_COUNT(table); i++) {
        struct rlimit limit;
        if (table[i].value == 0) {
            continue;
        }
        if (prlimit(process->pid, table[i].resource, NULL, &limit) != 0) {
            return epg_fail_errno(err, errno, "can't read the %s limit of a Policy process", table[i].name);
        }
        if (table[i].value + table[i].slack < limit.rlim_max) {
            limit.rlim_max = table[i].value + table[i].slack;
        }
        limit.rlim_cur = table[i].value < limit.rlim_max ? table[i].value : limit.rlim_max;
        if (prlimit(process->pid, table[i].resource, &limit, NULL) != 0) {
            return epg_fail_errno(err, errno, "can't set the %s limit of a Policy process", table[i].name);
        }
    }
    return EPG_OK;
}

static void describe(const epg_execution *execution, epg_json_writer *writer)
{
    const epg_guest_limits *limits = &execution->limits;
    epg_json_put_bool(writer, "contained", false);
    epg_json_array(writer, "degraded");
    epg_json_put_text(writer, NULL, "nothing is contained: a Policy has all rights of the Host's user");
    epg_json_end(writer);
    epg_json_object(writer, "limits");
    epg_describe_limit(writer, "cpu_seconds", limits->cpu_seconds, "rlimit");
    epg_describe_limit(writer, "descriptors", limits->descriptors, "rlimit");
    epg_describe_limit(writer, "file_bytes", limits->file_bytes, "rlimit");
    epg_describe_limit(writer, "memory_bytes", limits->memory_bytes, "rlimit");
    epg_describe_limit(writer, "processes", 0, NULL);
    epg_describe_limit(writer, "scratch_bytes", 0, NULL);
    epg_describe_limit(writer, "scratch_inodes", 0, NULL);
    epg_json_end(writer);
    epg_json_put_text(writer, "profile", epg_profile_name(EPG_PROFILE_PROCESS));
}

const epg_launcher epg_process_launcher = {
    .check = check, .inside = inside, .launch = launch, .confine = confine, .describe = describe};
