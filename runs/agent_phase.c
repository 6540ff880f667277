/* The Agent's phase: it works, its session is served, and it ends, by itself or by us. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/coordinator.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

enum { TERMINATE_GRACE_MS = 500, REPLY_LIMIT_S = 2 };

static int open_stdin(const epg_run_state *self)
{
    if (self->invocation.task_way != EPG_TASK_STDIN) {
        return -1;
    }
    int fd = memfd_create("instructions", MFD_CLOEXEC);
    if (fd >= 0 && (epg_io_write_all(fd, self->task.data, self->task.size) != 0 || lseek(fd, 0, SEEK_SET) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* A home of the Run's own, so that histories, tokens and settings neither come in nor go out. */
static epg_code lay_home(const epg_run_state *self, int logs, epg_error *err)
{
    EPG_AUTO_CLOSE int home = -1;
    if (self->agent_home == NULL) {
        return EPG_OK;
    }
    if (epg_io_mkdir(logs, EPG_RUN_AGENT_HOME, 0700) != 0 && errno != EEXIST) {
        return epg_fail_errno(err, errno, "can't make the Agent's home");
    }
    EPG_TRY(epg_dir_open(logs, EPG_RUN_AGENT_HOME, &home, err));
    return epg_invocation_lay_home(&self->invocation, home, self->request->agent_login, err);
}

/* What the Agent sees beside its workspace: the session client, its command's installation, files that its arguments
 * name, and what the user adds. */
static epg_code find_shown(const epg_run_state *self, const char *const *argv, const char *client, char ***installation,
                           const char ***out, epg_error *err)
{
    const epg_run_request *request = self->request;
    size_t arguments = 0;
    size_t found = 0;
    EPG_TRY(epg_installation_find(argv[0], getenv("PATH"), installation, err));
    while (argv[arguments] != NULL) {
        arguments++;
    }
    while ((*installation)[found] != NULL) {
        found++;
    }
    const char **shown = epg_alloc_array(2 + found + arguments + request->agent_shown_count, sizeof *shown);
    size_t count = 0;
    shown[count++] = client;
    for (size_t i = 0; i < found; i++) {
        shown[count++] = (*installation)[i];
    }
    for (size_t i = 1; i < arguments; i++) {
        struct stat info;
        if (argv[i][0] == '/' && stat(argv[i], &info) == 0 && S_ISREG(info.st_mode)) {
            shown[count++] = argv[i];
        }
    }
    for (size_t i = 0; i < request->agent_shown_count; i++) {
        shown[count++] = request->agent_shown[i];
    }
    *out = shown;
    return EPG_OK;
}

/* The command's argv with a python that is only a shim (pyenv's) replaced by the interpreter behind it: a shim needs
 * more of the home than can be shown. The first text may be owned: `real`. */
static const char **real_argv(const epg_run_state *self, char **real)
{
    char *const *argv = self->invocation.argv;
    size_t count = 0;
    while (argv[count] != NULL) {
        count++;
    }
    const char **out = epg_alloc_array(count + 1, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        out[i] = argv[i];
    }
    EPG_AUTO_FREE char *copy = epg_strdup(argv[0]);
    const char *name = basename(copy);
    if (strncmp(name, "python", 6) == 0 && name[6 + strspn(name + 6, "0123456789.")] == '\0' &&
        epg_python_find(argv[0], real, NULL) == EPG_OK) {
        out[0] = *real;
    }
    return out;
}

/* What holds for the Agent, for the Run's record. */
static void note_box(epg_run_state *self)
{
    if (self->agent == NULL || epg_agent_boxed(self->agent) == NULL) {
        return;
    }
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_JSON *parsed = NULL;
    epg_json_writer writer;
    epg_json_begin(&writer, &text, 0);
    epg_json_object(&writer, NULL);
    epg_agent_box_describe(epg_agent_boxed(self->agent), &writer, "box");
    epg_json_end(&writer);
    epg_json_finish(&writer);
    if (epg_json_parse(epg_buffer_span(&text), "box", &parsed, NULL) == EPG_OK) {
        json_decref(self->agent_box);
        self->agent_box = json_incref(json_object_get(parsed, "box"));
    }
}

