#include "runs/document.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/withheld.h"
#include "system/files.h"

static void put_texts(epg_json_writer *writer, const char *key, const char *const *texts, size_t count)
{
    epg_json_array(writer, key);
    for (size_t i = 0; i < count; i++) {
        epg_json_put_text(writer, NULL, texts[i]);
    }
    epg_json_end(writer);
}

static bool is_secret(const epg_agent_request *agent, const char *option)
{
    return agent->adapter != NULL &&
           json_is_true(json_object_get(epg_adapter_option(agent->adapter, option), "secret"));
}

static void put_agent(epg_json_writer *writer, const epg_run_request *request, const epg_redactor *redactor)
{
    const epg_agent_request *agent = &request->agent;
    EPG_CLEANUP(epg_withholding_free)
    epg_withholding withholding = {.redactor = redactor, .environment = agent->environment};
    epg_json_object(writer, "agent");
    epg_json_put_text(writer, "adapter", agent->adapter != NULL ? agent->adapter->name : NULL);
    epg_json_array(writer, "command");
    for (size_t i = 0; i < agent->command_count; i++) {
        EPG_AUTO_FREE char *kept = epg_withhold(&withholding, agent->command[i], false);
        epg_json_put_text(writer, NULL, kept);
    }
    epg_json_end(writer);
    epg_json_put_text(writer, "executable", agent->executable);
    epg_json_put_text(writer, "home", request->agent_private_home ? "private" : "shared");
    put_texts(writer, "inherit", agent->inherit, agent->inherit_count);
    epg_json_put_text(writer, "login", request->agent_login);
    EPG_AUTO_FREE char *network = epg_network_text(&request->agent_network);
    epg_json_put_text(writer, "network", request->agent_profile == EPG_PROFILE_SANDBOX ? network : "host");
    epg_json_array(writer, "options");
    for (size_t i = 0; i < agent->option_count; i++) {
        epg_json_object(writer, NULL);
        EPG_AUTO_FREE char *kept =
            epg_withhold(&withholding, agent->options[i].value, is_secret(agent, agent->options[i].name));
        epg_json_put_text(writer, "name", agent->options[i].name);
        epg_json_put_text(writer, "value", kept);
        epg_json_end(writer);
    }
    epg_json_end(writer);
    epg_json_put_text(writer, "profile", epg_profile_name(request->agent_profile));
    put_texts(writer, "secret", agent->secret, agent->secret_count);
    put_texts(writer, "shown", request->agent_shown, request->agent_shown_count);
    epg_json_put_text(writer, "task", epg_task_way_name(agent->task_way));
    epg_withholding_write(&withholding, writer, "withheld");
    epg_json_end(writer);
}

static epg_code check_texts(const char *what, const char *const *texts, size_t count, epg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (texts[i] != NULL && !epg_utf8_valid(texts[i], strlen(texts[i]))) {
            EPG_AUTO_FREE char *shown = epg_printable(texts[i], strlen(texts[i]));
            return epg_fail(err, EPG_ERR_USAGE, "%s \"%s\" is not UTF-8: a Run's record can't hold it", what, shown);
        }
    }
    return EPG_OK;
}

epg_code epg_run_document_check(const epg_run_request *request, epg_error *err)
{
    const epg_agent_request *agent = &request->agent;
    EPG_TRY(check_texts("the Benchmark", &request->pool->benchmark, 1, err));
    EPG_TRY(check_texts("the Benchmark's interpreter", &request->pool->benchmark_options.python, 1, err));
    EPG_TRY(check_texts("the interpreter", &request->pool->execution.python, 1, err));
    EPG_TRY(check_texts("the modules to preload", &request->pool->execution.preload, 1, err));
    EPG_TRY(check_texts("the Agent's executable", &agent->executable, 1, err));
    EPG_TRY(check_texts("the Agent's home", &request->agent_login, 1, err));
    EPG_TRY(check_texts("the Agent's argument", agent->command, agent->command_count, err));
    EPG_TRY(check_texts("the inherited variable", agent->inherit, agent->inherit_count, err));
    EPG_TRY(check_texts("the secret variable", agent->secret, agent->secret_count, err));
    for (size_t i = 0; i < agent->option_count; i++) {
        EPG_TRY(check_texts("the Agent's option", (const char *[]){agent->options[i].value}, 1, err));
    }
    return check_texts("the shown path", request->agent_shown, request->agent_shown_count, err);
}

