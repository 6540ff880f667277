#include "support/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "support/support.h"

enum { GENEROUS_SECONDS = 40 };

char *epg_test_program(const char *name)
{
    return epg_format("%s/%s", EPG_TEST_BIN, name);
}

void epg_test_command_make(epg_test_command *command, const char *program, const char *first, const char *second)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    *command = (epg_test_command){.out = ends[0], .write = ends[1], .program = epg_test_program(program)};
    command->argv[0] = command->program;
    command->argv[1] = first;
    command->argv[2] = second;
    command->fds[0] = (epg_fd_map){.from = command->write, .to = 1};
    command->spawn = (epg_spawn){
        .argv = command->argv, .working_directory = -1, .fds = command->fds, .fd_count = EPG_COUNT(command->fds)};
}

void epg_test_command_started(epg_test_command *command)
{
    epg_close_cleanup(&command->write);
    command->write = -1;
}

void epg_test_command_free(epg_test_command *command)
{
    epg_test_command_started(command);
    epg_close_cleanup(&command->out);
    free(command->program);
    *command = (epg_test_command){.out = -1, .write = -1};
}

static void wait_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    ck_assert_msg(poll(&wait, 1, GENEROUS_SECONDS * 1000) > 0, "nothing came for %d s", (int)GENEROUS_SECONDS);
}

bool epg_test_read_line(int fd, char *line, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++) {
        wait_readable(fd);
        if (read(fd, line + i, 1) != 1) {
            return false;
        }
        if (line[i] == '\n') {
            line[i] = '\0';
            return true;
        }
    }
    ck_abort_msg("a line is too long");
    return false;
}

void epg_test_expect_line(int fd, const char *expected)
{
    char line[4096] = "";
    ck_assert_msg(epg_test_read_line(fd, line, sizeof line), "the end came instead of '%s'", expected);
    ck_assert_str_eq(line, expected);
}

void epg_test_expect_end(int fd)
{
    char some[4096];
    ssize_t got = 1;
    int64_t limit = epg_deadline_after_ns(GENEROUS_SECONDS * EPG_SECOND);
    while (got > 0) {
        ck_assert_msg(epg_monotonic_ns() < limit, "no end of file for %d s", (int)GENEROUS_SECONDS);
        wait_readable(fd);
        got = read(fd, some, sizeof some);
    }
    ck_assert_int_eq(got, 0);
}

bool epg_test_at_end(int fd)
{
    char some[4096];
    struct pollfd look = {.fd = fd, .events = POLLIN};
    ssize_t got = 1;
    while (got > 0 && poll(&look, 1, 0) > 0) {
        got = read(fd, some, sizeof some);
    }
    return got == 0;
}

void epg_test_no_child_left(void)
{
    siginfo_t info;
    ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
    ck_assert_int_eq(errno, ECHILD);
}
