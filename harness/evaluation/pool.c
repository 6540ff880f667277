#include "evaluation/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/files.h"

enum { SEND_LIMIT_S = 60, START_LIMIT_S = 300, END_LIMIT_S = 10 };

extern char **environ;

static char *copy_or_null(const char *text)
{
    return text != NULL ? epg_strdup(text) : NULL;
}

static void set_worker_config(epg_pool *pool)
{
    const epg_pool_config *config = &pool->config;
    pool->worker_config = (epg_worker_config){
        .benchmark = copy_or_null(config->benchmark),
        .benchmark_python = copy_or_null(config->benchmark_options.python),
        .benchmark_memory = config->benchmark_options.memory_bytes,
        .source_root = copy_or_null(config->benchmark_options.source_root),
        .python = copy_or_null(config->execution.python),
        .preload = copy_or_null(config->execution.preload),
        .guest_root = copy_or_null(config->execution.guest_root),
        .profile = config->execution.profile,
        .limits = config->execution.limits,
        .call_limit_ns = config->call_limit_ns,
        .policy_limit_ns = epg_duration_ns(config->episode_timeout_seconds),
    };
}

epg_code epg_pool_send(epg_pool_worker *worker, uint8_t type, epg_span body, epg_error *err)
{
    epg_code code = epg_channel_send(&worker->channel, type, ++worker->sequence, body,
                                     epg_deadline_after_seconds(SEND_LIMIT_S), err);
    return code == EPG_ERR_CLOSED ? epg_pool_worker_gone(worker, err) : code;
}

/* A private directory for Episodes' files: in memory where that can be had, since they live for milliseconds. */
static char *make_scratch(void)
{
    enum { ROOM = 256 * 1024 * 1024 };
    static const char memory[] = "/dev/shm";
    const char *base = getenv("TMPDIR");
    struct statvfs info;
    if (base == NULL || base[0] != '/') {
        bool usable = statvfs(memory, &info) == 0 && (info.f_flag & (ST_NOEXEC | ST_RDONLY)) == 0 &&
                      access(memory, W_OK | X_OK) == 0 && info.f_bavail * info.f_frsize >= ROOM;
        base = usable ? memory : "/tmp";
    }
    EPG_AUTO_FREE char *path = epg_format("%s/epg-worker-XXXXXX", base);
    return mkdtemp(path) != NULL ? EPG_TAKE(path) : NULL;
}

/* Our environment with EPG_SCRATCH in it. All texts are borrowed. */
static const char **worker_environment(const char *scratch)
{
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    const char **out = epg_alloc_array(count + 2, sizeof *out);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        /* Faults are played in the coordinator alone: what it writes is what must survive. */
        if (strncmp(environ[i], "EPG_SCRATCH=", 12) != 0 && strncmp(environ[i], "EPG_IO_FAULT=", 13) != 0) {
            out[kept++] = environ[i];
        }
    }
    out[kept] = scratch;
    return out;
}

static epg_code spawn(epg_pool *pool, epg_pool_worker *worker, epg_error *err)
{
    int input[2];
    int output[2];
    if (pipe2(input, O_CLOEXEC) != 0) {
        return epg_fail_errno(err, errno, "can't make a pipe");
    }
    if (pipe2(output, O_CLOEXEC) != 0) {
        int reason = errno;
        (void)close(input[0]);
        (void)close(input[1]);
        return epg_fail_errno(err, reason, "can't make a pipe");
    }
    const char *argv[] = {pool->executable, "worker", NULL};
    EPG_AUTO_FREE char *scratch = make_scratch();
    EPG_AUTO_FREE char *variable = epg_format("EPG_SCRATCH=%s", scratch != NULL ? scratch : "");
    EPG_AUTO_FREE const char **environment = worker_environment(variable);
    epg_fd_map fds[] = {{input[0], STDIN_FILENO},
                        {output[1], STDOUT_FILENO},
                        {STDERR_FILENO, STDERR_FILENO},
                        {-1, EPG_RUNNING_DESCRIPTOR}};
    worker->running = epg_running_new(&fds[3].from);
    epg_spawn how = {.argv = argv,
                     .environment = environment,
                     .working_directory = -1,
                     .fds = fds,
                     .fd_count = EPG_COUNT(fds) - (worker->running == NULL ? 1 : 0),
                     .remove_after = scratch,
                     .never_stopped = true}; /* what runs in it may stop it, and its watchdog is in it too */
    epg_code code = scratch != NULL ? epg_owned_start(&how, &worker->owned, err)
                                    : epg_fail_errno(err, errno, "can't make a scratch directory");
    (void)close(input[0]);
    (void)close(output[1]);
    if (fds[3].from >= 0) {
        (void)close(fds[3].from);
    }
    if (code != EPG_OK) {
        epg_running_close(worker->running);
        (void)close(input[1]);
        (void)close(output[0]);
        if (scratch != NULL) {
            (void)rmdir(scratch);
        }
        return code;
    }
    epg_channel_open(&worker->channel, output[0], input[1], EPG_WIRE_BODY_LIMIT);
    return EPG_OK;
}

