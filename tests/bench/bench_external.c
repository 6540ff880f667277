/* What a step of a Python Benchmark's Episode costs, against the sum of what it can't do without: the Environment's own
 * step, the Policy's own act, and two bare pipe round trips between a C and a Python process. That sum is of parts that
 * were measured by themselves: "bare pipes only, in turn" tells what the same three processes take when they do nothing
 * but that.
 *
 * Run it on an idle machine: bench_external [PYTHON]. Rounds of the floor and of ours are taken in turn, and the best
 * of each counts, for other work on the machine only ever adds; of several samples, the median. */
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "benchmark/benchmark.h"
#include "support/guests.h"
#include "support/support.h"
#include "system/owner.h"

/* A step of plain arithmetic is the hardest case. Environments in packages rather take what DEARER rounds add to it. */
enum { ROUNDS = 100, STEPS = 200, DEARER = 1000 };

static const char trivial_policy[] = "class P:\n"
                                     "    def act(self, observation):\n"
                                     "        return 1\n"
                                     "def make_policy(context):\n"
                                     "    return P()\n";

static void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench_external: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* --- The floor. --- */

typedef struct echo {
    epg_process process;
    int to, from;
} echo;

static const char echoing[] =
    "import os\nwhile True:\n    d = os.read(0, 65536)\n    if not d: break\n    os.write(1, d)\n";
static const char stepping[] = "import os, sys\nsys.path[:0] = ['.', os.environ['PYTHONPATH']]\nimport pole\n"
                               "e = pole.Pole(1, int(sys.argv[1]))\ne.reset()\nwhile True:\n"
                               "    d = os.read(0, 65536)\n    if not d: break\n    e.step(1)\n    os.write(1, d)\n";

static echo echo_start(const char *python, const char *code, const char *argument)
{
    const char *const argv[] = {python, "-s", "-c", code, argument, NULL};
    int to[2];
    int from[2];
    epg_error err = {.text = ""};
    echo self;
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
        give_up("echo", "no pipe");
    }
    const epg_fd_map fds[] = {{to[0], 0}, {from[1], 1}};
    const epg_spawn spawn = {.argv = argv,
                             .environment = (const char *const *)environ,
                             .working_directory = -1,
                             .fds = fds,
                             .fd_count = EPG_COUNT(fds)};
    if (epg_process_spawn(&spawn, &self.process, &err) != EPG_OK) {
        give_up("echo", err.text);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    self.to = to[1];
    self.from = from[0];
    return self;
}

static void echo_once(const echo *self)
{
    char data[64] = {0};
    if (write(self->to, data, sizeof data) != (ssize_t)sizeof data || read(self->from, data, sizeof data) <= 0) {
        give_up("echo", "it ended");
    }
}

/* A round trip with one; or with each of two in turn. */
static double echo_us(const echo *self, const echo *other)
{
    int64_t began = epg_monotonic_ns();
    for (int i = 0; i < STEPS; i++) {
        echo_once(self);
        if (other != NULL) {
            echo_once(other);
        }
    }
    return (double)(epg_monotonic_ns() - began) / 1e3 / STEPS;
}

static void echo_end(echo *self)
{
    (void)close(self->to);
    (void)close(self->from);
    epg_process_end(&self->process, epg_deadline_after_seconds(1), NULL);
}

/* The package times its own step and a Policy's act, without any Host. */
static void measure_alone(const char *python, int work, double *step_us, double *act_us)
{
    EPG_AUTO_FREE char *command = epg_format("'%s' pole.py %d", python, work);
    char line[256] = "";
    FILE *pipe = popen(command, "r"); /* NOLINT: the user's own interpreter */
    if (pipe == NULL || fgets(line, sizeof line, pipe) == NULL || pclose(pipe) != 0) {
        give_up("pole.py", "it told no times");
    }
    char *rest = NULL;
    *step_us = strtod(line, &rest);
    *act_us = strtod(rest, NULL);
}

/* --- Ours. --- */

typedef struct play {
    epg_environment *environment;
    epg_policy *policy;
    epg_buffer observation;
    epg_step step;
    double act_us, step_us; /* the best round's parts */
    epg_company *company;
} play;

