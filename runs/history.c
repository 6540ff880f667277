#include "runs/history.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agents/transcript.h"
#include "base/clock.h"
#include "base/text.h"
#include "runs/document.h"
#include "runs/history_parts.h"
#include "runs/ledger.h"
#include "runs/records.h"
#include "system/files.h"

enum { EPISODES_MAX = 100000000 };

/* --- reading an event's members; a member that is missing is not an error here, a foreign Host may not write it --- */

static void copy_text(char *to, size_t size, const char *text)
{
    if (text != NULL && strlen(text) < size) {
        memcpy(to, text, strlen(text) + 1);
    }
}

static epg_history_submission *submission_of(const epg_history *self, const epg_event_line *event)
{
    const char *id = epg_event_line_text(event, "submission_id");
    uint64_t number = id != NULL ? epg_submission_number(id) : 0;
    return number >= 1 && number <= self->submission_count ? &self->submissions[number - 1] : NULL;
}

typedef struct reader {
    epg_history *history;
    bool skims;
    bool keeps;          /* the Episodes of submissions that have ended */
    epg_event_line line; /* at hand */
    size_t next_episode; /* most likely the place of the next Episode that ends */
    int64_t agent_since; /* when the Agent that runs was started; 0: none runs */
} reader;

static epg_code bad(const epg_ledger_line *line, const char *why, epg_error *err)
{
    return epg_fail(err, EPG_ERR_INVALID, "events.jsonl line %llu (%s): %s", (unsigned long long)line->number,
                    line->event, why);
}

/* --- one function an event --- */

/* "0,4,5": what events write is a selector too. */
static epg_code evaluation_started(reader *self, const epg_ledger_line *line, epg_error *err)
{
    epg_history *history = self->history;
    const char *id = epg_event_line_text(&self->line, "submission_id");
    const char *indices = epg_event_line_text(&self->line, "episode_indices");
    if (id == NULL || indices == NULL || epg_submission_number(id) != history->submission_count + 1) {
        return bad(line, "not the submission that should follow", err);
    }
    epg_history_submission submission = {.facts = {.number = history->submission_count + 1}};
    epg_submission *facts = &submission.facts;
    EPG_TRY(epg_selector_parse(indices, &facts->indices, err));
    facts->state = EPG_SUBMISSION_RUNNING;
    facts->episodes_used = facts->indices.count;
    facts->episodes_remaining = epg_event_line_u64(&self->line, "episodes_remaining");
    copy_text(facts->program_digest, sizeof facts->program_digest, epg_event_line_text(&self->line, "program_digest"));
    copy_text(submission.commit, sizeof submission.commit, epg_event_line_text(&self->line, "commit"));
    submission.started_unix_ns = epg_event_line_i64(&self->line, "time_unix_ns");
    if (!self->skims) {
        submission.episodes = epg_alloc_array(facts->indices.count, sizeof *submission.episodes);
        for (size_t i = 0; i < facts->indices.count; i++) {
            submission.episodes[i].index = facts->indices.items[i];
        }
    }
    history->submissions = epg_grow_array(history->submissions, history->submission_count + 1, sizeof submission);
    history->submissions[history->submission_count++] = submission;
    return EPG_OK;
}

static epg_policy_failure failure_named(const char *name)
{
    for (int i = EPG_POLICY_EXCEPTION; name != NULL && i <= EPG_POLICY_PROTOCOL_ERROR; i++) {
        if (strcmp(name, epg_policy_failure_name((epg_policy_failure)i)) == 0) {
            return (epg_policy_failure)i;
        }
    }
    return EPG_POLICY_OK;
}

