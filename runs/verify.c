#include "runs/verify.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runs/ledger.h"
#include "runs/reading.h"
#include "runs/records.h"
#include "runs/verify_parts.h"

void epg_verification_free(epg_verification *verification)
{
    epg_evidence_free(&verification->findings);
    free(verification->state);
    *verification = (epg_verification){0};
}

bool epg_verify_expect(epg_verifier *self, bool holds, const char *where, const char *what)
{
    self->out->checks++;
    if (!holds) {
        epg_evidence_note(&self->out->findings, where, "%s", what);
    }
    return holds;
}

static bool same_text(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* --- the ledger --- */

static epg_code visit_line(void *context, const epg_ledger_line *line, epg_error *err)
{
    (void)err;
    epg_verifier *self = context;
    const char *schema = json_string_value(json_object_get(line->object, "schema"));
    EPG_AUTO_FREE char *where = epg_format("events.jsonl line %llu", (unsigned long long)line->number);
    (void)epg_verify_expect(self, same_text(schema, EPG_EVENT_SCHEMA), where,
                            "has another schema than this version reads");
    if (line->has_previous) {
        (void)epg_verify_expect(self, line->chained, where,
                                "does not follow the line before it: an event was altered, added or removed there");
    }
    const char *previous = json_string_value(json_object_get(line->object, "previous"));
    self->ours = self->ours || line->has_previous;
    if (line->number == self->sealed + 1 && previous != NULL && strlen(previous) < sizeof self->after_seal) {
        memcpy(self->after_seal, previous, strlen(previous) + 1);
    }
    return EPG_OK;
}

/* run.json seals the events as they were when it was written; only a Run that was resumed has some after them. */
static void check_seal(epg_verifier *self, const json_t *ledger)
{
    const char *head = json_string_value(json_object_get(ledger, "head"));
    uint64_t count = self->history.event_count;
    (void)epg_verify_expect(self, count >= self->sealed, "events.jsonl", "holds fewer events than run.json sealed");
    if (count >= self->sealed) {
        (void)epg_verify_expect(self, same_text(head, count == self->sealed ? self->history.head : self->after_seal),
                                "events.jsonl", "is not as run.json sealed it");
    }
}

static epg_code check_ledger(epg_verifier *self, epg_error *err)
{
    bool torn = false;
    const json_t *ledger = json_object_get(json_object_get(self->history.record, "host"), "ledger");
    self->sealed = self->history.recorded;
    epg_error why = {.text = ""};
    epg_code code = epg_ledger_read(self->run, visit_line, self, NULL, NULL, &torn, &why);
    if (code == EPG_ERR_INVALID) {
        (void)epg_verify_expect(self, false, "events.jsonl", why.text);
        return EPG_OK;
    }
    if (code != EPG_OK) {
        return epg_fail(err, code, "%s", why.text);
    }
    (void)epg_verify_expect(self, !torn || !self->history.ended, "events.jsonl", "ends in a torn line");
    if (self->sealed > 0) {
        check_seal(self, ledger);
    }
    self->settled = self->history.record != NULL && self->history.event_count == self->sealed;
    return EPG_OK;
}

/* --- budget and submissions --- */

static void check_budget(epg_verifier *self)
{
    const epg_history *history = &self->history;
    uint64_t left = history->config.episode_budget;
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(facts->number, id);
        if (!epg_verify_expect(self, facts->indices.count <= left, id, "spent more Episodes than were left")) {
            return;
        }
        left -= facts->indices.count;
        (void)epg_verify_expect(self, facts->episodes_remaining == left, id,
                                "leaves another budget than the submissions before it add up to");
        uint64_t last = facts->indices.items[facts->indices.count - 1];
        (void)epg_verify_expect(self, last < history->config.episode_pool_size, id,
                                "names an Episode outside the pool");
    }
}