epg_code epg_pool_start_worker(epg_pool *pool, epg_pool_worker *worker, epg_error *err)
{
    *worker = (epg_pool_worker){.state = EPG_WORKER_NONE};
    if (spawn(pool, worker, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_EXECUTION, "can't start a worker");
    }
    worker->state = EPG_WORKER_STARTING;
    EPG_AUTO_BUFFER body = {0};
    epg_wire_put_config(&body, &pool->worker_config);
    epg_code code = epg_pool_send(worker, EPG_WIRE_CONFIGURE, epg_buffer_span(&body), err);
    if (code != EPG_OK) {
        epg_pool_kill_worker(worker);
    }
    return code;
}

epg_code epg_pool_worker_ready(epg_pool *pool, epg_pool_worker *worker, epg_span spec, epg_error *err)
{
    if (pool->spec_bytes.size == 0) {
        if (epg_spec_from_value(spec, &pool->spec, err) != EPG_OK) {
            return epg_fail_as(err, EPG_ERR_EXECUTION, "worker");
        }
        (void)epg_buffer_append_span(&pool->spec_bytes, spec);
    } else if (!epg_span_equal(spec, epg_buffer_span(&pool->spec_bytes))) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "spec: two processes of the Benchmark gave different specs");
    }
    worker->state = EPG_WORKER_IDLE;
    return EPG_OK;
}

void epg_pool_kill_worker(epg_pool_worker *worker)
{
    if (worker->state == EPG_WORKER_NONE) {
        return;
    }
    epg_channel_close(&worker->channel);
    epg_owned_kill(&worker->owned);
    (void)epg_owned_finish(&worker->owned, epg_deadline_after_seconds(END_LIMIT_S), NULL);
    epg_running_close(worker->running);
    worker->running = NULL;
    worker->state = EPG_WORKER_NONE;
}

epg_code epg_pool_worker_gone(epg_pool_worker *worker, epg_error *err)
{
    epg_owned *owned = &worker->owned;
    int64_t deadline = epg_deadline_after_seconds(END_LIMIT_S);
    epg_owned_kill(owned);
    while (!owned->exited && !owned->finished && epg_monotonic_ns() < deadline &&
           epg_owned_poll(owned, NULL) == EPG_OK) {
        struct pollfd said = {.fd = owned->report, .events = POLLIN};
        (void)poll(&said, 1, 10);
    }
    if (!owned->exited) {
        return epg_fail(err, EPG_ERR_EXECUTION, "a worker ended unexpectedly, and its monitor did not tell how");
    }
    epg_exit how = owned->exit;
    EPG_AUTO_FREE char *call = epg_running_text(worker->running);
    EPG_AUTO_FREE char *end = how.signal != 0
                                  ? epg_format("was ended by signal %d (%s)", how.signal, strsignal(how.signal))
                                  : epg_format("ended unexpectedly (exit code %d)", how.code);
    return call != NULL ? epg_fail(err, EPG_ERR_BENCHMARK, "%s failed: the process that it runs in %s", call, end)
                        : epg_fail(err, EPG_ERR_EXECUTION, "a worker %s", end);
}

/* One frame, blocking; a fault frame becomes the error. */
static epg_code receive(epg_pool_worker *worker, epg_frame *frame, epg_error *err)
{
    epg_code code = epg_channel_receive(&worker->channel, frame, epg_deadline_after_seconds(START_LIMIT_S), NULL, err);
    if (code == EPG_ERR_CLOSED) {
        return epg_pool_worker_gone(worker, err);
    }
    if (code != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_EXECUTION, "worker");
    }
    return frame->type == EPG_WIRE_FAULT ? epg_wire_get_fault(frame->body, err) : EPG_OK;
}