static void take_episode(reader *self, epg_episode_result *episodes, size_t count)
{
    const epg_event_line *event = &self->line;
    uint64_t index = epg_event_line_u64(event, "episode_index");
    for (size_t i = 0; episodes != NULL && i < count; i++) {
        size_t at = (self->next_episode + i) % count;
        if (episodes[at].index != index || episodes[at].finished) {
            continue;
        }
        epg_episode_result *one = &episodes[at];
        self->next_episode = at + 1;
        const char *status = epg_event_line_text(event, "status");
        one->finished = true;
        one->failure = failure_named(epg_event_line_text(event, "failure"));
        if (one->failure == EPG_POLICY_OK && status != NULL && strcmp(status, "completed") != 0) {
            one->failure = EPG_POLICY_PROTOCOL_ERROR; /* a foreign ledger does not name the failure */
        }
        one->reward = epg_event_line_double(event, "reward");
        one->steps = epg_event_line_u64(event, "steps");
        one->policy_ns = (int64_t)epg_event_line_u64(event, "policy_ns");
        one->total_ns = (int64_t)epg_event_line_u64(event, "total_ns");
        copy_text(one->record_sha256, sizeof one->record_sha256, epg_event_line_text(event, "record_sha256"));
        one->spool = (unsigned)epg_event_line_u64(event, "record_spool");
        one->record_offset = epg_event_line_u64(event, "record_offset");
        one->record_size = epg_event_line_u64(event, "record_size");
        return;
    }
}

static void submission_ended(const reader *self, epg_history_submission *submission)
{
    if (!self->keeps) {
        epg_history_forget_episodes(submission);
    }
}

static void take_traces(const reader *self, const char *phase)
{
    if (!self->skims) {
        EPG_AUTO_FREE char *name = epg_format("%s%s", phase, epg_event_line_text(&self->line, "submission_id"));
        epg_history_take_traces(self->history, name, &self->line);
    }
}

static epg_code episode_completed(reader *self, const epg_ledger_line *line, epg_error *err)
{
    epg_history_submission *submission = submission_of(self->history, &self->line);
    if (submission == NULL) {
        return bad(line, "of no submission", err);
    }
    take_episode(self, submission->episodes, submission->facts.indices.count);
    return EPG_OK;
}

static epg_code submission_published(reader *self, const epg_ledger_line *line, epg_error *err)
{
    epg_history_submission *submission = submission_of(self->history, &self->line);
    if (submission == NULL) {
        return bad(line, "of no submission", err);
    }
    submission->facts.state = EPG_SUBMISSION_PUBLISHED;
    submission->facts.score = epg_event_line_double(&self->line, "score");
    submission->facts.policy_failures = epg_event_line_u64(&self->line, "policy_failures");
    submission->ended_unix_ns = epg_event_line_i64(&self->line, "time_unix_ns");
    submission->tokens_known = epg_event_line_is_number(&self->line, "agent_tokens");
    submission->tokens = epg_event_line_u64(&self->line, "agent_tokens");
    submission->cost_known = epg_event_line_is_number(&self->line, "agent_cost_usd");
    submission->cost = epg_event_line_double(&self->line, "agent_cost_usd");
    free(EPG_TAKE(submission->stopped));
    copy_text(submission->feedback_sha256, sizeof submission->feedback_sha256,
              epg_event_line_text(&self->line, "feedback_sha256"));
    take_traces(self, "");
    submission_ended(self, submission);
    return EPG_OK;
}

/* A trusted fault ends the Run; only the operator's hand-over can follow. */
static epg_code host_failed(reader *self, const epg_ledger_line *line, epg_error *err)
{
    (void)err;
    free(self->history->fault);
    self->history->fault = epg_strdup(line->event);
    self->history->fault_code = epg_code_named(epg_event_line_text(&self->line, "fault"));
    return EPG_OK;
}

static epg_code submission_failed(reader *self, const epg_ledger_line *line, epg_error *err)
{
    epg_history_submission *submission = submission_of(self->history, &self->line);
    if (submission != NULL) {
        submission->facts.state = EPG_SUBMISSION_FAILED;
        submission->facts.failure =
            strcmp(line->event, "publication_failed") == 0 ? "publication_failed" : "evaluation_failed";
        submission->ended_unix_ns = epg_event_line_i64(&self->line, "time_unix_ns");
        submission_ended(self, submission);
    }
    return host_failed(self, line, err);
}

