#include "base/clock.h"

#include <limits.h>
#include <time.h>

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * EPG_SECOND + now.tv_nsec;
}

int64_t epg_monotonic_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

int64_t epg_unix_ns(void)
{
    return now_ns(CLOCK_REALTIME);
}

int64_t epg_deadline_after_ns(int64_t duration_ns)
{
    int64_t now = epg_monotonic_ns();
    if (duration_ns <= 0) {
        return now;
    }
    return duration_ns > EPG_NEVER - now ? EPG_NEVER : now + duration_ns;
}

int64_t epg_duration_ns(double seconds)
{
    const double most = 4e9;
    return seconds < most ? (int64_t)(seconds * 1e9) : EPG_NEVER / 2;
}

int64_t epg_deadline_after_seconds(double seconds)
{
    if (!(seconds > 0)) {
        return epg_monotonic_ns();
    }
    double ns = seconds * 1e9;
    return ns >= 9e18 ? EPG_NEVER : epg_deadline_after_ns((int64_t)ns);
}

int epg_poll_timeout_ms(int64_t deadline)
{
    if (deadline == EPG_NEVER) {
        return -1;
    }
    int64_t left = deadline - epg_monotonic_ns();
    if (left <= 0) {
        return 0;
    }
    int64_t ms = (left + EPG_MILLISECOND - 1) / EPG_MILLISECOND;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}
