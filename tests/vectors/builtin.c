/* The built-in Benchmarks against Gymnasium's: reset draws, plans, parameters and digests exactly; discrete worlds
 * exactly; continuous ones as near as sin and cos allow, whose last bits differ between numpy's vector code and every C
 * library (the float32 observations then differ in their last bits, and a little more with each step). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "benchmark/benchmark.h"
#include "support/play.h"
#include "vectors/vectors.h"

/* Whose observations come from sin and cos: `at_reset` already, or only from the first step on. */
static bool is_approximate(const char *family, bool at_reset)
{
    if (strcmp(family, "acrobot") == 0 || strcmp(family, "pendulum") == 0) {
        return true;
    }
    return !at_reset && (strcmp(family, "cartpole") == 0 || epg_starts_with(family, "mountain_car"));
}

/* A float may differ by this part of max(1, its size). Ends, ints and texts may not differ at all. */
static const double TOLERANCE = 4e-6;

/* "mountain_car" and {"map_name": "8x8"} as a user writes them: mountain-car?map_name=8x8. */
static char *benchmark_text(const char *family, const char *parameters)
{
    EPG_AUTO_BUFFER text = {0};
    for (const char *c = family; *c != '\0'; c++) {
        (void)epg_buffer_byte(&text, (uint8_t)(*c == '_' ? '-' : *c));
    }
    EPG_AUTO_JSON *members = json_loads(parameters, 0, NULL); /* "default" is no document */
    const char *key = NULL;
    json_t *value = NULL;
    bool first = true;
    json_object_foreach(members, key, value)
    {
        (void)epg_buffer_format(&text, "%c%s=", first ? '?' : '&', key);
        first = false;
        if (json_is_boolean(value)) {
            (void)epg_buffer_text(&text, json_is_true(value) ? "true" : "false");
        } else if (json_is_string(value)) {
            (void)epg_buffer_text(&text, json_string_value(value));
        } else {
            (void)epg_buffer_format(&text, "%.17g", json_number_value(value));
        }
    }
    return epg_buffer_take_text(&text);
}

static epg_benchmark *open_benchmark(const char *text, epg_vector_report *report)
{
    epg_benchmark *benchmark = NULL;
    epg_error err = {0};
    if (epg_benchmark_open(text, &(epg_benchmark_options){0}, &benchmark, &err) != EPG_OK) {
        epg_vector_fail(report, text, "%s", err.text);
        return NULL;
    }
    return benchmark;
}

/* The Environment's seed of Episode `index`; false when it can't be planned. */
static bool planned_seed(epg_benchmark *benchmark, const char *split, const char *seed, uint64_t index, uint64_t *out)
{
    epg_episode_spec *plan = epg_alloc_array(index + 1, sizeof *plan);
    bool ok = benchmark->vtable->episodes(benchmark, split, strtoull(seed, NULL, 10), index + 1, plan, NULL) == EPG_OK;
    *out = ok ? plan[index].environment_seed : 0;
    for (uint64_t i = 0; i <= index; i++) {
        epg_episode_spec_free(&plan[i]);
    }
    free(plan);
    return ok;
}

static epg_environment *open_environment(epg_benchmark *benchmark, uint64_t seed)
{
    EPG_CLEANUP(epg_episode_spec_free) epg_episode_spec spec = {.environment_seed = seed};
    epg_value_put_null(&spec.scenario);
    epg_environment *environment = NULL;
    return benchmark->vtable->open(benchmark, &spec, &environment, NULL) == EPG_OK ? environment : NULL;
}

static bool text_member(const json_t *object, const char *key, const char **out)
{
    *out = json_string_value(json_object_get(object, key));
    return *out != NULL;
}

/* True when the values are the same but for floats within the tolerance; *exact tells whether they are the same. */
static bool near_values(epg_span ours, epg_span theirs, bool *exact)
{
    if (epg_span_equal(ours, theirs)) {
        return true;
    }
    *exact = false;
    double x = 0.0;
    double y = 0.0;
    if (epg_value_get_float(ours, &x) && epg_value_get_float(theirs, &y)) {
        return fabs(x - y) <= TOLERANCE * fmax(1.0, fabs(y));
    }
    epg_value_cursor left;
    epg_value_cursor right;
    if (epg_value_kind(ours) != epg_value_kind(theirs) || !epg_value_enter(ours, &left) ||
        !epg_value_enter(theirs, &right) || left.left != right.left) {
        return false;
    }
    epg_span left_key = {0};
    epg_span right_key = {0};
    epg_span left_value;
    epg_span right_value;
    while (epg_value_next(&left, &left_key, &left_value) && epg_value_next(&right, &right_key, &right_value)) {
        if ((left.is_map && !epg_span_equal(left_key, right_key)) || !near_values(left_value, right_value, exact)) {
            return false;
        }
    }
    return true;
}

