/* The Run's history of Programs: a bare git repository (libgit2) that `git log -p` reads.
 *
 * One commit a snapshot on refs/heads/main, each the child of the one before (its tree is exactly the Program), and one
 * lightweight tag a snapshot ("initial", "submission-000001"). A commit's message is its subject and the trailers
 * Submission, Program-Digest and what the caller adds; what is known later (score, Episodes) is a note. Time is given
 * and the author fixed, so that the same history gives the same commit ids.
 *
 * What a function wrote is durable when it returns, but for notes (see there): objects, refs and the directories that
 * name them are synced. One process at a time writes a store (the Run's own lock sees to that); any number may read. A
 * tag can be moved by whoever can write the files: compare the digest that load or find returns with the one in the
 * Run's record. */
#ifndef EPG_PROGRAMS_STORE_H
#define EPG_PROGRAMS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "programs/program.h"

typedef struct epg_store epg_store;
enum { EPG_OBJECT_ID_TEXT = 41, EPG_STORE_NAME = 128 };

epg_code epg_store_create(const char *path, epg_store **out, epg_error *err); /* the path must not exist */
epg_code epg_store_open(const char *path, epg_store **out, epg_error *err);
void epg_store_close(epg_store *store); /* NULL is nothing */

/* `name`: the tag, letters, digits, '-', '_' and '.' (INVALID otherwise); `subject`: one line; `trailers`: "Key:
 * value\n" lines, may be NULL. An equal tag that already holds the same digest is success (a commit repeated after a
 * crash); with another digest EXISTS. */
epg_code epg_store_commit(epg_store *store, const epg_program *program, const char *name, const char *subject,
                          const char *trailers, int64_t time_unix_seconds, char id[EPG_OBJECT_ID_TEXT], epg_error *err);
/* Removes what a writer that died has left on its way: temporary files and locks. For the one writer, when it begins.
 */
epg_code epg_store_recover(epg_store *store, epg_error *err);
/* Takes the newest snapshot back: one that a crash left behind before its submission was charged. INVALID when `name`
 * is not the newest; success when there is no such tag. */
epg_code epg_store_drop(epg_store *store, const char *name, epg_error *err);

/* Reads the snapshot of a tag back and checks it against the digest in its commit: INVALID when it was altered. */
epg_code epg_store_load(epg_store *store, const char *name, epg_program *out, epg_error *err);

/* Adds or replaces a note (refs/notes/commits) on a tag's commit: the score and Episodes, known later. Notes wait in
 * memory and are written together: by write_notes, by find and each, by close (which can't tell of a failure), and by
 * maintain when there are some. Notes that a crash lost can be given again; one that is there already changes nothing.
 */
epg_code epg_store_note(epg_store *store, const char *name, const char *text, int64_t time_unix_seconds,
                        epg_error *err);
epg_code epg_store_write_notes(epg_store *store, epg_error *err);

/* What a tag's commit says, without its Program. */
typedef struct epg_store_entry {
    char name[EPG_STORE_NAME];
    char id[EPG_OBJECT_ID_TEXT];
    char digest[EPG_DIGEST_TEXT]; /* as the commit claims it; epg_store_load checks */
    int64_t time_unix_seconds;
    char *subject;
    char *note; /* NULL: none */
} epg_store_entry;
void epg_store_entry_free(epg_store_entry *entry);

/* The digest that a tag's commit claims, and its id: a find for who needs no more. NOT_FOUND. */
epg_code epg_store_claim(epg_store *store, const char *name, char digest[EPG_DIGEST_TEXT], char id[EPG_OBJECT_ID_TEXT],
                         epg_error *err);
epg_code epg_store_find(epg_store *store, const char *name, epg_store_entry *out, epg_error *err); /* NOT_FOUND */
/* All tags in byte order of their names; `visit` may return non-EPG_OK, with `err` filled, to stop. */
typedef epg_code epg_store_visit(void *context, const epg_store_entry *entry, epg_error *err);
epg_code epg_store_each(epg_store *store, epg_store_visit *visit, void *context, epg_error *err);

/* A unified diff of two tags' Programs into `out`, as `git diff` prints it. LIMIT when `out` has a bound that it
 * passes. */
epg_code epg_store_diff(epg_store *store, const char *from, const char *to, epg_buffer *out, epg_error *err);

/* Keeps a growing store fast: writes notes, joins small packs and packs refs when there are many, else does nothing.
 * To be called after each commit or so; the work a call is bounded. */
epg_code epg_store_maintain(epg_store *store, epg_error *err);

/* Looks at the whole repository as at one that somebody may have been at, and calls `fault` for each thing that does
 * not fit: a file or reference that the store does not make, a pack, an index or a reference that is not as it was
 * written, an object that is missing or altered among all that main and the notes reach. Paths are from the repository.
 * Whether a snapshot is the one that the record names is for the caller to see (load). */
typedef struct epg_store_check {
    bool (*known)(void *context, const char *tag); /* whether there should be such a tag */
    void (*fault)(void *context, const char *path, const char *what);
    void *context;
    const char *newest; /* tag that main must name */
    bool settled;       /* nobody was cut off writing: what is temporary must be gone, and main up with its tag */
    bool foreign;       /* made in another way than this version's: its files are not looked at one by one */
} epg_store_check;
epg_code epg_store_check_all(epg_store *store, const epg_store_check *check, uint64_t *checks, epg_error *err);

#endif
