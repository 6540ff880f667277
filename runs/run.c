/* The Run's life, in order. Each phase is one function; what ends a phase early is told by self->stop, self->fault_code
 * or self->interrupted, and turned into the terminal reason at the end. A Run that was cut off goes on here too: its
 * history says how far it came. */
#include "runs/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/coordinator.h"
#include "runs/document.h"
#include "runs/request.h"
#include "runs/seal.h"
#include "system/signals.h"

enum { END_LIMIT_S = 5 };

void epg_run_outcome_free(epg_run_outcome *outcome)
{
    free(outcome->detail);
    *outcome = (epg_run_outcome){0};
}

/* K best by score, for an Agent that ended without finish, when the user asked for that. */
static epg_code hand_over_best(epg_run_state *self, epg_error *err)
{
    epg_session *session = &self->session;
    uint64_t most = self->request->best_on_exit;
    if (most == 0 || session->candidate_count > 0 || self->interrupted != 0 || self->fault_code != NULL) {
        return EPG_OK;
    }
    most = most < self->config->max_candidates ? most : self->config->max_candidates;
    EPG_AUTO_FREE uint64_t *chosen = epg_alloc_array(most, sizeof *chosen);
    size_t count = 0;
    while (count < most) {
        uint64_t best = 0;
        double best_score = 0;
        for (uint64_t number = 1; number <= session->submission_count; number++) {
            double score = 0;
            bool taken = !epg_session_score(session, number, &score);
            for (size_t j = 0; j < count; j++) {
                taken = taken || chosen[j] == number;
            }
            if (!taken && (best == 0 || epg_direction_better(self->spec->direction, score, best_score))) {
                best = number;
                best_score = score;
            }
        }
        if (best == 0) {
            break;
        }
        chosen[count++] = best;
    }
    if (count == 0) {
        return EPG_OK;
    }
    EPG_AUTO_BUFFER ids = {0};
    for (size_t i = 0; i < count; i++) {
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(chosen[i], id);
        (void)epg_buffer_format(&ids, "%s%s", i > 0 ? "," : "", id);
    }
    epg_session_finish(session, chosen, count);
    return EPG_EVENT(self->ledger, "finish_requested", err, epg_field_text("by", "host"),
                     epg_field_u64("candidate_count", count),
                     epg_field_u64("episodes_remaining", session->episodes_remaining),
                     epg_field_text("submission_ids", epg_buffer_cstr(&ids)));
}

static epg_code phase_failed(epg_run_state *self, const char *event, const epg_error *fault, const epg_field *field,
                             epg_error *err)
{
    if (fault->code == EPG_ERR_INTERRUPTED) {
        return EPG_OK; /* self->interrupted tells */
    }
    self->fault = *fault;
    self->fault_code = event;
    epg_run_evidence_fault(self, event, fault);
    epg_progress_line(&self->progress, event, "%s: %s", event, fault->text);
    epg_field fields[2] = {*field, epg_field_text("fault", epg_code_name(fault->code))};
    return epg_ledger_append(self->ledger, event, fields, 2, err);
}

static epg_code select_and_measure(epg_run_state *self, epg_run_outcome *out, epg_error *err)
{
    epg_error fault = {.text = ""};
    const epg_session *session = &self->session;
    bool assessment_failed = self->fault_code != NULL && strcmp(self->fault_code, "assessment_failed") == 0;
    if (session->candidate_count == 0 || self->interrupted != 0 || (self->fault_code != NULL && !assessment_failed)) {
        return EPG_OK;
    }
    uint64_t selected = session->candidates[0];
    if (self->config->validate) {
        if (epg_run_validate(self, &selected, &out->validation_score, &fault) != EPG_OK) {
            epg_field field = epg_field_u64("candidate_count", session->candidate_count);
            return phase_failed(self, "validation_failed", &fault, &field, err);
        }
        out->has_validation_score = true;
    }
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(selected, id);
    out->final_submission = selected;
    if (self->history == NULL || self->history->selected != selected) {
        EPG_CLEANUP(epg_submission_free) epg_submission submission = {0};
        (void)epg_session_recall(session, selected, &submission);
        EPG_TRY(EPG_EVENT(self->ledger, "final_submission_selected", err,
                          epg_field_text("program_digest", submission.program_digest),
                          epg_field_text("submission_id", id)));
        EPG_TRY(epg_ledger_sync(self->ledger, err));
    }
    if (self->config->assess && !assessment_failed) {
        if (epg_run_assess(self, selected, &out->assessment_score, &fault) != EPG_OK) {
            epg_field field = epg_field_text("submission_id", id);
            return phase_failed(self, "assessment_failed", &fault, &field, err);
        }
        out->has_assessment_score = true;
    }
    return EPG_OK;
}

