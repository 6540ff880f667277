/* How it works. A connection moves through these states, never back:
 *
 *   READING --whole request--> READY --epg_gateway_next--> HANDED --hold--> HELD
 *      |  (end of stream, bad length, deadline: READY as undecodable)  \       |
 *      |                                                                reply, reply_held
 *      |                                                                  \    |
 *      '-- peer gone: closed                                               WRITING --taken, gone or deadline--> closed
 *
 * READY is the line: commands leave it in the order of `arrival`, one at a time; everything else at once. In READY,
 * HANDED and HELD the connection is only watched for its end: poll reports POLLHUP unasked when the peer has closed
 * both directions, and not when it has merely shut down its sending side. A connection that is READY in the turn in
 * which its end shows has had its chance to be handed out before, and is dropped. */
#include "runs/gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/io.h"
#include "system/socket.h"

enum { DRAIN_MAX = 1 << 18 };
static const int64_t request_default_ns = 30 * EPG_SECOND;
static const int64_t response_default_ns = 10 * EPG_SECOND;
static const int64_t accept_pause_ns = 100 * EPG_MILLISECOND;

typedef enum state { FREE, READING, READY, HANDED, HELD, WRITING } state;

typedef struct connection {
    state state;
    int fd;
    epg_connection_id id;
    int64_t deadline;  /* READING, WRITING; otherwise EPG_NEVER */
    epg_buffer input;  /* READING */
    epg_buffer output; /* WRITING */
    size_t written;
    json_t *object; /* READY */
    epg_method method;
    uint64_t arrival; /* READY */
    uint64_t number;  /* HELD */
} connection;

struct epg_gateway {
    int listener;
    char *directory;
    char *path;
    epg_gateway_limits limits;
    int64_t accept_after; /* a pause when descriptors have run out */
    epg_connection_id last_id;
    uint64_t last_arrival;
    connection connections[EPG_GATEWAY_CONNECTIONS];
};

epg_code epg_gateway_open(const epg_gateway_limits *limits, epg_gateway **out, epg_error *err)
{
    int listener = -1;
    char *directory = NULL;
    char *path = NULL;
    EPG_TRY(epg_socket_listen(&listener, &directory, &path, err));
    epg_gateway *gateway = epg_alloc(sizeof *gateway);
    gateway->listener = listener;
    gateway->directory = directory;
    gateway->path = path;
    gateway->limits = limits != NULL ? *limits : (epg_gateway_limits){0};
    if (gateway->limits.request_ns == 0) {
        gateway->limits.request_ns = request_default_ns;
    }
    if (gateway->limits.response_ns == 0) {
        gateway->limits.response_ns = response_default_ns;
    }
    *out = gateway;
    return EPG_OK;
}

const char *epg_gateway_socket_path(const epg_gateway *gateway)
{
    return gateway->path;
}

/* What was sent beyond the request is taken off first: else the kernel would tell the peer of a reset. */
static void drop(connection *c)
{
    char rest[4096];
    size_t drained = 0;
    ssize_t got = 0;
    while (drained < DRAIN_MAX && (got = recv(c->fd, rest, sizeof rest, MSG_DONTWAIT)) > 0) {
        drained += (size_t)got;
    }
    (void)close(c->fd);
    epg_buffer_free(&c->input);
    epg_buffer_free(&c->output);
    json_decref(c->object);
    *c = (connection){.state = FREE, .fd = -1};
}

/* --- Reading --- */

static void make_ready(epg_gateway *gateway, connection *c, json_t *object)
{
    c->state = READY;
    c->deadline = EPG_NEVER;
    c->object = object;
    c->method = epg_session_method_of(object);
    c->arrival = ++gateway->last_arrival;
    epg_buffer_free(&c->input);
}

