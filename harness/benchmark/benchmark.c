#include "benchmark/benchmark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { SPEC_TEXT_MAX = 64 * 1024, ARTIFACT_NAME_MAX = 1024, ARTIFACT_PART_MAX = 255, MEDIA_TYPE_MAX = 255 };

const char *epg_direction_name(epg_direction direction)
{
    return direction == EPG_MINIMIZE ? "minimize" : "maximize";
}

bool epg_direction_better(epg_direction direction, double a, double b)
{
    return direction == EPG_MINIMIZE ? a < b : a > b;
}

/* --- Spec --- */

void epg_spec_free(epg_spec *spec)
{
    if (spec == NULL) {
        return;
    }
    free(spec->id);
    free(spec->description);
    free(spec->primary_metric);
    epg_buffer_free(&spec->observation_space);
    epg_buffer_free(&spec->action_space);
    epg_buffer_free(&spec->metadata);
    epg_buffer_free(&spec->environment_parameters);
    *spec = (epg_spec){0};
}

void epg_spec_copy(const epg_spec *spec, epg_spec *out)
{
    epg_spec copy = {
        .id = epg_strdup(spec->id),
        .description = epg_strdup(spec->description),
        .primary_metric = epg_strdup(spec->primary_metric),
        .max_episode_steps = spec->max_episode_steps,
        .direction = spec->direction,
    };
    memcpy(copy.environment_digest, spec->environment_digest, sizeof copy.environment_digest);
    (void)epg_buffer_append_span(&copy.observation_space, epg_buffer_span(&spec->observation_space));
    (void)epg_buffer_append_span(&copy.action_space, epg_buffer_span(&spec->action_space));
    (void)epg_buffer_append_span(&copy.metadata, epg_buffer_span(&spec->metadata));
    (void)epg_buffer_append_span(&copy.environment_parameters, epg_buffer_span(&spec->environment_parameters));
    *out = copy;
}

static epg_code check_spec_text(const char *text, const char *name, bool one_line, epg_error *err)
{
    size_t size = text == NULL ? 0 : strlen(text);
    if (size == 0) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: %s is empty", name);
    }
    if (size > SPEC_TEXT_MAX) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: %s is longer than %d bytes", name,
                        (int)SPEC_TEXT_MAX);
    }
    if (!epg_utf8_valid(text, size)) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: %s is not UTF-8", name);
    }
    if (one_line && strpbrk(text, "\r\n") != NULL) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: %s must be one line", name);
    }
    return EPG_OK;
}

static epg_code check_spec_value(const epg_buffer *value, const char *name, bool map, epg_error *err)
{
    epg_span bytes = epg_buffer_span(value);
    if (epg_value_check(bytes, &epg_value_policy_limits, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: %s", name);
    }
    if (map && epg_value_kind(bytes) != 'M') {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: %s must be a map", name);
    }
    return EPG_OK;
}

epg_code epg_spec_check(epg_spec *spec, epg_error *err)
{
    EPG_TRY(check_spec_text(spec->id, "id", true, err));
    EPG_TRY(check_spec_text(spec->description, "description", false, err));
    EPG_TRY(check_spec_value(&spec->observation_space, "observation_space", false, err));
    EPG_TRY(check_spec_value(&spec->action_space, "action_space", false, err));
    EPG_TRY(check_spec_value(&spec->metadata, "metadata", true, err));
    EPG_TRY(check_spec_value(&spec->environment_parameters, "environment_parameters", true, err));
    EPG_TRY(check_spec_text(spec->primary_metric, "primary_metric", true, err));
    if (spec->max_episode_steps == 0) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: max_episode_steps must be positive");
    }
    if (spec->direction != EPG_MAXIMIZE && spec->direction != EPG_MINIMIZE) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: score_direction must be maximize or minimize");
    }
    if (epg_value_environment_digest(epg_buffer_span(&spec->environment_parameters), spec->environment_digest, err) !=
        EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: environment_parameters");
    }
    return EPG_OK;
}