static const char *terminal_reason(const epg_run_state *self)
{
    if (self->interrupted != 0) {
        return "interrupted";
    }
    if (self->fault_code != NULL) {
        static const char *const known[] = {"validation_failed", "assessment_failed"};
        for (size_t i = 0; i < EPG_COUNT(known); i++) {
            if (strcmp(self->fault_code, known[i]) == 0) {
                return known[i];
            }
        }
        return "evaluation_failed";
    }
    if (self->session.candidate_count > 0) {
        return "finished";
    }
    if (self->agent_start_failed || self->agent_timed_out || self->limit != NULL ||
        epg_run_returncode(&self->agent_end.exit) != 0) {
        return "agent_failed";
    }
    return self->session.episodes_remaining == 0 ? "budget_exhausted" : "agent_exited";
}

/* Why the Run ended so, where its reason alone does not tell; NULL: it does. Caller frees. */
static char *reason_detail(const epg_run_state *self, const char *reason)
{
    const epg_exit *how = &self->agent_end.exit;
    if (self->fault_code != NULL || self->agent_start_failed) {
        return epg_strdup(self->fault.text);
    }
    if (strcmp(reason, "agent_failed") != 0) {
        return NULL;
    }
    if (self->agent_timed_out) {
        return epg_format("the Agent's time was over (--agent-timeout %.15g)", self->config->agent_timeout_seconds);
    }
    if (self->limit != NULL) {
        return epg_format("the Agent was ended at its limit (%s)", self->limit);
    }
    const epg_agent_error *told = self->transcript != NULL ? epg_transcript_error(self->transcript) : NULL;
    const char *message = told != NULL ? told->message : NULL;
    message = message != NULL && epg_starts_with(message, "exit code ") ? NULL : message;
    return how->signal != 0 ? epg_format("the Agent was killed by signal %d (%s)", how->signal, strsignal(how->signal))
                            : epg_format("the Agent ended with exit code %d%s%s", how->code,
                                         message != NULL ? ": " : "", message != NULL ? message : "");
}

/* Before the Run's last event: what is there afterwards belongs to the record. A snapshot that was not charged, because
 * its charge could not be written, does not. */
static epg_code take_away(epg_run_state *self, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(self->session.submission_count + 1, id);
    EPG_TRY(epg_store_recover(self->store, err));
    EPG_TRY(epg_store_drop(self->store, id, err));
    EPG_TRY(epg_run_directory_recover(self->run, err));
    return epg_run_directory_tidy(self->run, err);
}

static void tidy(epg_run_state *self)
{
    epg_error why = {.text = ""};
    if (self->interrupted == 0 && take_away(self, &why) != EPG_OK) {
        epg_run_evidence_fault(self, "tidying", &why);
    }
    epg_run_tidy_history(self, true);
}

static epg_code conclude(epg_run_state *self, epg_run_outcome *out, epg_error *err)
{
    const char *reason = terminal_reason(self);
    (void)strncpy(out->terminal_reason, reason, sizeof out->terminal_reason - 1);
    out->submissions = self->shown.submissions;
    out->fault = self->fault_code != NULL ? self->fault.code : EPG_OK;
    out->detail = reason_detail(self, reason);
    char id[EPG_SUBMISSION_ID_TEXT] = "";
    EPG_CLEANUP(epg_submission_free) epg_submission final = {0};
    if (epg_session_recall(&self->session, out->final_submission, &final)) {
        epg_submission_id(final.number, id);
    }
    epg_usage usage = epg_run_usage(self);
    uint64_t tokens = epg_usage_tokens_total(&usage);
    double cost = usage.cost;
    bool tokens_known = usage.tokens_known != EPG_KNOWN_NOT;
    bool cost_known = usage.cost_known != EPG_KNOWN_NOT;
    if (self->history != NULL) { /* the ends of a Run are added up: each tells what none has told before */
        tokens -= tokens < self->history->tokens ? tokens : self->history->tokens;
        cost -= cost < self->history->cost ? cost : self->history->cost;
        tokens_known = tokens_known && (tokens > 0 || self->transcript != NULL);
        cost_known = cost_known && (cost > 0 || self->transcript != NULL);
    }
    tidy(self);
    EPG_TRY(epg_run_settle_task(self, err));
    EPG_TRY(epg_run_seal_logs(self, err));
    EPG_TRY(EPG_EVENT(
        self->ledger, self->interrupted != 0 ? "run_interrupted" : "run_finished", err,
        cost_known ? epg_field_double("agent_cost_usd", cost) : epg_field_null("agent_cost_usd"),
        tokens_known ? epg_field_u64("agent_tokens", tokens) : epg_field_null("agent_tokens"),
        epg_field_text("agent_usage", epg_known_name(tokens_known ? usage.tokens_known : usage.cost_known)),
        epg_field_text("program_digest", final.number > 0 ? final.program_digest : NULL),
        epg_field_text("submission_id", id[0] != '\0' ? id : NULL), epg_field_text("terminal_reason", reason)));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    EPG_TRY(epg_run_document_conclude(self, out, err));
    return EPG_OK;
}

