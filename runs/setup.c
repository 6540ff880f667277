/* What comes before the Agent: everything checked, then the Run directory made (or opened again). */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agents/task.h"
#include "base/text.h"
#include "programs/capture.h"
#include "runs/coordinator.h"
#include "runs/document.h"
#include "runs/request.h"
#include "runs/seal.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

/* How much longer than a Run's own path a path in it can be that is used whole: by libgit2, by the Agent, in messages.
 */
enum { BELOW_MAX = 512 };

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
        return errno == ENOENT
                   ? epg_fail(err, EPG_ERR_USAGE, "there is no directory \"%s\" to hold the Run: make it first", parent)
                   : epg_fail(err, EPG_ERR_USAGE, "the directory \"%s\" that shall hold the Run can't be used: %s",
                              parent, strerror(errno));
    }
    *out = epg_format("%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, name);
    if (strlen(name) > NAME_MAX || strlen(*out) + BELOW_MAX >= PATH_MAX) {
        free(EPG_TAKE(*out));
        return epg_fail(err, EPG_ERR_USAGE,
                        "the Run directory's path is too long: what a Run holds must fit below it; choose a path of at "
                        "most %d bytes, its name %d",
                        PATH_MAX - BELOW_MAX - 1, NAME_MAX);
    }
    if (access(*out, F_OK) == 0) {
        epg_code code =
            epg_fail(err, EPG_ERR_USAGE, "\"%s\" exists already; name a directory that does not", directory);
        free(EPG_TAKE(*out));
        return code;
    }
    return EPG_OK;
}

/* An Agent's command that can't be found is told before anything is created. */
static epg_code check_command(const epg_invocation *invocation, epg_error *err)
{
    const char *name = invocation->argv[0];
    EPG_AUTO_FREE char *shown = epg_printable(name, strlen(name));
    if (strchr(name, '/') != NULL) {
        struct stat info;
        bool file = stat(name, &info) == 0 && S_ISREG(info.st_mode);
        if (file && access(name, X_OK) == 0) {
            return EPG_OK;
        }
        return epg_fail(err, EPG_ERR_USAGE, "the Agent's command %s %s", shown,
                        file ? "is not executable: chmod +x it" : "is not a file: name an existing executable");
    }
    const char *path = getenv("PATH");
    EPG_AUTO_FREE char *list = epg_strdup(path != NULL ? path : "/usr/local/bin:/usr/bin:/bin");
    char *rest = NULL;
    for (char *directory = strtok_r(list, ":", &rest); directory != NULL; directory = strtok_r(NULL, ":", &rest)) {
        EPG_AUTO_FREE char *whole = epg_format("%s/%s", directory, name);
        if (access(whole, X_OK) == 0) {
            return EPG_OK;
        }
    }
    return epg_fail(err, EPG_ERR_USAGE, "the Agent's command %s is not found in PATH", shown);
}

/* The Agent's own session, where its home is still there: an adapter may have a form for going on with it. */
static char *session_to_resume(const epg_run_state *self)
{
    EPG_AUTO_CLOSE int agent = -1;
    EPG_AUTO_CLOSE int home = -1;
    if (self->history == NULL || self->agent_home == NULL ||
        epg_dir_open_beneath(self->run, "agent", &agent, NULL) != EPG_OK ||
        epg_dir_open(agent, EPG_RUN_AGENT_HOME, &home, NULL) != EPG_OK) {
        return NULL;
    }
    return epg_transcript_last_session(agent);
}

static epg_code build_invocation(epg_run_state *self, const epg_buffer *task, epg_error *err)
{
    EPG_AUTO_FREE char *session = session_to_resume(self);
    epg_agent_request agent = self->request->agent;
    agent.resume = session;
    agent.instructions = epg_buffer_cstr(task);
    agent.workspace = self->workspace;
    agent.home = self->agent_home;
    agent.root = geteuid() == 0;
    EPG_TRY(epg_invocation_build(&agent, &self->invocation, err));
    EPG_TRY(check_command(&self->invocation, err));
    EPG_TRY(epg_invocation_login_secrets(&self->invocation, self->request->agent_login, err));
    EPG_TRY(epg_invocation_redactor(&self->invocation, agent.adapter, &self->redactor, err));
    EPG_AUTO_BUFFER record = {0}; /* whether it can be recorded is told now, not when the Run directory exists */
    return epg_invocation_write(&self->invocation, self->redactor, &record, err);
}

