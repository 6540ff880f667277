/* Host and monitor speak over two pipes: requests (how long to wait before SIGKILL) to the monitor, reports from it,
 * both in whole records smaller than PIPE_BUF, between two copies of one binary. The end of the request pipe is the
 * death of the Host, whatever it died of.
 *
 * The monitor's life:  start the command -> wait for { its end, a request, the Host's death }
 *                      -> a request with grace: SIGTERM to all, wait for { no process left, grace over, as above }
 *                      -> SIGKILL to the command, then to all that is left -> report -> exit. */
#include "system/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "system/tree.h"

enum { REQUEST_FD = 3, REPORT_FD = 4, COMMAND_FDS = 5 };

typedef struct owner_request {
    int64_t grace_ns; /* 0: SIGKILL now */
} owner_request;

typedef enum report_kind { REPORT_STARTED = 1, REPORT_FAILED, REPORT_EXITED, REPORT_ENDED } report_kind;

typedef struct owner_report {
    report_kind kind;
    pid_t pid;
    epg_exit exit;
    epg_ended ended;
    epg_error error;
} owner_report;

/* The Host's side. */

static int make_pipe(int *read_end, int *write_end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -1;
    }
    *read_end = ends[0];
    *write_end = ends[1];
    return 0;
}

/* The command line of the monitor: monitor [--search PATH] [--remove DIR] [--stopped continue] [--descriptor N]...
 * -- COMMAND... */
typedef struct monitor_line {
    const char **argv;
    char **texts;
    epg_fd_map *fds;
    size_t fd_count;
} monitor_line;

static void monitor_line_free(monitor_line *line)
{
    for (size_t i = 2; line->texts != NULL && i < line->fd_count; i++) {
        free(line->texts[i]);
    }
    free(line->texts);
    free(line->argv);
    free(line->fds);
}

static void make_line(monitor_line *line, const epg_spawn *spawn, const char *binary, int request, int report)
{
    size_t words = 0;
    while (spawn->argv[words] != NULL) {
        words++;
    }
    line->fd_count = spawn->fd_count + 2;
    line->argv = epg_alloc_array(10 + 2 * spawn->fd_count + words, sizeof *line->argv);
    line->texts = epg_alloc_array(line->fd_count, sizeof *line->texts);
    line->fds = epg_alloc_array(line->fd_count, sizeof *line->fds);
    line->fds[0] = (epg_fd_map){.from = request, .to = REQUEST_FD};
    line->fds[1] = (epg_fd_map){.from = report, .to = REPORT_FD};
    size_t n = 0;
    line->argv[n++] = binary;
    line->argv[n++] = "monitor";
    if (spawn->search_path != NULL) {
        line->argv[n++] = "--search";
        line->argv[n++] = spawn->search_path;
    }
    if (spawn->remove_after != NULL) {
        line->argv[n++] = "--remove";
        line->argv[n++] = spawn->remove_after;
    }
    if (spawn->never_stopped) {
        line->argv[n++] = "--stopped";
        line->argv[n++] = "continue";
    }
    for (size_t i = 0; i < spawn->fd_count; i++) {
        line->fds[i + 2] = (epg_fd_map){.from = spawn->fds[i].from, .to = COMMAND_FDS + (int)i};
        line->texts[i + 2] = epg_format("%d", spawn->fds[i].to);
        line->argv[n++] = "--descriptor";
        line->argv[n++] = line->texts[i + 2];
    }
    line->argv[n++] = "--";
    memcpy(line->argv + n, spawn->argv, words * sizeof *spawn->argv);
}

static epg_code spawn_monitor(const epg_spawn *spawn, int request, int report, epg_process *out, epg_error *err)
{
    EPG_AUTO_FREE char *binary = epg_own_executable();
    EPG_CLEANUP(monitor_line_free) monitor_line line = {0};
    make_line(&line, spawn, binary, request, report);
    epg_spawn monitor = {.argv = line.argv,
                         .environment = spawn->environment,
                         .working_directory = spawn->working_directory,
                         .fds = line.fds,
                         .fd_count = line.fd_count,
                         .groups = spawn->groups, /* what it starts inherits them */
                         .group_count = spawn->group_count,
                         .data_bytes = spawn->data_bytes,
                         .new_session = true};
    if (epg_process_spawn(&monitor, out, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_EXECUTION, "starting a monitor");
    }
    return EPG_OK;
}

