#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "support/home.h"
#include "support/support.h"
#include "system/tree.h"

enum { NOBODY = 65534 };

typedef struct visit_log {
    epg_buffer text;
    const char *skip;
    const char *stop;
} visit_log;

static epg_tree_step log_visit(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    visit_log *log = context;
    struct stat info;
    ck_assert_int_eq(fstatat(entry->dir, entry->name, &info, AT_SYMLINK_NOFOLLOW), 0);
    ck_assert_uint_eq(info.st_ino, entry->info.st_ino);
    const char *kind = S_ISDIR(info.st_mode) ? "/" : S_ISLNK(info.st_mode) ? "@" : "";
    ck_assert(epg_buffer_format(&log->text, "%s%s ", entry->path, kind));
    if (log->stop != NULL && strcmp(entry->path, log->stop) == 0) {
        *code = epg_fail(err, EPG_ERR_LIMIT, "enough");
        return EPG_TREE_STOP;
    }
    return log->skip != NULL && strcmp(entry->path, log->skip) == 0 ? EPG_TREE_SKIP : EPG_TREE_CONTINUE;
}

START_TEST(a_walk_goes_in_byte_order_and_follows_no_link)
{
    epg_error err = {0};
    visit_log log = {0};
    size_t before = epg_test_open_descriptors();
    epg_test_write_text(home_path, "a-b", "");
    epg_test_write_text(home_path, "a/x", "");
    epg_test_write_text(home_path, "a/B/deep", "");
    epg_test_write_text(home_path, "\xc3\xa9", "");
    epg_test_write_text(home_path, "Z", "");
    ck_assert_int_eq(symlinkat("a", home, "link"), 0);
    epg_assert_ok(epg_tree_walk(home, log_visit, &log, &err), &err);
    ck_assert_str_eq(epg_buffer_cstr(&log.text), "Z a/ a/B/ a/B/deep a/x a-b link@ \xc3\xa9 ");
    epg_buffer_free(&log.text);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

START_TEST(a_visitor_can_skip_and_stop)
{
    epg_error err = {0};
    visit_log log = {.skip = "a", .stop = "b/two"};
    size_t before = epg_test_open_descriptors();
    epg_test_write_text(home_path, "a/inside", "");
    epg_test_write_text(home_path, "b/one", "");
    epg_test_write_text(home_path, "b/two", "");
    epg_test_write_text(home_path, "b/zzz", "");
    epg_test_write_text(home_path, "c", "");
    epg_assert_code(epg_tree_walk(home, log_visit, &log, &err), EPG_ERR_LIMIT, &err);
    ck_assert_str_eq(err.text, "enough");
    ck_assert_str_eq(epg_buffer_cstr(&log.text), "a/ b/ b/one b/two ");
    epg_buffer_free(&log.text);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

static epg_tree_step remove_the_others(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    (void)code;
    (void)err;
    unsigned *visits = context;
    (*visits)++;
    /* While "a" is visited: "b" goes, and what was to be entered is a link now. */
    if (strcmp(entry->path, "a") == 0) {
        ck_assert_int_eq(unlinkat(home, "b", 0), 0);
        ck_assert_int_eq(unlinkat(home, "a", AT_REMOVEDIR), 0);
        ck_assert_int_eq(symlinkat("/", home, "a"), 0);
    }
    return EPG_TREE_CONTINUE;
}

START_TEST(a_walk_survives_a_tree_that_changes_under_it)
{
    epg_error err = {0};
    unsigned visits = 0;
    ck_assert_int_eq(mkdirat(home, "a", 0755), 0);
    epg_test_write_text(home_path, "b", "");
    epg_test_write_text(home_path, "c", "");
    epg_assert_ok(epg_tree_walk(home, remove_the_others, &visits, &err), &err);
    ck_assert_uint_eq(visits, 2); /* a, c; nothing of the root directory */
}
END_TEST

static epg_tree_step count_visit(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    (void)entry;
    (void)code;
    (void)err;
    ++*(unsigned *)context;
    return EPG_TREE_CONTINUE;
}

/* Makes `depth` directories, one in the other, each named "d". */
static void make_deep(int depth)
{
    int at = dup(home);
    for (int i = 0; i < depth; i++) {
        ck_assert_int_eq(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    int file = openat(at, "bottom", O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    ck_assert_int_ge(file, 0);
    (void)close(file);
    (void)close(at);
}

START_TEST(a_walk_is_bounded_in_depth)
{
    epg_error err = {0};
    unsigned visits = 0;
    make_deep(EPG_TREE_DEPTH - 1);
    epg_assert_ok(epg_tree_walk(home, count_visit, &visits, &err), &err);
    ck_assert_uint_eq(visits, EPG_TREE_DEPTH);
    epg_assert_ok(epg_tree_remove(home, "d", 0, &err), &err);
    make_deep(EPG_TREE_DEPTH);
    epg_assert_code(epg_tree_walk(home, count_visit, &visits, &err), EPG_ERR_LIMIT, &err);
}
END_TEST

START_TEST(a_walk_is_bounded_in_the_names_of_a_directory)
{
    static const char memory[] = "/dev/shm"; /* where that can be had: so many files take long on a disk */
    epg_error err = {0};
    unsigned visits = 0;
    char *path = NULL;
    int full = -1;
    ck_assert_int_eq(setenv("TMPDIR", access(memory, W_OK) == 0 ? memory : home_path, 1), 0);
    epg_assert_ok(epg_tree_temporary("full-", &path, &full, &err), &err);
    size_t before = epg_test_open_descriptors();
    for (unsigned i = 0; i < EPG_TREE_NAMES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%x", i);
        ck_assert_int_eq(mknodat(full, name, S_IFREG | 0600, 0), 0);
    }
    epg_code code = epg_tree_walk(full, count_visit, &visits, &err);
    ck_assert_int_eq(mknodat(full, "more", S_IFREG | 0600, 0), 0);
    epg_code over = epg_tree_walk(full, count_visit, &visits, NULL);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
    (void)close(full);
    (void)epg_tree_remove(AT_FDCWD, path, 0, NULL);
    free(path);
    epg_assert_ok(code, &err);
    ck_assert_int_eq(over, EPG_ERR_LIMIT);
    ck_assert_uint_eq(visits, EPG_TREE_NAMES);
}
END_TEST

static bool is_there(const char *name)
{
    struct stat info;
    return fstatat(home, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

START_TEST(anything_is_removed_whatever_it_is)
{
    epg_error err = {0};
    size_t before = epg_test_open_descriptors();
    epg_test_write_text(home_path, "keep/file", "kept");
    epg_test_write_text(home_path, "file", "");
    ck_assert_int_eq(mkfifoat(home, "fifo", 0), 0);
    ck_assert_int_eq(symlinkat("keep", home, "link"), 0);
    epg_test_write_text(home_path, "tree/a/b/file", "");
    ck_assert_int_eq(symlinkat("../../keep", home, "tree/a/link"), 0);
    ck_assert_int_eq(mkdirat(home, "tree/empty", 0), 0);
    static const char *const names[] = {"file", "fifo", "link", "tree", "never-there"};
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        epg_assert_ok(epg_tree_remove(home, names[i], 0, &err), &err);
        ck_assert(!is_there(names[i]));
    }
    EPG_AUTO_FREE char *kept = epg_test_read_text(home_path, "keep/file");
    ck_assert_str_eq(kept, "kept");
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

/* As an ordinary user: modes do not stop root. */
START_TEST(a_tree_with_hostile_modes_is_removed)
{
    epg_error err = {0};
    ck_assert_int_eq(fchmod(home, 0777), 0);
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)) {
            _exit(2);
        }
        epg_test_write_text(home_path, "tree/closed/inside", "x");
        epg_test_write_text(home_path, "tree/readonly/inside", "x");
        epg_test_write_text(home_path, "tree/unsearchable/sub/inside", "x");
        ck_assert_int_eq(fchmodat(home, "tree/closed/inside", 0, 0), 0);
        ck_assert_int_eq(fchmodat(home, "tree/closed", 0, 0), 0);
        ck_assert_int_eq(fchmodat(home, "tree/readonly", 0500, 0), 0);
        ck_assert_int_eq(fchmodat(home, "tree/unsearchable", 0600, 0), 0);
        ck_assert_int_eq(fchmodat(home, "tree", 0100, 0), 0);
        epg_code code = epg_tree_remove(home, "tree", 0, &err);
        _exit(code == EPG_OK ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(!is_there("tree"));
}
END_TEST

START_TEST(a_tree_of_any_depth_is_removed_with_few_descriptors)
{
    epg_error err = {0};
    make_deep(1000);
    epg_assert_ok(epg_tree_remove(home, "d", 0, &err), &err);
    ck_assert(!is_there("d"));
}
END_TEST

START_TEST(a_bounded_removal_says_that_more_is_left)
{
    epg_error err = {0};
    for (int i = 0; i < 10; i++) {
        EPG_AUTO_FREE char *name = epg_format("tree/%d", i);
        epg_test_write_text(home_path, name, "");
    }
    epg_assert_code(epg_tree_remove(home, "tree", 4, &err), EPG_ERR_LIMIT, &err);
    ck_assert(is_there("tree"));
    epg_assert_code(epg_tree_remove(home, "tree", 6, &err), EPG_ERR_LIMIT, &err); /* the directory itself is left */
    epg_assert_ok(epg_tree_remove(home, "tree", 1, &err), &err);
    ck_assert(!is_there("tree"));
}
END_TEST

/* Somebody swaps directories for links and back while we remove: what the links point to must stay. */
START_TEST(a_removal_is_not_led_astray_by_links_that_appear)
{
    epg_error err = {0};
    for (int i = 0; i < 50; i++) {
        EPG_AUTO_FREE char *name = epg_format("keep/%d", i);
        epg_test_write_text(home_path, name, "kept");
    }
    pid_t adversary = fork();
    if (adversary == 0) {
        for (;;) {
            (void)mkdirat(home, "tree", 0755);
            (void)mkdirat(home, "tree/sub", 0755);
            (void)unlinkat(home, "tree/sub", AT_REMOVEDIR);
            (void)!symlinkat("../keep", home, "tree/sub");
            (void)unlinkat(home, "tree/sub", 0);
        }
    }
    for (int i = 0; i < 300; i++) {
        /* It may be made again as fast as it goes: that is told, or it is gone for the moment. */
        epg_code code = epg_tree_remove(home, "tree", 1000, &err);
        ck_assert_msg(code == EPG_OK || code == EPG_ERR_LIMIT || code == EPG_ERR_CHANGED, "%s", err.text);
    }
    ck_assert_int_eq(kill(adversary, SIGKILL), 0);
    ck_assert_int_eq(waitpid(adversary, NULL, 0), adversary);
    int keep = openat(home, "keep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned visits = 0;
    epg_assert_ok(epg_tree_walk(keep, count_visit, &visits, &err), &err);
    ck_assert_uint_eq(visits, 50);
    (void)close(keep);
}
END_TEST

START_TEST(a_removal_that_is_forbidden_says_why)
{
    epg_error err = {0};
    epg_test_write_text(home_path, "tree/file", "");
    ck_assert_int_eq(fchmod(home, 0555), 0); /* not even for its owner */
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)) {
            _exit(2);
        }
        _exit(epg_tree_remove(home, "tree", 0, &err) == EPG_ERR_IO && err.sys_errno == EACCES ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_temporary_directory_is_private_and_where_tmpdir_says)
{
    epg_error err = {0};
    char *path = NULL;
    int fd = -1;
    struct stat info;
    (void)umask(0);
    ck_assert_int_eq(setenv("TMPDIR", home_path, 1), 0);
    epg_assert_ok(epg_tree_temporary("epg-x-", &path, &fd, &err), &err);
    EPG_AUTO_FREE char *start = epg_format("%s/epg-x-", home_path);
    ck_assert_int_eq(strncmp(path, start, strlen(start)), 0);
    ck_assert_int_eq(fstat(fd, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0700);
    (void)close(fd);
    epg_assert_ok(epg_tree_remove(AT_FDCWD, path, 0, &err), &err);
    free(path);

    ck_assert_int_eq(setenv("TMPDIR", "/nonexistent", 1), 0);
    path = NULL;
    epg_assert_code(epg_tree_temporary("epg-x-", &path, &fd, &err), EPG_ERR_IO, &err);
    ck_assert_ptr_null(path);
    ck_assert_int_eq(setenv("TMPDIR", "relative", 1), 0);
    epg_assert_ok(epg_tree_temporary("epg-x-", &path, &fd, &err), &err);
    ck_assert_int_eq(strncmp(path, "/tmp/epg-x-", 11), 0);
    (void)close(fd);
    epg_assert_ok(epg_tree_remove(AT_FDCWD, path, 0, &err), &err);
    free(path);
}
END_TEST

static Suite *tree_suite(void)
{
    Suite *suite = suite_create("system tree");
    TCase *tests = tcase_create("tree");
    tcase_add_checked_fixture(tests, home_set_up, home_tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_walk_goes_in_byte_order_and_follows_no_link);
    tcase_add_test(tests, a_visitor_can_skip_and_stop);
    tcase_add_test(tests, a_walk_survives_a_tree_that_changes_under_it);
    tcase_add_test(tests, a_walk_is_bounded_in_depth);
    tcase_add_test(tests, a_walk_is_bounded_in_the_names_of_a_directory);
    tcase_add_test(tests, anything_is_removed_whatever_it_is);
    tcase_add_test(tests, a_tree_with_hostile_modes_is_removed);
    tcase_add_test(tests, a_tree_of_any_depth_is_removed_with_few_descriptors);
    tcase_add_test(tests, a_bounded_removal_says_that_more_is_left);
    tcase_add_test(tests, a_removal_is_not_led_astray_by_links_that_appear);
    tcase_add_test(tests, a_removal_that_is_forbidden_says_why);
    tcase_add_test(tests, a_temporary_directory_is_private_and_where_tmpdir_says);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(tree_suite());
}