epg_code epg_run_document_write(int run, const epg_run_request *request, const epg_spec *spec,
                                const epg_redactor *redactor, epg_error *err)
{
    const epg_pool_config *pool = request->pool;
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 2);
    epg_json_object(&writer, NULL);
    put_agent(&writer, request, redactor);
    epg_json_object(&writer, "benchmark");
    epg_json_put_text(&writer, "environment_digest", spec->environment_digest);
    epg_json_put_text(&writer, "id", spec->id);
    epg_json_put_u64(&writer, "memory_bytes", pool->benchmark_options.memory_bytes);
    epg_value_to_json(epg_buffer_span(&spec->environment_parameters), &writer, "parameters");
    epg_json_put_text(&writer, "primary_metric", spec->primary_metric);
    epg_json_put_text(&writer, "python", pool->benchmark_options.python);
    epg_json_put_text(&writer, "score_direction", epg_direction_name(spec->direction));
    epg_json_put_text(&writer, "spec", pool->benchmark);
    epg_json_end(&writer);
    epg_json_put_u64(&writer, "best_on_exit", request->best_on_exit);
    epg_config_to_json(request->config, &writer, "config");
    epg_json_object(&writer, "execution");
    epg_json_put_double(&writer, "environment_timeout_seconds", (double)pool->call_limit_ns / 1e9);
    epg_json_put_u64(&writer, "jobs", pool->jobs);
    epg_json_put_u64(&writer, "policy_memory_bytes", pool->execution.limits.memory_bytes);
    epg_json_put_text(&writer, "preload", pool->execution.preload);
    epg_json_put_text(&writer, "profile", epg_profile_name(pool->execution.profile));
    epg_json_put_text(&writer, "python", pool->execution.python);
    epg_json_put_bool(&writer, "unsafe", pool->execution.profile == EPG_PROFILE_PROCESS);
    epg_json_end(&writer);
    epg_json_object(&writer, "initial_program");
    epg_json_put_text(&writer, "digest", request->initial->digest);
    epg_json_put_text(&writer, "origin", request->initial_origin);
    epg_json_end(&writer);
    epg_json_put_text(&writer, "schema", EPG_RUN_DOCUMENT_SCHEMA);
    epg_json_array(&writer, "skills");
    for (size_t i = 0; i < request->skill_count; i++) {
        epg_json_object(&writer, NULL);
        epg_json_put_text(&writer, "digest", request->skills[i].files.digest);
        epg_json_put_text(&writer, "name", request->skills[i].name);
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_object(&writer, "traces");
    epg_json_put_u64(&writer, "bytes", request->trace_bytes);
    epg_json_put_text(&writer, "record", request->full_traces ? "full" : "digests");
    epg_json_end(&writer);
    epg_json_put_text(&writer, "version", EPG_VERSION);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    return epg_file_write_atomic(run, "config.json", epg_buffer_span(&out), 0400, err);
}

static epg_code record_adapter(int agent, const epg_adapter *adapter, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    epg_json_writer writer;
    if (adapter == NULL) {
        return EPG_OK;
    }
    epg_json_begin(&writer, &text, 2);
    epg_json_put_json(&writer, NULL, adapter->document);
    epg_json_finish(&writer);
    return epg_file_write_atomic(agent, EPG_RUN_ADAPTER_FILE, epg_buffer_span(&text), 0400, err);
}

epg_code epg_run_record_invocation(int run, const epg_invocation *invocation, const epg_adapter *adapter,
                                   const epg_redactor *redactor, epg_span instructions, epg_error *err)
{
    EPG_AUTO_CLOSE int agent = -1;
    EPG_AUTO_BUFFER document = {0};
    EPG_TRY(epg_invocation_write(invocation, redactor, &document, err));
    EPG_TRY(epg_dir_open(run, "agent", &agent, err));
    EPG_TRY(epg_file_write_atomic(agent, "instructions.md", instructions, 0400, err));
    EPG_TRY(record_adapter(agent, adapter, err));
    return epg_file_write_atomic(agent, "invocation.json", epg_buffer_span(&document), 0400, err);
}

