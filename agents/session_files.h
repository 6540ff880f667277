/* What an agent writes into its own home beside its stream: lines of files that a glob names, each read once. */
#ifndef EPG_AGENTS_SESSION_FILES_H
#define EPG_AGENTS_SESSION_FILES_H

#include "agents/lines.h"

enum { EPG_SESSION_FILES_MAX = 256 };

typedef struct epg_session_file {
    char *path; /* below the home */
    int64_t offset;
    epg_lines lines;
} epg_session_file;

typedef struct epg_session_files {
    const char *glob; /* borrowed; each part between slashes is a pattern of fnmatch */
    epg_session_file *files;
    size_t count;
} epg_session_files;

/* Feeds what was added since the last call to `sink`. Whatever can't be read is passed over; no link is followed. */
void epg_session_files_read(epg_session_files *files, int home, size_t line_limit, epg_line_sink *sink, void *context);
void epg_session_files_free(epg_session_files *files);

#endif
