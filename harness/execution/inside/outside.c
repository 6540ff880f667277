/* The last steps on the Host. See inside.h.
 *
 * Staging: when we are root, the sandbox is made by an unprivileged user, who could not even reach what is to be shown
 * when it lies below a private directory. So each path is cloned as a mount of its own (open_tree) while we still may,
 * and put below one directory that this user can reach, in a mount namespace of ours that nobody else sees. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "execution/inside/inside.h"
#include "execution/inside/relay.h"

/* Not in every C library that we build with. */
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef OPEN_TREE_CLOEXEC
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif

enum { STAGED_MAX = 256, JOINS_MAX = 4 };

typedef struct staged {
    char *path;
    int own; /* to be shown as the sandbox's user's */
    int tree;
} staged;

typedef struct outside {
    unsigned long drop; /* 0: stay who we are */
    staged stage[STAGED_MAX];
    size_t stage_count;
    int gives; /* what is `own` changes its owner: it can't be mapped */
    int joins[JOINS_MAX];
    size_t join_count;
    const char *proxy_host;
    const char *proxy_port;
    char **command;
} outside;

static int read_words(outside *self, int argc, char **argv)
{
    int i = 1;
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
        char *value = argv[i + 1];
        int own = strcmp(argv[i], "--own") == 0;
        if (strcmp(argv[i], "--drop") == 0) {
            self->drop = strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--join") == 0 && self->join_count < JOINS_MAX) {
            self->joins[self->join_count++] = atoi(value);
        } else if ((own || strcmp(argv[i], "--stage") == 0) && self->stage_count < STAGED_MAX) {
            self->stage[self->stage_count++] = (staged){.path = value, .own = own, .tree = -1};
        } else if (strcmp(argv[i], "--proxy") == 0 && i + 2 < argc) {
            self->proxy_host = value;
            self->proxy_port = argv[i + 2];
            i++;
        } else {
            return -1;
        }
    }
    self->command = argv + i + 1;
    return i + 1 < argc ? 0 : -1;
}

/* A user namespace in which the sandbox's user on disk is 0: what an id-mapped mount is made with. */
static int map_of(unsigned long id)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) != 0) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!write(pair[1], unshare(CLONE_NEWUSER) == 0 ? "y" : "n", 1);
        for (;;) {
            (void)pause(); /* until the parent is done: it ends us */
        }
    }
    char answer = 'n';
    char path[64];
    char text[64];
    int space = -1;
    (void)close(pair[1]);
    if (child > 0 && read(pair[0], &answer, 1) == 1 && answer == 'y') {
        static const char *const files[] = {"uid_map", "gid_map"};
        int size = snprintf(text, sizeof text, "0 %lu 1\n", id);
        int written = 1;
        for (size_t i = 0; i < 2; i++) {
            (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)child, files[i]);
            int map = open(path, O_WRONLY | O_CLOEXEC);
            written = written && map >= 0 && write(map, text, (size_t)size) == size;
            (void)close(map);
        }
        (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)child);
        space = written ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    }
    (void)close(pair[0]);
    if (child > 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    return space;
}

static int map_tree(int tree, int space)
{
    struct {
        uint64_t set, clear, propagation, user_namespace;
    } attributes = {.set = MOUNT_ATTR_IDMAP, .user_namespace = (uint64_t)space};
    return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes);
}

/* For a file system that has no id-mapped mounts: the Host takes it back when the box is closed. What was given away
 * must not be mapped as well, so once is for all. */
static int give_tree(char *root, uid_t to)
{
    char *const roots[] = {root, NULL};
    int failed = 0;
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
    for (const FTSENT *entry = NULL; walk != NULL && failed == 0 && (entry = fts_read(walk)) != NULL;) {
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS) {
            errno = entry->fts_errno;
            failed = -1;
        } else if (entry->fts_info != FTS_DP && entry->fts_statp->st_uid == 0) {
            failed = lchown(entry->fts_path, to, to);
        }
    }
    if (walk == NULL || fts_close(walk) != 0) {
        failed = -1;
    }
    return failed;
}

static int make_own(outside *self, const staged *one, int space)
{
    if (!self->gives && space >= 0 && map_tree(one->tree, space) == 0) {
        return 0;
    }
    self->gives = 1;
    return give_tree(one->path, (uid_t)self->drop);
}

