#include <stdlib.h>
#include <string.h>

#include "programs/store_internal.h"
#include "system/tree.h"

/* Bounds on what a store that was tampered with can make us read; a Program's own limits are long before them. */
static const epg_program_limits load_limits = {
    .files = 1000000,
    .total_bytes = UINT64_C(1) << 32,
    .file_bytes = INT32_MAX,
};

epg_code epg_store_claimed_digest(const git_commit *commit, char digest[EPG_DIGEST_TEXT], epg_error *err)
{
    static const char key[] = "\nProgram-Digest: ";
    const char *message = git_commit_message_raw(commit);
    const char *found = message != NULL ? strstr(message, key) : NULL;
    char text[EPG_DIGEST_TEXT] = "";
    if (found != NULL) {
        size_t size = strcspn(found + sizeof key - 1, "\n");
        memcpy(text, found + sizeof key - 1, size < sizeof text ? size : sizeof text - 1);
    }
    if (!epg_digest_text_valid(text)) {
        return epg_fail(err, EPG_ERR_INVALID, "a commit of the history has no Program-Digest");
    }
    memcpy(digest, text, sizeof text);
    return EPG_OK;
}

typedef struct loading {
    epg_store *store;
    epg_program program;
    size_t capacity;
} loading;

static epg_code load_blob(loading *self, const git_oid *id, const char *path, epg_error *err)
{
    size_t size = 0;
    git_object_t type = GIT_OBJECT_INVALID;
    EPG_AUTO_GIT(git_odb_object) *object = NULL;
    if (git_odb_read_header(&size, &type, self->store->odb, id) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read \"%s\"", path);
    }
    if (self->program.count >= load_limits.files || size > load_limits.file_bytes ||
        size > load_limits.total_bytes - self->program.total_bytes) {
        return epg_fail(err, EPG_ERR_LIMIT, "it is larger than any Program");
    }
    if (git_odb_read(&object, self->store->odb, id) != 0 || git_odb_object_type(object) != GIT_OBJECT_BLOB) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read \"%s\"", path);
    }
    if (self->program.count == self->capacity) {
        self->capacity = self->capacity == 0 ? 16 : self->capacity * 2;
        self->program.files = epg_grow_array(self->program.files, self->capacity, sizeof *self->program.files);
    }
    epg_program_file *file = &self->program.files[self->program.count++];
    *file = (epg_program_file){.path = epg_strdup(path)};
    (void)epg_buffer_append(&file->content, git_odb_object_data(object), git_odb_object_size(object));
    self->program.total_bytes += file->content.size;
    return EPG_OK;
}

static epg_code load_tree(loading *self, const git_oid *id, epg_buffer *path, unsigned depth, epg_error *err)
{
    EPG_AUTO_GIT(git_tree) *tree = NULL;
    if (depth > EPG_TREE_DEPTH) {
        return epg_fail(err, EPG_ERR_LIMIT, "it is nested deeper than any Program");
    }
    if (git_tree_lookup(&tree, self->store->repo, id) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the tree \"%s\"", epg_buffer_cstr(path));
    }
    size_t before = path->size;
    for (size_t i = 0; i < git_tree_entrycount(tree); i++) {
        const git_tree_entry *entry = git_tree_entry_byindex(tree, i);
        (void)epg_buffer_format(path, "%s%s", before > 0 ? "/" : "", git_tree_entry_name(entry));
        git_filemode_t mode = git_tree_entry_filemode_raw(entry);
        if (mode == GIT_FILEMODE_BLOB) {
            EPG_TRY(load_blob(self, git_tree_entry_id(entry), epg_buffer_cstr(path), err));
        } else if (mode == GIT_FILEMODE_TREE) {
            EPG_TRY(load_tree(self, git_tree_entry_id(entry), path, depth + 1, err));
        } else {
            return epg_fail(err, EPG_ERR_INVALID, "\"%s\" is neither a file nor a directory", epg_buffer_cstr(path));
        }
        path->size = before;
    }
    return EPG_OK;
}

static epg_code lookup(epg_store *store, const char *name, git_commit **out, epg_error *err)
{
    git_oid id;
    EPG_TRY(epg_store_get_tag(store, name, &id, err));
    if (git_commit_lookup(out, store->repo, &id) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the snapshot \"%s\"", name);
    }
    return EPG_OK;
}

static epg_code load(loading *self, const char *name, epg_error *err)
{
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    EPG_AUTO_BUFFER path = {0};
    char digest[EPG_DIGEST_TEXT];
    EPG_TRY(lookup(self->store, name, &commit, err));
    EPG_TRY(epg_store_claimed_digest(commit, digest, err));
    epg_code code = load_tree(self, git_commit_tree_id(commit), &path, 1, err);
    if (code == EPG_OK) {
        code = epg_program_seal(&self->program, &load_limits, err);
    }
    if (code != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_INVALID, "the snapshot \"%s\" was altered", name);
    }
    if (strcmp(digest, self->program.digest) != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "the snapshot \"%s\" was altered: its digest is another", name);
    }
    return EPG_OK;
}

