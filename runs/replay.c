#include "runs/replay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/digests.h"
#include "runs/replay_trace.h"
#include "runs/request.h"
#include "runs/traces.h"
#include "system/files.h"
#include "system/tree.h"

#define EVALUATION "replay" /* names the records of the evaluation under way */

typedef struct plan {
    epg_episode_spec *specs;
    uint64_t count; /* 0: not planned */
} plan;

struct epg_replay {
    const epg_reading *reading;
    epg_stored_request stored;
    epg_pool *pool;
    char *scratch; /* a directory of ours for the records of replayed Episodes; NULL: not made */
    int records;   /* the same, open */
    plan training, validation, assessment, fresh;
    uint64_t fresh_seed;
    epg_replay_result measured; /* the last one over fresh Episodes */
    int traces;                 /* borrowed: whole traces of the replay go here; -1: none are kept */
    uint64_t trace_room;
};

static void plan_free(plan *self)
{
    for (uint64_t i = 0; i < self->count; i++) {
        epg_episode_spec_free(&self->specs[i]);
    }
    free(self->specs);
    *self = (plan){0};
}

static epg_code make_plan(epg_replay *self, plan *out, const char *split, uint64_t seed, uint64_t count, epg_error *err)
{
    if (out->count > 0) {
        return EPG_OK;
    }
    EPG_TRY(epg_pool_plan(self->pool, split, seed, count, &out->specs, err));
    out->count = count;
    return EPG_OK;
}

/* --- opening --- */

static epg_code choose_execution(const epg_replay_setup *setup, epg_pool_config *pool, epg_error *err)
{
    if (setup->execution != NULL) {
        EPG_TRY(epg_profile_parse(setup->execution, &pool->execution.profile, err));
    }
    if (setup->python != NULL) {
        pool->execution.python = setup->python;
    }
    bool process = pool->execution.profile == EPG_PROFILE_PROCESS;
    if (process && !setup->allow_unsafe) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "this Run's Policies were not contained; add --allow-unsafe-process to give them all your "
                        "rights again, or --execution sandbox to contain them now");
    }
    if (!process && setup->allow_unsafe) {
        return epg_fail(err, EPG_ERR_USAGE, "--allow-unsafe-process goes with the profile process only");
    }
    return epg_execution_check(&pool->execution, err);
}

static epg_code check_benchmark(const epg_replay *self, epg_error *err)
{
    const epg_history *history = &self->reading->history;
    const epg_spec *spec = epg_pool_spec(self->pool);
    if (history->benchmark_id == NULL || strcmp(history->benchmark_id, spec->id) != 0 ||
        history->environment_digest == NULL || strcmp(history->environment_digest, spec->environment_digest) != 0) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "the Benchmark is not what it was when '%s' was recorded (%s, Environment %s): its Episodes "
                        "can't be replayed",
                        self->reading->path, spec->id, spec->environment_digest);
    }
    return EPG_OK;
}

static epg_code open_replay(epg_replay *self, const epg_replay_setup *setup, epg_error *err)
{
    const epg_history *history = &self->reading->history;
    if (history->request == NULL) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "'%s' has no config.json that tells how it was evaluated; 'evopolicygym evaluate "
                        "RUN:SUBMISSION' measures its Programs",
                        self->reading->path);
    }
    epg_run_again_request again = {.jobs = setup->jobs};
    EPG_TRY(epg_stored_request_read(self->reading->path, history, &again, &self->stored, err));
    epg_pool_config pool = self->stored.pool;
    pool.episode_timeout_seconds = history->config.episode_timeout_seconds;
    EPG_TRY(choose_execution(setup, &pool, err));
    EPG_TRY(epg_pool_open(&pool, &self->pool, err));
    EPG_TRY(check_benchmark(self, err));
    EPG_TRY(epg_tree_temporary("epg-replay-", &self->scratch, &self->records, err));
    return epg_pool_keep_records(self->pool, self->scratch, false, err);
}

epg_code epg_replay_open(const epg_reading *reading, const epg_replay_setup *setup, epg_replay **out, epg_error *err)
{
    epg_replay *self = epg_alloc(sizeof *self);
    self->reading = reading;
    self->records = -1;
    self->traces = setup->traces;
    self->trace_room = setup->trace_bytes;
    epg_code code = open_replay(self, setup, err);
    if (code != EPG_OK) {
        epg_replay_close(self);
        return code;
    }
    *out = self;
    return EPG_OK;
}

