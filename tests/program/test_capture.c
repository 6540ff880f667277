/* Capture under hostile sources. To change the tree at an exact moment, this program puts its own openat and read
 * before the C library's: a hook runs once, before the call it waits for. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "programs/program.h"
#include "support/support.h"
#include "system/tree.h"

static char *root;
static epg_error err;
static epg_program program;

/* What to do, and before what: the `countdown`th openat of `name`, or the first read when `name` is NULL. */
static struct {
    void (*act)(void);
    const char *name;
    int countdown;
} hook;

static void run_hook(void)
{
    void (*act)(void) = hook.act;
    hook.act = NULL;
    act();
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (hook.act != NULL && hook.name != NULL && strcmp(hook.name, path) == 0 && --hook.countdown == 0) {
        run_hook();
    }
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

ssize_t read(int fd, void *data, size_t size)
{
    if (hook.act != NULL && hook.name == NULL) {
        run_hook();
    }
    return (ssize_t)syscall(SYS_read, fd, data, size);
}

static void put(const char *path, const char *text)
{
    epg_test_write_text(root, path, text);
}

static char *at(const char *path)
{
    return epg_format("%s/%s", root, path);
}

static void set_up(void)
{
    char *parent = epg_test_directory();
    root = epg_format("%s/program", parent);
    free(parent);
    ck_assert_int_eq(mkdir(root, 0755), 0);
    err = (epg_error){.text = ""};
    program = (epg_program){0};
    hook.act = NULL;
}

static void tear_down(void)
{
    hook.act = NULL;
    epg_program_free(&program);
    *strrchr(root, '/') = '\0';
    epg_test_directory_free(root);
}

static epg_code capture(void)
{
    return epg_program_capture_path(root, &epg_program_default_limits, &program, &err);
}

static const epg_program_file *file_named(const char *path)
{
    for (size_t i = 0; i < program.count; i++) {
        if (strcmp(program.files[i].path, path) == 0) {
            return &program.files[i];
        }
    }
    return NULL;
}

/* Each act changes the tree in one way. */

static void remove_b(void)
{
    EPG_AUTO_FREE char *b = at("b.txt");
    ck_assert_int_eq(unlink(b), 0);
}

static void symlink_b(void)
{
    EPG_AUTO_FREE char *b = at("b.txt");
    ck_assert_int_eq(unlink(b), 0);
    ck_assert_int_eq(symlink("/etc/hostname", b), 0);
}

static void fifo_b(void)
{
    EPG_AUTO_FREE char *b = at("b.txt");
    ck_assert_int_eq(unlink(b), 0);
    ck_assert_int_eq(mkfifo(b, 0600), 0);
}

static void directory_b(void)
{
    EPG_AUTO_FREE char *b = at("b.txt");
    ck_assert_int_eq(unlink(b), 0);
    ck_assert_int_eq(mkdir(b, 0700), 0);
}

static void another_b(void)
{
    EPG_AUTO_FREE char *b = at("b.txt");
    EPG_AUTO_FREE char *fresh = at("b.new");
    put("b.new", "two");
    ck_assert_int_eq(rename(fresh, b), 0);
}

static void grow_b(void)
{
    EPG_AUTO_FREE char *b = at("b.txt");
    int fd = open(b, O_WRONLY | O_APPEND | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "more", 4), 4);
    ck_assert_int_eq(close(fd), 0);
}

static void shrink_b(void)
{
    EPG_AUTO_FREE char *b = at("b.txt");
    ck_assert_int_eq(truncate(b, 1), 0);
}

/* Same size, and the time of modification set back to what it was. */
static void rewrite_b_in_secret(void)
{
    EPG_AUTO_FREE char *b = at("b.txt");
    struct stat info;
    ck_assert_int_eq(stat(b, &info), 0);
    int fd = open(b, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "two", 3), 3);
    struct timespec times[2] = {info.st_atim, info.st_mtim};
    ck_assert_int_eq(futimens(fd, times), 0);
    ck_assert_int_eq(close(fd), 0);
}

static void add_file(void)
{
    put("new.txt", "new");
}

static void add_link(void)
{
    EPG_AUTO_FREE char *link_path = at("link");
    ck_assert_int_eq(symlink("policy.py", link_path), 0);
}

static void add_bad_name(void)
{
    put("a\\b", "x");
}

typedef struct change {
    const char *what;
    void (*act)(void);
} change;

static const change changes[] = {
    {"removed", remove_b},    {"symlink", symlink_b},   {"fifo", fifo_b},           {"directory", directory_b},
    {"another", another_b},   {"grown", grow_b},        {"shrunk", shrink_b},       {"rewritten", rewrite_b_in_secret},
    {"file added", add_file}, {"link added", add_link}, {"bad name", add_bad_name},
};