static double steps_us(play *self)
{
    epg_error err = {.text = ""};
    int64_t acting = 0;
    int64_t began = epg_monotonic_ns();
    int64_t turn = began;
    for (int i = 0; i < STEPS; i++) {
        epg_policy_reply reply;
        int64_t before = epg_monotonic_ns();
        epg_company_turn(self->company, i > 0 ? before - turn : 0);
        turn = before;
        if (epg_policy_act(self->policy, epg_buffer_span(&self->observation), epg_deadline_after_seconds(30), &reply,
                           &err) != EPG_OK ||
            reply.failure != EPG_POLICY_OK) {
            give_up("act", err.text);
        }
        acting += epg_monotonic_ns() - before;
        if (self->environment->benchmark->vtable->step(self->environment, reply.action, &self->step, &err) != EPG_OK) {
            give_up("step", err.text);
        }
        epg_buffer spare = self->observation;
        self->observation = self->step.observation;
        self->step.observation = spare;
    }
    double all = (double)(epg_monotonic_ns() - began) / 1e3 / STEPS;
    self->act_us = (double)acting / 1e3 / STEPS;
    self->step_us = all - self->act_us;
    return all;
}

static void open_environment(play *self, epg_benchmark *benchmark)
{
    epg_error err = {.text = ""};
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {.id = NULL};
    epg_episode_spec episode = {.environment_seed = 0};
    if (epg_benchmark_spec(benchmark, &spec, &err) != EPG_OK ||
        benchmark->vtable->episodes(benchmark, "train", 1, 1, &episode, &err) != EPG_OK ||
        benchmark->vtable->open(benchmark, &episode, &self->environment, &err) != EPG_OK ||
        benchmark->vtable->reset(self->environment, &self->observation, &err) != EPG_OK) {
        give_up("benchmark", err.text);
    }
    epg_episode_spec_free(&episode);
}

static void open_policy(play *self, epg_guest *guest, const char *program)
{
    epg_error err = {.text = ""};
    EPG_AUTO_BUFFER context = {0};
    epg_policy_reply reply;
    epg_test_policy_context(1, &context);
    if (epg_policy_begin(guest, program, &self->policy, &err) != EPG_OK ||
        epg_policy_start(self->policy, epg_buffer_span(&context), EPG_NEVER, &reply, &err) != EPG_OK ||
        reply.failure != EPG_POLICY_OK) {
        give_up("policy", err.text);
    }
}

static void close_play(play *self)
{
    epg_error err = {.text = ""};
    epg_policy_end end;
    if (epg_policy_finish(self->policy, &end, &err) != EPG_OK) {
        give_up("policy", err.text);
    }
    epg_policy_end_free(&end);
    if (self->environment->benchmark->vtable->close(self->environment, &err) != EPG_OK) {
        give_up("close", err.text);
    }
    epg_buffer_free(&self->observation);
    epg_step_free(&self->step);
}

/* One sample: processes of its own, since what a loop in Python takes differs by a quarter from one process to another
 * of the same kind, by where its memory lies. */
typedef struct figures {
    double step, act, trip, turns, ours, our_act, our_step;
} figures;

enum { SAMPLES = 5, FIGURES = sizeof(figures) / sizeof(double) };

static void take_rounds(play *self, const echo *bare, const echo *world, figures *out)
{
    out->trip = out->turns = out->ours = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        out->trip = fmin(out->trip, echo_us(bare, NULL));
        out->turns = fmin(out->turns, echo_us(bare, world));
        double now = steps_us(self);
        if (now < out->ours) {
            out->ours = now;
            out->our_act = self->act_us;
            out->our_step = self->step_us;
        }
    }
}

