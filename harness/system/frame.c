#include "system/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

enum { LENGTH_SIZE = 4, HEAD_REST = EPG_FRAME_HEAD - LENGTH_SIZE, SMALL_FRAME = 1024 };

static void make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) {
        (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
}

/* A write to a peer that is gone must be an error, not our end. A handler that somebody chose stays. */
static void ignore_broken_pipes(void)
{
    struct sigaction now;
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
        now = (struct sigaction){.sa_handler = SIG_IGN};
        (void)sigaction(SIGPIPE, &now, NULL);
    }
}

void epg_channel_open(epg_channel *channel, int in, int out, size_t body_limit)
{
    ignore_broken_pipes();
    make_nonblocking(in);
    if (out != in) {
        make_nonblocking(out);
    }
    *channel = (epg_channel){.in = in, .out = out, .cancel = -1, .aside.fd = -1, .body_limit = body_limit};
}

void epg_channel_be_patient(epg_channel *channel)
{
    if (channel->patience == NULL) {
        channel->patience = epg_patience_open(channel->in);
    }
}

void epg_channel_close(epg_channel *channel)
{
    epg_patience_close(channel->patience);
    if (channel->out >= 0 && channel->out != channel->in) {
        (void)close(channel->out);
    }
    if (channel->in >= 0) {
        (void)close(channel->in);
    }
    epg_buffer_free(&channel->input);
    *channel = (epg_channel){.in = -1, .out = -1, .cancel = -1, .aside.fd = -1};
}

/* Waits until `fd` is ready; `doing` names the wait in errors. */
static epg_code wait_for(epg_channel *channel, int fd, short events, int64_t deadline, const char *doing,
                         epg_error *err)
{
    int64_t patience = epg_company_patience(channel->company, deadline);
    for (;;) {
        struct pollfd wait[] = {{.fd = fd, .events = events},
                                {.fd = channel->cancel, .events = POLLIN},
                                {.fd = channel->aside.fd, .events = POLLIN}};
        int ready = poll(wait, EPG_COUNT(wait), epg_poll_timeout_ms(patience));
        if (ready < 0 && errno != EINTR) {
            return epg_fail_errno(err, errno, "can't wait for a peer");
        }
        if (ready > 0 && wait[2].revents != 0) {
            channel->aside.serve(channel->aside.context);
            channel->served = true;
        }
        if (ready > 0 && wait[1].revents != 0) {
            return epg_fail(err, EPG_ERR_INTERRUPTED, "stopped while %s", doing);
        }
        if (ready > 0 && wait[0].revents != 0) {
            return EPG_OK;
        }
        int64_t now = ready < 0 ? 0 : epg_monotonic_ns();
        if (patience < deadline && now >= patience) {
            epg_company_late(channel->company);
            patience = deadline;
        }
        if (now >= deadline) { /* whatever woke us: it may say things aside without end */
            return epg_fail(err, EPG_ERR_TIMEOUT, "the time was over while %s", doing);
        }
    }
}

static void advance(struct iovec *parts, size_t count, size_t wrote)
{
    for (size_t i = 0; i < count && wrote > 0; i++) {
        size_t taken = wrote < parts[i].iov_len ? wrote : parts[i].iov_len;
        parts[i].iov_base = (uint8_t *)parts[i].iov_base + taken;
        parts[i].iov_len -= taken;
        wrote -= taken;
    }
}

static epg_code send_parts(epg_channel *channel, struct iovec *parts, size_t count, int64_t deadline, epg_error *err)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        left += parts[i].iov_len;
    }
    while (left > 0) {
        ssize_t wrote = count == 1 ? write(channel->out, parts[0].iov_base, parts[0].iov_len)
                                   : writev(channel->out, parts, (int)count);
        if (wrote >= 0) {
            advance(parts, count, (size_t)wrote);
            left -= (size_t)wrote;
            continue;
        }
        if (errno == EPIPE || errno == ECONNRESET) {
            return epg_fail(err, EPG_ERR_CLOSED, "the peer ended before it took a frame");
        }
        if (errno == EAGAIN) {
            EPG_TRY(wait_for(channel, channel->out, POLLOUT, deadline, "a peer did not take a frame", err));
        } else if (errno != EINTR) {
            return epg_fail_errno(err, errno, "can't write to a peer");
        }
    }
    return EPG_OK;
}

