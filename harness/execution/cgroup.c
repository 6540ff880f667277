#include "execution/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#define PREFIX "evopolicygym-"

static bool write_text(const char *directory, const char *file, const char *text)
{
    EPG_AUTO_FREE char *path = epg_format("%s/%s", directory, file);
    EPG_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t size = strlen(text);
    return fd >= 0 && write(fd, text, size) == (ssize_t)size;
}

static bool read_text(const char *directory, const char *file, char *text, size_t size)
{
    EPG_AUTO_FREE char *path = epg_format("%s/%s", directory, file);
    EPG_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
    text[got > 0 ? got : 0] = '\0';
    return got >= 0;
}

/* The number behind `name` in a file of lines "name number". */
static uint64_t read_member(const char *directory, const char *file, const char *name)
{
    char text[4096];
    size_t length = strlen(name);
    if (!read_text(directory, file, text, sizeof text)) {
        return 0;
    }
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            return strtoull(line + length + 1, NULL, 10);
        }
    }
    return 0;
}

/* --- Where. --- */

/* The mount point of a hierarchy: the version 2 one (controller NULL) or that of a version 1 controller. */
static char *mount_of(const char *controller)
{
    char line[4096];
    char *found = NULL;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (file != NULL && found == NULL && fgets(line, sizeof line, file) != NULL) {
        char at[1024];
        char type[64];
        char options[1024];
        const char *tail = strstr(line, " - ");
        if (tail == NULL || sscanf(line, "%*s %*s %*s %*s %1023s", at) != 1 ||
            sscanf(tail, " - %63s %*s %1023s", type, options) != 2) {
            continue;
        }
        bool match = controller == NULL ? strcmp(type, "cgroup2") == 0 : false;
        char *rest = NULL;
        for (char *option = strtok_r(options, ",", &rest);
             option != NULL && controller != NULL && strcmp(type, "cgroup") == 0; option = strtok_r(NULL, ",", &rest)) {
            match = match || strcmp(option, controller) == 0;
        }
        if (match) {
            found = epg_strdup(at);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

/* Our own group in that hierarchy, as /proc/self/cgroup tells it ("/a/b"). */
static char *group_of(const char *controller)
{
    char line[4096];
    char *found = NULL;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && found == NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':');
        char *path = names != NULL ? strchr(names + 1, ':') : NULL;
        if (path == NULL) {
            continue;
        }
        *path++ = '\0';
        bool match = controller == NULL && names[1] == '\0';
        char *rest = NULL;
        for (char *name = strtok_r(names + 1, ",", &rest); name != NULL && controller != NULL;
             name = strtok_r(NULL, ",", &rest)) {
            match = match || strcmp(name, controller) == 0;
        }
        if (match) {
            found = epg_strdup(path);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

/* Groups of Hosts that are gone. */
static void sweep(const char *directory)
{
    DIR *open_directory = opendir(directory);
    const struct dirent *entry = NULL;
    while (open_directory != NULL && (entry = readdir(open_directory)) != NULL) {
        if (epg_starts_with(entry->d_name, PREFIX)) {
            pid_t owner = (pid_t)atoi(entry->d_name + strlen(PREFIX));
            if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) {
                EPG_AUTO_FREE char *path = epg_format("%s/%s", directory, entry->d_name);
                (void)rmdir(path);
            }
        }
    }
    if (open_directory != NULL) {
        (void)closedir(open_directory);
    }
}

/* A group made here has the file that sets the limit. */
static bool usable(const char *directory, const char *file)
{
    EPG_AUTO_FREE char *trial = epg_format("%s/" PREFIX "%d-trial", directory, (int)getpid());
    EPG_AUTO_FREE char *limit = epg_format("%s/%s", trial, file);
    if (mkdir(trial, 0755) != 0 && errno != EEXIST) {
        return false;
    }
    bool writable = access(limit, W_OK) == 0;
    (void)rmdir(trial);
    return writable;
}

/* The version 2 rule is that a group with processes in it can't share memory out to groups below. When the user gave us
 * a group of our own (systemd-run --user --scope -p Delegate=yes) and we are alone in it, we move one down. */
static void make_room(const char *directory)
{
    char text[4096];
    char own[32];
    EPG_AUTO_FREE char *leaf = epg_format("%s/" PREFIX "host", directory);
    int size = snprintf(own, sizeof own, "%d\n", (int)getpid());
    if (size <= 0 || !read_text(directory, "cgroup.controllers", text, sizeof text) || strstr(text, "memory") == NULL ||
        !read_text(directory, "cgroup.procs", text, sizeof text) || strcmp(text, own) != 0) {
        return;
    }
    if (mkdir(leaf, 0755) != 0 && errno != EEXIST) {
        return;
    }
    if (write_text(leaf, "cgroup.procs", own) && !write_text(directory, "cgroup.subtree_control", "+memory +pids")) {
        (void)write_text(directory, "cgroup.procs", own); /* back: it was for nothing */
    }
    (void)rmdir(leaf); /* only when we are not in it */
}

/* From our own group upwards, the first place that will do. */
static char *find_place(const char *controller, const char *file)
{
    EPG_AUTO_FREE char *mount = mount_of(controller);
    EPG_AUTO_FREE char *group = group_of(controller);
    if (mount == NULL || group == NULL) {
        return NULL;
    }
    if (controller == NULL && strcmp(group, "/") != 0) {
        EPG_AUTO_FREE char *own = epg_format("%s%s", mount, group);
        make_room(own);
    }
    for (;;) {
        EPG_AUTO_FREE char *place = epg_format("%s%s", mount, strcmp(group, "/") == 0 ? "" : group);
        if (usable(place, file)) {
            sweep(place);
            return EPG_TAKE(place);
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL || strcmp(group, "/") == 0) {
            return NULL;
        }
        slash[slash == group ? 1 : 0] = '\0';
    }
}

const epg_cgroup_places *epg_cgroup_find(void)
{
    static epg_cgroup_places places;
    static bool looked;
    if (!looked) {
        looked = true;
        places.memory = find_place(NULL, "memory.max");
        if (places.memory != NULL) {
            places.unified = true;
            places.processes = epg_strdup(places.memory);
        } else {
            places.memory = find_place("memory", "memory.limit_in_bytes");
            places.processes = find_place("pids", "pids.max");
        }
    }
    return &places;
}

/* --- One group. --- */

static char *make_group(const char *place)
{
    static unsigned count; /* names need only differ within this process */
    char *path = epg_format("%s/" PREFIX "%d-%u", place, (int)getpid(), count++);
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        free(path);
        return NULL;
    }
    return path;
}

static void drop_group(char **path)
{
    if (*path != NULL) {
        (void)rmdir(*path);
        free(*path);
        *path = NULL;
    }
}

static void limit_memory(epg_cgroup *group, uint64_t bytes)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, bytes);
    bool laid = write_text(group->memory, group->unified ? "memory.max" : "memory.limit_in_bytes", text);
    if (group->unified) {
        (void)write_text(group->memory, "memory.swap.max", "0");
    } else {
        (void)write_text(group->memory, "memory.memsw.limit_in_bytes", text); /* where swap is counted */
    }
    if (!laid) {
        drop_group(&group->memory);
    }
}