/* Reads what is there, never beyond the largest frame. */
static void read_request(epg_gateway *gateway, connection *c)
{
    enum { WHOLE = EPG_SESSION_FRAME_HEAD + EPG_SESSION_FRAME_MAX };
    while (c->input.size < WHOLE) {
        size_t room = WHOLE - c->input.size;
        room = room < 4096 ? room : 4096;
        uint8_t *place = epg_buffer_reserve(&c->input, room);
        ssize_t got = recv(c->fd, place, room, MSG_DONTWAIT);
        if (got < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                drop(c);
            }
            return;
        }
        c->input.size += (size_t)got;
        epg_span body;
        switch (epg_session_frame(epg_buffer_span(&c->input), &body)) {
        case EPG_FRAME_WHOLE:
            make_ready(gateway, c, epg_session_decode(body));
            return;
        case EPG_FRAME_INVALID:
            make_ready(gateway, c, NULL);
            return;
        case EPG_FRAME_INCOMPLETE:
            break;
        }
        if (got == 0) {
            make_ready(gateway, c, NULL);
            return;
        }
    }
}

static connection *find_oldest(epg_gateway *gateway, state wanted)
{
    connection *oldest = NULL;
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        connection *c = &gateway->connections[i];
        if (c->state == wanted && (oldest == NULL || c->id < oldest->id)) {
            oldest = c;
        }
    }
    return oldest;
}

static void accept_one(epg_gateway *gateway, connection *c, int fd)
{
    *c = (connection){
        .state = READING,
        .fd = fd,
        .id = ++gateway->last_id,
        .deadline = epg_deadline_after_ns(gateway->limits.request_ns),
    };
    read_request(gateway, c); /* most clients have sent it all by now */
}

/* Takes new connections, at most as many in one turn as there are places. */
static epg_code accept_new(epg_gateway *gateway, epg_error *err)
{
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        connection *place = find_oldest(gateway, FREE);
        if (place == NULL && find_oldest(gateway, READING) == NULL) {
            return EPG_OK;
        }
        int fd = accept4(gateway->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                gateway->accept_after = epg_deadline_after_ns(accept_pause_ns);
                return EPG_OK;
            }
            bool passing = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
            return passing ? EPG_OK : epg_fail_errno(err, errno, "cannot accept session connections");
        }
        if (place == NULL) {
            place = find_oldest(gateway, READING);
            drop(place);
        }
        accept_one(gateway, place, fd);
    }
    return EPG_OK;
}

/* --- Writing --- */

static void write_response(connection *c)
{
    while (c->written < c->output.size) {
        ssize_t put =
            send(c->fd, c->output.data + c->written, c->output.size - c->written, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0 && errno == EAGAIN) {
            return;
        }
        if (put < 0) {
            break;
        }
        c->written += (size_t)put;
    }
    drop(c);
}

static void start_response(epg_gateway *gateway, connection *c, epg_span frame)
{
    c->state = WRITING;
    c->deadline = epg_deadline_after_ns(gateway->limits.response_ns);
    (void)epg_buffer_append_span(&c->output, frame);
    (void)epg_io_boundary("answer"); /* for the log: what stood in the ledger by now must be durable */
    write_response(c);
}

static connection *find(epg_gateway *gateway, epg_connection_id id)
{
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        if (gateway->connections[i].state != FREE && gateway->connections[i].id == id) {
            return &gateway->connections[i];
        }
    }
    return NULL;
}

bool epg_gateway_reply(epg_gateway *gateway, epg_connection_id id, epg_span frame)
{
    connection *c = find(gateway, id);
    if (c == NULL || c->state == WRITING) {
        return false;
    }
    start_response(gateway, c, frame);
    return true;
}

void epg_gateway_hold(epg_gateway *gateway, epg_connection_id id, uint64_t number)
{
    connection *c = find(gateway, id);
    if (c != NULL && c->state == HANDED) {
        c->state = HELD;
        c->number = number;
    }
}

size_t epg_gateway_reply_held(epg_gateway *gateway, uint64_t number, epg_span frame)
{
    size_t count = 0;
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        connection *c = &gateway->connections[i];
        if (c->state == HELD && c->number == number) {
            start_response(gateway, c, frame);
            count++;
        }
    }
    return count;
}

/* --- The poll loop's side --- */

static short events_of(const connection *c)
{
    return c->state == READING ? POLLIN : c->state == WRITING ? POLLOUT : 0;
}

static bool accepts_now(const epg_gateway *gateway)
{
    if (gateway->accept_after > epg_monotonic_ns()) {
        return false;
    }
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        if (gateway->connections[i].state == FREE || gateway->connections[i].state == READING) {
            return true;
        }
    }
    return false;
}

