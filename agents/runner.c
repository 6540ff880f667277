#include "agents/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/io.h"
#include "system/owner.h"

enum { READ_SIZE = 64 * 1024, READS_PER_TURN = 16, END_LIMIT_S = 10 };

/* One of the Agent's two streams and the log that it is kept in. Past the head only a ring of raw bytes is kept, larger
 * than the tail so that a secret cut by the ring's start is never shown. */
typedef struct stream {
    int fd; /* ours to read; -1: ended */
    int log;
    epg_redaction redaction;
    epg_buffer out; /* redacted, not yet written */
    uint64_t seen;
    uint64_t kept; /* in the head */
    bool head_full;
    epg_buffer ring;
    uint64_t dropped;
    void (*also)(epg_transcript *, epg_span, epg_buffer *);
} stream;

struct epg_agent {
    epg_owned owned;
    epg_agent_box *box; /* NULL: no containment */
    stream streams[2];
    const epg_redactor *redactor;
    epg_transcript *transcript;
    int transcript_fd;
    epg_buffer lines;
    int64_t last_output;
    uint64_t secrets;
};

static epg_code log_fault(epg_error *err)
{
    (void)epg_fail_errno(err, errno, "can't write the Agent's log");
    return epg_fail_as(err, EPG_ERR_PUBLICATION, "agent");
}

static epg_code flush_log(stream *self, epg_error *err)
{
    if (self->out.size > 0 && epg_io_write_all(self->log, self->out.data, self->out.size) != 0) {
        return log_fault(err);
    }
    epg_buffer_clear(&self->out);
    return EPG_OK;
}

static epg_code write_lines(epg_agent *self, epg_error *err)
{
    if (self->transcript_fd >= 0 && self->lines.size > 0 &&
        epg_io_write_all(self->transcript_fd, self->lines.data, self->lines.size) != 0) {
        return log_fault(err);
    }
    epg_buffer_clear(&self->lines);
    return EPG_OK;
}

static void keep_in_ring(stream *self, epg_span bytes)
{
    const size_t room = EPG_AGENT_LOG_TAIL + EPG_REDACTION_HOLD;
    if (self->ring.size + bytes.size > 2 * room) {
        size_t drop = self->ring.size > room ? self->ring.size - room : 0;
        epg_buffer_drop_front(&self->ring, drop);
        self->dropped += drop;
    }
    (void)epg_buffer_append_span(&self->ring, bytes);
}

static epg_code keep(stream *self, epg_span bytes, epg_error *err)
{
    self->seen += bytes.size;
    if (self->head_full) {
        keep_in_ring(self, bytes);
        return EPG_OK;
    }
    epg_redaction_feed(&self->redaction, bytes, &self->out);
    self->kept += self->out.size;
    EPG_TRY(flush_log(self, err));
    if (self->kept >= EPG_AGENT_LOG_HEAD) {
        epg_redaction_end(&self->redaction, &self->out);
        self->head_full = true;
        return flush_log(self, err);
    }
    return EPG_OK;
}

static epg_code take_bytes(epg_agent *self, stream *from, epg_span bytes, epg_error *err)
{
    self->last_output = epg_monotonic_ns();
    EPG_TRY(keep(from, bytes, err));
    if (self->transcript != NULL) {
        from->also(self->transcript, bytes, &self->lines);
        EPG_TRY(write_lines(self, err));
    }
    return EPG_OK;
}

static epg_code drain(epg_agent *self, stream *from, unsigned reads, epg_error *err)
{
    uint8_t bytes[READ_SIZE];
    for (unsigned i = 0; i < reads && from->fd >= 0; i++) {
        ssize_t got = read(from->fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            return EPG_OK;
        }
        if (got <= 0) {
            (void)close(from->fd);
            from->fd = -1;
            return EPG_OK;
        }
        EPG_TRY(take_bytes(self, from, epg_span_of(bytes, (size_t)got), err));
    }
    return EPG_OK;
}

static epg_code open_log(int directory, const char *name, bool append, stream *out, epg_error *err)
{
    int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_APPEND | (append ? 0 : O_EXCL);
    out->log = epg_io_open(directory, name, flags, 0600);
    return out->log >= 0 ? EPG_OK : log_fault(err);
}

static void free_agent(epg_agent *self)
{
    for (size_t i = 0; i < EPG_COUNT(self->streams); i++) {
        stream *one = &self->streams[i];
        if (one->fd >= 0) {
            (void)close(one->fd);
        }
        if (one->log >= 0) {
            (void)close(one->log);
        }
        EPG_AUTO_BUFFER rest = {0};
        if (!one->head_full) {
            epg_redaction_end(&one->redaction, &rest);
        }
        epg_buffer_free(&one->out);
        epg_buffer_free(&one->ring);
    }
    epg_buffer_free(&self->lines);
    epg_agent_box_close(self->box);
    free(self);
}

