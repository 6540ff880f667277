/* A worker: straight-line code that answers the coordinator's frames (wire.h), one Episode at a time.
 *
 * It holds the Benchmark, the guest server and a private scratch directory. It is a subreaper, so whatever a Policy
 * leaves behind becomes its child and is ended after the Episode. The end of its input ends it; while it waits on a
 * Policy that input is watched too, and anything on it then means "stop". A trusted fault is told in one 'X' frame and
 * ends the worker: after a fault nothing in this process is trusted to be clean. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "evaluation/wire.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

enum { SEND_LIMIT_S = 60, PLAN_PIECE = 4096, PLAN_PIECE_BYTES = 1 << 20 };

typedef struct worker {
    epg_channel channel;
    uint32_t sequence; /* of the request being answered */
    epg_worker_config config;
    epg_benchmark *benchmark;
    epg_spec spec;
    epg_guest *guest;
    epg_execution execution;
    epg_program program;
    bool have_program;
    epg_running *running;
    epg_watchdog *watchdog;
    epg_company *company;
    char *private_path; /* of this worker alone; what is in it may be shown to a sandbox's user */
    int private_directory;
    char *scratch_path; /* in it: where Episodes have their directories */
    int scratch;
} worker;

static epg_code reply(worker *self, uint8_t type, epg_span body, epg_error *err)
{
    return epg_channel_send(&self->channel, type, self->sequence, body, epg_deadline_after_seconds(SEND_LIMIT_S), err);
}

static epg_code open_benchmark(worker *self, epg_error *err)
{
    const char *python = self->config.benchmark_python;
    epg_benchmark_options options = {.python = python != NULL ? python : self->config.python,
                                     .call_limit_ns = self->config.call_limit_ns,
                                     .memory_bytes = self->config.benchmark_memory,
                                     .company = self->company,
                                     .source_root = self->config.source_root};
    int64_t began = epg_watchdog_begin(self->watchdog, "open");
    epg_code code = epg_benchmark_open(self->config.benchmark, &options, &self->benchmark, err);
    if (code == EPG_OK) {
        (void)epg_watchdog_begin(self->watchdog, "spec");
        code = epg_benchmark_spec(self->benchmark, &self->spec, err);
        if (code == EPG_OK) {
            code = epg_spec_check(&self->spec, err);
        }
        if (code != EPG_OK) {
            code = epg_fail_as(err, EPG_ERR_BENCHMARK, "spec");
        }
    }
    (void)epg_watchdog_end(self->watchdog, began);
    return code;
}

static epg_code configure(worker *self, epg_span body, epg_error *err)
{
    EPG_TRY(epg_wire_get_config(body, &self->config, err));
    if (!epg_starts_with(self->config.benchmark, "python:") && !epg_starts_with(self->config.benchmark, "cmd:")) {
        epg_running_name(self->running, self->config.benchmark); /* it runs in this process */
    }
    /* An external Benchmark's own limit passes first and says more. */
    int64_t limit = self->config.call_limit_ns;
    EPG_TRY(epg_watchdog_open(self->channel.out, limit + limit / 10, self->running, &self->watchdog, err));
    EPG_TRY(open_benchmark(self, err));
    self->execution = (epg_execution){.profile = self->config.profile,
                                      .python = self->config.python,
                                      .preload = self->config.preload,
                                      .guest_root = self->config.guest_root,
                                      .scratch = self->scratch_path,
                                      .limits = self->config.limits};
    EPG_AUTO_BUFFER spec = {0};
    epg_spec_to_value(&self->spec, &spec);
    return reply(self, EPG_WIRE_SPEC, epg_buffer_span(&spec), err);
}

static void free_specs(epg_episode_spec *specs, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        epg_episode_spec_free(&specs[i]);
    }
    free(specs);
}