size_t epg_gateway_poll_fds(const epg_gateway *gateway, struct pollfd *fds, size_t room)
{
    size_t count = 0;
    if (room > 0 && accepts_now(gateway)) {
        fds[count++] = (struct pollfd){.fd = gateway->listener, .events = POLLIN};
    }
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS && count < room; i++) {
        const connection *c = &gateway->connections[i];
        if (c->state != FREE) {
            fds[count++] = (struct pollfd){.fd = c->fd, .events = events_of(c)};
        }
    }
    return count;
}

int64_t epg_gateway_deadline(const epg_gateway *gateway)
{
    int64_t deadline = gateway->accept_after > 0 ? gateway->accept_after : EPG_NEVER;
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        const connection *c = &gateway->connections[i];
        if (c->state != FREE && c->deadline < deadline) {
            deadline = c->deadline;
        }
    }
    return deadline;
}

static void serve(epg_gateway *gateway, connection *c, short happened)
{
    bool gone = (happened & (POLLHUP | POLLERR | POLLNVAL)) != 0;
    switch (c->state) {
    case READING:
        if (happened != 0) {
            read_request(gateway, c); /* also when it is gone: the request may be whole */
        }
        break;
    case WRITING:
        if (gone) {
            drop(c);
        } else if (happened != 0) {
            write_response(c);
        }
        break;
    case READY:
    case HANDED:
    case HELD:
        if (gone) {
            drop(c);
        }
        break;
    case FREE:
        break;
    }
}

static void expire(epg_gateway *gateway, connection *c, int64_t now)
{
    if (c->state == READING && c->deadline <= now) {
        make_ready(gateway, c, NULL);
    } else if (c->state == WRITING && c->deadline <= now) {
        drop(c);
    }
}

epg_code epg_gateway_turn(epg_gateway *gateway, epg_error *err)
{
    struct pollfd fds[EPG_GATEWAY_CONNECTIONS];
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        const connection *c = &gateway->connections[i];
        fds[i] = (struct pollfd){.fd = c->state == FREE ? -1 : c->fd, .events = events_of(c)};
    }
    if (poll(fds, EPG_GATEWAY_CONNECTIONS, 0) < 0 && errno != EINTR) {
        return epg_fail_errno(err, errno, "cannot poll session connections");
    }
    int64_t now = epg_monotonic_ns();
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        serve(gateway, &gateway->connections[i], fds[i].revents);
        expire(gateway, &gateway->connections[i], now);
    }
    if (gateway->accept_after > now) {
        return EPG_OK;
    }
    gateway->accept_after = 0;
    return accept_new(gateway, err);
}

/* --- The coordinator's side --- */

static bool is_command(const connection *c)
{
    return c->method == EPG_METHOD_SUBMIT || c->method == EPG_METHOD_FINISH;
}

bool epg_gateway_next(epg_gateway *gateway, bool free_for_command, epg_gateway_request *out)
{
    connection *next = NULL;
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        connection *c = &gateway->connections[i];
        if (c->state == READY && (free_for_command || !is_command(c)) && (next == NULL || c->arrival < next->arrival)) {
            next = c;
        }
    }
    if (next == NULL) {
        return false;
    }
    next->state = HANDED;
    *out = (epg_gateway_request){next->id, EPG_TAKE(next->object), next->method};
    return true;
}

size_t epg_gateway_waiting(const epg_gateway *gateway)
{
    size_t count = 0;
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        const connection *c = &gateway->connections[i];
        count += c->state == READY && is_command(c);
    }
    return count;
}

void epg_gateway_close(epg_gateway *gateway, int64_t deadline)
{
    if (gateway == NULL) {
        return;
    }
    connection *c = NULL;
    while ((c = find_oldest(gateway, WRITING)) != NULL) {
        struct pollfd fd = {.fd = c->fd, .events = POLLOUT};
        if (poll(&fd, 1, epg_poll_timeout_ms(deadline)) <= 0 || (fd.revents & POLLOUT) == 0) {
            drop(c);
            continue;
        }
        write_response(c);
    }
    for (size_t i = 0; i < EPG_GATEWAY_CONNECTIONS; i++) {
        if (gateway->connections[i].state != FREE) {
            drop(&gateway->connections[i]);
        }
    }
    (void)close(gateway->listener);
    epg_socket_remove(gateway->directory, gateway->path);
    free(gateway);
}
