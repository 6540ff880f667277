#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "support/processes.h"
#include "support/support.h"
#include "system/children.h"

static const int64_t long_time = 30 * EPG_SECOND;

/* Every test runs in a process of its own (Check forks), which becomes the subreaper of what it starts. */
static void become_subreaper(void)
{
    ck_assert_int_eq(epg_become_subreaper(), 0);
}

static epg_process start(epg_test_command *command, const char *what, const char *number)
{
    epg_error err = {0};
    epg_process process;
    epg_test_command_make(command, "epg-test-tree", what, number);
    epg_assert_ok(epg_process_spawn(&command->spawn, &process, &err), &err);
    epg_test_command_started(command);
    epg_test_expect_line(command->out, "ready");
    return process;
}

static epg_ended kill_all(void)
{
    epg_ended ended = {0};
    epg_descendants_end(NULL, 0, 0, epg_deadline_after_ns(long_time), &ended);
    ck_assert(ended.complete);
    epg_test_no_child_left();
    ck_assert_uint_eq(epg_descendants_count(getpid()), 0);
    return ended;
}

static void forget(epg_test_command *command, epg_process *process)
{
    epg_test_expect_end(command->out);
    epg_test_command_free(command);
    epg_close_cleanup(&process->pidfd); /* its process was reaped with the others */
}

START_TEST(without_a_child_nothing_is_to_do)
{
    epg_ended ended = kill_all();
    ck_assert_uint_eq(ended.rounds, 0);
    ck_assert_uint_eq(ended.killed + ended.terminated + ended.orphans, 0);
}
END_TEST

START_TEST(a_daemon_in_its_own_session_that_ignores_sigterm_is_ended)
{
    epg_test_command command;
    become_subreaper();
    epg_process process = start(&command, "leave", NULL);
    epg_exit end = {0};
    epg_error err = {0};
    epg_assert_ok(epg_process_wait(&process, epg_deadline_after_ns(long_time), &end, &err), &err);
    ck_assert_int_eq(end.code, 0);
    ck_assert(!epg_test_at_end(command.out));
    ck_assert_uint_eq(epg_descendants_count(getpid()), 1);
    epg_ended ended = {0};
    epg_descendants_end(NULL, 0, epg_deadline_after_ns(20 * EPG_MILLISECOND), epg_deadline_after_ns(long_time), &ended);
    ck_assert(ended.complete);
    ck_assert_uint_eq(ended.terminated, 1);
    ck_assert_uint_eq(ended.killed, 1);
    ck_assert_uint_eq(ended.orphans, 1);
    forget(&command, &process);
}
END_TEST

static const struct {
    const char *what;
    const char *number;
} hostile[] = {{"sleep", NULL}, {"deaf", NULL},   {"daemon", NULL},     {"stopped", NULL}, {"chain", "100"},
               {"bomb", "500"}, {"storm", "100"}, {"supervisor", "20"}, {"zip", "1"},      {"zip", "8"}};

START_TEST(a_hostile_tree_is_ended_whole)
{
    epg_test_command command;
    become_subreaper();
    epg_process process = start(&command, hostile[_i].what, hostile[_i].number);
    ck_assert(!epg_test_at_end(command.out));
    epg_ended ended = kill_all();
    ck_assert_uint_ge(ended.killed, 1);
    forget(&command, &process);
}
END_TEST

START_TEST(a_hostile_tree_is_ended_whole_after_a_grace)
{
    epg_test_command command;
    epg_ended ended = {0};
    become_subreaper();
    epg_process process = start(&command, hostile[_i].what, hostile[_i].number);
    epg_descendants_end(NULL, 0, epg_deadline_after_ns(20 * EPG_MILLISECOND), epg_deadline_after_ns(long_time), &ended);
    ck_assert(ended.complete);
    epg_test_no_child_left();
    forget(&command, &process);
}
END_TEST

