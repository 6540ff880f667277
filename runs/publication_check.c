/* Comparing what is published with what the Host knows. Each copy is judged by what was recorded, so that an edit of
 * one does not accuse the other: feedback.json by the ledger, an artifact by feedback.json. The Host's copy is read
 * first and makes the list of what there is to be; where a file of it is not the one that was published, the record's
 * hash takes its place, or nothing does and the Agent's is not judged. A file of the Agent's is hashed only where the
 * list has one of its name and size, so whatever an Agent puts there costs a look each, no more. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/capture.h"
#include "runs/publication.h"
#include "system/files.h"
#include "system/tree.h"

enum { DOCUMENT_MAX = 256 * 1024 * 1024, PROGRAM_PART = sizeof "program" - 1 };

typedef struct known_file {
    char *path;
    char sha256[EPG_SHA256_HEX]; /* of what was published; empty: not known */
    off_t size;                  /* negative: not known */
    bool is_directory;
    bool belongs;  /* is one that the Host publishes */
    bool optional; /* may have been evicted: nobody can tell */
    bool seen;     /* in the Agent's copy */
} known_file;

typedef struct comparison {
    known_file *files; /* in byte order of paths */
    size_t count;
    bool unlisted;    /* the Host's feedback.json is not the one published: what it lists judges nothing */
    const char *base; /* the copy's path from the Run directory */
    epg_evidence_list *evidence;
} comparison;

static void comparison_cleanup(comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->files[i].path);
    }
    free(c->files);
}

static void note(const comparison *c, const char *path, const char *what)
{
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", c->base, path);
    epg_evidence_note(c->evidence, whole, "%s", what);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const known_file *)a)->path, ((const known_file *)b)->path);
}

