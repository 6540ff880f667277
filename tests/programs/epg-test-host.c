/* A Host as small as can be: it has the monitor, owns one command, and waits to be killed.
 *
 *   epg-test-host own COMMAND...   prints "MONITOR COMMAND\n" (pids) and polls until the tree is gone
 *   epg-test-host executable       removes its own file, then prints what epg_own_executable says
 *   epg-test-host io DIRECTORY     a fixed sequence of durable steps in DIRECTORY, for EPG_IO_FAULT */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "system/files.h"
#include "system/io.h"
#include "system/owner.h"

static int complain(const epg_error *err)
{
    (void)fprintf(stderr, "epg-test-host: %s: %s\n", epg_code_name(err->code), err->text);
    return 1;
}

static int own(char **command)
{
    extern char **environ;
    static const epg_fd_map fds[] = {{.from = 1, .to = 1}};
    epg_spawn spawn = {.argv = (const char *const *)command,
                       .environment = (const char *const *)environ,
                       .working_directory = -1,
                       .fds = fds,
                       .fd_count = EPG_COUNT(fds)};
    epg_error err = {0};
    epg_owned owned;
    if (epg_owned_start(&spawn, &owned, &err) != EPG_OK) {
        return complain(&err);
    }
    (void)printf("%d %d\n", (int)owned.monitor.pid, (int)owned.command_pid);
    (void)fflush(stdout);
    while (!owned.finished) {
        struct pollfd wait = {.fd = owned.report, .events = POLLIN};
        (void)poll(&wait, 1, -1);
        (void)epg_owned_poll(&owned, NULL);
    }
    return epg_owned_finish(&owned, EPG_NEVER, &err) == EPG_OK ? 0 : complain(&err);
}

static int executable(const char *path)
{
    (void)unlink(path);
    EPG_AUTO_FREE char *own_path = epg_own_executable();
    return puts(own_path) < 0;
}

/* mkdir 1, open 2, write 3, chmod 4, fsync 5, rename 6, fsync (directory) 7. */
static int durable_steps(const char *path)
{
    static const char content[] = "0123456789abcdef";
    epg_error err = {0};
    EPG_AUTO_CLOSE int root = -1;
    EPG_AUTO_CLOSE int run = -1;
    if (epg_dir_open(AT_FDCWD, path, &root, &err) != EPG_OK) {
        return complain(&err);
    }
    if (epg_io_mkdir(root, "run", 0750) < 0) {
        perror("mkdir");
        return 1;
    }
    if (epg_dir_open(root, "run", &run, &err) != EPG_OK ||
        epg_file_write_atomic(run, "record.json", epg_span_text(content), 0640, &err) != EPG_OK) {
        return complain(&err);
    }
    return printf("%ju\n", (uintmax_t)epg_io_points()) < 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "monitor") == 0) {
        return epg_monitor_main(argc, argv);
    }
    if (argc > 2 && strcmp(argv[1], "own") == 0) {
        return own(argv + 2);
    }
    if (argc == 2 && strcmp(argv[1], "executable") == 0) {
        return executable(argv[0]);
    }
    if (argc == 3 && strcmp(argv[1], "io") == 0) {
        return durable_steps(argv[2]);
    }
    (void)fprintf(stderr, "epg-test-host: see its source for what it can do\n");
    return 2;
}
