/* Files: the one discipline of durable writing, and bounded reading.
 *
 * Durable writing is: write a private temporary file in the same directory, set its mode, sync it, rename it over
 * its name, sync the directory. A reader sees the old file or the new one, whole. Paths are relative to a directory
 * descriptor (AT_FDCWD for the working directory). */
#ifndef EPG_SYSTEM_FILES_H
#define EPG_SYSTEM_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* Replaces or makes `name` as told above. `name` has no '/'. */
epg_code epg_file_write_atomic(int dir, const char *name, epg_span content, mode_t mode, epg_error *err);
/* Makes a new file (refuses an existing name), writes it and sets its mode; synced only when `sync`. */
epg_code epg_file_write_new(int dir, const char *name, epg_span content, mode_t mode, bool sync, epg_error *err);
/* "<prefix><16 random hexadecimal digits>", for names that nobody else takes. Caller frees. */
char *epg_file_temporary_name(const char *prefix);
/* What the temporary files of epg_file_write_atomic begin with: one that is found later was left by a death. */
#define EPG_FILE_TEMPORARY ".epg-tmp-"

/* Reads a regular file of at most `limit` bytes; never follows a link at `name`'s last part, never blocks on a FIFO.
 * `out` is replaced by the content. NOT_FOUND, INVALID (a link, a directory, a device), LIMIT. */
epg_code epg_file_read(int dir, const char *name, size_t limit, epg_buffer *out, epg_error *err);
epg_code epg_file_read_fd(int fd, const char *what, size_t limit, epg_buffer *out, epg_error *err);
/* Opens a directory without following a link at its last part. */
epg_code epg_dir_open(int dir, const char *name, int *out, epg_error *err);
/* Opens `path` below `dir` component by component, following no link anywhere; "a/b" style, no "..";
 * "." alone is `dir` itself. NOT_FOUND; INVALID for a part that is a link or no directory. */
epg_code epg_dir_open_beneath(int dir, const char *path, int *out, epg_error *err);
epg_code epg_dir_sync(int dir, epg_error *err);

#endif
