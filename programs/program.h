/* Programs: an immutable, content-addressed snapshot of one directory (CONTRACTS section 2).
 *
 * A snapshot is held in memory (at most 64 MiB by its limits): capture once, then digest, store, send to a worker and
 * materialise from the same bytes. */
#ifndef EPG_PROGRAMS_PROGRAM_H
#define EPG_PROGRAMS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/hash.h"

typedef struct epg_program_limits {
    uint64_t files;
    uint64_t total_bytes;
    uint64_t file_bytes;
} epg_program_limits;
extern const epg_program_limits epg_program_default_limits; /* 1,000 files; 64 MiB; 16 MiB */

typedef struct epg_program_file {
    char *path; /* "a/b", NFC, UTF-8 */
    epg_buffer content;
    bool executable; /* kept for skills only; not part of a Program */
} epg_program_file;

typedef struct epg_program {
    epg_program_file *files; /* in byte order of paths */
    size_t count;
    uint64_t total_bytes;
    char digest[EPG_DIGEST_TEXT];
} epg_program;
void epg_program_free(epg_program *program);

/* Captures the directory open at `directory`, through descriptors, following no link. INVALID (missing policy.py, link,
 * special file, bad name), LIMIT, CHANGED; IO for the Host's own trouble. The text names the path and the rule. */
epg_code epg_program_capture(int directory, const epg_program_limits *limits, epg_program *out, epg_error *err);
/* As above from a path; a symlink at its end, or no directory, is INVALID. */
epg_code epg_program_capture_path(const char *path, const epg_program_limits *limits, epg_program *out, epg_error *err);
void epg_program_copy(const epg_program *from, epg_program *out);

/* One buffer for the whole snapshot, for frames: be64(count), per file be64+path, be64+content. Checked on the way in
 * (paths, order, limits, policy.py); the digest is computed anew. */
void epg_program_pack(const epg_program *program, epg_buffer *out);
epg_code epg_program_unpack(epg_span bytes, const epg_program_limits *limits, epg_program *out, epg_error *err);

/* Checks files that come from elsewhere than a capture, in byte order of paths (paths, order, limits, policy.py), and
 * computes the digest. */
epg_code epg_program_seal(epg_program *program, const epg_program_limits *limits, epg_error *err);

/* Writes the files below the (empty) directory open at `directory`. Modes: files `file_mode`, directories
 * `directory_mode`, that of `directory` itself too (set last, so that 0555 works). `sync`: every file and directory. */
epg_code epg_program_materialise(const epg_program *program, int directory, unsigned file_mode, unsigned directory_mode,
                                 bool sync, epg_error *err);

#endif
