/* One Policy in one Episode.
 *
 * Every frame of ours carries a sequence number that can't be guessed and gets one answer that repeats it. So a frame
 * that a Policy sends ahead of its time is never an answer, whenever it arrives: it has another number, and the next
 * exchange fails on it.
 *
 * While we wait for an answer we take what the Policy prints, so that a full pipe never stops it, and watch its pidfd:
 * the end of a process shows there even when another process holds its pipes. (The first 10 ms of a wait are spent in
 * the read itself, which costs less and looks at nothing else: see epg_channel_be_patient.) */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/text.h"
#include "guest/internal.h"

enum { REPLY_LIMIT = 4 * 1024 * 1024, DETAIL_LIMIT = 1000 };

static const int64_t ask_grace = 500 * EPG_MILLISECOND;  /* to write out what it printed and end by itself */
static const int64_t term_grace = 200 * EPG_MILLISECOND; /* from SIGTERM to SIGKILL */
static const int64_t kill_limit = 10 * EPG_SECOND;       /* from SIGKILL to the end, before it is a fault */
static const int64_t end_grace = 200 * EPG_MILLISECOND;  /* from a closed channel to the process's own end */

struct epg_policy {
    epg_guest *guest;
    epg_seat seat;
    epg_channel channel;
    epg_log log;
    int stops; /* epoll: the process ended, or we are told to stop */
    char *program_path;
    char *detail;
    bool failed; /* no more exchanges */
    bool deaf;   /* it does not answer: don't ask it to end */
    bool reaped;
    bool signalled; /* by us */
    epg_reaped end;
};

static const epg_policy_failure failure_of[] = {
    [EPG_CAUSE_NONE] = EPG_POLICY_OK,
    [EPG_CAUSE_LOAD] = EPG_POLICY_EXCEPTION,
    [EPG_CAUSE_MAKE_POLICY] = EPG_POLICY_EXCEPTION,
    [EPG_CAUSE_ACT] = EPG_POLICY_EXCEPTION,
    [EPG_CAUSE_TIMEOUT_START] = EPG_POLICY_TIMEOUT,
    [EPG_CAUSE_TIMEOUT_ACT] = EPG_POLICY_TIMEOUT,
    [EPG_CAUSE_TIMEOUT_WRITE] = EPG_POLICY_TIMEOUT,
    [EPG_CAUSE_MALFORMED_FRAME] = EPG_POLICY_PROTOCOL_ERROR,
    [EPG_CAUSE_PARTIAL_FRAME] = EPG_POLICY_PROTOCOL_ERROR,
    [EPG_CAUSE_OVERSIZED_FRAME] = EPG_POLICY_PROTOCOL_ERROR,
    [EPG_CAUSE_INADMISSIBLE_VALUE] = EPG_POLICY_PROTOCOL_ERROR,
    [EPG_CAUSE_UNEXPECTED_MESSAGE] = EPG_POLICY_PROTOCOL_ERROR,
    [EPG_CAUSE_DIED] = EPG_POLICY_PROTOCOL_ERROR,
    [EPG_CAUSE_REFUSED_ACTION] = EPG_POLICY_INVALID_ACTION,
};

static bool readable_now(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&ready, 1, 0) > 0;
}

static bool watch(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
}

static epg_code watch_stops(epg_policy *policy, epg_error *err)
{
    policy->stops = epoll_create1(EPOLL_CLOEXEC);
    policy->channel.cancel = policy->stops;
    if (policy->stops >= 0 && watch(policy->stops, policy->seat.process.pidfd) &&
        watch(policy->stops, policy->guest->cancel)) {
        return EPG_OK;
    }
    (void)epg_fail_errno(err, errno, "can't watch a Policy process");
    return epg_fail_as(err, EPG_ERR_EXECUTION, "guest");
}

static void take_output(void *context)
{
    epg_policy *policy = context;
    if (policy->seat.output >= 0 && !epg_log_read(&policy->log, policy->seat.output)) {
        epg_close_cleanup(&policy->seat.output);
        policy->seat.output = policy->channel.aside.fd = -1;
    }
}

