/* Processes that take turns are kept on one core, and none of them loses a core that it could use. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "support/support.h"
#include "system/company.h"
#include "system/frame.h"

enum { QUICK_NS = 20000, MANY = 100000, BODY_LIMIT = 1024 };

static cpu_set_t whole;

static cpu_set_t cores_of(pid_t thread)
{
    cpu_set_t cores;
    ck_assert_int_eq(sched_getaffinity(thread, sizeof cores, &cores), 0);
    return cores;
}

static void assert_free(pid_t thread)
{
    cpu_set_t now = cores_of(thread);
    ck_assert(CPU_EQUAL(&now, &whole));
}

static void assert_together(pid_t a, pid_t b)
{
    cpu_set_t one = cores_of(a);
    cpu_set_t other = cores_of(b);
    ck_assert_int_eq(CPU_COUNT(&one), 1);
    ck_assert(CPU_EQUAL(&one, &other));
}

/* A machine of one core has nothing to choose; there the tests see that nothing is chosen. */
static bool single(void)
{
    ck_assert_int_eq(sched_getaffinity(0, sizeof whole, &whole), 0);
    return CPU_COUNT(&whole) < 2;
}

static pid_t start_idle(void)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        for (;;) {
            (void)pause();
        }
    }
    return pid;
}

static void end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Other tests on this machine may hold the cores for a while. */
static void turn_until_bound(epg_company *company)
{
    int64_t limit = epg_deadline_after_seconds(60);
    while (!epg_company_bound(company) && epg_monotonic_ns() < limit) {
        epg_company_turn(company, QUICK_NS);
    }
    ck_assert(epg_company_bound(company));
}

START_TEST(quick_turns_bring_all_to_one_core_and_their_end_frees_them)
{
    pid_t one = start_idle();
    pid_t two = start_idle();
    bool alone = single();
    epg_company *company = epg_company_new();
    epg_company_enter(company, one);
    epg_company_enter(company, two);
    epg_company_turn(company, QUICK_NS);
    ck_assert(!epg_company_bound(company)); /* one turn tells nothing */
    for (int i = 0; alone && i < MANY; i++) {
        epg_company_turn(company, QUICK_NS);
        ck_assert(!epg_company_bound(company));
    }
    if (!alone) {
        turn_until_bound(company);
        assert_together(0, one);
        assert_together(0, two);
    }
    epg_company_rest(company);
    ck_assert(!epg_company_bound(company));
    assert_free(0);
    assert_free(one);
    assert_free(two);
    epg_company_free(company);
    end(one);
    end(two);
}
END_TEST

START_TEST(slow_turns_leave_all_where_they_are)
{
    pid_t one = start_idle();
    (void)single();
    epg_company *company = epg_company_new();
    epg_company_enter(company, one);
    for (int i = 0; i < MANY; i++) {
        epg_company_turn(company, 2 * EPG_MILLISECOND);
    }
    ck_assert(!epg_company_bound(company));
    assert_free(0);
    assert_free(one);
    epg_company_free(company);
    end(one);
}
END_TEST

START_TEST(a_member_that_left_is_left_alone)
{
    pid_t one = start_idle();
    pid_t gone = start_idle();
    bool alone = single();
    epg_company *company = epg_company_new();
    epg_company_enter(company, gone);
    epg_company_enter(company, one);
    epg_company_leave(company, gone);
    if (!alone) {
        turn_until_bound(company);
        assert_together(0, one);
    }
    assert_free(gone);
    epg_company_free(company);
    assert_free(one);
    end(one);
    end(gone);
}
END_TEST

static void *stay(void *unused)
{
    for (;;) {
        (void)pause();
    }
    return unused;
}

