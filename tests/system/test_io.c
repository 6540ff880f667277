#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "support/home.h"
#include "support/processes.h"
#include "support/support.h"
#include "system/files.h"
#include "system/io.h"

/* The steps of `epg-test-host io DIRECTORY`, each one point. */
enum { MKDIR = 1, OPEN, WRITE, CHMOD, FSYNC, RENAME, SYNC_DIRECTORY, STEPS = SYNC_DIRECTORY };
static const char content[] = "0123456789abcdef";

/* Runs the steps with EPG_IO_FAULT; `line` (may be NULL) gets what they print. */
static epg_exit play(const char *fault, char *line, size_t size)
{
    EPG_AUTO_FREE char *variable = epg_format("EPG_IO_FAULT=%s", fault);
    const char *environment[] = {variable, NULL};
    epg_test_command command;
    epg_process process;
    epg_error err = {0};
    epg_exit end = {0};
    epg_test_command_make(&command, "epg-test-host", "io", home_path);
    command.spawn.environment = environment;
    epg_assert_ok(epg_process_spawn(&command.spawn, &process, &err), &err);
    epg_test_command_started(&command);
    if (line != NULL) {
        (void)epg_test_read_line(command.out, line, size);
    }
    epg_assert_ok(epg_process_wait(&process, epg_deadline_after_ns(30 * EPG_SECOND), &end, &err), &err);
    epg_test_command_free(&command);
    return end;
}

static bool record_is_there(void)
{
    EPG_AUTO_FREE char *text = epg_test_read_text(home_path, "run/record.json");
    ck_assert(text == NULL || strcmp(text, content) == 0); /* never torn */
    return text != NULL;
}

/* What a name that begins so holds below run/, "" when it is empty, NULL when there is none. */
static char *temporary_content(void)
{
    EPG_AUTO_FREE char *order = epg_format("cat %s/run/%s* 2>/dev/null", home_path, EPG_FILE_TEMPORARY);
    FILE *pipe = popen(order, "re"); /* NOLINT(cert-env33-c) */
    char text[64] = "";
    ck_assert_ptr_nonnull(pipe);
    (void)!fgets(text, sizeof text, pipe);
    return pclose(pipe) == 0 ? epg_strdup(text) : NULL;
}

START_TEST(without_a_fault_all_points_are_passed)
{
    char line[32] = "";
    ck_assert_int_eq(play("", line, sizeof line).code, 0);
    ck_assert_str_eq(line, "7");
    ck_assert(record_is_there());
    ck_assert_ptr_null(temporary_content());
}
END_TEST

START_TEST(a_kill_at_a_point_happens_before_its_call)
{
    EPG_AUTO_FREE char *fault = epg_format("kill@%d", _i);
    epg_exit end = play(fault, NULL, 0);
    ck_assert_int_eq(end.signal, SIGKILL);
    ck_assert_int_eq(faccessat(home, "run", F_OK, 0) == 0, _i > MKDIR);
    EPG_AUTO_FREE char *temporary = temporary_content();
    ck_assert_int_eq(temporary != NULL, _i > OPEN && _i <= RENAME);
    if (temporary != NULL) {
        ck_assert_str_eq(temporary, _i > WRITE ? content : "");
    }
    ck_assert_int_eq(record_is_there(), _i > RENAME);
}
END_TEST

START_TEST(a_point_that_is_not_reached_changes_nothing)
{
    ck_assert_int_eq(play("kill@8", NULL, 0).code, 0);
    ck_assert(record_is_there());
}
END_TEST

START_TEST(points_of_one_call_are_counted_by_themselves)
{
    ck_assert_int_eq(play("kill@2:fsync", NULL, 0).signal, SIGKILL);
    ck_assert(record_is_there()); /* the second fsync is the directory's */
}
END_TEST

START_TEST(a_call_that_fails_is_told_and_leaves_nothing_torn)
{
    EPG_AUTO_FREE char *fault = epg_format("errno=EIO@%d", _i);
    ck_assert_int_eq(play(fault, NULL, 0).code, 1);
    ck_assert_int_eq(record_is_there(), _i > RENAME);
    ck_assert_ptr_null(temporary_content());
}
END_TEST

START_TEST(a_disk_that_stays_full_fails_every_later_call_too)
{
    ck_assert_int_eq(play("errno=ENOSPC@3+", NULL, 0).code, 1);
    ck_assert(!record_is_there());
    EPG_AUTO_FREE char *temporary = temporary_content();
    ck_assert_str_eq(temporary, ""); /* even its removal failed */
}
END_TEST