void epg_replay_close(epg_replay *self)
{
    if (self == NULL) {
        return;
    }
    plan_free(&self->training);
    plan_free(&self->validation);
    plan_free(&self->assessment);
    plan_free(&self->fresh);
    if (self->pool != NULL) {
        epg_pool_close(self->pool);
    }
    if (self->scratch != NULL) {
        (void)epg_tree_remove(AT_FDCWD, self->scratch, 0, NULL);
    }
    free(self->scratch);
    epg_close_cleanup(&self->records);
    epg_stored_request_free(&self->stored);
    free(self);
}

const epg_spec *epg_replay_spec(const epg_replay *replay)
{
    return epg_pool_spec(replay->pool);
}

void epg_replay_result_free(epg_replay_result *result)
{
    free(result->what);
    free(result->recorded_value);
    free(result->value);
    *result = (epg_replay_result){0};
}

bool epg_replay_is_equal(const epg_replay_result *result)
{
    return result->equal == result->episodes &&
           (!result->has_recorded_score || result->recorded_score == result->score);
}

/* --- the same Episodes --- */

/* What was recorded of one evaluation. */
typedef struct recorded {
    const char *phase;
    uint64_t number;
    const epg_episode_result *episodes;
    size_t count;
    bool scored;
    double score;
} recorded;

static bool is_equal(const epg_episode_result *a, const epg_episode_result *b)
{
    return a->failure == b->failure && a->steps == b->steps &&
           (a->failure != EPG_POLICY_OK || a->reward == b->reward) &&
           (a->record_sha256[0] == '\0' || strcmp(a->record_sha256, b->record_sha256) == 0);
}

static void tell_difference(epg_replay_result *out, const epg_episode_result *before, const epg_episode_result *now)
{
    out->index = before->index;
    out->recorded_failure = before->failure;
    out->failure = now->failure;
    out->recorded_reward = before->reward;
    out->reward = now->reward;
    out->recorded_steps = before->steps;
    out->steps = now->steps;
    out->outcome_differs = before->failure != now->failure;
    out->steps_differ = before->steps != now->steps;
    bool completed = before->failure == EPG_POLICY_OK && now->failure == EPG_POLICY_OK;
    out->reward_differs = completed && before->reward != now->reward;
}

/* As the Host names the files of an evaluation. */
static char *traces_name(const recorded *what)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_reading_name(what->number, id);
    return strcmp(what->phase, "training") == 0 ? epg_strdup(id) : epg_format("%s-%s", what->phase, id);
}

/* What the Run kept of an evaluation's steps: RUN/traces, and the name of its files there. */
static epg_code open_traces(const epg_replay *self, const recorded *what, int *traces, char **name)
{
    *name = traces_name(what);
    return epg_dir_open(self->reading->run, "traces", traces, NULL);
}

/* By whole traces: any Episode, both values. */
static void find_in_traces(const epg_replay *self, int traces, const char *name, const epg_episode_result *episode,
                           epg_replay_result *out)
{
    epg_trace_lines lines = {0};
    if (epg_traces_compare(traces, name, self->records, EVALUATION, episode, &lines, NULL) == EPG_OK &&
        lines.recorded != NULL) {
        epg_replay_lines(lines.recorded, lines.replayed, out);
    }
    free(lines.recorded);
    free(lines.replayed);
}

/* By step digests: any Episode, but only the replayed value. */
static void find_in_digests(const epg_replay *self, int traces, const char *name, const epg_episode_result *episode,
                            epg_replay_result *out)
{
    EPG_AUTO_FREE char *file_name = epg_format("%s.digests", name);
    EPG_AUTO_BUFFER file = {0};
    epg_digest_difference found = {0};
    if (epg_file_read(traces, file_name, EPG_DIGESTS_RECORDS_MAX, &file, NULL) == EPG_OK &&
        epg_digests_compare(epg_buffer_span(&file), self->records, EVALUATION, episode, &found, NULL) == EPG_OK &&
        found.found) {
        out->step_known = true;
        out->step = found.step;
        out->what = epg_strdup(found.what);
        out->value = EPG_TAKE(found.value);
    }
    free(found.value);
}

/* From what tells most to what tells least. */
static void find_step(const epg_replay *self, const recorded *what, const epg_evaluation_result *result, size_t first,
                      epg_replay_result *out)
{
    EPG_AUTO_CLOSE int traces = -1;
    EPG_AUTO_FREE char *name = NULL;
    bool kept = open_traces(self, what, &traces, &name) == EPG_OK;
    if (kept) {
        find_in_traces(self, traces, name, &result->episodes[first], out);
    }
    out->evidence = out->step_known ? "traces" : NULL;
    if (!out->step_known && strcmp(what->phase, "training") == 0 && what->count == result->count) {
        epg_replay_trace(self->reading, what->number, &result->feedback, first, out);
        out->evidence = out->step_known ? "feedback" : NULL;
    }
    if (!out->step_known && kept) {
        find_in_digests(self, traces, name, &result->episodes[first], out);
        out->evidence = out->step_known ? "digests" : NULL;
    }
}

