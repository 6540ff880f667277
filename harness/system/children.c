#include "system/children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

enum { PROC_PATH = 64, PROC_CHUNK = 4096 };

void epg_pid_list_add(epg_pid_list *list, pid_t pid)
{
    if (list->count == list->room) {
        list->room = list->room == 0 ? 16 : 2 * list->room;
        list->pids = epg_grow_array(list->pids, list->room, sizeof *list->pids);
    }
    list->pids[list->count++] = pid;
}

void epg_pid_list_free(epg_pid_list *list)
{
    free(list->pids);
    *list = (epg_pid_list){0};
}

static bool read_pid(const char *text, pid_t *out)
{
    uint64_t value = 0;
    if (!epg_parse_u64(text, strlen(text), INT_MAX, &value) || value == 0) {
        return false;
    }
    *out = (pid_t)value;
    return true;
}

static DIR *open_proc(const char *path)
{
    return opendir(path); /* close-on-exec in glibc */
}

bool epg_child_look(pid_t pid, pid_t *parent, bool *ended)
{
    char path[PROC_PATH];
    char text[PROC_CHUNK];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    EPG_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    /* "pid (name) state parent ...", and the name is whatever the process chose: its end is the last ')'. */
    const char *rest = strrchr(text, ')');
    if (rest == NULL || strlen(rest) < sizeof ") S 1") {
        return false;
    }
    *ended = rest[2] == 'Z' || rest[2] == 'X';
    *parent = (pid_t)strtol(rest + 4, NULL, 10);
    return true;
}

/* Reads "12 34 ", which may be longer than one read. */
static bool add_from_file(const char *path, epg_pid_list *list)
{
    EPG_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    char text[PROC_CHUNK];
    ssize_t size = 0;
    pid_t pid = 0;
    while ((size = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < size; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid > 0) {
                epg_pid_list_add(list, pid);
                pid = 0;
            }
        }
    }
    return true;
}

bool epg_children_from_kernel(pid_t parent, epg_pid_list *list)
{
    char path[PROC_PATH];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    DIR *tasks = open_proc(path);
    if (tasks == NULL) {
        return true; /* it is gone, and has no children */
    }
    bool told = true;
    const struct dirent *entry = NULL;
    while ((entry = readdir(tasks)) != NULL) {
        pid_t task = 0;
        if (!read_pid(entry->d_name, &task)) {
            continue;
        }
        (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)task);
        /* A thread that ended meanwhile has no file either; the main thread's is always there. */
        if (!add_from_file(path, list) && task == parent && errno == ENOENT) {
            told = access("/proc/thread-self/children", F_OK) == 0;
        }
    }
    (void)closedir(tasks);
    return told;
}

void epg_children_from_scan(pid_t parent, epg_pid_list *list)
{
    DIR *proc = open_proc("/proc");
    const struct dirent *entry = NULL;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = 0;
        pid_t its_parent = 0;
        bool ended = false;
        if (read_pid(entry->d_name, &pid) && epg_child_look(pid, &its_parent, &ended) && its_parent == parent) {
            epg_pid_list_add(list, pid);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
}

void epg_children_list(pid_t parent, epg_pid_list *list)
{
    if (!epg_children_from_kernel(parent, list)) {
        epg_children_from_scan(parent, list);
    }
}