static void expect_changed(const char *what)
{
    size_t before = epg_test_open_descriptors();
    epg_code code = capture();
    ck_assert_msg(code == EPG_ERR_CHANGED, "%s: got %s: %s", what, epg_code_name(code), err.text);
    ck_assert_msg(hook.act == NULL, "%s: the hook did not run", what);
    ck_assert_ptr_null(program.files);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}

static void lay_out(void)
{
    put("b.txt", "one");
    put("policy.py", "p");
}

/* b.txt is listed, then changed before it is opened; what is added then is seen by the second listing. */
START_TEST(a_change_between_listing_and_opening_is_told)
{
    lay_out();
    hook.act = changes[_i].act;
    hook.name = "b.txt";
    hook.countdown = 1;
    expect_changed(changes[_i].what);
}
END_TEST

/* b.txt is open, and changed before its first byte is read. */
START_TEST(a_change_while_reading_is_told)
{
    lay_out();
    hook.act = changes[_i].act;
    hook.name = NULL;
    expect_changed(changes[_i].what);
}
END_TEST

/* All is read; the second listing starts. */
START_TEST(a_change_after_reading_is_told)
{
    lay_out();
    hook.act = changes[_i].act;
    hook.name = ".";
    hook.countdown = 2;
    expect_changed(changes[_i].what);
}
END_TEST

static void replace_directory(void)
{
    EPG_AUTO_FREE char *inside = at("sub/in.txt");
    EPG_AUTO_FREE char *sub = at("sub");
    ck_assert_int_eq(unlink(inside), 0);
    ck_assert_int_eq(rmdir(sub), 0);
    ck_assert_int_eq(symlink("/etc", sub), 0);
}

START_TEST(a_directory_swapped_for_a_symlink_is_not_followed)
{
    put("policy.py", "p");
    put("sub/in.txt", "x");
    hook.act = replace_directory;
    hook.name = "sub";
    hook.countdown = 1;
    expect_changed("directory");
}
END_TEST

START_TEST(a_fifo_does_not_block)
{
    EPG_AUTO_FREE char *fifo = at("policy.py");
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    epg_assert_code(capture(), EPG_ERR_INVALID, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "policy.py"));
}
END_TEST

/* Opening a file under another's lease waits for its holder, by default for 45 seconds. */
START_TEST(a_leased_file_does_not_block)
{
    lay_out();
    EPG_AUTO_FREE char *b = at("b.txt");
    int fd = open(b, O_RDWR | O_CLOEXEC);
    (void)signal(SIGIO, SIG_IGN);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
        int64_t start = epg_monotonic_ns();
        epg_assert_code(capture(), EPG_ERR_CHANGED, &err);
        ck_assert_int_lt(epg_monotonic_ns() - start, 20 * EPG_SECOND);
    }
    (void)close(fd);
}
END_TEST

START_TEST(a_huge_sparse_file_is_refused_unread)
{
    lay_out();
    EPG_AUTO_FREE char *b = at("b.txt");
    ck_assert_int_eq(truncate(b, (off_t)1 << 40), 0);
    epg_assert_code(capture(), EPG_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "b.txt"));
}
END_TEST

START_TEST(limits_hold_exactly)
{
    put("a", "12345");
    put("policy.py", "123");
    put("z", "1");
    epg_program_limits exact = {.files = 3, .total_bytes = 9, .file_bytes = 5};
    epg_assert_ok(epg_program_capture_path(root, &exact, &program, &err), &err);
    epg_program_free(&program);
    epg_program_limits tight[] = {exact, exact, exact};
    tight[0].files--;
    tight[1].total_bytes--;
    tight[2].file_bytes--;
    for (size_t i = 0; i < EPG_COUNT(tight); i++) {
        epg_assert_code(epg_program_capture_path(root, &tight[i], &program, &err), EPG_ERR_LIMIT, &err);
    }
}
END_TEST

/* Excluded files count for no limit, so a bound on entries must end the walk. */
START_TEST(a_hundred_thousand_excluded_files_end)
{
    put("policy.py", "p");
    EPG_AUTO_FREE char *first = at("0.pyc");
    put("0.pyc", "");
    for (int i = 1; i <= 100000; i++) {
        EPG_AUTO_FREE char *path = epg_format("%s/%d.pyc", root, i);
        if (i % 50000 == 0) { /* a file has at most 65,000 names */
            int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
            ck_assert_int_ge(fd, 0);
            ck_assert_int_eq(close(fd), 0);
            free(first);
            first = epg_strdup(path);
        } else {
            ck_assert_int_eq(link(first, path), 0);
        }
    }
    epg_assert_code(capture(), EPG_ERR_LIMIT, &err);
}
END_TEST