static bool same_indices(const json_t *list, const epg_indices *indices)
{
    if (json_array_size(list) != indices->count) {
        return false;
    }
    for (size_t i = 0; i < indices->count; i++) {
        uint64_t value = 0;
        if (!epg_json_is_u64(json_array_get(list, i), &value) || value != indices->items[i]) {
            return false;
        }
    }
    return true;
}

static void check_recorded_submission(epg_verifier *self, const json_t *entry, const epg_submission *facts)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(facts->number, id);
    EPG_AUTO_FREE char *where = epg_format("run.json %s", id);
    uint64_t left = 0;
    uint64_t used = 0;
    (void)epg_json_is_u64(json_object_get(entry, "episodes_remaining"), &left);
    (void)epg_json_is_u64(json_object_get(entry, "episodes_used"), &used);
    (void)epg_verify_expect(self, same_text(json_string_value(json_object_get(entry, "submission_id")), id), where,
                            "stands in another place than in the events");
    (void)epg_verify_expect(self, json_number_value(json_object_get(entry, "score")) == facts->score, where,
                            "has another score than the events tell");
    (void)epg_verify_expect(
        self, same_text(json_string_value(json_object_get(entry, "program_digest")), facts->program_digest), where,
        "has another Program digest than the events tell");
    (void)epg_verify_expect(self, same_indices(json_object_get(entry, "episode_indices"), &facts->indices), where,
                            "names other Episodes than the events");
    (void)epg_verify_expect(self, left == facts->episodes_remaining && used == facts->indices.count, where,
                            "counts its Episodes otherwise than the events");
}

static void check_candidates(epg_verifier *self)
{
    const epg_history *history = &self->history;
    const json_t *ids = json_object_get(history->record, "candidate_submission_ids");
    bool same = json_array_size(ids) == history->candidate_count;
    for (size_t i = 0; same && i < history->candidate_count; i++) {
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(history->candidates[i], id);
        same = same_text(json_string_value(json_array_get(ids, i)), id);
    }
    (void)epg_verify_expect(self, same, "run.json", "names other candidates than the events");
    const char *final = json_string_value(json_object_get(history->record, "final_submission_id"));
    char id[EPG_SUBMISSION_ID_TEXT] = "";
    if (history->selected > 0) {
        epg_submission_id(history->selected, id);
    }
    (void)epg_verify_expect(self, history->selected > 0 ? same_text(final, id) : final == NULL, "run.json",
                            "names another final submission than the events");
}

static void check_record(epg_verifier *self)
{
    const epg_history *history = &self->history;
    if (history->record == NULL) {
        (void)epg_verify_expect(
            self, !history->ended, "run.json",
            "is missing, though the events say that the Run ended; 'evopolicygym resume' writes it again");
        return;
    }
    if (self->ours && !epg_history_is_recorded(history)) {
        /* It is that of a Host before one that was cut off, or, where the Run ended, may have been put back. */
        (void)epg_verify_expect(self, !history->ended, "run.json",
                                "is older than the end that the events tell; 'evopolicygym resume' writes it again");
        return;
    }
    const json_t *list = json_object_get(history->record, "submissions");
    size_t at = 0;
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        if (facts->state == EPG_SUBMISSION_PUBLISHED) {
            check_recorded_submission(self, json_array_get(list, at), facts);
            at++;
        }
    }
    (void)epg_verify_expect(self, json_array_size(list) == at, "run.json",
                            "lists more submissions than were published");
    check_candidates(self);
    const char *reason = json_string_value(json_object_get(history->record, "terminal_reason"));
    if (history->terminal_reason != NULL) {
        (void)epg_verify_expect(self, same_text(reason, history->terminal_reason), "run.json",
                                "gives another terminal reason than the events");
    }
    if (history->request != NULL) {
        (void)epg_verify_expect(
            self,
            json_equal(json_object_get(history->request, "config"), json_object_get(history->record, "config")) == 1,
            "run.json", "has another config than the Run was started with");
    }
}

/* --- Validation and Assessment --- */

