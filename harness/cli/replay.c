/* `evopolicygym replay`: a Run's snapshots evaluated again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/shown.h"
#include "runs/replay.h"
#include "system/signals.h"

#define SCHEMA "evopolicygym/replay/v1"

static const char usage[] =
    "Usage: evopolicygym replay RUN [--all | --final | --submission ID] [OPTIONS]\n"
    "       evopolicygym replay RUN --on SPLIT:EPISODES[:SEED] [--all | --final | --submission ID] [OPTIONS]\n\n"
    "Evaluates a Run's recorded snapshots again over the same Episodes with the same seeds, training, Validation and\n"
    "Assessment, and tells whether every Episode went as it was recorded, or where the first one did not. Exit code "
    "1:\n"
    "something differs. With --on, measures them on fresh Episodes instead, the same for all.\n"
    "The Run's config.json decides which Benchmark and interpreter are started: replay only Runs that you trust.";
static const char examples[] =
    "  evopolicygym replay out/first\n"
    "  evopolicygym replay out/first --final --json\n"
    "  evopolicygym replay out/first --submission 3 --execution process --allow-unsafe-process\n"
    "  evopolicygym replay out/first --on test:200:7          the learning curve on 200 Episodes of the test split\n";

typedef struct replaying {
    const epg_reading *reading;
    epg_replay *replay;
    bool json;
    epg_json_writer *writer;
    size_t evaluations, episodes, equal, differing;
} replaying;

/* --- telling --- */

static void put_number(epg_json_writer *writer, const char *key, bool known, double value)
{
    if (known) {
        epg_json_put_double(writer, key, value);
    } else {
        epg_json_put_null(writer, key);
    }
}

static void put_side(epg_json_writer *writer, const char *key, epg_policy_failure failure, double reward,
                     uint64_t steps, const char *value)
{
    epg_json_object(writer, key);
    epg_json_put_text(writer, "failure", epg_policy_failure_name(failure));
    put_number(writer, "reward", failure == EPG_POLICY_OK, reward);
    epg_json_put_u64(writer, "steps", steps);
    epg_json_put_text(writer, "value", value);
    epg_json_end(writer);
}

static void put_json(epg_json_writer *writer, const epg_replay_result *result)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_reading_name(result->number, id);
    epg_json_object(writer, NULL);
    epg_json_put_u64(writer, "episodes", result->episodes);
    epg_json_put_bool(writer, "equal", epg_replay_is_equal(result));
    epg_json_put_u64(writer, "equal_episodes", result->equal);
    if (result->equal < result->episodes) {
        epg_json_object(writer, "first_difference");
        epg_json_put_u64(writer, "episode_index", result->index);
        put_side(writer, "recorded", result->recorded_failure, result->recorded_reward, result->recorded_steps,
                 result->recorded_value);
        put_side(writer, "replayed", result->failure, result->reward, result->steps, result->value);
        if (result->step_known) {
            epg_json_put_u64(writer, "step", result->step);
        } else {
            epg_json_put_null(writer, "step");
        }
        epg_json_put_text(writer, "what", result->what);
        epg_json_end(writer);
    } else {
        epg_json_put_null(writer, "first_difference");
    }
    epg_json_put_text(writer, "phase", result->phase);
    put_number(writer, "recorded_score", result->has_recorded_score, result->recorded_score);
    epg_json_put_double(writer, "score", result->score);
    epg_json_put_text(writer, "submission_id", id);
    epg_json_end(writer);
}

static void put_outcome(epg_buffer *out, epg_policy_failure failure, double reward, uint64_t steps)
{
    if (failure == EPG_POLICY_OK) {
        (void)epg_buffer_format(out, "reward %g in %llu steps", reward, (unsigned long long)steps);
    } else {
        (void)epg_buffer_format(out, "%s after %llu steps", epg_policy_failure_name(failure),
                                (unsigned long long)steps);
    }
}