/* Starts the Agent as `start` says, in the sandbox when that is its profile. */
static epg_code open_agent(epg_run_state *self, epg_agent_start *start, const char *client, epg_error *err)
{
    static const char *const writable[] = {"program", "analysis", NULL};
    if (self->request->agent_profile == EPG_PROFILE_PROCESS) {
        return epg_agent_open(start, &self->agent, err);
    }
    char **installation = NULL;
    EPG_AUTO_FREE const char **shown = NULL;
    EPG_AUTO_FREE char *real = NULL;
    EPG_AUTO_FREE const char **argv = real_argv(self, &real);
    epg_code code = find_shown(self, argv, client, &installation, &shown, err);
    if (code == EPG_OK) {
        epg_agent_sandbox sandbox = {.workspace = self->workspace,
                                     .writable = writable,
                                     .home = self->agent_home,
                                     .session_socket = epg_gateway_socket_path(self->gateway),
                                     .read_only = shown,
                                     .network = self->request->agent_network,
                                     .limits = epg_agent_default_limits,
                                     .argv = argv,
                                     .environment = start->spawn->environment,
                                     .search_path = start->spawn->search_path};
        start->sandbox = &sandbox;
        code = epg_agent_open(start, &self->agent, err);
        start->sandbox = NULL;
        note_box(self);
    }
    epg_paths_free(installation);
    return code;
}

static epg_code start_agent(epg_run_state *self, epg_error *err)
{
    EPG_AUTO_FREE char *executable = epg_own_executable();
    EPG_AUTO_CLOSE int logs = -1;
    EPG_AUTO_CLOSE int workspace = -1;
    EPG_AUTO_CLOSE int input = open_stdin(self);
    EPG_TRY(epg_dir_open_beneath(self->run, "agent", &logs, err));
    EPG_TRY(epg_dir_open_beneath(self->run, "workspace", &workspace, err));
    EPG_TRY(lay_home(self, logs, err));
    const char *path = getenv("PATH");
    const char *client_directory = dirname(executable);
    EPG_AUTO_FREE char *client = epg_format("%s/evopolicygym-session", client_directory);
    char **environment = epg_invocation_environment(&self->invocation, path, client_directory,
                                                    epg_gateway_socket_path(self->gateway), self->workspace);
    if (self->transcript != NULL) {
        self->past_usage = epg_run_usage(self);
        self->past_starts++;
    }
    epg_transcript_free(EPG_TAKE(self->transcript));
    epg_close_cleanup(&self->transcript_fd);
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
                             .append = self->history != NULL || self->agent_starts > 0,
                             .redactor = self->redactor,
                             .transcript = self->transcript,
                             .transcript_fd = self->transcript_fd};
    epg_code code = open_agent(self, &start, client, err);
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
    bool graced = self->stop == EPG_STOP_FINISHED || self->stop == EPG_STOP_FAULT;
    bool over = self->stop != EPG_STOP_NONE && (!graced || now >= self->grace_deadline);
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
    bool graced = self->stop == EPG_STOP_FINISHED || self->stop == EPG_STOP_FAULT;
    int64_t deadline = graced ? self->grace_deadline : self->agent_deadline;
    int64_t watch = epg_run_watch_deadline(self);
    return watch < deadline ? watch : deadline;
}

/* An Agent that ended while its submission is evaluated: that was charged and is published all the same. */
static epg_code serve_agent(epg_run_state *self, epg_error *err)
{
    while (!epg_agent_exited(self->agent, NULL) || self->evaluation != NULL) {
        EPG_TRY(epg_run_wait(self, agent_phase_deadline(self), err));
        EPG_TRY(epg_run_serve(self, err));
        EPG_TRY(epg_run_watch_turn(self, err));
        EPG_TRY(watch_agent(self, err));
    }
    return EPG_OK;
}

int epg_run_returncode(const epg_exit *how)
{
    return how->signal != 0 ? -how->signal : how->code;
}

epg_usage epg_run_usage(const epg_run_state *self)
{
    epg_usage usage = self->transcript != NULL ? epg_transcript_usage(self->transcript) : self->past_usage;
    if (self->transcript != NULL && self->past_starts > 0) {
        epg_usage_add(&usage, &self->past_usage);
    }
    return usage;
}

static void close_transcript(epg_run_state *self, const epg_exit *how)
{
    if (self->transcript == NULL) {
        return;
    }
    EPG_AUTO_BUFFER lines = {0};
    epg_run_take_home(self);
    epg_transcript_end(self->transcript, how->code, how->signal, &lines);
    (void)epg_io_write_all(self->transcript_fd, lines.data, lines.size);
}

/* It may hold a login. After an interruption it stays: the Agent may be started again in it. */
static void remove_home(epg_run_state *self)
{
    EPG_AUTO_CLOSE int logs = -1;
    epg_error why = {.text = ""};
    if (self->agent_home == NULL || self->interrupted != 0) {
        return;
    }
    if (epg_dir_open_beneath(self->run, "agent", &logs, &why) != EPG_OK ||
        epg_tree_remove(logs, EPG_RUN_AGENT_HOME, 0, &why) != EPG_OK) {
        epg_run_evidence_fault(self, "agent home", &why);
    }
}

