/* A store that grows: packs and references stay few, and nothing is lost by that. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "programs/store.h"
#include "store/git.h"
#include "support/support.h"

static char *directory;
static char *path;
static epg_store *store;
static epg_error err;
static epg_program program;

enum { WHEN = 1700000000 };

static void set_up(void)
{
    directory = epg_test_directory();
    path = epg_format("%s/programs.git", directory);
    err = (epg_error){.text = ""};
    epg_test_write_text(directory, "source/policy.py", "def make_policy(context): pass\n");
    epg_test_write_text(directory, "source/sub/changing.txt", "0");
    EPG_AUTO_FREE char *source = epg_format("%s/source", directory);
    epg_assert_ok(epg_store_create(path, &store, &err), &err);
    epg_assert_ok(epg_program_capture_path(source, &epg_program_default_limits, &program, &err), &err);
}

static void tear_down(void)
{
    epg_store_close(store);
    epg_program_free(&program);
    free(path);
    epg_test_directory_free(directory);
}

static void change_program(int i)
{
    EPG_AUTO_BUFFER packed = {0};
    epg_program next = {0};
    epg_buffer *content = &program.files[1].content;
    epg_buffer_clear(content);
    (void)epg_buffer_format(content, "%d", i);
    epg_program_pack(&program, &packed);
    epg_assert_ok(epg_program_unpack(epg_buffer_span(&packed), &epg_program_default_limits, &next, &err), &err);
    epg_program_free(&program);
    program = next;
}

static void commit_number(int i)
{
    char id[EPG_OBJECT_ID_TEXT];
    EPG_AUTO_FREE char *name = epg_format("submission-%06d", i);
    change_program(i);
    epg_assert_ok(epg_store_commit(store, &program, name, name, NULL, WHEN + i, id, &err), &err);
    epg_assert_ok(epg_store_note(store, name, name, WHEN + i, &err), &err);
}

static void assert_number(int i)
{
    epg_program back = {0};
    EPG_AUTO_FREE char *name = epg_format("submission-%06d", i);
    EPG_AUTO_FREE char *text = epg_format("%d", i);
    epg_assert_ok(epg_store_load(store, name, &back, &err), &err);
    ck_assert_str_eq(epg_buffer_cstr(&back.files[1].content), text);
    epg_program_free(&back);
}

static size_t files_in(const char *below, const char *suffix)
{
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", path, below);
    DIR *stream = opendir(whole);
    size_t count = 0;
    const struct dirent *entry = NULL;
    ck_assert_ptr_nonnull(stream);
    while ((entry = readdir(stream)) != NULL) {
        count += entry->d_name[0] != '.' && epg_ends_with(entry->d_name, suffix);
    }
    (void)closedir(stream);
    return count;
}

START_TEST(few_stay_few_and_all_is_there)
{
    enum { MANY = 150 };
    for (int i = 0; i < MANY; i++) {
        commit_number(i);
        epg_assert_ok(epg_store_maintain(store, &err), &err);
        ck_assert_uint_lt(files_in("objects/pack", ".pack"), 64);
        ck_assert_uint_eq(files_in("objects/pack", ".pack"), files_in("objects/pack", ".idx"));
        ck_assert_uint_lt(files_in("refs/tags", ""), 80);
    }
    for (int i = 0; i < MANY; i++) {
        assert_number(i);
    }
    epg_assert_sound(path);
    epg_assert_git(path, "rev-list --count main", "150\n");
    epg_assert_git(path, "notes show submission-000077", "submission-000077");
    epg_assert_git(path, "count-objects", "0 objects, 0 kilobytes\n");
}
END_TEST

/* A user's gc makes one pack with deltas; ours are joined beside it. */
START_TEST(a_users_gc_does_no_harm)
{
    for (int i = 0; i < 30; i++) {
        commit_number(i);
    }
    epg_run_git(path, "gc -q");
    for (int i = 30; i < 70; i++) {
        commit_number(i);
        epg_assert_ok(epg_store_maintain(store, &err), &err);
    }
    for (int i = 0; i < 70; i++) {
        assert_number(i);
    }
    epg_assert_sound(path);
    epg_assert_git(path, "rev-list --count main", "70\n");
}
END_TEST