/* struct iovec serves reading and writing: its pointer is to non-const. */
static struct iovec part(const void *data, size_t size)
{
    union {
        const void *given;
        void *wanted;
    } same = {.given = data};
    return (struct iovec){same.wanted, size};
}

static size_t join(uint8_t start[SMALL_FRAME], epg_span head, epg_span tail)
{
    uint8_t *at = start + EPG_FRAME_HEAD;
    if (head.size > 0) {
        memcpy(at, head.data, head.size);
    }
    if (tail.size > 0) {
        memcpy(at + head.size, tail.data, tail.size);
    }
    return EPG_FRAME_HEAD + head.size + tail.size;
}

epg_code epg_channel_send2(epg_channel *channel, uint8_t type, uint32_t sequence, epg_span head, epg_span tail,
                           int64_t deadline, epg_error *err)
{
    if (channel->broken) {
        return epg_fail(err, EPG_ERR_CLOSED, "the peer did not take an earlier frame");
    }
    size_t room = UINT32_MAX - HEAD_REST;
    if (head.size > room || tail.size > room - head.size) {
        return epg_fail(err, EPG_ERR_LIMIT, "a frame of %zu + %zu bytes is too large", head.size, tail.size);
    }
    uint8_t start[SMALL_FRAME]; /* the head; of a small frame all, which is cheaper to write than parts */
    epg_write_be32(start, (uint32_t)(HEAD_REST + head.size + tail.size));
    start[LENGTH_SIZE] = type;
    epg_write_be32(start + LENGTH_SIZE + 1, sequence);
    struct iovec parts[3] = {part(start, EPG_FRAME_HEAD), part(head.data, head.size), part(tail.data, tail.size)};
    size_t count = EPG_COUNT(parts);
    if (head.size + tail.size <= sizeof start - EPG_FRAME_HEAD) {
        parts[0].iov_len = join(start, head, tail);
        count = 1;
    }
    epg_code code = send_parts(channel, parts, count, deadline, err);
    channel->broken = code != EPG_OK;
    return code;
}

epg_code epg_channel_send(epg_channel *channel, uint8_t type, uint32_t sequence, epg_span body, int64_t deadline,
                          epg_error *err)
{
    return epg_channel_send2(channel, type, sequence, body, (epg_span){NULL, 0}, deadline, err);
}

static void tell(epg_frame_fault *fault, epg_frame_fault value)
{
    if (fault != NULL) {
        *fault = value;
    }
}

static epg_span unread(const epg_channel *channel)
{
    if (channel->input.size == channel->consumed) {
        return (epg_span){NULL, 0};
    }
    return epg_span_of(channel->input.data + channel->consumed, channel->input.size - channel->consumed);
}

epg_code epg_channel_next(epg_channel *channel, epg_frame *frame, bool *have, epg_frame_fault *fault, epg_error *err)
{
    tell(fault, EPG_FRAME_OK);
    epg_span rest = unread(channel);
    if (rest.size < LENGTH_SIZE) {
        *have = false;
        return EPG_OK;
    }
    size_t length = epg_read_be32(rest.data);
    if (length < HEAD_REST) {
        tell(fault, EPG_FRAME_MALFORMED);
        return epg_fail(err, EPG_ERR_PROTOCOL, "a frame of %zu bytes is too short for its head", length);
    }
    if (length - HEAD_REST > channel->body_limit) {
        tell(fault, EPG_FRAME_OVERSIZED);
        return epg_fail(err, EPG_ERR_PROTOCOL, "a frame with a body of %zu bytes is over the bound of %zu",
                        length - HEAD_REST, channel->body_limit);
    }
    *have = rest.size - LENGTH_SIZE >= length;
    if (*have) {
        frame->type = rest.data[LENGTH_SIZE];
        frame->sequence = epg_read_be32(rest.data + LENGTH_SIZE + 1);
        frame->body = epg_span_of(rest.data + EPG_FRAME_HEAD, length - HEAD_REST);
        channel->consumed += LENGTH_SIZE + length;
    }
    return EPG_OK;
}

