/* Process 1 of the Agent's sandbox. See first.h. */
#include "execution/inside/first.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "execution/inside/inside.h"

/* Whether the process `name` of /proc lives: it has not ended, reaped or not. */
static int lives(int proc, const char *name)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, "%.20s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    text[size > 0 ? size : 0] = '\0';
    const char *state = strrchr(text, ')'); /* the name before it may hold anything */
    return state != NULL && state[1] == ' ' && strchr("ZXx", state[2]) == NULL;
}

static unsigned count_others(void)
{
    DIR *proc = opendir("/proc");
    unsigned count = 0;
    for (const struct dirent *entry = NULL; proc != NULL && (entry = readdir(proc)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0]) && strcmp(entry->d_name, "1") != 0) {
            count += lives(dirfd(proc), entry->d_name) ? 1 : 0;
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return count;
}

static void be_first(pid_t command)
{
    int status = 0;
    pid_t ended = 0;
    (void)close_range(0, EPG_FD_LEFT - 1, 0); /* so that the command's end closes them */
    (void)close_range(EPG_FD_LEFT + 1, ~0U, 0);
    do {
        ended = waitpid(-1, &status, 0);
    } while (ended != command && (ended > 0 || errno == EINTR));
    unsigned left = count_others();
    (void)!write(EPG_FD_LEFT, &left, sizeof left);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int epg_become_first(void)
{
    if (fcntl(EPG_FD_LEFT, F_SETFD, FD_CLOEXEC) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0) {
        return -1;
    }
    pid_t child = fork();
    if (child > 0) {
        be_first(child);
    }
    return child < 0 || setsid() < 0 ? -1 : 0;
}
