/* Notes lie in a tree of their own, fanned out by the first two digits of the commit's id (a form that git reads and
 * keeps), so that the cost of more does not grow with their number. Even so, one note makes two new trees, a commit, a
 * pack and a reference: notes wait until there are some, and are written together. Entries that git itself wrote
 * without fan-out are kept, but for those of the commits in hand. */
#include <stdlib.h>
#include <string.h>

#include "programs/store_internal.h"
#include "system/files.h"

enum { FAN_OUT = 2, ID_DIGITS = EPG_OBJECT_ID_TEXT - 1 };

struct epg_store_note_waiting {
    char on[EPG_OBJECT_ID_TEXT];
    char *text;
};

/* An entry to be put into a tree, in place of what is there under its name. */
typedef struct put_entry {
    unsigned mode;
    epg_span name;
    git_oid id;
} put_entry;

/* git's order: a directory counts as "name/". */
static int compare_names(epg_span a, bool a_is_tree, epg_span b, bool b_is_tree)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = memcmp(a.data, b.data, common);
    if (order != 0) {
        return order;
    }
    int a_next = a.size > common ? a.data[common] : a_is_tree ? '/' : 0;
    int b_next = b.size > common ? b.data[common] : b_is_tree ? '/' : 0;
    return a_next - b_next;
}

static int compare_waiting(const void *a, const void *b)
{
    return strcmp(((const epg_store_note_waiting *)a)->on, ((const epg_store_note_waiting *)b)->on);
}

static bool is_waiting(const epg_store *store, epg_span name)
{
    epg_store_note_waiting key = {.on = ""};
    if (name.size != ID_DIGITS) {
        return false;
    }
    memcpy(key.on, name.data, ID_DIGITS);
    return bsearch(&key, store->notes, store->note_count, sizeof key, compare_waiting) != NULL;
}

