#include "system/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

epg_code epg_signals_open(int *fd, epg_error *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    int opened = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (opened < 0) {
        return epg_fail_errno(err, errno, "can't listen for signals");
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    *fd = opened;
    return EPG_OK;
}

int epg_signals_take(int fd)
{
    struct signalfd_siginfo info;
    ssize_t got = 0;
    do {
        got = read(fd, &info, sizeof info);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