static void measure(int work, const epg_execution *execution, const char *program, figures *out)
{
    epg_error err = {.text = ""};
    epg_benchmark *benchmark = NULL;
    epg_guest *guest = NULL;
    const char *python = execution->python;
    play self = {.environment = NULL, .company = epg_company_new()};
    const epg_benchmark_options options = {.python = python, .call_limit_ns = 60 * EPG_SECOND, .company = self.company};
    EPG_AUTO_FREE char *name = epg_format("python:pole:make?work=%d", work);
    measure_alone(python, work, &out->step, &out->act);
    if (epg_benchmark_open(name, &options, &benchmark, &err) != EPG_OK) {
        give_up("benchmark", err.text);
    }
    if (epg_guest_open(execution, -1, &guest, &err) != EPG_OK) {
        give_up("guest", err.text);
    }
    epg_guest_join(guest, self.company);
    epg_guest_keep(guest, benchmark->vtable->process(benchmark));
    open_environment(&self, benchmark);
    open_policy(&self, guest, program);
    EPG_AUTO_FREE char *argument = epg_format("%d", work);
    echo bare = echo_start(python, echoing, argument);
    echo world = echo_start(python, stepping, argument);
    take_rounds(&self, &bare, &world, out);
    echo_end(&bare);
    echo_end(&world);
    close_play(&self);
    epg_guest_close(guest);
    epg_benchmark_destroy(benchmark);
    epg_company_free(self.company);
}

static int ascending(const void *a, const void *b)
{
    const double *one = a;
    const double *other = b;
    return (*one > *other) - (*one < *other);
}

/* Of each figure by itself. */
static figures medians(const figures samples[SAMPLES])
{
    double of[FIGURES];
    figures result;
    for (size_t i = 0; i < FIGURES; i++) {
        double column[SAMPLES];
        for (size_t j = 0; j < SAMPLES; j++) {
            double row[FIGURES];
            memcpy(row, &samples[j], sizeof row);
            column[j] = row[i];
        }
        qsort(column, SAMPLES, sizeof column[0], ascending);
        of[i] = column[SAMPLES / 2];
    }
    memcpy(&result, of, sizeof result);
    return result;
}

static void report(const char *title, int work, const epg_execution *execution, const char *program)
{
    figures samples[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++) {
        measure(work, execution, program, &samples[i]);
    }
    figures median = medians(samples);
    double sum = median.step + median.act + 2 * median.trip;
    (void)printf("--- %s%s ---\n"
                 "  the Environment's own step          %8.2f us\n"
                 "  the Policy's own act                %8.2f us\n"
                 "  a bare pipe round trip              %8.2f us, twice\n"
                 "  the sum                             %8.2f us\n"
                 "  bare pipes only, in turn            %8.2f us, %.3f of the sum\n"
                 "  a step of ours                      %8.2f us (act %.2f, step %.2f), %.3f of the sum (goal: at most "
                 "1.3)\n",
                 title, work > 0 ? ", a dearer Environment" : "", median.step, median.act, median.trip, sum,
                 median.turns, median.turns / sum, median.ours, median.our_act, median.our_step, median.ours / sum);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "monitor") == 0) {
        return epg_monitor_main(argc, argv);
    }
    epg_error err = {.text = ""};
    EPG_AUTO_FREE char *python = NULL;
    EPG_AUTO_FREE char *root = NULL;
    if (epg_python_find(argc > 1 ? argv[1] : NULL, &python, &err) != EPG_OK ||
        epg_guest_root_find(&root, &err) != EPG_OK) {
        give_up("python", err.text);
    }
    epg_execution execution = {.profile = EPG_PROFILE_PROCESS, .python = python, .guest_root = root};
    execution.limits = epg_guest_default_limits;
    char *directory = epg_test_directory();
    epg_test_write_text(directory, "program/policy.py", trivial_policy);
    EPG_AUTO_FREE char *program = epg_format("%s/program", directory);
    (void)setenv("PYTHONPATH", EPG_TEST_SOURCE "/harness/benchmark/python", 1);
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    if (chdir(EPG_TEST_SOURCE "/tests/benchmark/packages") != 0) {
        give_up("packages", "they are not there");
    }
    (void)printf("python: %s\n", python);
    report("as an Evaluation has them", 0, &execution, program);
    report("as an Evaluation has them", DEARER, &execution, program);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) {
        report("all on one core from the beginning", 0, &execution, program);
        report("all on one core from the beginning", DEARER, &execution, program);
    }
    epg_test_directory_free(directory);
    return EXIT_SUCCESS;
}
