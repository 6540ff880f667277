/* git's packs (pack version 2, index version 2), as far as the store makes them: many whole objects in one file,
 * without deltas, so that a snapshot of any number of files costs two synced files, and packs can be joined by copying
 * bytes.
 *
 * New objects are gathered in memory. Those of packs that are joined stay where they lie until the pack is written, and
 * are then copied piece by piece: joining takes memory by the number of objects (about 50 bytes each), not by their
 * size. Pack and index are written through system/io.h under temporary names, both synced, renamed pack first (git
 * looks at a pack when its index is there), and the directory synced. Dying anywhere leaves at most files that nothing
 * names; the next write replaces the temporary ones. */
#ifndef EPG_PROGRAMS_PACK_H
#define EPG_PROGRAMS_PACK_H

#include <git2.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct epg_pack epg_pack;

epg_pack *epg_pack_new(void);
void epg_pack_free(epg_pack *pack);
void epg_pack_clear(epg_pack *pack); /* back to empty; keeps a little memory for the next one */
size_t epg_pack_count(const epg_pack *pack);

/* Adds an object (a commit, tree or blob); one that the pack holds already is not added again. */
void epg_pack_add(epg_pack *pack, git_object_t type, const git_oid *id, epg_span content);

/* Adds all objects of DIRECTORY/NAME.pack, where `name` is "pack-" and a hash. *joinable is false, and nothing is
 * added, when it holds deltas or its index is of version 1. INVALID when pack and index don't agree. File and directory
 * must stay until the pack is written. */
epg_code epg_pack_append(epg_pack *pack, int directory, const char *name, bool *joinable, epg_error *err);

/* Writes pack and index into the directory; then, or after a failure, the pack is to be cleared. `name` gets what it is
 * called, without suffix. LIMIT at 2 GiB. */
enum { EPG_PACK_NAME = 46 };
epg_code epg_pack_write(epg_pack *pack, int directory, char name[EPG_PACK_NAME], epg_error *err);

#endif