/* How many of the Episodes go into one frame: scenarios can be large. */
static size_t plan_piece(const epg_episode_spec *specs, uint64_t count)
{
    size_t taken = 0;
    for (size_t bytes = 0; taken < count && taken < PLAN_PIECE && bytes < PLAN_PIECE_BYTES; taken++) {
        bytes += specs[taken].scenario.size;
    }
    return taken;
}

static epg_code send_plan(worker *self, const epg_episode_spec *specs, uint64_t count, epg_error *err)
{
    for (uint64_t at = 0; at < count;) {
        EPG_AUTO_BUFFER body = {0};
        size_t size = plan_piece(specs + at, count - at);
        epg_wire_put_planned(&body, specs + at, size);
        EPG_TRY(reply(self, EPG_WIRE_PLANNED, epg_buffer_span(&body), err));
        at += size;
    }
    return reply(self, EPG_WIRE_DONE, (epg_span){0}, err);
}

static epg_code plan(worker *self, epg_span body, epg_error *err)
{
    EPG_AUTO_FREE char *split = NULL;
    uint64_t seed = 0;
    uint64_t count = 0;
    EPG_TRY(epg_wire_get_plan(body, &split, &seed, &count, err));
    epg_episode_spec *specs = epg_alloc_array(count, sizeof *specs);
    int64_t began = epg_watchdog_begin(self->watchdog, "episodes");
    epg_code code = self->benchmark->vtable->episodes(self->benchmark, split, seed, count, specs, err);
    (void)epg_watchdog_end(self->watchdog, began);
    if (code != EPG_OK) {
        /* A split that there is not is the user's mistake, and the text names those that there are. */
        code = code == EPG_ERR_USAGE ? code : epg_fail_as(err, EPG_ERR_BENCHMARK, "episodes");
    } else {
        code = send_plan(self, specs, count, err);
    }
    free_specs(specs, count);
    return code;
}

static epg_code take_program(worker *self, epg_span body, epg_error *err)
{
    epg_program program;
    epg_program_limits none = {.files = UINT32_MAX, .total_bytes = UINT32_MAX, .file_bytes = UINT32_MAX};
    EPG_TRY(epg_program_unpack(body, &none, &program, err));
    if (self->have_program) {
        epg_program_free(&self->program);
    }
    self->program = program;
    self->have_program = true;
    return EPG_OK;
}

static epg_code send_record(void *context, epg_buffer *record, epg_error *err)
{
    epg_code code = reply(context, EPG_WIRE_RECORD, epg_buffer_span(record), err);
    epg_buffer_clear(record);
    return code;
}

static epg_code run_episode(worker *self, epg_span body, epg_error *err)
{
    epg_episode_spec spec = {0};
    uint64_t policy_seed = 0;
    epg_code code = epg_wire_get_episode(body, &spec, &policy_seed, err);
    if (code == EPG_OK && !self->have_program) {
        code = epg_fail(err, EPG_ERR_PROTOCOL, "an Episode without a Program");
    }
    if (code == EPG_OK && self->guest == NULL) {
        code = epg_guest_open(&self->execution, self->channel.in, &self->guest, err);
        if (code == EPG_OK) {
            epg_guest_join(self->guest, self->company);
        }
        if (code == EPG_OK && self->benchmark->vtable->process != NULL) {
            epg_guest_keep(self->guest, self->benchmark->vtable->process(self->benchmark));
        }
    }
    if (code == EPG_OK) {
        epg_episode_setup setup = {.benchmark = self->benchmark,
                                   .spec = &self->spec,
                                   .guest = self->guest,
                                   .program = &self->program,
                                   .scratch = self->scratch,
                                   .scratch_path = self->scratch_path,
                                   .policy_limit_ns = self->config.policy_limit_ns,
                                   .watchdog = self->watchdog,
                                   .company = self->company,
                                   .sink = send_record,
                                   .sink_context = self};
        EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
        code = epg_episode_run(&setup, &spec, policy_seed, &outcome, err);
        if (code == EPG_OK) {
            EPG_AUTO_BUFFER out = {0};
            epg_wire_put_outcome(&out, &outcome);
            code = reply(self, EPG_WIRE_OUTCOME, epg_buffer_span(&out), err);
        }
    }
    epg_episode_spec_free(&spec);
    return code;
}