/* Where in the list it is, or would be. */
static size_t place_of(const comparison *c, const char *path)
{
    size_t low = 0;
    for (size_t high = c->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(path, c->files[middle].path) > 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static known_file *find_known(const comparison *c, const char *path)
{
    size_t place = place_of(c, path);
    return place < c->count && strcmp(path, c->files[place].path) == 0 ? &c->files[place] : NULL;
}

static void make_room(comparison *c)
{
    if ((c->count & (c->count - 1)) == 0) {
        c->files = epg_grow_array(c->files, c->count == 0 ? 1 : 2 * c->count, sizeof *c->files);
    }
}

static void list_entry(comparison *c, const known_file *wanted)
{
    size_t place = place_of(c, wanted->path);
    known_file file = *wanted;
    if (place < c->count && strcmp(wanted->path, c->files[place].path) == 0) {
        file.path = c->files[place].path;
    } else {
        file.path = epg_strdup(wanted->path);
        make_room(c);
        memmove(&c->files[place + 1], &c->files[place], (c->count - place) * sizeof *c->files);
        c->count++;
    }
    c->files[place] = file;
}

/* Lists what is to be there whatever the Host's copy has, and the directories above it. */
static void expect(comparison *c, const known_file *wanted)
{
    EPG_AUTO_FREE char *above = epg_strdup(wanted->path);
    list_entry(c, wanted);
    for (char *slash = NULL; (slash = strrchr(above, '/')) != NULL;) {
        *slash = '\0';
        list_entry(c, &(known_file){.path = above, .is_directory = true, .belongs = true});
    }
}

/* Streams a file through the hash; false when it can't be read (an Agent may have taken the right away). */
static bool hash_file(int dir, const char *name, char out[EPG_SHA256_HEX])
{
    EPG_AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    uint8_t chunk[65536];
    uint8_t hash[EPG_SHA256_SIZE];
    if (fd < 0) {
        return false;
    }
    epg_sha256 *sum = epg_sha256_new();
    ssize_t got = 0;
    while ((got = read(fd, chunk, sizeof chunk)) > 0 || (got < 0 && errno == EINTR)) {
        epg_sha256_update(sum, chunk, got > 0 ? (size_t)got : 0);
    }
    epg_sha256_finish(sum, hash);
    epg_hex(hash, sizeof hash, out);
    return got == 0;
}

/* --- The Host's copy: everything but program/, which is measured by its digest. --- */

static epg_tree_step learn(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    comparison *c = context;
    (void)code;
    (void)err;
    if (strncmp(entry->path, "program", PROGRAM_PART) == 0 &&
        (entry->path[PROGRAM_PART] == '\0' || entry->path[PROGRAM_PART] == '/')) {
        return EPG_TREE_SKIP;
    }
    if (!S_ISREG(entry->info.st_mode) && !S_ISDIR(entry->info.st_mode)) {
        note(c, entry->path, "is neither a file nor a directory");
        return EPG_TREE_CONTINUE;
    }
    known_file file = {
        .path = epg_strdup(entry->path), .size = entry->info.st_size, .is_directory = S_ISDIR(entry->info.st_mode)};
    if (!file.is_directory && !hash_file(entry->dir, entry->name, file.sha256)) {
        note(c, entry->path, "can't be read");
    }
    make_room(c);
    c->files[c->count++] = file;
    return EPG_TREE_CONTINUE;
}

/* What a capture passes over was not submitted. */
static epg_tree_step find_excluded(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    const comparison *c = context;
    (void)code;
    (void)err;
    if (epg_capture_excludes(entry->name, S_ISDIR(entry->info.st_mode))) {
        EPG_AUTO_FREE char *path = epg_format("program/%s", entry->path);
        note(c, path, "was added");
        return EPG_TREE_SKIP;
    }
    return EPG_TREE_CONTINUE;
}

static void check_program(int host, const comparison *c, const char *digest, const epg_program_limits *limits)
{
    EPG_AUTO_CLOSE int dir = -1;
    epg_program program EPG_CLEANUP(epg_program_free) = {0};
    epg_error err = {0};
    if (epg_dir_open(host, "program", &dir, NULL) != EPG_OK) {
        note(c, "program", "is gone, or no directory");
    } else if (epg_program_capture(dir, limits != NULL ? limits : &epg_program_default_limits, &program, &err) !=
               EPG_OK) {
        note(c, "program", err.text);
    } else if (strcmp(program.digest, digest) != 0) {
        note(c, "program", "does not have the digest of what was submitted");
    } else {
        (void)epg_tree_walk(dir, find_excluded, (void *)(uintptr_t)c, NULL);
    }
}

/* Whether availability.json lets a bulk artifact be gone. */
static bool is_evicted(const epg_availability *availability, const char *name)
{
    for (size_t i = 0; i < availability->count; i++) {
        if (strcmp(availability->items[i].name, name) == 0) {
            return !availability->items[i].available;
        }
    }
    return false;
}

/* One artifact as feedback.json lists it. availability: NULL when that is not known. */
static void check_artifact(comparison *c, const json_t *entry, const epg_availability *availability, bool settled)
{
    const char *path = json_string_value(json_object_get(entry, "path"));
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *sha256 = json_string_value(json_object_get(entry, "sha256"));
    const char *retention = json_string_value(json_object_get(entry, "retention"));
    if (path == NULL || name == NULL || sha256 == NULL || strlen(sha256) != EPG_SHA256_HEX - 1) {
        note(c, "feedback.json", "lists an artifact without path, name and sha256");
        return;
    }
    known_file *file = find_known(c, path);
    bool there = file != NULL && !file->is_directory;
    bool may_be_gone = availability == NULL && retention != NULL && strcmp(retention, "bulk") == 0;
    if (availability != NULL && is_evicted(availability, name)) {
        if (file != NULL) {
            file->belongs = !settled;
        }
        return;
    }
    if (!there && !may_be_gone) {
        note(c, path, "is gone");
    } else if (there && strcmp(file->sha256, sha256) != 0) {
        note(c, path, "does not have the hash that feedback.json gives it");
    }
    uint64_t size = 0;
    bool sized = epg_json_is_u64(json_object_get(entry, "size"), &size) && size <= INT64_MAX;
    known_file published = {.path = (char *)(uintptr_t)path,
                            .size = sized ? (off_t)size : -1,
                            .belongs = true,
                            .optional = may_be_gone && !there};
    memcpy(published.sha256, sha256, sizeof published.sha256);
    expect(c, &published);
}

static bool same_item(const epg_bulk_item *item, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *sha256 = json_string_value(json_object_get(entry, "sha256"));
    uint64_t size = 0;
    return name != NULL && sha256 != NULL && strcmp(name, item->name) == 0 && strcmp(sha256, item->sha256) == 0 &&
           epg_json_is_u64(json_object_get(entry, "size"), &size) && size == item->size;
}

/* availability.json says nothing but which of feedback.json's bulk artifacts are there. */
static bool fits_artifacts(const epg_availability *availability, const json_t *artifacts)
{
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(artifacts); i++) {
        const json_t *entry = json_array_get(artifacts, i);
        const char *retention = json_string_value(json_object_get(entry, "retention"));
        if (retention != NULL && strcmp(retention, "bulk") == 0 &&
            (at == availability->count || !same_item(&availability->items[at++], entry))) {
            return false;
        }
    }
    return at == availability->count;
}

/* False: availability.json is not what was published. */
static bool check_availability(int host, comparison *c, uint64_t number, const json_t *artifacts, epg_availability *out)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_BUFFER expected = {0};
    EPG_AUTO_JSON *document = NULL;
    epg_error err = {0};
    if (epg_file_read(host, "availability.json", DOCUMENT_MAX, &text, &err) != EPG_OK ||
        epg_json_parse(epg_buffer_span(&text), "availability.json", &document, &err) != EPG_OK ||
        epg_availability_from_json(document, number, out, &err) != EPG_OK) {
        note(c, "availability.json", err.text);
        return false;
    }
    epg_availability_to_json(out, &expected);
    if (!fits_artifacts(out, artifacts) || !epg_span_equal(epg_buffer_span(&text), epg_buffer_span(&expected))) {
        note(c, "availability.json", "is not what the Host wrote of the artifacts that feedback.json lists");
        return false;
    }
    return true;
}

