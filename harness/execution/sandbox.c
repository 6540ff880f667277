/* The `sandbox` profile of Policies. How it works:
 *
 *   worker (the Host's user)
 *    '- contain outside, then bwrap       stages what is shown, leaves root, makes the sandbox
 *        '- bwrap's process 1             reaps
 *            '- contain inside, then the interpreter: the fork server, which never runs guest code
 *                '- a cell                 one Policy process, process 1 of namespaces of its own (inside/cell.c)
 *
 * One bubblewrap a worker, not one an Episode: to make one and start an interpreter in it takes 60 ms of a processor, a
 * cell some 3 ms on top of a plain fork. What must not be shared between Episodes is fresh in each cell: PID, mount,
 * IPC, UTS, network and user namespaces, /proc and /tmp (/dev/shm leads there). What all cells of a worker share can't
 * be written: the system's directories, the interpreter's, the guest package, and the one directory in which the worker
 * lays the Program of the Episode that is running.
 *
 * Where the kernel lets bubblewrap make its namespaces but not a program in it make further ones, or where a library
 * has started threads, each Policy process gets a bubblewrap and an interpreter of its own: as contained, slower.
 *
 * The user on the Host is never root. As root we become an unprivileged user that nobody else is before bubblewrap
 * starts, another one for each worker; an ordinary user stays who he is and has no rights beyond his own.
 *
 * Nothing is taken on trust: `check` starts a probe in the same way and has it try what must fail (probe.c); `confine`
 * looks at every single Policy process from outside before its Program is named to it. */
#include "execution/sandbox.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "execution/box.h"
#include "execution/launcher.h"
#include "execution/paths.h"
#include "execution/probe.h"
#include "system/children.h"

enum { START_SECONDS = 60, SERVER_BYTES = 64 << 20 };

static bool counted(void)
{
    return epg_cgroup_find()->memory != NULL;
}

/* A path below `directory` as it is called below `at`; NULL: it does not lie there. */
static char *moved(const char *path, const char *directory, const char *at)
{
    size_t size = directory != NULL ? strlen(directory) : 0;
    if (size == 0 || strncmp(path, directory, size) != 0 || (path[size] != '/' && path[size] != '\0')) {
        return NULL;
    }
    return epg_format("%s%s", at, path + size);
}

static char *inside(const epg_execution *execution, const char *path)
{
    char *found = moved(path, execution->scratch, EPG_INSIDE_SCRATCH);
    if (found == NULL) {
        found = moved(path, execution->guest_root, EPG_INSIDE_GUEST);
    }
    return found != NULL ? found : epg_strdup(path);
}

static void add_limit(epg_box *box, const char *name, uint64_t value)
{
    if (value > 0) {
        epg_words_add(&box->inside, "--limit");
        epg_words_add(&box->inside, name);
        epg_words_take(&box->inside, epg_format("%" PRIu64, value));
    }
}

static void add_limits(epg_box *box, const epg_guest_limits *limits)
{
    add_limit(box, "processes", limits->processes);
    add_limit(box, "descriptors", limits->descriptors);
    add_limit(box, "file", limits->file_bytes);
    add_limit(box, "cpu", limits->cpu_seconds);
    if (!counted()) {
        add_limit(box, "data", limits->memory_bytes);
        add_limit(box, "space", limits->memory_bytes);
    }
}

/* What the library in the fork server needs to know to make cells. */
static epg_code add_cells(epg_box *box, const epg_guest_limits *limits, epg_error *err)
{
    int filter = -1;
    EPG_TRY(epg_filter_make(EPG_FILTER_CELL, false, &filter, err));
    epg_box_add_fd(box, filter, EPG_FD_CELL_FILTER);
    EPG_AUTO_FREE char *library = epg_format("%s/" EPG_CELL, box->tools);
    epg_box_show(box, library, EPG_INSIDE_DIRECTORY "/" EPG_CELL);
    EPG_AUTO_FREE char *numbers =
        epg_format("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                   limits->processes, limits->descriptors, limits->file_bytes, limits->cpu_seconds,
                   counted() ? 0 : limits->memory_bytes, counted() ? 0 : limits->memory_bytes, limits->scratch_bytes,
                   limits->scratch_inodes);
    EPG_BOX_OPTION(box, "--cap-add", "CAP_SYS_ADMIN", "--setenv", EPG_CELL_VARIABLE, numbers);
    epg_words_add(&box->inside, "--preload");
    epg_words_add(&box->inside, EPG_INSIDE_DIRECTORY "/" EPG_CELL);
    return EPG_OK;
}

