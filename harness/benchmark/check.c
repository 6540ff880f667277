/* The watching side of a check.
 *
 * The Benchmark is opened and played in a forked child, which writes one line a finding, note or number on a pipe and
 * marks in shared memory which call it is in. Here the lines are collected, the time of the call is looked at, and when
 * the child is gone, whatever it left running is counted and ended: we are its subreaper. The pipe's end tells nothing
 * (a process that the Benchmark left behind may hold it); the child's pidfd does. */
#include "benchmark/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "benchmark/check_play.h"
#include "system/process.h"

enum { LINE_MAX_KEPT = 200, LINES_BYTES_MAX = 4 * 1024 * 1024, LOOK_MS = 50 };

void epg_benchmark_report_free(epg_benchmark_report *report)
{
    for (size_t i = 0; i < report->finding_count; i++) {
        free(report->findings[i].aspect);
        free(report->findings[i].text);
    }
    for (size_t i = 0; i < report->note_count; i++) {
        free(report->notes[i].aspect);
        free(report->notes[i].text);
    }
    free(report->findings);
    free(report->notes);
    free(report->id);
    *report = (epg_benchmark_report){.id = NULL};
}

/* --- The child --- */

static epg_code check_here(epg_trial *self, epg_error *err)
{
    self->mark->began = epg_monotonic_ns();
    self->mark->call = "opening the Benchmark";
    EPG_TRY(epg_benchmark_open(self->request->benchmark, &self->request->options, &self->benchmark, err));
    self->mark->call = NULL;
    epg_code code = epg_trial_rules(self, err);
    self->mark->call = "closing the Benchmark";
    self->mark->began = epg_monotonic_ns();
    epg_benchmark_destroy(self->benchmark);
    self->mark->call = NULL;
    epg_spec_free(&self->spec);
    return code;
}

/* Ends the process: with 0 and an empty error, or with the error's code and its text as a line. */
static _Noreturn void be_child(const epg_benchmark_check_request *request, epg_trial_mark *mark, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* what a Benchmark prints is not our document */
    epg_trial checker = {.request = request, .mark = mark, .out = out};
    epg_error err = {.text = ""};
    epg_code code = check_here(&checker, &err);
    if (code != EPG_OK) {
        EPG_AUTO_FREE char *line = epg_format("E\t%d\t%s\n", (int)code, err.text);
        (void)!write(out, line, strlen(line));
    } else {
        (void)!write(out, "D\t\t\n", 4);
    }
    _exit(0);
}

/* --- Lines --- */

static void add_line(epg_benchmark_report_line **lines, size_t *count, const char *aspect, const char *text)
{
    if (*count < LINE_MAX_KEPT) {
        *lines = epg_grow_array(*lines, *count + 1, sizeof **lines);
        (*lines)[(*count)++] = (epg_benchmark_report_line){epg_strdup(aspect), epg_strdup(text)};
    }
}

static void add_finding(epg_benchmark_report *report, const char *aspect, const char *text)
{
    add_line(&report->findings, &report->finding_count, aspect, text);
}

static void take_number(epg_benchmark_report *report, const char *name, double value)
{
    if (strcmp(name, "episodes") == 0) {
        report->episodes = (uint64_t)value;
    } else if (strcmp(name, "steps") == 0) {
        report->steps = (uint64_t)value;
    } else if (strcmp(name, "open_seconds") == 0) {
        report->open_seconds = value;
    } else if (strcmp(name, "step_seconds") == 0) {
        report->step_seconds = value;
    } else if (strcmp(name, "feedback_seconds") == 0) {
        report->feedback_seconds = value;
    }
}

typedef struct watched {
    pid_t pid;
    int pidfd;
    int in; /* the pipe */
    epg_trial_mark *mark;
    epg_buffer text; /* what came and is no whole line yet */
    bool done;       /* it came to its end */
    epg_code code;   /* what it said of itself */
    epg_error said;
} watched;

static void take_line(watched *self, char *line, epg_benchmark_report *report)
{
    char *name = strchr(line, '\t');
    char *text = name == NULL ? NULL : strchr(name + 1, '\t');
    if (text == NULL) {
        return;
    }
    *name++ = '\0';
    *text++ = '\0';
    double number = 0.0;
    uint64_t code = 0;
    switch (line[0]) {
    case 'F':
        add_finding(report, name, text);
        break;
    case 'N':
        add_line(&report->notes, &report->note_count, "note", text);
        break;
    case 'I':
        free(report->id);
        report->id = epg_strdup(text);
        break;
    case 'V':
        if (epg_parse_double(text, &number)) {
            take_number(report, name, number);
        }
        break;
    case 'E':
        (void)epg_parse_u64(name, strlen(name), EPG_ERR_INTERNAL, &code);
        self->code = epg_fail(&self->said, (epg_code)code, "%s", text);
        self->done = true;
        break;
    case 'D':
        self->done = true;
        break;
    default:
        break;
    }
}

static void take_text(watched *self, epg_benchmark_report *report)
{
    char chunk[65536];
    ssize_t got = 0;
    while (self->text.size < LINES_BYTES_MAX && (got = read(self->in, chunk, sizeof chunk)) > 0) {
        (void)epg_buffer_append(&self->text, chunk, (size_t)got);
    }
    char *newline = NULL;
    while (self->text.size > 0 && (newline = memchr(self->text.data, '\n', self->text.size)) != NULL) {
        *newline = '\0';
        take_line(self, (char *)self->text.data, report);
        epg_buffer_drop_front(&self->text, (size_t)(newline - (char *)self->text.data) + 1);
    }
}

