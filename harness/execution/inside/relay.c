/* A process for the listener and one for each connection: what an Agent does to one reaches no other. They only move
 * bytes and have the rights of the sandbox's user. */
#include "execution/inside/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "execution/inside/inside.h"

enum { CONNECTIONS_MAX = 64, CHUNK = 65536 };

typedef union rights {
    struct cmsghdr head; /* for its alignment */
    char space[CMSG_SPACE(sizeof(int))];
} rights;

static int send_descriptor(int channel, int descriptor)
{
    char byte = 'L';
    rights control;
    memset(&control, 0, sizeof control);
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    return sendmsg(channel, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int receive_descriptor(int channel)
{
    char byte = 0;
    rights control;
    int descriptor = -1;
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != 1) {
        return -1;
    }
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    }
    return descriptor;
}

static int write_all(int fd, const char *data, ssize_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, (size_t)size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return -1;
        }
        data += sent;
        size -= sent;
    }
    return 0;
}

/* Moves bytes both ways until both sides have said that they are done. */
static void pump(int left, int right)
{
    static char chunk[CHUNK];
    int from[2] = {left, right};
    int open = 2;
    while (open > 0) {
        struct pollfd ready[2] = {{.fd = from[0], .events = POLLIN}, {.fd = from[1], .events = POLLIN}};
        if (poll(ready, 2, -1) < 0) {
            return;
        }
        for (int i = 0; i < 2; i++) {
            if (ready[i].revents == 0) {
                continue;
            }
            int to = i == 0 ? right : left;
            ssize_t got = recv(ready[i].fd, chunk, sizeof chunk, 0);
            if (got > 0 && write_all(to, chunk, got) == 0) {
                continue;
            }
            if (got != 0) {
                return;
            }
            (void)shutdown(to, SHUT_WR);
            from[i] = -1;
            open--;
        }
    }
}

static void die_with(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(0);
    }
}

static void serve_one(int client, const struct addrinfo *address, pid_t parent)
{
    die_with(parent);
    for (; address != NULL; address = address->ai_next) {
        int server = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (server >= 0 && connect(server, address->ai_addr, address->ai_addrlen) == 0) {
            pump(client, server);
            break;
        }
        (void)close(server);
    }
    _exit(0);
}

static void relay(int channel, const struct addrinfo *address)
{
    int listener = receive_descriptor(channel);
    int living = 0;
    pid_t self = getpid();
    while (listener >= 0) {
        while (living > 0 && waitpid(-1, NULL, living >= CONNECTIONS_MAX ? 0 : WNOHANG) > 0) {
            living--;
        }
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0 && errno != EINTR && errno != ECONNABORTED) {
            break;
        }
        if (client >= 0) {
            pid_t child = fork();
            if (child == 0) {
                serve_one(client, address, self);
            }
            living += child > 0;
            (void)close(client);
        }
    }
    _exit(0);
}

int epg_relay_start(const char *host, const char *port)
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *address = NULL;
    int pair[2];
    int found = getaddrinfo(host, port, &want, &address);
    if (found != 0) {
        errno = found == EAI_SYSTEM ? errno : EHOSTUNREACH;
        return epg_contain_failed("finding the proxy's address");
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return epg_contain_failed("socketpair");
    }
    pid_t self = getpid();
    pid_t child = fork();
    if (child < 0) {
        return epg_contain_failed("fork");
    }
    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        int channel = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
        die_with(self);
        for (int fd = 0; fd < 256; fd++) { /* the command's descriptors are not for us to hold open */
            if (fd != null && fd != channel) {
                (void)close(fd);
            }
        }
        relay(channel, address);
    }
    freeaddrinfo(address);
    (void)close(pair[0]);
    if (pair[1] == EPG_FD_PROXY) {
        (void)fcntl(pair[1], F_SETFD, 0);
    } else if (dup2(pair[1], EPG_FD_PROXY) < 0) {
        return epg_contain_failed("dup2");
    } else {
        (void)close(pair[1]);
    }
    return 0;
}

int epg_relay_listen(const char *port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(listener, (const struct sockaddr *)&here, sizeof here) != 0 || listen(listener, CONNECTIONS_MAX) != 0 ||
        send_descriptor(EPG_FD_PROXY, listener) != 0) {
        return -1;
    }
    (void)close(listener);
    (void)close(EPG_FD_PROXY);
    return 0;
}
