#include "runs/replay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/digests.h"
#include "runs/replay_lanes.h"
#include "runs/replay_trace.h"
#include "runs/request.h"
#include "runs/traces.h"
#include "system/files.h"
#include "system/tree.h"

typedef struct plan {
    epg_episode_spec *specs;
    uint64_t count; /* 0: not planned */
} plan;

struct epg_replay {
    const epg_reading *reading;
    epg_stored_request stored;
    epg_pool_config config;
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
    self->config = pool;
    EPG_TRY(epg_stored_request_open_pool(&self->config, &self->pool, err));
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
    const char *again; /* names the records of its replay */
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
static void find_in_traces(const epg_replay *self, int traces, const char *name, const char *again,
                           const epg_episode_result *episode, epg_replay_result *out)
{
    epg_trace_lines lines = {0};
    if (epg_traces_compare(traces, name, self->records, again, episode, &lines, NULL) == EPG_OK &&
        lines.recorded != NULL) {
        epg_replay_lines(lines.recorded, lines.replayed, out);
    }
    free(lines.recorded);
    free(lines.replayed);
}

/* By step digests: any Episode, but only the replayed value. */
static void find_in_digests(const epg_replay *self, int traces, const char *name, const char *again,
                            const epg_episode_result *episode, epg_replay_result *out)
{
    EPG_AUTO_FREE char *file_name = epg_format("%s.digests", name);
    EPG_AUTO_BUFFER file = {0};
    epg_digest_difference found = {0};
    if (epg_file_read(traces, file_name, EPG_DIGESTS_RECORDS_MAX, &file, NULL) == EPG_OK &&
        epg_digests_compare(epg_buffer_span(&file), self->records, again, episode, &found, NULL) == EPG_OK &&
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
        find_in_traces(self, traces, name, what->again, &result->episodes[first], out);
    }
    out->evidence = out->step_known ? "traces" : NULL;
    if (!out->step_known && strcmp(what->phase, "training") == 0 && what->count == result->count) {
        epg_replay_trace(self->reading, what->number, &result->feedback, first, out);
        out->evidence = out->step_known ? "feedback" : NULL;
    }
    if (!out->step_known && kept) {
        find_in_digests(self, traces, name, what->again, &result->episodes[first], out);
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
static epg_code keep_traces(epg_replay *self, const char *name, const epg_lane_task *task, bool *kept, epg_error *err)
{
    uint64_t bytes = 0;
    if (self->traces >= 0) {
        EPG_TRY(epg_traces_write(self->traces, self->records, task->name, name, &task->result, self->trace_room, &bytes,
                                 err));
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

/* --- tasks: one evaluation each --- */

typedef struct facts {
    recorded what;                     /* fresh: phase and number only */
    const epg_episode_result **before; /* of the record, in the order of the task's Episodes */
    bool known;                        /* an earlier replay told it */
    bool same;                         /* the Program of the task before: the result is the same too */
} facts;

static void facts_free(void *own)
{
    facts *self = own;
    if (self != NULL) {
        free((void *)self->before);
        free(self);
    }
}

/* What is to be done, in order. */
typedef struct to_do {
    epg_replay *replay;
    const epg_replay_visitor *visitor;
    uint64_t number, last;
    size_t stage;                 /* 0: training; then each Validation; last the Assessment */
    char digest[EPG_DIGEST_TEXT]; /* of the Program that the task before plays; "": it plays none */
} to_do;

static epg_code begin_task(const to_do *self, const char *phase, uint64_t number, epg_lane_task *task, facts **out,
                           epg_error *err)
{
    facts *own = epg_alloc(sizeof *own);
    task->own = own;
    own->what = (recorded){.phase = phase, .number = number};
    *out = own;
    return self->visitor->known != NULL ? self->visitor->known(self->visitor->context, phase, number, &own->known, err)
                                        : EPG_OK;
}

/* --- the recorded Episodes --- */

static uint64_t policy_seed(const epg_replay *self, const plan *planned, uint64_t index)
{
    uint64_t seed = self->reading->history.config.seed;
    return planned == &self->training     ? epg_training_policy_seed(seed, index)
           : planned == &self->validation ? epg_policy_seed(epg_validation_seed(seed), index)
                                          : epg_policy_seed(epg_assessment_seed(seed), index);
}

static epg_code fill_task(const to_do *agenda, const recorded *what, const plan *planned, epg_lane_task *task,
                          epg_error *err)
{
    epg_replay *self = agenda->replay;
    facts *own = NULL;
    EPG_TRY(begin_task(agenda, what->phase, what->number, task, &own, err));
    own->what = *what;
    if (own->known) {
        return EPG_OK;
    }
    task->episodes = epg_alloc_array(what->count, sizeof *task->episodes);
    own->before = (const epg_episode_result **)epg_alloc_array(what->count, sizeof(const epg_episode_result *));
    for (size_t i = 0; i < what->count; i++) {
        const epg_episode_result *one = &what->episodes[i];
        if (one->finished && one->index < planned->count) {
            own->before[task->count] = one;
            task->episodes[task->count++] =
                (epg_planned_episode){.index = one->index,
                                      .spec = &planned->specs[one->index],
                                      .policy_seed = policy_seed(self, planned, one->index)};
        }
    }
    return task->count > 0 ? epg_reading_program(self->reading, what->number, &task->program, err) : EPG_OK;
}

static recorded of_training(const epg_history *history, uint64_t number)
{
    const epg_history_submission *submission = &history->submissions[number - 1];
    return (recorded){.phase = "training",
                      .number = number,
                      .episodes = submission->episodes,
                      .count = submission->episodes != NULL ? submission->facts.indices.count : 0,
                      .scored = submission->facts.state == EPG_SUBMISSION_PUBLISHED,
                      .score = submission->facts.score};
}

static recorded of_measure(const epg_history_measure *measure, const char *phase)
{
    return (recorded){.phase = phase,
                      .number = measure->number,
                      .episodes = measure->episodes,
                      .count = measure->episodes != NULL ? measure->episode_count : 0,
                      .scored = measure->completed,
                      .score = measure->score};
}

/* What stands at a stage of a submission; `count` 0: nothing. */
static recorded at_stage(const epg_replay *self, uint64_t number, size_t stage, const plan **planned)
{
    const epg_history *history = &self->reading->history;
    recorded what = {0};
    if (stage == 0) {
        *planned = &self->training;
        return of_training(history, number);
    }
    if (stage <= history->validation_count) {
        *planned = &self->validation;
        what = of_measure(&history->validation[stage - 1], "validation");
    } else if (history->assessment_started) {
        *planned = &self->assessment;
        what = of_measure(&history->assessment, "assessment");
    }
    return what.number == number ? what : (recorded){0};
}

static epg_code next_recorded(void *context, epg_lane_task *task, bool *have, epg_error *err)
{
    to_do *self = context;
    size_t stages = self->replay->reading->history.validation_count + 2;
    *have = false;
    while (!*have && self->number <= self->last) {
        const plan *planned = NULL;
        recorded what = at_stage(self->replay, self->number, self->stage, &planned);
        self->stage = (self->stage + 1) % stages;
        self->number += self->stage == 0;
        if (what.count > 0) {
            EPG_TRY(fill_task(self, &what, planned, task, err));
            const facts *own = task->own;
            *have = own->known || task->count > 0;
            if (!*have) {
                facts_free(EPG_TAKE(task->own));
                free(EPG_TAKE(task->episodes));
            }
        }
    }
    return EPG_OK;
}

static epg_code take_recorded(void *context, const epg_lane_task *task, epg_error *err)
{
    const to_do *agenda = context;
    epg_replay *self = agenda->replay;
    const facts *own = task->own;
    recorded what = own->what;
    if (own->known) {
        return agenda->visitor->recall(agenda->visitor->context, what.phase, what.number, err);
    }
    EPG_CLEANUP(epg_replay_result_free) epg_replay_result out = {.phase = what.phase, .number = what.number};
    what.again = task->name;
    out.episodes = task->count;
    out.has_recorded_score = what.scored && task->count == what.count;
    out.recorded_score = what.score;
    out.score = task->result.feedback.score;
    out.policy_failures = task->result.policy_failures;
    memcpy(out.program_digest, task->program.digest, sizeof out.program_digest);
    out.recorded_traces = recorded_traces(self, &what);
    compare(self, &what, own->before, &task->result, &out);
    EPG_AUTO_FREE char *name = traces_name(&what);
    EPG_TRY(keep_traces(self, name, task, &out.traces_kept, err));
    return agenda->visitor->visit(agenda->visitor->context, &out, err);
}

/* Before anything runs: a pool that evaluates can't plan. */
static epg_code plan_recorded(epg_replay *self, uint64_t first, uint64_t last, epg_error *err)
{
    const epg_history *history = &self->reading->history;
    const epg_config *config = &history->config;
    EPG_TRY(make_plan(self, &self->training, config->split, epg_training_pool_seed(config->seed),
                      config->episode_pool_size, err));
    for (size_t i = 0; i < history->validation_count; i++) {
        if (history->validation[i].number >= first && history->validation[i].number <= last) {
            EPG_TRY(make_plan(self, &self->validation, config->validation_split, epg_validation_seed(config->seed),
                              config->episodes_per_candidate, err));
        }
    }
    if (history->assessment_started && history->assessment.number >= first && history->assessment.number <= last) {
        return make_plan(self, &self->assessment, config->assessment_split, epg_assessment_seed(config->seed),
                         config->assessment_episodes, err);
    }
    return EPG_OK;
}

epg_code epg_replay_submissions(epg_replay *self, uint64_t first, uint64_t last, int cancel,
                                const epg_replay_visitor *visitor, epg_error *err)
{
    if (first == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "the initial Program was not evaluated; --on SPLIT:EPISODES measures it");
    }
    EPG_TRY(plan_recorded(self, first, last, err));
    to_do what = {.replay = self, .visitor = visitor, .number = first, .last = last};
    const epg_lane_work work = {.next = next_recorded, .take = take_recorded, .drop = facts_free, .context = &what};
    return epg_lanes_run(&self->config, self->pool, self->scratch, &work, cancel, err);
}

/* --- other Episodes --- */

static epg_code next_fresh(void *context, epg_lane_task *task, bool *have, epg_error *err)
{
    to_do *self = context;
    epg_replay *replay = self->replay;
    facts *own = NULL;
    *have = self->number <= self->last;
    if (!*have) {
        return EPG_OK;
    }
    uint64_t number = self->number++;
    EPG_TRY(begin_task(self, "fresh", number, task, &own, err));
    if (own->known) {
        self->digest[0] = '\0';
        return EPG_OK;
    }
    EPG_TRY(epg_reading_program(replay->reading, number, &task->program, err));
    own->same = replay->traces < 0 && strcmp(task->program.digest, self->digest) == 0;
    if (own->same) {
        return EPG_OK;
    }
    memcpy(self->digest, task->program.digest, sizeof self->digest);
    task->count = (size_t)replay->fresh.count;
    task->episodes = epg_alloc_array(task->count, sizeof *task->episodes);
    for (uint64_t i = 0; i < replay->fresh.count; i++) {
        task->episodes[i] = (epg_planned_episode){
            .index = i, .spec = &replay->fresh.specs[i], .policy_seed = epg_policy_seed(replay->fresh_seed, i)};
    }
    return EPG_OK;
}

static epg_code take_fresh(void *context, const epg_lane_task *task, epg_error *err)
{
    const to_do *agenda = context;
    epg_replay *self = agenda->replay;
    const facts *own = task->own;
    uint64_t number = own->what.number;
    if (own->known) {
        return agenda->visitor->recall(agenda->visitor->context, own->what.phase, number, err);
    }
    if (!own->same) {
        char name[EPG_SUBMISSION_ID_TEXT];
        epg_reading_name(number, name);
        self->measured = (epg_replay_result){.phase = own->what.phase,
                                             .episodes = task->count,
                                             .score = task->result.feedback.score,
                                             .policy_failures = task->result.policy_failures};
        memcpy(self->measured.program_digest, task->program.digest, sizeof self->measured.program_digest);
        EPG_TRY(keep_traces(self, name, task, &self->measured.traces_kept, err));
    }
    const epg_history_submission *submission = epg_reading_submission(self->reading, number);
    epg_replay_result out = self->measured; /* it owns nothing */
    out.number = number;
    out.has_recorded_score = submission != NULL && submission->facts.state == EPG_SUBMISSION_PUBLISHED;
    out.recorded_score = out.has_recorded_score ? submission->facts.score : 0;
    return agenda->visitor->visit(agenda->visitor->context, &out, err);
}

epg_code epg_replay_measure(epg_replay *self, const epg_replay_on *on, uint64_t first, uint64_t last, int cancel,
                            const epg_replay_visitor *visitor, epg_error *err)
{
    self->fresh_seed = on->seed;
    EPG_TRY(make_plan(self, &self->fresh, on->split, on->seed, on->episodes, err));
    to_do what = {.replay = self, .visitor = visitor, .number = first, .last = last};
    const epg_lane_work work = {.next = next_fresh, .take = take_fresh, .drop = facts_free, .context = &what};
    return epg_lanes_run(&self->config, self->pool, self->scratch, &work, cancel, err);
}
