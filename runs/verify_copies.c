/* Programs and publications: the git history, the Host's copies, the Agent's. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/capture.h"
#include "programs/skill.h"
#include "programs/store.h"
#include "runs/feedback.h"
#include "runs/retention.h"
#include "runs/verify_parts.h"
#include "system/files.h"
#include "system/tree.h"

static bool same_text(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static void check_snapshot(epg_verifier *self, epg_store *store, const char *name, const char *digest,
                           const char *commit)
{
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    char claimed[EPG_DIGEST_TEXT];
    char id[EPG_OBJECT_ID_TEXT];
    epg_error why = {.text = ""};
    EPG_AUTO_FREE char *where = epg_format("history.git %s", name);
    bool sound = epg_store_load(store, name, &program, &why) == EPG_OK;
    if (epg_verify_expect(self, sound, where, sound ? "" : why.text)) {
        (void)epg_verify_expect(self, same_text(program.digest, digest), where, "is another Program than was charged");
    }
    if (commit[0] != '\0' && epg_store_claim(store, name, claimed, id, NULL) == EPG_OK) {
        (void)epg_verify_expect(self, same_text(id, commit), where, "is another commit than the events name");
    }
}

static bool known_tag(void *context, const char *tag)
{
    const epg_verifier *self = context;
    uint64_t number = epg_submission_number(tag);
    /* One that was taken and not charged is given back when the Run goes on. */
    uint64_t last = self->history.submission_count + (self->settled ? 0 : 1);
    return strcmp(tag, "initial") == 0 || (number >= 1 && number <= last);
}

static void history_fault(void *context, const char *path, const char *what)
{
    epg_verifier *self = context;
    EPG_AUTO_FREE char *where = epg_format("history.git/%s", path);
    epg_evidence_note(&self->out->findings, where, "%s", what);
}

static void check_note(epg_verifier *self, epg_store *store, const epg_submission *facts)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_CLEANUP(epg_store_entry_free) epg_store_entry entry = {0};
    EPG_AUTO_BUFFER text = {0};
    epg_submission_id(facts->number, id);
    epg_submission_note(facts, &text);
    EPG_AUTO_FREE char *where = epg_format("history.git %s", id);
    if (epg_store_find(store, id, &entry, NULL) == EPG_OK) {
        (void)epg_verify_expect(self, same_text(entry.note, epg_buffer_cstr(&text)), where,
                                "has another note than the Host wrote");
    }
}

static epg_code check_store(epg_verifier *self, epg_store *store, epg_error *err)
{
    const epg_history *history = &self->history;
    char newest[EPG_SUBMISSION_ID_TEXT] = "initial";
    check_snapshot(self, store, "initial", history->initial_digest, "");
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_history_submission *one = &history->submissions[i];
        epg_submission_id(i + 1, newest);
        check_snapshot(self, store, newest, one->facts.program_digest, one->commit);
        if (history->created && self->settled && one->facts.state == EPG_SUBMISSION_PUBLISHED) {
            check_note(self, store, &one->facts);
        }
    }
    epg_store_check check = {.known = known_tag,
                             .fault = history_fault,
                             .context = self,
                             .newest = newest,
                             .settled = self->settled,
                             .foreign = !history->created};
    return epg_store_check_all(store, &check, &self->out->checks, err);
}

static epg_code check_history(epg_verifier *self, epg_error *err)
{
    const epg_history *history = &self->history;
    (void)epg_verify_expect(self, history->request != NULL || !self->ours, "config.json", "is missing");
    if (history->request == NULL && !self->ours) {
        return EPG_OK; /* a foreign Host's Run has no git history */
    }
    EPG_AUTO_FREE char *path = epg_format("%s/history.git", self->directory);
    epg_store *store = NULL;
    epg_error why = {.text = ""};
    bool opened = epg_store_open(path, &store, &why) == EPG_OK;
    if (!epg_verify_expect(self, opened, "history.git", opened ? "" : why.text)) {
        return EPG_OK;
    }
    epg_code code = check_store(self, store, err);
    epg_store_close(store);
    return code;
}

typedef struct excluded {
    epg_verifier *self;
    const char *below;
} excluded;

/* What a capture passes over does not show in a digest. */
static epg_tree_step find_excluded(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    const excluded *what = context;
    (void)code;
    (void)err;
    if (!epg_capture_excludes(entry->name, S_ISDIR(entry->info.st_mode))) {
        return EPG_TREE_CONTINUE;
    }
    EPG_AUTO_FREE char *where = epg_format("%s/%s", what->below, entry->path);
    epg_evidence_note(&what->self->out->findings, where, "is not of the Host's making");
    return EPG_TREE_SKIP;
}

