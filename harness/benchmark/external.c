#include "benchmark/external_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

extern char **environ;

enum { THEIR_IN = 3, THEIR_OUT = 4, BODY_LIMIT = 80 * 1024 * 1024, NAME_MAX_SHOWN = 200, TEXT_SHOWN = 700 };
enum { LOG_LIMIT = 128 * 1024, FAULT_LINES = 20, END_LINES = 5 };

static const int64_t end_grace = EPG_SECOND;
static const int64_t kill_limit = 10 * EPG_SECOND;

/* --- Faults --- */

epg_code epg_external_fails(epg_external *self, const char *call, const char *why, epg_error *err)
{
    bool mute = !self->heard && epg_starts_with(self->name, "cmd:");
    epg_external_show_output(self, FAULT_LINES);
    return epg_fail(err, EPG_ERR_BENCHMARK, "%s: %s failed: %s%s", self->name, call, why,
                    mute ? "; it must speak the protocol of docs/benchmark-protocol.md" : "");
}

epg_code epg_external_breaks(epg_external *self, const char *call, const char *why, epg_error *err)
{
    epg_code code = epg_external_fails(self, call, why, err);
    self->dead = true;
    epg_company_leave(self->channel.company, self->owned.command_pid);
    epg_owned_kill(&self->owned);
    return code;
}

/* Waits until the monitor has told the command's end, or until `deadline`. */
static void await_exit(epg_external *self, int64_t deadline)
{
    while (epg_owned_poll(&self->owned, NULL) == EPG_OK && !self->owned.exited && !self->owned.finished &&
           epg_monotonic_ns() < deadline) {
        struct pollfd wait[] = {{.fd = self->owned.report, .events = POLLIN}, {.fd = self->output, .events = POLLIN}};
        if (poll(wait, EPG_COUNT(wait), epg_poll_timeout_ms(deadline)) > 0 && wait[1].revents != 0) {
            epg_external_take_output(self); /* it may have to get rid of it before it can end */
        }
    }
}

/* It closed its channel or ended: tells which way. */
static epg_code ended(epg_external *self, const char *call, epg_error *err)
{
    EPG_AUTO_FREE char *why = NULL;
    await_exit(self, epg_deadline_after_ns(end_grace));
    epg_cgroup_events events;
    epg_cgroup_read(&self->group, &events);
    if (events.memory_kills > 0) {
        why = epg_strdup("it was killed at its memory limit (--benchmark-memory)");
    } else if (!self->owned.exited) {
        why = epg_strdup("its process closed the channel to the Host");
    } else if (self->owned.exit.signal != 0) {
        why = epg_format("its process was killed by signal %d (%s)", self->owned.exit.signal,
                         strsignal(self->owned.exit.signal));
    } else {
        why = epg_format("its process ended with exit code %d", self->owned.exit.code);
    }
    return epg_external_breaks(self, call, why, err);
}

static epg_code channel_failed(epg_external *self, epg_code code, const char *call, const epg_error *cause,
                               epg_error *err)
{
    if (code == EPG_ERR_TIMEOUT) {
        EPG_AUTO_FREE char *limit = epg_duration_text(self->limit_ns);
        EPG_AUTO_FREE char *why = epg_format("it did not answer within its time limit of %s", limit);
        return epg_external_breaks(self, call, why, err);
    }
    if (code == EPG_ERR_CLOSED || code == EPG_ERR_INTERRUPTED) {
        return ended(self, call, err);
    }
    return epg_external_breaks(self, call, cause->text, err);
}

/* --- Frames --- */

int64_t epg_external_deadline(const epg_external *self)
{
    return self->limit_ns > 0 ? epg_deadline_after_ns(self->limit_ns) : EPG_NEVER;
}

epg_code epg_external_send(epg_external *self, uint8_t type, epg_span head, epg_span tail, const char *call,
                           int64_t deadline, epg_error *err)
{
    epg_error cause = {.text = ""};
    if (self->dead) {
        return epg_external_fails(self, call, "its process is gone", err);
    }
    epg_code code = epg_channel_send2(&self->channel, type, self->sequence, head, tail, deadline, &cause);
    return code == EPG_OK ? EPG_OK : channel_failed(self, code, call, &cause, err);
}

/* The end of the command is heard from its monitor, for a child of it may hold the channel open. What it said before
 * its end counts. */