/* Asks the coordinator for a piece of a record and waits for it. */
static epg_code fetch_piece(void *context, uint64_t index, uint64_t offset, epg_buffer *out, uint64_t *size,
                            epg_record_end *end, epg_error *err)
{
    enum { PIECE_HEAD = 25 };
    worker *self = context;
    uint8_t want[16];
    (void)epg_watchdog_begin(self->watchdog, "feedback"); /* its time begins anew: there is much to read, perhaps */
    epg_write_be64(want, index);
    epg_write_be64(want + 8, offset);
    EPG_TRY(reply(self, EPG_WIRE_WANT, epg_span_of(want, sizeof want), err));
    epg_frame frame;
    EPG_TRY(epg_channel_receive(&self->channel, &frame, EPG_NEVER, NULL, err));
    if (frame.type != EPG_WIRE_PIECE || frame.body.size <= PIECE_HEAD) {
        return epg_fail(err, EPG_ERR_PROTOCOL, "unexpected frame '%c' instead of a record's piece", frame.type);
    }
    const uint8_t *bytes = frame.body.data;
    *size = epg_read_be64(bytes);
    end->failure = (epg_policy_failure)bytes[8];
    end->steps = epg_read_be64(bytes + 9);
    uint64_t bits = epg_read_be64(bytes + 17);
    memcpy(&end->reward, &bits, sizeof bits);
    (void)epg_buffer_append(out, bytes + PIECE_HEAD, frame.body.size - PIECE_HEAD);
    return EPG_OK;
}

static epg_code send_artifact(worker *self, const epg_artifact *artifact, epg_error *err)
{
    EPG_AUTO_BUFFER head = {0};
    epg_wire_put_artifact(&head, artifact);
    EPG_TRY(reply(self, EPG_WIRE_ARTIFACT, epg_buffer_span(&head), err));
    for (size_t at = 0; at < artifact->content.size; at += EPG_WIRE_PIECE_SIZE) {
        size_t left = artifact->content.size - at;
        epg_span piece =
            epg_span_of(artifact->content.data + at, left < EPG_WIRE_PIECE_SIZE ? left : EPG_WIRE_PIECE_SIZE);
        EPG_TRY(reply(self, EPG_WIRE_CONTENT, piece, err));
    }
    return EPG_OK;
}

static epg_code send_feedback(worker *self, const epg_feedback *feedback, epg_error *err)
{
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        EPG_TRY(send_artifact(self, &feedback->artifacts[i], err));
    }
    EPG_AUTO_BUFFER out = {0};
    epg_wire_put_result(&out, feedback);
    return reply(self, EPG_WIRE_RESULT, epg_buffer_span(&out), err);
}

static epg_code make_feedback(worker *self, epg_span body, epg_error *err)
{
    uint64_t count = 0;
    if (!epg_value_get_u64(body, &count)) {
        return epg_fail(err, EPG_ERR_PROTOCOL, "feedback without a count");
    }
    epg_record_reader *reader = epg_record_reader_new(fetch_piece, self, count);
    epg_records records;
    epg_record_reader_records(reader, &records);
    EPG_CLEANUP(epg_feedback_free) epg_feedback feedback = {0};
    int64_t began = epg_watchdog_begin(self->watchdog, "feedback");
    epg_code code = self->benchmark->vtable->feedback(self->benchmark, &records, &feedback, err);
    (void)epg_watchdog_end(self->watchdog, began);
    epg_record_reader_free(reader);
    if (code != EPG_OK || epg_feedback_check(&feedback, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "feedback");
    }
    return send_feedback(self, &feedback, err);
}

