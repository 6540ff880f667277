#include "execution/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "execution/box.h"
#include "execution/launcher.h"
#include "execution/paths.h"
#include "execution/sandbox.h"
#include "system/socket.h"
#include "system/tree.h"

enum { PROBE_SECONDS = 60 };

/* The interpreter stands where the fork server or a plain guest would, and gives its place to the prober. */
static const char script[] = "import os, sys\n"
                             "def main(way, *words):\n"
                             "    try:\n"
                             "        child = os.fork() if way == 'fork' else 0\n"
                             "    except OSError:\n"
                             "        os._exit(1)\n"
                             "    if child == 0:\n"
                             "        os.execv(words[0], words)\n"
                             "    os.close(3)\n"
                             "    os.waitpid(child, 0)\n"
                             "    os._exit(0)\n"
                             "main(*sys.argv[1:])\n";

/* --- From outside. --- */

typedef struct status {
    uint64_t seccomp, filters, no_new_privs, capabilities, user;
    unsigned depth; /* PID namespaces below ours */
    bool found;
} status;

static unsigned count_numbers(const char *text)
{
    unsigned count = 0;
    for (bool within = false; *text != '\0'; text++) {
        bool digit = *text >= '0' && *text <= '9';
        count += digit && !within;
        within = digit;
    }
    return count;
}

static void read_line(status *out, const char *line)
{
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    (void)sscanf(line, "Seccomp: %" SCNu64, &out->seccomp);
    (void)sscanf(line, "Seccomp_filters: %" SCNu64, &out->filters);
    (void)sscanf(line, "NoNewPrivs: %" SCNu64, &out->no_new_privs);
    (void)sscanf(line, "Uid: %*u %" SCNu64, &out->user);
    for (size_t i = 0; i < EPG_COUNT(sets); i++) {
        if (epg_starts_with(line, sets[i])) {
            out->capabilities |= strtoull(line + strlen(sets[i]), NULL, 16);
        }
    }
    if (epg_starts_with(line, "NSpid:")) {
        out->depth = count_numbers(line) - 1;
    }
}