static void release(epg_run_state *self)
{
    epg_evaluation_free(self->evaluation);
    if (self->agent != NULL) {
        epg_error ignored;
        (void)epg_agent_close(self->agent, &self->agent_end, &ignored);
    }
    if (self->gateway != NULL) {
        epg_gateway_close(self->gateway, 0);
    }
    for (uint64_t i = 0; self->training != NULL && i < self->config->episode_pool_size; i++) {
        epg_episode_spec_free(&self->training[i]);
    }
    free(self->training);
    epg_pool_close(self->pool);
    if (self->has_agent_end && !self->agent_end.owned_to_the_end) {
        /* Somebody killed the Agent's monitor: what it owned has become ours. */
        epg_ended ended;
        epg_descendants_end(NULL, 0, 0, epg_deadline_after_seconds(END_LIMIT_S), &ended);
    }
    epg_retention_free(self->retention);
    if (self->publisher != NULL) {
        epg_publisher_close(self->publisher);
    }
    if (self->ledger != NULL) {
        epg_ledger_close(self->ledger);
    }
    epg_store_close(self->store);
    epg_session_free(&self->session);
    epg_evidence_free(&self->evidence);
    epg_program_free(&self->program);
    free(self->planned);
    epg_transcript_free(self->transcript);
    epg_redactor_free(self->redactor);
    epg_invocation_free(&self->invocation);
    epg_buffer_free(&self->task);
    int *const fds[] = {&self->run, &self->lock, &self->signals, &self->evidence_log, &self->transcript_fd};
    for (size_t i = 0; i < EPG_COUNT(fds); i++) {
        epg_close_cleanup(fds[i]);
    }
    free(self->path);
    free(self->workspace);
    free(self->agent_home);
    json_decref(self->agent_box);
    free(self->intervals);
    epg_progress_close(&self->progress);
}

static epg_code open_state(epg_run_state *self, const epg_run_request *request, epg_error *err)
{
    *self = (epg_run_state){.request = request,
                            .config = request->config,
                            .run = -1,
                            .lock = -1,
                            .signals = -1,
                            .evidence_log = -1,
                            .transcript_fd = -1,
                            .began = epg_monotonic_ns()};
    self->shown.deadline = EPG_NEVER;
    self->shown.phase = "starting";
    self->shown.budget = request->config->episode_budget;
    (void)epg_become_subreaper();
    epg_session_init(&self->session, request->config);
    epg_progress_open(&self->progress, request->progress);
    return epg_signals_open(&self->signals, err);
}

static epg_code after_agent(epg_run_state *self, epg_run_outcome *out, epg_error *err)
{
    EPG_TRY(hand_over_best(self, err));
    EPG_TRY(select_and_measure(self, out, err));
    return conclude(self, out, err);
}

epg_code epg_run(const epg_run_request *request, epg_run_outcome *out, epg_error *err)
{
    epg_run_state self;
    EPG_CLEANUP(epg_run_outcome_free) epg_run_outcome outcome = {0};
    epg_code code = open_state(&self, request, err);
    if (code == EPG_OK) {
        code = epg_run_prepare(&self, err);
    }
    if (code == EPG_OK) {
        code = epg_run_create(&self, err);
    }
    if (code == EPG_OK) {
        code = epg_run_agent_phase(&self, request->config->agent_timeout_seconds, err);
    }
    if (code == EPG_OK) {
        code = after_agent(&self, &outcome, err);
    }
    release(&self);
    if (code == EPG_OK) {
        *out = outcome;
        outcome = (epg_run_outcome){0};
    }
    return code;
}

