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

enum { PROBE_SECONDS = 10, IMPORT_SECONDS = 120, PROBE_OUTPUT = 8192 };

/* What a candidate says of itself. A shim answers with the interpreter behind it; a venv's python answers with its own
 * path, which must be kept, for pyvenv.cfg stands beside it. */
static const char probe_code[] = "import sys\n"
                                 "sys.stdout.write('%s\\n%d\\n%d\\n%s\\n' % (sys.implementation.name, "
                                 "sys.version_info[0], sys.version_info[1], sys.executable))\n";

/* Imports what it is told to and tells what goes wrong, in one line. */
static const char import_code[] = "import sys\n"
                                  "for name in sys.argv[1].split(','):\n"
                                  "    try:\n"
                                  "        __import__(name)\n"
                                  "    except BaseException as error:\n"
                                  "        text = type(error).__name__ + ': ' + ' '.join(str(error).split())\n"
                                  "        sys.__stdout__.write('\\0' + name + ': ' + text[:300])\n"
                                  "        break\n";

/* Reads what the candidate prints until it ends its output; bounded in time and size. */
static epg_code probe_read(int fd, int64_t deadline, epg_buffer *out, epg_error *err)
{
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, epg_poll_timeout_ms(deadline)) <= 0) {
            if (epg_monotonic_ns() >= deadline) {
                return epg_fail(err, EPG_ERR_TIMEOUT, "it did not answer in time");
            }
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

static epg_code probe(const char *const *argv, int seconds, epg_buffer *out, epg_error *err)
{
    EPG_AUTO_CLOSE int reader = -1;
    EPG_AUTO_CLOSE int writer = -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return epg_fail_errno(err, errno, "can't make a pipe");
    }
    reader = ends[0];
    writer = ends[1];
    const epg_fd_map fds[] = {{writer, STDOUT_FILENO}};
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
    (void)close(epg_take_fd(&writer));
    int64_t deadline = epg_deadline_after_seconds(seconds);
    epg_code code = probe_read(reader, deadline, out, err);
    epg_exit end = {0};
    if (code == EPG_OK && epg_process_wait(&process, deadline, &end, err) == EPG_OK) {
        return end.code == 0 ? EPG_OK : epg_fail(err, EPG_ERR_INVALID, "it failed to run a small script");
    }
    epg_process_end(&process, 0, &end);
    return code != EPG_OK ? code : epg_fail(err, EPG_ERR_TIMEOUT, "it did not end in %d s", seconds);
}

static const char *next_line(char **rest)
{
    char *line = strsep(rest, "\n");
    return line != NULL ? line : "";
}

epg_code epg_python_find(const char *name, char **path, epg_error *err)
{
    static const char advice[] = "name a CPython 3.9 or newer with --python (a Benchmark's with --benchmark-python)";
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
    if (code != EPG_OK) {
        return epg_fail(err, EPG_ERR_USAGE, "'%.256s' is no usable python (%.256s): %s", candidate, cause.text, advice);
    }
    EPG_AUTO_FREE char *text = epg_buffer_take_text(&answer);
    char *rest = text;
    const char *implementation = next_line(&rest);
    long major = strtol(next_line(&rest), NULL, 10);
    long minor = strtol(next_line(&rest), NULL, 10);
    const char *executable = next_line(&rest);
    if (strcmp(implementation, "cpython") != 0 || *executable != '/') {
        return epg_fail(err, EPG_ERR_USAGE, "'%.256s' is no CPython: %s", candidate, advice);
    }
    if (major != 3 || minor < 9) {
        return epg_fail(err, EPG_ERR_USAGE, "'%.256s' is Python %ld.%ld, too old: %s", candidate, major, minor, advice);
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