static void check_listed(int host, comparison *c, uint64_t number, const json_t *document, bool settled)
{
    epg_availability availability EPG_CLEANUP(epg_availability_free) = {0};
    const json_t *artifacts = json_object_get(document, "artifacts");
    bool known = check_availability(host, c, number, artifacts, &availability);
    if (!known) {
        expect(c, &(known_file){.path = (char *)(uintptr_t) "availability.json", .size = -1, .belongs = true});
    }
    for (size_t i = 0; i < json_array_size(artifacts); i++) {
        check_artifact(c, json_array_get(artifacts, i), known ? &availability : NULL, settled);
    }
    for (size_t i = 0; i < c->count; i++) {
        known_file *one = &c->files[i];
        bool listed = one->belongs || one->is_directory || strcmp(one->path, "feedback.json") == 0 ||
                      strcmp(one->path, "availability.json") == 0;
        if (!listed) {
            note(c, one->path, "was added");
        }
        one->belongs = listed;
    }
}

static void check_feedback(int host, comparison *c, uint64_t number, const char *feedback_sha256, bool settled)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_JSON *document = NULL;
    epg_error err = {0};
    const known_file *file = find_known(c, "feedback.json");
    if (feedback_sha256 != NULL && file != NULL && strcmp(file->sha256, feedback_sha256) != 0) {
        c->unlisted = true;
        note(c, "feedback.json", "does not have the hash that the ledger gives it");
    } else if (epg_file_read(host, "feedback.json", DOCUMENT_MAX, &text, &err) != EPG_OK ||
               epg_json_parse(epg_buffer_span(&text), "feedback.json", &document, &err) != EPG_OK) {
        c->unlisted = true;
        note(c, "feedback.json", err.text);
    }
    if (!c->unlisted) {
        check_listed(host, c, number, document, settled);
        return;
    }
    known_file published = {.path = (char *)(uintptr_t) "feedback.json", .size = -1, .belongs = true};
    if (feedback_sha256 != NULL) {
        memcpy(published.sha256, feedback_sha256, sizeof published.sha256);
    }
    expect(c, &published);
}

/* --- The Agent's copy --- */

