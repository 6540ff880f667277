/* Which point of the write seam is passed, and what EPG_IO_FAULT asks for there. The counters and the directives are
 * state of the process, because a point is by nature counted over the whole of it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "system/io.h"
#include "system/io_seam.h"

const char *const epg_io_call_names[EPG_IO_CALLS] = {"open",   "write", "fsync",    "fdatasync", "rename", "mkdir",
                                                     "unlink", "chmod", "truncate", "symlink",   "bind",   "boundary"};

typedef enum io_action { ACTION_KILL, ACTION_TERM, ACTION_TORN, ACTION_ERRNO, ACTION_SHORT } io_action;

typedef struct io_directive {
    io_action action;
    int error;
    uint64_t point;
    bool onwards;
    epg_io_call call;
} io_directive;

enum { DIRECTIVES = 8, FAULT_EXIT = 70 };

static struct {
    bool ready;
    bool playing; /* EPG_IO_FAULT was given */
    uint64_t points;
    uint64_t calls[EPG_IO_CALLS];
    size_t count;
    io_directive directives[DIRECTIVES];
    int log;
} seam = {.log = -1};

static const struct {
    const char *name;
    int value;
} errno_names[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},     {"EDQUOT", EDQUOT}, {"EROFS", EROFS},
                   {"EACCES", EACCES}, {"EPERM", EPERM}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE},
                   {"ENOMEM", ENOMEM}, {"EFBIG", EFBIG}, {"EINTR", EINTR}};

_Noreturn void epg_io_refuse(const char *directive)
{
    (void)fprintf(stderr, "EPG_IO_FAULT: can't read '%s'\n", directive);
    _exit(FAULT_EXIT);
}

static bool read_action(io_directive *directive, const char *text, size_t size)
{
    static const struct {
        const char *name;
        io_action action;
    } actions[] = {{"kill", ACTION_KILL}, {"term", ACTION_TERM}, {"torn", ACTION_TORN}, {"short", ACTION_SHORT}};
    for (size_t i = 0; i < EPG_COUNT(actions); i++) {
        if (strlen(actions[i].name) == size && strncmp(actions[i].name, text, size) == 0) {
            directive->action = actions[i].action;
            return true;
        }
    }
    for (size_t i = 0; i < EPG_COUNT(errno_names); i++) {
        const char *name = errno_names[i].name;
        if (size == strlen("errno=") + strlen(name) && strncmp(text, "errno=", strlen("errno=")) == 0 &&
            strncmp(text + strlen("errno="), name, strlen(name)) == 0) {
            directive->action = ACTION_ERRNO;
            directive->error = errno_names[i].value;
            return true;
        }
    }
    return false;
}

static bool read_directive(io_directive *directive, char *text)
{
    char *call = strchr(text, ':');
    directive->call = EPG_IO_CALLS;
    if (call != NULL) {
        *call++ = '\0';
        for (int i = 0; i < EPG_IO_CALLS; i++) {
            if (strcmp(call, epg_io_call_names[i]) == 0) {
                directive->call = (epg_io_call)i;
            }
        }
        if (directive->call == EPG_IO_CALLS) {
            return false;
        }
    }
    char *at = strchr(text, '@');
    if (at == NULL || !read_action(directive, text, (size_t)(at - text))) {
        return false;
    }
    size_t digits = strlen(at + 1);
    directive->onwards = digits > 1 && at[digits] == '+';
    return epg_parse_u64(at + 1, digits - directive->onwards, UINT64_MAX, &directive->point);
}

static void read_faults(const char *text)
{
    EPG_AUTO_FREE char *copy = epg_strdup(text);
    char *next = copy;
    while (next != NULL && *next != '\0') {
        char *item = next;
        if (epg_starts_with(item, "log=")) {
            seam.log = open(item + strlen("log="), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
            if (seam.log < 0) {
                epg_io_refuse(item);
            }
            return;
        }
        next = strchr(item, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (seam.count == DIRECTIVES || !read_directive(&seam.directives[seam.count], item)) {
            epg_io_refuse(item);
        }
        seam.count++;
    }
}

static void start(void)
{
    seam.ready = true;
    const char *text = getenv("EPG_IO_FAULT");
    if (text != NULL && *text != '\0') {
        seam.playing = true;
        read_faults(text);
    }
}

_Noreturn void epg_io_die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;) {
        (void)pause();
    }
}

/* The directive that concerns the point just counted, or NULL. */
static const io_directive *directive_now(epg_io_call call)
{
    for (size_t i = 0; i < seam.count; i++) {
        const io_directive *directive = &seam.directives[i];
        if (directive->call != EPG_IO_CALLS && directive->call != call) {
            continue;
        }
        uint64_t now = directive->call == EPG_IO_CALLS ? seam.points : seam.calls[call];
        if (now == directive->point || (directive->onwards && now > directive->point)) {
            return directive;
        }
    }
    return NULL;
}

int epg_io_pass(epg_io_call call, epg_io_part *part)
{
    if (!seam.ready) {
        start();
    }
    seam.points++;
    seam.calls[call]++;
    const io_directive *directive = seam.playing ? directive_now(call) : NULL;
    if (directive == NULL) {
        return 0;
    }
    switch (directive->action) {
    case ACTION_KILL:
        epg_io_die();
    case ACTION_TERM:
        (void)kill(getpid(), SIGTERM);
        return 0;
    case ACTION_TORN:
        if (part == NULL) {
            epg_io_die();
        }
        *part = EPG_IO_TORN;
        return 0;
    case ACTION_SHORT:
        if (part != NULL) {
            *part = EPG_IO_SHORT;
        }
        return 0;
    case ACTION_ERRNO:
        break;
    }
    /* An interrupted call is tried again by every wrapper: that its first try failed shows nowhere else. */
    if (directive->error == EINTR) {
        return 0;
    }
    errno = directive->error;
    return -1;
}

int epg_io_log_fd(void)
{
    return seam.log;
}

uint64_t epg_io_points(void)
{
    return seam.points;
}