static epg_code end_agent(epg_run_state *self, epg_error *err)
{
    EPG_TRY(epg_agent_close(EPG_TAKE(self->agent), &self->agent_end, err));
    self->has_agent_end = true;
    close_transcript(self, &self->agent_end.exit);
    remove_home(self);
    const char *event = self->agent_stopped_after_terminal ? "agent_stopped_after_terminal" : "agent_exited";
    const epg_ended *ended = &self->agent_end.ended;
    return EPG_EVENT(self->ledger, event, err, epg_field_u64("left_behind", ended->orphans),
                     epg_field_u64("processes_killed", ended->killed),
                     epg_field_i64("returncode", epg_run_returncode(&self->agent_end.exit)));
}

/* From one start of the Agent to its end. */
static epg_code agent_life(epg_run_state *self, epg_error *err)
{
    epg_error why = {.text = ""};
    if (start_agent(self, &why) != EPG_OK) {
        return agent_did_not_start(self, &why, err);
    }
    self->agent_starts++;
    epg_run_watch_begin(self);
    EPG_TRY(EPG_EVENT(self->ledger, "agent_started", err, epg_field_text("benchmark_id", self->spec->id),
                      epg_field_text("environment_digest", self->spec->environment_digest),
                      epg_field_text("initial_program_digest", self->request->initial->digest)));
    EPG_TRY(epg_ledger_sync(self->ledger, err));
    epg_progress_line(&self->progress, "agent_started",
                      "the Agent works (its output: agent/stdout.log, agent/stderr.log)");
    epg_code code = serve_agent(self, err);
    return code == EPG_OK ? end_agent(self, err) : code;
}

/* A provider that failed before anything was spent is asked again, when the user wants that. */
static bool may_start_again(const epg_run_state *self)
{
    return self->stop == EPG_STOP_NONE && !self->agent_start_failed && self->transcript != NULL &&
           self->session.submission_count == 0 && self->agent_starts <= self->config->agent_start_retries &&
           strcmp(epg_agent_fault_side(epg_transcript_error(self->transcript)->fault), "provider") == 0;
}

static epg_code pause_before_start(epg_run_state *self, epg_error *err)
{
    int64_t seconds = self->agent_starts < 6 ? INT64_C(1) << self->agent_starts : 60;
    int64_t until = epg_deadline_after_ns(seconds * EPG_SECOND);
    epg_progress_line(&self->progress, "agent_start_again",
                      "its provider failed (%s): starting the Agent again in %lld s",
                      epg_transcript_error(self->transcript)->message, (long long)seconds);
    until = until < self->agent_deadline ? until : self->agent_deadline;
    while (epg_monotonic_ns() < until && self->interrupted == 0) {
        EPG_TRY(epg_run_wait(self, until, err));
    }
    return EPG_OK;
}

static epg_code agent_phase(epg_run_state *self, double seconds, epg_error *err)
{
    self->shown.phase = "agent";
    EPG_TRY(epg_gateway_open(NULL, &self->gateway, err));
    self->agent_deadline = epg_deadline_after_seconds(seconds);
    self->shown.deadline = self->agent_deadline;
    epg_code code = agent_life(self, err);
    while (code == EPG_OK && may_start_again(self)) {
        code = pause_before_start(self, err);
        if (code != EPG_OK || self->interrupted != 0 || epg_monotonic_ns() >= self->agent_deadline) {
            break;
        }
        code = agent_life(self, err);
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

/* What the Agent did to published copies, found while nothing of it lives any more. */
static epg_code check_publications(epg_run_state *self, epg_error *err)
{
    const epg_session *session = &self->session;
    size_t found = self->evidence.count;
    for (uint64_t number = 1; number <= session->submission_count; number++) {
        EPG_CLEANUP(epg_submission_free) epg_submission one = {0};
        (void)epg_session_recall(session, number, &one);
        if (one.state == EPG_SUBMISSION_PUBLISHED) {
            EPG_TRY(epg_publication_check(self->publisher, number, one.program_digest, &epg_program_default_limits,
                                          NULL, true, &self->evidence, err));
        }
    }
    epg_run_evidence_findings(self, &self->evidence, found);
    return EPG_OK;
}

epg_code epg_run_agent_phase(epg_run_state *self, double seconds, epg_error *err)
{
    epg_code code = agent_phase(self, seconds, err);
    close_session(self);
    return code == EPG_OK && self->interrupted == 0 ? check_publications(self, err) : code;
}
