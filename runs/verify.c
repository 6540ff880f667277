#include "runs/verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/store.h"
#include "runs/ledger.h"
#include "runs/records.h"
#include "system/files.h"

void epg_verification_free(epg_verification *verification)
{
    epg_evidence_free(&verification->findings);
    free(verification->state);
    *verification = (epg_verification){0};
}

typedef struct verifier {
    int run;
    const char *directory;
    epg_verification *out;
    epg_history history;
    bool ours;                       /* the events are chained: no foreign Host wrote this Run */
    uint64_t sealed;                 /* events when run.json was written; 0: it does not tell */
    char after_seal[EPG_SHA256_HEX]; /* "previous" of the event after those: of a Run that went on */
} verifier;

/* One comparison; what does not hold becomes a finding. Returns `holds`. */
static bool expect(verifier *self, bool holds, const char *where, const char *what)
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
    verifier *self = context;
    const char *schema = json_string_value(json_object_get(line->object, "schema"));
    EPG_AUTO_FREE char *where = epg_format("events.jsonl line %llu", (unsigned long long)line->number);
    (void)expect(self, same_text(schema, EPG_EVENT_SCHEMA), where, "has another schema than this version reads");
    if (line->has_previous) {
        (void)expect(self, line->chained, where,
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
static void check_seal(verifier *self, const json_t *ledger)
{
    const char *head = json_string_value(json_object_get(ledger, "head"));
    uint64_t count = self->history.event_count;
    (void)expect(self, count >= self->sealed, "events.jsonl", "holds fewer events than run.json sealed");
    if (count >= self->sealed) {
        (void)expect(self, same_text(head, count == self->sealed ? self->history.head : self->after_seal),
                     "events.jsonl", "is not as run.json sealed it");
    }
}

static epg_code check_ledger(verifier *self, epg_error *err)
{
    bool torn = false;
    const json_t *ledger = json_object_get(json_object_get(self->history.record, "host"), "ledger");
    (void)epg_json_is_u64(json_object_get(ledger, "events"), &self->sealed);
    EPG_TRY(epg_ledger_read(self->run, visit_line, self, NULL, NULL, &torn, err));
    (void)expect(self, !torn || !self->history.ended, "events.jsonl", "ends in a torn line");
    if (self->sealed > 0) {
        check_seal(self, ledger);
    }
    return EPG_OK;
}

/* --- budget and submissions --- */

static void check_budget(verifier *self)
{
    const epg_history *history = &self->history;
    uint64_t left = history->config.episode_budget;
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(facts->number, id);
        if (!expect(self, facts->indices.count <= left, id, "spent more Episodes than were left")) {
            return;
        }
        left -= facts->indices.count;
        (void)expect(self, facts->episodes_remaining == left, id,
                     "leaves another budget than the submissions before it add up to");
        uint64_t last = facts->indices.items[facts->indices.count - 1];
        (void)expect(self, last < history->config.episode_pool_size, id, "names an Episode outside the pool");
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

static void check_recorded_submission(verifier *self, const json_t *entry, const epg_submission *facts)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(facts->number, id);
    EPG_AUTO_FREE char *where = epg_format("run.json %s", id);
    uint64_t left = 0;
    uint64_t used = 0;
    (void)epg_json_is_u64(json_object_get(entry, "episodes_remaining"), &left);
    (void)epg_json_is_u64(json_object_get(entry, "episodes_used"), &used);
    (void)expect(self, same_text(json_string_value(json_object_get(entry, "submission_id")), id), where,
                 "stands in another place than in the events");
    (void)expect(self, json_number_value(json_object_get(entry, "score")) == facts->score, where,
                 "has another score than the events tell");
    (void)expect(self, same_text(json_string_value(json_object_get(entry, "program_digest")), facts->program_digest),
                 where, "has another Program digest than the events tell");
    (void)expect(self, same_indices(json_object_get(entry, "episode_indices"), &facts->indices), where,
                 "names other Episodes than the events");
    (void)expect(self, left == facts->episodes_remaining && used == facts->indices.count, where,
                 "counts its Episodes otherwise than the events");
}

static void check_candidates(verifier *self)
{
    const epg_history *history = &self->history;
    const json_t *ids = json_object_get(history->record, "candidate_submission_ids");
    bool same = json_array_size(ids) == history->candidate_count;
    for (size_t i = 0; same && i < history->candidate_count; i++) {
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(history->candidates[i], id);
        same = same_text(json_string_value(json_array_get(ids, i)), id);
    }
    (void)expect(self, same, "run.json", "names other candidates than the events");
    const char *final = json_string_value(json_object_get(history->record, "final_submission_id"));
    char id[EPG_SUBMISSION_ID_TEXT] = "";
    if (history->selected > 0) {
        epg_submission_id(history->selected, id);
    }
    (void)expect(self, history->selected > 0 ? same_text(final, id) : final == NULL, "run.json",
                 "names another final submission than the events");
}

static void check_record(verifier *self)
{
    const epg_history *history = &self->history;
    if (history->record == NULL) {
        (void)expect(self, !history->ended, "run.json",
                     "is missing, though the events say that the Run ended; 'evopolicygym resume' writes it again");
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
    (void)expect(self, json_array_size(list) == at, "run.json", "lists more submissions than were published");
    check_candidates(self);
    const char *reason = json_string_value(json_object_get(history->record, "terminal_reason"));
    if (history->terminal_reason != NULL) {
        (void)expect(self, same_text(reason, history->terminal_reason), "run.json",
                     "gives another terminal reason than the events");
    }
    if (history->request != NULL) {
        (void)expect(
            self,
            json_equal(json_object_get(history->request, "config"), json_object_get(history->record, "config")) == 1,
            "run.json", "has another config than the Run was started with");
    }
}

/* --- Validation and Assessment --- */

static void check_measure(verifier *self, const json_t *report, const epg_history_measure *measure, const char *where)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(measure->number, id);
    const epg_submission *facts = &self->history.submissions[measure->number - 1].facts;
    uint64_t failures = 0;
    (void)epg_json_is_u64(json_object_get(report, "policy_failures"), &failures);
    (void)expect(self, same_text(json_string_value(json_object_get(report, "submission_id")), id), where,
                 "measures another submission than the events tell");
    (void)expect(self, json_number_value(json_object_get(report, "score")) == measure->score, where,
                 "has another score than the events tell");
    (void)expect(self, failures == measure->policy_failures, where, "counts other failures than the events");
    (void)expect(self, same_text(json_string_value(json_object_get(report, "program_digest")), facts->program_digest),
                 where, "has another Program digest than was charged");
}

static void check_reports(verifier *self)
{
    const epg_history *history = &self->history;
    EPG_AUTO_JSON *validation = epg_report_read(self->run, "validation");
    EPG_AUTO_JSON *assessment = epg_report_read(self->run, "assessment");
    if (history->selected > 0 && history->config.validate) {
        const json_t *list = json_object_get(validation, "candidates");
        if (expect(self, json_array_size(list) == history->validation_count, "validation/report.json",
                   "is missing, or lists other candidates than were validated")) {
            for (size_t i = 0; i < history->validation_count; i++) {
                check_measure(self, json_array_get(list, i), &history->validation[i], "validation/report.json");
            }
        }
    }
    if (history->assessment.completed &&
        expect(self, assessment != NULL || !history->ended, "assessment/report.json", "is missing") &&
        assessment != NULL) {
        check_measure(self, assessment, &history->assessment, "assessment/report.json");
    }
}

/* --- the git history and the copies --- */

static void check_snapshot(verifier *self, epg_store *store, const char *name, const char *digest, const char *commit)
{
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    EPG_CLEANUP(epg_store_entry_free) epg_store_entry entry = {0};
    epg_error why = {.text = ""};
    EPG_AUTO_FREE char *where = epg_format("history.git %s", name);
    bool sound = epg_store_load(store, name, &program, &why) == EPG_OK;
    if (expect(self, sound, where, sound ? "" : why.text)) {
        (void)expect(self, same_text(program.digest, digest), where, "is another Program than was charged");
    }
    if (commit[0] != '\0' && epg_store_find(store, name, &entry, NULL) == EPG_OK) {
        (void)expect(self, same_text(entry.id, commit), where, "is another commit than the events name");
    }
}

static void check_history(verifier *self)
{
    const epg_history *history = &self->history;
    (void)expect(self, history->request != NULL || !self->ours, "config.json", "is missing");
    if (history->request == NULL && !self->ours) {
        return; /* a foreign Host's Run has no git history */
    }
    EPG_AUTO_FREE char *path = epg_format("%s/history.git", self->directory);
    epg_store *store = NULL;
    epg_error why = {.text = ""};
    bool opened = epg_store_open(path, &store, &why) == EPG_OK;
    if (!expect(self, opened, "history.git", opened ? "" : why.text)) {
        return;
    }
    check_snapshot(self, store, "initial", history->initial_digest, "");
    for (size_t i = 0; i < history->submission_count; i++) {
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(i + 1, id);
        check_snapshot(self, store, id, history->submissions[i].facts.program_digest, history->submissions[i].commit);
    }
    epg_store_close(store);
}

static void check_initial(verifier *self)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    if (self->history.request == NULL && !self->ours) {
        return; /* a foreign Host need not keep it */
    }
    bool held = epg_dir_open_beneath(self->run, "initial/program", &directory, NULL) == EPG_OK &&
                epg_program_capture(directory, &epg_program_default_limits, &program, NULL) == EPG_OK;
    if (expect(self, held, "initial/program", "is missing or no Program")) {
        (void)expect(self, same_text(program.digest, self->history.initial_digest), "initial/program",
                     "is another Program than the Run started from");
    }
}

/* Nothing may pass for a submission that was not made. */
static void check_strangers(verifier *self)
{
    int fd = openat(self->run, "submissions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (entries == NULL) {
        epg_close_cleanup(&fd);
        return; /* what is missing is found one by one */
    }
    for (const struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        uint64_t number = epg_submission_number(entry->d_name);
        bool known = number >= 1 && number <= self->history.submission_count;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            EPG_AUTO_FREE char *where = epg_format("submissions/%s", entry->d_name);
            (void)expect(self, known, where, "is no submission of this Run");
        }
    }
    (void)closedir(entries);
}