/* --- a Run that exists --- */

/* A submission that was charged and not published: completed and published, at no charge. */
static epg_code complete_pending(epg_run_state *self, epg_error *err)
{
    EPG_TRY(epg_run_take_up(self, err));
    while (self->evaluation != NULL) {
        EPG_TRY(epg_run_wait(self, EPG_NEVER, err));
        if (self->interrupted != 0) {
            return epg_run_evaluation_stop(self, "interrupted", err);
        }
        EPG_TRY(epg_run_evaluation_turn(self, err));
    }
    return EPG_OK;
}

static epg_code agent_again(epg_run_state *self, epg_error *err)
{
    const epg_history *history = self->history;
    double left = self->config->agent_timeout_seconds - (double)history->agent_used_ns / 1e9;
    if (left <= 0) {
        self->agent_timed_out = true;
        return EPG_EVENT(self->ledger, "agent_timeout", err,
                         epg_field_double("seconds", self->config->agent_timeout_seconds));
    }
    EPG_TRY(epg_run_prepare_again(self, left, err));
    return epg_run_agent_phase(self, left, err);
}

/* How the Agent's phase ended, and which trusted fault ended the Run, where an earlier Host has told. */
static void restore_end(epg_run_state *self)
{
    const epg_history *history = self->history;
    if (history->agent_start_failed) {
        (void)epg_fail(&self->fault, EPG_ERR_IO, "the Agent could not be started (evidence.jsonl tells why)");
    }
    if (history->fault != NULL && self->operators_choice == NULL) {
        self->fault_code = history->fault;
        (void)epg_fail(&self->fault, history->fault_code, "%s: %s (evidence.jsonl tells more)", history->fault,
                       epg_code_name(history->fault_code));
    }
    self->limit = history->agent_limit;
    self->agent_start_failed = history->agent_start_failed;
    self->agent_timed_out = history->agent_timed_out;
    self->has_agent_end = history->agent_over && !history->agent_start_failed;
    int code = history->agent_returncode;
    self->agent_end.exit = code < 0 ? (epg_exit){.code = -1, .signal = -code} : (epg_exit){.code = code};
}

/* Whether the Agent is to be started again. `choice`: what the operator hands over; NULL: nothing. */
static bool agent_comes(const epg_history *history, const epg_run_again_request *choice)
{
    return choice == NULL && history->candidate_count == 0 && history->fault == NULL && !history->agent_over &&
           !history->agent_timed_out && history->agent_limit == NULL;
}

static epg_code go_on(epg_run_state *self, epg_history *history, epg_run_outcome *out, epg_error *err)
{
    bool agent_phase = agent_comes(history, self->operators_choice);
    EPG_TRY(EPG_EVENT(self->ledger, "run_resumed", err,
                      epg_field_double("agent_seconds_used", (double)history->agent_used_ns / 1e9),
                      epg_field_text("phase", agent_phase ? "agent" : "measure")));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    restore_end(self);
    EPG_TRY(complete_pending(self, err));
    epg_history_forget_submissions(history);
    if (agent_phase && self->interrupted == 0 && self->fault_code == NULL) {
        EPG_TRY(agent_again(self, err));
    }
    if (self->operators_choice != NULL && self->interrupted == 0) {
        EPG_TRY(epg_run_operators_finish(self, err));
    }
    return after_agent(self, out, err);
}

static epg_code complete_already(const char *directory, const epg_history *history, epg_error *err)
{
    EPG_AUTO_FREE char *run = epg_shell_word(directory);
    if (history->candidate_count == 0 && history->submission_count > 0) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "this Run is over (%s) and no candidate was handed over: to choose one, evopolicygym finish %s "
                        "best",
                        history->terminal_reason, run);
    }
    return epg_fail(err, EPG_ERR_USAGE,
                    "this Run is complete (%s): to run it again, evopolicygym run NEW-RUN --like %s",
                    history->terminal_reason, run);
}

