#include "evaluation/wire.h"

#include <stdlib.h>
#include <string.h>

/* The peer is this same program, or pretends to be: bodies are checked like any other input. */
static const epg_value_limits wire_limits = {.depth = 64, .nodes = UINT32_MAX, .bytes = EPG_WIRE_BODY_LIMIT};

static epg_code check_map(epg_span body, const char *what, epg_error *err)
{
    if (epg_value_check(body, &wire_limits, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_PROTOCOL, "worker frame (%s)", what);
    }
    return epg_value_kind(body) == 'M' ? EPG_OK : epg_fail(err, EPG_ERR_PROTOCOL, "worker frame (%s): not a map", what);
}

static epg_code wrong(const char *key, epg_error *err)
{
    return epg_fail(err, EPG_ERR_PROTOCOL, "worker frame: \"%s\" is missing or wrong", key);
}

static epg_code get_u64(epg_span map, const char *key, uint64_t *out, epg_error *err)
{
    epg_span value;
    return epg_value_lookup(map, key, &value) && epg_value_get_u64(value, out) ? EPG_OK : wrong(key, err);
}

static epg_code get_i64(epg_span map, const char *key, int64_t *out, epg_error *err)
{
    epg_span value;
    return epg_value_lookup(map, key, &value) && epg_value_get_i64(value, out) ? EPG_OK : wrong(key, err);
}

static epg_code get_float(epg_span map, const char *key, double *out, epg_error *err)
{
    epg_span value;
    return epg_value_lookup(map, key, &value) && epg_value_get_float(value, out) ? EPG_OK : wrong(key, err);
}

static epg_code get_bool(epg_span map, const char *key, bool *out, epg_error *err)
{
    epg_span value;
    return epg_value_lookup(map, key, &value) && epg_value_get_bool(value, out) ? EPG_OK : wrong(key, err);
}

/* null gives NULL. */
static epg_code get_text(epg_span map, const char *key, char **out, epg_error *err)
{
    epg_span value;
    epg_span text;
    if (!epg_value_lookup(map, key, &value)) {
        return wrong(key, err);
    }
    if (epg_value_kind(value) == 'N') {
        *out = NULL;
        return EPG_OK;
    }
    if (!epg_value_get_string(value, &text)) {
        return wrong(key, err);
    }
    *out = epg_alloc(text.size + 1);
    memcpy(*out, text.data, text.size);
    return EPG_OK;
}

static void put_text(epg_buffer *out, const char *key, const char *text)
{
    epg_value_put_key(out, key);
    if (text != NULL) {
        epg_value_put_text(out, text);
    } else {
        epg_value_put_null(out);
    }
}

static void put_u64(epg_buffer *out, const char *key, uint64_t value)
{
    epg_value_put_key(out, key);
    epg_value_put_u64(out, value);
}

static void put_i64(epg_buffer *out, const char *key, int64_t value)
{
    epg_value_put_key(out, key);
    epg_value_put_i64(out, value);
}

void epg_worker_config_free(epg_worker_config *config)
{
    free(config->benchmark);
    free(config->benchmark_python);
    free(config->source_root);
    free(config->python);
    free(config->preload);
    free(config->guest_root);
    *config = (epg_worker_config){0};
}

/* The limits as one list, in the order of the struct. */
static void put_limits(epg_buffer *out, const epg_guest_limits *limits)
{
    epg_value_put_list(out, sizeof *limits / sizeof(uint64_t));
    uint64_t numbers[sizeof *limits / sizeof(uint64_t)];
    memcpy(numbers, limits, sizeof *limits);
    for (size_t i = 0; i < EPG_COUNT(numbers); i++) {
        epg_value_put_u64(out, numbers[i]);
    }
}

static epg_code get_limits(epg_span map, epg_guest_limits *out, epg_error *err)
{
    uint64_t numbers[sizeof *out / sizeof(uint64_t)];
    epg_span list;
    epg_span item;
    epg_value_cursor cursor;
    if (!epg_value_lookup(map, "limits", &list) || !epg_value_enter(list, &cursor)) {
        return wrong("limits", err);
    }
    for (size_t i = 0; i < EPG_COUNT(numbers); i++) {
        if (!epg_value_next(&cursor, NULL, &item) || !epg_value_get_u64(item, &numbers[i])) {
            return wrong("limits", err);
        }
    }
    memcpy(out, numbers, sizeof *out);
    return EPG_OK;
}

