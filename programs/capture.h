/* Stable capture of a directory's files, and writing them again: what Programs and Skills share.
 *
 * The tree is walked twice through directory descriptors. The first walk reads each file: it is opened without
 * following a link and without blocking, and must be the same file with the same stamp (device, inode, size, times)
 * when it was listed, opened and read to its end. The second walk must list the same files with the same stamps.
 * Whatever else it finds, the source was changed: a snapshot is whole or it is not made. */
#ifndef EPG_PROGRAMS_CAPTURE_H
#define EPG_PROGRAMS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "programs/program.h"

typedef struct epg_capture_rules {
    const char *what;     /* "Program", for messages */
    const char *required; /* the file that must stand at the root */
    epg_program_limits limits;
    bool keep_executable;
} epg_capture_rules;

/* Fills `out` with the files in byte order of paths; the digest is left empty for the caller. Errors as
 * epg_program_capture tells. */
epg_code epg_capture_tree(int directory, const epg_capture_rules *rules, epg_program *out, epg_error *err);

/* Opens a directory by path, not through a link at its end; INVALID when it can't be one's source. */
epg_code epg_capture_open(const char *path, const char *what, int *out, epg_error *err);

/* One component of a path: non-empty, not "." or "..", without '/', '\' and NUL, valid UTF-8, NFC. Says which rule is
 * broken ("is not valid UTF-8"), NULL when none is. */
const char *epg_capture_name_fault(const char *name, size_t size);

/* What a capture passes over: ".git" and "__pycache__" directories, "*.pyc" files. */
bool epg_capture_excludes(const char *name, bool is_directory);

/* epg_program_materialise with another mode for executable files. */
epg_code epg_capture_write(const epg_program *program, int directory, unsigned file_mode, unsigned executable_mode,
                           unsigned directory_mode, bool sync, epg_error *err);

/* The file at `path`, NULL when there is none. */
const epg_program_file *epg_capture_find(const epg_program *program, const char *path);

#endif