static epg_code start_in_box(epg_agent *self, const epg_agent_sandbox *sandbox, const epg_fd_map *fds, size_t count,
                             epg_error *err)
{
    enum { START_LIMIT_S = 60 };
    epg_agent_sandbox what = *sandbox;
    what.fds = fds;
    what.fd_count = count;
    EPG_TRY(epg_agent_box_open(&what, &self->box, err));
    EPG_TRY(epg_owned_start(epg_agent_box_spawn(self->box), &self->owned, err));
    epg_code code = epg_agent_box_started(self->box, epg_deadline_after_seconds(START_LIMIT_S), err);
    if (code != EPG_OK) {
        epg_owned_kill(&self->owned);
        (void)epg_owned_finish(&self->owned, epg_deadline_after_seconds(END_LIMIT_S), NULL);
    }
    return code;
}

static epg_code start_tree(epg_agent *self, const epg_agent_start *start, epg_error *err)
{
    int ends[2][2] = {{-1, -1}, {-1, -1}};
    epg_fd_map fds[3];
    size_t count = 0;
    if (start->stdin_fd >= 0) {
        fds[count++] = (epg_fd_map){start->stdin_fd, STDIN_FILENO};
    }
    for (size_t i = 0; i < EPG_COUNT(self->streams); i++) {
        if (pipe2(ends[i], O_CLOEXEC) != 0) {
            (void)epg_fail_errno(err, errno, "can't make a pipe for the Agent");
            return epg_fail_as(err, EPG_ERR_EXECUTION, "agent");
        }
        self->streams[i].fd = ends[i][0];
        (void)fcntl(ends[i][0], F_SETFL, O_NONBLOCK);
        fds[count++] = (epg_fd_map){ends[i][1], STDOUT_FILENO + (int)i};
    }
    epg_code code = EPG_OK;
    if (start->sandbox != NULL) {
        code = start_in_box(self, start->sandbox, fds, count, err);
    } else {
        epg_spawn spawn = *start->spawn;
        spawn.fds = fds;
        spawn.fd_count = count;
        code = epg_owned_start(&spawn, &self->owned, err);
    }
    for (size_t i = 0; i < EPG_COUNT(self->streams); i++) {
        (void)close(ends[i][1]);
    }
    return code;
}

epg_code epg_agent_open(const epg_agent_start *start, epg_agent **out, epg_error *err)
{
    epg_agent *self = epg_alloc(sizeof *self);
    self->redactor = start->redactor;
    self->transcript = start->transcript;
    self->transcript_fd = start->transcript_fd;
    self->last_output = epg_monotonic_ns();
    for (size_t i = 0; i < EPG_COUNT(self->streams); i++) {
        self->streams[i] = (stream){.fd = -1, .log = -1};
        epg_redaction_begin(&self->streams[i].redaction, start->redactor);
    }
    self->streams[0].also = epg_transcript_stdout;
    self->streams[1].also = epg_transcript_stderr;
    epg_code code = open_log(start->log_directory, "stdout.log", start->append, &self->streams[0], err);
    if (code == EPG_OK) {
        code = open_log(start->log_directory, "stderr.log", start->append, &self->streams[1], err);
    }
    if (code == EPG_OK) {
        code = start_tree(self, start, err);
    }
    if (code != EPG_OK) {
        free_agent(self);
        return code;
    }
    *out = self;
    return EPG_OK;
}

size_t epg_agent_poll_fds(const epg_agent *self, struct pollfd *fds, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < EPG_COUNT(self->streams) && count < room; i++) {
        if (self->streams[i].fd >= 0) {
            fds[count++] = (struct pollfd){.fd = self->streams[i].fd, .events = POLLIN};
        }
    }
    if (!self->owned.finished && count < room) {
        fds[count++] = (struct pollfd){.fd = self->owned.report, .events = POLLIN};
    }
    return count;
}

epg_code epg_agent_turn(epg_agent *self, epg_error *err)
{
    for (size_t i = 0; i < EPG_COUNT(self->streams); i++) {
        EPG_TRY(drain(self, &self->streams[i], READS_PER_TURN, err));
    }
    epg_error ignored; /* a monitor that was killed is told in epg_agent_close's evidence */
    (void)epg_owned_poll(&self->owned, &ignored);
    return EPG_OK;
}