static bool is_as_published(const known_file *file, const epg_tree_entry *entry)
{
    char sha256[EPG_SHA256_HEX];
    off_t size = entry->info.st_size;
    if (*file->sha256 == '\0') {
        return true; /* for all we know */
    }
    return (file->size < 0 ? size <= DOCUMENT_MAX : size == file->size) && hash_file(entry->dir, entry->name, sha256) &&
           strcmp(sha256, file->sha256) == 0;
}

static epg_tree_step compare(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    comparison *c = context;
    (void)code;
    (void)err;
    if (c->unlisted && strcmp(entry->path, "feedback.json") != 0) {
        return EPG_TREE_SKIP;
    }
    known_file *file = find_known(c, entry->path);
    if (file == NULL) {
        note(c, entry->path, "was added");
        return EPG_TREE_SKIP;
    }
    file->seen = true;
    if (file->is_directory ? !S_ISDIR(entry->info.st_mode) : !S_ISREG(entry->info.st_mode)) {
        note(c, entry->path, "was replaced by something else");
        return EPG_TREE_SKIP;
    }
    if (!file->is_directory && !is_as_published(file, entry)) {
        note(c, entry->path, "was edited");
    }
    return EPG_TREE_CONTINUE;
}

static void check_agent_copy(int copies, comparison *c, const char *id)
{
    EPG_AUTO_CLOSE int agent = -1;
    epg_error err = {0};
    if (epg_dir_open(copies, id, &agent, NULL) != EPG_OK) {
        epg_evidence_note(c->evidence, c->base, "the Agent's copy is gone, or no directory");
        return;
    }
    if (epg_tree_walk(agent, compare, c, &err) != EPG_OK) {
        epg_evidence_note(c->evidence, c->base, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        if (!c->files[i].seen && c->files[i].belongs && !c->files[i].optional) {
            note(c, c->files[i].path, "was removed");
        }
    }
}

epg_code epg_publication_check(epg_publisher *publisher, uint64_t number, const char *program_digest,
                               const epg_program_limits *limits, const char *feedback_sha256, bool settled,
                               epg_evidence_list *evidence, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_CLOSE int hosts = -1;
    EPG_AUTO_CLOSE int agents = -1;
    EPG_AUTO_CLOSE int host = -1;
    epg_submission_id(number, id);
    EPG_AUTO_FREE char *host_path = epg_format("%s/%s", epg_copies_path(EPG_COPY_HOST), id);
    EPG_AUTO_FREE char *agent_path = epg_format("%s/%s", epg_copies_path(EPG_COPY_AGENT), id);
    comparison c EPG_CLEANUP(comparison_cleanup) = {.base = host_path, .evidence = evidence};
    epg_error gone = {0};
    if (epg_publisher_open_copies(publisher, EPG_COPY_HOST, &hosts, evidence, &gone) != EPG_OK ||
        epg_publisher_open_copies(publisher, EPG_COPY_AGENT, &agents, evidence, &gone) != EPG_OK) {
        if (!epg_publisher_checks(publisher)) {
            return epg_fail(err, gone.code, "%s", gone.text);
        }
        epg_evidence_note(evidence, hosts < 0 ? host_path : agent_path, "%s", gone.text);
        if (hosts < 0) {
            return EPG_OK;
        }
    }
    if (epg_dir_open(hosts, id, &host, NULL) != EPG_OK) {
        epg_evidence_note(evidence, host_path, "the Host's copy is gone, or no directory");
        return EPG_OK;
    }
    epg_error walk_err = {0};
    if (epg_tree_walk(host, learn, &c, &walk_err) != EPG_OK) {
        epg_evidence_note(evidence, host_path, "%s", walk_err.text);
        return EPG_OK;
    }
    if (c.count > 1) {
        qsort(c.files, c.count, sizeof *c.files, by_path); /* a walk's order is by component, not by path */
    }
    check_program(host, &c, program_digest, limits);
    check_feedback(host, &c, number, feedback_sha256, settled);
    c.base = agent_path;
    if (agents >= 0) {
        check_agent_copy(agents, &c, id);
    }
    return EPG_OK;
}