static json_t *ended_json(const epg_agent_end *end)
{
    return json_pack("{s:b,s:i,s:i,s:i,s:b}", "complete", (int)end->ended.complete, "killed", (int)end->ended.killed,
                     "left_behind", (int)end->ended.orphans, "terminated", (int)end->ended.terminated,
                     "owned_to_the_end", (int)end->owned_to_the_end);
}

/* Names of files that the Agent made need not be UTF-8, and are told all the same. */
static json_t *printable_json(const char *text)
{
    EPG_AUTO_FREE char *safe = epg_printable(text, strlen(text));
    return json_string(safe);
}

static json_t *findings_json(const epg_evidence_list *list)
{
    json_t *out = json_array();
    for (size_t i = 0; i < list->count; i++) {
        (void)json_array_append_new(
            out, json_pack("{s:o,s:s}", "path", printable_json(list->items[i].path), "what", list->items[i].what));
    }
    return out;
}

static json_t *usage_json(const epg_usage *usage)
{
    EPG_AUTO_BUFFER text = {0};
    epg_json_writer writer;
    json_t *parsed = NULL;
    epg_json_begin(&writer, &text, 0);
    epg_usage_write(usage, &writer, NULL);
    epg_json_finish(&writer);
    return epg_json_parse(epg_buffer_span(&text), "usage", &parsed, NULL) == EPG_OK ? parsed : json_null();
}

/* Why the Agent ended, apart from what the terminal reason says. */
static const char *agent_cause(const epg_run_state *self, const epg_agent_error *error)
{
    static const char *const stops[] = {
        [EPG_STOP_NONE] = "exited", [EPG_STOP_FINISHED] = "finished", [EPG_STOP_TIMEOUT] = "timeout",
        [EPG_STOP_LIMIT] = "limit", [EPG_STOP_FAULT] = "host_fault",  [EPG_STOP_SIGNAL] = "interrupted"};
    if (self->agent_start_failed) {
        return "start_failed";
    }
    if (self->limit != NULL) {
        return self->limit;
    }
    bool provider = strcmp(epg_agent_fault_side(error->fault), "provider") == 0;
    return self->stop == EPG_STOP_NONE && provider ? "provider" : stops[self->stop];
}

/* Of what led to each submission; the rest came after the last. Written one by one: they may be many. */
static void put_intervals(const void *context, epg_json_writer *json)
{
    const epg_run_state *self = context;
    size_t next = 0;
    for (uint64_t number = 1; number <= self->session.submission_count; number++) {
        static const epg_usage unknown = {.tokens_known = EPG_KNOWN_NOT, .cost_known = EPG_KNOWN_NOT};
        bool known = next < self->interval_count && self->intervals[next].submission == number;
        double score = 0;
        if (epg_session_score(&self->session, number, &score)) {
            char id[EPG_SUBMISSION_ID_TEXT];
            epg_submission_id(number, id);
            EPG_AUTO_JSON *one = usage_json(known ? &self->intervals[next].usage : &unknown);
            (void)json_object_set_new(one, "submission_id", json_string(id));
            epg_json_put_json(json, NULL, one);
        }
        next += known ? 1 : 0;
    }
}

/* Of the whole Run. */
static void add_usage(const epg_run_state *self, json_t *host)
{
    if (self->transcript == NULL && self->past_starts == 0) {
        return;
    }
    epg_usage usage = epg_run_usage(self);
    (void)json_object_set_new(host, "usage", usage_json(&usage));
    if (self->transcript == NULL) {
        return;
    }
    const epg_agent_error *error = epg_transcript_error(self->transcript);
    (void)json_object_set_new(host, "agent_cause", json_string(agent_cause(self, error)));
    (void)json_object_set_new(host, "agent_starts", json_integer((json_int_t)self->agent_starts));
    bool ended_by_us = self->stop != EPG_STOP_NONE && error->fault == EPG_FAULT_OTHER;
    if (error->fault != EPG_FAULT_NONE && !ended_by_us) {
        (void)json_object_set_new(host, "agent_error",
                                  json_pack("{s:s,s:s?,s:s}", "kind", epg_agent_fault_name(error->fault), "message",
                                            error->message, "side", epg_agent_fault_side(error->fault)));
    }
}