void epg_spec_to_value(const epg_spec *spec, epg_buffer *out)
{
    epg_value_put_map(out, 9);
    epg_value_put_key(out, "action_space");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->action_space));
    epg_value_put_key(out, "description");
    epg_value_put_text(out, spec->description);
    epg_value_put_key(out, "environment_parameters");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->environment_parameters));
    epg_value_put_key(out, "id");
    epg_value_put_text(out, spec->id);
    epg_value_put_key(out, "max_episode_steps");
    epg_value_put_u64(out, spec->max_episode_steps);
    epg_value_put_key(out, "metadata");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->metadata));
    epg_value_put_key(out, "observation_space");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->observation_space));
    epg_value_put_key(out, "primary_metric");
    epg_value_put_text(out, spec->primary_metric);
    epg_value_put_key(out, "score_direction");
    epg_value_put_text(out, epg_direction_name(spec->direction));
}

static epg_code spec_bad(epg_error *err, const char *key)
{
    return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: %s is missing or of another type", key);
}

static epg_code take_text(epg_span map, const char *key, char **out, epg_error *err)
{
    epg_span value;
    epg_span text;
    if (!epg_value_lookup(map, key, &value) || !epg_value_get_string(value, &text)) {
        return spec_bad(err, key);
    }
    if (text.size > 0 && memchr(text.data, '\0', text.size) != NULL) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: %s holds a NUL", key);
    }
    *out = epg_strndup((const char *)text.data, text.size);
    return EPG_OK;
}

static epg_code take_value(epg_span map, const char *key, epg_buffer *out, epg_error *err)
{
    epg_span value;
    if (!epg_value_lookup(map, key, &value)) {
        return spec_bad(err, key);
    }
    (void)epg_buffer_append_span(out, value);
    return EPG_OK;
}

static epg_code take_direction(epg_span map, epg_direction *out, epg_error *err)
{
    epg_span value;
    epg_span text;
    if (!epg_value_lookup(map, "score_direction", &value) || !epg_value_get_string(value, &text)) {
        return spec_bad(err, "score_direction");
    }
    if (epg_span_equal(text, epg_span_text("maximize"))) {
        *out = EPG_MAXIMIZE;
    } else if (epg_span_equal(text, epg_span_text("minimize"))) {
        *out = EPG_MINIMIZE;
    } else {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec: score_direction must be maximize or minimize");
    }
    return EPG_OK;
}

static epg_code take_spec(epg_span map, epg_spec *spec, epg_error *err)
{
    epg_span steps;
    EPG_TRY(take_value(map, "action_space", &spec->action_space, err));
    EPG_TRY(take_text(map, "description", &spec->description, err));
    EPG_TRY(take_value(map, "environment_parameters", &spec->environment_parameters, err));
    EPG_TRY(take_text(map, "id", &spec->id, err));
    if (!epg_value_lookup(map, "max_episode_steps", &steps) || !epg_value_get_u64(steps, &spec->max_episode_steps)) {
        return spec_bad(err, "max_episode_steps");
    }
    EPG_TRY(take_value(map, "metadata", &spec->metadata, err));
    EPG_TRY(take_value(map, "observation_space", &spec->observation_space, err));
    EPG_TRY(take_text(map, "primary_metric", &spec->primary_metric, err));
    EPG_TRY(take_direction(map, &spec->direction, err));
    return epg_spec_check(spec, err);
}

epg_code epg_spec_from_value(epg_span bytes, epg_spec *out, epg_error *err)
{
    /* Four values of the policy limits each, and texts: checked in full by epg_spec_check, here only bounded. */
    epg_value_limits limits = epg_value_policy_limits;
    limits.depth += 1;
    limits.nodes = 4 * limits.nodes + 16;
    limits.bytes = 4 * limits.bytes + 4 * (size_t)SPEC_TEXT_MAX;
    if (epg_value_check(bytes, &limits, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "the Benchmark's spec");
    }
    epg_value_cursor cursor;
    if (epg_value_kind(bytes) != 'M' || !epg_value_enter(bytes, &cursor) || cursor.left != 9) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Benchmark's spec must be a map of its nine members");
    }
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {0};
    EPG_TRY(take_spec(bytes, &spec, err));
    *out = spec;
    spec = (epg_spec){0};
    return EPG_OK;
}

