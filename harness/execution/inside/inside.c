/* The last steps before a command, in the sandbox. See inside.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "execution/inside/first.h"
#include "execution/inside/inside.h"
#include "execution/inside/relay.h"

/* `soft` below `hard`: the signal of the soft one tells why. */
static int lay_limit(const char *name, const char *value)
{
    static const struct {
        const char *name;
        __rlimit_resource_t resource;
        rlim_t slack;
    } known[] = {
        {"processes", RLIMIT_NPROC, 0}, {"descriptors", RLIMIT_NOFILE, 0}, {"file", RLIMIT_FSIZE, 0},
        {"cpu", RLIMIT_CPU, 1},         {"data", RLIMIT_DATA, 0},          {"space", RLIMIT_AS, 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0) {
            struct rlimit limit;
            rlim_t wanted = strtoull(value, NULL, 10);
            if (getrlimit(known[i].resource, &limit) != 0) {
                return -1;
            }
            if (limit.rlim_max > wanted + known[i].slack) {
                limit.rlim_max = wanted + known[i].slack;
            }
            limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
            return setrlimit(known[i].resource, &limit);
        }
    }
    errno = EINVAL;
    return -1;
}

/* Says on both ways why the command does not run: the Host reads one or the other. */
static int failed(const char *what)
{
    char text[512];
    int size = snprintf(text, sizeof text, "%d %s", errno, what);
    (void)!send(EPG_FD_READY, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1, MSG_NOSIGNAL);
    return epg_contain_failed(what);
}

static int settle_stderr(const char *number)
{
    int from = atoi(number);
    if (dup2(from, STDERR_FILENO) < 0) {
        return -1;
    }
    return close(from);
}

int epg_contain_inside(int argc, char **argv)
{
    const char *stderr_number = NULL;
    const char *preload = NULL;
    int first = 0;
    int i = 1;
    if (fcntl(EPG_FD_READY, F_SETFD, FD_CLOEXEC) != 0 ||
        send(EPG_FD_READY, EPG_READY, strlen(EPG_READY), MSG_NOSIGNAL) < 0) {
        return epg_contain_failed("telling that the sandbox was reached");
    }
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
        int code = 0;
        if (strcmp(argv[i], "--limit") == 0 && i + 2 < argc) {
            code = lay_limit(argv[i + 1], argv[i + 2]);
            i++;
        } else if (strcmp(argv[i], "--proxy") == 0) {
            code = epg_relay_listen(argv[i + 1]);
        } else if (strcmp(argv[i], "--stderr") == 0) {
            stderr_number = argv[i + 1];
        } else if (strcmp(argv[i], "--first") == 0) {
            first = 1;
        } else if (strcmp(argv[i], "--preload") == 0) {
            preload = argv[i + 1];
        } else {
            errno = EINVAL;
            code = -1;
        }
        if (code != 0) {
            return failed(argv[i]);
        }
    }
    if (i + 1 >= argc) {
        errno = EINVAL;
        return failed("inside");
    }
    if (first && epg_become_first() != 0) {
        return failed("becoming process 1");
    }
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    if (preload != NULL && setenv("LD_PRELOAD", preload, 1) != 0) {
        return failed("setenv");
    }
    if (stderr_number != NULL && settle_stderr(stderr_number) != 0) {
        return failed("stderr");
    }
    (void)execv(argv[i + 1], argv + i + 1);
    return failed(argv[i + 1]);
}
