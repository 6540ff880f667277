/* Spool files: where the coordinator keeps Episodes' records until their Feedback stands. One file a worker, so that
 * records that come in pieces at the same time do not mix; `NAME-K.spool` in a directory, or an unlinked temporary file
 * when there is no directory. */
#ifndef EPG_EVALUATION_SPOOL_H
#define EPG_EVALUATION_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/hash.h"

typedef struct epg_spool {
    int fd;     /* -1: not open */
    bool dirty; /* holds records that are not synced */
    uint64_t size;
    uint64_t start; /* of the record being written */
    epg_sha256 *hash;
} epg_spool;

typedef struct epg_spools {
    int directory; /* borrowed; -1: unlinked files */
    char *name;
    bool durable;
    epg_spool *files;
    unsigned count;
} epg_spools;

void epg_spools_open(epg_spools *spools, int directory, const char *name, bool durable);
void epg_spools_close(epg_spools *spools);
void epg_spools_remove(int directory, const char *name);

/* A record begins at the end of file `number`; append its pieces; end it. */
epg_code epg_spool_begin(epg_spools *spools, unsigned number, epg_error *err);
epg_code epg_spool_append(epg_spools *spools, unsigned number, epg_span bytes, epg_error *err);
void epg_spool_end(epg_spools *spools, unsigned number, uint64_t *offset, uint64_t *size, char sha256[EPG_SHA256_HEX]);
/* Makes all records that ended durable; nothing to do unless the spools are to be. */
epg_code epg_spools_sync(epg_spools *spools, epg_error *err);
epg_code epg_spool_read(epg_spools *spools, unsigned number, uint64_t offset, size_t size, epg_buffer *out,
                        epg_error *err);

/* True when the record stands there whole, as its hash says: what an earlier Host left. */
bool epg_spool_holds(epg_spools *spools, unsigned number, uint64_t offset, uint64_t size, const char *sha256);

#endif