static epg_code evaluation_stopped(reader *self, const epg_ledger_line *line, epg_error *err)
{
    (void)line;
    (void)err;
    epg_history_submission *submission = submission_of(self->history, &self->line);
    const char *reason = epg_event_line_text(&self->line, "reason");
    if (submission != NULL && reason != NULL) {
        free(submission->stopped);
        submission->stopped = epg_strdup(reason);
        /* What an operator interrupted goes on when the Run does; what the Agent's deadline stopped does not. */
        if (strcmp(reason, "interrupted") != 0) {
            submission->facts.state = EPG_SUBMISSION_FAILED;
            submission->facts.failure = "session_failed";
            submission_ended(self, submission);
        }
    }
    return EPG_OK;
}

static epg_code finish_requested(reader *self, const epg_ledger_line *line, epg_error *err)
{
    epg_history *history = self->history;
    const char *by = epg_event_line_text(&self->line, "by");
    const char *ids = epg_event_line_text(&self->line, "submission_ids");
    free(history->finished_by);
    history->finished_by = epg_strdup(by != NULL ? by : "agent");
    history->candidate_count = 0;
    free(EPG_TAKE(history->fault));
    EPG_AUTO_FREE char *list = epg_strdup(ids != NULL ? ids : "");
    char *rest = NULL;
    for (char *id = strtok_r(list, ",", &rest); id != NULL; id = strtok_r(NULL, ",", &rest)) {
        uint64_t number = epg_submission_number(id);
        if (number == 0 || number > history->submission_count) {
            return bad(line, "names a submission that does not exist", err);
        }
        history->candidates =
            epg_grow_array(history->candidates, history->candidate_count + 1, sizeof *history->candidates);
        history->candidates[history->candidate_count++] = number;
    }
    return EPG_OK;
}

static void agent_stops(reader *self, int64_t when)
{
    if (self->agent_since != 0 && when > self->agent_since) {
        self->history->agent_used_ns += when - self->agent_since;
    }
    self->agent_since = 0;
}

/* Another Host's Run tells these nowhere else while it has no run.json. */
static void take_origin(epg_history *history, const epg_event_line *event)
{
    const char *benchmark = epg_event_line_text(event, "benchmark_id");
    const char *digest = epg_event_line_text(event, "initial_program_digest");
    if (history->benchmark_id == NULL && benchmark != NULL) {
        history->benchmark_id = epg_strdup(benchmark);
    }
    if (history->initial_digest == NULL && digest != NULL) {
        history->initial_digest = epg_strdup(digest);
    }
}

static epg_code agent_event(reader *self, const epg_ledger_line *line, epg_error *err)
{
    (void)err;
    epg_history *history = self->history;
    int64_t when = epg_event_line_i64(&self->line, "time_unix_ns");
    if (strcmp(line->event, "agent_started") == 0) {
        agent_stops(self, history->last_unix_ns);
        self->agent_since = when;
        history->agent_started = true;
        history->agent_over = false;
        take_origin(history, &self->line);
    } else if (strcmp(line->event, "agent_timeout") == 0) {
        history->agent_timed_out = true;
    } else if (strcmp(line->event, "agent_limit") == 0) {
        const char *limit = epg_event_line_text(&self->line, "limit");
        free(history->agent_limit);
        history->agent_limit = epg_strdup(limit != NULL ? limit : "");
    } else if (strcmp(line->event, "agent_start_failed") == 0) {
        history->agent_start_failed = true;
        history->agent_over = true;
    } else {
        agent_stops(self, when);
        history->agent_over = true;
        history->agent_returncode = (int)epg_event_line_i64(&self->line, "returncode");
    }
    return EPG_OK;
}

