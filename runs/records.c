#include "runs/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "system/files.h"
#include "system/io.h"

#ifndef EPG_VERSION
#define EPG_VERSION "0"
#endif

/* Makes run/directory where it is not there yet, writes one document in it, and closes it to writing. */
enum { REPORT_MAX = 64 * 1024 * 1024 };

static epg_code write_report(int run, const char *directory, epg_span document, epg_error *err)
{
    EPG_AUTO_CLOSE int dir = -1;
    if (epg_dir_open(run, directory, &dir, NULL) != EPG_OK) {
        if (epg_io_mkdir(run, directory, 0700) != 0) {
            return epg_fail_errno(err, errno, "can't make '%s'", directory);
        }
        EPG_TRY(epg_dir_open(run, directory, &dir, err));
    }
    if (epg_io_fchmod(dir, 0700) != 0) {
        return epg_fail_errno(err, errno, "can't set the mode of '%s'", directory);
    }
    EPG_TRY(epg_file_write_atomic(dir, "report.json", document, 0400, err));
    if (epg_io_fchmod(dir, 0500) != 0) {
        return epg_fail_errno(err, errno, "can't set the mode of '%s'", directory);
    }
    EPG_TRY(epg_dir_sync(dir, err));
    return epg_dir_sync(run, err);
}

static void put_identity(epg_json_writer *json, const epg_identity *identity, size_t count, const char *before,
                         const char *after)
{
    /* Names in byte order, those after `after` and up to `before` (NULL: no bound): so they mix with fixed keys. */
    for (;;) {
        const epg_identity *next = NULL;
        for (size_t i = 0; i < count; i++) {
            const epg_identity *one = &identity[i];
            if ((after == NULL || strcmp(one->name, after) > 0) && (before == NULL || strcmp(one->name, before) < 0) &&
                (next == NULL || strcmp(one->name, next->name) < 0)) {
                next = one;
            }
        }
        if (next == NULL) {
            return;
        }
        epg_json_put_text(json, next->name, next->value);
        after = next->name;
    }
}

/* --- Reports --- */

void epg_candidate_result_free(epg_candidate_result *result)
{
    epg_buffer_free(&result->content);
    *result = (epg_candidate_result){0};
}

size_t epg_select_candidate(const epg_candidate_result *results, size_t count, epg_direction direction)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        const epg_candidate_result *a = &results[i];
        const epg_candidate_result *b = &results[best];
        bool better = epg_direction_better(direction, a->score, b->score);
        bool worse = epg_direction_better(direction, b->score, a->score);
        if (better || (!worse && a->policy_failures < b->policy_failures)) {
            best = i;
        }
    }
    return best;
}

static void put_candidate(epg_json_writer *json, const epg_candidate_result *result)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(result->number, id);
    epg_json_object(json, NULL);
    epg_json_put_u64(json, "episodes", result->episodes);
    epg_value_to_json(epg_buffer_span(&result->content), json, "feedback_content");
    epg_json_put_u64(json, "policy_failures", result->policy_failures);
    epg_json_put_text(json, "program_digest", result->program_digest);
    epg_json_put_double(json, "score", result->score);
    epg_json_put_text(json, "submission_id", id);
    epg_json_end(json);
}

epg_code epg_validation_report_write(int run, const epg_config *config, const epg_spec *spec,
                                     const epg_candidate_result *results, size_t count, size_t selected, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_BUFFER document = {0};
    epg_json_writer json;
    epg_submission_id(results[selected].number, id);
    epg_json_begin(&json, &document, 2);
    epg_json_object(&json, NULL);
    epg_json_array(&json, "candidates");
    for (size_t i = 0; i < count; i++) {
        put_candidate(&json, &results[i]);
    }
    epg_json_end(&json);
    epg_json_put_u64(&json, "episodes_per_candidate", config->episodes_per_candidate);
    epg_json_put_text(&json, "primary_metric", spec->primary_metric);
    epg_json_put_text(&json, "schema", EPG_VALIDATION_SCHEMA);
    epg_json_put_text(&json, "score_direction", epg_direction_name(spec->direction));
    epg_json_put_text(&json, "selected_submission_id", id);
    epg_json_put_text(&json, "split", config->validation_split);
    epg_json_end(&json);
    epg_json_finish(&json);
    return write_report(run, "validation", epg_buffer_span(&document), err);
}