static void nest(unsigned depth)
{
    int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < depth; i++) {
        ck_assert_int_eq(mkdirat(dir, "d", 0755), 0);
        int below = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(below, 0);
        ck_assert_int_eq(close(dir), 0);
        dir = below;
    }
    int fd = openat(dir, "leaf", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(close(dir), 0);
}

START_TEST(nesting_is_bounded)
{
    put("policy.py", "p");
    nest(2000);
    epg_assert_code(capture(), EPG_ERR_LIMIT, &err);
}
END_TEST

START_TEST(the_deepest_tree_goes_through_all)
{
    put("policy.py", "p");
    nest(EPG_TREE_DEPTH - 1);
    epg_assert_ok(capture(), &err);
    EPG_AUTO_BUFFER packed = {0};
    epg_program back = {0};
    epg_program_pack(&program, &packed);
    epg_assert_ok(epg_program_unpack(epg_buffer_span(&packed), &epg_program_default_limits, &back, &err), &err);
    ck_assert_str_eq(back.digest, program.digest);
    epg_program_free(&back);
}
END_TEST

static const char *const bad_names[] = {"\xff.py",  "e\xcc\x81.txt", "a\\b",        "\xed\xa0\x80",
                                        "\xc0\xaf", "sub\xff/x",     "e\xcc\x81/x", "e\xcc\x81.pyc"};

START_TEST(bad_names_are_refused_and_shown_safely)
{
    put("policy.py", "p");
    put(bad_names[_i], "x");
    epg_assert_code(capture(), EPG_ERR_INVALID, &err);
    for (const char *c = err.text; *c != '\0'; c++) {
        ck_assert_msg((unsigned char)*c >= 0x20, "a control byte is in: %s", err.text);
    }
}
END_TEST

/* Hangul, an angstrom sign's composed form, and a letter outside of the first plane are in normal form. */
START_TEST(names_in_normal_form_are_taken)
{
    static const char *const names[] = {"\xea\xb0\x80.txt", "\xc3\x85", "\xf0\x9f\x98\x80", "caf\xc3\xa9/x"};
    put("policy.py", "p");
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        put(names[i], "x");
    }
    epg_assert_ok(capture(), &err);
    ck_assert_uint_eq(program.count, 1 + EPG_COUNT(names));
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        ck_assert_ptr_nonnull(file_named(names[i]));
    }
}
END_TEST

START_TEST(excluded_things_are_left_out_at_any_depth)
{
    EPG_AUTO_FREE char *fifo = at("sub/__pycache__/fifo");
    put("policy.py", "p");
    put("sub/.git/config", "x");
    put("sub/__pycache__/policy.pyc", "x");
    put("sub/\x5f_pycache__.txt", "kept");
    put("sub/.pyc", "x");
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    epg_assert_ok(capture(), &err);
    ck_assert_uint_eq(program.count, 2);
    ck_assert_ptr_nonnull(file_named("sub/__pycache__.txt"));
}
END_TEST

START_TEST(excluded_names_must_be_plain_files_and_directories)
{
    EPG_AUTO_FREE char *path = at(_i == 0 ? "__pycache__" : "x.pyc");
    put("policy.py", "p");
    ck_assert_int_eq(_i == 0 ? symlink("/tmp", path) : mkfifo(path, 0600), 0);
    epg_assert_code(capture(), EPG_ERR_INVALID, &err);
}
END_TEST

START_TEST(hard_links_are_files_of_their_own)
{
    EPG_AUTO_FREE char *policy = at("policy.py");
    EPG_AUTO_FREE char *twin = at("twin");
    put("policy.py", "abc");
    ck_assert_int_eq(link(policy, twin), 0);
    epg_assert_ok(capture(), &err);
    ck_assert_uint_eq(program.count, 2);
    ck_assert_uint_eq(program.total_bytes, 6);
}
END_TEST

START_TEST(a_root_that_is_no_directory_is_refused)
{
    EPG_AUTO_FREE char *link_path = epg_format("%s.link", root);
    EPG_AUTO_FREE char *link_slash = epg_format("%s//", link_path);
    EPG_AUTO_FREE char *file = at("policy.py");
    EPG_AUTO_FREE char *slash = epg_format("%s///", root);
    put("policy.py", "p");
    ck_assert_int_eq(symlink(root, link_path), 0);
    const char *const bad[] = {link_path, link_slash, file, "/nowhere/at/all", ""};
    for (size_t i = 0; i < EPG_COUNT(bad); i++) {
        epg_assert_code(epg_program_capture_path(bad[i], &epg_program_default_limits, &program, &err), EPG_ERR_INVALID,
                        &err);
    }
    epg_assert_ok(epg_program_capture_path(slash, &epg_program_default_limits, &program, &err), &err);
}
END_TEST

