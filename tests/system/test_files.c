#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/home.h"
#include "support/support.h"
#include "system/files.h"
#include "system/output.h"

static mode_t mode_of(const char *name)
{
    struct stat info;
    ck_assert_int_eq(fstatat(home, name, &info, AT_SYMLINK_NOFOLLOW), 0);
    return info.st_mode & 07777;
}

static void expect_content(const char *name, const char *content)
{
    EPG_AUTO_FREE char *text = epg_test_read_text(home_path, name);
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, content);
}

static void expect_names(const char *expected)
{
    EPG_AUTO_FREE char *order = epg_format("cd %s && ls -A | tr '\\n' ' '", home_path);
    FILE *pipe = popen(order, "re"); /* NOLINT(cert-env33-c) */
    char names[1024] = "";
    ck_assert_ptr_nonnull(pipe);
    (void)!fgets(names, sizeof names, pipe);
    ck_assert_int_eq(pclose(pipe), 0);
    ck_assert_str_eq(names, expected);
}

START_TEST(an_atomic_write_makes_and_replaces_with_the_mode_in_full)
{
    epg_error err = {0};
    (void)umask(077);
    epg_assert_ok(epg_file_write_atomic(home, "a", epg_span_text("one"), 0644, &err), &err);
    expect_content("a", "one");
    ck_assert_uint_eq(mode_of("a"), 0644);
    epg_assert_ok(epg_file_write_atomic(home, "a", epg_span_text(""), 0400, &err), &err);
    expect_content("a", "");
    ck_assert_uint_eq(mode_of("a"), 0400);
    expect_names("a ");
}
END_TEST

START_TEST(an_atomic_write_replaces_a_link_and_not_what_it_points_to)
{
    epg_error err = {0};
    epg_test_write_text(home_path, "target", "kept");
    ck_assert_int_eq(symlinkat("target", home, "link"), 0);
    epg_assert_ok(epg_file_write_atomic(home, "link", epg_span_text("new"), 0600, &err), &err);
    expect_content("target", "kept");
    expect_content("link", "new");
    struct stat info;
    ck_assert_int_eq(fstatat(home, "link", &info, AT_SYMLINK_NOFOLLOW), 0);
    ck_assert(S_ISREG(info.st_mode));
}
END_TEST

START_TEST(an_atomic_write_that_fails_leaves_no_temporary_file)
{
    epg_error err = {0};
    epg_test_write_text(home_path, "directory/inside", "x");
    epg_assert_code(epg_file_write_atomic(home, "directory", epg_span_text("new"), 0600, &err), EPG_ERR_IO, &err);
    ck_assert_int_eq(err.sys_errno, EISDIR);
    expect_names("directory ");
    expect_content("directory/inside", "x");
}
END_TEST