START_TEST(every_errno_that_is_named_can_be_played)
{
    static const char *const names[] = {"ENOSPC", "EIO",    "EDQUOT", "EROFS",  "EACCES",
                                        "EPERM",  "EMFILE", "ENFILE", "ENOMEM", "EFBIG"};
    EPG_AUTO_FREE char *fault = epg_format("errno=%s@1:write", names[_i]);
    ck_assert_int_eq(play(fault, NULL, 0).code, 1);
    ck_assert(!record_is_there());
}
END_TEST

START_TEST(an_interrupted_call_is_tried_again)
{
    EPG_AUTO_FREE char *fault = epg_format("errno=EINTR@%d", _i);
    ck_assert_int_eq(play(fault, NULL, 0).code, 0);
    ck_assert(record_is_there());
}
END_TEST

START_TEST(a_torn_write_leaves_its_first_half)
{
    ck_assert_int_eq(play("torn@3", NULL, 0).signal, SIGKILL);
    EPG_AUTO_FREE char *temporary = temporary_content();
    ck_assert_str_eq(temporary, "01234567");
    ck_assert(!record_is_there());
}
END_TEST

START_TEST(a_termination_comes_before_its_call)
{
    ck_assert_int_eq(play("term@3", NULL, 0).signal, SIGTERM); /* nobody there handles it */
    ck_assert(!record_is_there());
}
END_TEST

START_TEST(a_short_write_is_completed)
{
    ck_assert_int_eq(play("short@1:write", NULL, 0).code, 0);
    ck_assert(record_is_there());
}
END_TEST

START_TEST(several_faults_can_be_played_at_once)
{
    ck_assert_int_eq(play("short@1:write,errno=EINTR@1,kill@7", NULL, 0).signal, SIGKILL);
    ck_assert(record_is_there());
}
END_TEST

START_TEST(a_fault_that_cannot_be_read_ends_the_process)
{
    static const char *const bad[] = {
        "nonsense", "kill",    "kill@", "kill@x",        "kill@1:nothing",       "errno=ENOWAY@1",
        "kill@1,,", "kill@1 ", "@1",    "kill@1,more@2", "log=/nonexistent/log", "errno=@1",
        "short@1+2"};
    ck_assert_int_eq(play(bad[_i], NULL, 0).code, 70);
    ck_assert(!record_is_there());
}
END_TEST

/* The log's lines as a JSON array. */
static json_t *read_log(const char *name)
{
    EPG_AUTO_FREE char *text = epg_test_read_text(home_path, name);
    ck_assert_ptr_nonnull(text);
    json_t *lines = json_array();
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *value = NULL;
        epg_error err = {0};
        epg_assert_ok(epg_json_parse(epg_span_text(line), "log", &value, &err), &err);
        ck_assert_int_eq(json_array_append_new(lines, value), 0);
    }
    return lines;
}

static const char *text_of(const json_t *lines, size_t index, const char *key)
{
    return json_string_value(json_object_get(json_array_get(lines, index), key));
}

static json_int_t number_of(const json_t *lines, size_t index, const char *key)
{
    const json_t *value = json_object_get(json_array_get(lines, index), key);
    ck_assert_msg(json_is_integer(value), "line %zu has no %s", index, key);
    return json_integer_value(value);
}

START_TEST(the_log_tells_every_call_that_worked)
{
    static const char *const calls[] = {"mkdir", "open", "write", "chmod", "fsync", "rename", "fsync"};
    EPG_AUTO_FREE char *fault = epg_format("log=%s/the,log", home_path);
    EPG_AUTO_FREE char *real = realpath(home_path, NULL);
    ck_assert_int_eq(play(fault, NULL, 0).code, 0);
    EPG_AUTO_JSON *lines = read_log("the,log");
    ck_assert_uint_eq(json_array_size(lines), STEPS);
    for (size_t i = 0; i < STEPS; i++) {
        ck_assert_str_eq(text_of(lines, i, "call"), calls[i]);
        ck_assert_int_eq(number_of(lines, i, "point"), (json_int_t)i + 1);
    }
    EPG_AUTO_FREE char *run = epg_format("%s/run", real);
    EPG_AUTO_FREE char *record = epg_format("%s/run/record.json", real);
    ck_assert_str_eq(text_of(lines, MKDIR - 1, "path"), run);
    ck_assert_str_eq(text_of(lines, RENAME - 1, "to"), record);
    ck_assert_str_eq(text_of(lines, RENAME - 1, "path"), text_of(lines, OPEN - 1, "path"));
    ck_assert_str_eq(text_of(lines, SYNC_DIRECTORY - 1, "path"), run);
    EPG_AUTO_BUFFER data = {0};
    ck_assert(epg_base64_decode(epg_span_text(text_of(lines, WRITE - 1, "data")), &data));
    ck_assert_str_eq(epg_buffer_cstr(&data), content);
    ck_assert_int_eq(number_of(lines, WRITE - 1, "offset"), 0);
    ck_assert_int_eq(number_of(lines, WRITE - 1, "size"), (json_int_t)strlen(content));
    /* One file all the way, whatever its name. */
    struct stat info;
    ck_assert_int_eq(fstatat(home, "run/record.json", &info, 0), 0);
    for (size_t i = OPEN; i <= RENAME; i++) {
        ck_assert_int_eq(number_of(lines, i - 1, "inode"), (json_int_t)info.st_ino);
        ck_assert_int_eq(number_of(lines, i - 1, "device"), (json_int_t)info.st_dev);
    }
}
END_TEST

