/* Policy processes for tests: a guest, and Programs given as the text of their policy.py. */
#ifndef EPG_TESTS_GUESTS_H
#define EPG_TESTS_GUESTS_H

#include "guest/guest.h"

typedef struct epg_test_guest {
    epg_guest *guest;
    epg_execution execution;
    char *directory; /* private; one subdirectory an Episode, the Program in its `program` */
    unsigned episodes;
} epg_test_guest;

/* The interpreter for tests: $EPG_PYTHON, or python3. Found once. */
const char *epg_test_python(void);
/* The process profile and default limits. Change `execution` before epg_test_guest_start if need be. */
void epg_test_guest_prepare(epg_test_guest *self);
void epg_test_guest_start(epg_test_guest *self, int cancel);
void epg_test_guest_open(epg_test_guest *self); /* both */
void epg_test_guest_close(epg_test_guest *self);

/* What `python -m venv` makes, by hand, in `directory`: its bin/python3, and two modules installed. `quiet` holds the
 * process that imported it (MADE_BY); `threaded` starts a thread when it is imported. */
void epg_test_venv(const char *directory, const char *python);

/* The next Episode's Program directory, with this policy.py. Caller frees. */
char *epg_test_guest_program(epg_test_guest *self, const char *source);
/* A Policy with this policy.py, begun but not started. */
epg_policy *epg_test_policy_begin(epg_test_guest *self, const char *source);
/* make_policy, with empty spaces and this policy seed; `seconds` from now. */
epg_policy_reply epg_test_policy_start(epg_policy *policy, uint64_t seed, double seconds);
epg_policy_reply epg_test_policy_act(epg_policy *policy, epg_span observation, double seconds);
/* As above with an observation of null; the answer must be a string. Caller frees. */
char *epg_test_policy_ask(epg_policy *policy);
void epg_test_policy_finish(epg_policy *policy, epg_policy_end *end); /* `end` may be NULL */

/* The canonical context that epg_test_policy_start sends. */
void epg_test_policy_context(uint64_t seed, epg_buffer *out);

#endif
