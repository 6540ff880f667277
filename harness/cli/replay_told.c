#include "cli/replay_told.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cli/shown.h"

enum { VALUE_SHOWN = 2000 };

/* --- as JSON --- */

static json_t *number(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *text(const char *value)
{
    EPG_AUTO_FREE char *safe =
        value != NULL && !epg_utf8_valid(value, strlen(value)) ? epg_printable(value, strlen(value)) : NULL;
    return value != NULL ? json_string(safe != NULL ? safe : value) : json_null();
}

static json_t *side(epg_policy_failure failure, double reward, uint64_t steps, const char *value)
{
    return json_pack("{s:o, s:o, s:I, s:o}", "failure", text(epg_policy_failure_name(failure)), "reward",
                     number(failure == EPG_POLICY_OK, reward), "steps", (json_int_t)steps, "value", text(value));
}

static json_t *first_difference(const epg_replay_result *result)
{
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:o}", "episode_index", (json_int_t)result->index, "evidence",
        text(result->evidence), "recorded",
        side(result->recorded_failure, result->recorded_reward, result->recorded_steps, result->recorded_value),
        "replayed", side(result->failure, result->reward, result->steps, result->value), "step",
        result->step_known ? json_integer((json_int_t)result->step) : json_null(), "what", text(result->what));
}

json_t *epg_replay_told(const epg_replay_result *result, bool fresh)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_reading_name(result->number, id);
    json_t *told = json_pack("{s:I, s:s, s:o, s:o, s:s, s:b}", "policy_failures", (json_int_t)result->policy_failures,
                             "program_digest", result->program_digest, "recorded_score",
                             number(result->has_recorded_score, result->recorded_score), "score",
                             number(true, result->score), "submission_id", id, "traces_kept", (int)result->traces_kept);
    if (!fresh) {
        json_object_set_new(told, "episodes", json_integer((json_int_t)result->episodes));
        json_object_set_new(told, "equal", json_boolean(epg_replay_is_equal(result)));
        json_object_set_new(told, "equal_episodes", json_integer((json_int_t)result->equal));
        json_object_set_new(told, "first_difference",
                            result->equal < result->episodes ? first_difference(result) : json_null());
        json_object_set_new(told, "phase", json_string(result->phase));
        json_object_set_new(told, "recorded_traces", text(result->recorded_traces));
    }
    return told;
}

/* --- in words --- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "-";
}

static long long integer_of(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool same(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key)) == 1;
}

static void put_outcome(const json_t *outcome, const char *name, epg_buffer *out)
{
    (void)epg_buffer_format(out, "\n    %s  ", name);
    if (json_is_null(json_object_get(outcome, "failure"))) {
        (void)epg_buffer_format(out, "reward %g in %lld steps", number_of(outcome, "reward"),
                                integer_of(outcome, "steps"));
    } else {
        (void)epg_buffer_format(out, "%s after %lld steps", text_of(outcome, "failure"), integer_of(outcome, "steps"));
    }
}

static void put_value(const json_t *outcome, const char *name, epg_buffer *out)
{
    const char *value = json_string_value(json_object_get(outcome, "value"));
    if (value != NULL) {
        EPG_AUTO_FREE char *safe = epg_printable(value, strnlen(value, VALUE_SHOWN));
        (void)epg_buffer_format(out, "\n    %s  %s", name, safe);
    } else {
        (void)epg_buffer_format(out, "\n    %s  not known: of this Episode the Run kept digests only", name);
    }
}

static void put_difference(const json_t *difference, epg_buffer *out)
{
    const json_t *recorded = json_object_get(difference, "recorded");
    const json_t *replayed = json_object_get(difference, "replayed");
    bool outcome = !same(recorded, replayed, "failure") || !same(recorded, replayed, "reward") ||
                   !same(recorded, replayed, "steps");
    (void)epg_buffer_format(out, "  first difference: Episode %lld", integer_of(difference, "episode_index"));
    if (json_is_integer(json_object_get(difference, "step"))) {
        (void)epg_buffer_format(out, ", step %lld, %s", integer_of(difference, "step"), text_of(difference, "what"));
        put_value(recorded, "recorded", out);
        put_value(replayed, "replayed", out);
    } else if (!outcome) {
        (void)epg_buffer_text(out, ": reward and steps are equal, but an observation, an Action or a metric is not");
    }
    if (outcome) {
        put_outcome(recorded, "recorded", out);
        put_outcome(replayed, "replayed", out);
    }
    (void)epg_buffer_byte(out, '\n');
}

void epg_replay_told_text(const json_t *told, epg_buffer *out)
{
    bool equal = json_is_true(json_object_get(told, "equal"));
    const json_t *difference = json_object_get(told, "first_difference");
    (void)epg_buffer_format(out, "%s  %-10s  score %-10g  %lld of %lld Episodes equal%s\n",
                            text_of(told, "submission_id"), text_of(told, "phase"), number_of(told, "score"),
                            integer_of(told, "equal_episodes"), integer_of(told, "episodes"), equal ? "" : "  DIFFERS");
    if (json_is_object(difference)) {
        put_difference(difference, out);
    } else if (!equal) {
        (void)epg_buffer_format(out, "  the recorded score is %g\n", number_of(told, "recorded_score"));
    }
}

void epg_replay_told_fresh_head(const epg_replay_on *on, epg_buffer *out)
{
    (void)epg_buffer_format(out, "%llu Episode%s of %s, seed %llu\n%-17s  %12s  %8s  %12s\n",
                            (unsigned long long)on->episodes, on->episodes == 1 ? "" : "s", on->split,
                            (unsigned long long)on->seed, "submission", "score", "failures", "in training");
}

void epg_replay_told_fresh_text(const json_t *told, epg_buffer *out)
{
    char recorded[EPG_SHOWN_NUMBER];
    const json_t *score = json_object_get(told, "recorded_score");
    epg_shown_score(json_is_number(score), json_number_value(score), recorded);
    (void)epg_buffer_format(out, "%-17s  %12g  %8lld  %12s\n", text_of(told, "submission_id"), number_of(told, "score"),
                            integer_of(told, "policy_failures"), recorded);
}
