#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "support/processes.h"
#include "support/support.h"

static const int64_t long_time = 30 * EPG_SECOND;

/* Starts `epg-test-tree WHAT SECOND`. */
static epg_process start(epg_test_command *command, const char *what, const char *second)
{
    epg_error err = {0};
    epg_process process;
    epg_test_command_make(command, "epg-test-tree", what, second);
    epg_assert_ok(epg_process_spawn(&command->spawn, &process, &err), &err);
    epg_test_command_started(command);
    return process;
}

static epg_exit finish(epg_process *process)
{
    epg_error err = {0};
    epg_exit end = {0};
    epg_assert_ok(epg_process_wait(process, epg_deadline_after_ns(long_time), &end, &err), &err);
    ck_assert_int_eq(process->pid, -1);
    ck_assert_int_eq(process->pidfd, -1);
    epg_test_no_child_left();
    return end;
}

START_TEST(the_exit_code_is_told)
{
    epg_test_command command;
    size_t before = epg_test_open_descriptors();
    epg_process process = start(&command, "exit", "42");
    epg_exit end = finish(&process);
    ck_assert_int_eq(end.code, 42);
    ck_assert_int_eq(end.signal, 0);
    epg_test_command_free(&command);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

START_TEST(the_signal_is_told)
{
    epg_test_command command;
    epg_process process = start(&command, "sleep", NULL);
    epg_test_expect_line(command.out, "ready");
    ck_assert(epg_process_running(&process));
    epg_process_signal(&process, SIGUSR1);
    epg_exit end = finish(&process);
    ck_assert_int_eq(end.code, -1);
    ck_assert_int_eq(end.signal, SIGUSR1);
    ck_assert(!epg_process_running(&process));
    epg_process_signal(&process, SIGUSR1); /* harmless by now */
    epg_test_command_free(&command);
}
END_TEST

static void expect_no_start(const epg_spawn *spawn, epg_code code, int sys_errno)
{
    epg_error err = {0};
    epg_process process = {.pid = -5, .pidfd = -5};
    size_t before = epg_test_open_descriptors();
    epg_assert_code(epg_process_spawn(spawn, &process, &err), code, &err);
    ck_assert_int_eq(err.code, code);
    ck_assert_int_eq(err.sys_errno, sys_errno);
    ck_assert_ptr_nonnull(strstr(err.text, spawn->argv[0]));
    ck_assert_int_eq(process.pid, -5);
    ck_assert_int_eq(process.pidfd, -5);
    epg_test_no_child_left();
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}

START_TEST(a_missing_program_is_not_found)
{
    const char *path[] = {"/nonexistent/program", NULL};
    const char *name[] = {"no-such-program-here", NULL};
    expect_no_start(&(epg_spawn){.argv = path, .working_directory = -1}, EPG_ERR_NOT_FOUND, ENOENT);
    expect_no_start(&(epg_spawn){.argv = name, .working_directory = -1, .search_path = "/usr/bin:/bin"},
                    EPG_ERR_NOT_FOUND, 0);
}
END_TEST

START_TEST(the_step_that_failed_is_told)
{
    char *directory = epg_test_directory();
    epg_test_write_text(directory, "plain", "not a program");
    EPG_AUTO_FREE char *plain = epg_format("%s/plain", directory);
    const char *argv[] = {plain, NULL};
    expect_no_start(&(epg_spawn){.argv = argv, .working_directory = -1}, EPG_ERR_IO, EACCES);
    ck_assert_int_eq(chmod(plain, 0755), 0);
    expect_no_start(&(epg_spawn){.argv = argv, .working_directory = -1}, EPG_ERR_IO, ENOEXEC);

    const char *good[] = {"/bin/true", NULL};
    EPG_AUTO_CLOSE int file = open(plain, O_RDONLY | O_CLOEXEC);
    expect_no_start(&(epg_spawn){.argv = good, .working_directory = file}, EPG_ERR_IO, ENOTDIR);

    epg_fd_map bad = {.from = 999, .to = 3};
    expect_no_start(&(epg_spawn){.argv = good, .working_directory = -1, .fds = &bad, .fd_count = 1}, EPG_ERR_IO, EBADF);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(the_search_path_is_walked_in_order_and_only_its_absolute_entries)
{
    char *directory = epg_test_directory();
    epg_test_write_text(directory, "one/tool", "#!/bin/sh\nexit 1\n");
    epg_test_write_text(directory, "two/tool", "#!/bin/sh\nexit 2\n");
    epg_test_write_text(directory, "three/tool", "#!/bin/sh\nexit 3\n");
    EPG_AUTO_FREE char *two = epg_format("%s/two/tool", directory);
    EPG_AUTO_FREE char *three = epg_format("%s/three/tool", directory);
    ck_assert_int_eq(chmod(two, 0755), 0);
    ck_assert_int_eq(chmod(three, 0755), 0);
    /* "one/tool" has no execute bit. */
    EPG_AUTO_FREE char *path =
        epg_format("::three:%s/none:%s/one:%s/two:%s/three", directory, directory, directory, directory);
    const char *argv[] = {"tool", NULL};
    epg_spawn spawn = {.argv = argv, .working_directory = -1, .search_path = path};
    epg_process process;
    epg_error err = {0};
    ck_assert_int_eq(chdir(directory), 0);
    epg_assert_ok(epg_process_spawn(&spawn, &process, &err), &err);
    ck_assert_int_eq(finish(&process).code, 2);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(the_child_has_no_descriptor_but_those_named)
{
    int leak = open("/dev/zero", O_RDONLY); /* NOLINT: not close-on-exec on purpose */
    int high = fcntl(leak, F_DUPFD, 200);
    ck_assert_int_ge(high, 200);
    epg_test_command command;
    epg_process process = start(&command, "descriptors", NULL);
    epg_test_expect_line(command.out, "0 1 2 ");
    ck_assert_int_eq(finish(&process).code, 0);
    epg_test_command_free(&command);
    (void)close(leak);
    (void)close(high);
}
END_TEST

/* Each descriptor goes where another one is now. */
START_TEST(descriptors_may_change_places)
{
    char *directory = epg_test_directory();
    epg_test_write_text(directory, "a", "A");
    epg_test_write_text(directory, "b", "B");
    epg_test_write_text(directory, "c", "C");
    EPG_AUTO_CLOSE int home = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int a = openat(home, "a", O_RDONLY | O_CLOEXEC);
    int b = openat(home, "b", O_RDONLY | O_CLOEXEC);
    int c = openat(home, "c", O_RDONLY | O_CLOEXEC);
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    epg_fd_map fds[] = {{a, b}, {b, c}, {c, a}, {a, 0}, {ends[1], 1}};
    EPG_AUTO_FREE char *script = epg_format("cat; cat <&%d; cat <&%d; cat <&%d; echo", b, c, a);
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    const char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    epg_spawn spawn = {
        .argv = argv, .environment = environment, .working_directory = -1, .fds = fds, .fd_count = EPG_COUNT(fds)};
    epg_process process;
    epg_error err = {0};
    epg_assert_ok(epg_process_spawn(&spawn, &process, &err), &err);
    (void)close(ends[1]);
    /* 0 and b share one file offset, so that the second cat has nothing left. */
    epg_test_expect_line(ends[0], "ABC");
    ck_assert_int_eq(finish(&process).code, 0);
    (void)close(ends[0]);
    (void)close(a);
    (void)close(b);
    (void)close(c);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(the_standard_descriptors_are_dev_null_unless_mapped)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    epg_fd_map fds[] = {{ends[1], 7}};
    const char *argv[] = {"/bin/sh", "-c",
                          "cat; for n in 0 1 2; do l=\"$l $(readlink /proc/$$/fd/$n)\"; done; echo $l >&7", NULL};
    const char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    epg_spawn spawn = {.argv = argv, .environment = environment, .working_directory = -1, .fds = fds, .fd_count = 1};
    epg_process process;
    epg_error err = {0};
    epg_assert_ok(epg_process_spawn(&spawn, &process, &err), &err);
    (void)close(ends[1]);
    epg_test_expect_line(ends[0], "/dev/null /dev/null /dev/null");
    ck_assert_int_eq(finish(&process).code, 0);
    (void)close(ends[0]);
}
END_TEST

START_TEST(it_starts_even_when_our_own_standard_descriptors_are_closed)
{
    epg_test_command command;
    int saved = fcntl(2, F_DUPFD_CLOEXEC, 100);
    (void)close(0);
    (void)close(1);
    (void)close(2);
    epg_process process = start(&command, "exit", "5");
    epg_test_expect_line(command.out, "ready");
    epg_exit end = finish(&process);
    epg_test_command_free(&command);
    ck_assert_int_eq(dup2(saved, 2), 2);
    ck_assert_int_eq(dup2(saved, 1), 1);
    ck_assert_int_eq(end.code, 5);
}
END_TEST

static void on_signal(int number)
{
    (void)number;
}

START_TEST(signals_are_as_new_in_the_child)
{
    struct sigaction handler = {.sa_handler = on_signal};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    (void)sigaddset(&blocked, SIGTERM);
    ck_assert_int_eq(sigaction(SIGUSR2, &handler, NULL), 0);
    ck_assert_int_eq(sigaction(SIGPIPE, &ignore, NULL), 0);
    ck_assert_int_eq(sigaction(SIGINT, &ignore, NULL), 0);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
    epg_test_command command;
    epg_process process;
    epg_error err = {0};
    epg_test_command_make(&command, "unused", "/proc/self/status", NULL);
    command.argv[0] = "/bin/cat";
    epg_assert_ok(epg_process_spawn(&command.spawn, &process, &err), &err);
    epg_test_command_started(&command);
    char line[4096];
    unsigned seen = 0;
    while (epg_test_read_line(command.out, line, sizeof line)) {
        if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0 || strncmp(line, "SigCgt", 6) == 0) {
            ck_assert_str_eq(line + 6, ":\t0000000000000000");
            seen++;
        }
    }
    ck_assert_uint_eq(seen, 3);
    ck_assert_int_eq(finish(&process).code, 0);
    epg_test_command_free(&command);
    /* Ours are as they were. */
    sigset_t now;
    struct sigaction action;
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &now), 0);
    ck_assert(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGHUP) == 0);
    ck_assert_int_eq(sigaction(SIGPIPE, NULL, &action), 0);
    ck_assert(action.sa_handler == SIG_IGN);
}
END_TEST