epg_code epg_assessment_report_write(int run, const epg_config *config, const epg_spec *spec,
                                     const epg_candidate_result *result, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_BUFFER document = {0};
    epg_json_writer json;
    epg_submission_id(result->number, id);
    epg_json_begin(&json, &document, 2);
    epg_json_object(&json, NULL);
    epg_json_put_u64(&json, "episodes", result->episodes);
    epg_value_to_json(epg_buffer_span(&result->content), &json, "feedback_content");
    epg_json_put_u64(&json, "policy_failures", result->policy_failures);
    epg_json_put_text(&json, "primary_metric", spec->primary_metric);
    epg_json_put_text(&json, "program_digest", result->program_digest);
    epg_json_put_text(&json, "schema", EPG_ASSESSMENT_SCHEMA);
    epg_json_put_double(&json, "score", result->score);
    epg_json_put_text(&json, "score_direction", epg_direction_name(spec->direction));
    epg_json_put_text(&json, "split", config->assessment_split);
    epg_json_put_text(&json, "submission_id", id);
    epg_json_end(&json);
    epg_json_finish(&json);
    return write_report(run, "assessment", epg_buffer_span(&document), err);
}

json_t *epg_report_read(int run, const char *phase)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_AUTO_BUFFER text = {0};
    json_t *report = NULL;
    if (epg_dir_open(run, phase, &directory, NULL) != EPG_OK ||
        epg_file_read(directory, "report.json", REPORT_MAX, &text, NULL) != EPG_OK ||
        epg_json_parse(epg_buffer_span(&text), "report.json", &report, NULL) != EPG_OK) {
        return NULL;
    }
    return report;
}

/* --- run.json --- */

static void put_agent(epg_json_writer *json, const epg_run_record *record)
{
    epg_json_object(json, "agent");
    const epg_identity *identity = record->identity;
    size_t count = record->identity_count;
    put_identity(json, identity, count, "invocation", NULL);
    epg_json_put_text(json, "invocation", "agent/invocation.json");
    put_identity(json, identity, count, "returncode", "invocation");
    if (record->agent_has_returncode) {
        epg_json_put_i64(json, "returncode", record->agent_returncode);
    } else {
        epg_json_put_null(json, "returncode");
    }
    put_identity(json, identity, count, "start_failed", "returncode");
    epg_json_put_bool(json, "start_failed", record->agent_start_failed);
    epg_json_put_text(json, "stderr", "agent/stderr.log");
    epg_json_put_text(json, "stdout", "agent/stdout.log");
    epg_json_put_bool(json, "stopped_after_terminal", record->agent_stopped_after_terminal);
    epg_json_put_bool(json, "timed_out", record->agent_timed_out);
    put_identity(json, identity, count, NULL, "timed_out");
    epg_json_end(json);
}

static void put_benchmark(epg_json_writer *json, const epg_spec *spec)
{
    epg_json_object(json, "benchmark");
    epg_json_object(json, "environment");
    epg_json_put_text(json, "digest", spec->environment_digest);
    epg_value_to_json(epg_buffer_span(&spec->environment_parameters), json, "parameters");
    epg_json_end(json);
    epg_json_put_text(json, "id", spec->id);
    epg_json_end(json);
}

static void put_report(epg_json_writer *json, const char *key, bool there)
{
    if (!there) {
        epg_json_put_null(json, key);
        return;
    }
    EPG_AUTO_FREE char *path = epg_format("%s/report.json", key);
    epg_json_object(json, key);
    epg_json_put_text(json, "report", path);
    epg_json_end(json);
}