/* Waits for a byte, makes a thread and a child, and tells the child's number. */
static pid_t start_maker(int *ask, int *answer)
{
    int to[2];
    int from[2];
    ck_assert_int_eq(pipe2(to, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(from, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        char byte;
        pthread_t thread;
        pid_t child = -1;
        (void)close(to[1]);
        if (read(to[0], &byte, 1) == 1 && (child = fork()) == 0) {
            (void)!read(to[0], &byte, 1); /* until the test is over */
            _exit(0);
        }
        if (child > 0 && pthread_create(&thread, NULL, stay, NULL) == 0) {
            (void)!write(from[1], &child, sizeof child);
        }
        (void)stay(NULL);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    *ask = to[1];
    *answer = from[0];
    return pid;
}

/* The other thread of a process of two. */
static pid_t other_thread(pid_t pid)
{
    for (pid_t thread = pid + 1; thread < pid + 100000; thread++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/%d/task/%d", (int)pid, (int)thread);
        if (access(path, F_OK) == 0) {
            return thread;
        }
    }
    ck_abort_msg("it has no other thread");
    return -1;
}

START_TEST(a_long_turn_frees_all_with_the_threads_and_children_that_were_made_meanwhile)
{
    int ask = -1;
    int answer = -1;
    pid_t child = -1;
    pid_t maker = start_maker(&ask, &answer);
    bool alone = single();
    epg_company *company = epg_company_new();
    epg_company_enter(company, maker);
    if (!alone) {
        turn_until_bound(company);
    }
    ck_assert_int_eq(write(ask, "", 1), 1);
    ck_assert_int_eq(read(answer, &child, sizeof child), sizeof child);
    pid_t thread = other_thread(maker);
    if (!alone) {
        assert_together(thread, child);
    }
    epg_company_turn(company, 20 * EPG_MILLISECOND);
    ck_assert(!epg_company_bound(company));
    assert_free(0);
    assert_free(maker);
    assert_free(thread);
    assert_free(child);
    for (int i = 0; i < MANY; i++) {
        epg_company_turn(company, alone ? 20 * EPG_MILLISECOND : QUICK_NS);
    }
    ck_assert_msg(alone || !epg_company_bound(company), "it was bound again before its rest");
    epg_company_rest(company);
    if (!alone) {
        turn_until_bound(company);
    }
    epg_company_free(company);
    (void)close(ask);
    (void)close(answer);
    end(maker);
}
END_TEST

START_TEST(who_chose_its_cores_keeps_them)
{
    pid_t one = start_idle();
    cpu_set_t chosen;
    if (!single()) {
        CPU_ZERO(&chosen);
        for (size_t core = 0; CPU_COUNT(&chosen) == 0; core++) {
            if (CPU_ISSET(core, &whole)) {
                CPU_SET(core, &chosen);
            }
        }
        ck_assert_int_eq(sched_setaffinity(one, sizeof chosen, &chosen), 0);
    }
    cpu_set_t before = cores_of(one);
    epg_company *company = epg_company_new();
    epg_company_enter(company, one);
    for (int i = 0; i < MANY; i++) {
        epg_company_turn(company, QUICK_NS);
    }
    ck_assert(!epg_company_bound(company));
    assert_free(0);
    epg_company_free(company);
    cpu_set_t after = cores_of(one);
    ck_assert(CPU_EQUAL(&before, &after));
    end(one);
}
END_TEST

START_TEST(two_companies_have_two_cores)
{
    if (single()) {
        return;
    }
    epg_company *company = epg_company_new();
    turn_until_bound(company);
    cpu_set_t ours = cores_of(0);
    ck_assert_int_eq(CPU_COUNT(&ours), 1);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) { /* the same core and any other: it finds the other one, or, with none free, stays as it is */
        ck_assert_int_eq(sched_setaffinity(0, sizeof whole, &whole), 0);
        epg_company *other = epg_company_new();
        for (int i = 0; i < MANY; i++) {
            epg_company_turn(other, QUICK_NS);
        }
        cpu_set_t theirs = cores_of(0);
        _exit(CPU_EQUAL(&ours, &theirs) ? 1 : 0);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    epg_company_free(company);
    assert_free(0);
}
END_TEST

/* Holds the name of every core; waits for those that other tests hold now. */
static void claim_all(int claims[CPU_SETSIZE])
{
    int64_t limit = epg_deadline_after_seconds(60);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        claims[core] = -1;
        if (!CPU_ISSET(core, &whole)) {
            continue;
        }
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "evopolicygym/core/%zu", core);
        socklen_t size = (socklen_t)(sizeof name.sun_family + 1 + (size_t)length);
        claims[core] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        while (bind(claims[core], (const struct sockaddr *)&name, size) != 0) {
            ck_assert_msg(epg_monotonic_ns() < limit, "core %zu stays claimed", core);
            (void)usleep(1000);
        }
    }
}

START_TEST(where_every_core_is_taken_all_stay_where_they_are)
{
    int claims[CPU_SETSIZE];
    pid_t one = start_idle();
    (void)single();
    claim_all(claims);
    epg_company *company = epg_company_new();
    epg_company_enter(company, one);
    for (int i = 0; i < MANY; i++) {
        epg_company_turn(company, QUICK_NS);
    }
    ck_assert(!epg_company_bound(company));
    assert_free(0);
    assert_free(one);
    epg_company_free(company);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        epg_close_cleanup(&claims[core]);
    }
    end(one);
}
END_TEST

