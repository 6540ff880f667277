#include "system/patience.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

static const int64_t patience_ns = 10 * EPG_MILLISECOND;

struct epg_patience {
    timer_t timer;
    int fd;
    int flags; /* of the descriptor when it is non-blocking */
};

static void go_off(int signal_number, siginfo_t *info, void *unused)
{
    (void)signal_number;
    (void)unused;
    int saved = errno;
    const epg_patience *patience = info->si_code == SI_TIMER ? info->si_value.sival_ptr : NULL;
    if (patience != NULL) {
        (void)fcntl(patience->fd, F_SETFL, patience->flags);
    }
    errno = saved;
}

epg_patience *epg_patience_open(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    struct sigaction action = {.sa_sigaction = go_off, .sa_flags = SA_SIGINFO | SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    if (flags < 0 || sigaction(SIGRTMIN, &action, NULL) != 0) {
        return NULL;
    }
    epg_patience *patience = epg_alloc(sizeof *patience);
    *patience = (epg_patience){.fd = fd, .flags = flags | O_NONBLOCK};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_ptr = patience};
    if (timer_create(CLOCK_MONOTONIC, &event, &patience->timer) != 0) {
        free(patience);
        return NULL;
    }
    return patience;
}

/* A signal that was on its way when the timer went was handled when timer_delete returned: it is for this thread. */
void epg_patience_close(epg_patience *patience)
{
    if (patience != NULL) {
        (void)timer_delete(patience->timer);
        free(patience);
    }
}

void epg_patience_end(epg_patience *patience)
{
    (void)fcntl(patience->fd, F_SETFL, patience->flags);
}

/* In this order: a timer that went off before the descriptor blocks would leave it so. */
bool epg_patience_begin(epg_patience *patience)
{
    const struct itimerspec once = {.it_value.tv_nsec = patience_ns};
    if (fcntl(patience->fd, F_SETFL, patience->flags & ~O_NONBLOCK) != 0) {
        return false;
    }
    if (timer_settime(patience->timer, 0, &once, NULL) != 0) {
        epg_patience_end(patience);
        return false;
    }
    return true;
}

void epg_patience_hush(bool hush)
{
    sigset_t ours;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGRTMIN);
    (void)pthread_sigmask(hush ? SIG_BLOCK : SIG_UNBLOCK, &ours, NULL);
}
