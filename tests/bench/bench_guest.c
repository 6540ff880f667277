/* How fast a Policy process is ready, answers, and is replaced, against what the machine itself can do in the same run.
 *
 * Run it on an idle machine: bench_guest [PYTHON]. A round measures the floor and ours one after the other, so that
 * what disturbs one disturbs both. Latencies are medians of rounds; round trips are the best round, for other work on
 * the machine only ever adds to them. */
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/guests.h"
#include "support/support.h"

enum { ROUNDS = 9, ACT_ROUNDS = 200, ACTS = 200, SETTLE_US = 60000 };

static const char trivial_policy[] = "class P:\n"
                                     "    def act(self, observation):\n"
                                     "        return 1\n"
                                     "def make_policy(context):\n"
                                     "    return P()\n";

static void give_up(const char *what, const epg_error *err)
{
    (void)fprintf(stderr, "bench_guest: %s: %s\n", what, err->text);
    exit(EXIT_FAILURE);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static double ms_since(int64_t began)
{
    return (double)(epg_monotonic_ns() - began) / 1e6;
}

static epg_execution execution;
static epg_guest *guest;
static char *program;

/* --- Floors. --- */

static double bare_start_ms(const char *python)
{
    const char *const argv[] = {python, "-I", "-S", "-c", "pass", NULL};
    const epg_spawn spawn = {.argv = argv, .working_directory = -1};
    epg_error err = {0};
    epg_process process;
    int64_t began = epg_monotonic_ns();
    if (epg_process_spawn(&spawn, &process, &err) != EPG_OK ||
        epg_process_wait(&process, EPG_NEVER, NULL, &err) != EPG_OK) {
        give_up("bare start", &err);
    }
    return ms_since(began);
}

typedef struct echo {
    epg_process process;
    int to, from;
} echo;

/* A Python that gives back what it reads: two system calls and nothing else. */
static echo echo_start(const char *python)
{
    static const char code[] =
        "import os\nwhile True:\n    d = os.read(0, 65536)\n    if not d: break\n    os.write(1, d)\n";
    const char *const argv[] = {python, "-I", "-S", "-c", code, NULL};
    int to[2];
    int from[2];
    epg_error err = {0};
    echo self;
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
        perror("pipe");
        exit(EXIT_FAILURE);
    }
    const epg_fd_map fds[] = {{to[0], 0}, {from[1], 1}};
    const epg_spawn spawn = {.argv = argv, .working_directory = -1, .fds = fds, .fd_count = EPG_COUNT(fds)};
    if (epg_process_spawn(&spawn, &self.process, &err) != EPG_OK) {
        give_up("echo", &err);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    self.to = to[1];
    self.from = from[0];
    return self;
}

static void echo_turn(const echo *self, char *data, size_t size)
{
    if (write(self->to, data, size) != (ssize_t)size || read(self->from, data, size) != (ssize_t)size) {
        perror("echo");
        exit(EXIT_FAILURE);
    }
}

static double echo_us(const echo *self, size_t size)
{
    char data[256] = {0};
    int64_t began = epg_monotonic_ns();
    for (int i = 0; i < ACTS; i++) {
        echo_turn(self, data, size);
    }
    return ms_since(began) * 1e3 / ACTS;
}

static void echo_end(echo *self)
{
    (void)close(self->to);
    (void)close(self->from);
    epg_process_end(&self->process, epg_deadline_after_seconds(1), NULL);
}

/* --- Ours. --- */

static epg_policy *ready_policy(double *ms)
{
    epg_error err = {0};
    epg_policy *policy = NULL;
    epg_policy_reply reply;
    EPG_AUTO_BUFFER context = {0};
    epg_test_policy_context(7, &context);
    int64_t began = epg_monotonic_ns();
    if (epg_policy_begin(guest, program, &policy, &err) != EPG_OK ||
        epg_policy_start(policy, epg_buffer_span(&context), EPG_NEVER, &reply, &err) != EPG_OK) {
        give_up("ready", &err);
    }
    *ms = ms_since(began);
    return policy;
}

static void finish(epg_policy *policy)
{
    epg_error err = {0};
    epg_policy_end end;
    if (epg_policy_finish(policy, &end, &err) != EPG_OK) {
        give_up("finish", &err);
    }
    epg_policy_end_free(&end);
}

static void act(epg_policy *policy, epg_span observation)
{
    epg_error err = {0};
    epg_policy_reply reply;
    if (epg_policy_act(policy, observation, epg_deadline_after_seconds(30), &reply, &err) != EPG_OK) {
        give_up("act", &err);
    }
    if (reply.failure != EPG_POLICY_OK) {
        (void)fprintf(stderr, "bench_guest: act: %s\n", reply.detail);
        exit(EXIT_FAILURE);
    }
}

static double act_us(epg_policy *policy, epg_span observation, int acts)
{
    int64_t began = epg_monotonic_ns();
    for (int i = 0; i < acts; i++) {
        act(policy, observation);
    }
    return ms_since(began) * 1e3 / acts;
}

/* The best of several rounds. */
static double best_act_us(epg_policy *policy, epg_span observation, int acts)
{
    double best = 1e9;
    for (int i = 0; i < ACT_ROUNDS / 4; i++) {
        best = fmin(best, act_us(policy, observation, acts));
    }
    return best;
}

static void put_floats(epg_buffer *out)
{
    epg_value_put_list(out, 4);
    for (int i = 0; i < 4; i++) {
        epg_value_put_float(out, 0.25 * i);
    }
}

static void put_pixels(epg_buffer *out)
{
    const uint64_t shape[] = {84, 84, 3};
    uint8_t data[84 * 84 * 3] = {0};
    epg_value_put_tensor(out, "uint8", shape, EPG_COUNT(shape), epg_span_of(data, sizeof data));
}

static void put_entries(epg_buffer *out)
{
    epg_value_put_map(out, 2000);
    for (int i = 0; i < 2000; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "key-%04d", i);
        epg_value_put_key(out, key);
        epg_value_put_i64(out, i);
    }
}