static void open_measure(bool skims, epg_history_measure *measure, const epg_event_line *event, uint64_t number)
{
    uint64_t count = epg_event_line_u64(event, "episodes");
    measure->number = number;
    measure->episode_count = count <= EPISODES_MAX ? count : 0;
    if (skims) {
        return;
    }
    measure->episodes = epg_alloc_array(measure->episode_count, sizeof *measure->episodes);
    for (uint64_t i = 0; i < measure->episode_count; i++) {
        measure->episodes[i].index = i;
    }
}

static epg_history_measure *measure_of(const epg_history *history, const epg_event_line *event)
{
    const epg_history_submission *submission = submission_of(history, event);
    for (size_t i = 0; submission != NULL && i < history->validation_count; i++) {
        if (history->validation[i].number == submission->facts.number) {
            return &history->validation[i];
        }
    }
    return NULL;
}

static void end_measure(const reader *self, epg_history_measure *measure, const char *phase)
{
    measure->completed = true;
    measure->score = epg_event_line_double(&self->line, "score");
    measure->policy_failures = epg_event_line_u64(&self->line, "policy_failures");
    take_traces(self, phase);
}

/* The events of Validation and Assessment tell them. */
static void take_events_metric(epg_history *history, const epg_event_line *event)
{
    epg_history_take_metric(history, epg_event_line_text(event, "primary_metric"),
                            epg_event_line_text(event, "score_direction"));
}

static epg_code validation_event(reader *self, const epg_ledger_line *line, epg_error *err)
{
    epg_history *history = self->history;
    const epg_history_submission *submission = submission_of(history, &self->line);
    if (strcmp(line->event, "validation_started") == 0) {
        history->validation_started = true;
        take_events_metric(history, &self->line);
        return EPG_OK;
    }
    if (submission == NULL) {
        return bad(line, "of no submission", err);
    }
    epg_history_measure *measure = measure_of(history, &self->line);
    if (strcmp(line->event, "validation_candidate_started") == 0) {
        if (measure == NULL) {
            history->validation =
                epg_grow_array(history->validation, history->validation_count + 1, sizeof *history->validation);
            measure = &history->validation[history->validation_count++];
            *measure = (epg_history_measure){0};
            open_measure(self->skims, measure, &self->line, submission->facts.number);
        }
    } else if (measure == NULL) {
        return bad(line, "of a candidate that was not started", err);
    } else if (strcmp(line->event, "validation_episode_completed") == 0) {
        take_episode(self, measure->episodes, measure->episode_count);
    } else {
        end_measure(self, measure, "validation-");
    }
    return EPG_OK;
}

static epg_code assessment_event(reader *self, const epg_ledger_line *line, epg_error *err)
{
    epg_history *history = self->history;
    const epg_history_submission *submission = submission_of(history, &self->line);
    if (submission == NULL) {
        return bad(line, "of no submission", err);
    }
    epg_history_measure *measure = &history->assessment;
    if (strcmp(line->event, "assessment_started") == 0) {
        history->assessment_started = true;
        take_events_metric(history, &self->line);
        if (measure->episodes == NULL) {
            open_measure(false, measure, &self->line, submission->facts.number);
        }
    } else if (strcmp(line->event, "assessment_episode_completed") == 0) {
        take_episode(self, measure->episodes, measure->episode_count);
    } else {
        end_measure(self, measure, "assessment-");
    }
    return EPG_OK;
}

static epg_code final_selected(reader *self, const epg_ledger_line *line, epg_error *err)
{
    const epg_history_submission *submission = submission_of(self->history, &self->line);
    if (submission == NULL) {
        return bad(line, "of no submission", err);
    }
    self->history->selected = submission->facts.number;
    return EPG_OK;
}

