#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "support/processes.h"
#include "support/support.h"
#include "system/owner.h"

static const int64_t long_time = 30 * EPG_SECOND;

static epg_owned start(epg_test_command *command, const char *what, const char *number)
{
    epg_error err = {0};
    epg_owned owned;
    epg_test_command_make(command, "epg-test-tree", what, number);
    epg_assert_ok(epg_owned_start(&command->spawn, &owned, &err), &err);
    epg_test_command_started(command);
    ck_assert(owned.started && !owned.exited && !owned.finished);
    epg_test_expect_line(command->out, "ready");
    return owned;
}

/* Polls as a Host does until `flag` (a member of *owned) is true. */
static void poll_until(epg_owned *owned, const bool *flag)
{
    epg_error err = {0};
    int64_t limit = epg_deadline_after_ns(long_time);
    while (!*flag) {
        struct pollfd wait = {.fd = owned->report, .events = POLLIN};
        ck_assert_msg(poll(&wait, 1, epg_poll_timeout_ms(limit)) > 0, "the monitor said nothing");
        epg_assert_ok(epg_owned_poll(owned, &err), &err);
    }
}

static void finish(epg_test_command *command, epg_owned *owned)
{
    epg_error err = {0};
    epg_assert_ok(epg_owned_finish(owned, epg_deadline_after_ns(long_time), &err), &err);
    ck_assert(owned->finished);
    ck_assert(owned->exited);
    ck_assert(owned->ended.complete);
    ck_assert(epg_test_at_end(command->out));
    epg_test_no_child_left();
    epg_test_command_free(command);
}

