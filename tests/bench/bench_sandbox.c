/* What containment costs: the sandbox against the process profile in the same run, round by round, so that what
 * disturbs one disturbs both. Run it on an idle machine: bench_sandbox [PYTHON].
 *
 *   ready      from taking a parked process to its Policy being made, median
 *   episode    begin, start, 10 acts, finish, one after the other as a worker does them; the best round
 *
 * Goals: a parked contained guest ready under 3 ms; at least half of the process profile's Episodes a second. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/guests.h"
#include "support/support.h"

enum { ROUNDS = 8, EPISODES = 25, ACTS = 10, SETTLE_US = 60000 };

static const char policy_text[] = "class P:\n"
                                  "    def act(self, observation):\n"
                                  "        return 1\n"
                                  "def make_policy(context):\n"
                                  "    return P()\n";

typedef struct side {
    const char *name;
    epg_profile profile;
    epg_execution execution;
    epg_guest *guest;
    char *directory;
    char *program;
    double ready_ms[ROUNDS * EPISODES];
    size_t ready_count;
    double episode_ms;
} side;

static void give_up(const char *what, const epg_error *err)
{
    (void)fprintf(stderr, "bench_sandbox: %s: %s\n", what, err->text);
    exit(EXIT_FAILURE);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void open_side(side *self, const char *name, epg_profile profile, const char *python)
{
    epg_error err = {0};
    char *root = NULL;
    *self = (side){.name = name, .profile = profile, .episode_ms = INFINITY, .directory = epg_test_directory()};
    if (epg_guest_root_find(&root, &err) != EPG_OK) {
        give_up(name, &err);
    }
    (void)chmod(self->directory, 0755);
    epg_test_write_text(self->directory, "episode/program/policy.py", policy_text);
    self->program = epg_format("%s/episode/program", self->directory);
    self->execution = (epg_execution){.profile = profile,
                                      .python = python,
                                      .guest_root = root,
                                      .scratch = self->directory,
                                      .limits = epg_guest_default_limits};
    if (epg_guest_open(&self->execution, -1, &self->guest, &err) != EPG_OK) {
        give_up(name, &err);
    }
}

static double run_episode(side *self)
{
    epg_error err = {0};
    epg_policy *policy = NULL;
    epg_policy_reply reply = {0};
    epg_policy_end end;
    EPG_AUTO_BUFFER context = {0};
    epg_test_policy_context(7, &context);
    int64_t began = epg_monotonic_ns();
    if (epg_policy_begin(self->guest, self->program, &policy, &err) != EPG_OK ||
        epg_policy_start(policy, epg_buffer_span(&context), EPG_NEVER, &reply, &err) != EPG_OK) {
        give_up(self->name, &err);
    }
    double ready = (double)(epg_monotonic_ns() - began) / 1e6;
    for (int i = 0; i < ACTS && reply.failure == EPG_POLICY_OK; i++) {
        if (epg_policy_act(policy, epg_span_text("N"), EPG_NEVER, &reply, &err) != EPG_OK) {
            give_up(self->name, &err);
        }
    }
    if (reply.failure != EPG_POLICY_OK || epg_policy_finish(policy, &end, &err) != EPG_OK) {
        give_up(self->name, &err);
    }
    epg_policy_end_free(&end);
    return ready;
}

/* The spare is parked and has settled: how soon is it ready? */
static void measure_ready(side *self)
{
    for (int i = 0; i < EPISODES; i++) {
        (void)usleep(SETTLE_US);
        self->ready_ms[self->ready_count++] = run_episode(self);
    }
}

static void measure_episodes(side *self)
{
    int64_t began = epg_monotonic_ns();
    for (int i = 0; i < EPISODES; i++) {
        (void)run_episode(self);
    }
    self->episode_ms = fmin(self->episode_ms, (double)(epg_monotonic_ns() - began) / 1e6 / EPISODES);
}

static void tell(side *self)
{
    qsort(self->ready_ms, self->ready_count, sizeof *self->ready_ms, by_value);
    (void)printf("%-8s ready %.2f ms (p90 %.2f), episode %.1f ms, %.0f Episodes/s\n", self->name,
                 self->ready_ms[self->ready_count / 2], self->ready_ms[self->ready_count * 9 / 10], self->episode_ms,
                 1e3 / self->episode_ms);
}

static void close_side(side *self)
{
    epg_guest_close(self->guest);
    free(self->program);
    free((void *)(uintptr_t)self->execution.guest_root);
    epg_test_directory_free(self->directory);
}

int main(int argc, char **argv)
{
    static side process;
    static side sandbox;
    epg_error err = {0};
    EPG_AUTO_FREE char *python = NULL;
    if (epg_python_find(argc > 1 ? argv[1] : NULL, &python, &err) != EPG_OK) {
        give_up("python", &err);
    }
    open_side(&process, "process", EPG_PROFILE_PROCESS, python);
    open_side(&sandbox, "sandbox", EPG_PROFILE_SANDBOX, python);
    for (int i = 0; i < ROUNDS; i++) {
        measure_ready(&process);
        measure_ready(&sandbox);
        measure_episodes(&process);
        measure_episodes(&sandbox);
    }
    tell(&process);
    tell(&sandbox);
    (void)printf("sandbox / process: %.2f of its Episodes a second\n", process.episode_ms / sandbox.episode_ms);
    close_side(&sandbox);
    close_side(&process);
    return EXIT_SUCCESS;
}