epg_code epg_policy_begin(epg_guest *guest, const char *program_path, epg_policy **out, epg_error *err)
{
    epg_seat seat = epg_no_seat;
    EPG_TRY(epg_seat_take(guest, &seat, err));
    epg_policy *policy = epg_alloc(sizeof *policy);
    *policy = (epg_policy){.guest = guest, .seat = seat, .program_path = epg_strdup(program_path)};
    epg_channel_open(&policy->channel, seat.receive, seat.send, REPLY_LIMIT);
    epg_channel_be_patient(&policy->channel);
    policy->channel.company = guest->company;
    epg_company_enter(guest->company, seat.process.pid);
    policy->channel.aside = (epg_aside){.fd = seat.output, .serve = take_output, .context = policy};
    policy->seat.receive = policy->seat.send = -1;
    epg_log_open(&policy->log, guest->execution.limits.log_bytes);
    epg_code code = watch_stops(policy, err);
    if (code != EPG_OK) {
        epg_policy_end ignored;
        if (epg_policy_finish(policy, &ignored, NULL) == EPG_OK) {
            epg_policy_end_free(&ignored);
        }
        return code;
    }
    *out = policy;
    return EPG_OK;
}

/* --- One exchange. --- */

/* splitmix64: a sequence number that a Policy can't know before it has our frame. */
static uint32_t next_sequence(epg_guest *guest)
{
    uint64_t mixed = guest->random += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((mixed ^ (mixed >> 31)) >> 16);
}

static void set_detail(epg_policy *policy, const char *text, size_t size)
{
    free(policy->detail);
    policy->detail = epg_printable(text, size < DETAIL_LIMIT ? size : DETAIL_LIMIT);
}

static epg_code fails(epg_policy *policy, epg_policy_cause cause, epg_policy_reply *reply)
{
    policy->failed = true;
    *reply = (epg_policy_reply){.failure = failure_of[cause], .cause = cause, .detail = policy->detail};
    return EPG_OK;
}

static epg_code fails_with(epg_policy *policy, epg_policy_cause cause, const char *text, epg_policy_reply *reply)
{
    set_detail(policy, text, strlen(text));
    return fails(policy, cause, reply);
}

/* Waits until the process ended, taking its output. */
static bool wait_for_end(epg_policy *policy, int64_t deadline)
{
    for (;;) {
        struct pollfd ready[2] = {{.fd = policy->seat.process.pidfd, .events = POLLIN},
                                  {.fd = policy->seat.output, .events = POLLIN}};
        int count = poll(ready, EPG_COUNT(ready), epg_poll_timeout_ms(deadline));
        if (ready[0].revents != 0) {
            return true;
        }
        if (count > 0) {
            take_output(policy);
        }
        if (count <= 0 && epg_monotonic_ns() >= deadline) {
            return false;
        }
    }
}

static void reap(epg_policy *policy)
{
    if (!policy->reaped) {
        epg_company_leave(policy->guest->company, policy->seat.process.pid);
        epg_seat_reap(policy->guest, &policy->seat, &policy->end);
        policy->reaped = true;
    }
}

/* The channel is closed, or the process at its end: tells which way it went. */
static epg_code fails_by_end(epg_policy *policy, epg_policy_cause cause, epg_policy_reply *reply)
{
    char text[64] = "it closed its channel";
    policy->deaf = true;
    if (wait_for_end(policy, epg_deadline_after_ns(end_grace))) {
        reap(policy);
        const epg_exit *end = &policy->end.exit;
        (void)snprintf(text, sizeof text, end->signal != 0 ? "it was ended by signal %d" : "it exited with status %d",
                       end->signal != 0 ? end->signal : end->code);
    }
    return fails_with(policy, cause, text, reply);
}

/* --- Waiting. --- */

/* One whole frame. PROTOCOL and CLOSED with `fault`; TIMEOUT; INTERRUPTED. What a process said before its end counts.
 */
static epg_code receive(epg_policy *policy, int64_t deadline, epg_frame *frame, epg_frame_fault *fault, epg_error *err)
{
    epg_channel *channel = &policy->channel;
    epg_code code = epg_channel_receive(channel, frame, deadline, fault, err);
    if (code == EPG_ERR_TIMEOUT) {
        return epg_fail(err, EPG_ERR_TIMEOUT, "the Policy did not %s in time",
                        *fault == EPG_FRAME_PARTIAL ? "finish its answer" : "answer");
    }
    if (code != EPG_ERR_INTERRUPTED || readable_now(policy->guest->cancel)) {
        return code;
    }
    channel->cancel = -1;
    code = epg_channel_receive(channel, frame, epg_monotonic_ns(), fault, err);
    channel->cancel = policy->stops;
    if (code == EPG_ERR_TIMEOUT) { /* another process holds the pipe */
        *fault = *fault == EPG_FRAME_PARTIAL ? EPG_FRAME_PARTIAL : EPG_FRAME_CLOSED;
        return epg_fail(err, EPG_ERR_CLOSED, "the Policy ended");
    }
    return code;
}