/* The next read waits, or does not. */
static void set_blocks(epg_channel *channel, bool blocks)
{
    if (blocks == channel->blocks) {
        return;
    }
    if (!blocks) {
        epg_patience_end(channel->patience);
    }
    channel->blocks = blocks && epg_patience_begin(channel->patience);
}

/* One read. *got: the bytes read, 0 when none is there now, or none came for as long as it `waits`; CLOSED at the end.
 */
static epg_code take(epg_channel *channel, bool waits, size_t *got, epg_error *err)
{
    *got = 0;
    epg_buffer_drop_front(&channel->input, channel->consumed);
    channel->consumed = 0;
    /* A whole frame is there already: its owner must take it before more is kept for a peer that floods. */
    size_t bound = EPG_FRAME_HEAD + channel->body_limit;
    if (channel->input.size >= bound) {
        return EPG_OK;
    }
    uint8_t *at = epg_buffer_reserve(&channel->input, EPG_FRAME_READ_SIZE);
    ssize_t size = 0;
    set_blocks(channel, waits);
    do {
        size = read(channel->in, at, EPG_FRAME_READ_SIZE);
    } while (size < 0 && errno == EINTR);
    if (size == 0 || (size < 0 && errno == ECONNRESET)) {
        return epg_fail(err, EPG_ERR_CLOSED, "the peer ended");
    }
    if (size < 0 && errno != EAGAIN) {
        return epg_fail_errno(err, errno, "can't read from a peer");
    }
    channel->blocks = channel->blocks && size > 0; /* else its time is over */
    *got = size < 0 ? 0 : (size_t)size;
    channel->input.size += *got;
    return EPG_OK;
}

epg_code epg_channel_fill(epg_channel *channel, epg_error *err)
{
    size_t got = 0;
    return take(channel, false, &got, err);
}

static epg_code receive_failed(const epg_channel *channel, epg_code code, epg_frame_fault *fault, epg_error *err)
{
    bool inside = unread(channel).size > 0;
    if (code == EPG_ERR_CLOSED && inside) {
        tell(fault, EPG_FRAME_PARTIAL);
        return epg_fail(err, EPG_ERR_PROTOCOL, "the peer ended inside a frame");
    }
    if (code == EPG_ERR_CLOSED) {
        tell(fault, EPG_FRAME_CLOSED);
    } else if (code == EPG_ERR_TIMEOUT && inside) {
        tell(fault, EPG_FRAME_PARTIAL);
    }
    return code;
}

epg_code epg_channel_receive(epg_channel *channel, epg_frame *frame, int64_t deadline, epg_frame_fault *fault,
                             epg_error *err)
{
    bool patient = channel->patience != NULL && !channel->served;
    channel->served = false;
    for (size_t got = 0;; patient = patient && got > 0) {
        bool have = false;
        epg_code code = EPG_OK;
        EPG_TRY(epg_channel_next(channel, frame, &have, fault, err));
        if (have) {
            return EPG_OK;
        }
        if (got > 0 && epg_monotonic_ns() >= deadline) { /* a peer that drips bytes must not stretch its time */
            code = epg_fail(err, EPG_ERR_TIMEOUT, "the time was over while a frame was waited for");
        } else {
            code = take(channel, patient, &got, err);
        }
        if (code == EPG_OK && got == 0) {
            code = wait_for(channel, channel->in, POLLIN, deadline, "a frame was waited for", err);
        }
        if (code != EPG_OK) {
            return receive_failed(channel, code, fault, err);
        }
    }
}

bool epg_channel_pending(epg_channel *channel)
{
    int waiting = 0;
    return unread(channel).size > 0 || (ioctl(channel->in, FIONREAD, &waiting) == 0 && waiting > 0);
}
