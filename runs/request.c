#include "runs/request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/document.h"
#include "runs/withheld.h"

void epg_stored_request_free(epg_stored_request *stored)
{
    free(stored->guest_root);
    if (stored->has_adapter) {
        epg_adapter_free(&stored->adapter);
    }
    for (size_t i = 0; i < stored->request.skill_count; i++) {
        free(stored->skills[i].name);
    }
    free(stored->skills);
    epg_texts_free(stored->command);
    free(stored->inherit);
    free(stored->secret);
    free(stored->shown);
    for (size_t i = 0; i < stored->request.agent.option_count; i++) {
        free(stored->options[i].value);
    }
    free(stored->options);
    free(stored->missing);
    *stored = (epg_stored_request){0};
}

static const char **read_texts(const json_t *array, size_t *count)
{
    *count = json_array_size(array);
    const char **texts = epg_alloc_array(*count + 1, sizeof *texts);
    for (size_t i = 0; i < *count; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        texts[i] = text != NULL ? text : "";
    }
    return texts;
}

static char **read_command(const json_t *array, const json_t *withheld, size_t *count)
{
    EPG_AUTO_FREE const char **kept = read_texts(array, count);
    char **words = epg_alloc_array(*count + 1, sizeof *words);
    for (size_t i = 0; i < *count; i++) {
        words[i] = epg_withheld_restore(kept[i], withheld);
    }
    return words;
}

/* What the Agent had of its user's environment and would lack now. */
static void find_missing(const json_t *withheld, epg_stored_request *out)
{
    const epg_agent_request *agent = &out->request.agent;
    out->missing = epg_withheld_missing(withheld);
    for (size_t i = 0; i < agent->secret_count && out->missing == NULL; i++) {
        if (getenv(agent->secret[i]) == NULL) {
            out->missing =
                epg_format("the Agent inherits the secret variable %s, which is not set now: set it, and try again",
                           agent->secret[i]);
        }
    }
}

static epg_code read_agent(const json_t *document, epg_stored_request *out, epg_error *err)
{
    epg_agent_request *agent = &out->request.agent;
    const char *adapter = json_string_value(json_object_get(document, "adapter"));
    const char *home = json_string_value(json_object_get(document, "home"));
    const char *profile = NULL;
    const json_t *options = json_object_get(document, "options");
    const json_t *withheld = json_object_get(document, "withheld");
    if (adapter != NULL) {
        /* The adapter that the Run began with, whatever became of the file that it came from. */
        EPG_AUTO_FREE char *copy = epg_format("%s/agent/" EPG_RUN_ADAPTER_FILE, out->request.directory);
        EPG_TRY(epg_adapter_read(copy, &out->adapter, err));
        out->has_adapter = true;
        agent->adapter = &out->adapter;
    }
    EPG_TRY(epg_json_text(document, "profile", "config.json", &profile, err));
    EPG_TRY(epg_profile_parse(profile, &out->request.agent_profile, err));
    out->command = read_command(json_object_get(document, "command"), withheld, &agent->command_count);
    agent->command = (const char *const *)out->command;
    agent->inherit = out->inherit = read_texts(json_object_get(document, "inherit"), &agent->inherit_count);
    agent->secret = out->secret = read_texts(json_object_get(document, "secret"), &agent->secret_count);
    out->shown = read_texts(json_object_get(document, "shown"), &out->request.agent_shown_count);
    out->request.agent_shown = out->shown;
    const char *network = json_string_value(json_object_get(document, "network"));
    EPG_TRY(epg_network_parse(network != NULL ? network : "host", &out->request.agent_network, err));
    agent->executable = json_string_value(json_object_get(document, "executable"));
    agent->environment = environ;
    const char *way = json_string_value(json_object_get(document, "task"));
    if (way == NULL || !epg_task_way_parse(way, &agent->task_way)) {
        return epg_fail(err, EPG_ERR_INVALID, "config.json: \"task\" of the agent is not a way for a task");
    }
    out->request.agent_private_home = home != NULL && strcmp(home, "private") == 0;
    out->request.agent_login = json_string_value(json_object_get(document, "login"));
    out->options = epg_alloc_array(json_array_size(options), sizeof *out->options);
    for (size_t i = 0; i < json_array_size(options); i++) {
        const char *name = NULL;
        const char *value = NULL;
        EPG_TRY(epg_json_text(json_array_get(options, i), "name", "config.json", &name, err));
        EPG_TRY(epg_json_text(json_array_get(options, i), "value", "config.json", &value, err));
        out->options[i] = (epg_pair){(char *)(uintptr_t)name, epg_withheld_restore(value, withheld)};
        agent->option_count = i + 1;
    }
    agent->options = out->options;
    find_missing(withheld, out);
    return EPG_OK;
}

