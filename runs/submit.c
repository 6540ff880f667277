/* The session's requests, answered. The order of writing for a submit is the design's "durable truth": snapshot,
 * charge, Episodes, publication, its event, the answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/coordinator.h"
#include "runs/feedback.h"
#include "system/files.h"

static epg_code answer(epg_run_state *self, epg_connection_id connection, const epg_buffer *frame, epg_error *err)
{
    /* Nothing that another party sees rests on an event that a power cut could take. */
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    (void)epg_gateway_reply(self->gateway, connection, epg_buffer_span(frame));
    return EPG_OK;
}

/* A submission that is completed after an interruption has nobody who waits. */
static void reply_held(epg_run_state *self, const epg_submission *submission)
{
    if (self->gateway != NULL) {
        EPG_AUTO_BUFFER frame = {0};
        epg_response_submission(&frame, submission);
        (void)epg_gateway_reply_held(self->gateway, submission->number, epg_buffer_span(&frame));
    }
}

static epg_code refuse(epg_run_state *self, epg_connection_id connection, const epg_decision *decision, epg_error *err)
{
    if (decision->record_rejection) {
        epg_field fields[3];
        size_t count = 0;
        if (decision->has_candidate_count) {
            fields[count++] = epg_field_u64("candidate_count", decision->candidate_count);
        }
        if (decision->has_episodes_remaining) {
            fields[count++] = epg_field_u64("episodes_remaining", self->session.episodes_remaining);
        }
        fields[count++] = epg_field_text("reason", decision->code);
        EPG_TRY(epg_ledger_append(self->ledger, "finish_rejected", fields, count, err));
    }
    EPG_AUTO_BUFFER frame = {0};
    epg_response_refused(&frame, decision);
    return answer(self, connection, &frame, err);
}

/* --- submit --- */

/* What the Agent has put at workspace/program, whatever it has put there. */
static epg_code capture(epg_run_state *self, epg_program *out, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    epg_code code = epg_dir_open_beneath(self->run, "workspace/program", &directory, err);
    if (code == EPG_OK) {
        code = epg_program_capture(directory, &epg_program_default_limits, out, err);
    }
    return code;
}

/* The machine's own trouble is not the Agent's. */
static bool is_hosts_trouble(const epg_error *err)
{
    static const int ours[] = {EMFILE, ENFILE, ENOMEM, EIO};
    for (size_t i = 0; i < EPG_COUNT(ours); i++) {
        if (err->code == EPG_ERR_IO && err->sys_errno == ours[i]) {
            return true;
        }
    }
    return false;
}

static epg_code program_invalid(epg_run_state *self, epg_connection_id connection, const epg_error *why, epg_error *err)
{
    EPG_TRY(EPG_EVENT(self->ledger, "submission_rejected", err, epg_field_text("reason", "program_invalid")));
    EPG_AUTO_BUFFER frame = {0};
    epg_response_error(&frame, "program_invalid", why->text);
    return answer(self, connection, &frame, err);
}

static void free_submission(epg_run_state *self)
{
    epg_program_free(&self->program);
    free(EPG_TAKE(self->planned));
    self->shown.submission = NULL;
}

/* A trusted fault: the session is over, and with it the Agent's authority. */
static epg_code fail_session(epg_run_state *self, const char *code, const epg_error *fault, epg_error *err)
{
    const epg_submission *running = epg_session_running(&self->session);
    uint64_t number = running != NULL ? running->number : 0;
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(number, id);
    self->fault = *fault;
    self->fault_code = code;
    self->stop = EPG_STOP_FAULT;
    self->grace_deadline = epg_deadline_after_ns(EPG_SECOND / 2); /* so that its client can still tell the Agent */
    epg_run_evidence_fault(self, number > 0 ? id : "session", fault);
    epg_progress_line(&self->progress, code, "%s: %s", code, fault->text);
    epg_session_failed(&self->session, code);
    epg_code written = EPG_OK;
    if (number > 0) {
        const char *event = strcmp(code, "publication_failed") == 0 ? code : "evaluation_failed";
        written =
            EPG_EVENT(self->ledger, event, err, epg_field_u64("episodes_remaining", self->session.episodes_remaining),
                      epg_field_text("fault", epg_code_name(fault->code)), epg_field_text("submission_id", id));
        if (written == EPG_OK) {
            written = epg_ledger_sync(self->ledger, err);
        }
        reply_held(self, self->session.latest);
    } else { /* when this can't be written either, the Run's end can't, and nothing is told that is not so */
        (void)EPG_EVENT(self->ledger, "session_failed", NULL, epg_field_text("fault", epg_code_name(fault->code)));
    }
    free_submission(self);
    return written;
}