static epg_code fails_by_fault(epg_policy *policy, epg_frame_fault fault, const char *text, epg_policy_reply *reply)
{
    switch (fault) {
    case EPG_FRAME_OVERSIZED:
        return fails_with(policy, EPG_CAUSE_OVERSIZED_FRAME, text, reply);
    case EPG_FRAME_MALFORMED:
        return fails_with(policy, EPG_CAUSE_MALFORMED_FRAME, text, reply);
    case EPG_FRAME_PARTIAL:
        return fails_by_end(policy, EPG_CAUSE_PARTIAL_FRAME, reply);
    case EPG_FRAME_OK:
    case EPG_FRAME_CLOSED:
        break;
    }
    return fails_by_end(policy, EPG_CAUSE_DIED, reply);
}

static epg_code send_failed(epg_policy *policy, epg_code code, epg_policy_reply *reply, epg_error *err)
{
    if (code == EPG_ERR_TIMEOUT) {
        policy->deaf = true;
        return fails_with(policy, EPG_CAUSE_TIMEOUT_WRITE, "it stopped reading", reply);
    }
    bool ended = code == EPG_ERR_CLOSED || readable_now(policy->seat.process.pidfd);
    if (ended && !readable_now(policy->guest->cancel)) {
        return fails_by_end(policy, EPG_CAUSE_DIED, reply);
    }
    return code == EPG_ERR_INTERRUPTED ? code : epg_fail_as(err, EPG_ERR_EXECUTION, "guest");
}

/* Sends one frame and waits for its answer. A failure of the Policy is in `reply` then and *frame is untouched. */
static epg_code exchange(epg_policy *policy, uint8_t type, epg_span head, epg_span tail, int64_t deadline,
                         epg_policy_cause late, epg_frame *frame, epg_policy_reply *reply, epg_error *err)
{
    epg_error local;
    epg_frame got;
    epg_frame_fault fault = EPG_FRAME_OK;
    uint32_t sequence = next_sequence(policy->guest);
    *reply = (epg_policy_reply){.failure = EPG_POLICY_OK, .cause = EPG_CAUSE_NONE};
    if (policy->failed) {
        return epg_fail(err, EPG_ERR_INTERNAL, "a Policy that failed is asked again");
    }
    err = err != NULL ? err : &local;
    epg_code code = epg_channel_send2(&policy->channel, type, sequence, head, tail, deadline, err);
    if (code != EPG_OK) {
        return send_failed(policy, code, reply, err);
    }
    code = receive(policy, deadline, &got, &fault, err);
    if (code == EPG_ERR_TIMEOUT) {
        policy->deaf = true;
        return fails_with(policy, late, err->text, reply);
    }
    if (code == EPG_ERR_PROTOCOL || code == EPG_ERR_CLOSED) {
        return fails_by_fault(policy, fault, err->text, reply);
    }
    if (code != EPG_OK) {
        return code == EPG_ERR_INTERRUPTED ? code : epg_fail_as(err, EPG_ERR_EXECUTION, "guest");
    }
    if (got.sequence != sequence) {
        return fails_with(policy, EPG_CAUSE_UNEXPECTED_MESSAGE, "it sent a frame that was not asked for", reply);
    }
    *frame = got;
    return EPG_OK;
}

/* What a Policy process answered instead of what was asked for. */
static epg_code fails_by_answer(epg_policy *policy, const epg_frame *frame, epg_policy_cause raised,
                                epg_policy_reply *reply)
{
    set_detail(policy, (const char *)frame->body.data, frame->body.size);
    switch (frame->type) {
    case EPG_MESSAGE_LOAD_FAILED:
        return fails(policy, raised == EPG_CAUSE_ACT ? EPG_CAUSE_UNEXPECTED_MESSAGE : EPG_CAUSE_LOAD, reply);
    case EPG_MESSAGE_RAISED:
        return fails(policy, raised, reply);
    case EPG_MESSAGE_INADMISSIBLE:
        return fails(policy, EPG_CAUSE_INADMISSIBLE_VALUE, reply);
    default:
        return fails_with(policy, EPG_CAUSE_UNEXPECTED_MESSAGE, "it sent a frame of another type", reply);
    }
}

/* --- Start, act. --- */