/* --- The report. --- */

static void report_ready(void)
{
    double floors[ROUNDS];
    double parked[ROUNDS];
    double unparked[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        (void)usleep(SETTLE_US); /* the spare is made meanwhile, as it is while an Episode runs */
        epg_policy *policy = ready_policy(&parked[i]);
        finish(policy);
        policy = ready_policy(&unparked[i]); /* asked for at once */
        finish(policy);
        floors[i] = bare_start_ms(execution.python);
    }
    double floor = median(floors, ROUNDS);
    double ready = median(parked, ROUNDS);
    (void)printf("ready latency of a fresh Policy process\n"
                 "  floor: python3 -I -S -c pass        %8.2f ms\n"
                 "  parked                              %8.2f ms  %.3f of the floor (goal: under 0.25)\n"
                 "  asked for right after another ended %8.2f ms\n",
                 floor, ready, ready / floor, median(unparked, ROUNDS));
}

static void report_acts(void)
{
    double floor = 1e9;
    double mine = 1e9;
    double ready = 0;
    EPG_AUTO_BUFFER floats = {0};
    put_floats(&floats);
    echo bare = echo_start(execution.python);
    epg_policy *policy = ready_policy(&ready);
    (void)usleep(SETTLE_US);
    for (int i = 0; i < ACT_ROUNDS; i++) {
        floor = fmin(floor, echo_us(&bare, EPG_FRAME_HEAD + floats.size));
        mine = fmin(mine, act_us(policy, epg_buffer_span(&floats), ACTS));
    }
    (void)printf(
        "act round trips\n"
        "  floor: bare pipe ping-pong          %8.2f us  %8.0f a second\n"
        "  4 floats in, an int out             %8.2f us  %8.0f a second, %.2f of the floor (goal: at least 0.7)\n",
        floor, 1e6 / floor, mine, 1e6 / mine, floor / mine);
    EPG_AUTO_BUFFER pixels = {0};
    EPG_AUTO_BUFFER entries = {0};
    put_pixels(&pixels);
    put_entries(&entries);
    (void)printf("  84x84x3 bytes in                    %8.2f us\n", best_act_us(policy, epg_buffer_span(&pixels), 50));
    (void)printf("  a map of 2,000 entries in           %8.2f us\n", best_act_us(policy, epg_buffer_span(&entries), 2));
    finish(policy);
    echo_end(&bare);
}

static void report_episodes(void)
{
    static const int steps[] = {1, 200, 500};
    EPG_AUTO_BUFFER floats = {0};
    put_floats(&floats);
    (void)printf("Episodes of one worker (no Environment, no scratch)\n");
    for (size_t i = 0; i < EPG_COUNT(steps); i++) {
        enum { EPISODES = 100 };
        int64_t began = epg_monotonic_ns();
        for (int episode = 0; episode < EPISODES; episode++) {
            double ready = 0;
            epg_policy *policy = ready_policy(&ready);
            (void)act_us(policy, epg_buffer_span(&floats), steps[i]);
            finish(policy);
        }
        double ms = ms_since(began) / EPISODES;
        (void)printf("  %3d steps                           %8.2f ms  %8.1f a second\n", steps[i], ms, 1e3 / ms);
    }
}

static void report(const char *title)
{
    (void)printf("--- %s ---\n", title);
    epg_error err = {0};
    if (epg_guest_open(&execution, -1, &guest, &err) != EPG_OK) {
        give_up("guest", &err);
    }
    double ready = 0;
    epg_policy *policy = ready_policy(&ready); /* the server starts, once a worker */
    finish(policy);
    (void)printf("first Policy process of a worker      %8.2f ms\n", ready);
    report_ready();
    report_acts();
    report_episodes();
    epg_guest_close(guest);
}

int main(int argc, char **argv)
{
    epg_error err = {0};
    char *python = NULL;
    char *root = NULL;
    if (epg_python_find(argc > 1 ? argv[1] : NULL, &python, &err) != EPG_OK ||
        epg_guest_root_find(&root, &err) != EPG_OK) {
        give_up("python", &err);
    }
    execution = (epg_execution){.profile = EPG_PROFILE_PROCESS, .python = python, .guest_root = root};
    execution.limits = epg_guest_default_limits;
    char *directory = epg_test_directory();
    epg_test_write_text(directory, "program/policy.py", trivial_policy);
    program = epg_format("%s/program", directory);
    (void)printf("python: %s\n", python);
    report("processes where the kernel puts them");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) {
        report("worker and guest on one core");
    }
    free(program);
    epg_test_directory_free(directory);
    free(root);
    free(python);
    return EXIT_SUCCESS;
}