static epg_code fill(epg_box *box, const epg_execution *execution, epg_guest_mode mode, char **python, epg_error *err)
{
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_TRY(epg_interpreter_paths(execution->python, &paths, python, err));
    EPG_BOX_OPTION(box, "--unshare-net", "--hostname", "policy");
    epg_box_show_system(box, EPG_BOX_POLICY);
    for (size_t i = 0; i < paths.count; i++) {
        epg_box_show_here(box, paths.texts[i]);
    }
    epg_box_show(box, execution->guest_root, EPG_INSIDE_GUEST);
    if (execution->scratch != NULL) {
        epg_box_show(box, execution->scratch, EPG_INSIDE_SCRATCH);
    }
    if (mode == EPG_GUEST_SERVER) {
        return add_cells(box, &execution->limits, err);
    }
    epg_box_scratch(box, "/tmp", execution->limits.scratch_bytes);
    add_limits(box, &execution->limits);
    return EPG_OK;
}

/* All processes of one bubblewrap are in one control group, which they join before they are there: to move a process
 * later would take the kernel ten milliseconds, for each Episode. A worker has one Episode at a time; what its server
 * and its spare need comes on top. */
static void join_group(epg_box *box, const epg_guest_limits *limits, epg_ground **ground)
{
    int joins[2];
    if (limits->memory_bytes == 0 || !counted()) {
        return;
    }
    *ground = epg_alloc(sizeof **ground);
    epg_cgroup_make(limits->memory_bytes + SERVER_BYTES, 0, &(*ground)->group);
    int count = epg_cgroup_open_joins(&(*ground)->group, joins);
    for (int i = 0; i < count; i++) {
        epg_box_add_fd(box, joins[i], EPG_FD_JOIN + i);
        epg_words_add(&box->outside, "--join");
        epg_words_take(&box->outside, epg_format("%d", EPG_FD_JOIN + i));
    }
}

epg_code epg_sandbox_start(const epg_execution *execution, epg_guest_mode mode, const epg_spawn *spawn,
                           epg_process *out, pid_t *inside_pid, epg_ground **ground, epg_error *err)
{
    EPG_CLEANUP(epg_box_close) epg_box box;
    EPG_AUTO_FREE char *python = NULL;
    size_t count = 0;
    EPG_TRY(epg_box_open(&box, EPG_BOX_POLICY, err));
    EPG_TRY(fill(&box, execution, mode, &python, err));
    join_group(&box, &execution->limits, ground);
    while (spawn->argv[count] != NULL) {
        count++;
    }
    EPG_AUTO_FREE const char **argv = epg_alloc_array(count + 1, sizeof *argv);
    memcpy(argv, spawn->argv, count * sizeof *argv);
    argv[0] = python;
    epg_spawn inner = *spawn;
    inner.argv = argv;
    EPG_TRY(
        epg_box_finish(&box, &inner, mode == EPG_GUEST_SERVER ? EPG_FILTER_SERVER : EPG_FILTER_GUEST, !counted(), err));
    epg_process process;
    EPG_TRY(epg_process_spawn(&box.spawn, &process, err));
    epg_code code = epg_box_await(&box, epg_deadline_after_seconds(START_SECONDS), err);
    if (code != EPG_OK) {
        epg_process_end(&process, 0, NULL);
        return epg_fail_as(err, EPG_ERR_EXECUTION, "sandbox of Policies");
    }
    *out = process;
    *inside_pid = box.pid;
    return EPG_OK;
}

static epg_code launch(const epg_execution *execution, epg_guest_mode mode, const epg_spawn *spawn, epg_process *out,
                       epg_ground **ground, epg_error *err)
{
    pid_t ignored = 0;
    return epg_sandbox_start(execution, mode, spawn, out, &ignored, ground, err);
}

/* The guest of a sandbox without a server: the last of bwrap, its process 1, and the interpreter. */
static pid_t guest_below(pid_t root)
{
    EPG_AUTO_PIDS found = {0};
    pid_t last = root;
    epg_children_list(root, &found);
    for (size_t i = 0; i < found.count; i++) {
        last = found.pids[i];
        epg_children_list(last, &found);
    }
    return last;
}

