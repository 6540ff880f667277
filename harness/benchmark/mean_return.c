/* Feedback by the mean return: one pass over the records, bounded in memory by the number of Episodes.
 *
 * Score: the mean over all Episodes, a failed one counting as the worst return. Content: how returns are distributed,
 * how Episodes ended, which Actions were chosen, and each Episode (of the first EPISODES_LISTED). trace.jsonl: the
 * steps of the first EPISODES_TRACED Episodes, of each at most the first STEPS_HEAD and the last STEPS_TAIL; what was
 * cut is told where it was cut. Nothing here holds a seed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "benchmark/defaults.h"

enum { EPISODES_LISTED = 200, EPISODES_TRACED = 10, STEPS_HEAD = 100, STEPS_TAIL = 100, ENDS_MAX = 16, END_NAME = 48 };

typedef struct end_count {
    char name[END_NAME];
    uint64_t count;
} end_count;

/* The last STEPS_TAIL rendered steps of the Episode that is read, oldest at `total % STEPS_TAIL`. */
typedef struct tail {
    epg_buffer lines[STEPS_TAIL];
    uint64_t total; /* pushed so far */
} tail;

typedef struct report {
    const epg_mean_return *rule;
    uint64_t index;  /* of the Episode that is read */
    double *returns; /* of the completed Episodes */
    size_t completed;
    double sum;
    long double wide_sum; /* the same where a double would be over its range */
    end_count ends[ENDS_MAX];
    size_t end_kinds;
    uint64_t steps;
    uint64_t action_counts[EPG_ACTIONS_COUNTED];
    long double action_sum;
    double action_low, action_high;
    epg_buffer listed; /* the maps of the listed Episodes */
    epg_buffer trace;
    tail tail;
} report;

static void report_free(report *self)
{
    free(self->returns);
    epg_buffer_free(&self->listed);
    epg_buffer_free(&self->trace);
    for (size_t i = 0; i < STEPS_TAIL; i++) {
        epg_buffer_free(&self->tail.lines[i]);
    }
}

/* --- Trace --- */

static void end_line(epg_json_writer *writer, epg_buffer *out)
{
    epg_json_end(writer);
    epg_json_finish(writer);
    (void)epg_buffer_byte(out, '\n');
}

static void trace_step(report *self, epg_span observation, const epg_transition *step, uint64_t number)
{
    epg_buffer *out = &self->trace;
    if (number >= STEPS_HEAD) {
        out = &self->tail.lines[self->tail.total++ % STEPS_TAIL];
        epg_buffer_clear(out);
    }
    epg_json_writer writer;
    epg_json_begin(&writer, out, 0);
    epg_json_object(&writer, NULL);
    epg_value_to_json(step->action, &writer, "action");
    epg_json_put_u64(&writer, "episode", self->index);
    epg_value_to_json(observation, &writer, "observation");
    epg_json_put_double(&writer, "reward", step->reward);
    epg_json_put_u64(&writer, "step", number);
    epg_json_put_text(&writer, "type", "step");
    end_line(&writer, out);
}

static void trace_tail(report *self)
{
    tail *last = &self->tail;
    if (last->total > STEPS_TAIL) {
        epg_json_writer writer;
        epg_json_begin(&writer, &self->trace, 0);
        epg_json_object(&writer, NULL);
        epg_json_put_u64(&writer, "episode", self->index);
        epg_json_put_u64(&writer, "steps_left_out", last->total - STEPS_TAIL);
        epg_json_put_text(&writer, "type", "cut");
        end_line(&writer, &self->trace);
    }
    uint64_t kept = last->total < STEPS_TAIL ? last->total : STEPS_TAIL;
    for (uint64_t i = last->total - kept; i < last->total; i++) {
        (void)epg_buffer_append_span(&self->trace, epg_buffer_span(&last->lines[i % STEPS_TAIL]));
    }
    last->total = 0;
}

static void trace_end(report *self, const epg_record_head *head, const char *end, epg_span observation)
{
    bool failed = head->failure != EPG_POLICY_OK;
    epg_json_writer writer;
    epg_json_begin(&writer, &self->trace, 0);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "end", end);
    epg_json_put_u64(&writer, "episode", self->index);
    if (observation.size > 0) {
        epg_value_to_json(observation, &writer, "observation");
    }
    epg_json_put_double(&writer, "return", failed ? self->rule->failed_return : head->reward);
    epg_json_put_u64(&writer, "steps", head->steps);
    epg_json_put_text(&writer, "type", "end");
    end_line(&writer, &self->trace);
}

