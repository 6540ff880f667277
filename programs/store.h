/* The Run's history of Programs: a bare git repository (libgit2) that `git log -p` reads.
 *
 * One commit a snapshot on refs/heads/main, each the child of the one before (its tree is exactly the Program), a tag a
 * submission. Commits carry trailers (Submission, Program-Digest, later Score and Episodes as notes). A snapshot is
 * durable when epg_store_commit returns: objects and refs are synced. Time and author are given, so that the same
 * history gives the same commit ids. */
#ifndef EPG_PROGRAMS_STORE_H
#define EPG_PROGRAMS_STORE_H

#include <stdbool.h>

#include "programs/program.h"

typedef struct epg_store epg_store;
enum { EPG_OBJECT_ID_TEXT = 41 };

epg_code epg_store_create(const char *path, epg_store **out, epg_error *err); /* the path must not exist */
epg_code epg_store_open(const char *path, epg_store **out, epg_error *err);
void epg_store_close(epg_store *store);

/* `name`: the tag ("initial", "submission-000001"); `trailers`: "Key: value\n" lines, may be NULL. An equal tag that
 * already holds the same digest is success (a commit repeated after a crash); with another digest EXISTS. */
epg_code epg_store_commit(epg_store *store, const epg_program *program, const char *name, const char *subject,
                          const char *trailers, int64_t time_unix_seconds, char id[EPG_OBJECT_ID_TEXT],
                          epg_error *err);
/* Reads the snapshot of a tag back and checks it against the digest in its commit: INVALID when it was altered. */
epg_code epg_store_load(epg_store *store, const char *name, epg_program *out, epg_error *err);
/* Adds or replaces a note (refs/notes/commits) on a tag's commit: the score and Episodes, known later. */
epg_code epg_store_note(epg_store *store, const char *name, const char *text, int64_t time_unix_seconds,
                        epg_error *err);
/* Names of all tags in byte order; each call of `visit` may return non-EPG_OK to stop. */
epg_code epg_store_each(epg_store *store, epg_code (*visit)(void *context, const char *name, const char *digest),
                        void *context, epg_error *err);
/* A unified diff of two tags' Programs into `out`, as `git diff` prints it. */
epg_code epg_store_diff(epg_store *store, const char *from, const char *to, epg_buffer *out, epg_error *err);
/* Packs loose objects when there are many (bounded work a call). */
epg_code epg_store_maintain(epg_store *store, epg_error *err);

#endif
