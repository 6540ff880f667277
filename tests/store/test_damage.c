/* Stores that someone or something damaged: what is loaded is right, or it is refused. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/fixture.h"

static void assert_altered(const char *name)
{
    epg_program back = {0};
    reopen();
    epg_assert_code(epg_store_load(store, name, &back, &err), EPG_ERR_INVALID, &err);
    ck_assert_ptr_null(back.files);
}

/* Someone rewrote the commit to hold another tree, and left its message alone. */
START_TEST(another_tree_under_the_same_digest_is_found)
{
    commit_text("initial", "one");
    commit_text("submission-000001", "two");
    EPG_AUTO_FREE char *script = epg_format(
        "log -1 --format=%%B initial > '%s/message'; export GIT_DIR='%s' GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x"
        " GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x;"
        "git update-ref refs/tags/initial $(git commit-tree submission-000001^{tree} < '%s/message')",
        directory, path, directory);
    epg_run_git(path, script);
    assert_altered("initial");
}
END_TEST

static const char *const forged_trees[] = {
    "120000 blob %s\\tlink",                                           /* a symbolic link */
    "160000 commit 1111111111111111111111111111111111111111\\tmodule", /* a submodule */
    "100755 blob %s\\tpolicy.py",                                      /* a mode that Programs have not */
    "100644 blob %s\\tother.py",                                       /* no policy.py */
};

START_TEST(trees_that_no_program_has_are_found)
{
    commit_text("initial", "one");
    EPG_AUTO_FREE char *script = epg_format(
        "log -1 --format=%%B initial > '%s/message'; export GIT_DIR='%s' GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x"
        " GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x;"
        "t=$(printf \"%s\\n\" $(git rev-parse initial:policy.py) | git mktree --missing);"
        "git update-ref refs/tags/initial $(git commit-tree $t < '%s/message')",
        directory, path, forged_trees[_i], directory);
    epg_run_git(path, script);
    assert_altered("initial");
}
END_TEST

START_TEST(a_tag_on_something_else_is_found)
{
    commit_text("initial", "one");
    epg_run_git(path, _i == 0 ? "tag -f initial initial^{tree}" : "tag -f initial initial:x.txt");
    assert_altered("initial");
}
END_TEST

/* One byte anywhere in the pack: all that is read is right, or it is refused. */
START_TEST(a_flipped_byte_is_found)
{
    epg_program program = program_with("x.txt", "one");
    epg_assert_ok(commit(&program, "initial"), &err);
    EPG_AUTO_FREE char *list = epg_format("ls '%s'/objects/pack/*.pack", path);
    FILE *pipe = popen(list, "re");
    char pack[512] = "";
    ck_assert_ptr_nonnull(fgets(pack, sizeof pack, pipe));
    (void)pclose(pipe);
    pack[strcspn(pack, "\n")] = '\0';
    ck_assert_int_eq(chmod(pack, 0600), 0);
    struct stat info;
    ck_assert_int_eq(stat(pack, &info), 0);
    size_t refused = 0;
    for (off_t at = 0; at < info.st_size; at++) {
        int fd = open(pack, O_RDWR | O_CLOEXEC);
        uint8_t byte = 0;
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        uint8_t flipped = byte ^ 0x10U;
        ck_assert_int_eq(pwrite(fd, &flipped, 1, at), 1);
        epg_program back = {0};
        epg_store *damaged = NULL;
        epg_code code = epg_store_open(path, &damaged, &err);
        if (code == EPG_OK) {
            code = epg_store_load(damaged, "initial", &back, &err);
        }
        ck_assert_msg(code == EPG_ERR_INVALID || (code == EPG_OK && strcmp(back.digest, program.digest) == 0),
                      "byte %lld: %s: %s", (long long)at, epg_code_name(code), err.text);
        refused += code == EPG_ERR_INVALID;
        epg_program_free(&back);
        epg_store_close(damaged);
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        ck_assert_int_eq(close(fd), 0);
    }
    ck_assert_uint_gt(refused, 100);
    assert_loads("initial", &program);
    epg_program_free(&program);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("damage");
    TCase *damage = new_case(suite, "damage");
    tcase_add_test(damage, another_tree_under_the_same_digest_is_found);
    tcase_add_loop_test(damage, trees_that_no_program_has_are_found, 0, (int)EPG_COUNT(forged_trees));
    tcase_add_loop_test(damage, a_tag_on_something_else_is_found, 0, 2);
    tcase_add_test(damage, a_flipped_byte_is_found);
    return epg_test_main(suite);
}