epg_code epg_store_load(epg_store *store, const char *name, epg_program *out, epg_error *err)
{
    loading self = {.store = store};
    epg_code code = load(&self, name, err);
    if (code != EPG_OK) {
        epg_program_free(&self.program);
        return code;
    }
    *out = self.program;
    return EPG_OK;
}

void epg_store_entry_free(epg_store_entry *entry)
{
    free(entry->subject);
    free(entry->note);
    *entry = (epg_store_entry){0};
}

/* All but the note. */
static epg_code describe(git_commit *commit, const char *name, epg_store_entry *out, epg_error *err)
{
    char digest[EPG_DIGEST_TEXT];
    EPG_TRY(epg_store_claimed_digest(commit, digest, err));
    const char *message = git_commit_message_raw(commit);
    *out = (epg_store_entry){.time_unix_seconds = git_commit_time(commit)};
    memcpy(out->digest, digest, sizeof digest);
    memcpy(out->name, name, strlen(name) + 1); /* checked by its lookup */
    (void)git_oid_tostr(out->id, sizeof out->id, git_commit_id(commit));
    out->subject = epg_strndup(message, strcspn(message, "\n"));
    return EPG_OK;
}

epg_code epg_store_claim(epg_store *store, const char *name, char digest[EPG_DIGEST_TEXT], char id[EPG_OBJECT_ID_TEXT],
                         epg_error *err)
{
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    EPG_TRY(lookup(store, name, &commit, err));
    EPG_TRY(epg_store_claimed_digest(commit, digest, err));
    (void)git_oid_tostr(id, EPG_OBJECT_ID_TEXT, git_commit_id(commit));
    return EPG_OK;
}

epg_code epg_store_find(epg_store *store, const char *name, epg_store_entry *out, epg_error *err)
{
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    EPG_AUTO_GIT(git_note) *note = NULL;
    EPG_TRY(epg_store_write_notes(store, err));
    EPG_TRY(lookup(store, name, &commit, err));
    int failed = git_note_read(&note, store->repo, EPG_STORE_NOTES, git_commit_id(commit));
    if (failed != 0 && failed != GIT_ENOTFOUND) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the note on \"%s\"", name);
    }
    EPG_TRY(describe(commit, name, out, err));
    out->note = note != NULL ? epg_strdup(git_note_message(note)) : NULL;
    return EPG_OK;
}

/* Listing all: the tags are sorted by name, and the notes' tree is read once. */

typedef struct tag {
    char *name;
    git_oid id;
} tag;

typedef struct note {
    git_oid on;
    git_oid text;
} note;

typedef struct listing {
    tag *tags;
    size_t count;
    note *notes;
    size_t note_count;
} listing;

static void listing_free(listing *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->tags[i].name);
    }
    free(list->tags);
    free(list->notes);
}

static int compare_tags(const void *a, const void *b)
{
    return strcmp(((const tag *)a)->name, ((const tag *)b)->name);
}

static int compare_notes(const void *a, const void *b)
{
    return git_oid_cmp(&((const note *)a)->on, &((const note *)b)->on);
}

static epg_code list_tags(epg_store *store, listing *list, epg_error *err)
{
    EPG_AUTO_GIT(git_reference_iterator) *iterator = NULL;
    size_t room = 0;
    int failed = git_reference_iterator_glob_new(&iterator, store->repo, EPG_STORE_TAGS "*");
    while (failed == 0) {
        EPG_AUTO_GIT(git_reference) *reference = NULL;
        failed = git_reference_next(&reference, iterator);
        const git_oid *id = failed == 0 ? git_reference_target(reference) : NULL;
        if (id == NULL || epg_store_check_name(git_reference_shorthand(reference), NULL) != EPG_OK) {
            continue; /* a tag that someone else made */
        }
        if (list->count == room) {
            room = room == 0 ? 64 : room * 2;
            list->tags = epg_grow_array(list->tags, room, sizeof *list->tags);
        }
        list->tags[list->count++] = (tag){epg_strdup(git_reference_shorthand(reference)), *id};
    }
    if (failed != GIT_ITEROVER) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't list the history's snapshots");
    }
    if (list->count > 1) {
        qsort(list->tags, list->count, sizeof *list->tags, compare_tags);
    }
    return EPG_OK;
}

