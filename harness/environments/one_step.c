/* test/one-step: see testing.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "benchmark/defaults.h"
#include "environments/testing.h"

enum { FAULT_ACTION = 99 };

static epg_code get_spec(epg_benchmark *benchmark, epg_spec *out, epg_error *err)
{
    (void)benchmark;
    epg_spec spec = {
        .id = epg_strdup("test/one-step"),
        .description = epg_strdup("One step; the reward is the Action, any int. A failed Episode counts as -1."),
        .primary_metric = epg_strdup("mean_reward"),
        .max_episode_steps = 1,
        .direction = EPG_MAXIMIZE,
    };
    epg_simple_literal(&spec.observation_space, "{'type': 'vector', 'shape': [2]}");
    epg_simple_literal(&spec.action_space, "{'type': 'integer'}");
    epg_value_put_map(&spec.metadata, 0);
    epg_value_put_map(&spec.environment_parameters, 0);
    if (epg_spec_check(&spec, err) != EPG_OK) {
        epg_spec_free(&spec);
        return EPG_ERR_BENCHMARK;
    }
    *out = spec;
    return EPG_OK;
}

static epg_code plan(epg_benchmark *benchmark, const char *split, uint64_t seed, uint64_t count, epg_episode_spec *out,
                     epg_error *err)
{
    (void)benchmark;
    return epg_default_episodes("one-step", split, seed, count, out, err);
}

static epg_code open_environment(epg_benchmark *benchmark, const epg_episode_spec *episode, epg_environment **out,
                                 epg_error *err)
{
    (void)episode;
    (void)err;
    epg_environment *environment = epg_alloc(sizeof *environment);
    environment->benchmark = benchmark;
    *out = environment;
    return EPG_OK;
}

static void observe(epg_buffer *out)
{
    epg_value_put_list(out, 2);
    epg_value_put_float(out, 0.0);
    epg_value_put_float(out, 1.0);
}

static epg_code reset(epg_environment *environment, epg_buffer *observation, epg_error *err)
{
    (void)environment;
    (void)err;
    epg_buffer_clear(observation);
    observe(observation);
    return EPG_OK;
}

static epg_code step(epg_environment *environment, epg_span action, epg_step *out, epg_error *err)
{
    (void)environment;
    epg_step_clear(out);
    int64_t number = 0;
    if (!epg_value_get_i64(action, &number)) {
        out->invalid_action = true;
        out->invalid_reason = epg_strdup("the Action must be an int");
        return EPG_OK;
    }
    if (number == FAULT_ACTION) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "test/one-step: step was told to fail by Action 99");
    }
    observe(&out->observation);
    epg_value_put_null(&out->metrics);
    out->reward = (double)number;
    out->terminated = true;
    return EPG_OK;
}

static epg_code close_environment(epg_environment *environment, epg_error *err)
{
    (void)err;
    free(environment);
    return EPG_OK;
}

static epg_code feedback(epg_benchmark *benchmark, const epg_records *records, epg_feedback *out, epg_error *err)
{
    (void)benchmark;
    double sum = 0.0;
    uint64_t count = 0;
    for (;; count++) {
        epg_record_head head;
        bool have = false;
        EPG_TRY(records->next_record(records->context, &head, &have, err));
        if (!have) {
            break;
        }
        sum += head.failure == EPG_POLICY_OK ? head.reward : -1.0;
    }
    static const uint8_t frames[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    epg_feedback made = {.score = count == 0 ? 0.0 : sum / (double)count};
    epg_value_put_map(&made.content, 1);
    epg_value_put_key(&made.content, "episode_count");
    epg_value_put_u64(&made.content, count);
    epg_artifact *trace = epg_feedback_add(&made, "trace.txt", "text/plain", false);
    (void)epg_buffer_format(&trace->content, "%llu episodes\n", (unsigned long long)count);
    epg_artifact *bulk = epg_feedback_add(&made, "bulk/frames.bin", "application/octet-stream", true);
    (void)epg_buffer_append(&bulk->content, frames, sizeof frames);
    *out = made;
    return EPG_OK;
}

static void destroy(epg_benchmark *benchmark)
{
    free(benchmark);
}

epg_code epg_one_step_open(const char *parameters, epg_benchmark **out, epg_error *err)
{
    static const epg_benchmark_vtable vtable = {
        .spec = get_spec,
        .episodes = plan,
        .open = open_environment,
        .reset = reset,
        .step = step,
        .close = close_environment,
        .feedback = feedback,
        .destroy = destroy,
    };
    EPG_TRY(epg_parameters_parse("test/one-step", parameters, NULL, 0, err));
    epg_benchmark *benchmark = epg_alloc(sizeof *benchmark);
    benchmark->vtable = &vtable;
    *out = benchmark;
    return EPG_OK;
}