static void check_initial(epg_verifier *self)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    if (self->history.request == NULL && !self->ours) {
        return; /* a foreign Host need not keep it */
    }
    bool held = epg_dir_open_beneath(self->run, "initial/program", &directory, NULL) == EPG_OK &&
                epg_program_capture(directory, &epg_program_default_limits, &program, NULL) == EPG_OK;
    if (epg_verify_expect(self, held, "initial/program", "is missing or no Program")) {
        (void)epg_verify_expect(self, same_text(program.digest, self->history.initial_digest), "initial/program",
                                "is another Program than the Run started from");
        excluded what = {self, "initial/program"};
        (void)epg_tree_walk(directory, find_excluded, &what, NULL);
    }
}

/* Nothing may pass for a submission that was not made. */
static void check_strangers(epg_verifier *self)
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
            (void)epg_verify_expect(self, known, where, "is no submission of this Run");
        }
    }
    (void)closedir(entries);
}

/* The one document that the Host keeps advancing in the Agent's workspace must be the newest. */
static void check_advancing(epg_verifier *self, const char *name, epg_span expected)
{
    EPG_AUTO_CLOSE int feedback = -1;
    EPG_AUTO_BUFFER found = {0};
    EPG_AUTO_FREE char *where = epg_format("workspace/feedback/%s", name);
    bool same = epg_dir_open_beneath(self->run, "workspace/feedback", &feedback, NULL) == EPG_OK &&
                epg_file_read(feedback, name, expected.size, &found, NULL) == EPG_OK &&
                epg_span_equal(epg_buffer_span(&found), expected);
    (void)epg_verify_expect(self, same, where, "is missing, or not as the Host left it");
}

static void check_feedback(epg_verifier *self, epg_publisher *publisher)
{
    const epg_history *history = &self->history;
    const epg_submission *last = NULL;
    epg_retention *retention = epg_retention_new(history->config.bulk_feedback_retention_bytes);
    bool all = true; /* what failed in the middle of its publication may have left them behind */
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        all = all && (facts->state != EPG_SUBMISSION_FAILED || !same_text(facts->failure, "publication_failed"));
        if (facts->state == EPG_SUBMISSION_PUBLISHED) {
            last = facts;
            all = all && epg_retention_learn(retention, publisher, facts->number, NULL) == EPG_OK;
        }
    }
    if (last != NULL && all) {
        EPG_AUTO_BUFFER latest = {0};
        EPG_AUTO_BUFFER kept = {0};
        epg_latest_to_json(last, &latest);
        epg_retention_to_json(retention, &kept);
        check_advancing(self, "latest.json", epg_buffer_span(&latest));
        check_advancing(self, "retention.json", epg_buffer_span(&kept));
    }
    epg_retention_free(retention);
}

static epg_code check_publications(epg_verifier *self, epg_error *err)
{
    epg_publisher *publisher = NULL;
    epg_publisher_open_to_check(self->run, &publisher);
    epg_code code = EPG_OK;
    for (size_t i = 0; code == EPG_OK && i < self->history.submission_count; i++) {
        const epg_history_submission *one = &self->history.submissions[i];
        if (one->facts.state == EPG_SUBMISSION_PUBLISHED) {
            self->out->checks++;
            code = epg_publication_check(publisher, one->facts.number, one->facts.program_digest,
                                         &epg_program_default_limits,
                                         one->feedback_sha256[0] != '\0' ? one->feedback_sha256 : NULL, self->settled,
                                         &self->out->findings, err);
        }
    }
    if (code == EPG_OK && self->history.created && self->settled) {
        check_feedback(self, publisher);
    }
    epg_publisher_close(publisher);
    return code;
}

static void check_skills(epg_verifier *self)
{
    const json_t *list = json_object_get(self->history.request, "skills");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "name"));
        const char *digest = json_string_value(json_object_get(json_array_get(list, i), "digest"));
        EPG_CLEANUP(epg_skill_free) epg_skill skill = {0};
        EPG_AUTO_FREE char *where = epg_format("workspace/skills/%s", name != NULL ? name : "");
        EPG_AUTO_FREE char *path = epg_format("%s/%s", self->directory, where);
        bool same = epg_skill_capture(path, &skill, NULL) == EPG_OK && same_text(skill.files.digest, digest);
        (void)epg_verify_expect(self, same, where, "is missing, or another skill than the Agent was given");
        EPG_AUTO_CLOSE int directory = -1;
        if (epg_dir_open_beneath(self->run, where, &directory, NULL) == EPG_OK) {
            excluded what = {self, where};
            (void)epg_tree_walk(directory, find_excluded, &what, NULL);
        }
    }
}

epg_code epg_verify_copies(epg_verifier *self, epg_error *err)
{
    EPG_TRY(check_history(self, err));
    check_initial(self);
    check_strangers(self);
    check_skills(self);
    return check_publications(self, err);
}
