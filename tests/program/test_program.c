/* What is done with a captured Program: packed, unpacked, sealed, copied, materialised. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "programs/program.h"
#include "support/support.h"

static char *directory;
static epg_error err;

static void set_up(void)
{
    directory = epg_test_directory();
    err = (epg_error){.text = ""};
}

static void tear_down(void)
{
    epg_test_directory_free(directory);
}

static const char *const paths[] = {"a-b", "a/b", "a/sub/c", "a0", "policy.py"};
static const char *const texts[] = {"1", "", "three", "4", "def make_policy(c): pass\n"};

static epg_program example(void)
{
    epg_program program = {0};
    EPG_AUTO_FREE char *source = epg_format("%s/source", directory);
    (void)mkdir(source, 0755);
    for (size_t i = 0; i < EPG_COUNT(paths); i++) {
        epg_test_write_text(source, paths[i], texts[i]);
    }
    epg_assert_ok(epg_program_capture_path(source, &epg_program_default_limits, &program, &err), &err);
    return program;
}

static void assert_same(const epg_program *a, const epg_program *b)
{
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_uint_eq(a->total_bytes, b->total_bytes);
    ck_assert_str_eq(a->digest, b->digest);
    for (size_t i = 0; i < a->count; i++) {
        ck_assert_str_eq(a->files[i].path, b->files[i].path);
        ck_assert(epg_span_equal(epg_buffer_span(&a->files[i].content), epg_buffer_span(&b->files[i].content)));
    }
}

START_TEST(a_packed_program_comes_back)
{
    epg_program program = example();
    epg_program back = {0};
    EPG_AUTO_BUFFER bytes = {0};
    epg_program_pack(&program, &bytes);
    epg_assert_ok(epg_program_unpack(epg_buffer_span(&bytes), &epg_program_default_limits, &back, &err), &err);
    assert_same(&program, &back);
    epg_program_free(&back);
    epg_program_free(&program);
}
END_TEST

START_TEST(a_packed_program_cut_anywhere_is_refused)
{
    epg_program program = example();
    epg_program back = {0};
    EPG_AUTO_BUFFER bytes = {0};
    epg_program_pack(&program, &bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        EPG_AUTO_FREE uint8_t *exact = epg_alloc(size); /* so that reading past its end is seen */
        memcpy(exact, bytes.data, size);
        epg_assert_code(epg_program_unpack(epg_span_of(exact, size), &epg_program_default_limits, &back, &err),
                        EPG_ERR_INVALID, &err);
    }
    (void)epg_buffer_byte(&bytes, 0);
    epg_assert_code(epg_program_unpack(epg_buffer_span(&bytes), &epg_program_default_limits, &back, &err),
                    EPG_ERR_INVALID, &err);
    ck_assert_ptr_null(back.files);
    epg_program_free(&program);
}
END_TEST

static void pack_names(const char *const *names, size_t count, epg_buffer *out)
{
    (void)epg_buffer_be64(out, count);
    for (size_t i = 0; i < count; i++) {
        (void)epg_buffer_be64(out, strlen(names[i]));
        (void)epg_buffer_text(out, names[i]);
        (void)epg_buffer_be64(out, 0);
    }
}

static const char *const wrong[][3] = {
    {"policy.py", "b", NULL},           /* out of order */
    {"policy.py", "policy.py", NULL},   /* twice */
    {"a", "a/b", "policy.py"},          /* a file and a directory */
    {"a", "b", NULL},                   /* no policy.py */
    {"../x", "policy.py", NULL},        /* out of the tree */
    {"/x", "policy.py", NULL},          /* absolute */
    {"a//b", "policy.py", NULL},        /* an empty component */
    {"a/./b", "policy.py", NULL},       /* "." */
    {"a\\b", "policy.py", NULL},        /* backslash */
    {"e\xcc\x81", "policy.py", NULL},   /* not in normal form */
    {"policy.py", "x\xff", NULL},       /* not UTF-8 */
    {"policy.py", "policy.py/x", NULL}, /* below a file */
    {"a", "a-b", "a/b"},                /* below a file, with another between */
};

START_TEST(wrong_paths_are_refused)
{
    size_t count = wrong[_i][2] != NULL ? 3 : 2;
    epg_program back = {0};
    EPG_AUTO_BUFFER bytes = {0};
    pack_names(wrong[_i], count, &bytes);
    epg_assert_code(epg_program_unpack(epg_buffer_span(&bytes), &epg_program_default_limits, &back, &err),
                    EPG_ERR_INVALID, &err);
}
END_TEST