/* The workers and the spec; the plan of the training pool. */
static epg_code open_pool(epg_run_state *self, epg_error *err)
{
    epg_pool_config pool = *self->request->pool;
    pool.episode_timeout_seconds = self->config->episode_timeout_seconds;
    EPG_TRY(self->history != NULL ? epg_stored_request_open_pool(&pool, &self->pool, err)
                                  : epg_pool_open(&pool, &self->pool, err));
    self->spec = epg_pool_spec(self->pool);
    self->session.direction = self->spec->direction;
    return EPG_OK;
}

/* A held-out split that there is not is found now, not when the Agent has spent its budget. */
static epg_code try_split(epg_run_state *self, bool wanted, const char *split, epg_error *err)
{
    epg_episode_spec *specs = NULL;
    if (!wanted) {
        return EPG_OK;
    }
    EPG_TRY(epg_pool_plan(self->pool, split, 0, 1, &specs, err));
    if (specs != NULL) {
        epg_episode_spec_free(&specs[0]);
        free(specs);
    }
    return EPG_OK;
}

static epg_code plan_training(epg_run_state *self, epg_error *err)
{
    EPG_TRY(try_split(self, self->config->validate, self->config->validation_split, err));
    EPG_TRY(try_split(self, self->config->assess, self->config->assessment_split, err));
    return epg_pool_plan(self->pool, self->config->split, epg_training_pool_seed(self->config->seed),
                         self->config->episode_pool_size, &self->training, err);
}

/* Everything that can be wrong is found here, before the Run directory exists. */
epg_code epg_run_prepare(epg_run_state *self, epg_error *err)
{
    EPG_TRY(absolute_path(self->request->directory, &self->path, err));
    EPG_TRY(epg_run_document_check(self->request, err));
    self->workspace = epg_format("%s/workspace", self->path);
    self->agent_home = self->request->agent_private_home ? epg_format("%s/agent/home", self->path) : NULL;
    EPG_TRY(open_pool(self, err));
    task_text(self, &self->task);
    EPG_TRY(build_invocation(self, &self->task, err));
    return plan_training(self, err);
}

