/* The gateway: the session's listening socket and its connections, in the coordinator's poll loop.
 *
 * Nothing here blocks. A connection sends one request and gets one response. Reading a request and writing a response
 * have an absolute deadline each, so a client that stalls or sends a byte a second is closed in time and meanwhile
 * costs nobody anything. At most EPG_GATEWAY_CONNECTIONS are open at once: when that is reached, the one that has been
 * sending its request for the longest makes room; when all wait for an answer, further ones stay in the kernel's line.
 *
 * Commands of an Agent are synchronous and must not overlap. Where they do, they wait in line: `submit` and `finish`
 * are handed out one by one in the order in which their requests were complete, the next when the coordinator says
 * that it is free. `status` and `wait` only read and are handed out at once. A client that vanishes while its request
 * is in line has asked for nothing: it is dropped, uncharged. Once its submit was handed out, vanishing changes
 * nothing: the submission is charged once, and its result is there for `wait`. (A client that only shuts down its
 * sending side has not vanished.) */
#ifndef EPG_RUNS_GATEWAY_H
#define EPG_RUNS_GATEWAY_H

#include <poll.h>

#include "runs/protocol.h"

enum { EPG_GATEWAY_CONNECTIONS = 64 };

typedef struct epg_gateway epg_gateway;
typedef uint64_t epg_connection_id; /* never used again in the life of a gateway */

typedef struct epg_gateway_limits {
    int64_t request_ns;  /* for a whole request; 0: 30 s */
    int64_t response_ns; /* for a whole response; 0: 10 s */
} epg_gateway_limits;

/* `limits` may be NULL. Makes the socket (system/socket.h); removed by close. */
epg_code epg_gateway_open(const epg_gateway_limits *limits, epg_gateway **out, epg_error *err);
const char *epg_gateway_socket_path(const epg_gateway *gateway);
/* Responses under way are given until `deadline` (blocking) to be taken; then everything is closed and freed. */
void epg_gateway_close(epg_gateway *gateway, int64_t deadline);

/* For the poll loop: descriptors to wait for (how many were written, at most `room`, EPG_GATEWAY_CONNECTIONS + 1 are
 * always enough), the next deadline, and the turn to take when a descriptor is ready or the deadline passed. Fails only
 * when the listening socket itself does. */
size_t epg_gateway_poll_fds(const epg_gateway *gateway, struct pollfd *fds, size_t room);
int64_t epg_gateway_deadline(const epg_gateway *gateway);
epg_code epg_gateway_turn(epg_gateway *gateway, epg_error *err);

typedef struct epg_gateway_request {
    epg_connection_id connection;
    json_t *object; /* NULL: undecodable (answered by epg_session_check as well). The receiver owns it. */
    epg_method method;
} epg_gateway_request;

/* The next request to handle; false when there is none. `free_for_command`: whether a submit or finish can be handled
 * now; without it only others are handed out. Call until it says false after each turn, and when an evaluation ends:
 * who is in line then makes no descriptor ready. */
bool epg_gateway_next(epg_gateway *gateway, bool free_for_command, epg_gateway_request *out);
size_t epg_gateway_waiting(const epg_gateway *gateway); /* submits and finishes in line */

/* Answers a connection and closes it once the answer is taken. A connection that is gone is not an error: false. */
bool epg_gateway_reply(epg_gateway *gateway, epg_connection_id connection, epg_span frame);

/* Lets a connection wait for submission `number`; epg_gateway_reply_held answers all that wait for it (the one that
 * submitted, and every `wait`). */
void epg_gateway_hold(epg_gateway *gateway, epg_connection_id connection, uint64_t number);
size_t epg_gateway_reply_held(epg_gateway *gateway, uint64_t number, epg_span frame);

#endif