/* The peer answers only when it is free: a wait that did not free it would end at its limit. */
START_TEST(who_is_waited_for_is_freed_while_he_works)
{
    int to[2];
    int from[2];
    epg_error err;
    epg_frame frame = {0};
    epg_channel channel;
    bool alone = single();
    ck_assert_int_eq(pipe2(to, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(from, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        char data[64];
        cpu_set_t now;
        ssize_t size = read(to[0], data, sizeof data);
        do {
            (void)usleep(1000);
            (void)sched_getaffinity(0, sizeof now, &now);
        } while (!CPU_EQUAL(&now, &whole));
        (void)!write(from[1], data, (size_t)size);
        (void)stay(NULL);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    epg_company *company = epg_company_new();
    epg_company_enter(company, pid);
    epg_channel_open(&channel, from[0], to[1], BODY_LIMIT);
    epg_channel_be_patient(&channel);
    channel.company = company;
    if (!alone) {
        turn_until_bound(company);
    }
    epg_assert_ok(epg_channel_send(&channel, 1, 7, epg_span_text("hello"), EPG_NEVER, &err), &err);
    epg_assert_ok(epg_channel_receive(&channel, &frame, epg_deadline_after_seconds(60), NULL, &err), &err);
    ck_assert_int_eq(frame.sequence, 7);
    assert_free(0);
    epg_channel_close(&channel);
    epg_company_free(company);
    end(pid);
}
END_TEST

START_TEST(without_a_company_nothing_happens)
{
    epg_company_enter(NULL, 1);
    epg_company_leave(NULL, 1);
    epg_company_turn(NULL, QUICK_NS);
    epg_company_late(NULL);
    epg_company_rest(NULL);
    epg_company_free(NULL);
    ck_assert(!epg_company_bound(NULL));
    ck_assert(epg_company_patience(NULL, 42) == 42);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("company");
    TCase *one = tcase_create("company");
    tcase_add_test(one, quick_turns_bring_all_to_one_core_and_their_end_frees_them);
    tcase_add_test(one, slow_turns_leave_all_where_they_are);
    tcase_add_test(one, a_member_that_left_is_left_alone);
    tcase_add_test(one, a_long_turn_frees_all_with_the_threads_and_children_that_were_made_meanwhile);
    tcase_add_test(one, who_chose_its_cores_keeps_them);
    tcase_add_test(one, two_companies_have_two_cores);
    tcase_add_test(one, where_every_core_is_taken_all_stay_where_they_are);
    tcase_add_test(one, who_is_waited_for_is_freed_while_he_works);
    tcase_add_test(one, without_a_company_nothing_happens);
    suite_add_tcase(suite, one);
    return suite;
}

int main(void)
{
    return epg_test_main(make_suite());
}
