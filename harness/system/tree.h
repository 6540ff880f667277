/* Directory trees through directory descriptors, never following a link.
 *
 * Both ways use a bounded number of descriptors (EPG_TREE_DEPTH levels) and survive trees that change under them. */
#ifndef EPG_SYSTEM_TREE_H
#define EPG_SYSTEM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

enum { EPG_TREE_DEPTH = 128, EPG_TREE_NAMES = 200000 };

typedef struct epg_tree_entry {
    int dir;          /* the directory that holds it, valid during the call */
    const char *name; /* its name in that directory */
    const char *path; /* "a/b" from the root of the walk */
    struct stat info; /* of the entry itself, links not followed */
} epg_tree_entry;

typedef enum epg_tree_step { EPG_TREE_CONTINUE, EPG_TREE_SKIP, EPG_TREE_STOP } epg_tree_step;

/* Called for every entry but "." and "..", in byte order of names, a directory before what is in it. SKIP on a
 * directory does not enter it; STOP ends the walk with the code and error that the visitor left in *code / err. LIMIT
 * when directories are nested deeper than EPG_TREE_DEPTH below the root, or one that is entered holds more than
 * EPG_TREE_NAMES. */
typedef epg_tree_step epg_tree_visit(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err);

epg_code epg_tree_walk(int root, epg_tree_visit *visit, void *context, epg_error *err);

/* Removes what is at dir/name, whatever it is and whatever modes it has (a directory with all below it). Gone already
 * is success. At most `limit` entries (0: no bound) are removed; LIMIT says that more is left. Any
 * depth can be removed: what is nested deeper than EPG_TREE_DEPTH is moved up first. */
epg_code epg_tree_remove(int dir, const char *name, size_t limit, epg_error *err);

/* Private temporary directory, 0700, below $TMPDIR or /tmp: name starts with `prefix`. *path: caller frees. */
epg_code epg_tree_temporary(const char *prefix, char **path, int *fd, epg_error *err);

#endif