static epg_code episode_ended(void *context, const epg_episode_result *episode, size_t completed, size_t total,
                              epg_error *err)
{
    epg_run_state *self = context;
    self->shown.completed = completed;
    self->shown.total = total;
    bool failed = episode->failure != EPG_POLICY_OK;
    epg_run_evidence_episode(self, self->shown_id, episode);
    return EPG_EVENT(self->ledger, "episode_completed", err, epg_field_u64("completed", completed),
                     epg_field_u64("episode_index", episode->index),
                     epg_field_text("failure", epg_policy_failure_name(episode->failure)),
                     epg_field_i64("policy_ns", episode->policy_ns),
                     epg_field_text("record_sha256", episode->record_sha256),
                     epg_field_u64("record_offset", episode->record_offset),
                     epg_field_u64("record_size", episode->record_size), epg_field_u64("record_spool", episode->spool),
                     failed ? epg_field_null("reward") : epg_field_double("reward", episode->reward),
                     epg_field_text("status", failed ? "policy_failed" : "completed"),
                     epg_field_u64("steps", episode->steps), epg_field_text("submission_id", self->shown_id),
                     epg_field_i64("total_ns", episode->total_ns), epg_field_u64("total", total));
}

static epg_code start_evaluation(epg_run_state *self, const epg_submission *submission, const epg_episode_result *done,
                                 epg_error *err)
{
    size_t count = submission->indices.count;
    self->planned = epg_alloc_array(count, sizeof *self->planned);
    for (size_t i = 0; i < count; i++) {
        uint64_t index = submission->indices.items[i];
        self->planned[i] = (epg_planned_episode){.index = index,
                                                 .spec = &self->training[index],
                                                 .policy_seed = epg_training_policy_seed(self->config->seed, index)};
    }
    epg_evaluation_plan plan = {.name = self->shown_id,
                                .program = &self->program,
                                .episodes = self->planned,
                                .count = count,
                                .done = done,
                                .observer = episode_ended,
                                .observer_context = self};
    return epg_evaluation_start(self->pool, &plan, &self->evaluation, err);
}

/* Snapshot, then charge: both durable before the first Episode. */
static epg_code charge(epg_run_state *self, const epg_indices *indices, epg_error *err)
{
    char commit[EPG_OBJECT_ID_TEXT];
    EPG_AUTO_FREE char *trailers = epg_format("Episodes: %zu\n", indices->count);
    EPG_TRY(epg_store_commit(self->store, &self->program, self->shown_id, self->shown_id, trailers,
                             epg_unix_ns() / EPG_SECOND, commit, err));
    EPG_AUTO_BUFFER text = {0};
    epg_indices_text(indices, &text);
    EPG_TRY(EPG_EVENT(
        self->ledger, "evaluation_started", err, epg_field_text("commit", commit),
        epg_field_text("episode_indices", epg_buffer_cstr(&text)), epg_field_u64("episodes", indices->count),
        epg_field_u64("episodes_remaining", self->session.episodes_remaining - indices->count),
        epg_field_text("program_digest", self->program.digest), epg_field_text("submission_id", self->shown_id)));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    (void)epg_session_charge(&self->session, indices, self->program.digest);
    return EPG_OK;
}

