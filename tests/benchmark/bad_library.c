/* A Benchmark that is wrong in the way that its parameter names; "none" in no way, "crash-step" and the like in that
 * call. Built by test_check.sh and test_library.sh; with -DABI=2 for another ABI, with -DHUGE_REWARDS for rewards whose
 * sum is over a double's range, scored by the Host. */
#include <evopolicygym/benchmark.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ABI
#define ABI EVOPOLICYGYM_BENCHMARK_ABI
#endif

static const evo_host *evo;
static char wrong[32];
static int64_t episodes;

static bool is_wrong(const char *how)
{
    return strcmp(wrong, how) == 0;
}

static void trip(const char *call)
{
    const char *dash = strchr(wrong, '-');
    if (dash == NULL || strcmp(dash + 1, call) != 0) {
        return;
    }
    if (strncmp(wrong, "crash", 5) == 0) {
        abort();
    } else if (strncmp(wrong, "exit", 4) == 0) {
        exit(0);
    } else if (strncmp(wrong, "kill", 4) == 0) {
        (void)kill(getpid(), SIGKILL);
    } else if (strncmp(wrong, "hang", 4) == 0) {
        for (;;) {
            (void)pause();
        }
    } else if (strncmp(wrong, "stop", 4) == 0) {
        (void)raise(SIGSTOP);
    } else if (strncmp(wrong, "halt", 4) == 0) {
        for (;;) {
            (void)raise(SIGSTOP);
        }
    } else if (strncmp(wrong, "print", 5) == 0) {
        (void)printf("a Benchmark talks");
        (void)fflush(stdout);
        (void)!write(STDOUT_FILENO, "\0\0\0\5x0000", 9); /* what a frame looks like */
    } else if (strncmp(wrong, "spawn", 5) == 0 && fork() == 0) {
        (void)setsid();
        (void)execlp("sleep", "sleep", "31574", (char *)NULL);
        _exit(1);
    }
}

static int start(const char *parameters, void **benchmark, evo_error *error)
{
    *benchmark = NULL;
    if (parameters == NULL || strlen(parameters) >= sizeof wrong) {
        return evo->fail(error, "say what is to be wrong");
    }
    strcpy(wrong, parameters);
    trip("open");
    return is_wrong("open") ? evo->fail(error, "told to fail") : 0;
}

static int spec(void *benchmark, evo_spec *out, evo_error *error)
{
    (void)benchmark;
    (void)error;
    trip("spec");
    out->id = is_wrong("id") ? NULL : "test/bad-library";
    out->description = "Wrong on purpose.";
    out->primary_metric = "mean_return";
    out->max_episode_steps = 5;
    evo->json(out->observation_space, "{'type': 'int'}");
    evo->json(out->action_space, is_wrong("space") ? "'free text'" : "{'type': 'int', 'minimum': 0, 'maximum': 3}");
    return 0;
}

static int make(void *benchmark, const evo_episode *episode, void *environment, evo_error *error)
{
    (void)benchmark;
    (void)error;
    trip("make");
    *(uint64_t *)environment = episode->environment_seed;
    episodes++;
    if (is_wrong("descriptor")) {
        (void)!open("/dev/null", O_RDONLY);
    }
    if (is_wrong("process") && episodes == 1 && fork() == 0) {
        for (;;) {
            (void)pause();
        }
    }
    if (is_wrong("print")) {
        (void)puts("a Benchmark talks");
        (void)fflush(stdout);
    }
    return 0;
}

static void observe(const void *environment, evo_out *out)
{
    if (is_wrong("seed")) {
        char text[32];
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)*(const uint64_t *)environment);
        evo->text(out, text);
    } else if (is_wrong("number")) {
        evo->number(out, 0.0 / (double)(episodes - episodes)); /* not a number */
    } else if (is_wrong("deep")) {
        for (int level = 0; level < 40; level++) {
            evo->list(out, 1);
        }
        evo->null(out);
    } else if (is_wrong("short")) {
        evo->list(out, 2);
        evo->null(out);
    } else if (is_wrong("utf8")) {
        evo->text(out, "\xff");
    } else if (!is_wrong("nothing")) {
        evo->integer(out, is_wrong("chance") ? episodes : 7);
    }
}

static int reset(void *environment, evo_out *observation, evo_error *error)
{
    (void)error;
    trip("reset");
    observe(environment, observation);
    return 0;
}

static int step(void *environment, evo_value action, evo_step *out, evo_error *error)
{
    int64_t number = 0;
    trip("step");
    bool right = evo->get_integer(action, &number);
    if (!right && is_wrong("strict")) {
        return evo->fail(error, "not an int");
    }
    if (is_wrong("silent")) {
        return -1;
    }
    out->invalid_action = !right || number < 0 || number > 3;
    if (!out->invalid_action) {
        observe(environment, out->observation);
        out->terminated = number == 3;
        out->truncated = true;
#ifdef HUGE_REWARDS
        out->reward = number == 3 ? -1.7e308 : 1.7e308;
#endif
    }
    return 0;
}

static int finish(void *environment, evo_error *error)
{
    (void)environment;
    (void)error;
    trip("close");
    return is_wrong("close") ? evo->fail(error, "told to fail") : 0;
}

static int feedback(void *benchmark, evo_records *records, evo_feedback *out, evo_error *error)
{
    (void)benchmark;
    (void)error;
    trip("feedback");
    evo_record record;
    evo_transition transition;
    uint64_t seed = 0;
    double steps = 0.0;
    while (evo->next_record(records, &record)) {
        seed = record.policy_seed;
        while (evo->next_transition(records, &transition)) {
            steps += 1.0;
        }
    }
    char text[64];
    (void)snprintf(text, sizeof text, "%llx", (unsigned long long)seed);
    if (!is_wrong("score")) {
        evo->score(out, steps / (double)evo->record_count(records));
    }
    if (is_wrong("content")) {
        evo->text(evo->content(out), text);
    }
    if (is_wrong("path")) {
        char *here = getcwd(NULL, 0);
        evo->artifact(out, "log.txt", "text/plain", false, here, strlen(here));
        free(here);
    }
    return 0;
}

const evo_benchmark *evopolicygym_benchmark_entry(const evo_host *host)
{
    static const evo_benchmark table = {
        .abi = ABI,
        .size = sizeof table,
        .environment_size = sizeof(uint64_t),
        .open = start,
        .spec = spec,
        .make = make,
        .reset = reset,
        .step = step,
        .close = finish,
#ifndef HUGE_REWARDS
        .feedback = feedback,
#endif
    };
    evo = host;
    return &table;
}