START_TEST(a_process_that_ends_itself_in_the_grace_is_not_killed)
{
    epg_test_command command;
    epg_ended ended = {0};
    become_subreaper();
    epg_process process = start(&command, "obedient", NULL);
    epg_descendants_end(NULL, 0, epg_deadline_after_ns(long_time), epg_deadline_after_ns(2 * long_time), &ended);
    ck_assert(ended.complete);
    ck_assert_uint_eq(ended.terminated, 1);
    ck_assert_uint_eq(ended.killed, 0);
    forget(&command, &process);
}
END_TEST

START_TEST(every_process_of_a_tree_is_told_to_terminate)
{
    epg_test_command command;
    become_subreaper();
    epg_process process = start(&command, "chain", "10");
    ck_assert_uint_eq(epg_descendants_count(getpid()), 11);
    ck_assert_uint_eq(epg_descendants_count(process.pid), 10);
    ck_assert_uint_eq(epg_children_count(NULL, 0), 1);
    ck_assert_uint_eq(epg_children_count(&process.pid, 1), 0);
    ck_assert_uint_eq(epg_descendants_signal(NULL, 0, SIGTERM), 11);
    epg_test_expect_end(command.out);
    while (epg_descendants_reap(NULL, 0) > 0) {
        (void)usleep(1000);
    }
    epg_test_no_child_left();
    forget(&command, &process);
}
END_TEST

/* Two commands, one kept: what is below it goes, it stays, and its own end is still told to its owner. */
START_TEST(what_is_kept_stays_and_what_is_below_it_goes)
{
    epg_test_command kept;
    epg_test_command other;
    epg_ended ended = {0};
    become_subreaper();
    epg_process keep = start(&kept, "chain", "5");
    epg_process end = start(&other, "chain", "5");
    epg_descendants_end(&keep.pid, 1, 0, epg_deadline_after_ns(long_time), &ended);
    ck_assert(ended.complete);
    ck_assert_uint_eq(ended.killed, 11);
    ck_assert(epg_process_running(&keep));
    ck_assert_uint_eq(epg_descendants_count(getpid()), 1);
    ck_assert(!epg_test_at_end(kept.out));
    forget(&other, &end);
    epg_exit exit = {0};
    epg_process_end(&keep, 0, &exit);
    ck_assert_int_eq(exit.signal, SIGKILL);
    (void)kill_all(); /* what it had not reaped came to us */
    forget(&kept, &keep);
}
END_TEST

START_TEST(a_kept_process_below_a_kept_one_stays)
{
    epg_test_command command;
    epg_ended ended = {0};
    become_subreaper();
    epg_process top = start(&command, "chain", "3");
    EPG_AUTO_PIDS below = {0};
    epg_children_list(top.pid, &below);
    ck_assert_uint_eq(below.count, 1);
    pid_t keep[] = {top.pid, below.pids[0]};
    epg_descendants_end(keep, EPG_COUNT(keep), 0, epg_deadline_after_ns(long_time), &ended);
    ck_assert(ended.complete);
    ck_assert_uint_eq(epg_descendants_count(getpid()), 2);
    ck_assert_int_eq(kill(keep[1], 0), 0);
    (void)kill_all();
    forget(&command, &top);
}
END_TEST

/* Bystanders in our own process group and session, some of them our parent's children: none is touched. */
START_TEST(no_process_that_is_not_a_descendant_is_touched)
{
    epg_test_command bystander;
    epg_test_command command;
    become_subreaper();
    epg_process outside = start(&bystander, "sleep", NULL);
    pid_t host = fork();
    if (host == 0) {
        become_subreaper();
        for (int i = 0; i < 5; i++) {
            epg_process process = start(&command, "bomb", "50");
            (void)kill_all();
            forget(&command, &process);
        }
        _exit(0);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(host, &status, 0), host);
    ck_assert_int_eq(status, 0);
    ck_assert(epg_process_running(&outside));
    ck_assert(!epg_test_at_end(bystander.out));
    (void)kill_all();
    forget(&bystander, &outside);
}
END_TEST