static epg_code submit(epg_run_state *self, epg_connection_id connection, const epg_decision *decision, epg_error *err)
{
    epg_error why = {.text = ""};
    if (capture(self, &self->program, &why) != EPG_OK) {
        if (!is_hosts_trouble(&why)) {
            return program_invalid(self, connection, &why, err);
        }
        EPG_AUTO_BUFFER frame = {0};
        epg_response_error(&frame, "session_failed", "the Host could not read the Program");
        EPG_TRY(answer(self, connection, &frame, err));
        return fail_session(self, "session_failed", &why, err);
    }
    uint64_t number = self->session.submission_count + 1;
    epg_submission_id(number, self->shown_id);
    if (charge(self, &decision->indices, &why) != EPG_OK) {
        EPG_AUTO_BUFFER frame = {0};
        epg_response_error(&frame, "session_failed", "the Host could not record the submission");
        (void)epg_gateway_reply(self->gateway, connection, epg_buffer_span(&frame));
        return fail_session(self, "session_failed", &why, err);
    }
    epg_gateway_hold(self->gateway, connection, number);
    self->shown.submission = self->shown_id;
    self->shown.completed = 0;
    self->shown.total = decision->indices.count;
    epg_run_show(self, true);
    if (start_evaluation(self, epg_session_running(&self->session), NULL, &why) != EPG_OK) {
        return fail_session(self, "evaluation_failed", &why, err);
    }
    return epg_run_evaluation_turn(self, err);
}

/* --- what comes of it --- */

void epg_run_note_best(epg_run_state *self, const epg_submission *submission)
{
    epg_progress_state *shown = &self->shown;
    shown->has_score = true;
    shown->score = submission->score;
    shown->submissions++;
    if (!shown->has_best || epg_direction_better(self->spec->direction, submission->score, shown->best)) {
        shown->has_best = true;
        shown->best = submission->score;
        epg_submission_id(submission->number, self->best_id);
        shown->best_submission = self->best_id;
    }
}

static epg_code publish(epg_run_state *self, const epg_evaluation_result *result, epg_error *err)
{
    epg_submission *submission = epg_session_running(&self->session);
    size_t found = self->evidence.count;
    double score = result->feedback.score;
    submission->score = score;
    submission->policy_failures = result->policy_failures;
    char traces[EPG_SHA256_HEX];
    EPG_TRY(epg_publish(self->publisher, submission, &self->program, result, &self->evidence, err));
    epg_run_keep_traces(self, self->shown_id, result, traces);
    epg_run_close_interval(self);
    const epg_usage *usage = &self->interval;
    EPG_TRY(EPG_EVENT(self->ledger, "submission_published", err,
                      usage->cost_known == EPG_KNOWN_NOT ? epg_field_null("agent_cost_usd")
                                                         : epg_field_double("agent_cost_usd", usage->cost),
                      usage->tokens_known == EPG_KNOWN_NOT
                          ? epg_field_null("agent_tokens")
                          : epg_field_u64("agent_tokens", epg_usage_tokens_total(usage)),
                      epg_field_u64("episodes_remaining", submission->episodes_remaining),
                      epg_field_text("feedback_sha256", epg_publisher_feedback_sha256(self->publisher)),
                      epg_field_u64("policy_failures", result->policy_failures),
                      epg_field_text("program_digest", submission->program_digest), epg_field_double("score", score),
                      epg_field_text("submission_id", self->shown_id),
                      epg_field_text("traces_sha256", traces[0] != '\0' ? traces : NULL)));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    EPG_TRY(epg_publish_latest(self->publisher, submission, &self->evidence, err));
    EPG_TRY(epg_retention_apply(self->retention, self->publisher, submission->number, &self->evidence, err));
    epg_run_evidence_findings(self, &self->evidence, found);
    return EPG_OK;
}

void epg_run_note_history(epg_run_state *self, const epg_submission *submission)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_BUFFER text = {0};
    epg_submission_id(submission->number, id);
    epg_submission_note(submission, &text);
    epg_error why = {.text = ""};
    if (epg_store_note(self->store, id, epg_buffer_cstr(&text), epg_unix_ns() / EPG_SECOND, &why) != EPG_OK) {
        epg_run_evidence_fault(self, "history", &why);
    }
}

void epg_run_tidy_history(epg_run_state *self, bool at_the_end)
{
    epg_error why = {.text = ""};
    if ((at_the_end && epg_store_write_notes(self->store, &why) != EPG_OK) ||
        (!at_the_end && epg_store_maintain(self->store, &why) != EPG_OK)) {
        epg_run_evidence_fault(self, "history", &why);
    }
}

