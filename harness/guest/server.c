/* Our side of the fork server. Requests and answers are single packets, answered in the order in which they were sent.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "guest/internal.h"

enum { CONTROL = 3, PACKET = 64, PRINTED = 1500 };
enum { REQUEST_FORK = 'F', REQUEST_REAP = 'R', ANSWER_FORKED = 'P', ANSWER_REFUSED = 'T', ANSWER_ENDED = 'E' };

static const epg_server no_server = {.process = {.pid = -1, .pidfd = -1}, .control = -1, .output = -1};

epg_code epg_server_start(const epg_execution *execution, epg_server *out, epg_error *err)
{
    EPG_AUTO_CLOSE int theirs = -1;
    epg_server server = no_server;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return epg_fail_errno(err, errno, "can't make the fork server's socket");
    }
    server.control = ends[0];
    theirs = ends[1];
    server.output = memfd_create("fork-server-output", MFD_CLOEXEC);
    if (server.output < 0) {
        epg_code code = epg_fail_errno(err, errno, "can't make a file for the fork server's output");
        epg_server_end(&server);
        return code;
    }
    const epg_fd_map fds[] = {{server.output, 1}, {server.output, 2}, {theirs, CONTROL}};
    epg_code code =
        epg_execution_launch(execution, EPG_GUEST_SERVER, fds, EPG_COUNT(fds), &server.process, &server.ground, err);
    if (code != EPG_OK) {
        epg_server_end(&server);
        return code;
    }
    *out = server;
    return EPG_OK;
}

void epg_server_end(epg_server *server)
{
    epg_close_cleanup(&server->control);
    epg_process_end(&server->process, 0, NULL);
    epg_close_cleanup(&server->output);
    epg_execution_leave(server->ground);
    *server = no_server;
}

/* Says that the server does not work, and with what words it went. */
static epg_code server_fault(const epg_server *server, const char *what, epg_error *err)
{
    char text[PRINTED];
    off_t size = lseek(server->output, 0, SEEK_END);
    off_t from = size > PRINTED ? size - PRINTED : 0;
    ssize_t got = size > 0 ? pread(server->output, text, sizeof text, from) : 0;
    while (got > 0 && text[got - 1] == '\n') {
        got--;
    }
    const char *last = got > 0 ? memrchr(text, '\n', (size_t)got) : NULL;
    const char *start = last != NULL ? last + 1 : text;
    EPG_AUTO_FREE char *words = got > 0 ? epg_printable(start, (size_t)(text + got - start)) : NULL;
    return epg_fail(err, EPG_ERR_EXECUTION, "the fork server of Policy processes %s%s%s", what,
                    words != NULL ? ": " : "", words != NULL ? words : "");
}

static epg_code send_request(const epg_server *server, struct msghdr *message, epg_error *err)
{
    ssize_t sent = 0;
    do {
        sent = sendmsg(server->control, message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0 ? EPG_OK : server_fault(server, "takes no request", err);
}

epg_code epg_server_ask(epg_server *server, const int descriptors[EPG_SEAT_FDS], epg_error *err)
{
    char request = REQUEST_FORK;
    union {
        struct cmsghdr head; /* for its alignment */
        char space[CMSG_SPACE(EPG_SEAT_FDS * sizeof(int))];
    } control = {.space = {0}};
    struct iovec data = {&request, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(EPG_SEAT_FDS * sizeof(int));
    memcpy(CMSG_DATA(rights), descriptors, EPG_SEAT_FDS * sizeof(int));
    return send_request(server, &message, err);
}

static epg_code receive_answer(const epg_server *server, int cancel, int64_t deadline, uint8_t answer[PACKET],
                               size_t *size, epg_error *err)
{
    for (;;) {
        struct pollfd ready[2] = {{.fd = server->control, .events = POLLIN}, {.fd = cancel, .events = POLLIN}};
        int count = poll(ready, EPG_COUNT(ready), epg_poll_timeout_ms(deadline));
        if (count > 0 && ready[1].revents != 0) {
            return epg_fail(err, EPG_ERR_INTERRUPTED, "stopped while a Policy process was made");
        }
        if (count > 0) {
            ssize_t got = recv(server->control, answer, PACKET, MSG_DONTWAIT);
            if (got > 0) {
                *size = (size_t)got;
                return EPG_OK;
            }
            if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
                return server_fault(server, "ended", err);
            }
        }
        if (count == 0 && epg_monotonic_ns() >= deadline) {
            return server_fault(server, "did not answer in time", err);
        }
    }
}

epg_code epg_server_forked(epg_server *server, int cancel, int64_t deadline, pid_t *name, epg_error *err)
{
    uint8_t answer[PACKET] = {0};
    size_t size = 0;
    EPG_TRY(receive_answer(server, cancel, deadline, answer, &size, err));
    if (answer[0] == ANSWER_REFUSED) {
        *name = 0;
        return EPG_OK;
    }
    if (answer[0] != ANSWER_FORKED || size != 5) {
        return server_fault(server, "gave an answer that was not asked for", err);
    }
    *name = (pid_t)epg_read_be32(answer + 1);
    return EPG_OK;
}

epg_code epg_server_reap(epg_server *server, pid_t name, int64_t deadline, epg_reaped *out, epg_error *err)
{
    uint8_t request[5] = {REQUEST_REAP};
    uint8_t answer[PACKET] = {0};
    size_t size = 0;
    struct iovec data = {request, sizeof request};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (server->control < 0) {
        return epg_fail(err, EPG_ERR_EXECUTION, "the fork server of Policy processes is gone");
    }
    epg_write_be32(request + 1, (uint32_t)name);
    EPG_TRY(send_request(server, &message, err));
    EPG_TRY(receive_answer(server, -1, deadline, answer, &size, err));
    if (answer[0] != ANSWER_ENDED || size != 21) {
        return server_fault(server, "can't reap a Policy process", err);
    }
    int status = (int)epg_read_be32(answer + 1);
    out->exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->max_rss_bytes = epg_read_be64(answer + 5);
    out->cpu_ns = (int64_t)epg_read_be64(answer + 13);
    return EPG_OK;
}
