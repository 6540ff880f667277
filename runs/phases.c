/* What the Host does alone after the Agent: Validation, selection, Assessment. */
#include <stdlib.h>
#include <string.h>

#include "runs/coordinator.h"

/* A phase's Episodes: planned once, the same for every candidate. */
typedef struct phase_plan {
    epg_episode_spec *specs;
    epg_planned_episode *episodes;
    uint64_t count;
} phase_plan;

static void phase_plan_free(phase_plan *plan)
{
    for (uint64_t i = 0; plan->specs != NULL && i < plan->count; i++) {
        epg_episode_spec_free(&plan->specs[i]);
    }
    free(plan->specs);
    free(plan->episodes);
    *plan = (phase_plan){0};
}

static epg_code make_plan(epg_run_state *self, const char *split, uint64_t seed, uint64_t count, phase_plan *out,
                          epg_error *err)
{
    phase_plan plan = {.count = count};
    EPG_TRY(epg_pool_plan(self->pool, split, seed, count, &plan.specs, err));
    plan.episodes = epg_alloc_array(count, sizeof *plan.episodes);
    for (uint64_t i = 0; i < count; i++) {
        plan.episodes[i] =
            (epg_planned_episode){.index = i, .spec = &plan.specs[i], .policy_seed = epg_policy_seed(seed, i)};
    }
    *out = plan;
    return EPG_OK;
}

typedef struct phase_observer {
    epg_run_state *run;
    const char *event;
    char id[EPG_SUBMISSION_ID_TEXT];
} phase_observer;

static epg_code episode_ended(void *context, const epg_episode_result *episode, size_t completed, size_t total,
                              epg_error *err)
{
    phase_observer *self = context;
    bool failed = episode->failure != EPG_POLICY_OK;
    self->run->shown.completed = completed;
    self->run->shown.total = total;
    epg_run_evidence_episode(self->run, self->event, episode);
    return EPG_EVENT(self->run->ledger, self->event, err, epg_field_u64("completed", completed),
                     epg_field_u64("episode_index", episode->index),
                     epg_field_text("failure", epg_policy_failure_name(episode->failure)),
                     epg_field_i64("policy_ns", episode->policy_ns),
                     epg_field_text("record_sha256", episode->record_sha256),
                     epg_field_u64("record_offset", episode->record_offset),
                     epg_field_u64("record_size", episode->record_size), epg_field_u64("record_spool", episode->spool),
                     failed ? epg_field_null("reward") : epg_field_double("reward", episode->reward),
                     epg_field_text("status", failed ? "policy_failed" : "completed"),
                     epg_field_u64("steps", episode->steps), epg_field_text("submission_id", self->id),
                     epg_field_u64("total", total), epg_field_i64("total_ns", episode->total_ns));
}

/* Evaluates one submission's stored snapshot over the plan. */
static epg_code measure(epg_run_state *self, const phase_plan *plan, const char *phase, const char *event,
                        uint64_t number, const epg_episode_result *done, epg_candidate_result *out,
                        char traces[EPG_SHA256_HEX], epg_error *err)
{
    EPG_CLEANUP(epg_submission_free) epg_submission submission = {0};
    (void)epg_session_recall(&self->session, number, &submission);
    phase_observer observer = {.run = self, .event = event};
    epg_submission_id(number, observer.id);
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    EPG_TRY(epg_store_load(self->store, observer.id, &program, err));
    if (strcmp(program.digest, submission.program_digest) != 0) {
        return epg_fail(err, EPG_ERR_PUBLICATION, "the git history holds another Program for %s than was evaluated",
                        observer.id);
    }
    EPG_AUTO_FREE char *name = epg_format("%s-%s", phase, observer.id);
    epg_evaluation_plan what = {.name = name,
                                .program = &program,
                                .episodes = plan->episodes,
                                .count = plan->count,
                                .done = done,
                                .observer = episode_ended,
                                .observer_context = &observer};
    self->shown.phase = phase;
    self->shown.submission = observer.id;
    self->shown.completed = 0;
    self->shown.total = plan->count;
    EPG_CLEANUP(epg_evaluation_result_free) epg_evaluation_result result = {0};
    epg_code code = epg_run_evaluate(self, &what, &result, err);
    self->shown.submission = NULL;
    EPG_TRY(code);
    epg_run_keep_traces(self, name, &result, traces);
    *out = (epg_candidate_result){.number = number,
                                  .score = result.feedback.score,
                                  .episodes = plan->count,
                                  .policy_failures = result.policy_failures,
                                  .content = result.feedback.content};
    memcpy(out->program_digest, submission.program_digest, sizeof out->program_digest);
    result.feedback.content = (epg_buffer){0};
    EPG_AUTO_FREE char *episodes = epg_progress_episodes(out->episodes, out->policy_failures);
    epg_progress_line(&self->progress, phase, "%s of %s: score %.6g, %s", phase, observer.id, out->score, episodes);
    return EPG_OK;
}