/* `before` holds the finished Episodes of the record in the order of `result`. */
static void compare(const epg_replay *self, const recorded *what, const epg_episode_result *const *before,
                    const epg_evaluation_result *result, epg_replay_result *out)
{
    size_t first = result->count;
    for (size_t i = 0; i < result->count; i++) {
        bool equal = is_equal(before[i], &result->episodes[i]);
        out->equal += equal;
        first = !equal && i < first ? i : first;
    }
    if (first == result->count) {
        return;
    }
    tell_difference(out, before[first], &result->episodes[first]);
    find_step(self, what, result, first, out);
}

/* Where the user asked for whole traces of the replay. */
static epg_code keep_traces(epg_replay *self, const char *name, const epg_evaluation_result *result, bool *kept,
                            epg_error *err)
{
    uint64_t bytes = 0;
    if (self->traces >= 0) {
        EPG_TRY(epg_traces_write(self->traces, self->records, EVALUATION, name, result, self->trace_room, &bytes, err));
        self->trace_room -= bytes;
    }
    *kept = bytes > 0;
    return EPG_OK;
}

/* What the Run kept of an evaluation's steps. */
static const char *recorded_traces(const epg_replay *self, const recorded *what)
{
    EPG_AUTO_CLOSE int traces = -1;
    EPG_AUTO_FREE char *name = NULL;
    if (open_traces(self, what, &traces, &name) != EPG_OK) {
        return NULL;
    }
    EPG_AUTO_FREE char *digests = epg_format("%s.digests", name);
    return epg_traces_exist(traces, name)                               ? "full"
           : faccessat(traces, digests, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? "digests"
                                                                        : NULL;
}

static epg_code replay_one(epg_replay *self, const recorded *what, const plan *planned, int cancel,
                           const epg_replay_visitor *visitor, epg_error *err)
{
    bool known = false;
    if (visitor->known != NULL) {
        EPG_TRY(visitor->known(visitor->context, what->phase, what->number, &known, err));
    }
    if (known) {
        return EPG_OK;
    }
    EPG_AUTO_FREE epg_planned_episode *episodes = epg_alloc_array(what->count, sizeof *episodes);
    EPG_AUTO_FREE const epg_episode_result **before =
        epg_alloc_array(what->count, sizeof *before); /* NOLINT(bugprone-sizeof-expression): pointers are meant */
    const epg_config *config = &self->reading->history.config;
    size_t count = 0;
    for (size_t i = 0; i < what->count; i++) {
        const epg_episode_result *one = &what->episodes[i];
        if (!one->finished || one->index >= planned->count) {
            continue;
        }
        uint64_t policy_seed = planned == &self->training ? epg_training_policy_seed(config->seed, one->index)
                               : planned == &self->validation
                                   ? epg_policy_seed(epg_validation_seed(config->seed), one->index)
                                   : epg_policy_seed(epg_assessment_seed(config->seed), one->index);
        before[count] = one;
        episodes[count++] =
            (epg_planned_episode){.index = one->index, .spec = &planned->specs[one->index], .policy_seed = policy_seed};
    }
    if (count == 0) {
        return EPG_OK;
    }
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    EPG_CLEANUP(epg_evaluation_result_free) epg_evaluation_result result = {0};
    EPG_CLEANUP(epg_replay_result_free) epg_replay_result out = {.phase = what->phase, .number = what->number};
    EPG_TRY(epg_reading_program(self->reading, what->number, &program, err));
    epg_evaluation_plan again = {.name = EVALUATION, .program = &program, .episodes = episodes, .count = count};
    EPG_TRY(epg_evaluate(self->pool, &again, cancel, &result, err));
    out.episodes = count;
    out.has_recorded_score = what->scored && count == what->count;
    out.recorded_score = what->score;
    out.score = result.feedback.score;
    out.policy_failures = result.policy_failures;
    memcpy(out.program_digest, program.digest, sizeof out.program_digest);
    out.recorded_traces = recorded_traces(self, what);
    compare(self, what, before, &result, &out);
    EPG_AUTO_FREE char *name = traces_name(what);
    epg_code code = keep_traces(self, name, &result, &out.traces_kept, err);
    epg_evaluation_discard_records(self->pool, EVALUATION);
    return code == EPG_OK ? visitor->visit(visitor->context, &out, err) : code;
}

static epg_code replay_measure(epg_replay *self, const epg_history_measure *measure, const char *phase, plan *planned,
                               int cancel, const epg_replay_visitor *visitor, epg_error *err)
{
    const epg_config *config = &self->reading->history.config;
    bool validation = planned == &self->validation;
    recorded what = {.phase = phase,
                     .number = measure->number,
                     .episodes = measure->episodes,
                     .count = measure->episodes != NULL ? measure->episode_count : 0,
                     .scored = measure->completed,
                     .score = measure->score};
    if (what.count == 0) {
        return EPG_OK;
    }
    EPG_TRY(make_plan(self, planned, validation ? config->validation_split : config->assessment_split,
                      validation ? epg_validation_seed(config->seed) : epg_assessment_seed(config->seed),
                      validation ? config->episodes_per_candidate : config->assessment_episodes, err));
    return replay_one(self, &what, planned, cancel, visitor, err);
}

epg_code epg_replay_submission(epg_replay *self, uint64_t number, int cancel, const epg_replay_visitor *visitor,
                               epg_error *err)
{
    const epg_history *history = &self->reading->history;
    const epg_history_submission *submission = epg_reading_submission(self->reading, number);
    if (submission == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "the initial Program was not evaluated; --on SPLIT:EPISODES measures it");
    }
    const epg_config *config = &history->config;
    EPG_TRY(make_plan(self, &self->training, config->split, epg_training_pool_seed(config->seed),
                      config->episode_pool_size, err));
    recorded training = {.phase = "training",
                         .number = number,
                         .episodes = submission->episodes,
                         .count = submission->episodes != NULL ? submission->facts.indices.count : 0,
                         .scored = submission->facts.state == EPG_SUBMISSION_PUBLISHED,
                         .score = submission->facts.score};
    EPG_TRY(replay_one(self, &training, &self->training, cancel, visitor, err));
    for (size_t i = 0; i < history->validation_count; i++) {
        if (history->validation[i].number == number) {
            EPG_TRY(
                replay_measure(self, &history->validation[i], "validation", &self->validation, cancel, visitor, err));
        }
    }
    if (history->assessment_started && history->assessment.number == number) {
        return replay_measure(self, &history->assessment, "assessment", &self->assessment, cancel, visitor, err);
    }
    return EPG_OK;
}