static epg_code receive(epg_external *self, int64_t deadline, epg_frame *frame, epg_error *cause)
{
    self->channel.cancel = self->owned.report;
    epg_code code = epg_channel_receive(&self->channel, frame, deadline, NULL, cause);
    if (code == EPG_ERR_INTERRUPTED) {
        self->channel.cancel = -1;
        epg_error last = {.text = ""};
        epg_code again = epg_channel_receive(&self->channel, frame, epg_monotonic_ns(), NULL, &last);
        code = again == EPG_OK ? EPG_OK : code;
    }
    return code;
}

static epg_code told_fault(epg_external *self, epg_span body, const char *call, epg_error *err)
{
    epg_span text;
    if (!epg_value_get_string(body, &text)) {
        return epg_external_breaks(self, call, "it told a fault that is no string", err);
    }
    EPG_AUTO_FREE char *shown = epg_printable((const char *)text.data, text.size < TEXT_SHOWN ? text.size : TEXT_SHOWN);
    return epg_external_fails(self, call, shown[0] == '\0' ? "it did not say why" : shown, err);
}

epg_code epg_external_hear(epg_external *self, const char *call, int64_t deadline, epg_frame *frame, epg_error *err)
{
    epg_error cause = {.text = ""};
    epg_frame got = {0};
    if (self->dead) {
        return epg_external_fails(self, call, "its process is gone", err);
    }
    epg_code code = receive(self, deadline, &got, &cause);
    if (code != EPG_OK) {
        return channel_failed(self, code, call, &cause, err);
    }
    if (got.sequence != self->sequence) {
        return epg_external_breaks(self, call, "it sent a frame with another sequence number than the question's", err);
    }
    if (got.body.size > 0 && epg_value_check(got.body, &epg_value_trusted_limits, &cause) != EPG_OK) {
        EPG_AUTO_FREE char *why = epg_format("it sent a frame that is no canonical value: %s", cause.text);
        return epg_external_breaks(self, call, why, err);
    }
    self->heard = true;
    if (got.type == EPG_TELL_FAULT) {
        return told_fault(self, got.body, call, err);
    }
    *frame = got;
    return EPG_OK;
}

static epg_code wrong_type(epg_external *self, const epg_frame *frame, const char *call, epg_error *err)
{
    EPG_AUTO_FREE char *why = epg_format("it sent an unexpected frame of type %u", frame->type);
    return epg_external_breaks(self, call, why, err);
}

/* Asks, and hears the first answer; a new sequence number. */
static epg_code ask_open(epg_external *self, uint8_t type, epg_span body, const char *call, int64_t deadline,
                         epg_frame *frame, epg_error *err)
{
    self->sequence++;
    *frame = (epg_frame){0};
    EPG_TRY(epg_external_send(self, type, body, (epg_span){NULL, 0}, call, deadline, err));
    return epg_external_hear(self, call, deadline, frame, err);
}

epg_code epg_external_ask(epg_external *self, uint8_t type, epg_span body, const char *call, epg_frame *frame,
                          epg_error *err)
{
    EPG_TRY(ask_open(self, type, body, call, epg_external_deadline(self), frame, err));
    if (frame->type != (type | 0x20) && frame->type != EPG_TELL_INVALID) {
        return wrong_type(self, frame, call, err);
    }
    if (frame->type == EPG_TELL_INVALID && type != EPG_ASK_STEP) {
        return wrong_type(self, frame, call, err);
    }
    return EPG_OK;
}

/* --- Spec and plan --- */

static epg_code get_spec(epg_benchmark *benchmark, epg_spec *out, epg_error *err)
{
    epg_external *self = (epg_external *)benchmark;
    EPG_AUTO_BUFFER body = {0};
    epg_frame frame;
    epg_error cause = {.text = ""};
    epg_value_put_map(&body, 1);
    epg_value_put_key(&body, "protocol");
    epg_value_put_text(&body, EPG_EXTERNAL_PROTOCOL);
    EPG_TRY(epg_external_ask(self, EPG_ASK_SPEC, epg_buffer_span(&body), "spec", &frame, err));
    if (epg_spec_from_value(frame.body, out, &cause) != EPG_OK) {
        return epg_external_fails(self, "spec", cause.text, err);
    }
    return EPG_OK;
}

