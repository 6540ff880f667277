/* Syncing what is staged. One fsync after the other would have each wait for its own data and for a commit of its own.
 * So writing back is begun for a batch of files first; the first sync then commits what all of them changed, and the
 * others find most of their work done. Nothing is left out: every file and directory is synced, and asked for errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "runs/contested.h"
#include "system/io.h"
#include "system/tree.h"

enum { BATCH = 64 };

typedef struct batch {
    int fds[BATCH];
    size_t count;
} batch;

static int finish(batch *b)
{
    int result = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (result == 0) {
            result = epg_io_fsync(b->fds[i]);
        }
        int why = errno;
        (void)close(b->fds[i]);
        errno = why;
    }
    b->count = 0;
    return result;
}

static epg_tree_step take(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    batch *b = context;
    if (strchr(entry->path, '/') == NULL) {
        return EPG_TREE_CONTINUE;
    }
    int fd = openat(entry->dir, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        b->fds[b->count++] = fd;
        if (S_ISREG(entry->info.st_mode)) {
            (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* advice: what it misses, fsync does */
        }
    }
    if (fd < 0 || (b->count == BATCH && finish(b) != 0)) {
        *code = epg_fail_errno(err, errno, "can't sync 'staging/%s'", entry->path);
        return EPG_TREE_STOP;
    }
    return EPG_TREE_CONTINUE;
}

epg_code epg_staging_sync(int staging, epg_error *err)
{
    batch b = {.count = 0};
    epg_code code = epg_tree_walk(staging, take, &b, err);
    if (finish(&b) != 0 && code == EPG_OK) {
        code = epg_fail_errno(err, errno, "can't sync what is staged");
    }
    return code;
}