static epg_code resumable(const char *directory, const epg_history *history, bool finishing, epg_error *err)
{
    if (history->request == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "this Run has no config.json: another Host's Run can be read, not resumed");
    }
    if (history->chain_broken || history->recorded > history->event_count) {
        return epg_fail(err, EPG_ERR_USAGE, "the events of this Run were altered; 'evopolicygym verify' tells where");
    }
    bool complete = history->ended && epg_history_is_recorded(history);
    if (finishing && history->candidate_count > 0 && !complete) {
        EPG_AUTO_FREE char *run = epg_shell_word(directory);
        return epg_fail(err, EPG_ERR_USAGE,
                        "this Run has its candidates already and was cut off: to go on with them, evopolicygym resume "
                        "%s",
                        run);
    }
    if (finishing && history->candidate_count > 0) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "this Run has its candidates already; to measure another submission, evopolicygym replay RUN "
                        "--submission ID --on SPLIT:EPISODES");
    }
    if (!finishing && complete) {
        return complete_already(directory, history, err);
    }
    return EPG_OK;
}

/* A mistake in the operator's choice is told before anything is written. A submission that is still to be completed may
 * become a candidate, so then it is judged later. */
static epg_code check_choice(const epg_run_state *self, epg_error *err)
{
    const epg_run_again_request *choice = self->operators_choice;
    if (choice == NULL || epg_session_running(&self->session) != NULL) {
        return EPG_OK;
    }
    EPG_CLEANUP(epg_decision_free) epg_decision decision = {0};
    epg_session_check_candidates(&self->session, choice->candidates, choice->candidate_count, true, &decision);
    return decision.code == NULL ? EPG_OK : epg_fail(err, EPG_ERR_USAGE, "%s", decision.message);
}

/* What a Run goes on from must be what it began with. */
static epg_code begins_as_sealed(int run, const epg_history *history, epg_error *err)
{
    static const char *const used[] = {"config.json", "agent/" EPG_RUN_ADAPTER_FILE};
    for (size_t i = 0; i < EPG_COUNT(used); i++) {
        const epg_history_seal *seal = epg_seal_find(history, used[i]);
        const char *what = seal != NULL ? epg_seal_check(run, seal, false) : NULL;
        if (what != NULL) {
            return epg_fail(err, EPG_ERR_USAGE, "this Run can't go on: its %s %s", used[i], what);
        }
    }
    return EPG_OK;
}

epg_code epg_run_again(const char *directory, const epg_run_again_request *again, epg_run_outcome *out, epg_error *err)
{
    EPG_AUTO_CLOSE int run = -1;
    EPG_AUTO_CLOSE int lock = -1;
    EPG_CLEANUP(epg_history_free) epg_history history = {0};
    EPG_CLEANUP(epg_stored_request_free) epg_stored_request stored = {0};
    EPG_TRY(epg_run_directory_open(directory, &run, err));
    EPG_TRY(epg_run_lock(run, &lock, err));
    if (epg_history_read(run, &history, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "%s", directory);
    }
    EPG_TRY(resumable(directory, &history, again->candidate_count > 0, err));
    EPG_TRY(begins_as_sealed(run, &history, err));
    EPG_AUTO_FREE char *path = realpath(directory, NULL);
    EPG_TRY(epg_stored_request_read(path, &history, again, &stored, err));
    const epg_run_again_request *choice = again->candidate_count > 0 ? again : NULL;
    if (stored.missing != NULL && agent_comes(&history, choice)) {
        return epg_fail(err, EPG_ERR_USAGE, "%s", stored.missing);
    }
    json_decref(EPG_TAKE(history.record)); /* a line for each Episode, and made anew at the end */
    epg_run_state self;
    EPG_CLEANUP(epg_run_outcome_free) epg_run_outcome outcome = {0};
    epg_code code = open_state(&self, &stored.request, err);
    self.run = epg_take_fd(&run);
    self.lock = epg_take_fd(&lock);
    self.path = EPG_TAKE(path);
    self.history = &history;
    self.operators_choice = choice;
    epg_history_session(&history, &self.session);
    if (code == EPG_OK) {
        code = check_choice(&self, err);
    }
    if (code == EPG_OK) {
        code = epg_run_reopen(&self, err);
    }
    if (code == EPG_OK) {
        code = go_on(&self, &history, &outcome, err);
    }
    release(&self);
    if (code == EPG_OK) {
        *out = outcome;
        outcome = (epg_run_outcome){0};
    }
    return code;
}