START_TEST(the_exit_of_the_command_is_told)
{
    epg_test_command command;
    size_t before = epg_test_open_descriptors();
    epg_owned owned = start(&command, "exit", "42");
    poll_until(&owned, &owned.exited);
    ck_assert_int_eq(owned.exit.code, 42);
    poll_until(&owned, &owned.finished);
    ck_assert_uint_eq(owned.ended.killed, 0);
    ck_assert_uint_eq(owned.ended.orphans, 0);
    finish(&command, &owned);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

START_TEST(a_daemon_that_the_command_left_behind_is_ended_with_it)
{
    epg_test_command command;
    epg_owned owned = start(&command, "leave", NULL);
    poll_until(&owned, &owned.finished);
    ck_assert_int_eq(owned.exit.code, 0);
    ck_assert_uint_eq(owned.ended.killed, 1);
    ck_assert_uint_eq(owned.ended.orphans, 1);
    finish(&command, &owned);
}
END_TEST

START_TEST(a_command_that_cannot_be_started_leaves_nothing)
{
    static const struct {
        const char *program;
        epg_code code;
        int sys_errno;
    } cases[] = {{"/nonexistent/agent", EPG_ERR_NOT_FOUND, ENOENT}, {"/etc/passwd", EPG_ERR_IO, EACCES}};
    const char *argv[] = {cases[_i].program, NULL};
    epg_spawn spawn = {.argv = argv, .working_directory = -1};
    epg_owned owned = {.command_pid = -5};
    epg_error err = {0};
    size_t before = epg_test_open_descriptors();
    epg_assert_code(epg_owned_start(&spawn, &owned, &err), cases[_i].code, &err);
    ck_assert_int_eq(err.sys_errno, cases[_i].sys_errno);
    ck_assert_ptr_nonnull(strstr(err.text, cases[_i].program));
    ck_assert_int_eq(owned.command_pid, -5);
    epg_test_no_child_left();
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

START_TEST(the_command_gets_what_it_was_to_get)
{
    char *directory = epg_test_directory();
    epg_test_write_text(directory, "in", "input\n");
    EPG_AUTO_FREE char *real = realpath(directory, NULL);
    EPG_AUTO_CLOSE int home = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EPG_AUTO_CLOSE int in = openat(home, "in", O_RDONLY | O_CLOEXEC);
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    epg_fd_map fds[] = {{ends[1], 1}, {in, 0}, {in, 9}};
    EPG_AUTO_FREE char *tree = epg_test_program("epg-test-tree");
    const char *argv[] = {"sh", "-c", "cat; pwd; echo $A; echo \"$1\"; exec \"$2\" descriptors", "sh", "--",
                          tree, NULL};
    const char *environment[] = {"A=a b", "PATH=/usr/bin:/bin", NULL};
    epg_spawn spawn = {.argv = argv,
                       .environment = environment,
                       .search_path = "/usr/bin:/bin",
                       .working_directory = home,
                       .fds = fds,
                       .fd_count = EPG_COUNT(fds)};
    epg_owned owned;
    epg_error err = {0};
    epg_assert_ok(epg_owned_start(&spawn, &owned, &err), &err);
    (void)close(ends[1]);
    epg_test_expect_line(ends[0], "input");
    epg_test_expect_line(ends[0], real);
    epg_test_expect_line(ends[0], "a b");
    epg_test_expect_line(ends[0], "--");
    epg_test_expect_line(ends[0], "0 1 2 9 ");
    epg_test_expect_end(ends[0]); /* the command's end is the end: the monitor holds nothing of it */
    poll_until(&owned, &owned.finished);
    ck_assert_int_eq(owned.exit.code, 0);
    epg_assert_ok(epg_owned_finish(&owned, epg_deadline_after_ns(long_time), &err), &err);
    (void)close(ends[0]);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(the_command_leads_its_own_session)
{
    epg_test_command command;
    epg_error err = {0};
    epg_owned owned;
    epg_test_command_make(&command, "epg-test-tree", "session", NULL);
    epg_assert_ok(epg_owned_start(&command.spawn, &owned, &err), &err);
    epg_test_command_started(&command);
    epg_test_expect_line(command.out, "session");
    poll_until(&owned, &owned.finished);
    finish(&command, &owned);
}
END_TEST

START_TEST(a_command_that_listens_ends_itself_in_the_grace)
{
    epg_test_command command;
    epg_owned owned = start(&command, "obedient", NULL);
    epg_owned_terminate(&owned, long_time);
    poll_until(&owned, &owned.finished);
    ck_assert_int_eq(owned.exit.code, 7);
    ck_assert_uint_eq(owned.ended.terminated, 1);
    ck_assert_uint_eq(owned.ended.killed, 0);
    finish(&command, &owned);
}
END_TEST

START_TEST(a_command_that_does_not_listen_is_killed_after_the_grace)
{
    epg_test_command command;
    epg_owned owned = start(&command, "daemon", NULL);
    epg_owned_terminate(&owned, EPG_SECOND); /* time enough for who listens */
    poll_until(&owned, &owned.finished);
    ck_assert_int_eq(owned.exit.signal, SIGTERM); /* the command itself listens, its daemon does not */
    ck_assert_uint_eq(owned.ended.terminated, 2);
    ck_assert_uint_eq(owned.ended.killed, 1);
    finish(&command, &owned);
}
END_TEST

START_TEST(a_kill_cuts_a_grace_short)
{
    epg_test_command command;
    epg_owned owned = start(&command, "deaf", NULL);
    epg_owned_terminate(&owned, INT64_MAX);
    epg_error err = {0};
    epg_assert_ok(epg_owned_poll(&owned, &err), &err);
    ck_assert(!owned.finished);
    epg_owned_kill(&owned);
    poll_until(&owned, &owned.finished);
    ck_assert_int_eq(owned.exit.signal, SIGKILL);
    ck_assert_uint_eq(owned.ended.terminated, 1);
    ck_assert_uint_eq(owned.ended.killed, 1);
    epg_owned_kill(&owned); /* harmless by now */
    finish(&command, &owned);
}
END_TEST

static const struct {
    const char *what;
    const char *number;
} hostile[] = {{"deaf", NULL},  {"daemon", NULL}, {"leave", NULL},      {"stopped", NULL}, {"chain", "50"},
               {"bomb", "500"}, {"storm", "100"}, {"supervisor", "20"}, {"zip", "4"}};

START_TEST(finish_ends_a_hostile_tree_whole)
{
    epg_test_command command;
    epg_owned owned = start(&command, hostile[_i].what, hostile[_i].number);
    finish(&command, &owned);
    epg_error err = {0};
    epg_assert_ok(epg_owned_finish(&owned, 0, &err), &err); /* twice is once */
}
END_TEST

/* Starts `epg-test-host own epg-test-tree WHAT NUMBER` in a session of its own. */
static pid_t start_host(epg_test_command *command, const char *what, const char *number, pid_t *monitor)
{
    EPG_AUTO_FREE char *tree = epg_test_program("epg-test-tree");
    ck_assert_int_eq(epg_become_subreaper(), 0); /* to reap the monitor */
    epg_test_command_make(command, "epg-test-host", "own", tree);
    command->argv[3] = what;
    command->argv[4] = number;
    command->spawn.new_session = true;
    epg_process host;
    epg_error err = {0};
    epg_assert_ok(epg_process_spawn(&command->spawn, &host, &err), &err);
    epg_test_command_started(command);
    /* The pids from the Host and "ready" from the tree, in any order. */
    for (bool ready = false; !ready || *monitor == 0;) {
        char line[64];
        ck_assert(epg_test_read_line(command->out, line, sizeof line));
        if (strcmp(line, "ready") == 0) {
            ready = true;
        } else {
            *monitor = (pid_t)strtol(line, NULL, 10);
        }
    }
    (void)close(host.pidfd);
    return host.pid;
}

/* A Host that was done before it was killed has reaped its monitor itself. */
static void expect_end_of(pid_t monitor)
{
    int status = 0;
    pid_t got = waitpid(monitor, &status, 0);
    ck_assert(got == monitor || (got < 0 && errno == ECHILD));
    ck_assert_int_eq(status, 0);
    epg_test_no_child_left();
}

START_TEST(the_whole_tree_dies_with_a_host_that_is_killed)
{
    epg_test_command command;
    pid_t monitor = 0;
    pid_t host = start_host(&command, hostile[_i].what, hostile[_i].number, &monitor);
    ck_assert_int_eq(kill(host, SIGKILL), 0);
    ck_assert_int_eq(waitpid(host, NULL, 0), host);
    epg_test_expect_end(command.out);
    expect_end_of(monitor);
    epg_test_command_free(&command);
}
END_TEST

/* What a terminal or an operator sends to the Host's process group, and even to the monitor itself. */
START_TEST(the_monitor_outlives_signals_and_still_ends_the_tree)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGTSTP};
    epg_test_command command;
    pid_t monitor = 0;
    pid_t host = start_host(&command, "daemon", NULL, &monitor);
    ck_assert_int_ne(getpgid(monitor), host);
    ck_assert_int_eq(getsid(monitor), monitor);
    for (size_t i = 0; i < EPG_COUNT(signals); i++) {
        ck_assert_int_eq(kill(monitor, signals[i]), 0);
    }
    ck_assert_int_eq(kill(-host, SIGINT), 0); /* this one ends the Host */
    ck_assert_int_eq(waitpid(host, NULL, 0), host);
    epg_test_expect_end(command.out);
    expect_end_of(monitor);
    epg_test_command_free(&command);
}
END_TEST

START_TEST(a_killed_monitor_is_told_and_its_tree_can_still_be_ended)
{
    epg_test_command command;
    epg_error err = {0};
    epg_ended ended = {0};
    ck_assert_int_eq(epg_become_subreaper(), 0);
    epg_owned owned = start(&command, "daemon", NULL);
    ck_assert_int_eq(kill(owned.monitor.pid, SIGKILL), 0);
    epg_assert_code(epg_owned_finish(&owned, epg_deadline_after_ns(long_time), &err), EPG_ERR_EXECUTION, &err);
    ck_assert(owned.finished);
    ck_assert(!owned.ended.complete);
    epg_descendants_end(NULL, 0, 0, epg_deadline_after_ns(long_time), &ended);
    ck_assert(ended.complete);
    epg_test_expect_end(command.out);
    epg_test_no_child_left();
    epg_test_command_free(&command);
}
END_TEST

START_TEST(a_finish_that_is_out_of_time_kills_the_monitor)
{
    epg_test_command command;
    epg_error err = {0};
    epg_ended ended = {0};
    ck_assert_int_eq(epg_become_subreaper(), 0);
    epg_owned owned = start(&command, "deaf", NULL);
    ck_assert_int_eq(kill(owned.monitor.pid, SIGSTOP), 0); /* it can't do its work */
    epg_assert_code(epg_owned_finish(&owned, epg_deadline_after_ns(20 * EPG_MILLISECOND), &err), EPG_ERR_TIMEOUT, &err);
    ck_assert(owned.finished);
    epg_test_expect_end(command.out); /* the command dies with its monitor */
    epg_descendants_end(NULL, 0, 0, epg_deadline_after_ns(long_time), &ended);
    epg_test_no_child_left();
    epg_test_command_free(&command);
}
END_TEST

/* A command of the same user must not forge reports or hold the pipes open through /proc. */
START_TEST(what_is_owned_cannot_reach_into_the_monitor)
{
    enum { NOBODY = 65534 };
    if (getuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)) {
        return;
    }
    epg_test_command command;
    epg_error err = {0};
    epg_owned owned;
    epg_test_command_make(
        &command, "unused", "-c",
        "ls /proc/$PPID/fd >/dev/null 2>&1 && echo in; (echo >/proc/$PPID/fd/4) 2>/dev/null && echo in; echo out");
    command.argv[0] = "/bin/sh";
    epg_assert_ok(epg_owned_start(&command.spawn, &owned, &err), &err);
    epg_test_command_started(&command);
    epg_test_expect_line(command.out, "out");
    poll_until(&owned, &owned.finished);
    finish(&command, &owned);
}
END_TEST