void epg_spec_to_json(const epg_spec *spec, epg_json_writer *writer, const char *key)
{
    epg_json_object(writer, key);
    epg_value_to_json(epg_buffer_span(&spec->action_space), writer, "action_space");
    epg_json_put_text(writer, "description", spec->description);
    epg_json_put_text(writer, "environment_digest", spec->environment_digest);
    epg_value_to_json(epg_buffer_span(&spec->environment_parameters), writer, "environment_parameters");
    epg_json_put_text(writer, "id", spec->id);
    epg_json_put_u64(writer, "max_episode_steps", spec->max_episode_steps);
    epg_value_to_json(epg_buffer_span(&spec->metadata), writer, "metadata");
    epg_value_to_json(epg_buffer_span(&spec->observation_space), writer, "observation_space");
    epg_json_put_text(writer, "primary_metric", spec->primary_metric);
    epg_json_put_text(writer, "score_direction", epg_direction_name(spec->direction));
    epg_json_end(writer);
}

/* --- Episodes and steps --- */

void epg_episode_spec_free(epg_episode_spec *spec)
{
    if (spec != NULL) {
        epg_buffer_free(&spec->scenario);
        *spec = (epg_episode_spec){0};
    }
}

void epg_step_clear(epg_step *step)
{
    epg_buffer_clear(&step->observation);
    epg_buffer_clear(&step->metrics);
    free(step->invalid_reason);
    step->invalid_reason = NULL;
    step->invalid_action = false;
    step->reward = 0.0;
    step->terminated = false;
    step->truncated = false;
}

void epg_step_free(epg_step *step)
{
    if (step != NULL) {
        epg_buffer_free(&step->observation);
        epg_buffer_free(&step->metrics);
        free(step->invalid_reason);
        *step = (epg_step){0};
    }
}

epg_code epg_observation_check(epg_span observation, epg_error *err)
{
    if (epg_value_check(observation, &epg_value_policy_limits, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "the observation");
    }
    return EPG_OK;
}

epg_code epg_step_check(const epg_step *step, epg_error *err)
{
    if (step->invalid_action) {
        return EPG_OK;
    }
    EPG_TRY(epg_observation_check(epg_buffer_span(&step->observation), err));
    if (!isfinite(step->reward)) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the reward is not finite");
    }
    if (epg_value_check(epg_buffer_span(&step->metrics), &epg_value_policy_limits, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "the step's metrics");
    }
    return EPG_OK;
}

/* --- Feedback --- */

void epg_feedback_free(epg_feedback *feedback)
{
    if (feedback == NULL) {
        return;
    }
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        free(feedback->artifacts[i].name);
        free(feedback->artifacts[i].media_type);
        epg_buffer_free(&feedback->artifacts[i].content);
    }
    free(feedback->artifacts);
    epg_buffer_free(&feedback->content);
    *feedback = (epg_feedback){0};
}

epg_artifact *epg_feedback_add(epg_feedback *feedback, const char *name, const char *media_type, bool bulk)
{
    feedback->artifacts = epg_grow_array(feedback->artifacts, feedback->artifact_count + 1, sizeof(epg_artifact));
    epg_artifact *artifact = &feedback->artifacts[feedback->artifact_count++];
    *artifact = (epg_artifact){.name = epg_strdup(name), .media_type = epg_strdup(media_type), .bulk = bulk};
    return artifact;
}