/* Held as long as the Host lives: the kernel gives it back whatever the Host dies of. */
epg_code epg_run_lock(int run, int *out, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = epg_io_open(run, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (fd < 0) {
        int why = errno;
        (void)epg_fail_errno(err, why, "can't open the Run's lock");
        return why == EROFS || why == EACCES || why == EPERM
                   ? epg_fail_as(err, EPG_ERR_USAGE, "a Run that shall go on must be writable")
                   : EPG_ERR_IO;
    }
    /* A reader may look at the lock just now, for a moment (reading.h). */
    int taken = flock(fd, LOCK_EX | LOCK_NB);
    for (int i = 0; taken != 0 && errno == EWOULDBLOCK && i < 10; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        taken = flock(fd, LOCK_EX | LOCK_NB);
    }
    if (taken != 0) {
        char owner[32] = "";
        ssize_t got = pread(fd, owner, sizeof owner - 1, 0);
        owner[got > 0 ? (size_t)got : 0] = '\0';
        owner[strcspn(owner, "\n")] = '\0';
        return epg_fail(err, EPG_ERR_USAGE, "another Host (process %s) holds this Run; wait for it, or end it", owner);
    }
    EPG_AUTO_FREE char *text = epg_format("%ld\n", (long)getpid());
    if (epg_io_ftruncate(fd, 0) != 0 || epg_io_write_all(fd, text, strlen(text)) != 0) {
        return epg_fail_errno(err, errno, "can't write the Run's lock");
    }
    *out = epg_take_fd(&fd);
    return EPG_OK;
}

/* An Episode's record is durable before the event that it ended. */
static epg_code sync_records(void *context, epg_error *err)
{
    const epg_run_state *self = context;
    return self->evaluation != NULL ? epg_evaluation_sync_records(self->evaluation, err) : EPG_OK;
}

static epg_code keep_records(epg_run_state *self, epg_error *err)
{
    EPG_AUTO_FREE char *records = epg_format("%s/records", self->path);
    if (epg_io_mkdir(self->run, "records", 0700) != 0 && errno != EEXIST) {
        return epg_fail_errno(err, errno, "can't make the directory for records");
    }
    return epg_pool_keep_records(self->pool, records, true, err);
}

/* The Agent's copy of its task. */
static epg_code write_task(epg_run_state *self, epg_error *err)
{
    EPG_AUTO_CLOSE int workspace = -1;
    EPG_TRY(epg_dir_open_beneath(self->run, "workspace", &workspace, err));
    EPG_TRY(epg_tree_remove(workspace, EPG_TASK_FILE, 0, err));
    return epg_file_write_new(workspace, EPG_TASK_FILE, epg_buffer_span(&self->task), 0444, false, err);
}

/* All that a Run begins with; the last of it is its first event. */
static epg_code lay_run(epg_run_state *self, epg_error *err)
{
    const epg_run_request *request = self->request;
    EPG_TRY(epg_run_lock(self->run, &self->lock, err));
    EPG_TRY(epg_run_document_write(self->run, request, self->spec, self->redactor, err));
    EPG_TRY(epg_run_record_invocation(self->run, &self->invocation, request->agent.adapter, self->redactor,
                                      epg_buffer_span(&self->task), err));
    EPG_AUTO_FREE char *history = epg_format("%s/history.git", self->path);
    char commit[EPG_OBJECT_ID_TEXT];
    EPG_TRY(epg_store_create(history, &self->store, err));
    EPG_TRY(epg_store_commit(self->store, request->initial, "initial", "Initial Program", NULL,
                             epg_unix_ns() / EPG_SECOND, commit, err));
    EPG_TRY(epg_run_evidence_open(self, err));
    EPG_TRY(epg_publisher_open(self->run, &self->publisher, err));
    self->retention = epg_retention_new(self->config->bulk_feedback_retention_bytes);
    EPG_TRY(write_task(self, err));
    EPG_TRY(keep_records(self, err));
    EPG_TRY(epg_ledger_create(self->run, &self->ledger, err));
    epg_ledger_before_sync(self->ledger, sync_records, self);
    EPG_TRY(epg_run_created(self, err));
    return epg_run_seal(self, EPG_RUN_TASK_PATH, EPG_SEAL_ANEW, err);
}

epg_code epg_run_create(epg_run_state *self, epg_error *err)
{
    const epg_run_request *request = self->request;
    EPG_TRY(
        epg_run_directory_create(self->path, request->initial, request->skills, request->skill_count, &self->run, err));
    epg_code code = lay_run(self, err);
    if (code != EPG_OK) {
        /* It has no event: nobody was told of it and nothing was charged. */
        (void)epg_tree_remove(AT_FDCWD, self->path, 0, NULL);
        return epg_fail_within(err, "the Run could not be set up, nothing of it is left");
    }
    return EPG_OK;
}

/* --- a Run that exists --- */

static epg_code fits(const epg_run_state *self, epg_error *err)
{
    const epg_history *history = self->history;
    if (history->benchmark_id == NULL || strcmp(history->benchmark_id, self->spec->id) != 0 ||
        history->environment_digest == NULL ||
        strcmp(history->environment_digest, self->spec->environment_digest) != 0) {
        return epg_fail(
            err, EPG_ERR_USAGE, "the Benchmark no longer fits this Run: it was %s with %s, it is %s with %s",
            history->benchmark_id, history->environment_digest, self->spec->id, self->spec->environment_digest);
    }
    return EPG_OK;
}

static epg_code check_snapshot(const epg_run_state *self, const char *name, const char *digest, epg_error *err)
{
    char claimed[EPG_DIGEST_TEXT];
    char id[EPG_OBJECT_ID_TEXT];
    if (epg_store_claim(self->store, name, claimed, id, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "the git history no longer fits this Run");
    }
    if (strcmp(claimed, digest) != 0) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "the git history no longer fits this Run: %s is %s there and %s in the ledger", name, claimed,
                        digest);
    }
    return EPG_OK;
}

static epg_code check_program(const epg_run_state *self, const char *path, const char *digest, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    if (epg_dir_open_beneath(self->run, path, &directory, err) != EPG_OK ||
        epg_program_capture(directory, &epg_program_default_limits, &program, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "this Run can't go on without %s", path);
    }
    if (strcmp(program.digest, digest) != 0) {
        return epg_fail(err, EPG_ERR_USAGE, "%s no longer fits this Run: it is %s, and %s in the ledger", path,
                        program.digest, digest);
    }
    return EPG_OK;
}

/* The Host's own copies. What the Agent did to its is found otherwise, and no reason to stop. */
static epg_code check_programs(const epg_run_state *self, epg_error *err)
{
    const epg_history *history = self->history;
    EPG_TRY(check_program(self, "initial/program", history->initial_digest, err));
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        if (facts->state == EPG_SUBMISSION_PUBLISHED) {
            char id[EPG_SUBMISSION_ID_TEXT];
            epg_submission_id(facts->number, id);
            EPG_AUTO_FREE char *path = epg_format("submissions/%s/program", id);
            EPG_TRY(check_program(self, path, facts->program_digest, err));
        }
    }
    return EPG_OK;
}

