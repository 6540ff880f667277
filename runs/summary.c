#include "runs/summary.h"

#include <string.h>

#include "base/clock.h"

/* What the Run's end tells of the Agent's use; until then, or without, the sum of what its submissions told. */
static void add_usage(const epg_reading *reading, epg_summary *out)
{
    const epg_history *history = &reading->history;
    if (history->tokens_known || history->cost_known) {
        out->tokens_known = history->tokens_known;
        out->tokens = history->tokens;
        out->cost_known = history->cost_known;
        out->cost = history->cost;
        out->usage_is_least = !history->usage_exact;
        return;
    }
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_history_submission *one = &history->submissions[i];
        out->tokens_known = out->tokens_known || one->tokens_known;
        out->tokens += one->tokens;
        out->cost_known = out->cost_known || one->cost_known;
        out->cost += one->cost;
    }
    out->usage_is_least = true;
}

void epg_summary_of(const epg_reading *reading, epg_summary *out)
{
    const epg_history *history = &reading->history;
    *out = (epg_summary){.state = epg_reading_state(reading),
                         .submissions = history->submission_count,
                         .final = history->selected,
                         .has_assessment = history->assessment.completed,
                         .assessment = history->assessment.score,
                         .wall_seconds = (double)(history->last_unix_ns - history->first_unix_ns) / 1e9,
                         .agent_seconds = (double)history->agent_used_ns / 1e9};
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        out->episodes_used += facts->indices.count;
        out->published += facts->state == EPG_SUBMISSION_PUBLISHED;
        out->failed += facts->state == EPG_SUBMISSION_FAILED;
        out->policy_failures += facts->policy_failures;
    }
    const epg_history_submission *best =
        history->direction_known ? epg_history_best(history, history->direction) : NULL;
    out->best = best != NULL ? best->facts.number : 0;
    for (size_t i = 0; i < history->validation_count; i++) {
        if (history->validation[i].number == history->selected && history->validation[i].completed) {
            out->has_validation = true;
            out->validation = history->validation[i].score;
        }
    }
    add_usage(reading, out);
}

bool epg_summary_best_within(const epg_history *history, uint64_t episodes, double *score)
{
    bool found = false;
    uint64_t used = 0;
    for (size_t i = 0; history->direction_known && i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        used += facts->indices.count;
        if (used > episodes) {
            break;
        }
        if (facts->state == EPG_SUBMISSION_PUBLISHED &&
            (!found || epg_direction_better(history->direction, facts->score, *score))) {
            *score = facts->score;
            found = true;
        }
    }
    return found;
}

void epg_summary_marks(const epg_reading *reading, epg_submission_mark *marks)
{
    const epg_history *history = &reading->history;
    const epg_submission *before = NULL; /* the last published */
    const epg_submission *best = NULL;
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        marks[i] = (epg_submission_mark){.same = strcmp(facts->program_digest, epg_reading_digest(reading, i)) == 0};
        if (facts->state != EPG_SUBMISSION_PUBLISHED) {
            continue;
        }
        marks[i].has_change = before != NULL;
        marks[i].change = before != NULL ? facts->score - before->score : 0;
        before = facts;
        if (history->direction_known &&
            (best == NULL || epg_direction_better(history->direction, facts->score, best->score))) {
            marks[i].improves = true;
            best = facts;
        }
    }
    if (best != NULL) {
        marks[best->number - 1].best = true;
    }
}

const char *epg_submission_state_name(epg_submission_state state)
{
    static const char *const names[] = {"running", "published", "failed"};
    return names[state];
}

const char *epg_summary_submission_state(const epg_reading *reading, uint64_t number)
{
    epg_submission_state state = reading->history.submissions[number - 1].facts.state;
    return state == EPG_SUBMISSION_RUNNING && !reading->locked ? "pending" : epg_submission_state_name(state);
}

/* --- JSON --- */

static void put_id(epg_json_writer *writer, const char *key, uint64_t number)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(number, id);
    epg_json_put_text(writer, key, number > 0 ? id : NULL);
}

static void put_double(epg_json_writer *writer, const char *key, bool known, double value)
{
    if (known) {
        epg_json_put_computed(writer, key, value);
    } else {
        epg_json_put_null(writer, key);
    }
}

static void put_measure(epg_json_writer *writer, const char *key, const epg_history_measure *measure, const char *split)
{
    if (measure == NULL || !measure->completed) {
        epg_json_put_null(writer, key);
        return;
    }
    epg_json_object(writer, key);
    epg_json_put_u64(writer, "episodes", measure->episode_count);
    epg_json_put_u64(writer, "policy_failures", measure->policy_failures);
    epg_json_put_double(writer, "score", measure->score);
    epg_json_put_text(writer, "split", split);
    put_id(writer, "submission_id", measure->number);
    epg_json_end(writer);
}

