/* Notes lie in a tree of their own, fanned out by the first two digits of the commit's id (a form that git reads and
 * keeps), so that the cost of one more does not grow with their number. Entries that git itself wrote without fan-out
 * are kept, but for that of the commit in hand. */
#include <stdlib.h>
#include <string.h>

#include "programs/store_internal.h"

enum { FAN_OUT = 2, ID_DIGITS = EPG_OBJECT_ID_TEXT - 1 };

/* An entry to be put into a tree, in place of what is there under its name. */
typedef struct put_entry {
    unsigned mode;
    epg_span name;
    const git_oid *id;
} put_entry;

/* git's order: a directory counts as "name/". */
static int compare_entries(epg_span a, bool a_is_tree, epg_span b, bool b_is_tree)
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

/* Puts a tree that is `old` (NULL: empty) with one entry put in, and without the one named `without`. */
static epg_code put_changed_tree(epg_store *store, const git_tree *old, const put_entry *put, epg_span without,
                                 git_oid *id, epg_error *err)
{
    EPG_AUTO_BUFFER tree = {0};
    bool done = false;
    size_t count = old != NULL ? git_tree_entrycount(old) : 0;
    for (size_t i = 0; i < count; i++) {
        const git_tree_entry *entry = git_tree_entry_byindex(old, i);
        epg_span name = epg_span_text(git_tree_entry_name(entry));
        unsigned mode = git_tree_entry_filemode_raw(entry);
        if (epg_span_equal(name, put->name) || epg_span_equal(name, without)) {
            continue;
        }
        bool before = compare_entries(put->name, put->mode == GIT_FILEMODE_TREE, name, mode == GIT_FILEMODE_TREE) < 0;
        if (!done && before) {
            epg_store_tree_entry(&tree, put->mode, put->name, put->id);
            done = true;
        }
        epg_store_tree_entry(&tree, mode, name, git_tree_entry_id(entry));
    }
    if (!done) {
        epg_store_tree_entry(&tree, put->mode, put->name, put->id);
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

static epg_code put_notes_tree(epg_store *store, const git_tree *root, const char *on, const git_oid *text,
                               git_oid *out, epg_error *err)
{
    EPG_AUTO_GIT(git_tree) *fan = NULL;
    EPG_AUTO_FREE char *first = epg_strndup(on, FAN_OUT);
    const git_tree_entry *entry = root != NULL ? git_tree_entry_byname(root, first) : NULL;
    if (entry != NULL && git_tree_lookup(&fan, store->repo, git_tree_entry_id(entry)) != 0) {
        return epg_store_fail(err, EPG_ERR_INVALID, "can't read the history's notes");
    }
    git_oid below;
    put_entry note = {GIT_FILEMODE_BLOB, epg_span_of(on + FAN_OUT, ID_DIGITS - FAN_OUT), text};
    EPG_TRY(put_changed_tree(store, fan, &note, (epg_span){0}, &below, err));
    put_entry directory = {GIT_FILEMODE_TREE, epg_span_of(on, FAN_OUT), &below};
    return put_changed_tree(store, root, &directory, epg_span_of(on, ID_DIGITS), out, err);
}

static epg_code put_note(epg_store *store, const git_oid *on, const char *name, const char *text,
                         int64_t time_unix_seconds, git_oid *id, bool *known, epg_error *err)
{
    EPG_AUTO_GIT(git_tree) *root = NULL;
    git_oid head;
    git_oid blob;
    git_oid tree;
    char hex[EPG_OBJECT_ID_TEXT];
    (void)git_oid_tostr(hex, sizeof hex, on);
    EPG_TRY(read_root(store, &head, &root, err));
    EPG_TRY(epg_store_put(store, GIT_OBJECT_BLOB, epg_span_text(text), &blob, err));
    EPG_TRY(put_notes_tree(store, root, hex, &blob, &tree, err));
    *known = root != NULL && git_oid_equal(git_tree_id(root), &tree) != 0;
    if (*known) {
        return epg_store_flush(store, err);
    }
    EPG_AUTO_FREE char *message = epg_format("Note on %s\n", name);
    EPG_TRY(epg_store_put_commit(store, &tree, root != NULL ? &head : NULL, message, time_unix_seconds, id, err));
    return epg_store_flush(store, err);
}

epg_code epg_store_note(epg_store *store, const char *name, const char *text, int64_t time_unix_seconds, epg_error *err)
{
    git_oid on;
    git_oid id;
    bool known = false;
    EPG_TRY(epg_store_get_tag(store, name, &on, err));
    epg_code code = put_note(store, &on, name, text, time_unix_seconds, &id, &known, err);
    epg_store_abandon(store);
    EPG_TRY(code);
    return known ? epg_store_sync_ref(store, EPG_STORE_NOTES, err)
                 : epg_store_set_ref(store, EPG_STORE_NOTES, &id, err);
}