START_TEST(limits_hold_for_packed_programs)
{
    epg_program program = example();
    epg_program back = {0};
    EPG_AUTO_BUFFER bytes = {0};
    epg_program_pack(&program, &bytes);
    epg_program_limits exact = {.files = 5, .total_bytes = program.total_bytes, .file_bytes = strlen(texts[4])};
    epg_assert_ok(epg_program_unpack(epg_buffer_span(&bytes), &exact, &back, &err), &err);
    epg_program_free(&back);
    epg_program_limits tight[] = {exact, exact, exact};
    tight[0].files--;
    tight[1].total_bytes--;
    tight[2].file_bytes--;
    for (size_t i = 0; i < EPG_COUNT(tight); i++) {
        epg_assert_code(epg_program_unpack(epg_buffer_span(&bytes), &tight[i], &back, &err), EPG_ERR_LIMIT, &err);
    }
    epg_program_free(&program);
}
END_TEST

START_TEST(a_lying_count_allocates_nothing)
{
    epg_program back = {0};
    EPG_AUTO_BUFFER bytes = {0};
    (void)epg_buffer_be64(&bytes, UINT64_MAX);
    (void)epg_buffer_be64(&bytes, UINT64_MAX);
    epg_program_limits none = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    epg_assert_code(epg_program_unpack(epg_buffer_span(&bytes), &none, &back, &err), EPG_ERR_INVALID, &err);
}
END_TEST

START_TEST(a_copy_is_its_own)
{
    epg_program program = example();
    epg_program copy = {0};
    epg_program_copy(&program, &copy);
    assert_same(&program, &copy);
    epg_program_free(&program);
    ck_assert_str_eq(copy.files[4].path, "policy.py");
    ck_assert_str_eq(epg_buffer_cstr(&copy.files[2].content), "three");
    epg_program_free(&copy);
}
END_TEST

static void assert_mode(const char *root, const char *path, mode_t mode)
{
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", root, path);
    struct stat info;
    ck_assert_int_eq(lstat(whole, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777U, mode);
}

START_TEST(materialising_writes_what_was_captured_with_the_modes_asked_for)
{
    epg_program program = example();
    epg_program back = {0};
    EPG_AUTO_FREE char *target = epg_format("%s/target", directory);
    ck_assert_int_eq(mkdir(target, 0700), 0);
    mode_t before = umask(077);
    int fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    epg_assert_ok(epg_program_materialise(&program, fd, 0444, 0555, _i == 1, &err), &err);
    (void)umask(before);
    ck_assert_int_eq(close(fd), 0);
    assert_mode(target, ".", 0555);
    assert_mode(target, "a", 0555);
    assert_mode(target, "a/sub", 0555);
    assert_mode(target, "a/sub/c", 0444);
    assert_mode(target, "policy.py", 0444);
    epg_assert_ok(epg_program_capture_path(target, &epg_program_default_limits, &back, &err), &err);
    assert_same(&program, &back);
    epg_program_free(&back);
    epg_program_free(&program);
}
END_TEST

START_TEST(materialising_never_writes_through_what_is_there)
{
    epg_program program = example();
    EPG_AUTO_FREE char *target = epg_format("%s/target", directory);
    EPG_AUTO_FREE char *trap = epg_format("%s/%s", target, _i == 0 ? "a" : "policy.py");
    epg_test_write_text(directory, "outside/kept", "kept");
    EPG_AUTO_FREE char *outside = epg_format("%s/outside%s", directory, _i == 0 ? "" : "/kept");
    ck_assert_int_eq(mkdir(target, 0700), 0);
    ck_assert_int_eq(symlink(outside, trap), 0);
    int fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ne(epg_program_materialise(&program, fd, 0644, 0755, false, &err), EPG_OK);
    ck_assert_int_eq(close(fd), 0);
    EPG_AUTO_FREE char *kept = epg_test_read_text(directory, "outside/kept");
    ck_assert_str_eq(kept, "kept");
    EPG_AUTO_FREE char *leaked = epg_test_read_text(directory, "outside/b");
    ck_assert_ptr_null(leaked);
    epg_program_free(&program);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program");
    TCase *tests = tcase_create("program");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_packed_program_comes_back);
    tcase_add_test(tests, a_packed_program_cut_anywhere_is_refused);
    tcase_add_loop_test(tests, wrong_paths_are_refused, 0, (int)EPG_COUNT(wrong));
    tcase_add_test(tests, limits_hold_for_packed_programs);
    tcase_add_test(tests, a_lying_count_allocates_nothing);
    tcase_add_test(tests, a_copy_is_its_own);
    tcase_add_loop_test(tests, materialising_writes_what_was_captured_with_the_modes_asked_for, 0, 2);
    tcase_add_loop_test(tests, materialising_never_writes_through_what_is_there, 0, 2);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