static void trace_about(report *self, uint64_t episodes)
{
    epg_json_writer writer;
    epg_json_begin(&writer, &self->trace, 0);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "about",
                      "A step line holds the observation that the Policy saw, the action that it chose and the reward "
                      "of that action; an end line holds the last observation. Episodes are numbered from 0 in the "
                      "order of this Evaluation.");
    epg_json_put_u64(&writer, "episodes", episodes);
    epg_json_put_u64(&writer, "episodes_traced", episodes < EPISODES_TRACED ? episodes : EPISODES_TRACED);
    epg_json_put_u64(&writer, "first_steps_traced", STEPS_HEAD);
    epg_json_put_u64(&writer, "last_steps_traced", STEPS_TAIL);
    epg_json_put_text(&writer, "type", "about");
    end_line(&writer, &self->trace);
}

/* --- Counting --- */

static void count_end(report *self, const char *name)
{
    for (size_t i = 0; i < self->end_kinds; i++) {
        if (strcmp(self->ends[i].name, name) == 0) {
            self->ends[i].count++;
            return;
        }
    }
    if (self->end_kinds < ENDS_MAX) {
        end_count *end = &self->ends[self->end_kinds++];
        memcpy(end->name, name, strnlen(name, END_NAME - 1)); /* zeroed before */
        end->count = 1;
    }
}

static void count_action(report *self, epg_span action)
{
    int64_t index = 0;
    double value = 0.0;
    if (self->rule->action_count > 0) {
        if (epg_value_get_i64(action, &index) && index >= 0 && index < (int64_t)self->rule->action_count) {
            self->action_counts[index]++;
        }
    } else if (epg_value_get_float(action, &value)) {
        self->action_low = self->steps == 0 || value < self->action_low ? value : self->action_low;
        self->action_high = self->steps == 0 || value > self->action_high ? value : self->action_high;
        self->action_sum += value;
    }
    self->steps++;
}

static void list_episode(report *self, const epg_record_head *head, const char *end, epg_span observation)
{
    bool failed = head->failure != EPG_POLICY_OK;
    epg_buffer *out = &self->listed;
    epg_value_put_map(out, 5);
    epg_value_put_key(out, "end");
    epg_value_put_text(out, end);
    epg_value_put_key(out, "episode");
    epg_value_put_u64(out, self->index);
    epg_value_put_key(out, "final_observation");
    if (observation.size > 0) {
        (void)epg_buffer_append_span(out, observation);
    } else {
        epg_value_put_null(out);
    }
    epg_value_put_key(out, "return");
    epg_value_put_float(out, failed ? self->rule->failed_return : head->reward);
    epg_value_put_key(out, "steps");
    epg_value_put_u64(out, head->steps);
}

static void finish_episode(report *self, const epg_record_head *head, const char *end, epg_span observation)
{
    bool failed = head->failure != EPG_POLICY_OK;
    double counted = failed ? self->rule->failed_return : head->reward;
    self->sum += counted;
    self->wide_sum += counted;
    if (!failed) {
        self->returns[self->completed++] = counted;
    }
    count_end(self, end);
    if (self->index < EPISODES_LISTED) {
        list_episode(self, head, end, observation);
    }
    if (self->index < EPISODES_TRACED) {
        trace_tail(self);
        trace_end(self, head, end, observation);
    }
    self->index++;
}

static epg_code read_steps(report *self, const epg_records *records, const epg_record_head *head, epg_error *err)
{
    EPG_AUTO_BUFFER seen = {0}; /* what the Policy saw last: a step's spans are gone after the next call */
    if (head->has_observation) {
        (void)epg_buffer_append_span(&seen, head->initial_observation);
    }
    char end[END_NAME] = "unfinished";
    for (uint64_t number = 0;; number++) {
        epg_transition step;
        bool have = false;
        EPG_TRY(records->next_step(records->context, &step, &have, err));
        if (!have) {
            break;
        }
        if (self->index < EPISODES_TRACED) {
            trace_step(self, epg_buffer_span(&seen), &step, number);
        }
        count_action(self, step.action);
        epg_span name;
        if (epg_value_get_string(step.metrics, &name) && name.size < END_NAME) {
            memcpy(end, name.data, name.size);
            end[name.size] = '\0';
        }
        epg_buffer_clear(&seen);
        (void)epg_buffer_append_span(&seen, step.observation);
    }
    bool failed = head->failure != EPG_POLICY_OK;
    finish_episode(self, head, failed ? epg_policy_failure_name(head->failure) : end, epg_buffer_span(&seen));
    return EPG_OK;
}

