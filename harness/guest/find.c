/* Finding the interpreter and the guest package. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "guest/guest.h"
#include "system/installed.h"

enum { PROBE_SECONDS = 10, IMPORT_SECONDS = 120, PROBE_OUTPUT = 8192, COMPLAINT_KEPT = 2048 };

/* What a candidate says of itself. A shim answers with the interpreter behind it; a venv's python answers with its own
 * path, which must be kept, for pyvenv.cfg stands beside it. */
static const char probe_code[] = "import sys\n"
                                 "sys.stdout.write('%s\\n%d\\n%d\\n%s\\n' % (sys.implementation.name, "
                                 "sys.version_info[0], sys.version_info[1], sys.executable))\n";

/* What every Python that ever was can answer, where the code above is too new for it. */
static const char version_code[] = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])";

/* Imports what it is told to and tells what goes wrong, in one line. */
static const char import_code[] = "import sys\n"
                                  "for name in sys.argv[1].split(','):\n"
                                  "    try:\n"
                                  "        __import__(name)\n"
                                  "    except BaseException as error:\n"
                                  "        text = type(error).__name__ + ': ' + ' '.join(str(error).split())\n"
                                  "        sys.__stdout__.write('\\0' + name + ': ' + text[:300])\n"
                                  "        break\n";

/* The end of what a candidate says on stderr. */
typedef struct complaint {
    char text[2 * COMPLAINT_KEPT];
    size_t size;
} complaint;

/* Takes one read's worth, if there is one. False: the end, or nothing there. */
static bool complaint_take(complaint *self, int fd)
{
    if (self->size > COMPLAINT_KEPT) {
        memmove(self->text, self->text + self->size - COMPLAINT_KEPT, COMPLAINT_KEPT);
        self->size = COMPLAINT_KEPT;
    }
    ssize_t got = read(fd, self->text + self->size, sizeof self->text - self->size);
    self->size += got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* Its last line that says something, printable; empty when there is none. Caller frees. */
static char *complaint_last_line(const complaint *self)
{
    enum { SHOWN = 160 };
    size_t end = self->size;
    while (end > 0 && strchr(" \r\n\t", self->text[end - 1]) != NULL) {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && self->text[begin - 1] != '\n') {
        begin--;
    }
    return epg_printable(self->text + begin, end - begin < SHOWN ? end - begin : SHOWN);
}

/* Reads what the candidate prints until it ends its output; bounded in time and size. */
static epg_code probe_read(int fd, int stderr_fd, int64_t deadline, epg_buffer *out, complaint *said, epg_error *err)
{
    struct pollfd ready[2] = {{.fd = fd, .events = POLLIN}, {.fd = stderr_fd, .events = POLLIN}};
    for (;;) {
        int count = poll(ready, 2, epg_poll_timeout_ms(deadline));
        if (epg_monotonic_ns() >= deadline) {
            return epg_fail(err, EPG_ERR_TIMEOUT, "it did not answer in time");
        }
        if (count > 0 && ready[1].revents != 0 && !complaint_take(said, stderr_fd)) {
            ready[1].fd = -1;
        }
        if (count <= 0 || ready[0].revents == 0) {
            continue;
        }
        char chunk[512];
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got > 0) {
            if (!epg_buffer_append(out, chunk, (size_t)got)) {
                return epg_fail(err, EPG_ERR_LIMIT, "it printed too much");
            }
        } else if (got == 0) {
            return EPG_OK;
        } else if (errno != EINTR) {
            return epg_fail_errno(err, errno, "reading its answer");
        }
    }
}

typedef struct ends {
    int reader, writer;
} ends;

static epg_code open_ends(ends *pipe_ends, epg_error *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return epg_fail_errno(err, errno, "can't make a pipe");
    }
    *pipe_ends = (ends){.reader = fds[0], .writer = fds[1]};
    return EPG_OK;
}

static void ends_close(ends *pipe_ends)
{
    epg_close_cleanup(&pipe_ends->reader);
    epg_close_cleanup(&pipe_ends->writer);
}

static epg_code failed_script(complaint *said, int stderr_fd, epg_error *err)
{
    (void)fcntl(stderr_fd, F_SETFL, O_NONBLOCK); /* a process that it left may hold the other end */
    for (unsigned reads = 0; reads < 64 && complaint_take(said, stderr_fd); reads++) {
    }
    EPG_AUTO_FREE char *line = complaint_last_line(said);
    return epg_fail(err, EPG_ERR_INVALID, "it failed to run a small script%s%s", *line != '\0' ? ": " : "", line);
}

/* INVALID: it ran and failed. */
static epg_code probe(const char *const *argv, int seconds, epg_buffer *out, epg_error *err)
{
    EPG_CLEANUP(ends_close) ends answer = {-1, -1};
    EPG_CLEANUP(ends_close) ends errors = {-1, -1};
    complaint said = {.size = 0};
    EPG_TRY(open_ends(&answer, err));
    EPG_TRY(open_ends(&errors, err));
    const epg_fd_map fds[] = {{answer.writer, STDOUT_FILENO}, {errors.writer, STDERR_FILENO}};
    epg_spawn spawn = {
        .argv = argv,
        .environment = (const char *const *)environ, /* shims live by it */
        .search_path = getenv("PATH"),
        .working_directory = -1,
        .fds = fds,
        .fd_count = EPG_COUNT(fds),
        .new_session = true,
        .die_with_parent = true,
    };
    epg_process process;
    EPG_TRY(epg_process_spawn(&spawn, &process, err));
    (void)close(epg_take_fd(&answer.writer));
    (void)close(epg_take_fd(&errors.writer));
    int64_t deadline = epg_deadline_after_seconds(seconds);
    epg_code code = probe_read(answer.reader, errors.reader, deadline, out, &said, err);
    epg_exit end = {0};
    if (code == EPG_OK && epg_process_wait(&process, deadline, &end, err) == EPG_OK) {
        return end.code == 0 ? EPG_OK : failed_script(&said, errors.reader, err);
    }
    epg_process_end(&process, 0, &end);
    return code != EPG_OK ? code : epg_fail(err, EPG_ERR_TIMEOUT, "it did not end in %d s", seconds);
}

