/* Packs: git accepts them and makes the same index; joined they hold the same objects; damage is found. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "programs/pack.h"
#include "store/git.h"
#include "support/support.h"

static char *directory;
static char *repository;
static int packs;
static epg_pack *pack;
static epg_error err;
static char name[EPG_PACK_NAME];

static void set_up(void)
{
    directory = epg_test_directory();
    repository = epg_format("%s/r.git", directory);
    err = (epg_error){.text = ""};
    ck_assert_int_ge(git_libgit2_init(), 1);
    epg_run_git(repository, "init -q --bare");
    EPG_AUTO_FREE char *path = epg_format("%s/objects/pack", repository);
    packs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(packs, 0);
    pack = epg_pack_new();
}

static void tear_down(void)
{
    epg_pack_free(pack);
    (void)close(packs);
    (void)git_libgit2_shutdown();
    free(repository);
    epg_test_directory_free(directory);
}

static void add(const void *data, size_t size)
{
    git_oid id;
    ck_assert_int_eq(git_odb_hash(&id, data, size, GIT_OBJECT_BLOB), 0);
    epg_pack_add(pack, GIT_OBJECT_BLOB, &id, epg_span_of(data, size));
}

static void add_text(const char *text)
{
    add(text, strlen(text));
}

static void write_pack(void)
{
    epg_assert_ok(epg_pack_write(pack, packs, name, &err), &err);
    epg_pack_clear(pack);
}

/* git checks the pack, and makes from it the index that we made. */
static void assert_git_agrees(void)
{
    EPG_AUTO_FREE char *compared = epg_test_shell(
        "cd '%s/objects/pack' && git index-pack --index-version=2 -o ../other.idx '%s.pack' >/dev/null &&"
        " cmp ../other.idx '%s.idx'; code=$?; rm -f ../other.*; exit $code",
        repository, name, name);
    EPG_AUTO_FREE char *verified = epg_test_shell("cd '%s' && git verify-pack objects/pack/%s.idx", repository, name);
    ck_assert_str_eq(compared, "");
    ck_assert_str_eq(verified, "");
}

/* Sizes around each length of the header, and more than one block of compression. */
START_TEST(git_makes_the_same_index)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 2047, 2048, 2049, 262143, 262144, 262145, 1000000};
    EPG_AUTO_FREE uint8_t *data = epg_alloc(1000000);
    uint32_t state = 1;
    for (size_t i = 0; i < 1000000; i++) {
        state = state * 1664525U + 1013904223U;
        data[i] = (uint8_t)(state >> (i % 3 == 0 ? 24 : 30));
    }
    for (size_t i = 0; i < EPG_COUNT(sizes); i++) {
        add(data, sizes[i]);
    }
    ck_assert_uint_eq(epg_pack_count(pack), EPG_COUNT(sizes));
    write_pack();
    assert_git_agrees();
}
END_TEST

START_TEST(hundreds_of_objects_are_found)
{
    for (int i = 0; i < 700; i++) {
        EPG_AUTO_FREE char *text = epg_format("object %d\n", i);
        add_text(text);
    }
    write_pack();
    assert_git_agrees();
    EPG_AUTO_FREE char *shown =
        epg_test_git(repository, "cat-file -p $(printf 'object 123\\n' | git hash-object --stdin)");
    ck_assert_str_eq(shown, "object 123\n");
}
END_TEST

START_TEST(an_object_is_packed_once)
{
    add_text("a");
    add_text("b");
    add_text("a");
    ck_assert_uint_eq(epg_pack_count(pack), 2);
    write_pack();
    ck_assert_uint_eq(epg_pack_count(pack), 0);
    assert_git_agrees();
}
END_TEST

START_TEST(what_a_dead_writer_left_is_replaced)
{
    static const char *const left[] = {"tmp_pack_epg", "tmp_idx_epg"};
    for (size_t i = 0; i < EPG_COUNT(left); i++) {
        EPG_AUTO_FREE char *path = epg_format("r.git/objects/pack/%s", left[i]);
        EPG_AUTO_FREE char *whole = epg_format("%s/%s", directory, path);
        epg_test_write_text(directory, path, "half");
        ck_assert_int_eq(chmod(whole, 0444), 0);
    }
    add_text("a");
    write_pack();
    assert_git_agrees();
    EPG_AUTO_FREE char *listing = epg_test_shell("ls '%s/objects/pack'", repository);
    ck_assert_ptr_null(strstr(listing, "tmp_"));
}
END_TEST