/* --- Content --- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

static int compare_ends(const void *a, const void *b)
{
    return strcmp(((const end_count *)a)->name, ((const end_count *)b)->name);
}

/* Between the two nearest of the sorted returns, in proportion. */
static double quantile(const report *self, double part)
{
    double at = part * (double)(self->completed - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < self->completed ? below + 1 : below;
    long double low = self->returns[below];
    return (double)(low + (at - (double)below) * (self->returns[above] - low));
}

static void put_float_member(epg_buffer *out, const char *key, double value)
{
    epg_value_put_key(out, key);
    epg_value_put_float(out, value);
}

static void put_distribution(report *self, epg_buffer *out)
{
    if (self->completed == 0) {
        epg_value_put_null(out);
        return;
    }
    qsort(self->returns, self->completed, sizeof *self->returns, compare_doubles);
    double mean = 0.0;
    for (size_t i = 0; i < self->completed; i++) {
        mean += self->returns[i] / (double)self->completed;
    }
    long double square = 0.0L;
    for (size_t i = 0; i < self->completed; i++) {
        long double distance = (long double)self->returns[i] - mean;
        square += distance * distance / (long double)self->completed;
    }
    epg_value_put_map(out, 7);
    put_float_member(out, "maximum", self->returns[self->completed - 1]);
    put_float_member(out, "mean", mean);
    put_float_member(out, "median", quantile(self, 0.5));
    put_float_member(out, "minimum", self->returns[0]);
    put_float_member(out, "percentile_25", quantile(self, 0.25));
    put_float_member(out, "percentile_75", quantile(self, 0.75));
    put_float_member(out, "standard_deviation", (double)sqrtl(square));
}

static void put_actions(const report *self, epg_buffer *out)
{
    if (self->rule->action_count > 0) {
        epg_value_put_map(out, self->rule->action_count);
        for (unsigned i = 0; i < self->rule->action_count; i++) {
            char key[2] = {(char)('0' + i), '\0'};
            epg_value_put_key(out, key);
            epg_value_put_u64(out, self->action_counts[i]);
        }
    } else if (self->steps == 0) {
        epg_value_put_null(out);
    } else {
        epg_value_put_map(out, 3);
        put_float_member(out, "maximum", self->action_high);
        put_float_member(out, "mean", (double)(self->action_sum / (long double)self->steps));
        put_float_member(out, "minimum", self->action_low);
    }
}

static void put_ends(report *self, epg_buffer *out)
{
    qsort(self->ends, self->end_kinds, sizeof *self->ends, compare_ends);
    epg_value_put_map(out, self->end_kinds);
    for (size_t i = 0; i < self->end_kinds; i++) {
        epg_value_put_key(out, self->ends[i].name);
        epg_value_put_u64(out, self->ends[i].count);
    }
}

static void put_content(report *self, epg_buffer *out)
{
    epg_value_put_map(out, 9);
    epg_value_put_key(out, "actions");
    put_actions(self, out);
    epg_value_put_key(out, "ends");
    put_ends(self, out);
    epg_value_put_key(out, "episode_count");
    epg_value_put_u64(out, self->index);
    epg_value_put_key(out, "episodes");
    epg_value_put_list(out, self->index < EPISODES_LISTED ? self->index : EPISODES_LISTED);
    (void)epg_buffer_append_span(out, epg_buffer_span(&self->listed));
    epg_value_put_key(out, "failed_episode_return");
    epg_value_put_float(out, self->rule->failed_return);
    epg_value_put_key(out, "metric");
    epg_value_put_text(out, self->rule->metric);
    epg_value_put_key(out, "policy_failures");
    epg_value_put_u64(out, self->index - self->completed);
    epg_value_put_key(out, "returns_of_completed_episodes");
    put_distribution(self, out);
    epg_value_put_key(out, "steps");
    epg_value_put_u64(out, self->steps);
}

epg_code epg_mean_return_feedback(const epg_mean_return *rule, const epg_records *records, epg_feedback *out,
                                  epg_error *err)
{
    if (records->count == 0) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "feedback: there is no Episode");
    }
    EPG_CLEANUP(report_free) report self = {.rule = rule};
    self.returns = epg_alloc_array(records->count, sizeof *self.returns);
    trace_about(&self, records->count);
    for (;;) {
        epg_record_head head;
        bool have = false;
        EPG_TRY(records->next_record(records->context, &head, &have, err));
        if (!have) {
            break;
        }
        if (self.index >= records->count) {
            return epg_fail(err, EPG_ERR_BENCHMARK, "feedback: there are more records than were announced");
        }
        EPG_TRY(read_steps(&self, records, &head, err));
    }
    if (self.index != records->count) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "feedback: there are fewer records than were announced");
    }
    epg_feedback feedback = {.score = isfinite(self.sum) ? self.sum / (double)self.index
                                                         : (double)(self.wide_sum / (long double)self.index)};
    put_content(&self, &feedback.content);
    epg_artifact *trace = epg_feedback_add(&feedback, "trace.jsonl", "application/x-ndjson", false);
    trace->content = self.trace;
    self.trace = (epg_buffer){0};
    *out = feedback;
    return EPG_OK;
}