/* An observation of ours beside the vector's; with a text of both on failure. */
static bool same_observation(epg_span ours, const json_t *node, bool must_be_exact, char **why)
{
    EPG_AUTO_BUFFER theirs = {0};
    epg_error err = {0};
    if (epg_value_from_node(node, &epg_value_policy_limits, &theirs, &err) != EPG_OK) {
        *why = epg_strdup(err.text);
        return false;
    }
    bool exact = true;
    if (near_values(ours, epg_buffer_span(&theirs), &exact) && (exact || !must_be_exact)) {
        return true;
    }
    EPG_AUTO_BUFFER text = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &text, 0);
    epg_json_object(&writer, NULL);
    epg_value_to_json(ours, &writer, "ours");
    epg_value_to_json(epg_buffer_span(&theirs), &writer, "theirs");
    epg_json_end(&writer);
    epg_json_finish(&writer);
    *why = epg_buffer_take_text(&text);
    return false;
}

/* --- builtin_benchmarks --- */

/* Whether all that an outline of a space holds stands in ours; its texts for the reader need only be there. */
static bool is_outlined(const json_t *outline, const json_t *ours)
{
    if (!json_is_object(outline)) {
        return json_equal(outline, ours) == 1;
    }
    json_t *members = json_deep_copy(outline); /* jansson's iteration takes no const */
    const char *key = NULL;
    json_t *member = NULL;
    bool same = true;
    json_object_foreach(members, key, member)
    {
        const json_t *own = json_object_get(ours, key);
        bool is_text =
            strcmp(key, "component_meanings") == 0 || (strcmp(key, "meaning") == 0 && json_is_string(member));
        same = same && (is_text ? own != NULL : is_outlined(member, own));
    }
    json_decref(members);
    return same;
}

static void check_space(const char *text, const char *which, epg_span space, const json_t *outline,
                        epg_vector_report *report)
{
    EPG_AUTO_BUFFER written = {0};
    EPG_AUTO_JSON *ours = NULL;
    epg_json_writer writer;
    epg_json_begin(&writer, &written, 0);
    epg_value_to_json(space, &writer, NULL);
    epg_json_finish(&writer);
    bool read = epg_json_parse(epg_buffer_span(&written), which, &ours, NULL) == EPG_OK;
    (void)epg_vector_verdict(report, text, read && outline != NULL && is_outlined(outline, ours), "%s: %s", which,
                             epg_buffer_cstr(&written));
}

static void check_variant(const char *family, const json_t *entry, const json_t *variant, epg_vector_report *report)
{
    const char *parameters = NULL;
    const char *digest = NULL;
    if (!text_member(variant, "parameters", &parameters) || !text_member(variant, "environment_digest", &digest)) {
        epg_vector_fail(report, family, "a variant without parameters or environment_digest");
        return;
    }
    EPG_AUTO_FREE char *text = benchmark_text(family, parameters);
    EPG_TEST_AUTO_BENCHMARK *benchmark = open_benchmark(text, report);
    if (benchmark == NULL) {
        return;
    }
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {0};
    epg_error err = {0};
    if (epg_benchmark_spec(benchmark, &spec, &err) != EPG_OK) {
        epg_vector_fail(report, text, "%s", err.text);
        return;
    }
    EPG_AUTO_FREE char *why = NULL;
    bool same = same_observation(epg_buffer_span(&spec.environment_parameters),
                                 json_object_get(variant, "environment_parameters"), true, &why);
    (void)epg_vector_verdict(report, text, same, "environment_parameters: %s", why);
    (void)epg_vector_verdict(report, text, strcmp(spec.environment_digest, digest) == 0, "digest %s, not %s",
                             spec.environment_digest, digest);
    json_int_t steps = json_integer_value(json_object_get(variant, "max_episode_steps"));
    (void)epg_vector_verdict(report, text, spec.max_episode_steps == (uint64_t)steps, "max_episode_steps %" PRIu64,
                             spec.max_episode_steps);
    if (strcmp(parameters, "default") == 0) {
        check_space(text, "action_space", epg_buffer_span(&spec.action_space),
                    json_object_get(entry, "action_space_outline"), report);
        check_space(text, "observation_space", epg_buffer_span(&spec.observation_space),
                    json_object_get(entry, "observation_space_outline"), report);
    }
    const char *id = json_string_value(json_object_get(entry, "id"));
    const char *metric = json_string_value(json_object_get(entry, "primary_metric"));
    const char *direction = json_string_value(json_object_get(entry, "score_direction"));
    (void)epg_vector_verdict(
        report, text,
        id != NULL && metric != NULL && direction != NULL && strcmp(spec.id, id) == 0 &&
            strcmp(spec.primary_metric, metric) == 0 && strcmp(epg_direction_name(spec.direction), direction) == 0,
        "id %s, metric %s, direction %s", spec.id, spec.primary_metric, epg_direction_name(spec.direction));
}