START_TEST(packs_are_joined_without_what_is_twice)
{
    char names[3][EPG_PACK_NAME];
    for (int i = 0; i < 3; i++) {
        EPG_AUTO_FREE char *own = epg_format("own %d\n", i);
        add_text("shared\n");
        add_text(own);
        epg_assert_ok(epg_pack_write(pack, packs, names[i], &err), &err);
        epg_pack_clear(pack);
    }
    for (int i = 0; i < 3; i++) {
        bool joinable = false;
        epg_assert_ok(epg_pack_append(pack, packs, names[i], &joinable, &err), &err);
        ck_assert(joinable);
    }
    ck_assert_uint_eq(epg_pack_count(pack), 4);
    write_pack();
    assert_git_agrees();
}
END_TEST

START_TEST(packs_with_deltas_are_left_alone)
{
    EPG_AUTO_FREE char *hash = epg_test_shell(
        "exec 2>&1; cd '%s'; for i in 1 2 3; do (seq 1 3000; echo $i) | git hash-object -w --stdin; done |"
        " git pack-objects -q objects/pack/pack",
        repository);
    EPG_AUTO_FREE char *theirs = epg_format("pack-%.40s", hash);
    bool joinable = true;
    epg_assert_ok(epg_pack_append(pack, packs, theirs, &joinable, &err), &err);
    ck_assert(!joinable);
    ck_assert_uint_eq(epg_pack_count(pack), 0);
}
END_TEST

/* Flips each byte of a file of the pack; what is accepted all the same must be what git accepts too. */
static void flip_each(const char *suffix, size_t first, size_t last_but)
{
    EPG_AUTO_FREE char *path = epg_format("%s/objects/pack/%s%s", repository, name, suffix);
    struct stat info;
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(stat(path, &info), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    for (off_t at = (off_t)first; at < info.st_size - (off_t)last_but; at++) {
        uint8_t byte = 0;
        bool joinable = false;
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        uint8_t flipped = byte ^ 1U;
        ck_assert_int_eq(pwrite(fd, &flipped, 1, at), 1);
        epg_assert_code(epg_pack_append(pack, packs, name, &joinable, &err), EPG_ERR_INVALID, &err);
        ck_assert_uint_eq(epg_pack_count(pack), 0);
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(damaged_packs_are_not_joined)
{
    add_text("one");
    add_text("two");
    write_pack();
    flip_each(".idx", 0, 0);
    flip_each(".pack", 12, 20); /* its head and its hash are made anew */
}
END_TEST

START_TEST(cut_packs_are_not_joined)
{
    add_text("one");
    add_text("two");
    write_pack();
    EPG_AUTO_FREE char *path = epg_format("%s/objects/pack/%s.%s", repository, name, _i == 0 ? "pack" : "idx");
    struct stat info;
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(stat(path, &info), 0);
    for (off_t size = info.st_size - 1; size >= 0; size -= _i == 0 ? 1 : 7) {
        bool joinable = false;
        ck_assert_int_eq(truncate(path, size), 0);
        epg_assert_code(epg_pack_append(pack, packs, name, &joinable, &err), EPG_ERR_INVALID, &err);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pack");
    TCase *tests = tcase_create("pack");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, git_makes_the_same_index);
    tcase_add_test(tests, hundreds_of_objects_are_found);
    tcase_add_test(tests, an_object_is_packed_once);
    tcase_add_test(tests, what_a_dead_writer_left_is_replaced);
    tcase_add_test(tests, packs_are_joined_without_what_is_twice);
    tcase_add_test(tests, packs_with_deltas_are_left_alone);
    tcase_add_test(tests, damaged_packs_are_not_joined);
    tcase_add_loop_test(tests, cut_packs_are_not_joined, 0, 2);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
