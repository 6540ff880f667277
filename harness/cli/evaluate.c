/* `evopolicygym evaluate`: one Program over a deterministic plan of Episodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/program_source.h"
#include "cli/setup.h"
#include "system/signals.h"

#define SCHEMA "evopolicygym/evaluation/v1"

static const char usage[] =
    "Usage: evopolicygym evaluate PROGRAM --benchmark SPEC [OPTIONS]\n\n"
    "Evaluates the Program in the directory PROGRAM over Episodes 0 to N-1 of a split, each with a fresh\n"
    "Environment and a fresh Policy process. The same seed gives the same Episodes. PROGRAM may be a submission of a\n"
    "Run too: RUN:submission-000003, RUN:best, RUN:final, RUN:initial.\n\n"
    "Failed Episodes are part of the result. The exit code is 0 even when all of them fail.";
static const char examples[] = "  # How good is it?\n"
                               "  evopolicygym evaluate programs/examples/cartpole -b cartpole -n 100 --seed 42\n\n"
                               "  # Every Episode, for machines.\n"
                               "  evopolicygym evaluate my-program -b cartpole -n 20 --json > result.json\n\n"
                               "  # A Program out of a Run's history, on another split.\n"
                               "  evopolicygym evaluate out/first:best -b cartpole --split test -n 200\n\n"
                               "  # Code that you trust, on a machine that can't contain.\n"
                               "  evopolicygym evaluate my-program -b cartpole \\\n"
                               "      --execution process --allow-unsafe-process\n";

typedef struct evaluate_request {
    const char *program;
    const char *split;
    unsigned long long episodes;
    unsigned long long seed;
    double timeout;
    bool json;
    bool quiet;
} evaluate_request;

typedef struct progress {
    bool live;
    int64_t began;
    int64_t last;
    size_t failed;
} progress;

static epg_code show_progress(void *context, const epg_episode_result *episode, size_t completed, size_t total,
                              epg_error *err)
{
    (void)err;
    progress *self = context;
    self->failed += episode->failure != EPG_POLICY_OK;
    int64_t now = epg_monotonic_ns();
    if (!self->live || (now - self->last < 100 * EPG_MILLISECOND && completed < total)) {
        return EPG_OK;
    }
    self->last = now;
    EPG_AUTO_FREE char *took = epg_duration_text(now - self->began);
    (void)fprintf(stderr, "\r\x1b[K%zu of %zu Episodes, %zu failed, %s", completed, total, self->failed, took);
    if (completed == total) {
        (void)fputs("\r\x1b[K", stderr);
    }
    return EPG_OK;
}

static void summary_text(const evaluate_request *request, const epg_spec *spec, const epg_program *program,
                         const epg_evaluation_result *result, int64_t took, epg_buffer *out)
{
    double sum = 0;
    double least = 0;
    double most = 0;
    uint64_t steps = 0;
    size_t counted = 0;
    uint64_t failures[EPG_POLICY_PROTOCOL_ERROR + 1] = {0};
    for (size_t i = 0; i < result->count; i++) {
        const epg_episode_result *episode = &result->episodes[i];
        steps += episode->steps;
        failures[episode->failure]++;
        if (episode->failure == EPG_POLICY_OK) {
            least = counted == 0 || episode->reward < least ? episode->reward : least;
            most = counted == 0 || episode->reward > most ? episode->reward : most;
            sum += episode->reward;
            counted++;
        }
    }
    EPG_AUTO_FREE char *time = epg_duration_text(took);
    (void)epg_buffer_format(out, "Benchmark   %s, split %s, seed %llu\n", spec->id, request->split, request->seed);
    (void)epg_buffer_format(out, "Program     %s (%.23s...)\n", request->program, program->digest);
    (void)epg_buffer_format(out, "Score       %.6g (%s, %s)\n", result->feedback.score, spec->primary_metric,
                            epg_direction_name(spec->direction));
    (void)epg_buffer_format(out, "Episodes    %zu completed, %llu failed", counted,
                            (unsigned long long)result->policy_failures);
    for (int i = EPG_POLICY_EXCEPTION; i <= EPG_POLICY_PROTOCOL_ERROR; i++) {
        if (failures[i] > 0) {
            (void)epg_buffer_format(out, ", %llu %s", (unsigned long long)failures[i],
                                    epg_policy_failure_name((epg_policy_failure)i));
        }
    }
    if (counted > 0) {
        (void)epg_buffer_format(out, "\nReward      mean %.6g, least %.6g, most %.6g", sum / (double)counted, least,
                                most);
    }
    (void)epg_buffer_format(out, "\nSteps       %llu in %s (%.0f steps/s, %.1f Episodes/s)\n",
                            (unsigned long long)steps, time, (double)steps * 1e9 / (double)took,
                            (double)result->count * 1e9 / (double)took);
    for (size_t i = 0; i < result->count; i++) {
        const epg_episode_result *episode = &result->episodes[i];
        if (episode->failure != EPG_POLICY_OK) {
            EPG_AUTO_FREE char *detail = epg_printable(episode->detail != NULL ? episode->detail : "",
                                                       episode->detail != NULL ? strlen(episode->detail) : 0);
            (void)epg_buffer_format(out, "First failure: Episode %llu, %s (%s)%s%.300s\n",
                                    (unsigned long long)episode->index, epg_policy_failure_name(episode->failure),
                                    epg_policy_cause_name(episode->cause), detail[0] != '\0' ? ": " : "", detail);
            break;
        }
    }
}

static void episodes_json(const epg_evaluation_result *result, epg_json_writer *writer)
{
    epg_json_array(writer, "episodes");
    for (size_t i = 0; i < result->count; i++) {
        const epg_episode_result *episode = &result->episodes[i];
        epg_json_object(writer, NULL);
        epg_json_put_u64(writer, "episode_index", episode->index);
        epg_json_put_text(writer, "failure", epg_policy_failure_name(episode->failure));
        epg_json_object(writer, "host");
        epg_json_put_text(writer, "cause", epg_policy_cause_name(episode->cause));
        EPG_AUTO_FREE char *detail =
            episode->detail != NULL ? epg_printable(episode->detail, strlen(episode->detail)) : NULL;
        epg_json_put_text(writer, "detail", detail);
        epg_json_put_text(writer, "killed_by", episode->killed_by);
        EPG_AUTO_FREE char *log = episode->log != NULL ? epg_printable(episode->log, strlen(episode->log)) : NULL;
        epg_json_put_text(writer, "output", log);
        epg_json_put_double(writer, "policy_seconds", (double)episode->policy_ns / 1e9);
        epg_json_put_text(writer, "record_sha256", episode->record_sha256);
        epg_json_end(writer);
        epg_json_put_known(writer, "reward", episode->failure == EPG_POLICY_OK, episode->reward);
        epg_json_put_text(writer, "status", episode->failure == EPG_POLICY_OK ? "completed" : "policy_failed");
        epg_json_put_u64(writer, "steps", episode->steps);
        epg_json_end(writer);
    }
    epg_json_end(writer);
}

static void result_json(const evaluate_request *request, const epg_setup *setup, const epg_spec *spec,
                        const epg_program *program, const epg_evaluation_result *result, int64_t took, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_object(&writer, "benchmark");
    epg_json_put_text(&writer, "environment_digest", spec->environment_digest);
    epg_json_put_text(&writer, "id", spec->id);
    epg_json_end(&writer);
    episodes_json(result, &writer);
    epg_json_object(&writer, "execution");
    epg_execution_describe(&setup->pool.execution, &writer, "containment");
    epg_json_put_u64(&writer, "jobs", setup->pool.jobs);
    epg_json_put_text(&writer, "profile", epg_profile_name(setup->pool.execution.profile));
    epg_json_put_bool(&writer, "unsafe", setup->pool.execution.profile == EPG_PROFILE_PROCESS);
    epg_json_end(&writer);
    epg_value_to_json(epg_buffer_span(&result->feedback.content), &writer, "feedback_content");
    epg_json_put_u64(&writer, "policy_failures", result->policy_failures);
    epg_json_put_text(&writer, "primary_metric", spec->primary_metric);
    epg_json_put_text(&writer, "program_digest", program->digest);
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_put_double(&writer, "score", result->feedback.score);
    epg_json_put_text(&writer, "score_direction", epg_direction_name(spec->direction));
    epg_json_put_u64(&writer, "seed", request->seed);
    epg_json_put_text(&writer, "split", request->split);
    epg_json_put_double(&writer, "wall_seconds", (double)took / 1e9);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code evaluate_plan(const evaluate_request *request, const epg_setup *setup, epg_pool *pool,
                              const epg_program *program, const epg_planned_episode *episodes, epg_error *err)
{
    EPG_AUTO_CLOSE int signals = -1;
    EPG_TRY(epg_signals_open(&signals, err));
    progress shown = {.live = !request->json && !request->quiet && epg_cli_is_live(STDERR_FILENO),
                      .began = epg_monotonic_ns()};
    epg_evaluation_plan plan = {.name = "evaluate",
                                .program = program,
                                .episodes = episodes,
                                .count = request->episodes,
                                .observer = show_progress,
                                .observer_context = &shown};
    EPG_CLEANUP(epg_evaluation_result_free) epg_evaluation_result result = {0};
    epg_code code = epg_evaluate(pool, &plan, signals, &result, err);
    if (code != EPG_OK && shown.last != 0) {
        (void)fputs("\r\x1b[K", stderr);
    }
    EPG_TRY(code);
    int64_t took = epg_monotonic_ns() - shown.began;
    EPG_AUTO_BUFFER out = {0};
    if (request->json) {
        result_json(request, setup, epg_pool_spec(pool), program, &result, took, &out);
    } else {
        summary_text(request, epg_pool_spec(pool), program, &result, took, &out);
    }
    return epg_cli_print(&out, err);
}

static epg_code evaluate(const evaluate_request *request, const epg_setup *setup, epg_error *err)
{
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    EPG_TRY(epg_cli_program_source(request->program, "PROGRAM", &program, err));
    epg_pool *pool = NULL;
    EPG_TRY(epg_pool_open(&setup->pool, &pool, err));
    epg_episode_spec *specs = NULL;
    epg_code code = epg_pool_plan(pool, request->split, request->seed, request->episodes, &specs, err);
    if (code == EPG_OK) {
        EPG_AUTO_FREE epg_planned_episode *episodes = epg_alloc_array(request->episodes, sizeof *episodes);
        for (unsigned long long i = 0; i < request->episodes; i++) {
            episodes[i] =
                (epg_planned_episode){.index = i,
                                      .spec = &specs[i],
                                      .policy_seed = epg_seed_indexed("evopolicygym/policy-seed/v1", request->seed, i)};
        }
        code = evaluate_plan(request, setup, pool, &program, episodes, err);
        for (unsigned long long i = 0; i < request->episodes; i++) {
            epg_episode_spec_free(&specs[i]);
        }
        free(specs);
    }
    epg_pool_close(pool);
    return code;
}

static epg_code read_and_evaluate(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative; /* failed Episodes are a result like any other */
    evaluate_request request = {
        .program = options->operands[0], .split = "train", .episodes = 100, .seed = 0, .timeout = 30};
    EPG_TRY(epg_option_u64(options, "episodes", 1, 10000000, &request.episodes, err));
    EPG_TRY(epg_option_u64(options, "seed", 0, UINT64_MAX, &request.seed, err));
    EPG_TRY(epg_option_seconds(options, "episode-timeout", &request.timeout, err));
    if (epg_option_given(options, "split")) {
        request.split = epg_option_text(options, "split");
    }
    request.json = epg_option_given(options, "json");
    request.quiet = epg_option_given(options, "quiet");
    EPG_CLEANUP(epg_setup_free) epg_setup setup = {0};
    EPG_TRY(epg_setup_read(options, &setup, err));
    if (epg_option_given(options, "allow-unsafe-process") && setup.pool.execution.profile != EPG_PROFILE_PROCESS) {
        return epg_fail(err, EPG_ERR_USAGE, "--allow-unsafe-process goes with --execution process");
    }
    setup.pool.episode_timeout_seconds = request.timeout;
    return evaluate(&request, &setup, err);
}