static void check_seed(const char *family, const json_t *vector, epg_vector_report *report)
{
    const char *split = NULL;
    const char *seed = NULL;
    const char *right = NULL;
    EPG_AUTO_FREE char *text = benchmark_text(family, "default");
    if (!text_member(vector, "split", &split) || !text_member(vector, "seed", &seed) ||
        !text_member(vector, "environment_seed", &right)) {
        epg_vector_fail(report, text, "an Episode seed without split, seed or environment_seed");
        return;
    }
    EPG_TEST_AUTO_BENCHMARK *benchmark = open_benchmark(text, report);
    if (benchmark == NULL) {
        return;
    }
    uint64_t index = (uint64_t)json_integer_value(json_object_get(vector, "index"));
    uint64_t ours = 0;
    bool ok = planned_seed(benchmark, split, seed, index, &ours) && ours == strtoull(right, NULL, 10);
    (void)epg_vector_verdict(report, text, ok, "%s, seed %s, Episode %" PRIu64 ": %" PRIu64 ", not %s", split, seed,
                             index, ours, right);
}

/* One step of a trajectory; false, and *why, when it differs. */
static bool check_step(epg_environment *environment, const json_t *vector, bool exact, epg_step *step, char **why)
{
    EPG_AUTO_BUFFER action = {0};
    epg_error err = {0};
    if (epg_value_from_node(json_object_get(vector, "action"), &epg_value_policy_limits, &action, &err) != EPG_OK ||
        environment->benchmark->vtable->step(environment, epg_buffer_span(&action), step, &err) != EPG_OK) {
        *why = epg_strdup(err.text);
        return false;
    }
    if (step->invalid_action) {
        *why = epg_strdup(step->invalid_reason);
        return false;
    }
    const char *reward_text = NULL;
    if (!text_member(vector, "reward", &reward_text)) {
        *why = epg_strdup("the vector has no reward");
        return false;
    }
    double reward = strtod(reward_text, NULL);
    bool terminated = json_is_true(json_object_get(vector, "terminated"));
    bool truncated = json_is_true(json_object_get(vector, "truncated"));
    if (fabs(reward - step->reward) > TOLERANCE * fmax(1.0, fabs(reward)) || terminated != step->terminated ||
        truncated != step->truncated) {
        *why = epg_format("reward %.17g, terminated %d, truncated %d", step->reward, step->terminated, step->truncated);
        return false;
    }
    return same_observation(epg_buffer_span(&step->observation), json_object_get(vector, "observation"), exact, why);
}

static void check_trajectory(const char *family, const json_t *vector, epg_vector_report *report)
{
    const char *parameters = NULL;
    const char *split = NULL;
    const char *seed = NULL;
    if (!text_member(vector, "parameters", &parameters) || !text_member(vector, "split", &split) ||
        !text_member(vector, "seed", &seed)) {
        epg_vector_fail(report, family, "a trajectory without parameters, split or seed");
        return;
    }
    EPG_AUTO_FREE char *text = benchmark_text(family, parameters);
    EPG_TEST_AUTO_BENCHMARK *benchmark = open_benchmark(text, report);
    uint64_t index = (uint64_t)json_integer_value(json_object_get(vector, "index"));
    uint64_t environment_seed = 0;
    if (benchmark == NULL || !planned_seed(benchmark, split, seed, index, &environment_seed)) {
        return;
    }
    EPG_TEST_AUTO_ENVIRONMENT *environment = open_environment(benchmark, environment_seed);
    EPG_AUTO_BUFFER initial = {0};
    EPG_AUTO_FREE char *why = NULL;
    if (environment == NULL || benchmark->vtable->reset(environment, &initial, NULL) != EPG_OK ||
        !same_observation(epg_buffer_span(&initial), json_object_get(vector, "initial"), !is_approximate(family, true),
                          &why)) {
        epg_vector_fail(report, text, "%s, seed %s: reset: %s", split, seed, why);
        return;
    }
    EPG_CLEANUP(epg_step_free) epg_step step = {0};
    const json_t *steps = json_object_get(vector, "steps");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        if (!check_step(environment, json_array_get(steps, i), !is_approximate(family, false), &step, &why)) {
            epg_vector_fail(report, text, "%s, seed %s: step %zu: %s", split, seed, i, why);
            return;
        }
    }
    epg_vector_pass(report);
}