static epg_code unexpected(const epg_frame *frame, epg_error *err)
{
    return epg_fail(err, EPG_ERR_EXECUTION, "a worker sent an unexpected frame of type %u", frame->type);
}

static epg_code start_and_wait(epg_pool *pool, epg_pool_worker *worker, epg_error *err)
{
    epg_frame frame;
    EPG_TRY(epg_pool_start_worker(pool, worker, err));
    epg_code code = receive(worker, &frame, err);
    if (code == EPG_OK) {
        code = frame.type == EPG_WIRE_SPEC ? epg_pool_worker_ready(pool, worker, frame.body, err)
                                           : unexpected(&frame, err);
    }
    if (code != EPG_OK) {
        epg_pool_kill_worker(worker);
    }
    return code;
}

epg_code epg_pool_keep_records(epg_pool *pool, const char *directory, bool durable, epg_error *err)
{
    EPG_TRY(epg_dir_open(AT_FDCWD, directory, &pool->spool_directory, err));
    pool->durable = durable;
    return EPG_OK;
}

epg_code epg_pool_open(const epg_pool_config *config, epg_pool **out, epg_error *err)
{
    epg_pool *pool = epg_alloc(sizeof *pool);
    pool->config = *config;
    set_worker_config(pool);
    pool->workers = epg_alloc_array(config->jobs, sizeof *pool->workers);
    pool->executable = epg_own_executable();
    pool->spool_directory = -1;
    epg_code code = start_and_wait(pool, &pool->workers[0], err);
    if (code != EPG_OK) {
        epg_pool_close(pool);
        return code;
    }
    *out = pool;
    return EPG_OK;
}

void epg_pool_close(epg_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    for (unsigned i = 0; i < pool->config.jobs; i++) {
        epg_pool_kill_worker(&pool->workers[i]);
    }
    free(pool->workers);
    epg_worker_config_free(&pool->worker_config);
    epg_spec_free(&pool->spec);
    epg_buffer_free(&pool->spec_bytes);
    free(pool->executable);
    if (pool->spool_directory >= 0) {
        (void)close(pool->spool_directory);
    }
    free(pool);
}

const epg_spec *epg_pool_spec(const epg_pool *pool)
{
    return &pool->spec;
}

/* A worker that is ready and has nothing to do; started anew after a fault. */
static epg_code ready_worker(epg_pool *pool, epg_pool_worker **out, epg_error *err)
{
    for (unsigned i = 0; i < pool->config.jobs; i++) {
        if (pool->workers[i].state == EPG_WORKER_IDLE) {
            *out = &pool->workers[i];
            return EPG_OK;
        }
    }
    for (unsigned i = 0; i < pool->config.jobs; i++) {
        if (pool->workers[i].state == EPG_WORKER_NONE) {
            *out = &pool->workers[i];
            return start_and_wait(pool, *out, err);
        }
    }
    return epg_fail(err, EPG_ERR_INTERNAL, "no worker is free");
}

static epg_code take_plan(epg_pool_worker *worker, epg_episode_spec *specs, uint64_t count, epg_error *err)
{
    uint64_t at = 0;
    for (;;) {
        epg_frame frame;
        EPG_TRY(receive(worker, &frame, err));
        if (frame.type == EPG_WIRE_DONE && at == count) {
            return EPG_OK;
        }
        if (frame.type != EPG_WIRE_PLANNED) {
            return unexpected(&frame, err);
        }
        EPG_TRY(epg_wire_get_planned(frame.body, specs, count, &at, err));
    }
}

epg_code epg_pool_plan(epg_pool *pool, const char *split, uint64_t seed, uint64_t count, epg_episode_spec **out,
                       epg_error *err)
{
    epg_pool_worker *worker = NULL;
    EPG_AUTO_BUFFER body = {0};
    epg_code code = ready_worker(pool, &worker, err);
    if (code != EPG_OK || worker == NULL) {
        return code;
    }
    epg_wire_put_plan(&body, split, seed, count);
    epg_episode_spec *specs = epg_alloc_array(count, sizeof *specs);
    code = epg_pool_send(worker, EPG_WIRE_PLAN, epg_buffer_span(&body), err);
    if (code == EPG_OK) {
        code = take_plan(worker, specs, count, err);
    }
    if (code != EPG_OK) {
        epg_pool_kill_worker(worker);
        for (uint64_t i = 0; i < count; i++) {
            epg_episode_spec_free(&specs[i]);
        }
        free(specs);
        return code;
    }
    *out = specs;
    return EPG_OK;
}