static bool is_put(const put_entry *puts, size_t count, epg_span name)
{
    for (size_t i = 0; i < count; i++) {
        if (epg_span_equal(puts[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* Puts the tree that is `old` (NULL: empty) with the entries `puts`, which are in git's order, in place of their like,
 * and without what stands there, not fanned out, for a commit whose note is waiting. */
static epg_code put_merged_tree(epg_store *store, const git_tree *old, const put_entry *puts, size_t count, git_oid *id,
                                epg_error *err)
{
    EPG_AUTO_BUFFER tree = {0};
    size_t next = 0;
    size_t old_count = old != NULL ? git_tree_entrycount(old) : 0;
    for (size_t i = 0; i < old_count; i++) {
        const git_tree_entry *entry = git_tree_entry_byindex(old, i);
        epg_span name = epg_span_text(git_tree_entry_name(entry));
        unsigned mode = git_tree_entry_filemode_raw(entry);
        if (is_waiting(store, name) || is_put(puts, count, name)) {
            continue;
        }
        for (; next < count && compare_names(puts[next].name, puts[next].mode == GIT_FILEMODE_TREE, name,
                                             mode == GIT_FILEMODE_TREE) < 0;
             next++) {
            epg_store_tree_entry(&tree, puts[next].mode, puts[next].name, &puts[next].id);
        }
        epg_store_tree_entry(&tree, mode, name, git_tree_entry_id(entry));
    }
    for (; next < count; next++) {
        epg_store_tree_entry(&tree, puts[next].mode, puts[next].name, &puts[next].id);
    }
    return epg_store_put(store, GIT_OBJECT_TREE, epg_buffer_span(&tree), id, err);
}

/* The notes as they are; *root stays NULL when there are none. */
static epg_code read_root(epg_store *store, git_oid *head, git_tree **root, epg_error *err)
{
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    epg_code code = epg_store_get_ref(store, EPG_STORE_NOTES, head, err);
    if (code == EPG_ERR_NOT_FOUND) {
        return EPG_OK;
    }
    EPG_TRY(code);
    if (git_commit_lookup(&commit, store->repo, head) != 0 || git_commit_tree(root, commit) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the history's notes");
    }
    return EPG_OK;
}

/* Puts the directory of the `count` waiting notes from `first` on, which share their first digits. */
static epg_code put_fan(epg_store *store, const git_tree *root, const epg_store_note_waiting *first, size_t count,
                        git_oid *id, epg_error *err)
{
    EPG_AUTO_GIT(git_tree) *fan = NULL;
    EPG_AUTO_FREE char *digits = epg_strndup(first->on, FAN_OUT);
    const git_tree_entry *entry = root != NULL ? git_tree_entry_byname(root, digits) : NULL;
    if (entry != NULL && git_tree_lookup(&fan, store->repo, git_tree_entry_id(entry)) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the history's notes");
    }
    EPG_AUTO_FREE put_entry *puts = epg_alloc_array(count, sizeof *puts);
    for (size_t i = 0; i < count; i++) {
        puts[i].mode = GIT_FILEMODE_BLOB;
        puts[i].name = epg_span_of(first[i].on + FAN_OUT, ID_DIGITS - FAN_OUT);
        EPG_TRY(epg_store_put(store, GIT_OBJECT_BLOB, epg_span_text(first[i].text), &puts[i].id, err));
    }
    return put_merged_tree(store, fan, puts, count, id, err);
}

static epg_code put_notes_tree(epg_store *store, const git_tree *root, git_oid *id, epg_error *err)
{
    EPG_AUTO_FREE put_entry *puts = epg_alloc_array(store->note_count, sizeof *puts);
    size_t count = 0;
    for (size_t i = 0; i < store->note_count;) {
        const epg_store_note_waiting *first = &store->notes[i];
        size_t run = 1;
        while (i + run < store->note_count && strncmp(store->notes[i + run].on, first->on, FAN_OUT) == 0) {
            run++;
        }
        EPG_TRY(put_fan(store, root, first, run, &puts[count].id, err));
        puts[count].mode = GIT_FILEMODE_TREE;
        puts[count++].name = epg_span_of(first->on, FAN_OUT);
        i += run;
    }
    return put_merged_tree(store, root, puts, count, id, err);
}

static epg_code put_notes(epg_store *store, git_oid *id, bool *known, epg_error *err)
{
    EPG_AUTO_GIT(git_tree) *root = NULL;
    git_oid head;
    git_oid tree;
    qsort(store->notes, store->note_count, sizeof *store->notes, compare_waiting);
    EPG_TRY(read_root(store, &head, &root, err));
    EPG_TRY(put_notes_tree(store, root, &tree, err));
    *known = root != NULL && git_oid_equal(git_tree_id(root), &tree) != 0;
    if (*known) {
        return epg_store_flush(store, err);
    }
    EPG_AUTO_FREE char *message =
        epg_format("Notes on %zu snapshot%s\n", store->note_count, store->note_count == 1 ? "" : "s");
    EPG_TRY(epg_store_put_commit(store, &tree, root != NULL ? &head : NULL, message, store->note_time, id, err));
    return epg_store_flush(store, err);
}

void epg_store_forget_notes(epg_store *store)
{
    for (size_t i = 0; i < store->note_count; i++) {
        free(store->notes[i].text);
    }
    free(store->notes);
    store->notes = NULL;
    store->note_count = 0;
}

epg_code epg_store_write_notes(epg_store *store, epg_error *err)
{
    git_oid id;
    bool known = false;
    if (store->note_count == 0) {
        return EPG_OK;
    }
    epg_code code = put_notes(store, &id, &known, err);
    epg_store_abandon(store);
    EPG_TRY(code);
    EPG_TRY(known ? epg_store_sync_ref(store, EPG_STORE_NOTES, err)
                  : epg_store_set_ref(store, EPG_STORE_NOTES, &id, err));
    epg_store_forget_notes(store);
    return EPG_OK;
}

epg_code epg_store_note(epg_store *store, const char *name, const char *text, int64_t time_unix_seconds, epg_error *err)
{
    git_oid id;
    epg_store_note_waiting note = {.on = ""};
    EPG_TRY(epg_store_get_tag(store, name, &id, err));
    (void)git_oid_tostr(note.on, sizeof note.on, &id);
    note.text = epg_strdup(text);
    store->note_time = time_unix_seconds;
    for (size_t i = 0; i < store->note_count; i++) {
        if (strcmp(store->notes[i].on, note.on) == 0) {
            free(store->notes[i].text);
            store->notes[i] = note;
            return EPG_OK;
        }
    }
    store->notes = epg_grow_array(store->notes, store->note_count + 1, sizeof *store->notes);
    store->notes[store->note_count++] = note;
    return EPG_OK;
}
