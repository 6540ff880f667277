/* Starting is fork and exec with a close-on-exec status pipe between the two sides: nothing in it means that the
 * exec worked, a failed step writes its name and errno. Between fork and exec the child makes system calls only; all
 * that it needs is made ready before. All signals are blocked over the fork, so that no handler of ours runs in the
 * child. A pidfd taken of an own child that is not reaped yet can't name another process. */
#include "system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/close_range.h>

#include "base/clock.h"
#include "base/memory.h"

typedef enum spawn_step {
    STEP_SESSION,
    STEP_PARENT,
    STEP_LIMITS,
    STEP_DIRECTORY,
    STEP_DESCRIPTORS,
    STEP_EXEC
} spawn_step;

static const char *const step_names[] = {"make a session for",     "tie to its parent",       "lay the limits on",
                                         "enter the directory of", "hand the descriptors to", "run"};

typedef struct spawn_status {
    spawn_step step;
    int error;
} spawn_status;

/* All that the child needs, made before the fork. */
typedef struct spawn_plan {
    const epg_spawn *spawn;
    char *program;
    int *held; /* one descriptor for each of spawn->fds, above every target */
    int null;
    int status;
    pid_t parent;
} spawn_plan;

static bool executable(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* What to exec. Relative entries of a search path are passed over: they would mean another place in the child. */
static char *find_program(const epg_spawn *spawn)
{
    const char *name = spawn->argv[0];
    if (spawn->search_path == NULL || strchr(name, '/') != NULL) {
        return epg_strdup(name);
    }
    for (const char *entry = spawn->search_path; *entry != '\0';) {
        size_t size = strcspn(entry, ":");
        if (*entry == '/') {
            char *path = epg_format("%.*s/%s", (int)size, entry, name);
            if (executable(path)) {
                return path;
            }
            free(path);
        }
        entry += size;
        entry += *entry == ':';
    }
    return NULL;
}

static void reset_signals(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    (void)sigemptyset(&plain.sa_mask);
    for (int number = 1; number < NSIG; number++) {
        (void)sigaction(number, &plain, NULL); /* KILL, STOP and libc's own refuse: nothing to reset there */
    }
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Every descriptor is first lifted above all targets, then put where it belongs: no order of pairs can clash. What is
 * left over is closed by exec, because all was marked so. */
static int place_descriptors(const spawn_plan *plan)
{
    const epg_spawn *spawn = plan->spawn;
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
        return -1;
    }
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(plan->null, fd) < 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < spawn->fd_count; i++) {
        if (dup2(plan->held[i], spawn->fds[i].to) < 0) {
            return -1;
        }
    }
    return 0;
}

static int lay_limits(const epg_spawn *spawn)
{
    for (size_t i = 0; i < spawn->group_count; i++) {
        if (write(spawn->groups[i], "0", 1) != 1) {
            return -1;
        }
    }
    const struct rlimit data = {.rlim_cur = spawn->data_bytes, .rlim_max = spawn->data_bytes};
    return spawn->data_bytes > 0 ? setrlimit(RLIMIT_DATA, &data) : 0;
}

static spawn_step prepare_child(const spawn_plan *plan)
{
    const epg_spawn *spawn = plan->spawn;
    if (spawn->new_session && setsid() < 0) {
        return STEP_SESSION;
    }
    if (spawn->die_with_parent) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
            return STEP_PARENT;
        }
        if (getppid() != plan->parent) {
            (void)raise(SIGKILL); /* it died before the line above: what that line asks for is due */
        }
    }
    if (lay_limits(spawn) < 0) {
        return STEP_LIMITS;
    }
    if (spawn->working_directory >= 0 && fchdir(spawn->working_directory) < 0) {
        return STEP_DIRECTORY;
    }
    if (place_descriptors(plan) < 0) {
        return STEP_DESCRIPTORS;
    }
    return STEP_EXEC;
}

/* execve takes pointers to non-const for history's sake, and writes nothing. */
static char *const *words(const char *const *list)
{
    union {
        const char *const *given;
        char *const *wanted;
    } same = {.given = list};
    return same.wanted;
}