static epg_code answer(worker *self, const epg_frame *frame, epg_error *err)
{
    self->sequence = frame->sequence;
    if ((frame->type == EPG_WIRE_CONFIGURE) == (self->benchmark != NULL)) {
        return epg_fail(err, EPG_ERR_PROTOCOL, "a worker is configured once, before all else");
    }
    switch (frame->type) {
    case EPG_WIRE_CONFIGURE:
        return configure(self, frame->body, err);
    case EPG_WIRE_PLAN:
        return plan(self, frame->body, err);
    case EPG_WIRE_PROGRAM:
        return take_program(self, frame->body, err);
    case EPG_WIRE_EPISODE:
        return run_episode(self, frame->body, err);
    case EPG_WIRE_FEEDBACK:
        return make_feedback(self, frame->body, err);
    default:
        return epg_fail(err, EPG_ERR_PROTOCOL, "unexpected frame of type %u", frame->type);
    }
}

static epg_code serve(worker *self, epg_error *err)
{
    for (;;) {
        epg_frame frame;
        epg_code code = epg_channel_receive(&self->channel, &frame, EPG_NEVER, NULL, err);
        if (code == EPG_ERR_CLOSED) {
            return EPG_OK;
        }
        EPG_TRY(code);
        EPG_TRY(answer(self, &frame, err));
    }
}

static epg_code make_scratch(worker *self, epg_error *err)
{
    const char *given = getenv("EPG_SCRATCH"); /* the coordinator's; our monitor removes it */
    if (given != NULL && given[0] == '/') {
        self->private_path = epg_strdup(given);
        EPG_TRY(epg_dir_open(AT_FDCWD, given, &self->private_directory, err));
    } else {
        EPG_TRY(epg_tree_temporary("epg-worker-", &self->private_path, &self->private_directory, err));
    }
    if (epg_io_mkdir(self->private_directory, "episodes", 0755) != 0) {
        return epg_fail_errno(err, errno, "can't make a directory for Episodes");
    }
    self->scratch_path = epg_format("%s/episodes", self->private_path);
    return epg_dir_open(self->private_directory, "episodes", &self->scratch, err);
}

static void close_worker(worker *self)
{
    if (self->guest != NULL) {
        epg_guest_close(self->guest);
    }
    epg_benchmark_destroy(self->benchmark);
    epg_spec_free(&self->spec);
    if (self->have_program) {
        epg_program_free(&self->program);
    }
    if (self->private_directory >= 0) {
        (void)epg_tree_remove(AT_FDCWD, self->private_path, 0, NULL);
    }
    epg_close_cleanup(&self->private_directory);
    epg_close_cleanup(&self->scratch);
    free(self->scratch_path);
    free(self->private_path);
    epg_watchdog_close(self->watchdog);
    epg_running_close(self->running);
    epg_company_free(self->company);
    epg_worker_config_free(&self->config);
    epg_channel_close(&self->channel);
}

int epg_worker_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    epg_error err = {.text = ""};
    worker self = {.private_directory = -1, .scratch = -1, .company = epg_company_new(), .running = epg_running_join()};
    (void)signal(SIGPIPE, SIG_IGN);
    /* The terminal's Ctrl-C is for the coordinator, which ends us by closing our input. */
    (void)signal(SIGINT, SIG_IGN);
    (void)epg_become_subreaper();
    epg_channel_open(&self.channel, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3),
                     EPG_WIRE_BODY_LIMIT);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* what a Benchmark prints must not become a frame */
    epg_code code = make_scratch(&self, &err);
    if (code == EPG_OK) {
        code = serve(&self, &err);
    }
    if (code != EPG_OK) {
        EPG_AUTO_BUFFER fault = {0};
        epg_wire_put_fault(&fault, &err);
        (void)reply(&self, EPG_WIRE_FAULT, epg_buffer_span(&fault), &err);
    }
    close_worker(&self);
    (void)close(null);
    return code == EPG_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