START_TEST(the_end_is_told_though_sigchld_was_ignored_when_we_were_started)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    ck_assert_int_eq(sigaction(SIGCHLD, &ignore, NULL), 0);
    epg_test_command command;
    epg_process process = start(&command, "exit", "9");
    ck_assert_int_eq(finish(&process).code, 9);
    epg_test_command_free(&command);
}
END_TEST

START_TEST(the_environment_is_exactly_the_one_given)
{
    epg_test_command command;
    const char *environment[] = {"ONE=1", "TWO=a b", NULL};
    epg_process process;
    epg_error err = {0};
    epg_test_command_make(&command, "unused", NULL, NULL);
    command.argv[0] = "/usr/bin/env";
    command.spawn.environment = environment;
    epg_assert_ok(epg_process_spawn(&command.spawn, &process, &err), &err);
    epg_test_command_started(&command);
    epg_test_expect_line(command.out, "ONE=1");
    epg_test_expect_line(command.out, "TWO=a b");
    epg_test_expect_end(command.out);
    ck_assert_int_eq(finish(&process).code, 0);
    epg_test_command_free(&command);

    epg_test_command_make(&command, "unused", NULL, NULL);
    command.argv[0] = "/usr/bin/env";
    epg_assert_ok(epg_process_spawn(&command.spawn, &process, &err), &err);
    epg_test_command_started(&command);
    char line[64];
    ck_assert(!epg_test_read_line(command.out, line, sizeof line));
    ck_assert_int_eq(finish(&process).code, 0);
    epg_test_command_free(&command);
}
END_TEST