epg_code epg_policy_start(epg_policy *policy, epg_span context, int64_t deadline, epg_policy_reply *reply,
                          epg_error *err)
{
    EPG_AUTO_BUFFER head = {0};
    epg_frame frame = {0};
    epg_value_put_list(&head, 2);
    EPG_AUTO_FREE char *path = epg_execution_inside(&policy->guest->execution, policy->program_path);
    epg_value_put_bytes(&head, epg_span_text(path));
    epg_code code = exchange(policy, EPG_MESSAGE_START, epg_buffer_span(&head), context, deadline,
                             EPG_CAUSE_TIMEOUT_START, &frame, reply, err);
    epg_seat_park(policy->guest);
    if (code != EPG_OK || reply->failure != EPG_POLICY_OK) {
        return code;
    }
    return frame.type == EPG_MESSAGE_READY ? EPG_OK : fails_by_answer(policy, &frame, EPG_CAUSE_MAKE_POLICY, reply);
}

epg_code epg_policy_act(epg_policy *policy, epg_span observation, int64_t deadline, epg_policy_reply *reply,
                        epg_error *err)
{
    epg_error refusal;
    epg_frame frame = {0};
    if (observation.size > epg_value_policy_limits.bytes) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "an observation of %zu bytes, over the bound of %zu", observation.size,
                        epg_value_policy_limits.bytes);
    }
    epg_span nothing = {NULL, 0};
    EPG_TRY(
        exchange(policy, EPG_MESSAGE_ACT, nothing, observation, deadline, EPG_CAUSE_TIMEOUT_ACT, &frame, reply, err));
    if (reply->failure != EPG_POLICY_OK) {
        return EPG_OK;
    }
    if (frame.type != EPG_MESSAGE_VALUE) {
        return fails_by_answer(policy, &frame, EPG_CAUSE_ACT, reply);
    }
    epg_code code = epg_value_check(frame.body, &epg_value_policy_limits, &refusal);
    if (code != EPG_OK) {
        return fails_with(policy, code == EPG_ERR_LIMIT ? EPG_CAUSE_INADMISSIBLE_VALUE : EPG_CAUSE_MALFORMED_FRAME,
                          refusal.text, reply);
    }
    reply->action = frame.body;
    return EPG_OK;
}

/* --- The end. --- */

void epg_policy_end_free(epg_policy_end *end)
{
    epg_buffer_free(&end->log);
    *end = (epg_policy_end){0};
}

/* Asked by the end of its channel, then told, then killed. */
static epg_code end_process(epg_policy *policy, epg_error *err)
{
    const epg_process *process = &policy->seat.process;
    epg_channel_close(&policy->channel);
    bool ended = policy->reaped || (!policy->deaf && wait_for_end(policy, epg_deadline_after_ns(ask_grace)));
    if (!ended) {
        policy->signalled = true;
        epg_process_signal(process, SIGTERM);
        ended = wait_for_end(policy, epg_deadline_after_ns(term_grace));
    }
    if (!ended) {
        epg_process_signal(process, SIGKILL);
        ended = wait_for_end(policy, epg_deadline_after_ns(kill_limit));
    }
    if (!ended) {
        return epg_fail(err, EPG_ERR_EXECUTION, "Policy process %d can't be ended", (int)process->pid);
    }
    reap(policy);
    return EPG_OK;
}

/* What is left in the pipe: bounded, for a process that we could not end may still write. */
static void drain_output(epg_policy *policy)
{
    for (int reads = 0; reads < 16 && readable_now(policy->seat.output); reads++) {
        take_output(policy);
    }
}

epg_code epg_policy_finish(epg_policy *policy, epg_policy_end *out, epg_error *err)
{
    epg_guest *guest = policy->guest;
    epg_policy_end end = {0};
    if (policy->failed && !policy->reaped && policy->seat.hold != NULL) {
        epg_execution_observe(policy->seat.hold);
    }
    epg_code code = end_process(policy, err);
    if (code == EPG_OK) {
        code = epg_guest_end_strays(guest, &end.ended, err);
    }
    drain_output(policy);
    if (code == EPG_OK) {
        end.exit = policy->end.exit;
        end.max_rss_bytes = policy->end.max_rss_bytes;
        end.cpu_ns = policy->end.cpu_ns;
        const epg_guest_end how = {
            .exit = end.exit, .cpu_ns = end.cpu_ns, .failed = policy->failed, .ended = policy->signalled};
        end.killed_by = epg_execution_release(policy->seat.hold, &how);
        policy->seat.hold = NULL;
        end.log_dropped = epg_log_dropped(&policy->log);
        epg_log_text(&policy->log, &end.log);
        *out = end;
    }
    epg_company_leave(guest->company, policy->seat.process.pid);
    epg_log_close(&policy->log);
    epg_seat_close(&policy->seat);
    epg_close_cleanup(&policy->stops);
    free(policy->program_path);
    free(policy->detail);
    free(policy);
    return code;
}
