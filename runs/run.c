/* The Run's life, in order. Each phase is one function; what ends a phase early is told by self->stop, self->fault_code
 * or self->interrupted, and turned into the terminal reason at the end. */
#include "runs/run.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agents/task.h"
#include "runs/coordinator.h"
#include "runs/document.h"
#include "system/files.h"
#include "system/io.h"
#include "system/signals.h"

enum { TERMINATE_GRACE_MS = 500, END_LIMIT_S = 10, REPLY_LIMIT_S = 2 };

void epg_run_outcome_free(epg_run_outcome *outcome)
{
    free(outcome->detail);
    *outcome = (epg_run_outcome){0};
}

/* --- set up --- */

static void task_text(const epg_run_state *self, epg_buffer *out)
{
    const epg_config *config = self->config;
    const epg_run_request *request = self->request;
    EPG_AUTO_FREE const char **skills = epg_alloc_array(request->skill_count, sizeof *skills);
    for (size_t i = 0; i < request->skill_count; i++) {
        skills[i] = request->skills[i].name;
    }
    epg_task task = {.spec = self->spec,
                     .episode_budget = config->episode_budget,
                     .episode_pool_size = config->episode_pool_size,
                     .max_submissions = config->max_submissions,
                     .max_episodes_per_submission = config->max_episodes_per_submission,
                     .require_budget_exhaustion = config->finish_budget_policy == EPG_FINISH_REQUIRE_EXHAUSTION,
                     .episode_timeout_seconds = config->episode_timeout_seconds,
                     .agent_timeout_seconds = config->agent_timeout_seconds,
                     .finish_grace_seconds = config->agent_grace_seconds,
                     .bulk_feedback_retention_bytes = config->bulk_feedback_retention_bytes,
                     .has_validation = config->validate,
                     .validation_episodes = config->episodes_per_candidate,
                     .validation_max_candidates = config->max_candidates,
                     .has_assessment = config->assess,
                     .assessment_episodes = config->assessment_episodes,
                     .program_max_files = epg_program_default_limits.files,
                     .program_max_bytes = epg_program_default_limits.total_bytes,
                     .program_max_file_bytes = epg_program_default_limits.file_bytes,
                     .skills = skills,
                     .skill_count = request->skill_count};
    epg_task_text(&task, out);
}

/* The absolute path that the Run directory will have: its parent's, which must exist, and its name. */
static epg_code absolute_path(const char *directory, char **out, epg_error *err)
{
    EPG_AUTO_FREE char *for_parent = epg_strdup(directory);
    EPG_AUTO_FREE char *for_name = epg_strdup(directory);
    const char *name = basename(for_name);
    const char *parent = dirname(for_parent);
    if (directory[0] == '\0' || strcmp(name, "/") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "\"%s\" can't be a Run directory: name one that does not exist", directory);
    }
    EPG_AUTO_FREE char *resolved = realpath(parent, NULL);
    if (resolved == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "the directory \"%s\" that shall hold the Run can't be used: %s", parent,
                        strerror(errno));
    }
    *out = epg_format("%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, name);
    if (access(*out, F_OK) == 0) {
        epg_code code =
            epg_fail(err, EPG_ERR_USAGE, "\"%s\" exists already; name a directory that does not", directory);
        free(EPG_TAKE(*out));
        return code;
    }
    return EPG_OK;
}

static epg_code build_invocation(epg_run_state *self, const epg_buffer *task, epg_error *err)
{
    epg_agent_request agent = self->request->agent;
    agent.instructions = epg_buffer_cstr(task);
    agent.workspace = self->workspace;
    agent.root = geteuid() == 0;
    EPG_TRY(epg_invocation_build(&agent, &self->invocation, err));
    return epg_invocation_redactor(&self->invocation, agent.adapter, &self->redactor, err);
}

/* Everything that can be wrong is found here, before the Run directory exists. */
static epg_code prepare(epg_run_state *self, epg_buffer *task, epg_error *err)
{
    const epg_run_request *request = self->request;
    EPG_TRY(absolute_path(request->directory, &self->path, err));
    self->workspace = epg_format("%s/workspace", self->path);
    epg_pool_config pool = *request->pool;
    pool.episode_timeout_seconds = self->config->episode_timeout_seconds;
    EPG_TRY(epg_pool_open(&pool, &self->pool, err));
    self->spec = epg_pool_spec(self->pool);
    task_text(self, task);
    EPG_TRY(build_invocation(self, task, err));
    return epg_pool_plan(self->pool, self->config->split, epg_training_pool_seed(self->config->seed),
                         self->config->episode_pool_size, &self->training, err);
}

