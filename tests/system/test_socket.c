#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "support/support.h"
#include "system/socket.h"

static const int64_t long_time = 30 * EPG_SECOND;

static char *home_path;

static void set_up(void)
{
    home_path = epg_test_directory();
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", home_path, 1), 0);
}

static void tear_down(void)
{
    epg_test_directory_free(home_path);
}

static void expect_talk(int listener, const char *path)
{
    epg_error err = {0};
    int client = -1;
    char byte = 0;
    epg_assert_ok(epg_socket_connect(path, epg_deadline_after_ns(long_time), &client, &err), &err);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(server, 0);
    ck_assert_int_eq(write(client, "x", 1), 1);
    ck_assert_int_eq(read(server, &byte, 1), 1);
    ck_assert_int_eq(byte, 'x');
    ck_assert(fcntl(client, F_GETFD) & FD_CLOEXEC);
    ck_assert((fcntl(client, F_GETFL) & O_NONBLOCK) == 0);
    (void)close(client);
    (void)close(server);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_mode & 07777;
}

START_TEST(a_listener_is_private_and_is_removed_whole)
{
    epg_error err = {0};
    int listener = -1;
    char *directory = NULL;
    char *path = NULL;
    (void)umask(0);
    size_t before = epg_test_open_descriptors();
    epg_assert_ok(epg_socket_listen(&listener, &directory, &path, &err), &err);
    ck_assert_int_eq(strncmp(directory, home_path, strlen(home_path)), 0);
    ck_assert_uint_eq(mode_of(directory), 0700);
    ck_assert_uint_eq(mode_of(path), 0600);
    ck_assert(fcntl(listener, F_GETFD) & FD_CLOEXEC);
    ck_assert_int_eq(accept(listener, NULL, NULL), -1);
    ck_assert_int_eq(errno, EAGAIN); /* a poll loop's own */
    expect_talk(listener, path);
    (void)close(listener);
    EPG_AUTO_FREE char *copy = epg_strdup(directory);
    epg_socket_remove(directory, path);
    ck_assert_int_eq(access(copy, F_OK), -1);
    epg_socket_remove(NULL, NULL);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

/* A runtime directory of no use: too deep, missing, relative, empty. */
START_TEST(a_runtime_directory_of_no_use_is_passed_over)
{
    EPG_AUTO_FREE char *deep = epg_format("%s/%090d", home_path, 1);
    ck_assert_int_eq(mkdir(deep, 0700), 0);
    const char *const values[] = {deep, "/nonexistent/runtime", "relative", ""};
    epg_error err = {0};
    int listener = -1;
    char *directory = NULL;
    char *path = NULL;
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", values[_i], 1), 0);
    epg_assert_ok(epg_socket_listen(&listener, &directory, &path, &err), &err);
    ck_assert_int_eq(strncmp(directory, "/tmp/", 5), 0);
    ck_assert_uint_le(strlen(path), 107);
    expect_talk(listener, path);
    (void)close(listener);
    epg_socket_remove(directory, path);
}
END_TEST

START_TEST(a_socket_that_is_not_there_is_told_at_once)
{
    epg_error err = {0};
    int fd = -5;
    EPG_AUTO_FREE char *path = epg_format("%s/none", home_path);
    EPG_AUTO_FREE char *too_long = epg_format("%s/%0107d", home_path, 1);
    int64_t deadline = epg_deadline_after_ns(long_time);
    epg_assert_code(epg_socket_connect(path, deadline, &fd, &err), EPG_ERR_NOT_FOUND, &err);
    epg_assert_code(epg_socket_connect(too_long, deadline, &fd, &err), EPG_ERR_USAGE, &err);
    int listener = -1;
    char *directory = NULL;
    char *left = NULL;
    epg_assert_ok(epg_socket_listen(&listener, &directory, &left, &err), &err);
    (void)close(listener); /* its Host is gone, its name is left */
    epg_assert_code(epg_socket_connect(left, deadline, &fd, &err), EPG_ERR_CLOSED, &err);
    ck_assert_int_eq(fd, -5);
    epg_socket_remove(directory, left);
}
END_TEST

/* Connections that nobody accepts fill the queue: the next one waits no longer than its deadline. */
START_TEST(a_full_queue_ends_at_the_deadline)
{
    enum { MANY = 200 };
    epg_error err = {0};
    int fds[MANY];
    int listener = -1;
    char *directory = NULL;
    char *path = NULL;
    size_t before = epg_test_open_descriptors();
    epg_assert_ok(epg_socket_listen(&listener, &directory, &path, &err), &err);
    epg_code code = EPG_OK;
    int count = 0;
    while (code == EPG_OK && count < MANY) {
        code = epg_socket_connect(path, epg_deadline_after_ns(20 * EPG_MILLISECOND), &fds[count], &err);
        count += code == EPG_OK;
    }
    ck_assert_int_eq(code, EPG_ERR_TIMEOUT);
    ck_assert_int_gt(count, 10);
    while (count > 0) {
        (void)close(fds[--count]);
    }
    (void)close(listener);
    epg_socket_remove(directory, path);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

START_TEST(what_a_killed_host_left_is_removed_by_the_next)
{
    epg_error err;
    int first = -1;
    int second = -1;
    char *directory = NULL;
    char *path = NULL;
    epg_assert_ok(epg_socket_listen(&first, &directory, &path, &err), &err);
    char *next_directory = NULL;
    char *next_path = NULL;
    epg_assert_ok(epg_socket_listen(&second, &next_directory, &next_path, &err), &err);
    ck_assert_int_eq(access(path, F_OK), 0); /* a living Host's stays */
    (void)close(first);                      /* as a kill does: the socket lies there, nobody listens */
    (void)close(second);
    epg_socket_remove(next_directory, next_path);
    epg_assert_ok(epg_socket_listen(&second, &next_directory, &next_path, &err), &err);
    ck_assert_int_ne(access(directory, F_OK), 0);
    free(directory);
    free(path);
    (void)close(second);
    epg_socket_remove(next_directory, next_path);
}
END_TEST

/* A Host that was killed before it listened leaves a directory without a socket: taken away when it is old. */
START_TEST(what_was_never_listened_in_is_removed_when_it_is_old)
{
    static const struct {
        const char *name;
        const char *content;
        bool old, stays;
    } left[] = {
        {"epg-0000000000000001", NULL, true, false},
        {"epg-0000000000000002", "session.sock.new", true, false},
        {"epg-0000000000000003", NULL, false, true},
        {"epg-0000000000000004", "something-else", true, true},
    };
    epg_error err = {0};
    int listener = -1;
    char *directory = NULL;
    char *path = NULL;
    const struct timespec then[] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
    for (size_t i = 0; i < EPG_COUNT(left); i++) {
        EPG_AUTO_FREE char *one = epg_format("%s/%s", home_path, left[i].name);
        ck_assert_int_eq(mkdir(one, 0700), 0);
        if (left[i].content != NULL) {
            epg_test_write_text(one, left[i].content, "");
        }
        if (left[i].old) {
            ck_assert_int_eq(utimensat(AT_FDCWD, one, then, 0), 0);
        }
    }
    epg_assert_ok(epg_socket_listen(&listener, &directory, &path, &err), &err);
    for (size_t i = 0; i < EPG_COUNT(left); i++) {
        EPG_AUTO_FREE char *one = epg_format("%s/%s", home_path, left[i].name);
        ck_assert_msg((access(one, F_OK) == 0) == left[i].stays, "%s", left[i].name);
    }
    (void)close(listener);
    epg_socket_remove(directory, path);
}
END_TEST

/* One of several Hosts that begin at the same time, again and again; exit code 1 when another took its socket away. */
static int begin_many_times(void)
{
    enum { TIMES = 150 };
    epg_error err;
    for (int i = 0; i < TIMES; i++) {
        int listener = -1;
        int client = -1;
        char *directory = NULL;
        char *path = NULL;
        if (epg_socket_listen(&listener, &directory, &path, &err) != EPG_OK ||
            epg_socket_connect(path, epg_deadline_after_ns(long_time), &client, &err) != EPG_OK) {
            (void)fprintf(stderr, "time %d: %s\n", i, err.text);
            return 1;
        }
        (void)close(client);
        (void)close(listener);
        epg_socket_remove(directory, path);
    }
    return 0;
}

START_TEST(hosts_that_begin_together_leave_each_others_sockets_alone)
{
    enum { HOSTS = 6 };
    pid_t hosts[HOSTS];
    for (int i = 0; i < HOSTS; i++) {
        hosts[i] = fork();
        ck_assert_int_ge(hosts[i], 0);
        if (hosts[i] == 0) {
            _exit(begin_many_times());
        }
    }
    int bad = 0;
    for (int i = 0; i < HOSTS; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(hosts[i], &status, 0), hosts[i]);
        bad += status != 0 ? 1 : 0;
    }
    ck_assert_int_eq(bad, 0);
}
END_TEST

START_TEST(a_packet_tells_who_sent_it)
{
    int ours = -1;
    int theirs = -1;
    pid_t sender = -1;
    char packet[8] = "";
    size_t before = epg_test_open_descriptors();
    ck_assert_int_eq(epg_socket_pair(&ours, &theirs), 0);
    ck_assert(fcntl(ours, F_GETFD) & fcntl(theirs, F_GETFD) & FD_CLOEXEC);
    ck_assert_int_eq(epg_socket_receive(ours, packet, sizeof packet, &sender), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(sender, -1);
    pid_t child = fork();
    if (child == 0) {
        _exit(send(theirs, "here", 4, 0) == 4 ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(epg_socket_receive(ours, packet, sizeof packet, &sender), 4);
    ck_assert_str_eq(packet, "here");
    ck_assert_int_eq(sender, child);
    (void)close(theirs);
    ck_assert_int_eq(epg_socket_receive(ours, packet, sizeof packet, &sender), 0);
    (void)close(ours);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

static Suite *socket_suite(void)
{
    Suite *suite = suite_create("system socket");
    TCase *tests = tcase_create("socket");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_listener_is_private_and_is_removed_whole);
    tcase_add_test(tests, what_a_killed_host_left_is_removed_by_the_next);
    tcase_add_test(tests, what_was_never_listened_in_is_removed_when_it_is_old);
    tcase_add_test(tests, hosts_that_begin_together_leave_each_others_sockets_alone);
    tcase_add_loop_test(tests, a_runtime_directory_of_no_use_is_passed_over, 0, 4);
    tcase_add_test(tests, a_socket_that_is_not_there_is_told_at_once);
    tcase_add_test(tests, a_full_queue_ends_at_the_deadline);
    tcase_add_test(tests, a_packet_tells_who_sent_it);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(socket_suite());
}
