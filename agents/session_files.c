#include "agents/session_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "system/files.h"

enum { CHUNK = 65536, ENTRIES_MAX = 10000 };
#define READ_MAX (INT64_C(256) * 1024 * 1024) /* of one file */

typedef struct search {
    epg_session_files *files;
    size_t line_limit;
    epg_line_sink *sink;
    void *context;
    unsigned entries; /* looked at so far: an agent can make any number */
} search;

static epg_session_file *file_called(epg_session_files *files, const char *path, size_t line_limit)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->files[i].path, path) == 0) {
            return &files->files[i];
        }
    }
    if (files->count == EPG_SESSION_FILES_MAX) {
        return NULL;
    }
    files->files = epg_grow_array(files->files, files->count + 1, sizeof *files->files);
    epg_session_file *file = &files->files[files->count++];
    *file = (epg_session_file){.path = epg_strdup(path), .lines = {.limit = line_limit}};
    return file;
}

static void read_file(search *on, int directory, const char *name, const char *path)
{
    EPG_AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    epg_session_file *file = NULL;
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
        (file = file_called(on->files, path, on->line_limit)) == NULL) {
        return;
    }
    char chunk[CHUNK];
    while (file->offset < READ_MAX) {
        ssize_t size = pread(fd, chunk, sizeof chunk, file->offset);
        if (size <= 0) {
            return;
        }
        file->offset += size;
        epg_lines_feed(&file->lines, epg_span_of(chunk, (size_t)size), on->sink, on->context);
    }
}

static void search_directory(search *on, int directory, const char *glob, const char *before);

static void look_at(search *on, int directory, const char *name, const char *rest, const char *before)
{
    EPG_AUTO_FREE char *path = epg_format("%s%s%s", before, *before != '\0' ? "/" : "", name);
    if (rest == NULL) {
        read_file(on, directory, name, path);
        return;
    }
    EPG_AUTO_CLOSE int next = -1;
    if (epg_dir_open(directory, name, &next, NULL) == EPG_OK) {
        search_directory(on, next, rest, path);
    }
}

static void search_directory(search *on, int directory, const char *glob, const char *before)
{
    const char *slash = strchr(glob, '/');
    const char *rest = slash != NULL ? slash + 1 : NULL;
    EPG_AUTO_FREE char *pattern = slash != NULL ? epg_strndup(glob, (size_t)(slash - glob)) : epg_strdup(glob);
    if (strpbrk(pattern, "*?[") == NULL) {
        look_at(on, directory, pattern, rest, before);
        return;
    }
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    if (stream == NULL) {
        return;
    }
    for (struct dirent *item = readdir(stream); item != NULL && on->entries < ENTRIES_MAX; item = readdir(stream)) {
        on->entries++;
        if (fnmatch(pattern, item->d_name, FNM_PERIOD) == 0) {
            look_at(on, directory, item->d_name, rest, before);
        }
    }
    (void)closedir(stream);
}

void epg_session_files_read(epg_session_files *files, int home, size_t line_limit, epg_line_sink *sink, void *context)
{
    search on = {files, line_limit, sink, context, 0};
    search_directory(&on, home, files->glob, "");
}

void epg_session_files_free(epg_session_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->files[i].path);
        epg_buffer_free(&files->files[i].lines.pending);
    }
    free(files->files);
    *files = (epg_session_files){0};
}