void epg_wire_put_config(epg_buffer *out, const epg_worker_config *config)
{
    epg_value_put_map(out, 11);
    put_text(out, "benchmark", config->benchmark);
    put_i64(out, "benchmark_memory", (int64_t)config->benchmark_memory);
    put_text(out, "benchmark_python", config->benchmark_python);
    put_i64(out, "call_limit_ns", config->call_limit_ns);
    put_text(out, "guest_root", config->guest_root);
    epg_value_put_key(out, "limits");
    put_limits(out, &config->limits);
    put_i64(out, "policy_limit_ns", config->policy_limit_ns);
    put_text(out, "preload", config->preload);
    put_text(out, "profile", epg_profile_name(config->profile));
    put_text(out, "python", config->python);
    put_text(out, "source_root", config->source_root);
}

epg_code epg_wire_get_config(epg_span body, epg_worker_config *out, epg_error *err)
{
    EPG_TRY(check_map(body, "configure", err));
    EPG_CLEANUP(epg_worker_config_free) epg_worker_config config = {0};
    EPG_AUTO_FREE char *profile = NULL;
    EPG_TRY(get_text(body, "benchmark", &config.benchmark, err));
    int64_t memory = 0;
    EPG_TRY(get_i64(body, "benchmark_memory", &memory, err));
    config.benchmark_memory = (uint64_t)memory;
    EPG_TRY(get_text(body, "benchmark_python", &config.benchmark_python, err));
    EPG_TRY(get_i64(body, "call_limit_ns", &config.call_limit_ns, err));
    EPG_TRY(get_text(body, "guest_root", &config.guest_root, err));
    EPG_TRY(get_limits(body, &config.limits, err));
    EPG_TRY(get_i64(body, "policy_limit_ns", &config.policy_limit_ns, err));
    EPG_TRY(get_text(body, "preload", &config.preload, err));
    EPG_TRY(get_text(body, "profile", &profile, err));
    EPG_TRY(get_text(body, "python", &config.python, err));
    EPG_TRY(get_text(body, "source_root", &config.source_root, err));
    if (config.benchmark == NULL || profile == NULL) {
        return wrong("benchmark", err);
    }
    EPG_TRY(epg_profile_parse(profile, &config.profile, err));
    *out = config;
    config = (epg_worker_config){0};
    return EPG_OK;
}

void epg_wire_put_plan(epg_buffer *out, const char *split, uint64_t seed, uint64_t count)
{
    epg_value_put_map(out, 3);
    put_u64(out, "count", count);
    put_u64(out, "seed", seed);
    put_text(out, "split", split);
}

epg_code epg_wire_get_plan(epg_span body, char **split, uint64_t *seed, uint64_t *count, epg_error *err)
{
    EPG_TRY(check_map(body, "plan", err));
    EPG_TRY(get_u64(body, "count", count, err));
    EPG_TRY(get_u64(body, "seed", seed, err));
    EPG_TRY(get_text(body, "split", split, err));
    return *split != NULL ? EPG_OK : wrong("split", err);
}

void epg_wire_put_planned(epg_buffer *out, const epg_episode_spec *specs, size_t count)
{
    epg_value_put_list(out, count);
    for (size_t i = 0; i < count; i++) {
        epg_value_put_list(out, 2);
        epg_value_put_u64(out, specs[i].environment_seed);
        (void)epg_buffer_append_span(out, epg_buffer_span(&specs[i].scenario));
    }
}

static bool get_pair(epg_span value, epg_episode_spec *out)
{
    epg_value_cursor cursor;
    epg_span seed;
    epg_span scenario;
    if (!epg_value_enter(value, &cursor) || !epg_value_next(&cursor, NULL, &seed) ||
        !epg_value_get_u64(seed, &out->environment_seed) || !epg_value_next(&cursor, NULL, &scenario)) {
        return false;
    }
    return epg_buffer_append_span(&out->scenario, scenario);
}

epg_code epg_wire_get_planned(epg_span body, epg_episode_spec *specs, uint64_t count, uint64_t *at, epg_error *err)
{
    epg_value_cursor cursor;
    epg_span item;
    if (epg_value_check(body, &wire_limits, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_PROTOCOL, "worker frame (planned)");
    }
    if (!epg_value_enter(body, &cursor)) {
        return wrong("planned", err);
    }
    while (epg_value_next(&cursor, NULL, &item)) {
        if (*at == count || !get_pair(item, &specs[*at])) {
            return wrong("planned", err);
        }
        ++*at;
    }
    return EPG_OK;
}

