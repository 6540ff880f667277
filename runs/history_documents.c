/* What the documents of a Run tell about its history: config.json, run.json, agent/invocation.json. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "runs/document.h"
#include "runs/history_parts.h"
#include "runs/records.h"
#include "system/files.h"

enum { DOCUMENT_MAX = 16 * 1024 * 1024 };

void epg_history_take_metric(epg_history *history, const char *metric, const char *direction)
{
    if (history->metric == NULL && metric != NULL) {
        history->metric = epg_strdup(metric);
    }
    for (int i = EPG_MAXIMIZE; direction != NULL && i <= EPG_MINIMIZE; i++) {
        if (strcmp(direction, epg_direction_name((epg_direction)i)) == 0) {
            history->direction = (epg_direction)i;
            history->direction_known = true;
        }
    }
}

static epg_code read_document(int run, const char *name, size_t most, json_t **out, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    epg_error local = {.text = ""};
    epg_code code = epg_file_read(run, name, most, &text, &local);
    if (code == EPG_ERR_NOT_FOUND) {
        return EPG_OK;
    }
    if (code != EPG_OK) {
        return epg_fail(err, code, "%s", local.text);
    }
    return epg_json_parse(epg_buffer_span(&text), name, out, err);
}

static char *text_in(const json_t *object, const char *group, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, group), key));
    return text != NULL ? epg_strdup(text) : NULL;
}

static epg_code check_schema(const json_t *document, const char *what, const char *schema, epg_error *err)
{
    const char *given = json_string_value(json_object_get(document, "schema"));
    if (document == NULL || (given != NULL && strcmp(given, schema) == 0)) {
        return EPG_OK;
    }
    EPG_AUTO_FREE char *shown = epg_printable(given != NULL ? given : "none", given != NULL ? strlen(given) : 4);
    return epg_fail(err, EPG_ERR_INVALID, "%s has the schema \"%s\"; this version reads \"%s\"", what, shown, schema);
}

epg_code epg_history_read_documents(int run, bool skims, epg_history *history, epg_error *err)
{
    struct stat info;
    EPG_TRY(read_document(run, "config.json", DOCUMENT_MAX, &history->request, err));
    history->has_record = fstatat(run, "run.json", &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (history->request == NULL || !skims) {
        EPG_TRY(read_document(run, "run.json", EPG_RUN_RECORD_MAX, &history->record, err));
    }
    EPG_TRY(check_schema(history->request, "config.json", EPG_RUN_DOCUMENT_SCHEMA, err));
    EPG_TRY(check_schema(history->record, "run.json", EPG_RUN_SCHEMA, err));
    const json_t *ledger = json_object_get(json_object_get(history->record, "host"), "ledger");
    (void)epg_json_is_u64(json_object_get(ledger, "events"), &history->recorded);
    const json_t *any = history->record != NULL ? history->record : history->request;
    epg_config_init(&history->config);
    if (any != NULL) {
        EPG_TRY(epg_config_from_json(&history->config, json_object_get(any, "config"), "config", err));
    }
    EPG_TRY(epg_config_resolve(&history->config, err));
    history->benchmark_id = text_in(any, "benchmark", "id");
    history->initial_digest = text_in(any, "initial_program", "digest");
    const json_t *benchmark = json_object_get(history->request, "benchmark");
    epg_history_take_metric(history, json_string_value(json_object_get(benchmark, "primary_metric")),
                            json_string_value(json_object_get(benchmark, "score_direction")));
    history->environment_digest = text_in(history->request, "benchmark", "environment_digest");
    if (history->environment_digest == NULL) {
        history->environment_digest = text_in(json_object_get(history->record, "benchmark"), "environment", "digest");
    }
    EPG_AUTO_JSON *invocation = NULL;
    EPG_AUTO_CLOSE int agent = -1;
    if (epg_dir_open(run, "agent", &agent, NULL) == EPG_OK &&
        read_document(agent, "invocation.json", DOCUMENT_MAX, &invocation, NULL) == EPG_OK) {
        history->provider = text_in(invocation, "agent", "provider");
        history->model = text_in(invocation, "agent", "model");
    }
    return EPG_OK;
}

/* A foreign Host's ledger does not name the candidates; its record does. */
void epg_history_complete_from_record(epg_history *history)
{
    const json_t *record = history->record;
    const json_t *ids = json_object_get(record, "candidate_submission_ids");
    if (history->candidate_count == 0 && json_array_size(ids) > 0) {
        history->candidates = epg_alloc_array(json_array_size(ids), sizeof *history->candidates);
        for (size_t i = 0; i < json_array_size(ids); i++) {
            const char *id = json_string_value(json_array_get(ids, i));
            uint64_t number = id != NULL ? epg_submission_number(id) : 0;
            if (number >= 1 && number <= history->submission_count) {
                history->candidates[history->candidate_count++] = number;
            }
        }
    }
    const char *reason = json_string_value(json_object_get(record, "terminal_reason"));
    if (history->terminal_reason == NULL && reason != NULL && history->request == NULL) {
        history->terminal_reason = epg_strdup(reason);
    }
}
