/* The table of the built-in Benchmarks. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "environments/kinds.h"
#include "environments/testing.h"

/* A kind's own opener, since a registry's entry takes no kind. */
#define OPENER(kind)                                                                                                   \
    static epg_code open_##kind(const char *parameters, epg_benchmark **out, epg_error *err)                           \
    {                                                                                                                  \
        return epg_simple_open(&epg_##kind##_kind, parameters, out, err);                                              \
    }
OPENER(cartpole)
OPENER(acrobot)
OPENER(mountain_car)
OPENER(mountain_car_continuous)
OPENER(pendulum)
OPENER(frozen_lake)
OPENER(cliff_walking)
OPENER(taxi)
OPENER(blackjack)
OPENER(idle)

static const epg_builtin builtins[] = {
    {"cartpole", "keep a pole upright on a cart: push left or right", NULL, open_cartpole},
    {"acrobot", "swing a two-link pendulum up with one motor", NULL, open_acrobot},
    {"mountain-car", "rock a weak car out of a valley: left, coast or right", NULL, open_mountain_car},
    {"mountain-car-continuous", "the same with a force that costs", NULL, open_mountain_car_continuous},
    {"pendulum", "swing a rod up and hold it there with a weak motor", NULL, open_pendulum},
    {"frozen-lake", "cross slippery ice without falling into a hole",
     "map=4x4|8x8&slippery=true|false&success_rate=0.333", open_frozen_lake},
    {"cliff-walking", "walk along a cliff to the goal", "slippery=true|false", open_cliff_walking},
    {"taxi", "fetch a passenger and take them to their destination",
     "rainy=true|false&fickle=true|false&rainy_probability=0.8&fickle_probability=0.3", open_taxi},
    {"blackjack", "play a hand against the dealer: stick or hit", "natural=true|false&sab=true|false", open_blackjack},
};

static const epg_builtin for_tests[] = {
    {"test/one-step", "one step, the Action is the reward", NULL, epg_one_step_open},
    {"test/idle", "nothing happens", "steps=1000&floats=4", open_idle},
    {"test/faults", "breaks where it is told", "at=step&after=0&milliseconds=200&steps=3", epg_faults_open},
};

const epg_builtin *epg_builtin_benchmarks(size_t *count)
{
    *count = EPG_COUNT(builtins);
    return builtins;
}

static const epg_builtin *find_in(const epg_builtin *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

const epg_builtin *epg_builtin_find(const char *name)
{
    const epg_builtin *found = find_in(builtins, EPG_COUNT(builtins), name);
    const char *allowed = getenv("EPG_TEST_BENCHMARKS");
    if (found == NULL && allowed != NULL && strcmp(allowed, "1") == 0) {
        found = find_in(for_tests, EPG_COUNT(for_tests), name);
    }
    return found;
}