void epg_wire_put_episode(epg_buffer *out, const epg_episode_spec *spec, uint64_t policy_seed)
{
    epg_value_put_map(out, 3);
    put_u64(out, "environment_seed", spec->environment_seed);
    put_u64(out, "policy_seed", policy_seed);
    epg_value_put_key(out, "scenario");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->scenario));
}

epg_code epg_wire_get_episode(epg_span body, epg_episode_spec *spec, uint64_t *policy_seed, epg_error *err)
{
    epg_span scenario;
    EPG_TRY(check_map(body, "episode", err));
    EPG_TRY(get_u64(body, "environment_seed", &spec->environment_seed, err));
    EPG_TRY(get_u64(body, "policy_seed", policy_seed, err));
    if (!epg_value_lookup(body, "scenario", &scenario)) {
        return wrong("scenario", err);
    }
    (void)epg_buffer_append_span(&spec->scenario, scenario);
    return EPG_OK;
}

/* Text of a guest may be anything: it travels as bytes. */
static void put_bytes(epg_buffer *out, const char *key, epg_span bytes)
{
    epg_value_put_key(out, key);
    epg_value_put_bytes(out, bytes);
}

static epg_code get_bytes(epg_span map, const char *key, char **out, epg_error *err)
{
    epg_span value;
    epg_span bytes;
    if (!epg_value_lookup(map, key, &value) || !epg_value_get_bytes(value, &bytes)) {
        return wrong(key, err);
    }
    *out = NULL;
    if (bytes.size > 0) {
        *out = epg_alloc(bytes.size + 1);
        memcpy(*out, bytes.data, bytes.size);
        for (size_t i = 0; i < bytes.size; i++) {
            (*out)[i] = (*out)[i] == '\0' ? '?' : (*out)[i];
        }
    }
    return EPG_OK;
}

void epg_wire_put_outcome(epg_buffer *out, const epg_episode_outcome *outcome)
{
    const epg_ended *ended = &outcome->policy.ended;
    epg_value_put_map(out, 11);
    put_u64(out, "cause", (uint64_t)outcome->cause);
    put_bytes(out, "detail", outcome->detail != NULL ? epg_span_text(outcome->detail) : (epg_span){0});
    epg_value_put_key(out, "ended");
    epg_value_put_list(out, 5);
    epg_value_put_u64(out, ended->terminated);
    epg_value_put_u64(out, ended->killed);
    epg_value_put_u64(out, ended->orphans);
    epg_value_put_u64(out, ended->rounds);
    epg_value_put_u64(out, ended->complete);
    put_i64(out, "environment_ns", outcome->environment_ns);
    put_u64(out, "failure", (uint64_t)outcome->end.failure);
    put_text(out, "killed_by", outcome->policy.killed_by);
    put_bytes(out, "log", epg_buffer_span(&outcome->policy.log));
    put_i64(out, "policy_ns", outcome->policy_ns);
    epg_value_put_key(out, "reward");
    epg_value_put_float(out, outcome->end.reward);
    put_u64(out, "steps", outcome->end.steps);
    put_i64(out, "total_ns", outcome->total_ns);
}

static epg_code get_ended(epg_span map, epg_ended *out, epg_error *err)
{
    uint64_t numbers[5];
    epg_span list;
    epg_span item;
    epg_value_cursor cursor;
    if (!epg_value_lookup(map, "ended", &list) || !epg_value_enter(list, &cursor)) {
        return wrong("ended", err);
    }
    for (size_t i = 0; i < EPG_COUNT(numbers); i++) {
        if (!epg_value_next(&cursor, NULL, &item) || !epg_value_get_u64(item, &numbers[i])) {
            return wrong("ended", err);
        }
    }
    *out = (epg_ended){.terminated = (unsigned)numbers[0],
                       .killed = (unsigned)numbers[1],
                       .orphans = (unsigned)numbers[2],
                       .rounds = (unsigned)numbers[3],
                       .complete = numbers[4] != 0};
    return EPG_OK;
}