/* True when a whole report was there. *closed: the monitor has none to come. */
static bool take_report(int fd, owner_report *report, bool *closed)
{
    ssize_t got = 0;
    do {
        got = read(fd, report, sizeof *report);
    } while (got < 0 && errno == EINTR);
    *closed = got == 0 || (got < 0 && errno != EAGAIN);
    return got == (ssize_t)sizeof *report;
}

static void wait_for_report(const epg_owned *owned, int64_t deadline)
{
    struct pollfd wait[2] = {{.fd = owned->report, .events = POLLIN}, {.fd = owned->monitor.pidfd, .events = POLLIN}};
    (void)poll(wait, EPG_COUNT(wait), epg_poll_timeout_ms(deadline));
}

static void close_pipes(epg_owned *owned)
{
    epg_close_cleanup(&owned->control);
    epg_close_cleanup(&owned->report);
    owned->control = -1;
    owned->report = -1;
}

static epg_code await_start(epg_owned *owned, epg_error *err)
{
    owner_report report;
    bool closed = false;
    while (!take_report(owned->report, &report, &closed)) {
        if (closed) {
            return epg_fail(err, EPG_ERR_EXECUTION, "the monitor ended before it started the command");
        }
        wait_for_report(owned, EPG_NEVER);
    }
    if (report.kind == REPORT_FAILED) {
        if (err != NULL) {
            *err = report.error;
        }
        return report.error.code;
    }
    owned->command_pid = report.pid;
    owned->started = true;
    return EPG_OK;
}

epg_code epg_owned_start(const epg_spawn *spawn, epg_owned *out, epg_error *err)
{
    EPG_AUTO_CLOSE int request = -1;
    EPG_AUTO_CLOSE int report = -1;
    epg_owned owned = {.monitor = {.pid = -1, .pidfd = -1}, .control = -1, .report = -1};
    if (make_pipe(&request, &owned.control) < 0 || make_pipe(&owned.report, &report) < 0) {
        epg_code failed = epg_fail_errno(err, errno, "can't make a pipe to a monitor");
        close_pipes(&owned);
        return failed;
    }
    (void)fcntl(owned.report, F_SETFL, O_NONBLOCK);
    epg_code code = spawn_monitor(spawn, request, report, &owned.monitor, err);
    (void)close(epg_take_fd(&request));
    (void)close(epg_take_fd(&report));
    if (code == EPG_OK) {
        code = await_start(&owned, err);
    }
    if (code != EPG_OK) {
        close_pipes(&owned);
        epg_process_end(&owned.monitor, epg_deadline_after_ns(EPG_SECOND), NULL);
        return code;
    }
    *out = owned;
    return EPG_OK;
}

static void note(epg_owned *owned, const owner_report *report)
{
    if (report->kind == REPORT_EXITED) {
        owned->exited = true;
        owned->exit = report->exit;
    } else if (report->kind == REPORT_ENDED) {
        owned->ended = report->ended;
        owned->told_end = true;
    }
}

epg_code epg_owned_poll(epg_owned *owned, epg_error *err)
{
    if (owned->finished) {
        return EPG_OK;
    }
    /* Asked before the reports are read: what a dead monitor had to say is all there. */
    bool gone = !epg_process_running(&owned->monitor);
    owner_report report;
    bool closed = false;
    while (take_report(owned->report, &report, &closed)) {
        note(owned, &report);
    }
    if (!gone && !closed) {
        return EPG_OK;
    }
    enum { LAST_STEPS_NS = 1000000000 };
    owned->finished = true;
    epg_process_end(&owned->monitor, epg_deadline_after_ns(LAST_STEPS_NS), NULL);
    if (!owned->told_end) {
        return epg_fail(err, EPG_ERR_EXECUTION, "the monitor of a process tree was ended before its work was done");
    }
    return EPG_OK;
}

/* The pipe holds thousands of requests; a monitor that is gone is seen elsewhere. SIGPIPE is kept away by hand: the
 * caller may not have it ignored. */
