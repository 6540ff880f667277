/* test/idle: see testing.h. */
#include "base/memory.h"
#include "environments/testing.h"

typedef struct idle_parameters {
    uint64_t steps, floats;
} idle_parameters;

static epg_code configure(void *parameters, const char *text, epg_error *err)
{
    idle_parameters *self = parameters;
    *self = (idle_parameters){.steps = 1000, .floats = 4};
    const epg_parameter table[] = {
        {.name = "steps", .kind = EPG_PARAMETER_COUNT, .target = &self->steps, .minimum = 1, .maximum = 1e9},
        {.name = "floats", .kind = EPG_PARAMETER_COUNT, .target = &self->floats, .minimum = 0, .maximum = 65000},
    };
    return epg_parameters_parse("test/idle", text, table, EPG_COUNT(table), err);
}

static void describe(const void *parameters, epg_spec *spec)
{
    const idle_parameters *self = parameters;
    spec->max_episode_steps = self->steps;
    spec->description = epg_strdup("Nothing happens, for a while. Every step earns 1.0.");
    epg_simple_literal(&spec->observation_space, "{'type': 'vector'}");
    epg_simple_literal(&spec->action_space, "{'type': 'discrete', 'values': [0, 1]}");
    epg_value_put_map(&spec->environment_parameters, 2);
    epg_value_put_key(&spec->environment_parameters, "floats");
    epg_value_put_u64(&spec->environment_parameters, self->floats);
    epg_value_put_key(&spec->environment_parameters, "steps");
    epg_value_put_u64(&spec->environment_parameters, self->steps);
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return 0.0;
}

static void reset(void *state, const void *parameters, epg_random *random)
{
    (void)state;
    (void)parameters;
    (void)random;
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    (void)state;
    (void)parameters;
    (void)random;
    (void)action;
    out->reward = 1.0;
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    (void)state;
    const idle_parameters *self = parameters;
    epg_value_put_list(out, self->floats);
    for (uint64_t i = 0; i < self->floats; i++) {
        epg_value_put_float(out, 0.0);
    }
}

const epg_simple_kind epg_idle_kind = {
    .name = "test/idle",
    .id = "test/idle",
    .primary_metric = "mean_return",
    .action_count = 2,
    .parameters_size = sizeof(idle_parameters),
    .configure = configure,
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};