epg_code epg_wire_get_outcome(epg_span body, epg_episode_result *out, epg_error *err)
{
    EPG_TRY(check_map(body, "outcome", err));
    EPG_CLEANUP(epg_episode_result_free) epg_episode_result result = *out;
    uint64_t cause = 0;
    uint64_t failure = 0;
    result.detail = NULL;
    result.log = NULL;
    result.killed_by = NULL;
    EPG_TRY(get_u64(body, "cause", &cause, err));
    EPG_TRY(get_bytes(body, "detail", &result.detail, err));
    EPG_TRY(get_ended(body, &result.ended, err));
    EPG_TRY(get_i64(body, "environment_ns", &result.environment_ns, err));
    EPG_TRY(get_u64(body, "failure", &failure, err));
    EPG_TRY(get_text(body, "killed_by", &result.killed_by, err));
    EPG_TRY(get_bytes(body, "log", &result.log, err));
    EPG_TRY(get_i64(body, "policy_ns", &result.policy_ns, err));
    EPG_TRY(get_float(body, "reward", &result.reward, err));
    EPG_TRY(get_u64(body, "steps", &result.steps, err));
    EPG_TRY(get_i64(body, "total_ns", &result.total_ns, err));
    if (cause > EPG_CAUSE_REFUSED_ACTION || failure > EPG_POLICY_PROTOCOL_ERROR) {
        return wrong("failure", err);
    }
    result.cause = (epg_policy_cause)cause;
    result.failure = (epg_policy_failure)failure;
    *out = result;
    result = (epg_episode_result){0};
    return EPG_OK;
}

void epg_wire_put_artifact(epg_buffer *out, const epg_artifact *artifact)
{
    epg_value_put_map(out, 4);
    epg_value_put_key(out, "bulk");
    epg_value_put_bool(out, artifact->bulk);
    put_text(out, "media_type", artifact->media_type);
    put_text(out, "name", artifact->name);
    put_u64(out, "size", artifact->content.size);
}

epg_code epg_wire_get_artifact(epg_span body, epg_feedback *feedback, uint64_t *size, epg_error *err)
{
    EPG_TRY(check_map(body, "artifact", err));
    EPG_AUTO_FREE char *name = NULL;
    EPG_AUTO_FREE char *media_type = NULL;
    bool bulk = false;
    EPG_TRY(get_bool(body, "bulk", &bulk, err));
    EPG_TRY(get_text(body, "media_type", &media_type, err));
    EPG_TRY(get_text(body, "name", &name, err));
    EPG_TRY(get_u64(body, "size", size, err));
    if (name == NULL || media_type == NULL || *size > EPG_ARTIFACT_BYTES_MAX ||
        feedback->artifact_count >= EPG_ARTIFACTS_MAX) {
        return wrong("artifact", err);
    }
    (void)epg_feedback_add(feedback, name, media_type, bulk);
    return EPG_OK;
}

void epg_wire_put_result(epg_buffer *out, const epg_feedback *feedback)
{
    epg_value_put_map(out, 2);
    epg_value_put_key(out, "content");
    (void)epg_buffer_append_span(out, epg_buffer_span(&feedback->content));
    epg_value_put_key(out, "score");
    epg_value_put_float(out, feedback->score);
}

epg_code epg_wire_get_result(epg_span body, epg_feedback *feedback, epg_error *err)
{
    epg_span content;
    EPG_TRY(check_map(body, "result", err));
    EPG_TRY(get_float(body, "score", &feedback->score, err));
    if (!epg_value_lookup(body, "content", &content)) {
        return wrong("content", err);
    }
    epg_buffer_clear(&feedback->content);
    (void)epg_buffer_append_span(&feedback->content, content);
    return EPG_OK;
}

static const epg_code fault_codes[] = {EPG_ERR_BENCHMARK, EPG_ERR_EXECUTION, EPG_ERR_USAGE, EPG_ERR_UNAVAILABLE,
                                       EPG_ERR_INTERRUPTED};

void epg_wire_put_fault(epg_buffer *out, const epg_error *fault)
{
    epg_value_put_map(out, 2);
    put_text(out, "code", epg_code_name(fault->code));
    put_bytes(out, "text", epg_span_text(fault->text));
}

epg_code epg_wire_get_fault(epg_span body, epg_error *err)
{
    EPG_TRY(check_map(body, "fault", err));
    EPG_AUTO_FREE char *code = NULL;
    EPG_AUTO_FREE char *text = NULL;
    EPG_TRY(get_text(body, "code", &code, err));
    EPG_TRY(get_bytes(body, "text", &text, err));
    for (size_t i = 0; code != NULL && i < EPG_COUNT(fault_codes); i++) {
        if (strcmp(code, epg_code_name(fault_codes[i])) == 0) {
            return epg_fail(err, fault_codes[i], "%s", text != NULL ? text : "no reason given");
        }
    }
    return epg_fail(err, EPG_ERR_EXECUTION, "worker: %s", text != NULL ? text : "no reason given");
}
