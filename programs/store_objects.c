#include <errno.h>
#include <string.h>

#include "programs/store_internal.h"
#include "system/files.h"

#define AUTHOR "EvoPolicyGym Host <host@evopolicygym.invalid>"

enum { MODE_FILE = 0100644, MODE_TREE = 040000 };

epg_code epg_store_put(epg_store *store, git_object_t type, epg_span content, git_oid *id, epg_error *err)
{
    if (content.size > INT32_MAX) {
        return epg_fail(err, EPG_ERR_LIMIT, "a file of 2 GiB or more is not stored");
    }
    if (git_odb_hash(id, content.size > 0 ? (const void *)content.data : "", content.size, type) != 0) {
        return epg_store_fail(err, EPG_ERR_INTERNAL, "can't hash an object");
    }
    if (git_odb_exists_ext(store->odb, id, GIT_ODB_LOOKUP_NO_REFRESH) != 0) {
        return EPG_OK;
    }
    if (store->pack == NULL) {
        store->pack = epg_pack_new();
    }
    epg_pack_add(store->pack, type, id, content);
    return EPG_OK;
}

void epg_store_abandon(epg_store *store)
{
    if (store->pack != NULL) {
        epg_pack_clear(store->pack);
    }
}

epg_code epg_store_flush(epg_store *store, epg_error *err)
{
    if (store->pack == NULL || epg_pack_count(store->pack) == 0) {
        /* All was there: it might be so since a writer died before it could sync the directory. */
        return epg_dir_sync(store->packs, err);
    }
    char name[EPG_PACK_NAME];
    epg_code code = epg_pack_write(store->pack, store->packs, name, err);
    epg_store_abandon(store);
    if (code != EPG_OK) {
        return epg_fail_within(err, "can't write to the history");
    }
    if (git_odb_refresh(store->odb) != 0) {
        return epg_store_fail(err, EPG_ERR_IO, "can't read what was written to the history");
    }
    return EPG_OK;
}

void epg_store_tree_entry(epg_buffer *tree, unsigned mode, epg_span name, const git_oid *id)
{
    (void)epg_buffer_format(tree, "%o ", mode);
    (void)epg_buffer_append_span(tree, name);
    (void)epg_buffer_byte(tree, '\0');
    (void)epg_buffer_append(tree, id->id, GIT_OID_RAWSZ);
}

/* Puts the tree of the files from *next on that share the first `prefix` bytes of their paths. Byte order of whole
 * paths is git's order of entries: both take a directory for "name/". Trees are written as bytes, not through libgit2's
 * builder, which refuses names (".git") that a Program may have. */
static epg_code put_tree(epg_store *store, const epg_program *program, size_t *next, size_t prefix, git_oid *id,
                         epg_error *err)
{
    EPG_AUTO_BUFFER tree = {0};
    const char *first = program->files[*next].path;
    while (*next < program->count && strncmp(program->files[*next].path, first, prefix) == 0) {
        const epg_program_file *file = &program->files[*next];
        const char *name = file->path + prefix;
        const char *slash = strchr(name, '/');
        git_oid below;
        if (slash != NULL) {
            size_t size = (size_t)(slash - name);
            EPG_TRY(put_tree(store, program, next, prefix + size + 1, &below, err));
            epg_store_tree_entry(&tree, MODE_TREE, epg_span_of(name, size), &below);
        } else {
            EPG_TRY(epg_store_put(store, GIT_OBJECT_BLOB, epg_buffer_span(&file->content), &below, err));
            epg_store_tree_entry(&tree, MODE_FILE, epg_span_text(name), &below);
            ++*next;
        }
    }
    return epg_store_put(store, GIT_OBJECT_TREE, epg_buffer_span(&tree), id, err);
}

epg_code epg_store_put_program(epg_store *store, const epg_program *program, git_oid *tree, epg_error *err)
{
    size_t next = 0;
    if (program->count == 0) {
        return epg_fail(err, EPG_ERR_INTERNAL, "a Program without a file is none");
    }
    return put_tree(store, program, &next, 0, tree, err);
}

epg_code epg_store_put_commit(epg_store *store, const git_oid *tree, const git_oid *parent, const char *message,
                              int64_t time_unix_seconds, git_oid *id, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    char hex[EPG_OBJECT_ID_TEXT];
    (void)epg_buffer_format(&text, "tree %s\n", git_oid_tostr(hex, sizeof hex, tree));
    if (parent != NULL) {
        (void)epg_buffer_format(&text, "parent %s\n", git_oid_tostr(hex, sizeof hex, parent));
    }
    (void)epg_buffer_format(&text, "author " AUTHOR " %lld +0000\n", (long long)time_unix_seconds);
    (void)epg_buffer_format(&text, "committer " AUTHOR " %lld +0000\n\n", (long long)time_unix_seconds);
    (void)epg_buffer_text(&text, message);
    return epg_store_put(store, GIT_OBJECT_COMMIT, epg_buffer_span(&text), id, err);
}