START_TEST(a_call_that_failed_or_was_not_reached_is_not_in_the_log)
{
    EPG_AUTO_FREE char *fault = epg_format("kill@%d,log=%s/log", FSYNC, home_path);
    ck_assert_int_eq(play(fault, NULL, 0).signal, SIGKILL);
    EPG_AUTO_JSON *lines = read_log("log");
    ck_assert_uint_eq(json_array_size(lines), FSYNC - 1);
}
END_TEST

/* The rest runs in this process, where each test is a fresh one. */

START_TEST(the_offset_of_an_appending_write_is_the_files_end)
{
    EPG_AUTO_FREE char *fault = epg_format("log=%s/log", home_path);
    ck_assert_int_eq(setenv("EPG_IO_FAULT", fault, 1), 0);
    epg_test_write_text(home_path, "f\"\xc3\xa9\n", "12345");
    EPG_AUTO_CLOSE int fd = epg_io_open(home, "f\"\xc3\xa9\n", O_WRONLY | O_APPEND, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_eq(epg_io_points(), 0); /* opening what exists is no point */
    ck_assert_int_eq(epg_io_write_all(fd, "678", 3), 0);
    ck_assert_int_eq(epg_io_write_all(fd, "", 0), 0);
    ck_assert_int_eq(epg_io_ftruncate(fd, 2), 0);
    ck_assert_int_eq(epg_io_boundary("commit"), 0);
    ck_assert_int_eq(epg_io_symlink("t", home, "s"), 0);
    EPG_AUTO_JSON *lines = read_log("log");
    ck_assert_uint_eq(json_array_size(lines), 5);
    ck_assert_int_eq(number_of(lines, 0, "offset"), 5);
    ck_assert_int_eq(number_of(lines, 1, "offset"), 8);
    ck_assert_int_eq(number_of(lines, 2, "size"), 2);
    ck_assert_str_eq(text_of(lines, 3, "name"), "commit");
    ck_assert_str_eq(text_of(lines, 4, "target"), "t");
    /* One \u00XX for each byte that is not ASCII: UTF-8 read as Latin-1, and written as UTF-8 again by the parser. */
    ck_assert(epg_ends_with(text_of(lines, 0, "path"), "/f\"\xc3\x83\xc2\xa9\n"));
    ck_assert_uint_eq(epg_io_points(), 5);
}
END_TEST

START_TEST(a_write_goes_on_where_the_kernel_stopped)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    enum { SIZE = 1000000 };
    uint8_t *data = epg_alloc(SIZE);
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        for (size_t i = 0; i < SIZE; i++) {
            data[i] = (uint8_t)(i % 251);
        }
        _exit(epg_io_write_all(ends[1], data, SIZE) == 0 ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t total = 0;
    ssize_t got = 0;
    while ((got = read(ends[0], data, 1000)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            ck_assert_uint_eq(data[i], (total + (size_t)i) % 251);
        }
        total += (size_t)got;
    }
    ck_assert_uint_eq(total, SIZE);
    (void)close(ends[0]);
    free(data);
}
END_TEST

static mode_t mode_of(const char *name)
{
    struct stat info;
    ck_assert_int_eq(fstatat(home, name, &info, AT_SYMLINK_NOFOLLOW), 0);
    return info.st_mode & 07777;
}

START_TEST(modes_are_set_in_full_and_never_through_a_link)
{
    (void)umask(027);
    ck_assert_int_eq(epg_io_mkdir(home, "d", 0777), 0);
    ck_assert_uint_eq(mode_of("d"), 0777);
    ck_assert_int_eq(epg_io_mkdir(home, "d", 0777), -1);
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_uint_eq(umask(027), 027); /* put back, after a failure too */
    ck_assert_int_eq(epg_io_symlink("d", home, "link"), 0);
    ck_assert_int_eq(epg_io_chmod(home, "d", 0700), 0);
    ck_assert_int_eq(epg_io_chmod(home, "link", 0755), -1);
    ck_assert_uint_eq(mode_of("d"), 0700);
    EPG_AUTO_CLOSE int fd = epg_io_open(home, "f", O_WRONLY | O_CREAT, 0600);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert_int_eq(epg_io_fchmod(fd, 0666), 0);
    ck_assert_uint_eq(mode_of("f"), 0666);
}
END_TEST

START_TEST(a_pipe_in_a_files_place_is_not_waited_for)
{
    ck_assert_int_eq(mkfifoat(home, "pipe", 0600), 0);
    ck_assert_int_eq(epg_io_open(home, "pipe", O_WRONLY | O_CREAT | O_APPEND, 0600), -1);
    ck_assert_int_eq(errno, ENXIO);
}
END_TEST

START_TEST(a_new_name_is_not_taken_from_what_exists)
{
    epg_test_write_text(home_path, "a", "a");
    epg_test_write_text(home_path, "b", "b");
    ck_assert_int_eq(epg_io_rename_new(home, "a", home, "b"), -1);
    ck_assert_int_eq(errno, EEXIST);
    EPG_AUTO_FREE char *kept = epg_test_read_text(home_path, "b");
    ck_assert_str_eq(kept, "b");
    ck_assert_int_eq(epg_io_symlink("nowhere", home, "dangling"), 0);
    ck_assert_int_eq(epg_io_rename_new(home, "a", home, "dangling"), -1);
    ck_assert_int_eq(epg_io_rename_new(home, "a", home, "c"), 0);
    ck_assert_int_eq(epg_io_rename(home, "c", home, "b"), 0);
    EPG_AUTO_FREE char *replaced = epg_test_read_text(home_path, "b");
    ck_assert_str_eq(replaced, "a");
    ck_assert_int_eq(epg_io_unlink(home, "b", 0), 0);
    ck_assert_int_eq(epg_io_unlink(home, "b", 0), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(a_socket_is_made_with_its_mode_and_a_path_that_fits)
{
    EPG_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EPG_AUTO_FREE char *path = epg_format("%s/s", home_path);
    EPG_AUTO_FREE char *long_path = epg_format("%s/%0108d", home_path, 1);
    ck_assert_int_eq(epg_io_bind_unix(fd, long_path, 0600), -1);
    ck_assert_int_eq(errno, ENAMETOOLONG);
    ck_assert_int_eq(epg_io_bind_unix(fd, path, 0600), 0);
    ck_assert_uint_eq(mode_of("s"), 0600);
}
END_TEST

static Suite *io_suite(void)
{
    Suite *suite = suite_create("system io");
    TCase *tests = tcase_create("io");
    tcase_add_checked_fixture(tests, home_set_up, home_tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, without_a_fault_all_points_are_passed);
    tcase_add_loop_test(tests, a_kill_at_a_point_happens_before_its_call, 1, STEPS + 1);
    tcase_add_test(tests, a_point_that_is_not_reached_changes_nothing);
    tcase_add_test(tests, points_of_one_call_are_counted_by_themselves);
    tcase_add_loop_test(tests, a_call_that_fails_is_told_and_leaves_nothing_torn, 1, STEPS + 1);
    tcase_add_test(tests, a_disk_that_stays_full_fails_every_later_call_too);
    tcase_add_loop_test(tests, every_errno_that_is_named_can_be_played, 0, 10);
    tcase_add_loop_test(tests, an_interrupted_call_is_tried_again, 1, STEPS + 1);
    tcase_add_test(tests, a_torn_write_leaves_its_first_half);
    tcase_add_test(tests, a_termination_comes_before_its_call);
    tcase_add_test(tests, a_short_write_is_completed);
    tcase_add_test(tests, several_faults_can_be_played_at_once);
    tcase_add_loop_test(tests, a_fault_that_cannot_be_read_ends_the_process, 0, 13);
    tcase_add_test(tests, the_log_tells_every_call_that_worked);
    tcase_add_test(tests, a_call_that_failed_or_was_not_reached_is_not_in_the_log);
    tcase_add_test(tests, the_offset_of_an_appending_write_is_the_files_end);
    tcase_add_test(tests, a_write_goes_on_where_the_kernel_stopped);
    tcase_add_test(tests, modes_are_set_in_full_and_never_through_a_link);
    tcase_add_test(tests, a_pipe_in_a_files_place_is_not_waited_for);
    tcase_add_test(tests, a_new_name_is_not_taken_from_what_exists);
    tcase_add_test(tests, a_socket_is_made_with_its_mode_and_a_path_that_fits);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(io_suite());
}