START_TEST(a_monitor_started_by_hand_says_so)
{
    epg_test_command command;
    epg_error err = {0};
    epg_exit end = {0};
    epg_process process;
    epg_test_command_make(&command, "epg-test-host", "monitor", "true");
    epg_assert_ok(epg_process_spawn(&command.spawn, &process, &err), &err);
    epg_test_command_started(&command);
    epg_assert_ok(epg_process_wait(&process, epg_deadline_after_ns(long_time), &end, &err), &err);
    ck_assert_int_eq(end.code, 2);
    epg_test_command_free(&command);
}
END_TEST

static Suite *owner_suite(void)
{
    Suite *suite = suite_create("system owner");
    TCase *tests = tcase_create("owner");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_exit_of_the_command_is_told);
    tcase_add_test(tests, a_daemon_that_the_command_left_behind_is_ended_with_it);
    tcase_add_loop_test(tests, a_command_that_cannot_be_started_leaves_nothing, 0, 2);
    tcase_add_test(tests, the_command_gets_what_it_was_to_get);
    tcase_add_test(tests, the_command_leads_its_own_session);
    tcase_add_test(tests, a_command_that_listens_ends_itself_in_the_grace);
    tcase_add_test(tests, a_command_that_does_not_listen_is_killed_after_the_grace);
    tcase_add_test(tests, a_kill_cuts_a_grace_short);
    tcase_add_loop_test(tests, finish_ends_a_hostile_tree_whole, 0, EPG_COUNT(hostile));
    tcase_add_loop_test(tests, the_whole_tree_dies_with_a_host_that_is_killed, 0, EPG_COUNT(hostile));
    tcase_add_test(tests, the_monitor_outlives_signals_and_still_ends_the_tree);
    tcase_add_test(tests, a_killed_monitor_is_told_and_its_tree_can_still_be_ended);
    tcase_add_test(tests, a_finish_that_is_out_of_time_kills_the_monitor);
    tcase_add_test(tests, what_is_owned_cannot_reach_into_the_monitor);
    tcase_add_test(tests, a_monitor_started_by_hand_says_so);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "monitor") == 0) {
        return epg_monitor_main(argc, argv);
    }
    return epg_test_main(owner_suite());
}