/* Without a limit of its own a guest would live under that of its server alone, which is the same group. */
static epg_code look_at_group(const epg_hold *hold, epg_error *err)
{
    bool wanted = hold->limits.memory_bytes > 0 && counted();
    bool held = hold->ground != NULL && hold->ground->group.memory != NULL;
    if (!wanted || (held && epg_cgroup_holds(&hold->ground->group, hold->pid))) {
        return EPG_OK;
    }
    return epg_fail(err, EPG_ERR_EXECUTION, "a process outside of its memory control group");
}

static epg_code confine(const epg_execution *execution, epg_guest_mode mode, const epg_process *process, epg_hold *hold,
                        epg_error *err)
{
    enum { CELL_FILTERS = 2, CELL_DEPTH = 2, PLAIN_FILTERS = 1, PLAIN_DEPTH = 1 };
    bool cell = mode == EPG_GUEST_SERVER;
    (void)execution;
    hold->contained = true;
    hold->pid = cell ? process->pid : guest_below(process->pid);
    epg_code code =
        epg_containment_look(hold->pid, cell ? CELL_FILTERS : PLAIN_FILTERS, cell ? CELL_DEPTH : PLAIN_DEPTH, err);
    if (code == EPG_OK) {
        code = look_at_group(hold, err);
    }
    return code == EPG_OK ? EPG_OK : epg_fail_as(err, EPG_ERR_EXECUTION, "sandbox of Policies");
}

static epg_code refused(const epg_probe *probe, epg_error *err)
{
    const epg_probe_check *miss = epg_containment_miss(probe);
    return miss == NULL
               ? EPG_OK
               : epg_fail(err, EPG_ERR_UNAVAILABLE, "containment unavailable: %s: %s (see 'evopolicygym doctor')",
                          miss->name, miss->detail);
}

/* Cells, or else a sandbox for each. */
static epg_code check(const epg_execution *execution, epg_error *err)
{
    epg_probe probe;
    if (epg_containment_probe(execution, true, &probe, NULL) == EPG_OK) {
        return refused(&probe, err);
    }
    epg_error why = {.text = ""};
    epg_code code = epg_containment_probe(execution, false, &probe, &why);
    if (code == EPG_OK) {
        return refused(&probe, err);
    }
    if (code == EPG_ERR_UNAVAILABLE) {
        EPG_AUTO_FREE char *advice = epg_containment_advice();
        return epg_fail(err, code, "containment unavailable: %s; %s", why.text, advice);
    }
    return epg_fail(err, code, "%s", why.text);
}

static void describe(const epg_execution *execution, epg_json_writer *writer)
{
    const epg_guest_limits *limits = &execution->limits;
    const epg_cgroup_places *places = epg_cgroup_find();
    const char *group = places->unified ? "cgroup-v2" : "cgroup-v1";
    epg_json_put_bool(writer, "contained", true);
    epg_json_array(writer, "degraded");
    if (places->memory == NULL && limits->memory_bytes > 0) {
        epg_json_put_text(writer, NULL,
                          "no memory control group can be had: memory_bytes holds for each process of a Policy alone");
    }
    epg_json_end(writer);
    epg_json_object(writer, "limits");
    epg_describe_limit(writer, "cpu_seconds", limits->cpu_seconds, "rlimit");
    epg_describe_limit(writer, "descriptors", limits->descriptors, "rlimit");
    epg_describe_limit(writer, "file_bytes", limits->file_bytes, "rlimit");
    epg_describe_limit(writer, "memory_bytes", limits->memory_bytes, places->memory != NULL ? group : "rlimit");
    epg_describe_limit(writer, "processes", limits->processes, "rlimit");
    epg_describe_limit(writer, "scratch_bytes", limits->scratch_bytes, "mount");
    epg_describe_limit(writer, "scratch_inodes", limits->scratch_inodes, "mount");
    epg_json_end(writer);
    epg_json_put_text(writer, "profile", epg_profile_name(EPG_PROFILE_SANDBOX));
}

const epg_launcher epg_sandbox_launcher = {
    .check = check, .inside = inside, .launch = launch, .confine = confine, .describe = describe};