/* Episodes that an earlier Host has finished for this measure; NULL: none, or not this plan. */
static const epg_episode_result *done_before(const epg_history_measure *measure, const phase_plan *plan)
{
    return measure != NULL && measure->episodes != NULL && measure->episode_count == plan->count ? measure->episodes
                                                                                                 : NULL;
}

static const epg_history_measure *candidate_before(const epg_run_state *self, uint64_t number)
{
    for (size_t i = 0; self->history != NULL && i < self->history->validation_count; i++) {
        if (self->history->validation[i].number == number) {
            return &self->history->validation[i];
        }
    }
    return NULL;
}

static void discard_measure(epg_run_state *self, const char *phase, uint64_t number)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(number, id);
    EPG_AUTO_FREE char *name = epg_format("%s-%s", phase, id);
    epg_evaluation_discard_records(self->pool, name);
}

static epg_code validate_candidate(epg_run_state *self, const phase_plan *plan, uint64_t number,
                                   epg_candidate_result *out, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(number, id);
    const epg_history_measure *before = candidate_before(self, number);
    if (before == NULL) {
        EPG_TRY(EPG_EVENT(self->ledger, "validation_candidate_started", err, epg_field_u64("episodes", plan->count),
                          epg_field_text("submission_id", id)));
    }
    char traces[EPG_SHA256_HEX] = "";
    EPG_TRY(measure(self, plan, "validation", "validation_episode_completed", number, done_before(before, plan), out,
                    traces, err));
    if (before != NULL && before->completed) {
        return EPG_OK;
    }
    return EPG_EVENT(self->ledger, "validation_candidate_completed", err,
                     epg_field_u64("policy_failures", out->policy_failures), epg_field_double("score", out->score),
                     epg_field_text("submission_id", id),
                     epg_field_text("traces_sha256", traces[0] != '\0' ? traces : NULL));
}

static epg_code validate_all(epg_run_state *self, epg_candidate_result *results, size_t *done, epg_error *err)
{
    const epg_config *config = self->config;
    const epg_session *session = &self->session;
    EPG_CLEANUP(phase_plan_free) phase_plan plan = {0};
    if (self->history == NULL || !self->history->validation_started) {
        EPG_TRY(EPG_EVENT(self->ledger, "validation_started", err,
                          epg_field_u64("candidate_count", session->candidate_count),
                          epg_field_u64("episodes_per_candidate", config->episodes_per_candidate),
                          epg_field_text("primary_metric", self->spec->primary_metric),
                          epg_field_text("score_direction", epg_direction_name(self->spec->direction)),
                          epg_field_text("split", config->validation_split)));
    }
    EPG_TRY(make_plan(self, config->validation_split, epg_validation_seed(config->seed), config->episodes_per_candidate,
                      &plan, err));
    for (; *done < session->candidate_count; ++*done) {
        EPG_TRY(validate_candidate(self, &plan, session->candidates[*done], &results[*done], err));
    }
    return EPG_OK;
}

