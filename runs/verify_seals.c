/* Documents that the events seal, and files that nobody should have put there.
 *
 * Every file of a Run is one of four kinds: checked by what it holds (events.jsonl, the git history, Programs,
 * publications; verify.c and verify_copies.c), sealed, unsealed (the list below), or a stray. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/records.h"
#include "runs/seal.h"
#include "runs/verify_parts.h"
#include "system/files.h"
#include "system/tree.h"

enum { RUN_RECORD_MAX = 1024 * 1024 * 1024 };

/* Directories whose content is checked elsewhere, or is nobody's but the Agent's. */
static const char *const passed_over[] = {
    "history.git",        /* verify_copies.c */
    "initial/program",    /* by its digest */
    "submissions",        /* copy by copy */
    "workspace/program",  /* the Agent's: unsealed */
    "workspace/analysis", /* the Agent's: unsealed */
    "displaced",          /* what the Agent had put in the Host's way: unsealed */
};

/* Those that a Host uses while it runs; empty or gone when it is done. An interrupted one leaves them to the next. */
static const char *const working[] = {"records", "staging", "agent/home"};

/* Checked by what they hold, or (the lock) unsealed. */
static const char *const known[] = {"events.jsonl", "run.json", "lock", "workspace/feedback/latest.json",
                                    "workspace/feedback/retention.json"};

static bool is_one_of(const char *path, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(path, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool grows(const epg_verifier *self, const char *path)
{
    static const char *const logs[] = {"agent/stderr.log", "agent/stdout.log", "agent/transcript.jsonl",
                                       "evidence.jsonl"};
    return !self->settled && is_one_of(path, logs, EPG_COUNT(logs));
}

/* The Agent's workspace beside what the Host puts there is its own. */
static bool is_agents_own(const char *path)
{
    static const char *const hosts[] = {"workspace/feedback", "workspace/skills"};
    for (size_t i = 0; i < EPG_COUNT(hosts); i++) {
        size_t size = strlen(hosts[i]);
        if (epg_starts_with(path, hosts[i]) && (path[size] == '\0' || path[size] == '/')) {
            return false;
        }
    }
    return epg_starts_with(path, "workspace/");
}

/* A file that no seal and no other check covers. */
static void judge_unsealed(epg_verifier *self, const char *path)
{
    static const char *const late[] = {"agent/", "evidence.jsonl", "traces/", "validation/", "assessment/"};
    bool recorded = false;
    for (size_t i = 0; i < EPG_COUNT(late); i++) {
        recorded = recorded || epg_starts_with(path, late[i]);
    }
    bool left_by_death = strstr(path, EPG_FILE_TEMPORARY) != NULL;
    if (self->settled || (!recorded && !left_by_death)) {
        epg_evidence_note(&self->out->findings, path, "is not of the Host's making");
    }
}

/* A directory that holds one for each skill or submission; those that there should be are checked elsewhere. */
static bool is_known_below(const epg_verifier *self, const char *path, bool *judged)
{
    static const char skills[] = "workspace/skills/";
    static const char copies[] = "workspace/feedback/submissions/";
    *judged = true;
    if (epg_starts_with(path, copies)) {
        uint64_t number = epg_submission_number(path + sizeof copies - 1);
        return number >= 1 && number <= self->history.submission_count;
    }
    const json_t *list = json_object_get(self->history.request, "skills");
    for (size_t i = 0; epg_starts_with(path, skills) && i < json_array_size(list); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "name"));
        if (name != NULL && strcmp(path + sizeof skills - 1, name) == 0) {
            return true;
        }
    }
    *judged = epg_starts_with(path, skills);
    return false;
}

static epg_tree_step visit(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    epg_verifier *self = context;
    (void)code;
    (void)err;
    if (S_ISDIR(entry->info.st_mode)) {
        bool judged = false;
        bool there = is_known_below(self, entry->path, &judged);
        if (judged) {
            (void)epg_verify_expect(self, there, entry->path, "is not of the Host's making");
            return EPG_TREE_SKIP;
        }
        bool skip =
            is_one_of(entry->path, passed_over, EPG_COUNT(passed_over)) || is_agents_own(entry->path) ||
            ((!self->settled || self->history.interrupted) && is_one_of(entry->path, working, EPG_COUNT(working)));
        return skip ? EPG_TREE_SKIP : EPG_TREE_CONTINUE;
    }
    self->out->checks++;
    if (!is_one_of(entry->path, known, EPG_COUNT(known)) && epg_seal_find(&self->history, entry->path) == NULL &&
        !is_agents_own(entry->path)) {
        judge_unsealed(self, entry->path);
    }
    return EPG_TREE_CONTINUE;
}

static void check_documents(epg_verifier *self)
{
    const epg_history *history = &self->history;
    for (size_t i = 0; i < history->seal_count; i++) {
        const epg_history_seal *seal = &history->seals[i];
        if (epg_seal_find(history, seal->path) == seal && (self->settled || !seal->reopened)) {
            const char *what = epg_seal_check(self->run, seal, grows(self, seal->path));
            (void)epg_verify_expect(self, what == NULL, seal->path, what);
        }
    }
}

static void check_record(epg_verifier *self)
{
    EPG_AUTO_BUFFER text = {0};
    if (self->history.record != NULL) {
        bool holds = epg_file_read(self->run, "run.json", RUN_RECORD_MAX, &text, NULL) == EPG_OK &&
                     epg_run_record_seal_holds(epg_buffer_span(&text));
        (void)epg_verify_expect(self, holds, "run.json", "is not as it sealed itself: it was altered");
    }
}

epg_code epg_verify_seals(epg_verifier *self, epg_error *err)
{
    if (!self->history.created) {
        return EPG_OK;
    }
    check_documents(self);
    check_record(self);
    return epg_tree_walk(self->run, visit, self, err);
}