static void check_measure(epg_verifier *self, const json_t *report, const epg_history_measure *measure,
                          const char *where)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(measure->number, id);
    const epg_submission *facts = &self->history.submissions[measure->number - 1].facts;
    uint64_t failures = 0;
    (void)epg_json_is_u64(json_object_get(report, "policy_failures"), &failures);
    (void)epg_verify_expect(self, same_text(json_string_value(json_object_get(report, "submission_id")), id), where,
                            "measures another submission than the events tell");
    (void)epg_verify_expect(self, json_number_value(json_object_get(report, "score")) == measure->score, where,
                            "has another score than the events tell");
    (void)epg_verify_expect(self, failures == measure->policy_failures, where, "counts other failures than the events");
    (void)epg_verify_expect(
        self, same_text(json_string_value(json_object_get(report, "program_digest")), facts->program_digest), where,
        "has another Program digest than was charged");
}

static void check_reports(epg_verifier *self)
{
    const epg_history *history = &self->history;
    EPG_AUTO_JSON *validation = epg_report_read(self->run, "validation");
    EPG_AUTO_JSON *assessment = epg_report_read(self->run, "assessment");
    if (history->selected > 0 && history->config.validate) {
        const json_t *list = json_object_get(validation, "candidates");
        if (epg_verify_expect(self, json_array_size(list) == history->validation_count, "validation/report.json",
                              "is missing, or lists other candidates than were validated")) {
            for (size_t i = 0; i < history->validation_count; i++) {
                check_measure(self, json_array_get(list, i), &history->validation[i], "validation/report.json");
            }
        }
    }
    if (history->assessment.completed &&
        epg_verify_expect(self, assessment != NULL || !history->ended, "assessment/report.json", "is missing") &&
        assessment != NULL) {
        check_measure(self, assessment, &history->assessment, "assessment/report.json");
    }
}

static bool lost_its_events(const char *directory)
{
    EPG_AUTO_CLOSE int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && epg_run_directory_state(fd) == EPG_DIRECTORY_WITHOUT_EVENTS;
}

/* A record that can't be read at all is a finding, the only one. */
static void tell_unreadable(epg_verification *out, const char *what)
{
    static const char *const documents[] = {"config.json", "run.json", "events.jsonl"};
    const char *path = "record";
    for (size_t i = 0; i < EPG_COUNT(documents); i++) {
        path = strstr(what, documents[i]) != NULL ? documents[i] : path;
    }
    epg_evidence_note(&out->findings, path, "%s; nothing else can be checked", what);
    free(out->state);
    out->state = epg_strdup("damaged");
}

static epg_code verify_all(epg_verifier *self, epg_error *err)
{
    epg_error why = {.text = ""};
    epg_code code = epg_history_read(self->run, &self->history, &why);
    if (code == EPG_ERR_INVALID || code == EPG_ERR_LIMIT) {
        tell_unreadable(self->out, why.text);
        return EPG_OK;
    }
    if (code != EPG_OK) {
        return epg_fail(err, code, "%s", why.text);
    }
    self->out->sealed = self->history.created;
    self->out->state = epg_strdup(epg_history_state(&self->history, epg_run_is_held(self->run)));
    EPG_TRY(check_ledger(self, err));
    check_budget(self);
    check_record(self);
    check_reports(self);
    EPG_TRY(epg_verify_copies(self, err));
    return epg_verify_seals(self, err);
}

epg_code epg_verify(const char *directory, epg_verification *out, epg_error *err)
{
    EPG_CLEANUP(epg_verification_free) epg_verification verification = {0};
    EPG_AUTO_CLOSE int run = -1;
    if (lost_its_events(directory)) {
        tell_unreadable(&verification, "events.jsonl is missing, or no file");
    } else {
        EPG_TRY(epg_run_directory_open(directory, &run, err));
        epg_verifier self = {.run = run, .directory = directory, .out = &verification};
        epg_code code = verify_all(&self, err);
        epg_history_free(&self.history);
        EPG_TRY(code);
    }
    *out = verification;
    verification = (epg_verification){0};
    return EPG_OK;
}
