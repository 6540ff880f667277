/* Contested ground: writing where an Agent can write too, often as the same user.
 *
 * Nothing below RUN/workspace is trusted to be where it was left. All is reached through directory descriptors without
 * following links; what stands in the way is renamed into RUN/displaced (whatever it is, however much is in it); what
 * is gone is made again; a mode that shuts us out is set back. Each finding is noted as evidence for the Host and
 * changes nothing else. Only when an obstacle can't be moved either does a function fail. Every function takes the Run
 * directory's descriptor `run`, and `path`, how evidence names the place ("workspace/feedback/latest.json"). */
#ifndef EPG_RUNS_CONTESTED_H
#define EPG_RUNS_CONTESTED_H

#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* Findings about what an Agent did to things that are not its own. */
typedef struct epg_evidence {
    char *path; /* from the Run directory */
    char *what; /* one line: "a symbolic link stood here; moved to displaced/000001-latest.json" */
} epg_evidence;
typedef struct epg_evidence_list {
    epg_evidence *items;
    size_t count;
    size_t omitted; /* beyond EPG_EVIDENCE_MAX */
} epg_evidence_list;
enum { EPG_EVIDENCE_MAX = 256 };
/* `list` may be NULL here and in all that takes one. */
void epg_evidence_note(epg_evidence_list *list, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void epg_evidence_free(epg_evidence_list *list);

/* Opens the directory parent/name, making it (with `mode`, durably) when it is gone or is something else. */
epg_code epg_contested_directory(int run, int parent, const char *name, mode_t mode, const char *path, int *out,
                                 epg_evidence_list *evidence, epg_error *err);

/* Renames staging/staged to dir/name, where nothing may stay that stood there before. Not synced. */
epg_code epg_contested_install(int run, int staging, const char *staged, int dir, const char *name, const char *path,
                               epg_evidence_list *evidence, epg_error *err);

/* Replaces the file dir/name durably and atomically; its temporary file is in RUN/staging, out of the Agent's way. */
epg_code epg_contested_replace(int run, int dir, const char *name, epg_span content, mode_t mode, const char *path,
                               epg_evidence_list *evidence, epg_error *err);

/* Opens RUN/staging, making it when it is not there. */
epg_code epg_contested_staging(int run, int *out, epg_error *err);
/* Makes all below the directories in RUN/staging durable, every file and directory by a sync of its own; these topmost
 * directories themselves are left to who installs them. */
epg_code epg_staging_sync(int staging, epg_error *err);

#endif
