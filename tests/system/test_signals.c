#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "support/support.h"
#include "system/signals.h"

static bool readable(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return poll(&look, 1, 0) == 1;
}

START_TEST(the_three_signals_are_read_and_do_not_end_us)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    epg_error err = {0};
    int fd = -1;
    epg_assert_ok(epg_signals_open(&fd, &err), &err);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert(!readable(fd));
    ck_assert_int_eq(epg_signals_take(fd), 0); /* and does not wait */
    ck_assert_int_eq(kill(getpid(), signals[_i]), 0);
    ck_assert(readable(fd));
    ck_assert_int_eq(epg_signals_take(fd), signals[_i]);
    ck_assert_int_eq(epg_signals_take(fd), 0);
    ck_assert_int_eq(kill(getpid(), signals[_i]), 0); /* a second one hurries: it is told again */
    ck_assert_int_eq(epg_signals_take(fd), signals[_i]);
    (void)close(fd);
}
END_TEST

START_TEST(two_signals_are_told_one_by_one)
{
    epg_error err = {0};
    int fd = -1;
    epg_assert_ok(epg_signals_open(&fd, &err), &err);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    ck_assert_int_eq(kill(getpid(), SIGINT), 0);
    int first = epg_signals_take(fd);
    int second = epg_signals_take(fd);
    ck_assert(first != second);
    ck_assert(first == SIGINT || first == SIGTERM);
    ck_assert(second == SIGINT || second == SIGTERM);
    ck_assert_int_eq(epg_signals_take(fd), 0);
    (void)close(fd);
}
END_TEST

START_TEST(a_broken_pipe_is_an_error_and_not_an_end)
{
    epg_error err = {0};
    int fd = -1;
    int ends[2];
    epg_assert_ok(epg_signals_open(&fd, &err), &err);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    (void)close(ends[0]);
    ck_assert_int_eq(write(ends[1], "x", 1), -1);
    ck_assert_int_eq(errno, EPIPE);
    (void)close(ends[1]);
    (void)close(fd);
}
END_TEST

static Suite *signals_suite(void)
{
    Suite *suite = suite_create("system signals");
    TCase *tests = tcase_create("signals");
    tcase_add_loop_test(tests, the_three_signals_are_read_and_do_not_end_us, 0, 3);
    tcase_add_test(tests, two_signals_are_told_one_by_one);
    tcase_add_test(tests, a_broken_pipe_is_an_error_and_not_an_end);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(signals_suite());
}
