#include "evaluation/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "evaluation/wire.h"

enum { LOOKS_PER_LIMIT = 8, FRAME_ROOM = 512 };

/* The handler reads `call` and `began`; the frame's text is made in it by hand since only async-signal-safe calls are
 * allowed there. `began` is set before `call` and read after it. */
struct epg_watchdog {
    timer_t timer;
    int out;
    int64_t limit_ns;
    epg_running *running;
    const char *_Atomic call;
    _Atomic int64_t began;
};

static size_t put(uint8_t *to, const char *text)
{
    size_t size = strlen(text);
    memcpy(to, text, size);
    return size;
}

static size_t put_counted(uint8_t *to, char kind, const char *text)
{
    to[0] = (uint8_t)kind;
    epg_write_be64(to + 1, strlen(text));
    return 9 + put(to + 9, text);
}

/* The canonical bytes that epg_wire_put_fault would make, with bounded texts and no allocation. */
static size_t fault_frame(uint8_t frame[FRAME_ROOM], const char *name, const char *call)
{
    char text[FRAME_ROOM - 100];
    size_t used = put((uint8_t *)text, name[0] != '\0' ? name : "the Benchmark");
    used += put((uint8_t *)text + used, ": ");
    size_t call_size = strnlen(call, 64);
    memcpy(text + used, call, call_size);
    used += call_size;
    used += put((uint8_t *)text + used, " did not return within its time limit");
    text[used] = '\0';
    uint8_t *body = frame + EPG_FRAME_HEAD;
    size_t size = 0;
    body[size++] = 'M';
    epg_write_be64(body + size, 2);
    size += 8;
    epg_write_be64(body + size, 4);
    size += 8 + put(body + size + 8, "code");
    size += put_counted(body + size, 'S', "benchmark");
    epg_write_be64(body + size, 4);
    size += 8 + put(body + size + 8, "text");
    size += put_counted(body + size, 'Y', text);
    epg_write_be32(frame, (uint32_t)(EPG_FRAME_HEAD - 4 + size));
    frame[4] = EPG_WIRE_FAULT;
    epg_write_be32(frame + 5, 0); /* a fault may carry any sequence number */
    return EPG_FRAME_HEAD + size;
}

static void look(int signal_number, siginfo_t *info, void *unused)
{
    (void)signal_number;
    (void)unused;
    int saved = errno;
    epg_watchdog *watchdog = info->si_code == SI_TIMER ? info->si_value.sival_ptr : NULL;
    const char *call = watchdog != NULL ? atomic_load(&watchdog->call) : NULL;
    if (call != NULL && epg_monotonic_ns() - atomic_load(&watchdog->began) > watchdog->limit_ns) {
        uint8_t frame[FRAME_ROOM];
        size_t size = fault_frame(frame, epg_running_benchmark(watchdog->running), call);
        ssize_t ignored = write(watchdog->out, frame, size);
        (void)ignored;
        _exit(EXIT_FAILURE);
    }
    errno = saved;
}

epg_code epg_watchdog_open(int out, int64_t limit_ns, epg_running *running, epg_watchdog **result, epg_error *err)
{
    epg_watchdog *watchdog = epg_alloc(sizeof *watchdog);
    watchdog->out = out;
    watchdog->limit_ns = limit_ns;
    watchdog->running = running;
    if (limit_ns <= 0) {
        *result = watchdog;
        return EPG_OK;
    }
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value.sival_ptr = watchdog};
    int64_t period = limit_ns / LOOKS_PER_LIMIT + 1;
    struct itimerspec every = {.it_interval = {.tv_sec = period / EPG_SECOND, .tv_nsec = period % EPG_SECOND}};
    every.it_value = every.it_interval;
    if (sigaction(SIGALRM, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &watchdog->timer) != 0) {
        epg_code code = epg_fail_errno(err, errno, "can't make the watchdog's timer");
        free(watchdog);
        return code;
    }
    (void)timer_settime(watchdog->timer, 0, &every, NULL);
    *result = watchdog;
    return EPG_OK;
}

void epg_watchdog_close(epg_watchdog *watchdog)
{
    if (watchdog == NULL) {
        return;
    }
    if (watchdog->limit_ns > 0) {
        (void)timer_delete(watchdog->timer);
        (void)signal(SIGALRM, SIG_IGN);
    }
    free(watchdog);
}

int64_t epg_watchdog_begin(epg_watchdog *watchdog, const char *call)
{
    int64_t now = epg_monotonic_ns();
    if (watchdog != NULL) {
        atomic_store_explicit(&watchdog->began, now, memory_order_relaxed);
        atomic_store_explicit(&watchdog->call, call, memory_order_release);
        epg_running_enter(watchdog->running, call);
    }
    return now;
}

int64_t epg_watchdog_end(epg_watchdog *watchdog, int64_t began)
{
    if (watchdog != NULL) {
        atomic_store_explicit(&watchdog->call, NULL, memory_order_relaxed);
        epg_running_enter(watchdog->running, NULL);
    }
    return epg_monotonic_ns() - began;
}