/* Each Host of a Run that was resumed tells what the Agent used and none before has told. */
static void take_usage(epg_history *history, const epg_event_line *event)
{
    const char *known = epg_event_line_text(event, "agent_usage");
    bool first = !history->tokens_known && !history->cost_known;
    if (known == NULL || strcmp(known, epg_known_name(EPG_KNOWN_NOT)) == 0) {
        return;
    }
    history->usage_exact = (first || history->usage_exact) && strcmp(known, epg_known_name(EPG_KNOWN_EXACTLY)) == 0;
    history->tokens_known = history->tokens_known || epg_event_line_is_number(event, "agent_tokens");
    history->tokens += epg_event_line_u64(event, "agent_tokens");
    history->cost_known = history->cost_known || epg_event_line_is_number(event, "agent_cost_usd");
    history->cost += epg_event_line_double(event, "agent_cost_usd");
}

static epg_code run_event(reader *self, const epg_ledger_line *line, epg_error *err)
{
    (void)err;
    epg_history *history = self->history;
    const char *reason = epg_event_line_text(&self->line, "terminal_reason");
    free(EPG_TAKE(history->terminal_reason));
    if (strcmp(line->event, "run_resumed") == 0) {
        const char *phase = epg_event_line_text(&self->line, "phase");
        if (phase != NULL && strcmp(phase, "agent") == 0) {
            epg_history_reopen_task(history);
        }
        agent_stops(self, history->last_unix_ns); /* with its Host: the time until this one came is not the Agent's */
        history->interrupted = false;
        history->ended = false;
        return EPG_OK;
    }
    history->interrupted = strcmp(line->event, "run_interrupted") == 0;
    history->ended = !history->interrupted;
    /* An Agent that an operator's interruption ended is not over: it is started again when the Run goes on. */
    if (history->interrupted && history->finished_by == NULL) {
        history->agent_over = false;
    }
    history->terminal_reason = reason != NULL ? epg_strdup(reason) : NULL;
    take_usage(history, &self->line);
    return EPG_OK;
}

static epg_code seal_event(reader *self, const epg_ledger_line *line, epg_error *err)
{
    (void)err;
    if (strcmp(line->event, "run_created") == 0) {
        take_origin(self->history, &self->line);
        epg_history_take_created(self->history, &self->line);
    } else if (!self->skims) {
        epg_history_take_seal(self->history, &self->line);
    }
    return EPG_OK;
}

static const struct {
    const char *event;
    epg_code (*take)(reader *self, const epg_ledger_line *line, epg_error *err);
} takers[] = {
    {"run_created", seal_event},
    {"document_sealed", seal_event},
    {"evaluation_started", evaluation_started},
    {"episode_completed", episode_completed},
    {"submission_published", submission_published},
    {"session_failed", host_failed},
    {"evaluation_failed", submission_failed},
    {"publication_failed", submission_failed},
    {"evaluation_stopped", evaluation_stopped},
    {"finish_requested", finish_requested},
    {"agent_started", agent_event},
    {"agent_start_failed", agent_event},
    {"agent_exited", agent_event},
    {"agent_timeout", agent_event},
    {"agent_limit", agent_event},
    {"agent_stopped_after_terminal", agent_event},
    {"validation_failed", host_failed},
    {"assessment_failed", host_failed},
    {"validation_started", validation_event},
    {"validation_candidate_started", validation_event},
    {"validation_episode_completed", validation_event},
    {"validation_candidate_completed", validation_event},
    {"final_submission_selected", final_selected},
    {"assessment_started", assessment_event},
    {"assessment_episode_completed", assessment_event},
    {"assessment_completed", assessment_event},
    {"run_finished", run_event},
    {"run_interrupted", run_event},
    {"run_resumed", run_event},
};

/* Of a submission's evaluation or of Validation. By its first bytes: keys are sorted, and only the ends of Episodes
 * begin with "completed". */
