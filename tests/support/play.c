#include "support/play.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/support.h"

enum { END_TEXT = 64 };

typedef struct kept_step {
    epg_buffer action;
    epg_step step;
} kept_step;

typedef struct kept_episode {
    epg_episode_spec spec;
    epg_buffer initial;
    kept_step *steps;
    uint64_t count;
    double sum;
    epg_policy_failure failure;
    char end[END_TEXT];
} kept_episode;

struct epg_test_run {
    kept_episode *episodes;
    uint64_t count;
    uint64_t at;      /* the next record */
    uint64_t step_at; /* the next step of record at - 1 */
    epg_records records;
};

epg_benchmark *epg_test_benchmark(const char *text)
{
    epg_benchmark *benchmark = NULL;
    epg_error err = {0};
    epg_assert_ok(epg_benchmark_open(text, &(epg_benchmark_options){0}, &benchmark, &err), &err);
    return benchmark;
}

void epg_test_benchmark_cleanup(epg_benchmark **benchmark)
{
    epg_benchmark_destroy(*benchmark);
}

void epg_test_environment_cleanup(epg_environment **environment)
{
    if (*environment != NULL) {
        (void)(*environment)->benchmark->vtable->close(*environment, NULL);
    }
}

static void note_end(kept_episode *one, const epg_step *step)
{
    epg_span text;
    if (epg_value_get_string(epg_buffer_span(&step->metrics), &text) && text.size < END_TEXT) {
        memcpy(one->end, text.data, text.size);
        one->end[text.size] = '\0';
    }
}

static void play_one(epg_benchmark *benchmark, kept_episode *one, epg_test_policy *policy, void *context)
{
    const epg_benchmark_vtable *call = benchmark->vtable;
    epg_error err = {0};
    epg_environment *environment = NULL;
    epg_assert_ok(call->open(benchmark, &one->spec, &environment, &err), &err);
    epg_assert_ok(call->reset(environment, &one->initial, &err), &err);
    epg_assert_ok(epg_observation_check(epg_buffer_span(&one->initial), &err), &err);
    epg_span observation = epg_buffer_span(&one->initial);
    for (bool over = false; !over;) {
        kept_step kept = {0};
        one->failure = policy(context, observation, one->count, &kept.action);
        if (one->failure == EPG_POLICY_OK) {
            epg_assert_ok(call->step(environment, epg_buffer_span(&kept.action), &kept.step, &err), &err);
            epg_assert_ok(epg_step_check(&kept.step, &err), &err);
            one->failure = kept.step.invalid_action ? EPG_POLICY_INVALID_ACTION : EPG_POLICY_OK;
        }
        over = one->failure != EPG_POLICY_OK || kept.step.terminated || kept.step.truncated;
        if (one->failure != EPG_POLICY_OK) {
            epg_buffer_free(&kept.action);
            epg_step_free(&kept.step);
            break;
        }
        note_end(one, &kept.step);
        one->sum += kept.step.reward;
        one->steps = epg_grow_array(one->steps, one->count + 1, sizeof *one->steps);
        one->steps[one->count] = kept;
        observation = epg_buffer_span(&one->steps[one->count++].step.observation);
    }
    epg_assert_ok(call->close(environment, &err), &err);
}

static epg_code next_record(void *context, epg_record_head *head, bool *have, epg_error *err)
{
    (void)err;
    epg_test_run *run = context;
    *have = run->at < run->count;
    if (*have) {
        const kept_episode *one = &run->episodes[run->at++];
        run->step_at = 0;
        *head = (epg_record_head){
            .environment_seed = one->spec.environment_seed,
            .scenario = epg_buffer_span(&one->spec.scenario),
            .has_observation = true,
            .initial_observation = epg_buffer_span(&one->initial),
            .failure = one->failure,
            .steps = one->count,
            .reward = one->sum,
        };
    }
    return EPG_OK;
}

static epg_code next_step(void *context, epg_transition *step, bool *have, epg_error *err)
{
    (void)err;
    epg_test_run *run = context;
    const kept_episode *one = &run->episodes[run->at - 1];
    *have = run->step_at < one->count;
    if (*have) {
        const kept_step *kept = &one->steps[run->step_at++];
        *step = (epg_transition){
            .action = epg_buffer_span(&kept->action),
            .observation = epg_buffer_span(&kept->step.observation),
            .metrics = epg_buffer_span(&kept->step.metrics),
            .reward = kept->step.reward,
            .terminated = kept->step.terminated,
            .truncated = kept->step.truncated,
        };
    }
    return EPG_OK;
}

epg_test_run *epg_test_play(epg_benchmark *benchmark, const char *split, uint64_t seed, uint64_t count,
                            epg_test_policy *policy, void *context)
{
    epg_test_run *run = epg_alloc(sizeof *run);
    run->episodes = epg_alloc_array(count, sizeof *run->episodes);
    run->count = count;
    epg_episode_spec *plan = epg_alloc_array(count, sizeof *plan);
    epg_error err = {0};
    epg_assert_ok(benchmark->vtable->episodes(benchmark, split, seed, count, plan, &err), &err);
    for (uint64_t i = 0; i < count; i++) {
        run->episodes[i].spec = plan[i];
        play_one(benchmark, &run->episodes[i], policy, context);
    }
    free(plan);
    return run;
}

void epg_test_run_free(epg_test_run *run)
{
    for (uint64_t i = 0; i < run->count; i++) {
        kept_episode *one = &run->episodes[i];
        for (uint64_t k = 0; k < one->count; k++) {
            epg_buffer_free(&one->steps[k].action);
            epg_step_free(&one->steps[k].step);
        }
        free(one->steps);
        epg_buffer_free(&one->initial);
        epg_episode_spec_free(&one->spec);
    }
    free(run->episodes);
    free(run);
}

epg_records *epg_test_records(epg_test_run *run)
{
    run->at = 0;
    run->step_at = 0;
    run->records = (epg_records){run, run->count, next_record, next_step};
    return &run->records;
}

double epg_test_return(const epg_test_run *run, uint64_t episode)
{
    return run->episodes[episode].sum;
}

uint64_t epg_test_steps(const epg_test_run *run, uint64_t episode)
{
    return run->episodes[episode].count;
}

epg_policy_failure epg_test_failure(const epg_test_run *run, uint64_t episode)
{
    return run->episodes[episode].failure;
}

epg_span epg_test_initial(const epg_test_run *run, uint64_t episode)
{
    return epg_buffer_span(&run->episodes[episode].initial);
}

const char *epg_test_end(const epg_test_run *run, uint64_t episode)
{
    return run->episodes[episode].end;
}

void epg_test_feedback(epg_benchmark *benchmark, epg_test_run *run, epg_feedback *out)
{
    epg_error err = {0};
    epg_assert_ok(benchmark->vtable->feedback(benchmark, epg_test_records(run), out, &err), &err);
    epg_assert_ok(epg_feedback_check(out, &err), &err);
}

epg_span epg_test_member(epg_span map, const char *key)
{
    epg_span value = {0};
    ck_assert_msg(epg_value_lookup(map, key, &value), "there is no member %s", key);
    return value;
}

double epg_test_float(epg_span value)
{
    double number = 0.0;
    ck_assert(epg_value_get_float(value, &number));
    return number;
}

uint64_t epg_test_u64(epg_span value)
{
    uint64_t number = 0;
    ck_assert(epg_value_get_u64(value, &number));
    return number;
}