static void request(const epg_owned *owned, int64_t grace_ns)
{
    if (owned->finished || owned->control < 0) {
        return;
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    owner_request request = {.grace_ns = grace_ns < 0 ? 0 : grace_ns};
    (void)sigaction(SIGPIPE, &ignore, &before);
    (void)!write(owned->control, &request, sizeof request);
    (void)sigaction(SIGPIPE, &before, NULL);
}

void epg_owned_terminate(epg_owned *owned, int64_t grace_ns)
{
    request(owned, grace_ns);
}

void epg_owned_kill(epg_owned *owned)
{
    request(owned, 0);
}

epg_code epg_owned_finish(epg_owned *owned, int64_t deadline, epg_error *err)
{
    epg_close_cleanup(&owned->control);
    owned->control = -1;
    epg_code code = EPG_OK;
    while (!owned->finished && code == EPG_OK) {
        code = epg_owned_poll(owned, err);
        if (owned->finished) {
            break;
        }
        if (epg_monotonic_ns() >= deadline) {
            epg_process_end(&owned->monitor, 0, NULL);
            owned->finished = true;
            code = epg_fail(err, EPG_ERR_TIMEOUT, "a process tree could not be ended in time");
            break;
        }
        wait_for_report(owned, deadline);
    }
    close_pipes(owned);
    return code;
}

/* The monitor's side. */

typedef struct monitor {
    epg_spawn spawn;
    epg_process command;
    pid_t command_pid;
    int children; /* readable: SIGCHLD came */
    epg_ended ended;
    bool ending;
    int64_t kill_deadline;
} monitor;

static void tell(const owner_report *report)
{
    (void)!write(REPORT_FD, report, sizeof *report); /* to a Host that may be gone */
}

static owner_report new_report(report_kind kind)
{
    owner_report report;
    memset(&report, 0, sizeof report); /* the gaps between its members are written too */
    report.kind = kind;
    return report;
}

/* Reads the command line that make_line wrote. `fds` has room for every word. False: it is not one of ours. */
static bool read_line(int argc, char **argv, epg_spawn *spawn, epg_fd_map *fds)
{
    int i = argc > 1 && strcmp(argv[1], "monitor") == 0 ? 2 : 1;
    *spawn = (epg_spawn){.working_directory = -1, .fds = fds, .new_session = true, .die_with_parent = true};
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
        uint64_t number = 0;
        if (strcmp(argv[i], "--search") == 0) {
            spawn->search_path = argv[i + 1];
        } else if (strcmp(argv[i], "--remove") == 0) {
            spawn->remove_after = argv[i + 1];
        } else if (strcmp(argv[i], "--stopped") == 0) {
            spawn->never_stopped = true;
        } else if (strcmp(argv[i], "--descriptor") == 0 &&
                   epg_parse_u64(argv[i + 1], strlen(argv[i + 1]), INT32_MAX, &number)) {
            fds[spawn->fd_count] = (epg_fd_map){.from = COMMAND_FDS + (int)spawn->fd_count, .to = (int)number};
            spawn->fd_count++;
        } else {
            return false;
        }
    }
    spawn->argv = (const char *const *)argv + i + 1;
    return i + 1 < argc && fcntl(REQUEST_FD, F_GETFD) >= 0 && fcntl(REPORT_FD, F_GETFD) >= 0;
}

static void shut_out_signals(void)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < EPG_COUNT(ignored); i++) {
        (void)sigaction(ignored[i], &ignore, NULL);
    }
}