static void put_value(epg_buffer *out, const char *side, const char *value)
{
    if (value != NULL) {
        EPG_AUTO_FREE char *safe = epg_printable(value, strnlen(value, 2000));
        (void)epg_buffer_format(out, "\n    %s  %s", side, safe);
    }
}

static void put_difference(epg_buffer *out, const epg_replay_result *result)
{
    (void)epg_buffer_format(out, "  first difference: Episode %llu", (unsigned long long)result->index);
    if (result->step_known) {
        (void)epg_buffer_format(out, ", step %llu, %s", (unsigned long long)result->step, result->what);
        put_value(out, "recorded", result->recorded_value);
        put_value(out, "replayed", result->value);
    } else if (!result->outcome_differs && !result->reward_differs && !result->steps_differ) {
        (void)epg_buffer_text(out, ": reward and steps are equal, but an observation, an Action or a metric is not");
    }
    if (result->outcome_differs || result->reward_differs || result->steps_differ) {
        (void)epg_buffer_text(out, "\n    recorded  ");
        put_outcome(out, result->recorded_failure, result->recorded_reward, result->recorded_steps);
        (void)epg_buffer_text(out, "\n    replayed  ");
        put_outcome(out, result->failure, result->reward, result->steps);
    }
    (void)epg_buffer_byte(out, '\n');
}

static epg_code tell(void *context, const epg_replay_result *result, epg_error *err)
{
    replaying *self = context;
    bool equal = epg_replay_is_equal(result);
    self->evaluations++;
    self->episodes += result->episodes;
    self->equal += result->equal;
    self->differing += !equal;
    if (self->json) {
        put_json(self->writer, result);
        return EPG_OK;
    }
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_BUFFER out = {0};
    epg_reading_name(result->number, id);
    (void)epg_buffer_format(&out, "%s  %-10s  score %-10g  %zu of %zu Episodes equal%s\n", id, result->phase,
                            result->score, result->equal, result->episodes, equal ? "" : "  DIFFERS");
    if (result->equal < result->episodes) {
        put_difference(&out, result);
    } else if (!equal) {
        (void)epg_buffer_format(&out, "  the recorded score is %g\n", result->recorded_score);
    }
    EPG_TRY(epg_cli_print(&out, err));
    (void)fflush(stdout);
    return EPG_OK;
}

/* --- doing --- */

typedef struct chosen {
    uint64_t first, last; /* numbers */
} chosen;

static epg_code replay_all(replaying *self, chosen which, int cancel, bool *negative, epg_error *err)
{
    for (uint64_t number = which.first; number <= which.last; number++) {
        EPG_TRY(epg_replay_submission(self->replay, number, cancel, tell, self, err));
    }
    *negative = self->differing > 0;
    if (!self->json) {
        (void)printf("%zu of %zu Episodes of %zu evaluations are equal\n", self->equal, self->episodes,
                     self->evaluations);
    }
    return EPG_OK;
}

static epg_code measure_one(replaying *self, uint64_t number, int cancel, epg_error *err)
{
    double score = 0;
    uint64_t failures = 0;
    char id[EPG_SUBMISSION_ID_TEXT];
    const epg_history_submission *submission = epg_reading_submission(self->reading, number);
    bool scored = submission != NULL && submission->facts.state == EPG_SUBMISSION_PUBLISHED;
    EPG_TRY(epg_replay_measure(self->replay, number, cancel, &score, &failures, err));
    epg_reading_name(number, id);
    if (self->json) {
        epg_json_object(self->writer, NULL);
        epg_json_put_u64(self->writer, "policy_failures", failures);
        put_number(self->writer, "recorded_score", scored, scored ? submission->facts.score : 0);
        epg_json_put_double(self->writer, "score", score);
        epg_json_put_text(self->writer, "submission_id", id);
        epg_json_end(self->writer);
        return EPG_OK;
    }
    char recorded[EPG_SHOWN_NUMBER];
    epg_shown_score(scored, scored ? submission->facts.score : 0, recorded);
    (void)printf("%-17s  %12g  %8llu  %12s\n", id, score, (unsigned long long)failures, recorded);
    (void)fflush(stdout);
    return EPG_OK;
}