/* A report that an earlier Host wrote stands: its records may be gone, and what was measured is not measured again. */
static bool validated_before(const epg_run_state *self, uint64_t *selected, double *score)
{
    EPG_AUTO_JSON *report = self->history != NULL ? epg_report_read(self->run, "validation") : NULL;
    const char *id = json_string_value(json_object_get(report, "selected_submission_id"));
    const epg_history_measure *measure = id != NULL ? candidate_before(self, epg_submission_number(id)) : NULL;
    for (size_t i = 0; measure != NULL && i < self->session.candidate_count; i++) {
        const epg_history_measure *one = candidate_before(self, self->session.candidates[i]);
        measure = one != NULL && one->completed ? measure : NULL; /* the events must tell all that it tells */
    }
    if (measure == NULL) {
        return false;
    }
    *selected = measure->number;
    *score = measure->score;
    return true;
}

epg_code epg_run_validate(epg_run_state *self, uint64_t *selected, double *score, epg_error *err)
{
    if (validated_before(self, selected, score)) {
        return epg_run_seal(self, "validation/report.json", EPG_SEAL_ONCE, err);
    }
    size_t count = self->session.candidate_count;
    size_t done = 0;
    epg_candidate_result *results = epg_alloc_array(count, sizeof *results);
    epg_code code = validate_all(self, results, &done, err);
    if (code == EPG_OK) { /* the events first: the report holds what they tell of each candidate */
        code = epg_ledger_sync(self->ledger, err);
    }
    if (code == EPG_OK) {
        size_t best = epg_select_candidate(results, count, self->spec->direction);
        code = epg_validation_report_write(self->run, self->config, self->spec, results, count, best, err);
        if (code == EPG_OK) {
            code = epg_run_seal(self, "validation/report.json", EPG_SEAL_ONCE, err);
        }
        if (code == EPG_OK) {
            *selected = results[best].number;
            *score = results[best].score;
            for (size_t i = 0; i < count; i++) {
                discard_measure(self, "validation", results[i].number);
            }
        }
    }
    for (size_t i = 0; i < done; i++) {
        epg_candidate_result_free(&results[i]);
    }
    free(results);
    return code;
}

epg_code epg_run_assess(epg_run_state *self, uint64_t selected, double *score, epg_error *err)
{
    const epg_config *config = self->config;
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(selected, id);
    EPG_CLEANUP(phase_plan_free) phase_plan plan = {0};
    const epg_history_measure *before =
        self->history != NULL && self->history->assessment_started ? &self->history->assessment : NULL;
    EPG_AUTO_JSON *report = before != NULL && before->completed ? epg_report_read(self->run, "assessment") : NULL;
    if (report != NULL) {
        *score = before->score;
        return epg_run_seal(self, "assessment/report.json", EPG_SEAL_ONCE, err);
    }
    if (before == NULL) {
        EPG_TRY(EPG_EVENT(self->ledger, "assessment_started", err,
                          epg_field_u64("episodes", config->assessment_episodes),
                          epg_field_text("primary_metric", self->spec->primary_metric),
                          epg_field_text("score_direction", epg_direction_name(self->spec->direction)),
                          epg_field_text("split", config->assessment_split), epg_field_text("submission_id", id)));
    }
    EPG_TRY(make_plan(self, config->assessment_split, epg_assessment_seed(config->seed), config->assessment_episodes,
                      &plan, err));
    EPG_CLEANUP(epg_candidate_result_free) epg_candidate_result result = {0};
    char traces[EPG_SHA256_HEX] = "";
    EPG_TRY(measure(self, &plan, "assessment", "assessment_episode_completed", selected, done_before(before, &plan),
                    &result, traces, err));
    /* The report first: the event must not claim what is not there. */
    EPG_TRY(epg_assessment_report_write(self->run, config, self->spec, &result, err));
    EPG_TRY(epg_run_seal(self, "assessment/report.json", EPG_SEAL_ONCE, err));
    if (before == NULL || !before->completed) {
        EPG_TRY(EPG_EVENT(self->ledger, "assessment_completed", err,
                          epg_field_u64("policy_failures", result.policy_failures),
                          epg_field_double("score", result.score), epg_field_text("submission_id", id),
                          epg_field_text("traces_sha256", traces[0] != '\0' ? traces : NULL)));
    }
    discard_measure(self, "assessment", selected);
    *score = result.score;
    return EPG_OK;
}
