/* A coordinator as small as can be: gateway, session, ledger and publication as a Run has them, with evaluations that
 * are computed instead of run. A Program whose policy.py says "return N" gets N an Episode; 99 is a trusted step fault;
 * artifacts are trace.txt and the bulk bulk/frames.bin. One thread: turn it whenever something is to happen. */
#ifndef EPG_TESTS_HOST_H
#define EPG_TESTS_HOST_H

#include "runs/gateway.h"
#include "runs/ledger.h"
#include "runs/publication.h"
#include "runs/retention.h"

typedef struct test_host {
    char *directory; /* temporary */
    char *path;      /* the Run directory */
    int run;
    epg_config config;
    epg_session session;
    epg_gateway *gateway;
    epg_ledger *ledger;
    epg_publisher *publisher;
    epg_retention *retention;
    epg_evidence_list evidence;
    epg_program running;   /* of the submission that is charged and not ended */
    bool hold_evaluation;  /* leave the running submission running until it is false again */
    bool fail_session;     /* the next submit is a fault of the Host's own */
    bool fail_publication; /* what is published next can't be */
} test_host;

/* `config`: not resolved yet; taken over. `policy`: the first policy.py. All that goes wrong here aborts. */
void test_host_open(test_host *host, epg_config *config, const char *policy, const epg_gateway_limits *limits);
void test_host_close(test_host *host);
void test_host_turn(test_host *host); /* one turn of the poll loop: everything that can be done now */

/* A client's side: connects; sends; reads all that comes until the end while the host turns. */
int test_connect(const test_host *host);
void test_send(int fd, epg_span bytes);
void test_receive(test_host *host, int fd, epg_buffer *out); /* up to the end of the stream; closes fd */
/* One whole exchange; the reply's object (NULL when it was not one). Caller owns it. */
json_t *test_exchange(test_host *host, epg_span request);
const char *test_error_code(const json_t *reply); /* "" for a reply with ok: true */

#endif
