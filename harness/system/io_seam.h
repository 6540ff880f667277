/* Inside of the write seam, for io.c alone: the points (io_points.c) and the log of the calls (io_log.c). The syntax of
 * EPG_IO_FAULT and the form of the log are told in io.h. */
#ifndef EPG_SYSTEM_IO_SEAM_H
#define EPG_SYSTEM_IO_SEAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef enum epg_io_call {
    EPG_IO_OPEN,
    EPG_IO_WRITE,
    EPG_IO_FSYNC,
    EPG_IO_FDATASYNC,
    EPG_IO_RENAME,
    EPG_IO_MKDIR,
    EPG_IO_UNLINK,
    EPG_IO_CHMOD,
    EPG_IO_TRUNCATE,
    EPG_IO_SYMLINK,
    EPG_IO_BIND,
    EPG_IO_BOUNDARY,
    EPG_IO_CALLS /* their number; in a directive: any call */
} epg_io_call;

extern const char *const epg_io_call_names[EPG_IO_CALLS];

/* What a write is to do with its bytes. */
typedef enum epg_io_part { EPG_IO_WHOLE, EPG_IO_TORN, EPG_IO_SHORT } epg_io_part;

/* Counts a point. 0: go on; -1: the call fails, errno is set. Does not return where the process is to die. `part` is
 * NULL for all but writes. */
int epg_io_pass(epg_io_call call, epg_io_part *part);
_Noreturn void epg_io_die(void);
_Noreturn void epg_io_refuse(const char *directive);
int epg_io_log_fd(void); /* -1: no log is kept */

/* Each writes one line about a call that worked; nothing without a log. */
void epg_io_log_open(int fd, int dir, const char *path, bool truncated);
void epg_io_log_write(int fd, off_t offset, const void *data, size_t size);
void epg_io_log_truncate(int fd, off_t size);
void epg_io_log_on_fd(epg_io_call call, int fd);
void epg_io_log_on_path(epg_io_call call, int dir, const char *path);
void epg_io_log_rename(int from_dir, const char *from, int to_dir, const char *to);
void epg_io_log_symlink(const char *target, int dir, const char *path);
void epg_io_log_boundary(const char *name);

/* Does a call until it is not interrupted. */
#define EPG_IO_RETRY(result, expression)                                                                               \
    do {                                                                                                               \
        (result) = (expression);                                                                                       \
    } while ((result) < 0 && errno == EINTR)

#endif