static int clone_all(outside *self)
{
    int space = -1;
    for (size_t i = 0; i < self->stage_count; i++) {
        staged *one = &self->stage[i];
        one->tree = (int)syscall(SYS_open_tree, AT_FDCWD, one->path,
                                 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (one->own ? 0 : AT_RECURSIVE));
        if (one->tree < 0) {
            return epg_contain_failed(one->path);
        }
        if (one->own && space < 0) {
            space = map_of(self->drop);
        }
        if (one->own && make_own(self, one, space) != 0) {
            return epg_contain_failed("making a directory the Agent's own");
        }
    }
    if (space >= 0) {
        (void)close(space);
    }
    return 0;
}

static int place_all(const outside *self)
{
    char target[64];
    struct stat info;
    for (size_t i = 0; i < self->stage_count; i++) {
        (void)snprintf(target, sizeof target, EPG_STAGE "/%zu", i);
        if (fstat(self->stage[i].tree, &info) != 0) {
            return epg_contain_failed("fstat");
        }
        int made = S_ISDIR(info.st_mode) ? mkdir(target, 0755) : mknod(target, S_IFREG | 0644, 0);
        if (made != 0 ||
            syscall(SYS_move_mount, self->stage[i].tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
            return epg_contain_failed("move_mount");
        }
        (void)close(self->stage[i].tree);
    }
    return 0;
}

static int stage_all(outside *self)
{
    if (unshare(CLONE_NEWNS) != 0) {
        return epg_contain_failed("unshare(CLONE_NEWNS) as root");
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) {
        return epg_contain_failed("mount(MS_SLAVE) as root");
    }
    int code = clone_all(self);
    if (code != 0) {
        return code;
    }
    if (mount("tmpfs", EPG_STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") != 0) {
        return epg_contain_failed("mount(tmpfs) as root");
    }
    return place_all(self);
}

static int join_all(const outside *self)
{
    for (size_t i = 0; i < self->join_count; i++) {
        if (write(self->joins[i], "0", 1) != 1) {
            return epg_contain_failed("joining a cgroup");
        }
        (void)close(self->joins[i]);
    }
    return 0;
}

/* The change of identity takes PDEATHSIG away: it is asked for again, then the parent is seen to live still. */
static int drop(const outside *self, pid_t parent)
{
    id_t id = (id_t)self->drop;
    if (id != 0 && (setgroups(0, NULL) != 0 || setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0)) {
        return epg_contain_failed("becoming an unprivileged user");
    }
    if (id != 0 && (getuid() != id || geteuid() != id || setuid(0) == 0)) {
        errno = EPERM;
        return epg_contain_failed("becoming an unprivileged user");
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return epg_contain_failed("prctl(PR_SET_PDEATHSIG)");
    }
    if (getppid() != parent) {
        (void)raise(SIGKILL);
    }
    return 0;
}

/* A tree is asked to end by SIGTERM to every process of it. bwrap would end at once and take the command with it, which
 * is to have its time: so this signal is not for bwrap; `contain inside` lets it in again. */
static void leave_signals_to_the_command(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
}

static void prefer_as_victim(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        (void)!write(file, "500", 3);
        (void)close(file);
    }
}

int epg_contain_outside(int argc, char **argv)
{
    static outside self;
    const struct rlimit none = {0, 0};
    pid_t parent = getppid();
    if (read_words(&self, argc, argv) != 0) {
        errno = EINVAL;
        return epg_contain_failed("outside");
    }
    int command = open(self.command[0], O_PATH | O_CLOEXEC);
    int code = self.drop != 0 ? stage_all(&self) : 0;
    if (code == 0) {
        code = join_all(&self);
    }
    prefer_as_victim();
    leave_signals_to_the_command();
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)umask(022);
    if (code == 0) {
        code = drop(&self, parent);
    }
    if (code == 0 && self.proxy_host != NULL) {
        code = epg_relay_start(self.proxy_host, self.proxy_port);
    }
    if (code != 0) {
        return code;
    }
    /* By its descriptor: it may lie where the user that we are now can't go. A script needs its path. */
    (void)syscall(SYS_execveat, command, "", self.command, environ, AT_EMPTY_PATH);
    (void)execv(self.command[0], self.command);
    return epg_contain_failed(self.command[0]);
}