static epg_code list_notes(epg_store *store, listing *list, epg_error *err)
{
    EPG_AUTO_GIT(git_note_iterator) *iterator = NULL;
    size_t room = 0;
    int failed = git_note_iterator_new(&iterator, store->repo, EPG_STORE_NOTES);
    if (failed == GIT_ENOTFOUND) {
        return EPG_OK;
    }
    while (failed == 0) {
        note next;
        failed = git_note_next(&next.text, &next.on, iterator);
        if (failed != 0) {
            break;
        }
        if (list->note_count == room) {
            room = room == 0 ? 64 : room * 2;
            list->notes = epg_grow_array(list->notes, room, sizeof *list->notes);
        }
        list->notes[list->note_count++] = next;
    }
    if (failed != GIT_ITEROVER) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't list the history's notes");
    }
    if (list->note_count > 1) {
        qsort(list->notes, list->note_count, sizeof *list->notes, compare_notes);
    }
    return EPG_OK;
}

static epg_code read_note(epg_store *store, const listing *list, const git_oid *id, char **out, epg_error *err)
{
    note key = {.on = *id};
    const note *found =
        list->note_count > 0 ? bsearch(&key, list->notes, list->note_count, sizeof key, compare_notes) : NULL;
    EPG_AUTO_GIT(git_odb_object) *object = NULL;
    if (found == NULL) {
        return EPG_OK;
    }
    if (git_odb_read(&object, store->odb, &found->text) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read a note of the history");
    }
    *out = epg_strndup(git_odb_object_data(object), git_odb_object_size(object));
    return EPG_OK;
}

static epg_code visit_one(epg_store *store, const listing *list, const tag *which, epg_store_visit *visit,
                          void *context, epg_error *err)
{
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    EPG_CLEANUP(epg_store_entry_free) epg_store_entry entry = {0};
    if (git_commit_lookup(&commit, store->repo, &which->id) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the snapshot \"%s\"", which->name);
    }
    EPG_TRY(describe(commit, which->name, &entry, err));
    EPG_TRY(read_note(store, list, &which->id, &entry.note, err));
    return visit(context, &entry, err);
}

epg_code epg_store_each(epg_store *store, epg_store_visit *visit, void *context, epg_error *err)
{
    EPG_CLEANUP(listing_free) listing list = {0};
    EPG_TRY(epg_store_write_notes(store, err));
    EPG_TRY(list_tags(store, &list, err));
    EPG_TRY(list_notes(store, &list, err));
    for (size_t i = 0; i < list.count; i++) {
        EPG_TRY(visit_one(store, &list, &list.tags[i], visit, context, err));
    }
    return EPG_OK;
}

static epg_code tree_of(epg_store *store, const char *name, git_tree **out, epg_error *err)
{
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    EPG_TRY(lookup(store, name, &commit, err));
    if (git_commit_tree(out, commit) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the tree of the snapshot \"%s\"", name);
    }
    return EPG_OK;
}

static int print_line(const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *line, void *context)
{
    (void)delta;
    (void)hunk;
    epg_buffer *out = context;
    bool has_mark = line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
                    line->origin == GIT_DIFF_LINE_DELETION;
    bool fits = !has_mark || epg_buffer_byte(out, (uint8_t)line->origin);
    return fits && epg_buffer_append(out, line->content, line->content_len) ? 0 : GIT_EUSER;
}

epg_code epg_store_diff(epg_store *store, const char *from, const char *to, epg_buffer *out, epg_error *err)
{
    EPG_AUTO_GIT(git_tree) *old_tree = NULL;
    EPG_AUTO_GIT(git_tree) *new_tree = NULL;
    EPG_AUTO_GIT(git_diff) *diff = NULL;
    EPG_TRY(tree_of(store, from, &old_tree, err));
    EPG_TRY(tree_of(store, to, &new_tree, err));
    git_diff_options options;
    git_diff_find_options find;
    (void)git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    (void)git_diff_find_options_init(&find, GIT_DIFF_FIND_OPTIONS_VERSION);
    options.flags |= GIT_DIFF_INDENT_HEURISTIC;
    find.flags = GIT_DIFF_FIND_RENAMES;
    EPG_AUTO_BUFFER text = {.limit = out->limit > out->size ? out->limit - out->size : out->limit};
    if (git_diff_tree_to_tree(&diff, store->repo, old_tree, new_tree, &options) != 0 ||
        git_diff_find_similar(diff, &find) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't compare the snapshots \"%s\" and \"%s\"", from, to);
    }
    int failed = git_diff_print(diff, GIT_DIFF_FORMAT_PATCH, print_line, &text);
    if (text.overflow || (failed == 0 && !epg_buffer_append_span(out, epg_buffer_span(&text)))) {
        return epg_fail(err, EPG_ERR_LIMIT, "the snapshots \"%s\" and \"%s\" differ in too much", from, to);
    }
    return failed == 0
               ? EPG_OK
               : epg_store_fail(err, EPG_ERR_INVALID, "can't compare the snapshots \"%s\" and \"%s\"", from, to);
}