static bool is_passed_over(epg_span line)
{
    static const char begin[] = "{\"completed\":";
    static const char *const events[] = {"\"event\":\"episode_completed\",",
                                         "\"event\":\"validation_episode_completed\","};
    enum { FIRST_BYTES = 128 };
    if (line.size < sizeof begin || memcmp(line.data, begin, sizeof begin - 1) != 0) {
        return false;
    }
    size_t size = line.size < FIRST_BYTES ? line.size : FIRST_BYTES;
    return memmem(line.data, size, events[0], strlen(events[0])) != NULL ||
           memmem(line.data, size, events[1], strlen(events[1])) != NULL;
}

static epg_code take_line(void *context, const epg_ledger_line *given, epg_error *err)
{
    reader *self = context;
    epg_history *history = self->history;
    if (self->skims && is_passed_over(given->text)) {
        return EPG_OK;
    }
    epg_ledger_line line = *given;
    if (epg_event_line_read(&self->line, given->text, err) != EPG_OK) {
        return epg_fail_within(err, "events.jsonl line %llu", (unsigned long long)given->number);
    }
    const char *event = epg_event_line_text(&self->line, "event");
    const char *schema = epg_event_line_text(&self->line, "schema");
    line.event = event != NULL ? event : "";
    if (schema == NULL || strcmp(schema, EPG_EVENT_SCHEMA) != 0) {
        return epg_fail(err, EPG_ERR_INVALID,
                        "events.jsonl line %llu has the schema \"%.80s\"; this version reads \"%s\"",
                        (unsigned long long)given->number, schema != NULL ? schema : "none", EPG_EVENT_SCHEMA);
    }
    for (size_t i = 0; i < EPG_COUNT(takers); i++) {
        if (strcmp(line.event, takers[i].event) == 0) {
            EPG_TRY(takers[i].take(self, &line, err));
            break;
        }
    }
    history->last_unix_ns = epg_event_line_i64(&self->line, "time_unix_ns");
    history->first_unix_ns = history->first_unix_ns == 0 ? history->last_unix_ns : history->first_unix_ns;
    history->chain_broken = history->chain_broken || (line.has_previous && !line.chained);
    return EPG_OK;
}

/* --- documents --- */

static void reader_free(reader *self)
{
    epg_event_line_free(&self->line);
}

static epg_code read_history(int run, bool skims, bool keeps, epg_history *out, epg_error *err)
{
    EPG_CLEANUP(epg_history_free) epg_history history = {0};
    reader self EPG_CLEANUP(reader_free) = {.history = &history, .skims = skims, .keeps = keeps};
    EPG_TRY(epg_history_read_documents(run, skims, &history, err));
    if (skims) {
        EPG_TRY(epg_ledger_skim(run, take_line, &self, &history.event_count, &history.torn, err));
    } else {
        EPG_TRY(epg_ledger_follow(run, take_line, &self, &history.event_count, history.head, &history.torn, err));
    }
    if (history.event_count == 0 && history.request != NULL && history.record == NULL) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "it was not set up to its end: it holds no event; remove it and start the Run again");
    }
    if (history.benchmark_id == NULL) {
        return epg_fail(err, EPG_ERR_INVALID,
                        "no config.json, no run.json, and no Agent was started: not a Run, or one that was not set up");
    }
    if (history.request == NULL && history.record == NULL && history.submission_count > 0) {
        const epg_submission *first = &history.submissions[0].facts;
        history.config.episode_budget = first->episodes_used + first->episodes_remaining;
    }
    agent_stops(&self, history.last_unix_ns);
    epg_history_complete_from_record(&history);
    *out = history;
    history = (epg_history){0};
    return EPG_OK;
}

epg_code epg_history_read(int run, epg_history *out, epg_error *err)
{
    return read_history(run, false, false, out, err);
}

epg_code epg_history_read_episodes(int run, epg_history *out, epg_error *err)
{
    return read_history(run, false, true, out, err);
}

epg_code epg_history_skim(int run, epg_history *out, epg_error *err)
{
    return read_history(run, true, false, out, err);
}