static epg_code check_copies(verifier *self, epg_error *err)
{
    epg_publisher *publisher = NULL;
    epg_publisher_open_to_check(self->run, &publisher);
    epg_code code = EPG_OK;
    for (size_t i = 0; code == EPG_OK && i < self->history.submission_count; i++) {
        const epg_history_submission *one = &self->history.submissions[i];
        if (one->facts.state == EPG_SUBMISSION_PUBLISHED) {
            self->out->checks++;
            code = epg_publication_check(
                publisher, one->facts.number, one->facts.program_digest, &epg_program_default_limits,
                one->feedback_sha256[0] != '\0' ? one->feedback_sha256 : NULL, &self->out->findings, err);
        }
    }
    epg_publisher_close(publisher);
    return code;
}

epg_code epg_verify(const char *directory, epg_verification *out, epg_error *err)
{
    EPG_CLEANUP(epg_verification_free) epg_verification verification = {0};
    EPG_AUTO_CLOSE int run = -1;
    EPG_TRY(epg_run_directory_open(directory, &run, err));
    verifier self = {.run = run, .directory = directory, .out = &verification};
    epg_code code = epg_history_read(run, &self.history, err);
    if (code == EPG_OK) {
        code = check_ledger(&self, err);
    }
    if (code == EPG_OK) {
        check_budget(&self);
        check_record(&self);
        check_reports(&self);
        check_history(&self);
        check_initial(&self);
        check_strangers(&self);
        code = check_copies(&self, err);
        verification.state = epg_strdup(epg_history_state(&self.history, false));
    }
    epg_history_free(&self.history);
    if (code == EPG_OK) {
        *out = verification;
        verification = (epg_verification){0};
    }
    return code;
}