/* What is wrong with an artifact's name, or NULL. */
static const char *name_fault(const char *name)
{
    size_t size = name == NULL ? 0 : strlen(name);
    if (size == 0) {
        return "is empty";
    }
    if (size > ARTIFACT_NAME_MAX) {
        return "is longer than 1024 bytes";
    }
    if (!epg_utf8_valid(name, size)) {
        return "is not UTF-8";
    }
    if (strchr(name, '\\') != NULL) {
        return "holds a backslash";
    }
    for (const char *part = name;;) {
        size_t length = strcspn(part, "/");
        if (length == 0) {
            return "is not a relative path of non-empty parts";
        }
        if (length > ARTIFACT_PART_MAX) {
            return "has a part longer than 255 bytes";
        }
        if ((length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.')) {
            return "has a '.' or '..' part";
        }
        if (part[length] == '\0') {
            return NULL;
        }
        part += length + 1;
    }
}

static epg_code check_artifact(const epg_artifact *artifact, epg_error *err)
{
    const char *fault = name_fault(artifact->name);
    if (fault != NULL) {
        EPG_AUTO_FREE char *shown =
            artifact->name == NULL ? NULL : epg_printable(artifact->name, strnlen(artifact->name, 200));
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Feedback's artifact name \"%s\" %s", shown == NULL ? "" : shown,
                        fault);
    }
    size_t size = artifact->media_type == NULL ? 0 : strlen(artifact->media_type);
    if (size == 0 || size > MEDIA_TYPE_MAX || !epg_utf8_valid(artifact->media_type, size) ||
        strpbrk(artifact->media_type, "\r\n") != NULL) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Feedback's artifact %s: the media type must be one short line",
                        artifact->name);
    }
    if (artifact->content.size > EPG_ARTIFACT_BYTES_MAX) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Feedback's artifact %s is larger than 16 MiB", artifact->name);
    }
    return EPG_OK;
}

/* Orders names so that "a" stands right before what is below it, "a/b": '/' counts as the lowest byte. */
static int compare_names(const void *a, const void *b)
{
    const char *left = *(const char *const *)a;
    const char *right = *(const char *const *)b;
    while (*left != '\0' && *left == *right) {
        left++;
        right++;
    }
    int x = *left == '\0' ? 0 : *left == '/' ? 1 : 2 + (unsigned char)*left;
    int y = *right == '\0' ? 0 : *right == '/' ? 1 : 2 + (unsigned char)*right;
    return x - y;
}

/* Unique, and none is a directory of another, so that all can be laid out as files. */
static epg_code check_names(const epg_feedback *feedback, epg_error *err)
{
    EPG_AUTO_FREE const char **names = epg_alloc_array(feedback->artifact_count, sizeof *names);
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        names[i] = feedback->artifacts[i].name;
    }
    qsort(names, feedback->artifact_count, sizeof *names, compare_names);
    for (size_t i = 1; i < feedback->artifact_count; i++) {
        size_t size = strlen(names[i - 1]);
        if (strncmp(names[i - 1], names[i], size) != 0) {
            continue;
        }
        if (names[i][size] == '\0') {
            return epg_fail(err, EPG_ERR_BENCHMARK, "the Feedback has two artifacts named %s", names[i]);
        }
        if (names[i][size] == '/') {
            return epg_fail(err, EPG_ERR_BENCHMARK, "the Feedback's artifact %s lies below another, %s", names[i],
                            names[i - 1]);
        }
    }
    return EPG_OK;
}

epg_code epg_feedback_check(const epg_feedback *feedback, epg_error *err)
{
    static const epg_value_limits limits = {.depth = 32, .nodes = 1000000, .bytes = EPG_ARTIFACT_BYTES_MAX};
    if (!isfinite(feedback->score)) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Feedback's score is not finite");
    }
    if (epg_value_check(epg_buffer_span(&feedback->content), &limits, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "the Feedback's content");
    }
    if (feedback->artifact_count > EPG_ARTIFACTS_MAX) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the Feedback has %zu artifacts, more than %d",
                        feedback->artifact_count, (int)EPG_ARTIFACTS_MAX);
    }
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        EPG_TRY(check_artifact(&feedback->artifacts[i], err));
    }
    return check_names(feedback, err);
}
