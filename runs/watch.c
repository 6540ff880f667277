/* Limits on a working Agent beside its deadline: nothing happens for too long, it used too many tokens, it cost too
 * much. Each ends it in the same order as its deadline does, and is told as a cause of its own.
 *
 * An Agent is idle when it writes nothing, asks the session for nothing, no evaluation of its runs, and its processes
 * use less than a twentieth of a processor. Processor time is looked at a few times in the allowed span only. */
#include <fcntl.h>
#include <string.h>

#include "agents/activity.h"
#include "base/text.h"
#include "runs/coordinator.h"
#include "system/files.h"
#include "system/io.h"

enum { SAMPLES = 4, SAMPLE_MAX_S = 10, BUSY_PART = 20 };

static int64_t idle_limit(const epg_run_state *self)
{
    double seconds = self->config->agent_idle_seconds;
    return seconds > 0 && seconds < 1e9 ? (int64_t)(seconds * 1e9) : EPG_NEVER;
}

static bool limited(const epg_run_state *self)
{
    return idle_limit(self) != EPG_NEVER || self->config->max_tokens > 0 || self->config->max_cost > 0;
}

static int64_t sample_span(const epg_run_state *self)
{
    int64_t span = idle_limit(self) / SAMPLES;
    return span < SAMPLE_MAX_S * EPG_SECOND ? span : SAMPLE_MAX_S * EPG_SECOND;
}

void epg_run_watch_begin(epg_run_state *self)
{
    self->watch = (epg_run_watch){.active = epg_monotonic_ns(), .sampled = epg_monotonic_ns()};
}

int64_t epg_run_watch_deadline(const epg_run_state *self)
{
    return limited(self) && self->stop == EPG_STOP_NONE ? self->watch.sampled + sample_span(self) : EPG_NEVER;
}

/* What the Agent keeps of its use in files of its home comes into the transcript here. */
void epg_run_take_home(epg_run_state *self)
{
    EPG_AUTO_BUFFER lines = {0};
    EPG_AUTO_CLOSE int home = -1;
    if (self->transcript != NULL && self->agent_home != NULL &&
        epg_dir_open_beneath(self->run, "agent/" EPG_RUN_AGENT_HOME, &home, NULL) == EPG_OK) {
        epg_transcript_home(self->transcript, home, &lines);
        (void)epg_io_write_all(self->transcript_fd, lines.data, lines.size);
    }
}

static void sample(epg_run_state *self, int64_t now)
{
    int64_t used = epg_activity_cpu_ns(epg_agent_tree(self->agent));
    if (used - self->watch.cpu_ns > (now - self->watch.sampled) / BUSY_PART) {
        self->watch.active = now;
    }
    self->watch.cpu_ns = used;
    self->watch.sampled = now;
    epg_run_take_home(self);
}

static const char *passed_limit(const epg_run_state *self, int64_t now)
{
    epg_usage usage = epg_run_usage(self);
    if (self->config->max_tokens > 0 && epg_usage_tokens_total(&usage) > self->config->max_tokens) {
        return "max_tokens";
    }
    if (self->config->max_cost > 0 && usage.cost > self->config->max_cost) {
        return "max_cost";
    }
    return now - self->watch.active >= idle_limit(self) ? "idle" : NULL;
}

epg_code epg_run_watch_turn(epg_run_state *self, epg_error *err)
{
    int64_t now = epg_monotonic_ns();
    if (!limited(self) || self->stop != EPG_STOP_NONE) {
        return EPG_OK;
    }
    int64_t output = epg_agent_last_output(self->agent);
    self->watch.active = output > self->watch.active ? output : self->watch.active;
    if (self->evaluation != NULL) {
        self->watch.active = now;
    }
    if (now - self->watch.sampled >= sample_span(self)) {
        sample(self, now);
    }
    const char *limit = passed_limit(self, now);
    if (limit == NULL) {
        return EPG_OK;
    }
    self->stop = EPG_STOP_LIMIT;
    self->limit = limit;
    epg_progress_line(&self->progress, "agent_limit", "the Agent is ended: %s", limit);
    EPG_TRY(EPG_EVENT(self->ledger, "agent_limit", err, epg_field_text("limit", limit)));
    return epg_run_evaluation_stop(self, "agent_limit", err);
}

void epg_run_watch_request(epg_run_state *self)
{
    self->watch.active = epg_monotonic_ns();
}

void epg_run_close_interval(epg_run_state *self)
{
    self->interval = (epg_usage){0};
    if (self->transcript != NULL) {
        epg_run_take_home(self);
        self->interval = epg_transcript_interval(self->transcript);
    }
}

/* One of which nothing is known is told so at the end, and takes no place until then. */
static void add_interval(epg_run_state *self, uint64_t submission, const epg_usage *usage)
{
    if (usage->tokens_known == EPG_KNOWN_NOT && usage->cost_known == EPG_KNOWN_NOT) {
        return;
    }
    self->intervals = epg_grow_array(self->intervals, self->interval_count + 1, sizeof *self->intervals);
    self->intervals[self->interval_count++] = (epg_run_interval){submission, *usage};
}

/* The transcript is not trusted: of each submission that was published, once, in their order. */
static void take_past_interval(void *context, const char *note, const char *id, const epg_usage *usage)
{
    epg_run_state *self = context;
    uint64_t number = epg_submission_number(id);
    uint64_t last = self->interval_count > 0 ? self->intervals[self->interval_count - 1].submission : 0;
    double score = 0;
    if (strcmp(note, "submission") == 0 && number > last && epg_session_score(&self->session, number, &score)) {
        add_interval(self, number, usage);
    }
}

void epg_run_past_usage(epg_run_state *self)
{
    EPG_AUTO_CLOSE int logs = -1;
    if (epg_dir_open_beneath(self->run, "agent", &logs, NULL) == EPG_OK) {
        self->past_starts = epg_transcript_past(logs, &self->past_usage, take_past_interval, self);
    }
}

/* The use that this submission closes, and its place in the Agent's own timeline. */
void epg_run_note_submission(epg_run_state *self, const epg_submission *submission)
{
    if (self->transcript == NULL) {
        return;
    }
    EPG_AUTO_BUFFER lines = {0};
    char id[EPG_SUBMISSION_ID_TEXT];
    char score[EPG_DOUBLE_TEXT];
    epg_submission_id(submission->number, id);
    (void)epg_double_text(submission->score, score);
    epg_transcript_note(self->transcript, "submission", id, score, &self->interval, &lines);
    (void)epg_io_write_all(self->transcript_fd, lines.data, lines.size);
    add_interval(self, submission->number, &self->interval);
}
