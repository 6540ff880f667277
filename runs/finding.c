#include "runs/finding.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 32 };

void epg_found_runs_free(epg_found_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        epg_reading_free(&runs->items[i].reading);
        free(runs->items[i].path);
        free(runs->items[i].why);
    }
    free(runs->items);
    *runs = (epg_found_runs){0};
}

static void add_run(epg_found_runs *runs, const char *path)
{
    epg_error why = {.text = ""};
    epg_found_run found = {.path = epg_strdup(path), .reading = {.run = -1}};
    found.readable = epg_reading_open(path, EPG_READ_SUBMISSIONS, &found.reading, &why) == EPG_OK;
    found.why = found.readable ? NULL : epg_strdup(why.text);
    epg_close_cleanup(&found.reading.run);
    found.reading.run = -1;
    runs->items = epg_grow_array(runs->items, runs->count + 1, sizeof *runs->items);
    runs->items[runs->count++] = found;
}

static bool holds_run(int directory)
{
    struct stat info;
    return fstatat(directory, "events.jsonl", &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

static int is_listed(const struct dirent *entry)
{
    return (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && strcmp(entry->d_name, ".") != 0 &&
           strcmp(entry->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void search(int directory, const char *path, unsigned depth, epg_found_runs *runs)
{
    struct dirent **entries = NULL;
    if (holds_run(directory)) {
        add_run(runs, path);
        return;
    }
    int count = depth < DEPTH_MAX ? scandirat(directory, ".", &entries, is_listed, by_bytes) : 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        EPG_AUTO_CLOSE int below = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0) {
            EPG_AUTO_FREE char *inner = strcmp(path, ".") == 0 ? epg_strdup(name) : epg_format("%s/%s", path, name);
            search(below, inner, depth + 1, runs);
        }
        free(entries[i]);
    }
    free(entries);
}

epg_code epg_find_runs(const char *directory, epg_found_runs *runs, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        (void)epg_fail_errno(err, errno, "can't search '%s' for Runs", directory);
        return epg_fail_as(err, EPG_ERR_USAGE, "name a directory");
    }
    size_t size = strlen(directory);
    while (size > 1 && directory[size - 1] == '/') {
        size--;
    }
    EPG_AUTO_FREE char *path = epg_strndup(directory, size);
    search(fd, path, 0, runs);
    return EPG_OK;
}
