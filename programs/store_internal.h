/* What the files of the store share. */
#ifndef EPG_PROGRAMS_STORE_INTERNAL_H
#define EPG_PROGRAMS_STORE_INTERNAL_H

#include <git2.h>

#include "programs/pack.h"
#include "programs/store.h"
#include "system/output.h"

#define EPG_STORE_MAIN "refs/heads/main"
#define EPG_STORE_TAGS "refs/tags/"
#define EPG_STORE_NOTES "refs/notes/commits"

typedef struct epg_store_note_waiting epg_store_note_waiting;

struct epg_store {
    char *path;
    git_repository *repo;
    git_odb *odb;
    epg_pack *pack;                /* objects to be written; NULL until the first */
    epg_store_note_waiting *notes; /* waiting to be written together */
    size_t note_count;
    int64_t note_time;
    int directory; /* of the repository */
    int packs;     /* objects/pack */
};

/* Cleanups for what libgit2 owns. */
#define EPG_GIT_CLEANUP(name)                                                                                          \
    static inline void epg_##name##_cleanup(name **object)                                                             \
    {                                                                                                                  \
        name##_free(*object);                                                                                          \
    }
EPG_GIT_CLEANUP(git_commit)
EPG_GIT_CLEANUP(git_tree)
EPG_GIT_CLEANUP(git_note)
EPG_GIT_CLEANUP(git_diff)
EPG_GIT_CLEANUP(git_reference)
EPG_GIT_CLEANUP(git_odb_object)
EPG_GIT_CLEANUP(git_reference_iterator)
EPG_GIT_CLEANUP(git_note_iterator)
#define EPG_AUTO_GIT(type) EPG_CLEANUP(epg_##type##_cleanup) type

/* As epg_fail, with what libgit2 said last appended. */
epg_code epg_store_fail(epg_error *err, epg_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Opens (again) what libgit2 keeps of the repository. */
epg_code epg_store_attach(epg_store *store, epg_error *err);

/* Objects. put: gives the object's id, and takes it to be written unless the store has it. flush: writes what was
 * taken; all objects that were put are durable then. abandon: forgets what was taken. */
epg_code epg_store_put(epg_store *store, git_object_t type, epg_span content, git_oid *id, epg_error *err);
epg_code epg_store_flush(epg_store *store, epg_error *err);
void epg_store_abandon(epg_store *store);
epg_code epg_store_put_program(epg_store *store, const epg_program *program, git_oid *tree, epg_error *err);
epg_code epg_store_put_commit(epg_store *store, const git_oid *tree, const git_oid *parent, const char *message,
                              int64_t time_unix_seconds, git_oid *id, epg_error *err);
void epg_store_tree_entry(epg_buffer *tree, unsigned mode, epg_span name, const git_oid *id);

/* References. get: NOT_FOUND when there is none. */
epg_code epg_store_get_ref(epg_store *store, const char *name, git_oid *out, epg_error *err);
epg_code epg_store_set_ref(epg_store *store, const char *name, const git_oid *id, epg_error *err);
epg_code epg_store_delete_ref(epg_store *store, const char *name, epg_error *err);
/* Syncs the directory that holds the reference: for one that was found and might have been left unsynced. */
epg_code epg_store_sync_ref(epg_store *store, const char *name, epg_error *err);
/* Writes a file of the repository as git does: PATH.lock, synced, renamed, the directory synced. What is put into
 * `output` between begin and end is its content. */
typedef struct epg_store_file {
    epg_output output;
    int directory; /* -1: none */
    char *name;
} epg_store_file;
epg_code epg_store_begin_file(epg_store *store, const char *path, epg_store_file *file, epg_error *err);
epg_code epg_store_end_file(epg_store_file *file, epg_error *err);
void epg_store_file_free(epg_store_file *file);
/* store_packed.c: gathers the tags that are files of their own into packed-refs; takes one reference out of it. */
epg_code epg_store_pack_refs(epg_store *store, epg_error *err);
epg_code epg_store_unpack_ref(epg_store *store, const char *name, epg_error *err);
/* NOT_FOUND; INVALID when packed-refs is not as git or the store writes it. */
epg_code epg_store_find_packed(epg_store *store, const char *name, git_oid *out, epg_error *err);
/* Calls `visit` for each name in packed-refs; INVALID when it is not as git or the store writes it. */
epg_code epg_store_each_packed(epg_store *store, void (*visit)(void *context, const char *name), void *context,
                               epg_error *err);
/* The files that never change ("HEAD", ...), and what such a file holds; NULL: it is none of these. */
enum { EPG_STORE_FIXED = 3 };
const char *epg_store_fixed_name(size_t i);
const char *epg_store_fixed_content(const char *path);
epg_code epg_store_get_tag(epg_store *store, const char *name, git_oid *out, epg_error *err);
epg_code epg_store_check_name(const char *name, epg_error *err);

void epg_store_forget_notes(epg_store *store);

/* The digest that a commit's message claims. */
epg_code epg_store_claimed_digest(const git_commit *commit, char digest[EPG_DIGEST_TEXT], epg_error *err);

#endif