static epg_code read_pool(const json_t *document, const epg_run_again_request *again, epg_stored_request *out,
                          epg_error *err)
{
    json_t *execution = NULL;
    json_t *benchmark = NULL;
    const char *profile = NULL;
    double limit = 0;
    uint64_t jobs = 1;
    uint64_t benchmark_memory = 0;
    uint64_t memory = 0;
    EPG_TRY(epg_json_member(document, "execution", "config.json", JSON_OBJECT, &execution, err));
    EPG_TRY(epg_json_member(document, "benchmark", "config.json", JSON_OBJECT, &benchmark, err));
    EPG_TRY(epg_json_text(benchmark, "spec", "config.json", &out->pool.benchmark, err));
    EPG_TRY(epg_json_text(execution, "profile", "config.json", &profile, err));
    EPG_TRY(epg_json_text(execution, "python", "config.json", &out->pool.execution.python, err));
    out->pool.execution.preload = json_string_value(json_object_get(execution, "preload"));
    EPG_TRY(epg_json_double(execution, "environment_timeout_seconds", "config.json", &limit, err));
    EPG_TRY(epg_json_u64(execution, "jobs", "config.json", &jobs, err));
    EPG_TRY(epg_json_u64(benchmark, "memory_bytes", "config.json", &benchmark_memory, err));
    EPG_TRY(epg_json_u64(execution, "policy_memory_bytes", "config.json", &memory, err));
    EPG_TRY(epg_profile_parse(profile, &out->pool.execution.profile, err));
    EPG_TRY(epg_guest_root_find(&out->guest_root, err));
    out->pool.execution.guest_root = out->guest_root;
    out->pool.execution.limits = epg_guest_default_limits;
    out->pool.execution.limits.memory_bytes = memory;
    out->pool.call_limit_ns = epg_duration_ns(limit);
    out->pool.jobs = again->jobs > 0 ? again->jobs : jobs >= 1 && jobs <= 256 ? (unsigned)jobs : 1;
    out->pool.benchmark_options =
        (epg_benchmark_options){.python = json_string_value(json_object_get(benchmark, "python")),
                                .call_limit_ns = out->pool.call_limit_ns,
                                .memory_bytes = benchmark_memory};
    return epg_execution_check(&out->pool.execution, err);
}

static void read_skills(const json_t *list, epg_stored_request *out)
{
    out->skills = epg_alloc_array(json_array_size(list), sizeof *out->skills);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "name"));
        const char *digest = json_string_value(json_object_get(json_array_get(list, i), "digest"));
        if (name == NULL || digest == NULL || strlen(digest) >= EPG_DIGEST_TEXT) {
            continue;
        }
        epg_skill *skill = &out->skills[out->request.skill_count++];
        skill->name = epg_strdup(name);
        memcpy(skill->files.digest, digest, strlen(digest) + 1);
    }
}

static bool may_be_relative(const char *benchmark)
{
    return epg_starts_with(benchmark, "python:") ||
           (epg_starts_with(benchmark, "cmd:") && !epg_starts_with(benchmark, "cmd:/")) ||
           (epg_starts_with(benchmark, "lib:") && !epg_starts_with(benchmark, "lib:/"));
}

epg_code epg_stored_request_open_pool(const epg_pool_config *config, epg_pool **out, epg_error *err)
{
    epg_error why = {.text = ""};
    epg_code code = epg_pool_open(config, out, &why);
    if (code == EPG_ERR_USAGE && may_be_relative(config->benchmark)) {
        return epg_fail(err, code,
                        "%s; a Benchmark is named from the directory where the Run was started: do this there",
                        why.text);
    }
    if (code != EPG_OK && err != NULL) {
        *err = why;
    }
    return code;
}

void epg_stored_request_traces(const json_t *document, bool *full, uint64_t *bytes)
{
    const json_t *traces = json_object_get(document, "traces");
    const char *record = json_string_value(json_object_get(traces, "record"));
    *full = record != NULL && strcmp(record, "full") == 0 &&
            epg_json_u64(traces, "bytes", "config.json", bytes, NULL) == EPG_OK;
}

epg_code epg_stored_request_read(const char *directory, const epg_history *history, const epg_run_again_request *again,
                                 epg_stored_request *out, epg_error *err)
{
    EPG_CLEANUP(epg_stored_request_free) epg_stored_request stored = {0};
    const json_t *document = history->request;
    json_t *agent = NULL;
    EPG_TRY(epg_json_member(document, "agent", "config.json", JSON_OBJECT, &agent, err));
    stored.request.directory = directory;
    EPG_TRY(read_agent(agent, &stored, err));
    EPG_TRY(read_pool(document, again, &stored, err));
    read_skills(json_object_get(document, "skills"), &stored);
    stored.request.skills = stored.skills;
    if (history->initial_digest == NULL || strlen(history->initial_digest) >= EPG_DIGEST_TEXT) {
        return epg_fail(err, EPG_ERR_USAGE, "config.json does not name the initial Program");
    }
    memcpy(stored.initial.digest, history->initial_digest, strlen(history->initial_digest) + 1);
    EPG_TRY(epg_json_u64(document, "best_on_exit", "config.json", &stored.request.best_on_exit, err));
    epg_stored_request_traces(document, &stored.request.full_traces, &stored.request.trace_bytes);
    stored.request.config = &history->config;
    stored.request.progress = again->progress;
    *out = stored;
    /* The request borrows from the struct that holds it. */
    out->request.agent.adapter = out->has_adapter ? &out->adapter : NULL;
    out->request.pool = &out->pool;
    out->request.initial = &out->initial;
    stored = (epg_stored_request){0};
    return EPG_OK;
}