static bool get_episode(epg_span item, epg_episode_spec *out)
{
    epg_value_cursor cursor;
    epg_span seed;
    epg_span scenario;
    if (!epg_value_enter(item, &cursor) || !cursor.is_map || cursor.left != 2 ||
        !epg_value_lookup(item, "environment_seed", &seed) || !epg_value_lookup(item, "scenario", &scenario) ||
        !epg_value_get_u64(seed, &out->environment_seed)) {
        return false;
    }
    (void)epg_buffer_append_span(&out->scenario, scenario);
    return true;
}

static epg_code take_episodes(epg_external *self, epg_span list, epg_episode_spec *out, uint64_t count, uint64_t *have,
                              epg_error *err)
{
    epg_value_cursor cursor;
    epg_span item;
    if (list.size == 0 || epg_value_kind(list) != 'L' || !epg_value_enter(list, &cursor)) {
        return epg_external_breaks(self, "episodes", "it sent Episodes that are no list", err);
    }
    while (epg_value_next(&cursor, NULL, &item)) {
        if (*have == count) {
            EPG_AUTO_FREE char *why = epg_format("it planned more than %llu Episodes", (unsigned long long)count);
            return epg_external_breaks(self, "episodes", why, err);
        }
        if (!get_episode(item, &out[*have])) {
            return epg_external_breaks(self, "episodes",
                                       "an Episode is no map of environment_seed (0 .. 2^64-1) and scenario", err);
        }
        (*have)++;
    }
    return EPG_OK;
}

static epg_code read_plan(epg_external *self, epg_span question, uint64_t count, epg_episode_spec *out, uint64_t *have,
                          epg_error *err)
{
    epg_frame frame;
    int64_t deadline = epg_external_deadline(self);
    EPG_TRY(ask_open(self, EPG_ASK_EPISODES, question, "episodes", deadline, &frame, err));
    while (frame.type == (EPG_ASK_EPISODES | 0x20)) {
        EPG_TRY(take_episodes(self, frame.body, out, count, have, err));
        EPG_TRY(epg_external_hear(self, "episodes", deadline, &frame, err));
    }
    if (frame.type != EPG_TELL_DONE) {
        return wrong_type(self, &frame, "episodes", err);
    }
    if (*have != count) {
        EPG_AUTO_FREE char *why =
            epg_format("it planned %llu Episodes, not %llu", (unsigned long long)*have, (unsigned long long)count);
        return epg_external_fails(self, "episodes", why, err);
    }
    return EPG_OK;
}

static epg_code plan(epg_benchmark *benchmark, const char *split, uint64_t seed, uint64_t count, epg_episode_spec *out,
                     epg_error *err)
{
    EPG_AUTO_BUFFER body = {0};
    uint64_t have = 0;
    epg_value_put_map(&body, 3);
    epg_value_put_key(&body, "count");
    epg_value_put_u64(&body, count);
    epg_value_put_key(&body, "seed");
    epg_value_put_u64(&body, seed);
    epg_value_put_key(&body, "split");
    epg_value_put_text(&body, split);
    epg_code code = read_plan((epg_external *)benchmark, epg_buffer_span(&body), count, out, &have, err);
    for (uint64_t i = 0; code != EPG_OK && i < have; i++) {
        epg_episode_spec_free(&out[i]);
    }
    return code;
}

/* --- Environments --- */

static epg_code open_environment(epg_benchmark *benchmark, const epg_episode_spec *episode, epg_environment **out,
                                 epg_error *err)
{
    epg_external *self = (epg_external *)benchmark;
    EPG_AUTO_BUFFER body = {0};
    epg_frame frame;
    if (self->environment_open) {
        return epg_fail(err, EPG_ERR_INTERNAL, "%s: a second Environment is opened", self->name);
    }
    epg_value_put_map(&body, 2);
    epg_value_put_key(&body, "environment_seed");
    epg_value_put_u64(&body, episode->environment_seed);
    epg_value_put_key(&body, "scenario");
    (void)epg_buffer_append_span(&body, epg_buffer_span(&episode->scenario));
    EPG_TRY(epg_external_ask(self, EPG_ASK_OPEN, epg_buffer_span(&body), "make_environment", &frame, err));
    self->environment_open = true;
    *out = &self->environment;
    return EPG_OK;
}

static epg_code check_observation(epg_external *self, epg_span observation, const char *call, epg_error *err)
{
    epg_error cause = {.text = ""};
    if (observation.size == 0 || epg_observation_check(observation, &cause) != EPG_OK) {
        return epg_external_fails(self, call, observation.size == 0 ? "there is no observation" : cause.text, err);
    }
    return EPG_OK;
}