static void read_status(pid_t pid, status *out)
{
    char line[512];
    EPG_AUTO_FREE char *path = epg_format("/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    *out = (status){.filters = UINT64_MAX, .found = file != NULL}; /* kernels before 5.9 do not count filters */
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        read_line(out, line);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

epg_code epg_containment_look(pid_t pid, unsigned filters, unsigned depth, epg_error *err)
{
    status seen;
    read_status(pid, &seen);
    if (!seen.found) {
        return epg_fail(err, EPG_ERR_INVALID, "a process that should be contained is gone");
    }
    if (seen.seccomp != 2 || seen.filters < filters) {
        return epg_fail(err, EPG_ERR_INVALID, "a process without its seccomp filter");
    }
    if (seen.no_new_privs != 1 || seen.capabilities != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "a process that has capabilities, or could get them");
    }
    if (seen.user == 0) {
        return epg_fail(err, EPG_ERR_INVALID, "a process that is root on the Host");
    }
    if (seen.depth < depth) {
        return epg_fail(err, EPG_ERR_INVALID, "a process without PID namespaces of its own");
    }
    return EPG_OK;
}

/* --- The probe's run. --- */

static epg_probe_check *add(epg_probe *probe, const char *name, bool holds, const char *detail)
{
    if (probe->count == EPG_PROBE_CHECKS) {
        return NULL;
    }
    epg_probe_check *check = &probe->checks[probe->count++];
    *check = (epg_probe_check){.holds = holds};
    (void)snprintf(check->name, sizeof check->name, "%s", name);
    (void)snprintf(check->detail, sizeof check->detail, "%.*s", (int)sizeof check->detail - 1, detail);
    return check;
}

/* "ok NAME", "no NAME DETAIL" */
static void take_check(epg_probe *probe, char *text)
{
    EPG_AUTO_FREE char *safe = epg_printable(text, strlen(text));
    char *rest = safe;
    const char *verdict = strsep(&rest, " ");
    const char *name = strsep(&rest, " ");
    if (name != NULL) {
        (void)add(probe, name, strcmp(verdict, "ok") == 0, rest != NULL ? rest : "");
    }
}

static void look_from_outside(epg_probe *probe, pid_t pid)
{
    epg_error wrong = {.text = ""};
    epg_code code = epg_containment_look(pid, probe->forked ? 2 : 1, probe->forked ? 2 : 1, &wrong);
    (void)add(probe, "seen_from_outside", code == EPG_OK, wrong.text);
}

static epg_code hear(epg_probe *probe, int channel, int printed, epg_error *err)
{
    int64_t deadline = epg_deadline_after_seconds(PROBE_SECONDS);
    for (;;) {
        char text[512];
        pid_t pid = 0;
        struct pollfd ready = {.fd = channel, .events = POLLIN};
        int count = poll(&ready, 1, epg_poll_timeout_ms(deadline));
        ssize_t got = epg_socket_receive(channel, text, sizeof text - 1, &pid); /* EAGAIN: too early */
        if (got > 0) {
            text[got] = '\0';
            if (strcmp(text, "end") == 0) {
                look_from_outside(probe, pid);
                return EPG_OK;
            }
            take_check(probe, text);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            char last[300];
            ssize_t size = pread(printed, last, sizeof last, 0);
            EPG_AUTO_FREE char *safe = epg_printable(last, size > 0 ? strnlen(last, (size_t)size) : 0);
            safe[strcspn(safe, "\\")] = '\0';
            return epg_fail(err, EPG_ERR_UNAVAILABLE, "%s", *safe != '\0' ? safe : "the probe ended without a word");
        } else if (count == 0 && epg_monotonic_ns() >= deadline) {
            return epg_fail(err, EPG_ERR_UNAVAILABLE, "the probe did not answer in time");
        }
    }
}

/* What of the Host's homes must not be seen: all, unless the interpreter lives there and its directory is shown. */
static const char *unseen_homes(const epg_execution *execution, const char *otherwise)
{
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_AUTO_FREE char *run = NULL;
    bool shown = epg_interpreter_paths(execution->python, &paths, &run, NULL) != EPG_OK;
    for (size_t i = 0; i < paths.count; i++) {
        shown = shown || epg_starts_with(paths.texts[i], "/home/");
    }
    return shown ? otherwise : "/home";
}

/* `host_path`: something of the Host's that must not be seen, a directory that is there for certain. */
static epg_code run(const epg_execution *execution, bool forked, const char *host_path, int channel, int theirs,
                    epg_probe *out, epg_error *err)
{
    char bytes[24];
    char files[24];
    (void)snprintf(bytes, sizeof bytes, "%" PRIu64, execution->limits.scratch_bytes);
    (void)snprintf(files, sizeof files, "%" PRIu64, forked ? execution->limits.scratch_inodes : 0);
    EPG_AUTO_CLOSE int printed = memfd_create("probe", MFD_CLOEXEC);
    const char *argv[] = {execution->python,
                          "-s",
                          "-S",
                          "-c",
                          script,
                          forked ? "fork" : "plain",
                          EPG_INSIDE_DIRECTORY "/" EPG_CONTAIN,
                          "probe",
                          "--absent",
                          host_path,
                          "--absent",
                          "/etc/shadow",
                          "--absent",
                          unseen_homes(execution, host_path),
                          execution->limits.scratch_bytes > 0 ? "--scratch" : NULL,
                          bytes,
                          files,
                          NULL};
    const epg_fd_map fds[] = {{theirs, 3}, {printed, STDERR_FILENO}};
    const epg_spawn spawn = {.argv = argv,
                             .working_directory = -1,
                             .fds = fds,
                             .fd_count = EPG_COUNT(fds),
                             .new_session = true,
                             .die_with_parent = true};
    epg_process process;
    pid_t inside = 0;
    epg_ground *ground = NULL;
    epg_code code = epg_sandbox_start(execution, forked ? EPG_GUEST_SERVER : EPG_GUEST_PLAIN, &spawn, &process, &inside,
                                      &ground, err);
    (void)close(theirs);
    if (code == EPG_OK) {
        code = hear(out, channel, printed, err);
        epg_process_end(&process, 0, NULL);
    }
    epg_execution_leave(ground);
    return code;
}

epg_code epg_containment_probe(const epg_execution *execution, bool forked, epg_probe *out, epg_error *err)
{
    EPG_AUTO_FREE char *host_path = NULL;
    EPG_AUTO_CLOSE int directory = -1;
    EPG_AUTO_CLOSE int channel = -1;
    int theirs = -1;
    epg_probe probe = {.forked = forked};
    EPG_TRY(epg_tree_temporary("epg-probe-", &host_path, &directory, err));
    epg_code code = EPG_OK;
    if (epg_socket_pair(&channel, &theirs) != 0) {
        code = epg_fail_errno(err, errno, "can't make a socket for the probe");
    } else {
        code = run(execution, forked, host_path, channel, theirs, &probe, err);
    }
    (void)epg_tree_remove(AT_FDCWD, host_path, 0, NULL);
    if (code == EPG_OK) {
        *out = probe;
    } else if (code == EPG_ERR_EXECUTION && err != NULL) {
        err->code = code = EPG_ERR_UNAVAILABLE;
    } else if (code == EPG_ERR_EXECUTION) {
        code = EPG_ERR_UNAVAILABLE;
    }
    return code;
}

const epg_probe_check *epg_containment_miss(const epg_probe *probe)
{
    for (size_t i = 0; i < probe->count; i++) {
        if (!probe->checks[i].holds) {
            return &probe->checks[i];
        }
    }
    return NULL;
}
