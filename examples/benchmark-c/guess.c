/* A Benchmark of one's own, built with `cc -shared -fPIC -I include examples/benchmark-c/guess.c -o guess.so`, to be
 * tried with `evopolicygym benchmark check lib:./guess.so`. */
#include <evopolicygym/benchmark.h>

static const evo_host *evo;
typedef struct game {
    int64_t secret, guesses;
} game;

static int spec(void *benchmark, evo_spec *out, evo_error *error)
{
    (void)benchmark, (void)error;
    out->id = "example/guess";
    out->description = "Guess a secret int from 0 to 99; you are told whether it is higher or lower. A right guess "
                       "earns 1 and ends the Episode, the tenth guess ends it too.";
    out->primary_metric = "mean_return";
    out->max_episode_steps = 10;
    evo->json(out->action_space, "{'type': 'int', 'minimum': 0, 'maximum': 99}");
    evo->json(out->observation_space, "{'type': 'string', 'values': ['start', 'higher', 'lower', 'right']}");
    return 0;
}

static int make(void *benchmark, const evo_episode *episode, void *environment, evo_error *error)
{
    (void)benchmark, (void)error;
    ((game *)environment)->secret = (int64_t)(episode->environment_seed % 100);
    return 0;
}

static int reset(void *environment, evo_out *observation, evo_error *error)
{
    (void)environment, (void)error;
    evo->text(observation, "start");
    return 0;
}

static int step(void *environment, evo_value action, evo_step *out, evo_error *error)
{
    (void)error;
    game *self = environment;
    int64_t guess = 0;
    out->invalid_action = !evo->get_integer(action, &guess) || guess < 0 || guess > 99;
    out->reward = guess == self->secret;
    out->terminated = guess == self->secret || ++self->guesses == 10;
    evo->text(out->observation, guess < self->secret ? "higher" : guess > self->secret ? "lower" : "right");
    return 0;
}

const evo_benchmark *evopolicygym_benchmark_entry(const evo_host *host)
{
    static const evo_benchmark table = {.abi = EVOPOLICYGYM_BENCHMARK_ABI,
                                        .size = sizeof table,
                                        .environment_size = sizeof(game),
                                        .spec = spec,
                                        .make = make,
                                        .reset = reset,
                                        .step = step};
    evo = host;
    return &table;
}