static epg_code measure_all(replaying *self, chosen which, const epg_replay_on *on, int cancel, epg_error *err)
{
    EPG_TRY(epg_replay_plan(self->replay, on, err));
    if (!self->json) {
        (void)printf("%llu Episodes of %s, seed %llu\n%-17s  %12s  %8s  %12s\n", (unsigned long long)on->episodes,
                     on->split, (unsigned long long)on->seed, "submission", "score", "failures", "in training");
    }
    for (uint64_t number = which.first; number <= which.last; number++) {
        EPG_TRY(measure_one(self, number, cancel, err));
    }
    return EPG_OK;
}

/* The document around the evaluations; printed only when all went well. */
static epg_code replay_json(replaying *self, chosen which, const epg_replay_on *on, int cancel, bool *negative,
                            epg_error *err)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    self->writer = &writer;
    epg_json_begin(&writer, &out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "directory", self->reading->path);
    epg_json_array(&writer, "evaluations");
    epg_code code =
        on != NULL ? measure_all(self, which, on, cancel, err) : replay_all(self, which, cancel, negative, err);
    epg_json_end(&writer);
    if (on != NULL) {
        epg_json_object(&writer, "on");
        epg_json_put_u64(&writer, "episodes", on->episodes);
        epg_json_put_u64(&writer, "seed", on->seed);
        epg_json_put_text(&writer, "split", on->split);
        epg_json_end(&writer);
    } else {
        epg_json_put_null(&writer, "on");
    }
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    self->writer = NULL;
    return code == EPG_OK ? epg_cli_print(&out, err) : code;
}

static epg_code parse_on(const char *text, epg_replay_on *out, char **split, epg_error *err)
{
    const char *first = strchr(text, ':');
    const char *second = first != NULL ? strchr(first + 1, ':') : NULL;
    uint64_t seed = 0;
    uint64_t episodes = 0;
    size_t size = first == NULL ? 0 : second != NULL ? (size_t)(second - first) - 1 : strlen(first + 1);
    if (first == NULL || first == text || !epg_parse_u64(first + 1, size, 1000000, &episodes) || episodes == 0 ||
        (second != NULL && !epg_parse_u64(second + 1, strlen(second + 1), UINT64_MAX, &seed))) {
        return epg_fail(err, EPG_ERR_USAGE, "--on takes SPLIT:EPISODES or SPLIT:EPISODES:SEED, as in test:100:7");
    }
    *split = epg_strndup(text, (size_t)(first - text));
    *out = (epg_replay_on){.split = *split, .episodes = episodes, .seed = seed};
    return EPG_OK;
}

static epg_code choose(epg_options *options, const epg_reading *reading, bool fresh, chosen *out, epg_error *err)
{
    const epg_option *submission = epg_option_find(options, "submission");
    bool final = epg_option_find(options, "final")->given;
    int given = submission->given + final + epg_option_find(options, "all")->given;
    if (given > 1) {
        return epg_fail(err, EPG_ERR_USAGE, "give one of --all, --final and --submission");
    }
    if (final || submission->given) {
        EPG_TRY(epg_reading_find(reading, final ? "final" : submission->value, &out->first, err));
        out->last = out->first;
        return EPG_OK;
    }
    if (reading->history.submission_count == 0 && !fresh) {
        return epg_fail(err, EPG_ERR_USAGE, "'%s' has no submission to replay", reading->path);
    }
    *out = (chosen){fresh ? 0 : 1, reading->history.submission_count};
    return EPG_OK;
}

static void close_replay(epg_replay **replay)
{
    epg_replay_close(*replay);
}