void epg_cgroup_make(uint64_t memory_bytes, uint64_t processes, epg_cgroup *out)
{
    const epg_cgroup_places *places = epg_cgroup_find();
    char text[32];
    *out = (epg_cgroup){.unified = places->unified};
    (void)snprintf(text, sizeof text, "%" PRIu64, processes);
    if (memory_bytes > 0 && places->memory != NULL) {
        out->memory = make_group(places->memory);
    }
    if (out->memory != NULL) {
        limit_memory(out, memory_bytes);
    }
    if (processes == 0 || places->processes == NULL) {
        return;
    }
    bool shared = out->unified && out->memory != NULL;
    out->processes = shared ? epg_strdup(out->memory) : make_group(places->processes);
    if (out->processes != NULL && !write_text(out->processes, "pids.max", text)) {
        if (shared) {
            free(out->processes);
            out->processes = NULL;
        } else {
            drop_group(&out->processes);
        }
    }
}

/* /proc/PID/cgroup ends a line of each hierarchy with the path of the group, whose last part is ours alone. */
bool epg_cgroup_holds(const epg_cgroup *group, pid_t pid)
{
    char line[4096];
    bool found = false;
    const char *name = group->memory != NULL ? strrchr(group->memory, '/') : NULL;
    EPG_AUTO_FREE char *path = epg_format("/proc/%d/cgroup", (int)pid);
    FILE *file = name != NULL ? fopen(path, "re") : NULL;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = epg_ends_with(line, name);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

int epg_cgroup_open_joins(const epg_cgroup *group, int out[2])
{
    const char *const directories[] = {group->memory,
                                       group->unified && group->memory != NULL ? NULL : group->processes};
    int count = 0;
    for (size_t i = 0; i < EPG_COUNT(directories); i++) {
        if (directories[i] != NULL) {
            EPG_AUTO_FREE char *path = epg_format("%s/cgroup.procs", directories[i]);
            int fd = open(path, O_WRONLY | O_CLOEXEC);
            if (fd >= 0) {
                out[count++] = fd;
            }
        }
    }
    return count;
}

void epg_cgroup_read(const epg_cgroup *group, epg_cgroup_events *out)
{
    *out = (epg_cgroup_events){0};
    if (group->memory != NULL) {
        out->memory_kills =
            read_member(group->memory, group->unified ? "memory.events" : "memory.oom_control", "oom_kill");
    }
    if (group->processes != NULL) {
        out->processes_denied = read_member(group->processes, "pids.events", "max");
    }
}

static void remove_directory(char *path)
{
    const int64_t patience = 100 * EPG_MILLISECOND;
    int64_t deadline = epg_deadline_after_ns(patience);
    while (rmdir(path) != 0 && errno == EBUSY && epg_monotonic_ns() < deadline) {
        (void)usleep(1000);
    }
    free(path);
}

void epg_cgroup_remove(epg_cgroup *group)
{
    bool shared = group->memory != NULL && group->processes != NULL && strcmp(group->memory, group->processes) == 0;
    if (group->processes != NULL && !shared) {
        remove_directory(group->processes);
    } else {
        free(group->processes);
    }
    if (group->memory != NULL) {
        remove_directory(group->memory);
    }
    *group = (epg_cgroup){0};
}