/* The snapshots are those of the ledger; one that was taken and not charged is given back. */
static epg_code check_store(epg_run_state *self, epg_error *err)
{
    const epg_history *history = self->history;
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_TRY(check_snapshot(self, "initial", history->initial_digest, err));
    for (size_t i = 0; i < history->submission_count; i++) {
        epg_submission_id(i + 1, id);
        EPG_TRY(check_snapshot(self, id, history->submissions[i].facts.program_digest, err));
    }
    epg_submission_id(history->submission_count + 1, id);
    return epg_store_drop(self->store, id, err);
}

enum { NOTES_AT_ONCE = 4096 };

/* What the Host may have died before doing for the last one that was published. */
static epg_code restore_publications(epg_run_state *self, epg_error *err)
{
    const epg_history *history = self->history;
    const epg_submission *last = NULL;
    self->retention = epg_retention_new(self->config->bulk_feedback_retention_bytes);
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        if (facts->state != EPG_SUBMISSION_PUBLISHED) {
            continue;
        }
        EPG_TRY(epg_retention_restore(self->retention, self->publisher, facts->number, err));
        epg_run_note_best(self, facts);
        epg_run_note_history(self, facts);
        if (facts->number % NOTES_AT_ONCE == 0) { /* most are there already, and cost nothing */
            epg_run_tidy_history(self, true);
        }
        last = facts;
    }
    if (last == NULL) {
        return EPG_OK;
    }
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(last->number, id);
    EPG_TRY(epg_publish_latest(self->publisher, last, &self->evidence, err));
    EPG_TRY(epg_retention_apply(self->retention, self->publisher, last->number, &self->evidence, err));
    epg_evaluation_discard_records(self->pool, id);
    return EPG_OK;
}

epg_code epg_run_reopen(epg_run_state *self, epg_error *err)
{
    bool torn = false;
    self->workspace = epg_format("%s/workspace", self->path);
    self->agent_home = self->request->agent_private_home ? epg_format("%s/agent/home", self->path) : NULL;
    EPG_TRY(open_pool(self, err));
    EPG_TRY(fits(self, err));
    EPG_TRY(check_programs(self, err));
    EPG_AUTO_FREE char *history = epg_format("%s/history.git", self->path);
    if (epg_store_open(history, &self->store, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "the git history can't be used");
    }
    if (epg_store_recover(self->store, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "the git history no longer fits this Run");
    }
    EPG_TRY(check_store(self, err));
    EPG_TRY(epg_run_directory_recover(self->run, err));
    epg_run_drop_unsealed_traces(self);
    EPG_TRY(epg_run_evidence_open(self, err));
    EPG_TRY(epg_ledger_open(self->run, &self->ledger, &torn, err));
    epg_ledger_before_sync(self->ledger, sync_records, self);
    EPG_TRY(epg_publisher_open(self->run, &self->publisher, err));
    EPG_TRY(keep_records(self, err));
    EPG_TRY(plan_training(self, err));
    epg_run_past_usage(self);
    return restore_publications(self, err);
}

/* The task text, with what has happened so far, for an Agent that is started again. */
epg_code epg_run_prepare_again(epg_run_state *self, double seconds_left, epg_error *err)
{
    const epg_session *session = &self->session;
    epg_task_progress progress = {.submissions = self->shown.submissions,
                                  .episodes_remaining = session->episodes_remaining,
                                  .submissions_remaining = epg_session_submissions_remaining(session),
                                  .seconds_remaining = seconds_left};
    char id[EPG_SUBMISSION_ID_TEXT];
    for (uint64_t number = session->submission_count; number > 0 && progress.last_submission == NULL; number--) {
        if (epg_session_score(session, number, &progress.last_score)) {
            epg_submission_id(number, id);
            progress.last_submission = id;
        }
    }
    task_text(self, &self->task);
    epg_task_resume_note(&progress, &self->task);
    EPG_TRY(build_invocation(self, &self->task, err));
    EPG_TRY(write_task(self, err));
    return epg_run_seal(self, EPG_RUN_TASK_PATH, EPG_SEAL_ANEW, err);
}

epg_code epg_run_settle_task(epg_run_state *self, epg_error *err)
{
    const epg_history_seal *seal = epg_seal_find(self->history, EPG_RUN_TASK_PATH);
    if (seal == NULL || !seal->reopened || self->task.size > 0) {
        return EPG_OK;
    }
    task_text(self, &self->task);
    EPG_TRY(write_task(self, err));
    return epg_run_seal(self, EPG_RUN_TASK_PATH, EPG_SEAL_ANEW, err);
}