bool epg_agent_exited(const epg_agent *self, epg_exit *how)
{
    if (how != NULL) {
        *how = self->owned.exit;
    }
    return self->owned.exited || self->owned.finished;
}

bool epg_agent_finished(const epg_agent *self)
{
    return self->owned.finished;
}

int64_t epg_agent_last_output(const epg_agent *self)
{
    return self->last_output;
}

pid_t epg_agent_tree(const epg_agent *self)
{
    return self->owned.monitor.pid;
}

pid_t epg_agent_pid(const epg_agent *self)
{
    return self->owned.command_pid;
}

const epg_agent_box *epg_agent_boxed(const epg_agent *self)
{
    return self->box;
}

void epg_agent_terminate(epg_agent *self, int64_t grace_ns)
{
    epg_owned_terminate(&self->owned, grace_ns);
}

void epg_agent_kill(epg_agent *self)
{
    epg_owned_kill(&self->owned);
}

/* The end of a log: what was held back, or the cut told and the tail. */
static epg_code complete_log(epg_agent *self, stream *one, epg_error *err)
{
    if (!one->head_full) {
        epg_redaction_end(&one->redaction, &one->out);
        one->head_full = true;
        self->secrets += one->redaction.found;
        return flush_log(one, err);
    }
    self->secrets += one->redaction.found;
    size_t skip = one->ring.size > EPG_AGENT_LOG_TAIL ? one->ring.size - EPG_AGENT_LOG_TAIL : 0;
    EPG_AUTO_BUFFER redacted = {0};
    /* Redacted with what stands before it, so that a secret across the tail's start is seen whole; then cut there. */
    epg_span ring = epg_buffer_span(&one->ring);
    if (skip > 0) {
        EPG_AUTO_BUFFER before = {0};
        (void)epg_redact(self->redactor, epg_span_of(ring.data, skip), &before);
        self->secrets += epg_redact(self->redactor, ring, &redacted);
        size_t cut = before.size < redacted.size ? before.size : redacted.size;
        epg_buffer_drop_front(&redacted, cut);
    } else {
        self->secrets += epg_redact(self->redactor, ring, &redacted);
    }
    one->dropped += skip;
    if (one->dropped > 0) {
        (void)epg_buffer_format(&one->out, "\n[%llu bytes were not kept]\n", (unsigned long long)one->dropped);
    }
    (void)epg_buffer_append_span(&one->out, epg_buffer_span(&redacted));
    return flush_log(one, err);
}

static epg_code drain_rest(epg_agent *self, epg_error *err)
{
    for (size_t i = 0; i < EPG_COUNT(self->streams); i++) {
        /* Everything that could write is gone: what the pipe still holds ends with its end. */
        EPG_TRY(drain(self, &self->streams[i], 1024, err));
        EPG_TRY(complete_log(self, &self->streams[i], err));
    }
    return EPG_OK;
}

epg_code epg_agent_close(epg_agent *self, epg_agent_end *out, epg_error *err)
{
    epg_error ignored = {.text = ""};
    epg_agent_kill(self);
    epg_code code = EPG_OK;
    /* An Agent that writes without end must not hold its own end up: its pipes are read while it is waited for. */
    int64_t deadline = epg_deadline_after_seconds(END_LIMIT_S);
    while (code == EPG_OK && !self->owned.finished && epg_monotonic_ns() < deadline) {
        struct pollfd fds[EPG_AGENT_FDS];
        size_t count = epg_agent_poll_fds(self, fds, EPG_AGENT_FDS);
        (void)poll(fds, count, epg_poll_timeout_ms(deadline));
        code = epg_agent_turn(self, err);
    }
    (void)epg_owned_finish(&self->owned, epg_deadline_after_seconds(1), &ignored);
    if (code == EPG_OK) {
        code = drain_rest(self, err);
    }
    unsigned left = 0;
    if (self->box != NULL &&
        epg_agent_box_left(self->box, &left)) { /* the monitor sees the sandbox's own processes too */
        self->owned.ended.orphans = left;
        self->owned.ended.killed = left;
    }
    *out = (epg_agent_end){.exit = self->owned.exit,
                           .ended = self->owned.ended,
                           .owned_to_the_end = self->owned.told_end,
                           .stdout_bytes = self->streams[0].seen,
                           .stderr_bytes = self->streams[1].seen,
                           .stdout_dropped = self->streams[0].dropped,
                           .stderr_dropped = self->streams[1].dropped,
                           .secrets_redacted = self->secrets};
    free_agent(self);
    return code;
}