static const epg_option table[] = {
    EPG_SETUP_BENCHMARK,
    {.name = "episodes",
     .short_name = 'n',
     .kind = EPG_OPTION_VALUE,
     .value_name = "N",
     .help = "how many (default 100)"},
    {.name = "seed", .kind = EPG_OPTION_VALUE, .value_name = "N", .help = "of the plan (default 0)"},
    {.name = "split", .kind = EPG_OPTION_VALUE, .value_name = "NAME", .help = "of the Benchmark (default train)"},
    EPG_SETUP_EVALUATION,
    {.name = "episode-timeout",
     .kind = EPG_OPTION_VALUE,
     .value_name = "SECONDS",
     .help = "time that the Policy may take in one Episode (default 30)"},
    EPG_SETUP_CONTAINMENT,
    {.name = "json", .kind = EPG_OPTION_FLAG, .group = "Output", .help = "one JSON document on standard output"},
    {.name = "quiet", .short_name = 'q', .kind = EPG_OPTION_FLAG, .help = "no progress line"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_evaluate = {
    .name = "evaluate",
    .summary = "evaluate a Program over a deterministic plan of Episodes",
    .usage = usage,
    .examples = examples,
    .wanted = "name one Program directory: evopolicygym evaluate PROGRAM --benchmark SPEC",
    .options = {table},
    .least = 1,
    .most = 1,
    .run = read_and_evaluate,
};