/* Whether a candidate that failed is a Python too old for -I, and which. */
static bool is_ancient(const char *candidate, long *major, long *minor)
{
    EPG_AUTO_BUFFER answer = {.limit = 16};
    const char *const argv[] = {candidate, "-E", "-S", "-c", version_code, NULL};
    if (probe(argv, PROBE_SECONDS, &answer, NULL) != EPG_OK) {
        return false;
    }
    const char *text = epg_buffer_cstr(&answer);
    char *dot = NULL;
    char *end = NULL;
    *major = strtol(text, &dot, 10);
    *minor = *dot == '.' ? strtol(dot + 1, &end, 10) : 0;
    return end != NULL && end > dot + 1 && *end == '\0' && (*major == 2 || (*major == 3 && *minor < 9));
}

static const char *next_line(char **rest)
{
    char *line = strsep(rest, "\n");
    return line != NULL ? line : "";
}

static const char advice[] = "name a CPython 3.9 or newer with --python (a Benchmark's with --benchmark-python)";

static epg_code too_old(const char *candidate, long major, long minor, epg_error *err)
{
    return epg_fail(err, EPG_ERR_USAGE, "'%.256s' is Python %ld.%ld, too old: %s", candidate, major, minor, advice);
}

epg_code epg_python_find(const char *name, char **path, epg_error *err)
{
    const char *candidate = name != NULL ? name : "python3";
    EPG_AUTO_BUFFER answer = {.limit = PROBE_OUTPUT};
    epg_error cause = {0};
    if (*candidate == '\0') {
        return epg_fail(err, EPG_ERR_USAGE, "empty name of a python: %s", advice);
    }
    const char *const argv[] = {candidate, "-I", "-S", "-c", probe_code, NULL};
    epg_code code = probe(argv, PROBE_SECONDS, &answer, &cause);
    if (code == EPG_ERR_NOT_FOUND) {
        return epg_fail(err, EPG_ERR_USAGE, "no python found as '%.256s': %s", candidate, advice);
    }
    long major = 0;
    long minor = 0;
    if (code == EPG_ERR_INVALID && is_ancient(candidate, &major, &minor)) {
        return too_old(candidate, major, minor, err);
    }
    if (code != EPG_OK) {
        return epg_fail(err, EPG_ERR_USAGE, "'%.256s' is no usable python (%.256s): %s", candidate, cause.text, advice);
    }
    EPG_AUTO_FREE char *text = epg_buffer_take_text(&answer);
    char *rest = text;
    const char *implementation = next_line(&rest);
    major = strtol(next_line(&rest), NULL, 10);
    minor = strtol(next_line(&rest), NULL, 10);
    const char *executable = next_line(&rest);
    if (strcmp(implementation, "cpython") != 0 || *executable != '/') {
        return epg_fail(err, EPG_ERR_USAGE, "'%.256s' is no CPython: %s", candidate, advice);
    }
    if (major != 3 || minor < 9) {
        return too_old(candidate, major, minor, err);
    }
    *path = epg_strdup(executable);
    return EPG_OK;
}

static bool names_modules(const char *text)
{
    bool begins = true; /* a part of a name */
    for (const char *at = text; *at != '\0'; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_' || (*at & 0x80) != 0;
        bool digit = *at >= '0' && *at <= '9';
        bool parts = *at == '.' || *at == ',';
        if ((!letter && !digit && !parts) || (begins && !letter)) {
            return false;
        }
        begins = parts;
    }
    return !begins;
}

epg_code epg_python_imports(const char *python, const char *modules, epg_error *err)
{
    EPG_AUTO_BUFFER answer = {.limit = PROBE_OUTPUT};
    epg_error cause = {.text = ""};
    if (!names_modules(modules)) {
        return epg_fail(err, EPG_ERR_USAGE, "\"%.256s\" is no list of modules, as in numpy,math", modules);
    }
    const char *const argv[] = {python, "-I", "-c", import_code, modules, NULL};
    epg_code code = probe(argv, IMPORT_SECONDS, &answer, &cause);
    const char *told = epg_buffer_cstr(&answer);
    const char *fault = memchr(told, '\0', answer.size); /* after what the modules print */
    if (code != EPG_OK || fault != NULL) {
        const char *why = fault != NULL ? fault + 1 : cause.text;
        EPG_AUTO_FREE char *shown = epg_printable(why, strlen(why));
        return epg_fail(err, EPG_ERR_USAGE, "%s can't import %s", python, shown);
    }
    return EPG_OK;
}

static bool holds_guest(const char *root)
{
    EPG_AUTO_FREE char *server = epg_format("%s/server.py", root);
    EPG_AUTO_FREE char *package = epg_format("%s/evopolicygym/_guest.py", root);
    return access(server, R_OK) == 0 && access(package, R_OK) == 0;
}

epg_code epg_guest_root_find(char **path, epg_error *err)
{
    EPG_AUTO_FREE char *found = epg_installed_find("guest", "harness/guest/python");
    if (found != NULL && holds_guest(found)) {
        *path = EPG_TAKE(found);
        return EPG_OK;
    }
    return epg_fail(err, EPG_ERR_UNAVAILABLE, "the guest package is not at %s/guest: install evopolicygym again",
                    EPG_DATA_DIRECTORY);
}