static void tell_published(epg_run_state *self, const epg_submission *submission)
{
    EPG_AUTO_FREE char *episodes = epg_progress_episodes(submission->indices.count, submission->policy_failures);
    bool is_best = strcmp(self->shown_id, self->shown.best_submission) == 0;
    EPG_AUTO_FREE char *best = is_best ? epg_strdup("the best") : epg_format("best %.6g", self->shown.best);
    epg_progress_line(&self->progress, "submission_published", "%s: score %.6g (%s), %s, budget left %llu",
                      self->shown_id, submission->score, best, episodes,
                      (unsigned long long)self->session.episodes_remaining);
}

static epg_code evaluation_done(epg_run_state *self, epg_error *err)
{
    EPG_CLEANUP(epg_evaluation_result_free) epg_evaluation_result result = {0};
    epg_error fault = {.text = ""};
    epg_evaluation_take(self->evaluation, &result);
    epg_evaluation_free(EPG_TAKE(self->evaluation));
    if (publish(self, &result, &fault) != EPG_OK) {
        return fail_session(self, "publication_failed", &fault, err);
    }
    epg_session_published(&self->session, result.feedback.score, result.policy_failures);
    const epg_submission *submission = self->session.latest;
    reply_held(self, submission);
    epg_run_note_best(self, submission);
    epg_run_note_submission(self, submission);
    tell_published(self, submission);
    epg_run_note_history(self, submission);
    epg_run_tidy_history(self, false);
    epg_evaluation_discard_records(self->pool, self->shown_id);
    free_submission(self);
    return EPG_OK;
}

epg_code epg_run_evaluation_turn(epg_run_state *self, epg_error *err)
{
    bool done = false;
    epg_error fault = {.text = ""};
    if (self->evaluation == NULL) {
        return EPG_OK;
    }
    if (epg_evaluation_turn(self->evaluation, &done, &fault) != EPG_OK) {
        epg_evaluation_free(EPG_TAKE(self->evaluation));
        const char *code = fault.code == EPG_ERR_PUBLICATION ? "publication_failed" : "evaluation_failed";
        return fail_session(self, code, &fault, err);
    }
    return done ? evaluation_done(self, err) : EPG_OK;
}

static epg_code stop_submission(epg_run_state *self, const char *reason, epg_error *err)
{
    epg_session_failed(&self->session, "session_failed");
    reply_held(self, self->session.latest);
    epg_code code = EPG_EVENT(self->ledger, "evaluation_stopped", err,
                              epg_field_u64("episodes_remaining", self->session.episodes_remaining),
                              epg_field_text("reason", reason), epg_field_text("submission_id", self->shown_id));
    free_submission(self);
    return code;
}

epg_code epg_run_evaluation_stop(epg_run_state *self, const char *reason, epg_error *err)
{
    if (self->evaluation == NULL) {
        return EPG_OK;
    }
    EPG_TRY(epg_ledger_sync(self->ledger, err)); /* with the records that its events rest on */
    epg_evaluation_free(EPG_TAKE(self->evaluation));
    return stop_submission(self, reason, err);
}

epg_code epg_run_take_up(epg_run_state *self, epg_error *err)
{
    const epg_submission *running = epg_session_running(&self->session);
    const epg_history *history = self->history;
    epg_error why = {.text = ""};
    if (running == NULL) {
        return EPG_OK;
    }
    epg_submission_id(running->number, self->shown_id);
    if (history->agent_timed_out || history->agent_limit != NULL) { /* what ends the Agent so stops its evaluation */
        return stop_submission(self, history->agent_timed_out ? "agent_timeout" : "agent_limit", err);
    }
    self->shown.submission = self->shown_id;
    if (epg_store_load(self->store, self->shown_id, &self->program, &why) != EPG_OK) {
        return fail_session(self, "session_failed", &why, err);
    }
    if (start_evaluation(self, running, history->submissions[running->number - 1].episodes, &why) != EPG_OK) {
        return fail_session(self, "evaluation_failed", &why, err);
    }
    return epg_run_evaluation_turn(self, err);
}

/* --- finish, status, wait --- */