/* What the profile of the Policies gave on this machine. */
static json_t *containment_json(const epg_execution *execution)
{
    EPG_AUTO_BUFFER text = {0};
    json_t *parsed = NULL;
    epg_json_writer writer;
    epg_json_begin(&writer, &text, 0);
    epg_execution_describe(execution, &writer, NULL);
    epg_json_finish(&writer);
    return epg_json_parse(epg_buffer_span(&text), "containment", &parsed, NULL) == EPG_OK ? parsed : json_null();
}

static json_t *host_json(const epg_run_state *self, const epg_run_outcome *outcome)
{
    const epg_execution *execution = &self->request->pool->execution;
    char head[EPG_SHA256_HEX];
    epg_ledger_head(self->ledger, head);
    json_t *host =
        json_pack("{s:s,s:s,s:{s:o,s:s,s:b},s:{s:s,s:b},s:o,s:{s:I,s:s},s:f}", "schema", EPG_RUN_HOST_SCHEMA, "version",
                  EPG_VERSION, "execution", "containment", containment_json(execution), "profile",
                  epg_profile_name(execution->profile), "unsafe", (int)(execution->profile == EPG_PROFILE_PROCESS),
                  "agent_execution", "profile", epg_profile_name(self->request->agent_profile), "unsafe",
                  (int)(self->request->agent_profile == EPG_PROFILE_PROCESS), "tampering",
                  findings_json(&self->evidence), "ledger", "events", (json_int_t)epg_ledger_count(self->ledger),
                  "head", head, "wall_seconds", (double)(epg_monotonic_ns() - self->began) / 1e9);
    (void)json_object_set_new(host, "seal", json_string(EPG_RUN_UNSEALED));
    if (self->agent_box != NULL) {
        (void)json_object_set(host, "agent_execution", self->agent_box);
    }
    if (self->has_agent_end) {
        const epg_agent_end *end = &self->agent_end;
        (void)json_object_set_new(host, "agent_tree", ended_json(end));
        (void)json_object_set_new(
            host, "agent_output",
            json_pack("{s:I,s:I,s:I,s:I,s:I}", "stdout_bytes", (json_int_t)end->stdout_bytes, "stdout_dropped",
                      (json_int_t)end->stdout_dropped, "stderr_bytes", (json_int_t)end->stderr_bytes, "stderr_dropped",
                      (json_int_t)end->stderr_dropped, "secrets_redacted", (json_int_t)end->secrets_redacted));
    }
    if (outcome->detail != NULL) {
        (void)json_object_set_new(host, "detail", printable_json(outcome->detail));
    }
    if (self->interrupted != 0) {
        (void)json_object_set_new(host, "signal", json_integer(self->interrupted));
    }
    add_usage(self, host);
    return host;
}

epg_code epg_run_document_conclude(epg_run_state *self, const epg_run_outcome *outcome, epg_error *err)
{
    const epg_invocation *invocation = &self->invocation;
    EPG_AUTO_FREE epg_identity *identity = epg_alloc_array(invocation->identity_count, sizeof *identity);
    for (size_t i = 0; i < invocation->identity_count; i++) {
        identity[i] = (epg_identity){invocation->identity[i].name, invocation->identity[i].value};
    }
    const epg_exit *how = &self->agent_end.exit;
    EPG_AUTO_JSON *host = host_json(self, outcome);
    epg_run_record record = {.config = self->config,
                             .spec = self->spec,
                             .session = &self->session,
                             .identity = identity,
                             .identity_count = invocation->identity_count,
                             .agent_start_failed = self->agent_start_failed,
                             .agent_has_returncode = self->has_agent_end,
                             .agent_returncode = how->signal != 0 ? -how->signal : how->code,
                             .agent_stopped_after_terminal = self->agent_stopped_after_terminal,
                             .agent_timed_out = self->agent_timed_out,
                             .has_validation_report = outcome->has_validation_score,
                             .has_assessment_report = outcome->has_assessment_score,
                             .final_submission = outcome->final_submission,
                             .initial_program_digest = self->request->initial->digest,
                             .skills = self->request->skills,
                             .skill_count = self->request->skill_count,
                             .terminal_reason = outcome->terminal_reason,
                             .host = host,
                             .put_intervals = self->transcript != NULL || self->past_starts > 0 ? put_intervals : NULL,
                             .intervals = self};
    return epg_run_record_write(self->run, &record, err);
}