static _Noreturn void run_child(const spawn_plan *plan)
{
    static const char *const nothing[] = {NULL};
    reset_signals();
    spawn_status status = {.step = prepare_child(plan)};
    if (status.step == STEP_EXEC) {
        (void)execve(plan->program, words(plan->spawn->argv),
                     words(plan->spawn->environment == NULL ? nothing : plan->spawn->environment));
    }
    status.error = errno;
    (void)!write(plan->status, &status, sizeof status);
    _exit(127);
}

static int lift(int fd, int above)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, above);
}

/* The descriptors that the child will need, each at a number that no target takes. 0, or an errno. */
static int hold_descriptors(spawn_plan *plan)
{
    const epg_spawn *spawn = plan->spawn;
    int above = 3;
    for (size_t i = 0; i < spawn->fd_count; i++) {
        if (spawn->fds[i].to >= above) {
            above = spawn->fds[i].to + 1;
        }
    }
    for (size_t i = 0; i < spawn->fd_count; i++) {
        plan->held[i] = lift(spawn->fds[i].from, above);
        if (plan->held[i] < 0) {
            return errno;
        }
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) {
        return errno;
    }
    plan->null = lift(null, above);
    int error = errno;
    (void)close(null);
    if (plan->null < 0) {
        return error;
    }
    int status = lift(plan->status, above);
    if (status < 0) {
        return errno;
    }
    (void)close(plan->status);
    plan->status = status;
    return 0;
}

static void release_plan(spawn_plan *plan)
{
    for (size_t i = 0; plan->held != NULL && i < plan->spawn->fd_count; i++) {
        epg_close_cleanup(&plan->held[i]);
    }
    free(plan->held);
    epg_close_cleanup(&plan->null);
    epg_close_cleanup(&plan->status);
    free(plan->program);
}

/* With SIGCHLD ignored, as some parents leave it to us, the kernel would reap by itself and tell nobody. */
static void want_child_ends(void)
{
    struct sigaction now;
    if (sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_IGN) {
        now = (struct sigaction){.sa_handler = SIG_DFL};
        (void)sigaction(SIGCHLD, &now, NULL);
    }
}