/* --- other Episodes --- */

epg_code epg_replay_plan(epg_replay *self, const epg_replay_on *on, epg_error *err)
{
    self->fresh_seed = on->seed;
    return make_plan(self, &self->fresh, on->split, on->seed, on->episodes, err);
}

static epg_code measure(epg_replay *self, const epg_program *program, const char *name, int cancel, epg_error *err)
{
    EPG_AUTO_FREE epg_planned_episode *episodes = epg_alloc_array(self->fresh.count, sizeof *episodes);
    for (uint64_t i = 0; i < self->fresh.count; i++) {
        episodes[i] = (epg_planned_episode){
            .index = i, .spec = &self->fresh.specs[i], .policy_seed = epg_policy_seed(self->fresh_seed, i)};
    }
    EPG_CLEANUP(epg_evaluation_result_free) epg_evaluation_result result = {0};
    epg_replay_result out = {.phase = "fresh", .episodes = self->fresh.count};
    epg_evaluation_plan what = {
        .name = EVALUATION, .program = program, .episodes = episodes, .count = self->fresh.count};
    EPG_TRY(epg_evaluate(self->pool, &what, cancel, &result, err));
    epg_code code = keep_traces(self, name, &result, &out.traces_kept, err);
    epg_evaluation_discard_records(self->pool, EVALUATION);
    EPG_TRY(code);
    memcpy(out.program_digest, program->digest, sizeof out.program_digest);
    out.score = result.feedback.score;
    out.policy_failures = result.policy_failures;
    self->measured = out;
    return EPG_OK;
}

epg_code epg_replay_measure(epg_replay *self, uint64_t number, int cancel, epg_replay_result *out, epg_error *err)
{
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    char name[EPG_SUBMISSION_ID_TEXT];
    epg_reading_name(number, name);
    EPG_TRY(epg_reading_program(self->reading, number, &program, err));
    if (self->traces >= 0 || strcmp(program.digest, self->measured.program_digest) != 0) {
        EPG_TRY(measure(self, &program, name, cancel, err));
    }
    const epg_history_submission *submission = epg_reading_submission(self->reading, number);
    *out = self->measured; /* it owns nothing */
    out->number = number;
    out->has_recorded_score = submission != NULL && submission->facts.state == EPG_SUBMISSION_PUBLISHED;
    out->recorded_score = out->has_recorded_score ? submission->facts.score : 0;
    return EPG_OK;
}
