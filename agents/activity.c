#include "agents/activity.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

typedef struct entry {
    pid_t pid;
    pid_t parent;
    int64_t ticks;
    bool below; /* of the root */
} entry;

/* The numbers that stand after the state in /proc/PID/stat, as far as they are needed. */
enum { PARENT = 0, USER = 10, SYSTEM, CHILD_USER, CHILD_SYSTEM, FIELDS };

/* /proc/PID/stat: after the name, which may hold anything, in parentheses. */
static bool read_entry(const char *pid, entry *out)
{
    EPG_AUTO_FREE char *path = epg_format("/proc/%s/stat", pid);
    EPG_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[1024];
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    char *rest = strrchr(text, ')');
    long long numbers[FIELDS] = {0};
    if (rest == NULL || rest[1] != ' ' || rest[2] == '\0') {
        return false;
    }
    rest += 3; /* past the state, a letter */
    for (size_t i = 0; i < FIELDS; i++) {
        char *end = rest;
        numbers[i] = strtoll(rest, &end, 10);
        if (end == rest) {
            return false;
        }
        rest = end;
    }
    long long ticks = numbers[USER] + numbers[SYSTEM] + numbers[CHILD_USER] + numbers[CHILD_SYSTEM];
    *out = (entry){(pid_t)strtol(pid, NULL, 10), (pid_t)numbers[PARENT], ticks, false};
    return true;
}

static size_t read_all(entry **out)
{
    DIR *stream = opendir("/proc");
    size_t count = 0;
    size_t room = 0;
    for (struct dirent *item = stream != NULL ? readdir(stream) : NULL; item != NULL; item = readdir(stream)) {
        entry one;
        uint64_t ignored = 0;
        if (!epg_parse_u64(item->d_name, strlen(item->d_name), INT32_MAX, &ignored) ||
            !read_entry(item->d_name, &one)) {
            continue;
        }
        if (count == room) {
            room = room == 0 ? 256 : 2 * room;
            *out = epg_grow_array(*out, room, sizeof **out);
        }
        (*out)[count++] = one;
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    return count;
}

static bool is_below(const entry *all, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].pid == pid) {
            return all[i].below;
        }
    }
    return false;
}

int64_t epg_activity_cpu_ns(pid_t root)
{
    entry *all = NULL;
    size_t count = read_all(&all);
    int64_t ticks = 0;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < count; i++) {
            if (!all[i].below && (all[i].pid == root || is_below(all, count, all[i].parent))) {
                all[i].below = true;
                ticks += all[i].ticks;
                more = true;
            }
        }
    }
    free(all);
    long rate = sysconf(_SC_CLK_TCK);
    return ticks * (EPG_SECOND / (rate > 0 ? rate : 100));
}
