/* How fast the built-in Benchmarks step alone: no Policy, no process, one core, counted in time
 * of that core, so that what else the machine does does not show. Observations are encoded as they are
 * for a Policy, Actions are decoded and checked, ended Episodes are followed by fresh ones. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "benchmark/benchmark.h"

typedef struct counts {
    uint64_t steps, episodes;
} counts;

/* One Episode of a Benchmark that takes the two Actions in turn. */
static void run_episode(epg_benchmark *benchmark, uint64_t seed, const epg_buffer actions[2], epg_buffer *observation,
                        epg_step *step, counts *done)
{
    const epg_benchmark_vtable *call = benchmark->vtable;
    epg_episode_spec spec = {.environment_seed = seed};
    epg_environment *environment = NULL;
    epg_error err = {0};
    if (call->open(benchmark, &spec, &environment, &err) != EPG_OK ||
        call->reset(environment, observation, &err) != EPG_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    do {
        if (call->step(environment, epg_buffer_span(&actions[done->steps & 1]), step, &err) != EPG_OK ||
            step->invalid_action) {
            fprintf(stderr, "%s%s\n", err.text, step->invalid_action ? step->invalid_reason : "");
            exit(1);
        }
        done->steps++;
    } while (!step->terminated && !step->truncated);
    (void)call->close(environment, &err);
    done->episodes++;
}

static double core_seconds(void)
{
    return (double)clock() / (double)CLOCKS_PER_SEC;
}

static void bench(const char *name, bool floats)
{
    epg_benchmark *benchmark = NULL;
    epg_error err = {0};
    if (epg_benchmark_open(name, &(epg_benchmark_options){0}, &benchmark, &err) != EPG_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    epg_buffer actions[2] = {{.size = 0}, {.size = 0}};
    for (int i = 0; i < 2; i++) {
        if (floats) {
            epg_value_put_float(&actions[i], (double)i - 0.5);
        } else {
            epg_value_put_i64(&actions[i], i);
        }
    }
    EPG_AUTO_BUFFER observation = {0};
    epg_step step = {0};
    counts done = {0};
    double start = core_seconds();
    double seconds = 0.0;
    while (seconds < 1.0) {
        for (int i = 0; i < 100; i++) {
            run_episode(benchmark, done.episodes, actions, &observation, &step, &done);
        }
        seconds = core_seconds() - start;
    }
    printf("%-24s %8.2f million steps/s   %8.0f thousand Episodes/s\n", name, (double)done.steps / seconds / 1e6,
           (double)done.episodes / seconds / 1e3);
    epg_step_free(&step);
    epg_buffer_free(&actions[0]);
    epg_buffer_free(&actions[1]);
    epg_benchmark_destroy(benchmark);
}

int main(void)
{
    printf("Steps of a built-in Benchmark alone (goal: cartpole above 5 million a second)\n");
    bench("cartpole", false);
    bench("acrobot", false);
    bench("mountain-car", false);
    bench("mountain-car-continuous", true);
    bench("pendulum", true);
    bench("frozen-lake", false);
    bench("cliff-walking", false);
    bench("taxi", false);
    bench("blackjack", false);
    return 0;
}