START_TEST(a_name_that_is_a_path_is_refused)
{
    static const char *const names[] = {"", ".", "..", "a/b", "/a", "a/"};
    epg_error err = {0};
    epg_span content = epg_span_text("x");
    epg_assert_code(epg_file_write_atomic(home, names[_i], content, 0600, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_file_write_new(home, names[_i], content, 0600, false, &err), EPG_ERR_INVALID, &err);
    expect_names("");
}
END_TEST

START_TEST(a_new_file_refuses_an_existing_name)
{
    epg_error err = {0};
    epg_assert_ok(epg_file_write_new(home, "a", epg_span_text("one"), 0640, _i == 1, &err), &err);
    ck_assert_uint_eq(mode_of("a"), 0640);
    epg_assert_code(epg_file_write_new(home, "a", epg_span_text("two"), 0640, _i == 1, &err), EPG_ERR_EXISTS, &err);
    expect_content("a", "one");
    /* A dangling link is an existing name: nothing is made through it. */
    ck_assert_int_eq(symlinkat("elsewhere", home, "link"), 0);
    epg_assert_code(epg_file_write_new(home, "link", epg_span_text("two"), 0640, _i == 1, &err), EPG_ERR_EXISTS, &err);
    expect_names("a link ");
}
END_TEST

START_TEST(a_file_is_read_up_to_its_bound)
{
    epg_error err = {0};
    EPG_AUTO_BUFFER out = {0};
    ck_assert(epg_buffer_text(&out, "before"));
    size_t size = 200000;
    EPG_AUTO_FREE char *content = epg_alloc(size + 1);
    memset(content, 'x', size);
    epg_test_write_text(home_path, "a", content);
    epg_assert_code(epg_file_read(home, "a", size - 1, &out, &err), EPG_ERR_LIMIT, &err);
    ck_assert_str_eq(epg_buffer_cstr(&out), "before"); /* untouched */
    epg_assert_ok(epg_file_read(home, "a", size, &out, &err), &err);
    ck_assert(epg_span_equal(epg_buffer_span(&out), epg_span_text(content)));
    epg_assert_ok(epg_file_read(home, "a", SIZE_MAX, &out, &err), &err);
    ck_assert_uint_eq(out.size, size);
    epg_test_write_text(home_path, "empty", "");
    epg_assert_ok(epg_file_read(home, "empty", 0, &out, &err), &err);
    ck_assert_uint_eq(out.size, 0);
}
END_TEST

START_TEST(only_a_regular_file_is_read)
{
    epg_error err = {0};
    EPG_AUTO_BUFFER out = {0};
    epg_test_write_text(home_path, "d/real", "x");
    ck_assert_int_eq(symlinkat("d/real", home, "link"), 0);
    ck_assert_int_eq(mkfifoat(home, "fifo", 0600), 0);
    epg_assert_code(epg_file_read(home, "none", 10, &out, &err), EPG_ERR_NOT_FOUND, &err);
    epg_assert_code(epg_file_read(home, "d", 10, &out, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_file_read(home, "link", 10, &out, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_file_read(home, "d/real/x", 10, &out, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_file_read(home, "fifo", 10, &out, &err), EPG_ERR_INVALID, &err); /* and does not wait */
    epg_assert_code(epg_file_read(AT_FDCWD, "/dev/zero", 10, &out, &err), EPG_ERR_INVALID, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "/dev/zero"));
}
END_TEST

START_TEST(a_descriptor_is_read_from_where_it_is)
{
    epg_error err = {0};
    EPG_AUTO_BUFFER out = {0};
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(write(ends[1], "a\0b", 3), 3);
    (void)close(ends[1]);
    epg_assert_ok(epg_file_read_fd(ends[0], "pipe", 3, &out, &err), &err);
    ck_assert_uint_eq(out.size, 3);
    ck_assert_mem_eq(out.data, "a\0b", 4);
    (void)close(ends[0]);
    epg_assert_code(epg_file_read_fd(ends[0], "pipe", 3, &out, &err), EPG_ERR_IO, &err);
    ck_assert_int_eq(err.sys_errno, EBADF);
}
END_TEST

START_TEST(a_directory_is_opened_only_without_a_link)
{
    epg_error err = {0};
    int fd = -5;
    epg_test_write_text(home_path, "a/b/c/file", "x");
    ck_assert_int_eq(symlinkat("a", home, "link"), 0);
    ck_assert_int_eq(symlinkat("b", home, "a/inner"), 0);
    epg_assert_code(epg_dir_open(home, "link", &fd, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_dir_open(home, "none", &fd, &err), EPG_ERR_NOT_FOUND, &err);
    epg_assert_code(epg_dir_open(home, "a/b/c/file", &fd, &err), EPG_ERR_INVALID, &err);
    static const struct {
        const char *path;
        epg_code code;
    } refused[] = {{"link/b", EPG_ERR_INVALID}, {"a/inner/c", EPG_ERR_INVALID}, {"a/../a", EPG_ERR_INVALID},
                   {"/a", EPG_ERR_INVALID},     {"a//b", EPG_ERR_INVALID},      {"a/", EPG_ERR_INVALID},
                   {"", EPG_ERR_INVALID},       {"a/./b", EPG_ERR_INVALID},     {"a/none/c", EPG_ERR_NOT_FOUND},
                   {"..", EPG_ERR_INVALID},     {"a/b/c/file", EPG_ERR_INVALID}};
    for (size_t i = 0; i < EPG_COUNT(refused); i++) {
        epg_assert_code(epg_dir_open_beneath(home, refused[i].path, &fd, &err), refused[i].code, &err);
    }
    ck_assert_int_eq(fd, -5);
    size_t before = epg_test_open_descriptors();
    static const char *const good[] = {".", "a", "a/b/c"};
    for (size_t i = 0; i < EPG_COUNT(good); i++) {
        struct stat opened;
        struct stat named;
        epg_assert_ok(epg_dir_open_beneath(home, good[i], &fd, &err), &err);
        ck_assert_int_eq(fstat(fd, &opened), 0);
        ck_assert_int_eq(fstatat(home, good[i], &named, 0), 0);
        ck_assert_uint_eq(opened.st_ino, named.st_ino);
        ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        (void)close(fd);
    }
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

START_TEST(a_directory_is_synced)
{
    epg_error err = {0};
    epg_assert_ok(epg_dir_sync(home, &err), &err);
    ck_assert_int_eq(fchdir(home), 0);
    epg_assert_ok(epg_dir_sync(AT_FDCWD, &err), &err);
    epg_assert_code(epg_dir_sync(9999, &err), EPG_ERR_IO, &err);
}
END_TEST

START_TEST(temporary_names_do_not_repeat)
{
    EPG_AUTO_FREE char *one = epg_file_temporary_name("p-");
    EPG_AUTO_FREE char *two = epg_file_temporary_name("p-");
    ck_assert_uint_eq(strlen(one), 2 + 16);
    ck_assert_int_eq(strncmp(one, "p-", 2), 0);
    ck_assert_str_ne(one, two);
}

START_TEST(an_output_is_all_of_its_pieces)
{
    static const size_t sizes[] = {0, 1, 5000, 65535, 65536, 65537, 3, 200000, 60000, 7};
    epg_error err = {0};
    EPG_AUTO_BUFFER expected = {0};
    EPG_AUTO_OUTPUT output = {.fd = -1};
    (void)umask(077);
    epg_assert_ok(epg_output_begin(&output, home, "out", &err), &err);
    for (size_t i = 0; i < EPG_COUNT(sizes); i++) {
        EPG_AUTO_FREE char *piece = epg_alloc(sizes[i] + 1);
        memset(piece, 'a' + (int)i, sizes[i]);
        (void)epg_buffer_append(&expected, piece, sizes[i]);
        epg_output_put(&output, epg_span_of(piece, sizes[i]));
    }
    epg_assert_ok(epg_output_end(&output, 0444, true, &err), &err);
    expect_content("out", epg_buffer_cstr(&expected));
    ck_assert_uint_eq(mode_of("out"), 0444);
    epg_output_free(&output);
    expect_names("out ");
    epg_assert_code(epg_output_begin(&output, home, "out", &err), EPG_ERR_EXISTS, &err);
}
END_TEST

START_TEST(an_output_that_was_not_ended_leaves_nothing)
{
    epg_error err = {0};
    {
        EPG_AUTO_OUTPUT output = {.fd = -1};
        epg_assert_ok(epg_output_begin(&output, home, "out", &err), &err);
        epg_output_put(&output, epg_span_text("half"));
    }
    expect_names("");
}
END_TEST

/* A disk that is full while pieces come is told at the end, and nothing is left. */
START_TEST(an_output_that_cannot_be_written_leaves_nothing)
{
    epg_error err = {0};
    EPG_AUTO_OUTPUT output = {.fd = -1};
    struct rlimit limit = {100000, 100000};
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    epg_assert_ok(epg_output_begin(&output, home, "out", &err), &err);
    for (int i = 0; i < 100000; i++) {
        epg_output_put(&output, epg_span_text("half"));
    }
    epg_assert_code(epg_output_end(&output, 0444, true, &err), EPG_ERR_IO, &err);
    ck_assert_int_eq(err.sys_errno, EFBIG);
    expect_names("");
}
END_TEST
END_TEST

static Suite *files_suite(void)
{
    Suite *suite = suite_create("system files");
    TCase *tests = tcase_create("files");
    tcase_add_checked_fixture(tests, home_set_up, home_tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, an_atomic_write_makes_and_replaces_with_the_mode_in_full);
    tcase_add_test(tests, an_atomic_write_replaces_a_link_and_not_what_it_points_to);
    tcase_add_test(tests, an_atomic_write_that_fails_leaves_no_temporary_file);
    tcase_add_loop_test(tests, a_name_that_is_a_path_is_refused, 0, 6);
    tcase_add_loop_test(tests, a_new_file_refuses_an_existing_name, 0, 2);
    tcase_add_test(tests, a_file_is_read_up_to_its_bound);
    tcase_add_test(tests, only_a_regular_file_is_read);
    tcase_add_test(tests, a_descriptor_is_read_from_where_it_is);
    tcase_add_test(tests, a_directory_is_opened_only_without_a_link);
    tcase_add_test(tests, a_directory_is_synced);
    tcase_add_test(tests, temporary_names_do_not_repeat);
    tcase_add_test(tests, an_output_is_all_of_its_pieces);
    tcase_add_test(tests, an_output_that_was_not_ended_leaves_nothing);
    tcase_add_test(tests, an_output_that_cannot_be_written_leaves_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(files_suite());
}