START_TEST(the_working_directory_is_the_one_of_the_descriptor)
{
    char *directory = epg_test_directory();
    EPG_AUTO_CLOSE int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EPG_AUTO_FREE char *real = realpath(directory, NULL);
    epg_test_command command;
    epg_process process;
    epg_error err = {0};
    epg_test_command_make(&command, "unused", NULL, NULL);
    command.argv[0] = "/bin/pwd";
    command.spawn.working_directory = fd;
    epg_assert_ok(epg_process_spawn(&command.spawn, &process, &err), &err);
    epg_test_command_started(&command);
    epg_test_expect_line(command.out, real);
    ck_assert_int_eq(finish(&process).code, 0);
    epg_test_command_free(&command);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(a_session_is_made_only_where_asked)
{
    epg_test_command command;
    epg_process process;
    epg_error err = {0};
    epg_test_command_make(&command, "epg-test-tree", "session", NULL);
    command.spawn.new_session = _i == 1;
    epg_assert_ok(epg_process_spawn(&command.spawn, &process, &err), &err);
    epg_test_command_started(&command);
    epg_test_expect_line(command.out, _i == 1 ? "session" : "none");
    ck_assert_int_eq(finish(&process).code, 0);
    epg_test_command_free(&command);
}
END_TEST

/* A process of ours that starts the command, and dies. */
START_TEST(the_child_dies_with_its_parent_where_asked)
{
    epg_test_command command;
    epg_test_command_make(&command, "epg-test-tree", "deaf", NULL);
    command.spawn.die_with_parent = true;
    pid_t parent = fork();
    if (parent == 0) {
        epg_process process;
        if (epg_process_spawn(&command.spawn, &process, NULL) != EPG_OK) {
            _exit(1);
        }
        for (;;) {
            (void)pause();
        }
    }
    epg_test_command_started(&command);
    epg_test_expect_line(command.out, "ready");
    ck_assert(!epg_test_at_end(command.out));
    ck_assert_int_eq(kill(parent, SIGKILL), 0);
    ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
    epg_test_expect_end(command.out);
    epg_test_command_free(&command);
}
END_TEST

START_TEST(a_wait_that_is_over_leaves_the_process_as_it_is)
{
    epg_test_command command;
    epg_error err = {0};
    epg_exit end = {.code = -7, .signal = -7};
    epg_process process = start(&command, "sleep", NULL);
    epg_test_expect_line(command.out, "ready");
    epg_assert_code(epg_process_wait(&process, epg_deadline_after_ns(EPG_MILLISECOND), &end, &err), EPG_ERR_TIMEOUT,
                    &err);
    ck_assert_int_eq(end.code, -7);
    ck_assert(epg_process_running(&process));
    epg_process_end(&process, 0, &end);
    ck_assert_int_eq(end.signal, SIGKILL);
    epg_process_end(&process, 0, &end); /* twice is once */
    epg_assert_code(epg_process_wait(&process, 0, &end, &err), EPG_ERR_INTERNAL, &err);
    epg_test_no_child_left();
    epg_test_command_free(&command);
}
END_TEST

START_TEST(an_end_with_grace_lets_the_process_end_itself)
{
    epg_test_command command;
    epg_exit end = {0};
    epg_process process = start(&command, "obedient", NULL);
    epg_test_expect_line(command.out, "ready");
    epg_process_end(&process, epg_deadline_after_ns(long_time), &end);
    ck_assert_int_eq(end.code, 7);
    epg_test_command_free(&command);
}
END_TEST

START_TEST(an_end_with_grace_kills_what_does_not_listen)
{
    epg_test_command command;
    epg_exit end = {0};
    epg_process process = start(&command, "deaf", NULL);
    epg_test_expect_line(command.out, "ready");
    epg_process_end(&process, epg_deadline_after_ns(20 * EPG_MILLISECOND), &end);
    ck_assert_int_eq(end.signal, SIGKILL);
    epg_test_command_free(&command);
}
END_TEST

/* A grandchild that holds the process's stdout: its end is told by the pidfd, not by an end of file. */
START_TEST(the_end_is_told_while_a_grandchild_holds_the_pipe)
{
    epg_test_command command;
    epg_ended ended = {0};
    ck_assert_int_eq(epg_become_subreaper(), 0);
    epg_process process = start(&command, "leave", NULL);
    epg_exit end = {.code = -1};
    epg_error err = {0};
    epg_assert_ok(epg_process_wait(&process, epg_deadline_after_ns(long_time), &end, &err), &err);
    ck_assert_int_eq(end.code, 0);
    epg_test_expect_line(command.out, "ready");
    ck_assert(!epg_test_at_end(command.out));
    epg_descendants_end(NULL, 0, 0, epg_deadline_after_ns(long_time), &ended);
    ck_assert(epg_test_at_end(command.out));
    epg_test_command_free(&command);
}
END_TEST

START_TEST(our_own_binary_is_found)
{
    char path[4096] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", path, sizeof path - 1), 0);
    EPG_AUTO_FREE char *own = epg_own_executable();
    ck_assert_str_eq(own, path);
}
END_TEST

START_TEST(our_own_binary_is_found_after_it_was_removed)
{
    char *directory = epg_test_directory();
    EPG_AUTO_FREE char *program = epg_test_program("epg-test-host");
    EPG_AUTO_FREE char *copy = epg_format("%s/host", directory);
    EPG_AUTO_FREE char *order = epg_format("cp '%s' '%s'", program, copy);
    ck_assert_int_eq(system(order), 0); /* NOLINT: a fixed command of the test's own */
    epg_test_command command;
    epg_process process;
    epg_error err = {0};
    epg_test_command_make(&command, "unused", "executable", NULL);
    command.argv[0] = copy;
    epg_assert_ok(epg_process_spawn(&command.spawn, &process, &err), &err);
    epg_test_command_started(&command);
    epg_test_expect_line(command.out, "/proc/self/exe");
    ck_assert_int_eq(finish(&process).code, 0);
    epg_test_command_free(&command);
    epg_test_directory_free(directory);
}
END_TEST

static Suite *process_suite(void)
{
    Suite *suite = suite_create("system process");
    TCase *tests = tcase_create("process");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_exit_code_is_told);
    tcase_add_test(tests, the_signal_is_told);
    tcase_add_test(tests, a_missing_program_is_not_found);
    tcase_add_test(tests, the_step_that_failed_is_told);
    tcase_add_test(tests, the_search_path_is_walked_in_order_and_only_its_absolute_entries);
    tcase_add_test(tests, the_child_has_no_descriptor_but_those_named);
    tcase_add_test(tests, descriptors_may_change_places);
    tcase_add_test(tests, the_standard_descriptors_are_dev_null_unless_mapped);
    tcase_add_test(tests, it_starts_even_when_our_own_standard_descriptors_are_closed);
    tcase_add_test(tests, signals_are_as_new_in_the_child);
    tcase_add_test(tests, the_end_is_told_though_sigchld_was_ignored_when_we_were_started);
    tcase_add_test(tests, the_environment_is_exactly_the_one_given);
    tcase_add_test(tests, the_working_directory_is_the_one_of_the_descriptor);
    tcase_add_loop_test(tests, a_session_is_made_only_where_asked, 0, 2);
    tcase_add_test(tests, the_child_dies_with_its_parent_where_asked);
    tcase_add_test(tests, a_wait_that_is_over_leaves_the_process_as_it_is);
    tcase_add_test(tests, an_end_with_grace_lets_the_process_end_itself);
    tcase_add_test(tests, an_end_with_grace_kills_what_does_not_listen);
    tcase_add_test(tests, the_end_is_told_while_a_grandchild_holds_the_pipe);
    tcase_add_test(tests, our_own_binary_is_found);
    tcase_add_test(tests, our_own_binary_is_found_after_it_was_removed);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(process_suite());
}