static pid_t fork_child(const spawn_plan *plan)
{
    want_child_ends();
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        run_child(plan);
    }
    int error = errno;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static pid_t wait_pid(pid_t pid)
{
    pid_t got = 0;
    do {
        got = waitpid(pid, NULL, 0);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Waits until the exec worked or a step failed. 0: it runs. */
static ssize_t read_status(int fd, spawn_status *status)
{
    ssize_t got = 0;
    do {
        got = read(fd, status, sizeof *status);
    } while (got < 0 && errno == EINTR);
    return got;
}

static epg_code start_failed(const char *name, const spawn_status *status, epg_error *err)
{
    epg_code code = epg_fail_errno(err, status->error, "can't %s '%s'", step_names[status->step], name);
    if (status->step == STEP_EXEC && (status->error == ENOENT || status->error == ENOTDIR)) {
        code = EPG_ERR_NOT_FOUND;
        if (err != NULL) {
            err->code = code;
        }
    }
    return code;
}

static epg_code start(spawn_plan *plan, epg_process *out, epg_error *err)
{
    const char *name = plan->spawn->argv[0];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return epg_fail_errno(err, errno, "can't start '%s'", name);
    }
    EPG_AUTO_CLOSE int listen = ends[0];
    plan->status = ends[1];
    int error = hold_descriptors(plan);
    if (error != 0) {
        return epg_fail_errno(err, error, "can't start '%s'", name);
    }
    plan->parent = getpid();
    epg_process child = {.pid = fork_child(plan), .pidfd = -1};
    if (child.pid < 0) {
        return epg_fail_errno(err, errno, "can't start '%s'", name);
    }
    child.pidfd = pidfd_open(child.pid, 0);
    error = errno;
    epg_close_cleanup(&plan->status);
    plan->status = -1;
    if (child.pidfd < 0) {
        (void)kill(child.pid, SIGKILL);
        (void)wait_pid(child.pid);
        return epg_fail_errno(err, error, "can't hold the process of '%s'", name);
    }
    spawn_status status = {0};
    if (read_status(listen, &status) == (ssize_t)sizeof status) {
        (void)wait_pid(child.pid);
        (void)close(child.pidfd);
        return start_failed(name, &status, err);
    }
    *out = child;
    return EPG_OK;
}

epg_code epg_process_spawn(const epg_spawn *spawn, epg_process *out, epg_error *err)
{
    spawn_plan plan = {.spawn = spawn, .program = find_program(spawn), .null = -1, .status = -1};
    if (plan.program == NULL) {
        return epg_fail(err, EPG_ERR_NOT_FOUND, "there is no program '%s' in the search path", spawn->argv[0]);
    }
    plan.held = epg_alloc_array(spawn->fd_count, sizeof *plan.held);
    for (size_t i = 0; i < spawn->fd_count; i++) {
        plan.held[i] = -1;
    }
    epg_code code = start(&plan, out, err);
    release_plan(&plan);
    return code;
}

/* Waits for the pidfd without reaping. */
static bool ended_by(const epg_process *process, int64_t deadline)
{
    for (;;) {
        struct pollfd wait = {.fd = process->pidfd, .events = POLLIN};
        int ready = poll(&wait, 1, epg_poll_timeout_ms(deadline));
        if (ready > 0) {
            return true;
        }
        if (ready == 0 && epg_monotonic_ns() >= deadline) {
            return false;
        }
    }
}

bool epg_process_running(const epg_process *process)
{
    return process->pidfd >= 0 && !ended_by(process, 0);
}

void epg_process_signal(const epg_process *process, int signal)
{
    if (process->pidfd >= 0) {
        (void)pidfd_send_signal(process->pidfd, signal, NULL, 0);
    }
}

epg_code epg_process_wait(epg_process *process, int64_t deadline, epg_exit *out, epg_error *err)
{
    if (process->pidfd < 0) {
        return epg_fail(err, EPG_ERR_INTERNAL, "a process is waited for that is not there");
    }
    if (!ended_by(process, deadline)) {
        return epg_fail(err, EPG_ERR_TIMEOUT, "process %d goes on beyond its time", (int)process->pid);
    }
    siginfo_t info = {0};
    int result = 0;
    do {
        result = waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED);
    } while (result < 0 && errno == EINTR);
    int error = errno;
    (void)close(process->pidfd);
    *process = (epg_process){.pid = -1, .pidfd = -1};
    if (result < 0) {
        return epg_fail_errno(err, error, "can't reap a process");
    }
    if (out != NULL) {
        bool exited = info.si_code == CLD_EXITED;
        *out = (epg_exit){.code = exited ? info.si_status : -1, .signal = exited ? 0 : info.si_status};
    }
    return EPG_OK;
}

void epg_process_end(epg_process *process, int64_t grace_deadline, epg_exit *out)
{
    if (process->pidfd < 0) {
        return;
    }
    if (grace_deadline > epg_monotonic_ns()) {
        epg_process_signal(process, SIGTERM);
        if (epg_process_wait(process, grace_deadline, out, NULL) != EPG_ERR_TIMEOUT) {
            return;
        }
    }
    epg_process_signal(process, SIGKILL);
    (void)epg_process_wait(process, EPG_NEVER, out, NULL);
}

int epg_become_subreaper(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

char *epg_own_executable(void)
{
    static const char self[] = "/proc/self/exe";
    char path[PATH_MAX];
    ssize_t size = readlink(self, path, sizeof path);
    struct stat info;
    /* A binary that was replaced or removed since is still there under this name, for a child of ours too. */
    if (size <= 0 || (size_t)size >= sizeof path) {
        return epg_strdup(self);
    }
    char *resolved = epg_strndup(path, (size_t)size);
    if (stat(resolved, &info) == 0) {
        return resolved;
    }
    free(resolved);
    return epg_strdup(self);
}
