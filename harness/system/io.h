/* The seam through which everything durable is written.
 *
 * Every system call of ours that changes a file system goes through these functions and nothing else does (libgit2
 * only reads). Each call is a numbered point at which a test can
 * make the process die, the call fail with an errno, or a write be short, and from which a log of writes and syncs
 * can be kept, so that crashes, full disks and power loss can be played. Without EPG_IO_FAULT in the environment
 * there is no cost but a branch. EINTR and short writes are retried here. Functions set errno and return -1 as the
 * calls that they wrap; nothing here fills an epg_error.
 *
 * EPG_IO_FAULT holds directives, separated by commas. Points are counted in each process from 1; with ":CALL" only the
 * calls of that name are counted ("open", "write", "fsync", "fdatasync", "rename", "mkdir", "unlink", "chmod",
 * "truncate", "symlink", "bind", "boundary"). N+ means N and every point after it.
 *   kill@N[:CALL]         the process ends by SIGKILL just before the call
 *   term@N[:CALL]         the process gets a SIGTERM just before the call, which is then made
 *   torn@N[:CALL]         as kill, but a write has put the first half of its bytes there
 *   errno=NAME@N[:CALL]   the call does nothing and fails: ENOSPC, EIO, EDQUOT, EROFS, EACCES, EPERM, EMFILE, ENFILE,
 *                         ENOMEM, EFBIG; with EINTR it is interrupted once and then tried again, as the kernel does
 *   short@N[:CALL]        the first write(2) of the call takes only half of the bytes
 *   log=FILE              appends one JSON line for each call that worked (last directive: FILE may hold commas)
 * A directive that can't be read ends the process with exit code 70: a fault that is not played must not pass a test.
 *
 * A line of the log: {"call":"write","device":D,"inode":I,"mode":M,"path":"/...","offset":O,"size":S,"data":"base64"};
 * what does not concern a call is left out; "mode" is the one that the call left; "to" is the new name of a rename,
 * "target" that of a symlink, "name" a boundary's.
 * Paths are absolute where /proc tells them, and bytes that are not ASCII are written as \u00XX, one for each byte. */
#ifndef EPG_SYSTEM_IO_H
#define EPG_SYSTEM_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* O_CLOEXEC is added; an open that may create is counted, and gets O_NONBLOCK too. */
int epg_io_open(int dir, const char *path, int flags, mode_t mode);
int epg_io_write_all(int fd, const void *data, size_t size); /* 0, or -1 with an unknown part written */
int epg_io_fsync(int fd);
int epg_io_fdatasync(int fd);
int epg_io_rename(int from_dir, const char *from, int to_dir, const char *to);
int epg_io_rename_new(int from_dir, const char *from, int to_dir, const char *to); /* EEXIST when `to` exists */
int epg_io_mkdir(int dir, const char *path, mode_t mode); /* the mode is set in full, umask or not */
int epg_io_unlink(int dir, const char *path, int flags);
int epg_io_fchmod(int fd, mode_t mode);
int epg_io_chmod(int dir, const char *path, mode_t mode); /* never through a link at the last part */
int epg_io_ftruncate(int fd, off_t size);
int epg_io_symlink(const char *target, int dir, const char *path);
int epg_io_bind_unix(int fd, const char *path, mode_t mode); /* a Unix socket at an absolute path */

/* A point that is no write: where another party is told something. The log shows what was durable by then. */
int epg_io_boundary(const char *name);
uint64_t epg_io_points(void); /* points passed in this process so far */

#endif