/* As somebody who may not read it; root may read all. */
static int capture_as_nobody(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(99);
        }
        _exit((int)capture());
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(what_can_not_be_read_is_its_owners_mistake)
{
    EPG_AUTO_FREE char *parent = epg_strdup(root);
    EPG_AUTO_FREE char *path = at(_i == 0 ? "secret" : "sub");
    *strrchr(parent, '/') = '\0';
    put("policy.py", "p");
    put(_i == 0 ? "secret" : "sub/file", "x");
    ck_assert_int_eq(chmod(parent, 0755), 0);
    ck_assert_int_eq(capture_as_nobody(), EPG_OK);
    ck_assert_int_eq(chmod(path, 0), 0);
    ck_assert_int_eq(capture_as_nobody(), EPG_ERR_INVALID);
    ck_assert_int_eq(chmod(path, 0755), 0);
}
END_TEST

static volatile sig_atomic_t editing = 1;

static void stop_editing(int number)
{
    (void)number;
    editing = 0;
}

/* Rewrites b.txt in every way, as fast as it can. */
static _Noreturn void edit_for_ever(void)
{
    (void)signal(SIGTERM, stop_editing);
    for (unsigned i = 0; editing != 0; i++) {
        EPG_AUTO_FREE char *b = at("b.txt");
        (void)unlink(b);
        if (i % 3 == 0) {
            (void)!symlink("/etc/hostname", b);
        } else if (i % 3 == 1) {
            (void)mkfifo(b, 0600);
        } else {
            put("b.new", "one");
            EPG_AUTO_FREE char *fresh = at("b.new");
            (void)rename(fresh, b);
        }
    }
    _exit(0);
}

/* Whatever the moment, a snapshot holds what its author wrote or there is none. */
START_TEST(a_restless_editor_gets_no_torn_snapshot)
{
    lay_out();
    size_t before = epg_test_open_descriptors();
    pid_t editor = fork();
    if (editor == 0) {
        edit_for_ever();
    }
    for (int i = 0; i < 500; i++) {
        epg_code code = capture();
        ck_assert_msg(code == EPG_OK || code == EPG_ERR_CHANGED || code == EPG_ERR_INVALID, "%s: %s",
                      epg_code_name(code), err.text);
        const epg_program_file *b = file_named("b.txt");
        ck_assert(b == NULL || (b->content.size == 3 && memcmp(b->content.data, "one", 3) == 0));
        epg_program_free(&program);
    }
    ck_assert_int_eq(kill(editor, SIGTERM), 0);
    ck_assert_int_eq(waitpid(editor, NULL, 0), editor);
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

static TCase *new_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    suite_add_tcase(suite, tests);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("capture");
    TCase *changing = new_case(suite, "changing");
    int all = (int)EPG_COUNT(changes);
    tcase_add_loop_test(changing, a_change_between_listing_and_opening_is_told, 0, all);
    tcase_add_loop_test(changing, a_change_while_reading_is_told, 0, all);
    tcase_add_loop_test(changing, a_change_after_reading_is_told, 0, all);
    tcase_add_test(changing, a_directory_swapped_for_a_symlink_is_not_followed);
    tcase_add_test(changing, a_restless_editor_gets_no_torn_snapshot);
    TCase *hostile = new_case(suite, "hostile");
    tcase_add_test(hostile, a_fifo_does_not_block);
    tcase_add_test(hostile, a_leased_file_does_not_block);
    tcase_add_test(hostile, a_huge_sparse_file_is_refused_unread);
    tcase_add_test(hostile, a_hundred_thousand_excluded_files_end);
    tcase_add_test(hostile, nesting_is_bounded);
    tcase_add_test(hostile, the_deepest_tree_goes_through_all);
    tcase_add_loop_test(hostile, what_can_not_be_read_is_its_owners_mistake, 0, 2);
    TCase *rules = new_case(suite, "rules");
    tcase_add_test(rules, limits_hold_exactly);
    tcase_add_loop_test(rules, bad_names_are_refused_and_shown_safely, 0, (int)EPG_COUNT(bad_names));
    tcase_add_test(rules, names_in_normal_form_are_taken);
    tcase_add_test(rules, excluded_things_are_left_out_at_any_depth);
    tcase_add_loop_test(rules, excluded_names_must_be_plain_files_and_directories, 0, 2);
    tcase_add_test(rules, hard_links_are_files_of_their_own);
    tcase_add_test(rules, a_root_that_is_no_directory_is_refused);
    return epg_test_main(suite);
}