/* Tags that git packed keep what belongs to them, and one that is taken back loses its line. */
START_TEST(references_that_git_packed_are_kept)
{
    for (int i = 0; i < 3; i++) {
        commit_number(i);
    }
    epg_run_git(path, "-c user.name=u -c user.email=u@x.invalid tag -a -m said marked submission-000001");
    epg_run_git(path, "pack-refs --all");
    EPG_AUTO_FREE char *marked = epg_test_shell("cd '%s'; git rev-parse marked 'marked^{}'", path);
    epg_assert_ok(epg_store_drop(store, "submission-000002", &err), &err);
    for (int i = 2; i < 80; i++) {
        commit_number(i);
        epg_assert_ok(epg_store_maintain(store, &err), &err);
    }
    ck_assert_uint_lt(files_in("refs/tags", ""), 64);
    for (int i = 0; i < 80; i++) {
        assert_number(i);
    }
    epg_assert_git(path, "rev-parse marked 'marked^{}'", marked);
    epg_assert_git(path, "rev-list --count main", "80\n");
    epg_assert_git(path, "tag --list | wc -l", "81\n");
    epg_assert_sound(path);
}
END_TEST

/* Every second of many names is packed: each is found, and none between, before or after them. */
static void assert_every_second_is_found(int count)
{
    for (int i = -1; i <= count; i++) {
        char digest[EPG_DIGEST_TEXT];
        char id[EPG_OBJECT_ID_TEXT];
        EPG_AUTO_FREE char *name = i < 0 ? epg_strdup("a") : epg_format("n%06d", i);
        epg_code code = epg_store_claim(store, name, digest, id, &err);
        ck_assert_msg(code == (i >= 0 && i < count && i % 2 == 0 ? EPG_OK : EPG_ERR_NOT_FOUND), "%s: %d", name,
                      (int)code);
    }
}

START_TEST(a_name_is_found_among_many_that_are_packed)
{
    static const struct {
        const char *header;
        const char *peeled; /* what follows a line, as if its tag were annotated */
        int count;
    } cases[] = {
        {"# pack-refs with: sorted ", "", 6000},
        {"# pack-refs with: sorted ", "", 1},
        {"# pack-refs with: sorted ", "", 100},
        {"# pack-refs with: peeled fully-peeled sorted ", "print \"^\" id", 3000},
        {"# of another git", "", 300},
    };
    commit_number(0);
    for (size_t i = 0; i < EPG_COUNT(cases); i++) {
        free(epg_test_shell("cd '%s' && id=$(git rev-parse main) && seq -f '%%06.0f' 0 2 %d | awk -v id=$id"
                            " 'BEGIN {print \"%s\"} {print id \" refs/tags/n\" $1; %s}' > packed-refs",
                            path, cases[i].count - 1, cases[i].header, cases[i].peeled));
        assert_every_second_is_found(cases[i].count);
    }
    for (int i = 1; i < 70; i++) { /* packed among those that are there */
        commit_number(i);
        epg_assert_ok(epg_store_maintain(store, &err), &err);
    }
    ck_assert_uint_lt(files_in("refs/tags", ""), 64);
    assert_every_second_is_found(300);
    assert_number(3);
    epg_assert_git(path, "tag --list | wc -l", "220\n");
    epg_assert_sound(path);
}
END_TEST

START_TEST(packed_references_out_of_order_are_told_and_kept)
{
    static const char text[] = "0000000000000000000000000000000000000001 refs/tags/b\n"
                               "0000000000000000000000000000000000000001 refs/tags/a\n";
    epg_test_write_text(path, "packed-refs", text);
    epg_code code = EPG_OK;
    int made = 0;
    for (; made < 80 && code == EPG_OK; made++) {
        commit_number(made);
        code = epg_store_maintain(store, &err);
    }
    epg_assert_code(code, EPG_ERR_INVALID, &err);
    EPG_AUTO_FREE char *still = epg_test_read_text(path, "packed-refs");
    ck_assert_str_eq(still, text);
    commit_number(made);
    assert_number(0);
}
END_TEST