void epg_vectors_builtin_benchmarks(const json_t *document, epg_vector_report *report)
{
    const char *family = NULL;
    json_t *entry = NULL;
    json_t *families = json_deep_copy(document); /* jansson's iteration takes no const */
    json_object_foreach(families, family, entry)
    {
        size_t i = 0;
        json_t *item = NULL;
        json_array_foreach(json_object_get(entry, "variants"), i, item)
        {
            check_variant(family, entry, item, report);
        }
        json_array_foreach(json_object_get(entry, "episode_seeds"), i, item)
        {
            check_seed(family, item, report);
        }
        json_array_foreach(json_object_get(entry, "trajectories"), i, item)
        {
            check_trajectory(family, item, report);
        }
    }
    json_decref(families);
}

/* --- cartpole --- */

static bool floats_near(epg_span ours, const json_t *theirs, double tolerance)
{
    epg_value_cursor cursor;
    epg_span value;
    if (!epg_value_enter(ours, &cursor) || cursor.left != json_array_size(theirs)) {
        return false;
    }
    for (size_t i = 0; epg_value_next(&cursor, NULL, &value); i++) {
        double x = 0.0;
        double y = json_real_value(json_array_get(theirs, i));
        if (!epg_value_get_float(value, &x) || fabs(x - y) > tolerance * fmax(1.0, fabs(y))) {
            return false;
        }
    }
    return true;
}

static void check_reset(epg_benchmark *benchmark, const json_t *vector, epg_vector_report *report)
{
    const char *seed = NULL;
    if (!text_member(vector, "seed", &seed)) {
        epg_vector_fail(report, "reset", "without a seed");
        return;
    }
    EPG_TEST_AUTO_ENVIRONMENT *environment = open_environment(benchmark, strtoull(seed, NULL, 10));
    EPG_AUTO_BUFFER observation = {0};
    bool ok = environment != NULL && benchmark->vtable->reset(environment, &observation, NULL) == EPG_OK &&
              floats_near(epg_buffer_span(&observation), json_object_get(vector, "observation"), 0.0);
    (void)epg_vector_verdict(report, seed, ok, "the reset's observation differs");
}

static void check_alternating(epg_benchmark *benchmark, const json_t *steps, epg_vector_report *report)
{
    EPG_TEST_AUTO_ENVIRONMENT *environment = open_environment(benchmark, 42);
    EPG_AUTO_BUFFER observation = {0};
    EPG_CLEANUP(epg_step_free) epg_step step = {0};
    if (environment == NULL || benchmark->vtable->reset(environment, &observation, NULL) != EPG_OK) {
        epg_vector_fail(report, "trajectory_seed42_alternating", "reset failed");
        return;
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *vector = json_array_get(steps, i);
        EPG_AUTO_BUFFER action = {0};
        epg_value_put_i64(&action, json_integer_value(json_object_get(vector, "action")));
        bool ok = benchmark->vtable->step(environment, epg_buffer_span(&action), &step, NULL) == EPG_OK &&
                  !step.invalid_action && step.reward == 1.0 &&
                  step.terminated == json_is_true(json_object_get(vector, "terminated")) &&
                  floats_near(epg_buffer_span(&step.observation), json_object_get(vector, "observation"), TOLERANCE);
        if (!epg_vector_verdict(report, "trajectory_seed42_alternating", ok, "step %zu differs", i)) {
            return;
        }
    }
}

void epg_vectors_cartpole(const json_t *document, epg_vector_report *report)
{
    EPG_TEST_AUTO_BENCHMARK *benchmark = open_benchmark("cartpole", report);
    if (benchmark == NULL) {
        return;
    }
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(json_object_get(document, "episode_seeds"), i, item)
    {
        check_seed("cartpole", item, report);
    }
    json_array_foreach(json_object_get(document, "reset"), i, item)
    {
        check_reset(benchmark, item, report);
    }
    if (json_object_get(document, "trajectory_seed42_alternating") != NULL) {
        check_alternating(benchmark, json_object_get(document, "trajectory_seed42_alternating"), report);
    }
}