static epg_code reset(epg_environment *environment, epg_buffer *observation, epg_error *err)
{
    epg_external *self = (epg_external *)environment->benchmark;
    epg_frame frame;
    EPG_TRY(epg_external_ask(self, EPG_ASK_RESET, (epg_span){NULL, 0}, "reset", &frame, err));
    EPG_TRY(check_observation(self, frame.body, "reset", err));
    epg_buffer_clear(observation);
    (void)epg_buffer_append_span(observation, frame.body);
    return EPG_OK;
}

/* The five members of a step, in the order of their keys. */
static bool read_step(epg_span body, epg_span *metrics, epg_span *observation, epg_step *out)
{
    static const char *const keys[] = {"metrics", "observation", "reward", "terminated", "truncated"};
    epg_value_cursor cursor;
    epg_span values[EPG_COUNT(keys)];
    if (body.size == 0 || !epg_value_enter(body, &cursor) || !cursor.is_map || cursor.left != EPG_COUNT(keys)) {
        return false;
    }
    for (size_t i = 0; i < EPG_COUNT(keys); i++) {
        epg_span key;
        if (!epg_value_next(&cursor, &key, &values[i]) || !epg_span_equal(key, epg_span_text(keys[i]))) {
            return false;
        }
    }
    *metrics = values[0];
    *observation = values[1];
    return epg_value_get_float(values[2], &out->reward) && epg_value_get_bool(values[3], &out->terminated) &&
           epg_value_get_bool(values[4], &out->truncated);
}

static epg_code step(epg_environment *environment, epg_span action, epg_step *out, epg_error *err)
{
    epg_external *self = (epg_external *)environment->benchmark;
    epg_frame frame;
    epg_span metrics;
    epg_span observation;
    epg_step_clear(out);
    EPG_TRY(epg_external_ask(self, EPG_ASK_STEP, action, "step", &frame, err));
    if (frame.type == EPG_TELL_INVALID) {
        epg_span reason;
        out->invalid_action = true;
        out->invalid_reason = frame.body.size > 0 && epg_value_get_string(frame.body, &reason)
                                  ? epg_strndup((const char *)reason.data, reason.size)
                                  : epg_strdup("the Environment refused it");
        return EPG_OK;
    }
    if (!read_step(frame.body, &metrics, &observation, out)) {
        return epg_external_breaks(self, "step",
                                   "a Step must be a map of metrics, observation, reward (a float), terminated and "
                                   "truncated (bools)",
                                   err);
    }
    EPG_TRY(check_observation(self, observation, "step", err));
    (void)epg_buffer_append_span(&out->observation, observation);
    (void)epg_buffer_append_span(&out->metrics, metrics);
    return EPG_OK;
}

static epg_code close_environment(epg_environment *environment, epg_error *err)
{
    epg_external *self = (epg_external *)environment->benchmark;
    epg_frame frame;
    self->environment_open = false;
    if (self->dead) {
        return EPG_OK; /* it went with the process, which was told already */
    }
    return epg_external_ask(self, EPG_ASK_CLOSE, (epg_span){NULL, 0}, "close", &frame, err);
}

/* --- Life --- */

static pid_t get_process(const epg_benchmark *benchmark)
{
    return ((const epg_external *)benchmark)->owned.monitor.pid;
}

/* Asked by the end of the channel, then SIGTERM, then SIGKILL. */
static void destroy(epg_benchmark *benchmark)
{
    epg_external *self = (epg_external *)benchmark;
    epg_company_leave(self->channel.company, self->owned.command_pid);
    epg_channel_close(&self->channel);
    if (!self->dead) {
        await_exit(self, epg_deadline_after_ns(end_grace));
    }
    if (!self->dead && !self->owned.exited) {
        epg_owned_terminate(&self->owned, end_grace);
        await_exit(self, epg_deadline_after_ns(2 * end_grace));
    }
    (void)epg_owned_finish(&self->owned, epg_deadline_after_ns(kill_limit), NULL);
    epg_cgroup_remove(&self->group);
    epg_external_show_output(self, END_LINES);
    epg_close_cleanup(&self->output);
    epg_log_close(&self->log);
    free(self->name);
    free(self);
}

/* The pipes between us and it: questions, answers, and what it prints; -1 for an end that is closed. */
typedef struct pipes {
    int question[2], answer[2], output[2];
} pipes;