/* A lookup in a file whose end is missing must not tell that a snapshot was never there. */
START_TEST(packed_references_that_are_cut_off_are_told)
{
    for (int i = 0; i < 3; i++) {
        commit_number(i);
    }
    epg_run_git(path, "pack-refs --all");
    free(epg_test_shell("truncate -s -5 '%s/packed-refs'", path));
    char digest[EPG_DIGEST_TEXT];
    char id[EPG_OBJECT_ID_TEXT];
    epg_assert_code(epg_store_claim(store, "submission-000002", digest, id, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_store_drop(store, "submission-000002", &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_store_commit(store, &program, "submission-000002", "again", NULL, WHEN, id, &err),
                    EPG_ERR_INVALID, &err);
}
END_TEST

/* Another git packs references, its lock in hand, while ours waits to: what it moved from files of their own into the
 * new packed-refs is still there afterwards. */
START_TEST(a_lock_that_is_waited_for_is_anothers_new_file)
{
    for (int i = 0; i < 5; i++) {
        commit_number(i);
    }
    epg_run_git(path, "pack-refs --all");
    epg_run_git(path, "branch mine submission-000003");
    for (int i = 5; files_in("refs/tags", "") < 61; i++) {
        commit_number(i);
        epg_assert_ok(epg_store_maintain(store, &err), &err);
    }
    commit_number(66);
    free(epg_test_shell(
        "cd '%s' && : > packed-refs.lock && { sed -n 1p packed-refs;"
        " { echo \"$(cat refs/heads/mine) refs/heads/mine\"; sed 1d packed-refs; } | LC_ALL=C sort -k 2; }"
        " > packed-refs.new; (sleep 0.1; mv packed-refs.new packed-refs;"
        " rm refs/heads/mine packed-refs.lock) >/dev/null 2>&1 &",
        path));
    epg_assert_ok(epg_store_maintain(store, &err), &err);
    ck_assert_uint_eq(files_in("refs/tags", ""), 0);
    epg_assert_git(path, "rev-parse -q --verify refs/heads/mine >/dev/null && echo there", "there\n");
    epg_assert_git(path, "tag --list | wc -l", "67\n");
    epg_assert_sound(path);
}
END_TEST

START_TEST(packs_that_someone_keeps_are_kept)
{
    commit_number(0);
    EPG_AUTO_FREE char *kept = epg_test_shell("cd '%s/objects/pack'; ls *.pack | tee kept; "
                                              "for p in *.pack; do touch ${p%%.pack}.keep; done",
                                              path);
    for (int i = 1; i < 40; i++) {
        commit_number(i);
        epg_assert_ok(epg_store_maintain(store, &err), &err);
    }
    EPG_AUTO_FREE char *still = epg_test_shell("cd '%s/objects/pack' && ls $(cat kept) && rm kept", path);
    ck_assert_str_eq(still, kept);
    epg_assert_sound(path);
}
END_TEST

START_TEST(a_damaged_pack_is_told_and_nothing_is_removed)
{
    for (int i = 0; i < 47; i++) {
        commit_number(i);
    }
    free(epg_test_shell("cd '%s/objects/pack'; p=$(ls *.pack | head -1); chmod u+w $p;"
                        "printf X | dd of=$p bs=1 seek=13 conv=notrunc status=none",
                        path));
    size_t before = files_in("objects/pack", ".pack");
    commit_number(47);
    epg_assert_code(epg_store_maintain(store, &err), EPG_ERR_INVALID, &err);
    ck_assert_uint_eq(files_in("objects/pack", ".pack"), before + 2);
    commit_number(48);
}
END_TEST

/* What a user's git writes when it is told to, or by its maintenance. */
START_TEST(other_indexes_of_git_do_no_harm)
{
    static const char *const makers[] = {
        "git multi-pack-index write", "git commit-graph write --reachable",
        "for p in *.pack; do rm -f ${p%.pack}.idx; git index-pack --index-version=1 $p; done"};
    for (int i = 0; i < 47; i++) {
        commit_number(i);
    }
    free(epg_test_shell("cd '%s/objects/pack' && export GIT_DIR='%s' && { %s; } >/dev/null 2>&1", path, path,
                        makers[_i]));
    epg_store_close(EPG_TAKE(store));
    epg_assert_ok(epg_store_open(path, &store, &err), &err);
    for (int i = 47; i < 120; i++) {
        commit_number(i);
        epg_assert_ok(epg_store_maintain(store, &err), &err);
    }
    for (int i = 0; i < 120; i++) {
        assert_number(i);
    }
    epg_assert_sound(path);
    epg_assert_git(path, "rev-list --count main", "120\n");
}
END_TEST

START_TEST(descriptors_stay_few)
{
    size_t before = epg_test_open_descriptors();
    for (int i = 0; i < 100; i++) {
        commit_number(i);
        epg_assert_ok(epg_store_maintain(store, &err), &err);
        ck_assert_uint_lt(epg_test_open_descriptors(), before + 64);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("maintain");
    TCase *tests = tcase_create("maintain");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, few_stay_few_and_all_is_there);
    tcase_add_test(tests, a_users_gc_does_no_harm);
    tcase_add_test(tests, references_that_git_packed_are_kept);
    tcase_add_test(tests, a_name_is_found_among_many_that_are_packed);
    tcase_add_test(tests, packed_references_out_of_order_are_told_and_kept);
    tcase_add_test(tests, packed_references_that_are_cut_off_are_told);
    tcase_add_test(tests, a_lock_that_is_waited_for_is_anothers_new_file);
    tcase_add_test(tests, packs_that_someone_keeps_are_kept);
    tcase_add_test(tests, a_damaged_pack_is_told_and_nothing_is_removed);
    tcase_add_loop_test(tests, other_indexes_of_git_do_no_harm, 0, 3);
    tcase_add_test(tests, descriptors_stay_few);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