START_TEST(a_deadline_that_passed_is_told_and_the_rest_can_be_ended_later)
{
    epg_test_command command;
    epg_ended ended = {0};
    become_subreaper();
    epg_process process = start(&command, "chain", "50");
    epg_descendants_end(NULL, 0, 0, 0, &ended);
    ck_assert(!ended.complete); /* one round reaches one level of it */
    ck_assert_uint_eq(ended.rounds, 1);
    (void)kill_all();
    forget(&command, &process);
}
END_TEST

START_TEST(signals_and_descriptors_of_ours_are_as_they_were)
{
    epg_test_command command;
    sigset_t mask;
    size_t before = epg_test_open_descriptors();
    become_subreaper();
    epg_process process = start(&command, "bomb", "50");
    (void)kill_all();
    forget(&command, &process);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
    ck_assert_int_eq(sigismember(&mask, SIGCHLD), 0);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

START_TEST(both_ways_to_list_children_agree)
{
    epg_test_command command;
    become_subreaper();
    epg_process one = start(&command, "supervisor", "20");
    EPG_AUTO_PIDS listed = {0};
    EPG_AUTO_PIDS scanned = {0};
    ck_assert(epg_children_from_kernel(one.pid, &listed));
    epg_children_from_scan(one.pid, &scanned);
    ck_assert_uint_eq(listed.count, 20);
    ck_assert_uint_eq(scanned.count, 20);
    for (size_t i = 0; i < 20; i++) {
        bool found = false;
        pid_t parent = 0;
        bool ended = true;
        for (size_t j = 0; j < 20; j++) {
            found = found || scanned.pids[j] == listed.pids[i];
        }
        ck_assert(found);
        ck_assert(epg_child_look(listed.pids[i], &parent, &ended));
        ck_assert_int_eq(parent, one.pid);
        ck_assert(!ended);
    }
    (void)kill_all();
    forget(&command, &one);
}
END_TEST

START_TEST(a_name_made_to_deceive_does_not_change_who_the_parent_is)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0); /* NOLINT */
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_NAME, "x) Z 1 (", 0, 0, 0);
        (void)!write(ends[1], "!", 1);
        for (;;) {
            (void)pause();
        }
    }
    char mark = 0;
    pid_t parent = 0;
    bool ended = true;
    ck_assert_int_eq(read(ends[0], &mark, 1), 1);
    ck_assert(epg_child_look(child, &parent, &ended));
    ck_assert_int_eq(parent, getpid());
    ck_assert(!ended);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    ck_assert(epg_child_look(child, &parent, &ended));
    ck_assert(ended);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!epg_child_look(child, &parent, &ended));
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

static Suite *descendants_suite(void)
{
    Suite *suite = suite_create("system descendants");
    TCase *tests = tcase_create("descendants");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, without_a_child_nothing_is_to_do);
    tcase_add_test(tests, a_daemon_in_its_own_session_that_ignores_sigterm_is_ended);
    tcase_add_loop_test(tests, a_hostile_tree_is_ended_whole, 0, EPG_COUNT(hostile));
    tcase_add_loop_test(tests, a_hostile_tree_is_ended_whole_after_a_grace, 0, EPG_COUNT(hostile));
    tcase_add_test(tests, a_process_that_ends_itself_in_the_grace_is_not_killed);
    tcase_add_test(tests, every_process_of_a_tree_is_told_to_terminate);
    tcase_add_test(tests, what_is_kept_stays_and_what_is_below_it_goes);
    tcase_add_test(tests, a_kept_process_below_a_kept_one_stays);
    tcase_add_test(tests, no_process_that_is_not_a_descendant_is_touched);
    tcase_add_test(tests, a_deadline_that_passed_is_told_and_the_rest_can_be_ended_later);
    tcase_add_test(tests, signals_and_descriptors_of_ours_are_as_they_were);
    tcase_add_test(tests, both_ways_to_list_children_agree);
    tcase_add_test(tests, a_name_made_to_deceive_does_not_change_who_the_parent_is);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(descendants_suite());
}