static epg_code read_setup(epg_options *options, epg_replay_setup *out, char **python, epg_error *err)
{
    unsigned long long jobs = 0;
    EPG_TRY(epg_option_u64(options, "jobs", 1, 256, &jobs, err));
    if (epg_option_find(options, "python")->given) {
        EPG_TRY(epg_python_find(epg_option_find(options, "python")->value, python, err));
    }
    *out = (epg_replay_setup){.jobs = (unsigned)jobs,
                              .execution = epg_option_find(options, "execution")->value,
                              .python = *python,
                              .allow_unsafe = epg_option_find(options, "allow-unsafe-process")->given};
    return EPG_OK;
}

static epg_code replay(epg_options *options, bool *negative, epg_error *err)
{
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    EPG_CLEANUP(close_replay) epg_replay *opened = NULL;
    EPG_AUTO_FREE char *split = NULL;
    EPG_AUTO_FREE char *python = NULL;
    EPG_AUTO_CLOSE int signals = -1;
    epg_replay_on on = {0};
    epg_replay_setup setup;
    chosen which = {0};
    bool fresh = epg_option_find(options, "on")->given;
    if (fresh) {
        EPG_TRY(parse_on(epg_option_find(options, "on")->value, &on, &split, err));
    }
    EPG_TRY(read_setup(options, &setup, &python, err));
    EPG_TRY(epg_reading_open(options->operands[0], EPG_READ_EPISODES, &reading, err));
    EPG_TRY(choose(options, &reading, fresh, &which, err));
    EPG_TRY(epg_signals_open(&signals, err));
    EPG_TRY(epg_replay_open(&reading, &setup, &opened, err));
    replaying self = {.reading = &reading, .replay = opened, .json = epg_option_find(options, "json")->given};
    if (self.json) {
        return replay_json(&self, which, fresh ? &on : NULL, signals, negative, err);
    }
    return fresh ? measure_all(&self, which, &on, signals, err) : replay_all(&self, which, signals, negative, err);
}

epg_code epg_cmd_replay(int argc, char **argv, bool *negative, epg_error *err)
{
    epg_option table[] = {
        {.name = "all", .kind = EPG_OPTION_FLAG, .help = "every submission (so it is when nothing is named)"},
        {.name = "final", .kind = EPG_OPTION_FLAG, .help = "the selected submission"},
        {.name = "submission",
         .kind = EPG_OPTION_VALUE,
         .value_name = "ID",
         .help = "one: submission-000003, 3, last, best, final; with --on initial too"},
        {.name = "on",
         .kind = EPG_OPTION_VALUE,
         .value_name = "SPLIT:EPISODES[:SEED]",
         .help = "measure on these Episodes instead (seed 0)"},
        {.name = "jobs", .short_name = 'j', .kind = EPG_OPTION_VALUE, .value_name = "N", .help = "Episodes at a time"},
        {.name = "execution",
         .kind = EPG_OPTION_VALUE,
         .value_name = "PROFILE",
         .help = "sandbox or process (as the Run was)"},
        {.name = "allow-unsafe-process",
         .kind = EPG_OPTION_FLAG,
         .help = "acknowledge that the profile process contains nothing"},
        {.name = "python",
         .kind = EPG_OPTION_VALUE,
         .value_name = "PATH",
         .help = "interpreter of the Policies (the Run's)"},
        {.name = "json", .kind = EPG_OPTION_FLAG, .help = "one JSON document on standard output"},
        EPG_CLI_HELP,
    };
    EPG_CLEANUP(epg_options_free) epg_options options = {.table = table, .count = EPG_COUNT(table)};
    bool done = false;
    EPG_TRY(epg_cli_parse(&options, argc, argv, usage, examples, &done, err));
    if (done) {
        return EPG_OK;
    }
    if (options.operand_count != 1 || options.rest_count != 0) {
        return epg_fail(err, EPG_ERR_USAGE, "name one Run: evopolicygym replay RUN");
    }
    return replay(&options, negative, err);
}