static void put_usage(epg_json_writer *writer, const epg_summary *summary)
{
    epg_json_object(writer, "usage");
    put_double(writer, "cost_usd", summary->cost_known, summary->cost);
    epg_json_put_bool(writer, "lower_bound", summary->usage_is_least);
    if (summary->tokens_known) {
        epg_json_put_u64(writer, "tokens", summary->tokens);
    } else {
        epg_json_put_null(writer, "tokens");
    }
    epg_json_end(writer);
}

void epg_summary_run_json(const epg_reading *reading, epg_json_writer *writer, const char *key)
{
    const epg_history *history = &reading->history;
    epg_summary summary;
    epg_summary_of(reading, &summary);
    epg_json_object(writer, key);
    epg_json_object(writer, "agent");
    epg_json_put_text(writer, "model", history->model);
    epg_json_put_text(writer, "provider", history->provider);
    epg_json_end(writer);
    epg_json_put_double(writer, "agent_seconds", summary.agent_seconds);
    put_measure(writer, "assessment", &history->assessment, history->config.assessment_split);
    epg_json_object(writer, "benchmark");
    epg_json_put_text(writer, "environment_digest", history->environment_digest);
    epg_json_put_text(writer, "id", history->benchmark_id);
    epg_json_put_text(writer, "primary_metric", history->metric);
    epg_json_put_text(writer, "score_direction",
                      history->direction_known ? epg_direction_name(history->direction) : NULL);
    epg_json_end(writer);
    put_id(writer, "best_submission_id", summary.best);
    epg_json_array(writer, "candidate_submission_ids");
    for (size_t i = 0; i < history->candidate_count; i++) {
        put_id(writer, NULL, history->candidates[i]);
    }
    epg_json_end(writer);
    epg_json_put_text(writer, "directory", reading->path);
    epg_json_put_u64(writer, "episode_budget", history->config.episode_budget);
    epg_json_put_u64(writer, "episodes_used", summary.episodes_used);
    put_id(writer, "final_submission_id", summary.final);
    epg_json_put_bool(writer, "has_record", history->has_record);
    epg_json_put_i64(writer, "last_event_unix_ns", history->last_unix_ns);
    epg_json_put_u64(writer, "policy_failures", summary.policy_failures);
    epg_json_put_i64(writer, "started_unix_ns", history->first_unix_ns);
    epg_json_put_text(writer, "state", summary.state);
    epg_json_object(writer, "submissions");
    epg_json_put_u64(writer, "failed", summary.failed);
    epg_json_put_u64(writer, "published", summary.published);
    epg_json_put_u64(writer, "total", summary.submissions);
    epg_json_end(writer);
    put_usage(writer, &summary);
    epg_json_array(writer, "validation");
    for (size_t i = 0; i < history->validation_count; i++) {
        put_measure(writer, NULL, &history->validation[i], history->config.validation_split);
    }
    epg_json_end(writer);
    epg_json_put_double(writer, "wall_seconds", summary.wall_seconds);
    epg_json_end(writer);
}

void epg_summary_submission_json(const epg_reading *reading, uint64_t number, const epg_submission_mark *mark,
                                 epg_json_writer *writer, const char *key)
{
    const epg_history_submission *one = &reading->history.submissions[number - 1];
    const epg_submission *facts = &one->facts;
    bool published = facts->state == EPG_SUBMISSION_PUBLISHED;
    EPG_AUTO_BUFFER selector = {0};
    epg_selector_text(&facts->indices, &selector);
    epg_json_object(writer, key);
    epg_json_put_bool(writer, "best", mark->best);
    put_double(writer, "change", mark->has_change, mark->change);
    epg_json_put_text(writer, "commit", one->commit[0] != '\0' ? one->commit : NULL);
    put_double(writer, "cost_usd", one->cost_known, one->cost);
    epg_json_put_text(writer, "episode_indices", epg_buffer_cstr(&selector));
    epg_json_put_u64(writer, "episodes", facts->indices.count);
    epg_json_put_u64(writer, "episodes_remaining", facts->episodes_remaining);
    epg_json_put_text(writer, "failure", facts->state == EPG_SUBMISSION_FAILED ? facts->failure : NULL);
    epg_json_put_bool(writer, "improves", mark->improves);
    if (published) {
        epg_json_put_u64(writer, "policy_failures", facts->policy_failures);
    } else {
        epg_json_put_null(writer, "policy_failures");
    }
    epg_json_put_text(writer, "program_digest", facts->program_digest);
    epg_json_put_bool(writer, "same_program", mark->same);
    put_double(writer, "score", published, facts->score);
    put_double(writer, "seconds", one->ended_unix_ns != 0, (double)(one->ended_unix_ns - one->started_unix_ns) / 1e9);
    epg_json_put_i64(writer, "started_unix_ns", one->started_unix_ns);
    epg_json_put_text(writer, "state", epg_summary_submission_state(reading, number));
    put_id(writer, "submission_id", number);
    if (one->tokens_known) {
        epg_json_put_u64(writer, "tokens", one->tokens);
    } else {
        epg_json_put_null(writer, "tokens");
    }
    epg_json_end(writer);
}