/* --- Watching --- */

/* Waits for the child's end; a call over its limit ends it. *over: the name of that call. */
static epg_code watch(watched *self, int64_t limit_ns, epg_benchmark_report *report, const char **over, epg_error *err)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = self->pidfd, .events = POLLIN}, {.fd = self->in, .events = POLLIN}};
        int ready = poll(fds, EPG_COUNT(fds), LOOK_MS);
        if (ready < 0 && errno == EINTR) {
            return epg_fail(err, EPG_ERR_INTERRUPTED, "interrupted");
        }
        take_text(self, report);
        if (fds[0].revents != 0) {
            return EPG_OK;
        }
        if ((fds[1].revents & POLLHUP) != 0 && fds[0].revents == 0) {
            (void)poll(fds, 1, LOOK_MS); /* it closed its pipe: nothing more to read, only its end to wait for */
        }
        const char *call = self->mark->call;
        if (call != NULL && epg_monotonic_ns() - self->mark->began > limit_ns) {
            *over = call;
            return EPG_OK;
        }
    }
}

static void tell_end(watched *self, int status, int64_t limit_ns, const char *over, epg_benchmark_report *report)
{
    const char *call = self->mark->call != NULL ? self->mark->call : "between two calls";
    EPG_AUTO_FREE char *limit = epg_duration_text(limit_ns);
    EPG_AUTO_FREE char *text = NULL;
    const char *aspect = "structure";
    if (over != NULL) {
        aspect = "limits";
        text = epg_format("%s did not return within %s", over, limit);
    } else if (self->done) {
        return;
    } else if (WIFSIGNALED(status)) {
        text = epg_format("the process was killed by signal %d (%s) in %s", WTERMSIG(status),
                          strsignal(WTERMSIG(status)), call);
    } else {
        text = epg_format("the process ended itself with status %d in %s", WEXITSTATUS(status), call);
    }
    add_finding(report, aspect, text);
}

/* What still runs below us was left behind, unless the child was cut short. */
static void end_leftovers(bool cut_short, epg_benchmark_report *report)
{
    epg_ended ended = {.killed = 0};
    for (int i = 0; i < 20 && epg_descendants_reap(NULL, 0) > 0; i++) {
        (void)poll(NULL, 0, LOOK_MS); /* what ends by itself when its peer is gone may do so */
    }
    size_t left = epg_descendants_reap(NULL, 0);
    if (left > 0) {
        epg_descendants_end(NULL, 0, 0, epg_deadline_after_seconds(10.0), &ended);
        if (!cut_short) {
            EPG_AUTO_FREE char *text = epg_format("%zu process%s left running", left, left == 1 ? " was" : "es were");
            add_finding(report, "cleanup", text);
        }
    }
}

static epg_code start(const epg_benchmark_check_request *request, watched *out, epg_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return epg_fail_errno(err, errno, "can't make a pipe");
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        be_child(request, out->mark, ends[1]);
    }
    int fork_errno = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return epg_fail_errno(err, fork_errno, "can't start a process for the check");
    }
    out->pid = pid;
    out->in = ends[0];
    out->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return EPG_OK;
}

static epg_code run_watched(const epg_benchmark_check_request *request, watched *self, epg_benchmark_report *report,
                            epg_error *err)
{
    EPG_TRY(start(request, self, err));
    const char *over = NULL;
    epg_code code = self->pidfd < 0 ? epg_fail_errno(err, errno, "can't watch the check's process")
                                    : watch(self, request->call_limit_ns, report, &over, err);
    bool cut_short = code != EPG_OK || over != NULL;
    if (cut_short) {
        (void)kill(self->pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(self->pid, &status, 0) < 0 && errno == EINTR) {
    }
    take_text(self, report);
    (void)close(self->in);
    (void)close(self->pidfd);
    if (code == EPG_OK) {
        tell_end(self, status, request->call_limit_ns, over, report);
    }
    end_leftovers(cut_short || !self->done, report);
    return code;
}

epg_code epg_benchmark_check(const epg_benchmark_check_request *request, epg_benchmark_report *out, epg_error *err)
{
    if (request->actions != NULL && json_array_size(request->actions) == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "--actions must hold a list of Episodes, each a list of Actions");
    }
    (void)epg_become_subreaper();
    void *shared = mmap(NULL, sizeof(epg_trial_mark), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return epg_fail_errno(err, errno, "can't get memory to share with the check's process");
    }
    watched self = {.mark = shared};
    EPG_CLEANUP(epg_benchmark_report_free) epg_benchmark_report report = {.id = NULL};
    epg_code code = run_watched(request, &self, &report, err);
    epg_buffer_free(&self.text);
    (void)munmap(shared, sizeof(epg_trial_mark));
    EPG_TRY(code);
    if (self.code == EPG_ERR_USAGE || self.code == EPG_ERR_UNAVAILABLE) {
        return epg_fail(err, self.code, "%s", self.said.text);
    }
    if (self.code != EPG_OK) {
        add_finding(&report, "structure", self.said.text);
    }
    *out = report;
    report = (epg_benchmark_report){.id = NULL};
    return EPG_OK;
}