static epg_code start_process(const epg_external_start *start, const pipes *with, const epg_cgroup *group,
                              epg_owned *out, epg_error *err)
{
    int joins[2];
    EPG_AUTO_CLOSE int directory = -1;
    if (start->directory != NULL) {
        directory = open(start->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0) {
            return epg_fail_errno(err, errno, "can't open the directory %s", start->directory);
        }
    }
    const epg_fd_map fds[] = {{with->question[0], THEIR_IN},
                              {with->answer[1], THEIR_OUT},
                              {with->output[1], STDOUT_FILENO},
                              {with->output[1], STDERR_FILENO}};
    const epg_spawn spawn = {
        .argv = start->argv,
        .environment = start->environment != NULL ? start->environment : (const char *const *)environ,
        .search_path = getenv("PATH"),
        .working_directory = directory,
        .fds = fds,
        .fd_count = EPG_COUNT(fds),
        .groups = joins,
        .group_count = (size_t)epg_cgroup_open_joins(group, joins),
        .data_bytes = group->memory == NULL ? start->memory_bytes : 0,
    };
    epg_code code = epg_owned_start(&spawn, out, err);
    for (size_t i = 0; i < spawn.group_count; i++) {
        (void)close(joins[i]);
    }
    return code;
}

static void close_pipes(pipes *of)
{
    int *const ends[] = {&of->question[0], &of->question[1], &of->answer[0],
                         &of->answer[1],   &of->output[0],   &of->output[1]};
    for (size_t i = 0; i < EPG_COUNT(ends); i++) {
        epg_close_cleanup(ends[i]);
    }
}

static epg_code open_pipes(pipes *out, epg_error *err)
{
    if (pipe2(out->question, O_CLOEXEC) != 0 || pipe2(out->answer, O_CLOEXEC) != 0 ||
        pipe2(out->output, O_CLOEXEC) != 0) {
        return epg_fail_errno(err, errno, "can't make a pipe");
    }
    return EPG_OK;
}

/* Takes the ends that are ours. */
static void take_pipes(epg_external *self, pipes *from)
{
    epg_channel_open(&self->channel, from->answer[0], from->question[1], BODY_LIMIT);
    epg_channel_be_patient(&self->channel);
    self->output = from->output[0];
    (void)fcntl(self->output, F_SETFL, O_NONBLOCK);
    epg_log_open(&self->log, LOG_LIMIT);
    self->channel.aside = (epg_aside){.fd = self->output, .serve = epg_external_take_output, .context = self};
    from->answer[0] = from->question[1] = from->output[0] = -1;
}

epg_code epg_external_open(const epg_external_start *start, epg_benchmark **out, epg_error *err)
{
    static const epg_benchmark_vtable vtable = {
        .spec = get_spec,
        .episodes = plan,
        .open = open_environment,
        .reset = reset,
        .step = step,
        .close = close_environment,
        .feedback = epg_external_feedback,
        .destroy = destroy,
        .process = get_process,
        .baseline = epg_external_baseline,
    };
    EPG_CLEANUP(close_pipes) pipes ends = {{-1, -1}, {-1, -1}, {-1, -1}};
    epg_error cause = {.text = ""};
    epg_owned owned = {.control = -1, .report = -1};
    epg_cgroup group = {0};
    EPG_AUTO_FREE char *name = epg_printable(start->name, strnlen(start->name, NAME_MAX_SHOWN));
    EPG_TRY(open_pipes(&ends, err));
    if (start->memory_bytes > 0) {
        epg_cgroup_make(start->memory_bytes, 0, &group);
    }
    epg_code code = start_process(start, &ends, &group, &owned, &cause);
    if (code != EPG_OK) {
        epg_cgroup_remove(&group);
        return epg_fail(err, code == EPG_ERR_EXECUTION ? code : EPG_ERR_USAGE, "%s can't be started: %s", name,
                        cause.text);
    }
    epg_external *self = epg_alloc(sizeof *self);
    *self = (epg_external){.base.vtable = &vtable,
                           .name = EPG_TAKE(name),
                           .owned = owned,
                           .limit_ns = start->call_limit_ns,
                           .group = group};
    self->environment.benchmark = &self->base;
    take_pipes(self, &ends);
    self->channel.company = start->company;
    epg_company_enter(start->company, owned.command_pid);
    *out = &self->base;
    return EPG_OK;
}