static void put_submissions(epg_json_writer *json, const epg_session *session)
{
    epg_json_array(json, "submissions");
    for (uint64_t number = 1; number <= session->submission_count; number++) {
        EPG_CLEANUP(epg_submission_free) epg_submission recalled = {0};
        const epg_submission *submission = &recalled;
        if (!epg_session_recall(session, number, &recalled) || recalled.state != EPG_SUBMISSION_PUBLISHED) {
            continue; /* what has no score has no record: the ledger tells of it */
        }
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(number, id);
        EPG_AUTO_FREE char *path = epg_format("submissions/%s", id);
        epg_json_object(json, NULL);
        epg_json_array(json, "episode_indices");
        for (size_t j = 0; j < submission->indices.count; j++) {
            epg_json_put_u64(json, NULL, submission->indices.items[j]);
        }
        epg_json_end(json);
        epg_json_put_u64(json, "episodes_remaining", submission->episodes_remaining);
        epg_json_put_u64(json, "episodes_used", submission->episodes_used);
        epg_json_put_text(json, "program_digest", submission->program_digest);
        epg_json_put_text(json, "record", path);
        epg_json_put_double(json, "score", submission->score);
        epg_json_put_text(json, "submission_id", id);
        epg_json_end(json);
    }
    epg_json_end(json);
}

static void put_candidates(epg_json_writer *json, const epg_session *session)
{
    epg_json_array(json, "candidate_submission_ids");
    for (size_t i = 0; i < session->candidate_count; i++) {
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(session->candidates[i], id);
        epg_json_put_text(json, NULL, id);
    }
    epg_json_end(json);
}

static void put_skills(epg_json_writer *json, const epg_skill *skills, size_t count)
{
    epg_json_array(json, "skills");
    for (size_t i = 0; i < count; i++) {
        EPG_AUTO_FREE char *path = epg_format("workspace/skills/%s", skills[i].name);
        epg_json_object(json, NULL);
        epg_json_put_text(json, "digest", skills[i].files.digest);
        epg_json_put_text(json, "name", skills[i].name);
        epg_json_put_text(json, "record", path);
        epg_json_end(json);
    }
    epg_json_end(json);
}

static void put_pool_and_workspace(epg_json_writer *json, const epg_run_record *record)
{
    epg_json_object(json, "training_episode_pool");
    epg_json_put_text(json, "episode_derivation", "evopolicygym/training-pool/v1");
    epg_json_put_text(json, "policy_seed_derivation", "evopolicygym/training-policy/v1");
    epg_json_put_u64(json, "size", record->config->episode_pool_size);
    epg_json_end(json);
    put_report(json, "validation", record->has_validation_report);
    epg_json_object(json, "workspace");
    epg_json_put_text(json, "analysis", "workspace/analysis");
    epg_json_put_text(json, "feedback", "workspace/feedback");
    epg_json_put_text(json, "program", "workspace/program");
    epg_json_put_text(json, "root", "workspace");
    epg_json_put_text(json, "skills", "workspace/skills");
    epg_json_end(json);
}

/* The members whose keys are after `after` and before `before` (NULL: no bound), in order. */
static void put_members(epg_json_writer *json, json_t *object, const char *after, const char *before)
{
    for (;;) {
        const char *next = NULL;
        const char *key = NULL;
        json_t *value = NULL;
        json_object_foreach(object, key, value)
        {
            if ((after == NULL || strcmp(key, after) > 0) && (before == NULL || strcmp(key, before) < 0) &&
                (next == NULL || strcmp(key, next) < 0)) {
                next = key;
            }
        }
        if (next == NULL) {
            return;
        }
        epg_json_put_json(json, next, json_object_get(object, next));
        after = next;
    }
}

static void put_host(epg_json_writer *json, const epg_run_record *record)
{
    static const char list[] = "usage_by_submission";
    epg_json_object(json, "host");
    put_members(json, record->host, NULL, list);
    if (record->put_intervals != NULL) {
        epg_json_array(json, list);
        record->put_intervals(record->intervals, json);
        epg_json_end(json);
    }
    put_members(json, record->host, list, NULL);
    epg_json_end(json);
}