static epg_code create(epg_run_state *self, const epg_buffer *task, epg_error *err)
{
    const epg_run_request *request = self->request;
    EPG_TRY(
        epg_run_directory_create(self->path, request->initial, request->skills, request->skill_count, &self->run, err));
    EPG_TRY(epg_run_document_write(self->run, request, self->spec, err));
    EPG_TRY(epg_run_record_invocation(self->run, &self->invocation, self->redactor, epg_buffer_span(task), err));
    EPG_AUTO_FREE char *history = epg_format("%s/history.git", self->path);
    char commit[EPG_OBJECT_ID_TEXT];
    EPG_TRY(epg_store_create(history, &self->store, err));
    EPG_TRY(epg_store_commit(self->store, request->initial, "initial", "Initial Program", NULL,
                             epg_unix_ns() / EPG_SECOND, commit, err));
    EPG_TRY(epg_run_evidence_open(self, err));
    EPG_TRY(epg_ledger_create(self->run, &self->ledger, err));
    EPG_TRY(epg_publisher_open(self->run, &self->publisher, err));
    self->retention = epg_retention_new(self->config->bulk_feedback_retention_bytes);
    EPG_AUTO_CLOSE int workspace = -1;
    EPG_TRY(epg_dir_open_beneath(self->run, "workspace", &workspace, err));
    EPG_TRY(epg_file_write_new(workspace, EPG_TASK_FILE, epg_buffer_span(task), 0444, false, err));
    EPG_AUTO_FREE char *records = epg_format("%s/records", self->path);
    if (epg_io_mkdir(self->run, "records", 0700) != 0) {
        return epg_fail_errno(err, errno, "can't make the directory for records");
    }
    return epg_pool_keep_records(self->pool, records, true, err);
}

/* --- the Agent's phase --- */