static epg_code name_candidates(epg_run_state *self, const char *by, const epg_decision *decision, epg_error *err)
{
    EPG_AUTO_BUFFER ids = {0};
    EPG_AUTO_BUFFER told = {0};
    for (size_t i = 0; i < decision->candidate_count; i++) {
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(decision->candidates[i], id);
        (void)epg_buffer_format(&ids, "%s%s", i > 0 ? "," : "", id);
        (void)epg_buffer_format(&told, "%s%s", i > 0 ? ", " : "", id);
    }
    EPG_TRY(EPG_EVENT(self->ledger, "finish_requested", err, epg_field_text("by", by),
                      epg_field_u64("candidate_count", decision->candidate_count),
                      epg_field_u64("episodes_remaining", self->session.episodes_remaining),
                      epg_field_text("submission_ids", epg_buffer_cstr(&ids))));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    epg_session_finish(&self->session, decision->candidates, decision->candidate_count);
    epg_progress_line(&self->progress, "finish_requested", "finished by the %s with %s", by, epg_buffer_cstr(&told));
    return EPG_OK;
}

static epg_code finish(epg_run_state *self, epg_connection_id connection, const epg_decision *decision, epg_error *err)
{
    EPG_AUTO_BUFFER frame = {0};
    EPG_TRY(name_candidates(self, "agent", decision, err));
    epg_response_finished(&frame, &self->session);
    (void)epg_gateway_reply(self->gateway, connection, epg_buffer_span(&frame));
    self->stop = EPG_STOP_FINISHED;
    self->grace_deadline = epg_deadline_after_seconds(self->config->agent_grace_seconds);
    return EPG_OK;
}

epg_code epg_run_operators_finish(epg_run_state *self, epg_error *err)
{
    EPG_CLEANUP(epg_decision_free) epg_decision decision = {0};
    const epg_run_again_request *choice = self->operators_choice;
    epg_session_check_candidates(&self->session, choice->candidates, choice->candidate_count, true, &decision);
    if (decision.code != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "%s", decision.message);
    }
    return name_candidates(self, "operator", &decision, err);
}

static epg_code tell_status(epg_run_state *self, epg_connection_id connection, epg_error *err)
{
    int64_t left = self->agent_deadline - epg_monotonic_ns();
    epg_status_facts facts = {.has_deadline = true,
                              .seconds_remaining = left > 0 ? (double)left / 1e9 : 0,
                              .episodes_completed = self->shown.completed,
                              .waiting = epg_gateway_waiting(self->gateway)};
    EPG_AUTO_BUFFER frame = {0};
    epg_response_status(&frame, &self->session, &facts);
    return answer(self, connection, &frame, err);
}

static epg_code wait_for_submission(epg_run_state *self, epg_connection_id connection, uint64_t number, epg_error *err)
{
    EPG_CLEANUP(epg_submission_free) epg_submission submission = {0};
    (void)epg_session_recall(&self->session, number, &submission);
    if (submission.state == EPG_SUBMISSION_RUNNING) {
        epg_gateway_hold(self->gateway, connection, number);
        return EPG_OK;
    }
    EPG_AUTO_BUFFER frame = {0};
    epg_response_submission(&frame, &submission);
    return answer(self, connection, &frame, err);
}

static epg_code handle(epg_run_state *self, const epg_gateway_request *request, epg_error *err)
{
    EPG_CLEANUP(epg_decision_free) epg_decision decision = {0};
    epg_session_check(&self->session, request->object, &decision);
    if (decision.code != NULL) {
        return refuse(self, request->connection, &decision, err);
    }
    switch (decision.method) {
    case EPG_METHOD_SUBMIT:
        return submit(self, request->connection, &decision, err);
    case EPG_METHOD_FINISH:
        return finish(self, request->connection, &decision, err);
    case EPG_METHOD_STATUS:
        return tell_status(self, request->connection, err);
    case EPG_METHOD_WAIT:
        return wait_for_submission(self, request->connection, decision.wait_for, err);
    case EPG_METHOD_NONE:
        break;
    }
    return epg_fail(err, EPG_ERR_INTERNAL, "a request was admitted without a method");
}

epg_code epg_run_serve(epg_run_state *self, epg_error *err)
{
    epg_gateway_request request;
    EPG_TRY(epg_run_evaluation_turn(self, err));
    while (epg_gateway_next(self->gateway, self->evaluation == NULL, &request)) {
        if (request.object != NULL) { /* noise is no work */
            epg_run_watch_request(self);
        }
        epg_code code = handle(self, &request, err);
        json_decref(request.object);
        EPG_TRY(code);
    }
    return EPG_OK;
}