static int listen_for_children(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static bool start_command(monitor *self, epg_error *err)
{
    extern char **environ;
    self->spawn.environment = (const char *const *)environ;
    if (epg_process_spawn(&self->spawn, &self->command, err) != EPG_OK) {
        return false;
    }
    self->command_pid = self->command.pid;
    for (size_t i = 0; i < self->spawn.fd_count; i++) {
        (void)close(self->spawn.fds[i].from); /* so that the command's end closes them */
    }
    (void)!chdir("/"); /* where it works now could not be unmounted */
    return true;
}

/* Reaps the command when it has ended by `deadline`, and tells. */
static void reap_command(monitor *self, int64_t deadline)
{
    owner_report report = new_report(REPORT_EXITED);
    if (self->command.pidfd >= 0 && epg_process_wait(&self->command, deadline, &report.exit, NULL) == EPG_OK) {
        tell(&report);
    }
}

static size_t keep_command(const monitor *self, pid_t *keep)
{
    *keep = self->command_pid;
    return self->command.pidfd >= 0 ? 1 : 0;
}

static void begin_ending(monitor *self)
{
    if (!self->ending) {
        pid_t keep = 0;
        size_t count = keep_command(self, &keep);
        self->ending = true;
        self->ended.orphans = (unsigned)epg_children_count(&keep, count);
    }
}

/* SIGTERM once; a later request can only bring the end nearer. */
static void terminate(monitor *self, int64_t grace_ns)
{
    bool first = !self->ending;
    begin_ending(self);
    if (first) {
        self->ended.terminated = epg_descendants_signal(NULL, 0, SIGTERM);
    }
    int64_t deadline = epg_deadline_after_ns(grace_ns);
    if (deadline < self->kill_deadline) {
        self->kill_deadline = deadline;
    }
}

static void kill_all(monitor *self)
{
    const int64_t enough = 10 * EPG_SECOND; /* then something can't be killed: it hangs in the kernel */
    int64_t deadline = epg_deadline_after_ns(enough);
    begin_ending(self);
    bool alive = epg_process_running(&self->command);
    epg_process_signal(&self->command, SIGKILL);
    reap_command(self, deadline);
    epg_ended rest = {0};
    epg_descendants_end(NULL, 0, 0, deadline, &rest);
    self->ended.killed = rest.killed + alive;
    self->ended.rounds = rest.rounds;
    self->ended.complete = rest.complete;
    if (self->spawn.remove_after != NULL) {
        (void)epg_tree_remove(AT_FDCWD, self->spawn.remove_after, 0, NULL);
    }
    owner_report report = new_report(REPORT_ENDED);
    report.ended = self->ended;
    tell(&report);
}

/* A command that must not stay stopped is continued; it may be stopped again at once, until its own limit passes. */
static void continue_command(const monitor *self)
{
    siginfo_t stopped = {.si_pid = 0};
    if (self->spawn.never_stopped && self->command.pidfd >= 0 &&
        waitid(P_PIDFD, (id_t)self->command.pidfd, &stopped, WSTOPPED | WNOHANG) == 0 && stopped.si_pid != 0) {
        epg_process_signal(&self->command, SIGCONT);
    }
}

/* True when it is time for kill_all. */
static bool hear_children(monitor *self)
{
    struct signalfd_siginfo info;
    while (read(self->children, &info, sizeof info) > 0) {
    }
    reap_command(self, 0);
    continue_command(self);
    pid_t keep = 0;
    size_t count = keep_command(self, &keep);
    size_t living = epg_descendants_reap(&keep, count);
    if (count == 1) {
        return false;
    }
    return !self->ending || living == 0;
}

static bool hear_host(monitor *self)
{
    owner_request request = {0};
    ssize_t got = read(REQUEST_FD, &request, sizeof request);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return false;
    }
    if (got != (ssize_t)sizeof request || request.grace_ns <= 0) {
        return true;
    }
    terminate(self, request.grace_ns);
    return false;
}

static void watch(monitor *self)
{
    for (bool over = false; !over;) {
        struct pollfd wait[2] = {{.fd = REQUEST_FD, .events = POLLIN}, {.fd = self->children, .events = POLLIN}};
        int ready = poll(wait, EPG_COUNT(wait), epg_poll_timeout_ms(self->kill_deadline));
        if (ready < 0 && errno != EINTR) {
            return;
        }
        over = epg_monotonic_ns() >= self->kill_deadline;
        if (ready > 0 && wait[0].revents != 0) {
            over = hear_host(self) || over;
        }
        if (ready > 0 && wait[1].revents != 0) {
            over = hear_children(self) || over;
        }
    }
}

int epg_monitor_main(int argc, char **argv)
{
    enum { USAGE_EXIT = 2 };
    monitor self = {.command = {.pid = -1, .pidfd = -1}, .kill_deadline = EPG_NEVER};
    epg_fd_map *fds = epg_alloc_array((size_t)argc, sizeof *fds);
    if (!read_line(argc, argv, &self.spawn, fds)) {
        (void)fprintf(stderr, "monitor: the Host starts this by itself; it is not for use by hand\n");
        free(fds);
        return USAGE_EXIT;
    }
    shut_out_signals();
    (void)prctl(PR_SET_DUMPABLE, 0);
    owner_report report = new_report(REPORT_STARTED);
    self.children = listen_for_children();
    if (self.children < 0 || epg_become_subreaper() < 0) {
        (void)epg_fail_errno(&report.error, errno, "can't watch over processes");
        report.kind = REPORT_FAILED;
    } else if (!start_command(&self, &report.error)) {
        report.kind = REPORT_FAILED;
    }
    report.pid = self.command_pid;
    tell(&report);
    if (report.kind == REPORT_STARTED) {
        watch(&self);
        kill_all(&self);
    }
    free(fds);
    (void)prctl(PR_SET_DUMPABLE, 1); /* nothing is left that could look in; leak checkers do */
    return report.kind == REPORT_STARTED ? 0 : 1;
}
