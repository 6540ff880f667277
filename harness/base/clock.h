/* Time. Deadlines are absolute, monotonic, in nanoseconds; EPG_NEVER is no deadline. */
#ifndef EPG_BASE_CLOCK_H
#define EPG_BASE_CLOCK_H

#include <stdint.h>

#define EPG_NEVER INT64_MAX
#define EPG_SECOND INT64_C(1000000000)
#define EPG_MILLISECOND INT64_C(1000000)

int64_t epg_monotonic_ns(void);
int64_t epg_unix_ns(void);
int64_t epg_duration_ns(double seconds);            /* at most EPG_NEVER / 2: one and a half of it is one too */
int64_t epg_deadline_after_ns(int64_t duration_ns); /* saturates at EPG_NEVER */
int64_t epg_deadline_after_seconds(double seconds); /* saturates; negative counts as 0 */
int epg_poll_timeout_ms(int64_t deadline);          /* for poll(2): rounded up, 0 when passed, -1 for EPG_NEVER */

#endif