void epg_run_record_to_json(const epg_run_record *record, epg_buffer *out)
{
    char final_id[EPG_SUBMISSION_ID_TEXT];
    epg_json_writer json;
    epg_submission_id(record->final_submission, final_id);
    epg_json_begin(&json, out, 2);
    epg_json_object(&json, NULL);
    put_agent(&json, record);
    put_report(&json, "assessment", record->has_assessment_report);
    put_benchmark(&json, record->spec);
    put_candidates(&json, record->session);
    epg_config_to_json(record->config, &json, "config");
    epg_json_put_text(&json, "events", "events.jsonl");
    epg_json_put_text(&json, "final_submission_id", record->final_submission != 0 ? final_id : NULL);
    if (record->host != NULL) {
        put_host(&json, record);
    }
    epg_json_object(&json, "initial_program");
    epg_json_put_text(&json, "digest", record->initial_program_digest);
    epg_json_put_text(&json, "record", "initial/program");
    epg_json_end(&json);
    epg_json_put_text(&json, "library_version", EPG_VERSION);
    epg_json_put_text(&json, "schema", EPG_RUN_SCHEMA);
    put_skills(&json, record->skills, record->skill_count);
    put_submissions(&json, record->session);
    epg_json_put_text(&json, "terminal_reason", record->terminal_reason);
    put_pool_and_workspace(&json, record);
    epg_json_end(&json);
    epg_json_finish(&json);
}

/* Where the seal's digits stand: a member of "host", so indented by four. */
static uint8_t *find_seal(epg_span document)
{
    static const char member[] = "\n    \"seal\": \"";
    size_t size = sizeof member - 1;
    uint8_t *found = document.size > 0 ? memmem(document.data, document.size, member, size) : NULL;
    if (found == NULL || (size_t)(document.data + document.size - found) < size + EPG_SHA256_HEX) {
        return NULL;
    }
    return found + size;
}

/* Of the document with zeros for the seal. */
static void hash_unsealed(epg_span document, const uint8_t *seal, char out[EPG_SHA256_HEX])
{
    uint8_t hash[EPG_SHA256_SIZE];
    size_t before = (size_t)(seal - document.data);
    size_t after = before + EPG_SHA256_HEX - 1;
    epg_sha256 *sum = epg_sha256_new();
    epg_sha256_update(sum, document.data, before);
    epg_sha256_update(sum, EPG_RUN_UNSEALED, EPG_SHA256_HEX - 1);
    epg_sha256_update(sum, document.data + after, document.size - after);
    epg_sha256_finish(sum, hash);
    epg_hex(hash, sizeof hash, out);
}

bool epg_run_record_seal_holds(epg_span document)
{
    char hex[EPG_SHA256_HEX];
    const uint8_t *seal = find_seal(document);
    if (seal == NULL) {
        return false;
    }
    hash_unsealed(document, seal, hex);
    return memcmp(seal, hex, EPG_SHA256_HEX - 1) == 0;
}

epg_code epg_run_record_write(int run, const epg_run_record *record, epg_error *err)
{
    EPG_AUTO_BUFFER document = {0};
    epg_run_record_to_json(record, &document);
    uint8_t *seal = find_seal(epg_buffer_span(&document));
    if (seal != NULL) {
        char hex[EPG_SHA256_HEX];
        hash_unsealed(epg_buffer_span(&document), seal, hex);
        memcpy(seal, hex, EPG_SHA256_HEX - 1);
    }
    epg_code code = epg_file_write_atomic(run, "run.json", epg_buffer_span(&document), 0400, err);
    return code == EPG_OK ? EPG_OK : epg_fail_as(err, EPG_ERR_PUBLICATION, "committing run.json");
}

epg_code epg_run_record_read(int run, json_t **out, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_JSON *document = NULL;
    const char *schema = NULL;
    EPG_TRY(epg_file_read(run, "run.json", EPG_RUN_RECORD_MAX, &text, err));
    EPG_TRY(epg_json_parse(epg_buffer_span(&text), "run.json", &document, err));
    EPG_TRY(epg_json_text(document, "schema", "run.json", &schema, err));
    if (strcmp(schema, EPG_RUN_SCHEMA) != 0) {
        EPG_AUTO_FREE char *shown = epg_printable(schema, strlen(schema));
        return epg_fail(err, EPG_ERR_INVALID, "run.json has the schema \"%.80s\"; this Host reads %s", shown,
                        EPG_RUN_SCHEMA);
    }
    *out = EPG_TAKE(document);
    return EPG_OK;
}