static int open_stdin(const epg_run_state *self, const epg_buffer *task)
{
    if (self->invocation.task_way != EPG_TASK_STDIN) {
        return -1;
    }
    int fd = memfd_create("instructions", MFD_CLOEXEC);
    if (fd >= 0 && (epg_io_write_all(fd, task->data, task->size) != 0 || lseek(fd, 0, SEEK_SET) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static epg_code start_agent(epg_run_state *self, const epg_buffer *task, epg_error *err)
{
    EPG_AUTO_FREE char *executable = epg_own_executable();
    EPG_AUTO_CLOSE int logs = -1;
    EPG_AUTO_CLOSE int workspace = -1;
    EPG_AUTO_CLOSE int input = open_stdin(self, task);
    EPG_TRY(epg_dir_open_beneath(self->run, "agent", &logs, err));
    EPG_TRY(epg_dir_open_beneath(self->run, "workspace", &workspace, err));
    const char *path = getenv("PATH");
    char **environment = epg_invocation_environment(&self->invocation, path, dirname(executable),
                                                    epg_gateway_socket_path(self->gateway), self->workspace);
    self->transcript_fd = epg_io_open(logs, "transcript.jsonl", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    EPG_AUTO_BUFFER opening = {0};
    self->transcript = epg_transcript_new(self->request->agent.adapter, self->redactor, &opening);
    (void)epg_io_write_all(self->transcript_fd, opening.data, opening.size);
    epg_spawn spawn = {.argv = (const char *const *)self->invocation.argv,
                       .environment = (const char *const *)environment,
                       .search_path = path,
                       .working_directory = workspace};
    epg_agent_start start = {.spawn = &spawn,
                             .stdin_fd = input,
                             .log_directory = logs,
                             .redactor = self->redactor,
                             .transcript = self->transcript,
                             .transcript_fd = self->transcript_fd};
    epg_code code = epg_agent_open(&start, &self->agent, err);
    epg_texts_free(environment);
    return code;
}

static epg_code agent_did_not_start(epg_run_state *self, const epg_error *why, epg_error *err)
{
    self->agent_start_failed = true;
    self->fault = *why;
    epg_run_evidence_fault(self, "agent", why);
    epg_progress_line(&self->progress, "agent_start_failed", "the Agent could not be started: %s", why->text);
    return EPG_EVENT(self->ledger, "agent_start_failed", err, epg_field_i64("errno", why->sys_errno),
                     epg_field_text("error_type", epg_code_name(why->code)));
}

/* The Agent is asked to end once: after the grace time, at its deadline, after a fault, or at a signal. */
static epg_code watch_agent(epg_run_state *self, epg_error *err)
{
    int64_t now = epg_monotonic_ns();
    if (self->interrupted != 0 && self->stop != EPG_STOP_SIGNAL) {
        self->stop = EPG_STOP_SIGNAL;
        EPG_TRY(epg_run_evaluation_stop(self, "interrupted", err));
    }
    if (now >= self->agent_deadline && self->stop == EPG_STOP_NONE) {
        self->stop = EPG_STOP_TIMEOUT;
        self->agent_timed_out = true;
        EPG_TRY(EPG_EVENT(self->ledger, "agent_timeout", err,
                          epg_field_double("seconds", self->config->agent_timeout_seconds)));
        EPG_TRY(epg_run_evaluation_stop(self, "agent_timeout", err));
    }
    bool over = self->stop != EPG_STOP_NONE && (self->stop != EPG_STOP_FINISHED || now >= self->grace_deadline);
    if (over && !self->agent_terminated) {
        self->agent_terminated = true;
        self->agent_stopped_after_terminal = self->stop == EPG_STOP_FINISHED || self->stop == EPG_STOP_FAULT;
        epg_agent_terminate(self->agent, TERMINATE_GRACE_MS * EPG_MILLISECOND);
    }
    if (self->hurry) {
        epg_agent_kill(self->agent);
    }
    return EPG_OK;
}

static int64_t agent_phase_deadline(const epg_run_state *self)
{
    if (self->agent_terminated) {
        return EPG_NEVER;
    }
    return self->stop == EPG_STOP_FINISHED ? self->grace_deadline : self->agent_deadline;
}

/* An Agent that ended while its submission is evaluated: that was charged and is published all the same. */
static epg_code serve_agent(epg_run_state *self, epg_error *err)
{
    while (!epg_agent_exited(self->agent, NULL) || self->evaluation != NULL) {
        EPG_TRY(epg_run_wait(self, agent_phase_deadline(self), err));
        EPG_TRY(epg_run_serve(self, err));
        EPG_TRY(watch_agent(self, err));
    }
    return EPG_OK;
}

static int returncode(const epg_exit *how)
{
    return how->signal != 0 ? -how->signal : how->code;
}

static void close_transcript(epg_run_state *self, const epg_exit *how)
{
    if (self->transcript == NULL) {
        return;
    }
    EPG_AUTO_BUFFER lines = {0};
    epg_transcript_end(self->transcript, how->code, how->signal, &lines);
    (void)epg_io_write_all(self->transcript_fd, lines.data, lines.size);
}

static epg_code end_agent(epg_run_state *self, epg_error *err)
{
    EPG_TRY(epg_agent_close(EPG_TAKE(self->agent), &self->agent_end, err));
    self->has_agent_end = true;
    close_transcript(self, &self->agent_end.exit);
    const char *event = self->agent_stopped_after_terminal ? "agent_stopped_after_terminal" : "agent_exited";
    const epg_ended *ended = &self->agent_end.ended;
    return EPG_EVENT(self->ledger, event, err, epg_field_u64("left_behind", ended->orphans),
                     epg_field_u64("processes_killed", ended->killed),
                     epg_field_i64("returncode", returncode(&self->agent_end.exit)));
}

static epg_code agent_phase(epg_run_state *self, const epg_buffer *task, epg_error *err)
{
    epg_error why = {.text = ""};
    self->shown.phase = "agent";
    EPG_TRY(epg_gateway_open(NULL, &self->gateway, err));
    if (start_agent(self, task, &why) != EPG_OK) {
        return agent_did_not_start(self, &why, err);
    }
    self->agent_deadline = epg_deadline_after_seconds(self->config->agent_timeout_seconds);
    self->shown.deadline = self->agent_deadline;
    EPG_TRY(EPG_EVENT(self->ledger, "agent_started", err, epg_field_text("benchmark_id", self->spec->id),
                      epg_field_text("environment_digest", self->spec->environment_digest),
                      epg_field_text("initial_program_digest", self->request->initial->digest)));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    epg_progress_line(&self->progress, "agent_started", "the Agent works in %s", self->workspace);
    epg_code code = serve_agent(self, err);
    if (code == EPG_OK) {
        code = end_agent(self, err);
    }
    self->shown.deadline = EPG_NEVER;
    return code;
}

static void close_session(epg_run_state *self)
{
    epg_session_close(&self->session);
    if (self->gateway != NULL) {
        epg_gateway_close(EPG_TAKE(self->gateway),
                          epg_deadline_after_seconds(self->interrupted != 0 ? 0 : REPLY_LIMIT_S));
    }
}

/* --- after the Agent --- */

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
        const epg_submission *best = NULL;
        for (size_t i = 0; i < session->submission_count; i++) {
            const epg_submission *one = &session->submissions[i];
            bool taken = one->state != EPG_SUBMISSION_PUBLISHED;
            for (size_t j = 0; j < count; j++) {
                taken = taken || chosen[j] == one->number;
            }
            if (!taken && (best == NULL || epg_direction_better(self->spec->direction, one->score, best->score))) {
                best = one;
            }
        }
        if (best == NULL) {
            break;
        }
        chosen[count++] = best->number;
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
    if (session->candidate_count == 0 || self->interrupted != 0 || self->fault_code != NULL) {
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
    EPG_TRY(EPG_EVENT(self->ledger, "final_submission_selected", err,
                      epg_field_text("program_digest", epg_session_submission(session, selected)->program_digest),
                      epg_field_text("submission_id", id)));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    if (self->config->assess) {
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
    if (self->agent_start_failed || self->agent_timed_out || returncode(&self->agent_end.exit) != 0) {
        return "agent_failed";
    }
    return self->session.episodes_remaining == 0 ? "budget_exhausted" : "agent_exited";
}

static epg_code conclude(epg_run_state *self, epg_run_outcome *out, epg_error *err)
{
    const char *reason = terminal_reason(self);
    (void)strncpy(out->terminal_reason, reason, sizeof out->terminal_reason - 1);
    out->submissions = self->shown.submissions;
    if (self->fault_code != NULL || self->agent_start_failed) {
        out->detail = epg_strdup(self->fault.text);
    }
    char id[EPG_SUBMISSION_ID_TEXT] = "";
    const char *digest = NULL;
    if (out->final_submission > 0) {
        epg_submission_id(out->final_submission, id);
        digest = epg_session_submission(&self->session, out->final_submission)->program_digest;
    }
    EPG_TRY(EPG_EVENT(self->ledger, self->interrupted != 0 ? "run_interrupted" : "run_finished", err,
                      epg_field_text("program_digest", digest),
                      epg_field_text("submission_id", id[0] != '\0' ? id : NULL),
                      epg_field_text("terminal_reason", reason)));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    EPG_TRY(epg_run_document_conclude(self, out, err));
    epg_run_directory_tidy(self->run);
    return EPG_OK;
}

static epg_code live(epg_run_state *self, const epg_buffer *task, epg_run_outcome *out, epg_error *err)
{
    EPG_TRY(agent_phase(self, task, err));
    close_session(self);
    EPG_TRY(hand_over_best(self, err));
    EPG_TRY(select_and_measure(self, out, err));
    return conclude(self, out, err);
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
    int *const fds[] = {&self->run, &self->signals, &self->evidence_log, &self->transcript_fd};
    for (size_t i = 0; i < EPG_COUNT(fds); i++) {
        epg_close_cleanup(fds[i]);
    }
    free(self->path);
    free(self->workspace);
    epg_progress_close(&self->progress);
}

epg_code epg_run(const epg_run_request *request, epg_run_outcome *out, epg_error *err)
{
    epg_run_state self = {.request = request,
                          .config = request->config,
                          .run = -1,
                          .signals = -1,
                          .evidence_log = -1,
                          .transcript_fd = -1,
                          .began = epg_monotonic_ns()};
    epg_run_outcome outcome = {0};
    EPG_AUTO_BUFFER task = {0};
    self.shown.deadline = EPG_NEVER;
    self.shown.phase = "starting";
    self.shown.budget = request->config->episode_budget;
    epg_session_init(&self.session, request->config);
    epg_progress_open(&self.progress, request->progress);
    epg_code code = epg_signals_open(&self.signals, err);
    if (code == EPG_OK) {
        code = prepare(&self, &task, err);
    }
    if (code == EPG_OK) {
        code = create(&self, &task, err);
    }
    if (code == EPG_OK) {
        code = live(&self, &task, &outcome, err);
    }
    release(&self);
    if (code != EPG_OK) {
        epg_run_outcome_free(&outcome);
        return code;
    }
    *out = outcome;
    return EPG_OK;
}
