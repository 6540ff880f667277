/* The store: what is kept comes back, plain git reads it, and a repeated commit finishes a cut one. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/fixture.h"

START_TEST(a_new_store_is_an_empty_repository)
{
    assert_git("fsck --strict", "notice: HEAD points to an unborn branch (main)\n"
                                "notice: No default references\n");
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777U, 0700);
    epg_store *other = NULL;
    epg_assert_code(epg_store_create(path, &other, &err), EPG_ERR_EXISTS, &err);
}
END_TEST

START_TEST(what_a_dead_creator_left_is_no_hindrance)
{
    EPG_AUTO_FREE char *second = epg_format("%s/second.git", directory);
    epg_test_write_text(directory, "second.git.making/refs/heads/x", "rubbish");
    epg_store *other = NULL;
    epg_assert_ok(epg_store_create(second, &other, &err), &err);
    epg_store_close(other);
}
END_TEST

START_TEST(opening_what_is_no_store_is_refused)
{
    epg_store *other = NULL;
    EPG_AUTO_FREE char *missing = epg_format("%s/missing", directory);
    epg_assert_code(epg_store_open(missing, &other, &err), EPG_ERR_NOT_FOUND, &err);
    epg_test_write_text(directory, "plain/file", "");
    EPG_AUTO_FREE char *plain = epg_format("%s/plain", directory);
    ck_assert_int_ne(epg_store_open(plain, &other, &err), EPG_OK);
    ck_assert_ptr_null(other);
}
END_TEST

START_TEST(a_snapshot_comes_back)
{
    const char *const pairs[] = {"a-b", "1", "a/b", "2", "a/sub/deep/c", "", "a0", "4", "\xc3\xa9", "5", NULL};
    epg_program program = program_of(pairs);
    epg_assert_ok(commit(&program, "submission-000001"), &err);
    assert_loads("submission-000001", &program);
    reopen();
    assert_loads("submission-000001", &program);
    EPG_AUTO_FREE char *fsck = git("fsck --strict --full");
    ck_assert_str_eq(fsck, "");
    epg_program_free(&program);
}
END_TEST

/* Names that git's own tools would not check out are kept all the same: a Program may have them. */
START_TEST(names_that_git_dislikes_are_kept)
{
    const char *const pairs[] = {".git",     "gitdir: x\n", "git~1", "2",        "sub/.gitmodules",
                                 "[x",       "new\nline",   "5",     "pkg/.git", "file",
                                 "quote'\"", "6",           "..x",   "7",        NULL};
    epg_program program = program_of(pairs);
    epg_assert_ok(commit(&program, "initial"), &err);
    assert_loads("initial", &program);
    EPG_AUTO_BUFFER diff = {0};
    commit_text("submission-000001", "x");
    epg_assert_ok(epg_store_diff(store, "initial", "submission-000001", &diff, &err), &err);
    ck_assert_ptr_nonnull(strstr(epg_buffer_cstr(&diff), "-gitdir: x"));
    epg_program_free(&program);
}
END_TEST

START_TEST(the_history_reads_as_plain_git)
{
    epg_program first = program_with("x.txt", "one\n");
    epg_program second = program_with("x.txt", "two\n");
    epg_assert_ok(epg_store_commit(store, &first, "initial", "Initial Program", NULL, WHEN, id, &err), &err);
    epg_assert_ok(
        epg_store_commit(store, &second, "submission-000001", "Submission 1", "Episodes: 4\n", WHEN + 5, id, &err),
        &err);
    assert_git("log --format=%s main", "Submission 1\nInitial Program\n");
    assert_git("log -1 --format=%at,%an main", "1700000005,EvoPolicyGym Host\n");
    assert_git("tag", "initial\nsubmission-000001\n");
    assert_git("symbolic-ref HEAD", "refs/heads/main\n");
    EPG_AUTO_FREE char *trailers =
        epg_format("Submission: submission-000001\nProgram-Digest: %s\nEpisodes: 4\n\n", second.digest);
    assert_git("log -1 --format='%(trailers)' main", trailers);
    EPG_AUTO_FREE char *patch = git("log -p -1");
    ck_assert_ptr_nonnull(strstr(patch, "\n-one\n+two\n"));
    assert_git("show submission-000001:x.txt", "two\n");
    assert_git("ls-tree -r --name-only initial", "policy.py\nx.txt\n");
    assert_git("fsck --strict --full", "");
    epg_program_free(&first);
    epg_program_free(&second);
}
END_TEST

/* Computed with git itself: git hash-object, mktree and commit-tree on the same content, author and time. */
START_TEST(the_same_history_gives_the_same_ids)
{
    epg_program program = program_with("sub/x.txt", "one\n");
    epg_assert_ok(commit(&program, "initial"), &err);
    EPG_AUTO_FREE char *script =
        epg_format("version >/dev/null; export GIT_DIR='%s';"
                   "p=$(git hash-object -w '%s/source/policy.py'); x=$(git hash-object -w '%s/source/sub/x.txt');"
                   "s=$(printf '100644 blob %%s\\tx.txt\\n' $x | git mktree);"
                   "t=$(printf '100644 blob %%s\\tpolicy.py\\n040000 tree %%s\\tsub\\n' $p $s | git mktree);"
                   "export GIT_AUTHOR_NAME='EvoPolicyGym Host' GIT_AUTHOR_EMAIL=host@evopolicygym.invalid"
                   " GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_NAME='EvoPolicyGym Host'"
                   " GIT_COMMITTER_EMAIL=host@evopolicygym.invalid GIT_COMMITTER_DATE='1700000000 +0000';"
                   "printf 'a subject\\n\\nSubmission: initial\\nProgram-Digest: %s\\n' | git commit-tree $t",
                   path, directory, directory, program.digest);
    EPG_AUTO_FREE char *theirs = git(script);
    EPG_AUTO_FREE char *ours = epg_format("%s\n", id);
    ck_assert_str_eq(theirs, ours);
    epg_program_free(&program);
}
END_TEST

START_TEST(a_commit_repeated_is_the_same_commit)
{
    epg_program program = program_with("x.txt", "one");
    epg_program other = program_with("x.txt", "two");
    char again[EPG_OBJECT_ID_TEXT];
    epg_assert_ok(commit(&program, "submission-000001"), &err);
    epg_assert_ok(
        epg_store_commit(store, &program, "submission-000001", "another subject", NULL, WHEN + 9, again, &err), &err);
    ck_assert_str_eq(again, id);
    assert_git("rev-list --count main", "1\n");
    epg_assert_code(commit(&other, "submission-000001"), EPG_ERR_EXISTS, &err);
    epg_program_free(&program);
    epg_program_free(&other);
}
END_TEST

/* Died between tag and main: the repeated commit moves main. */
START_TEST(a_commit_cut_off_after_its_tag_is_finished)
{
    commit_text("initial", "one");
    commit_text("submission-000001", "two");
    epg_run_git(path, _i == 0 ? "update-ref refs/heads/main refs/tags/initial" : "update-ref -d refs/heads/main");
    reopen();
    if (_i == 0) {
        commit_text("submission-000001", "two");
        assert_git("rev-list --count main", "2\n");
        commit_text("submission-000002", "three");
        assert_git("rev-list --count main", "3\n");
    } else {
        epg_program program = program_with("x.txt", "two");
        epg_assert_code(commit(&program, "submission-000001"), EPG_ERR_INVALID, &err);
        epg_program_free(&program);
        commit_text("initial", "one"); /* it has no parent, so main may start there */
    }
}
END_TEST

/* A writer that was killed inside libgit2 leaves its lock behind. */
START_TEST(a_dead_writers_lock_is_removed)
{
    commit_text("initial", "one");
    epg_test_write_text(path, "refs/heads/main.lock", "");
    epg_test_write_text(path, "refs/tags/submission-000001.lock", "");
    commit_text("submission-000001", "two");
    assert_git("rev-list --count main", "2\n");
    EPG_AUTO_FREE char *lock = epg_test_read_text(path, "refs/heads/main.lock");
    ck_assert_ptr_null(lock);
}
END_TEST

START_TEST(the_newest_snapshot_can_be_taken_back)
{
    commit_text("initial", "one");
    commit_text("submission-000001", "two");
    epg_assert_code(epg_store_drop(store, "initial", &err), EPG_ERR_INVALID, &err);
    if (_i == 1) {
        epg_store_close(store);
        store = NULL;
        epg_run_git(path, "pack-refs --all --prune");
        epg_assert_ok(epg_store_open(path, &store, &err), &err);
    }
    epg_assert_ok(epg_store_drop(store, "submission-000001", &err), &err);
    epg_assert_ok(epg_store_drop(store, "submission-000001", &err), &err);
    assert_git("tag", "initial\n");
    assert_git("rev-list --count main", "1\n");
    commit_text("submission-000001", "three");
    assert_git("rev-list --count main", "2\n");
    epg_assert_ok(epg_store_drop(store, "submission-000001", &err), &err);
    epg_assert_ok(epg_store_drop(store, "initial", &err), &err);
    assert_git("tag", "");
    commit_text("initial", "four");
    assert_git("rev-list --count main", "1\n");
}
END_TEST

static const char *const bad_names[] = {"",   ".",      "..",   "a/b", "a b",      "-x",
                                        ".x", "x.lock", "x..y", "x\n", "\xc3\xa9", "x."};

START_TEST(bad_names_of_snapshots_are_refused)
{
    epg_program program = program_with("x.txt", "one");
    epg_program back = {0};
    epg_assert_code(commit(&program, bad_names[_i]), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_store_load(store, bad_names[_i], &back, &err), EPG_ERR_INVALID, &err);
    epg_program_free(&program);
}
END_TEST

START_TEST(bad_messages_are_refused)
{
    epg_program program = program_with("x.txt", "one");
    static const struct {
        const char *subject;
        const char *trailers;
    } bad[] = {{"", NULL},      {"two\nlines", NULL},    {"bad \xff", NULL},
               {"s", "no end"}, {"s", "A: 1\n\nB: 2\n"}, {"s", "A: \xff\n"}};
    for (size_t i = 0; i < EPG_COUNT(bad); i++) {
        epg_assert_code(epg_store_commit(store, &program, "x", bad[i].subject, bad[i].trailers, WHEN, id, &err),
                        EPG_ERR_INVALID, &err);
    }
    epg_program_free(&program);
}
END_TEST

START_TEST(notes_are_added_and_replaced)
{
    epg_store_entry entry = {0};
    commit_text("initial", "one");
    epg_assert_ok(epg_store_find(store, "initial", &entry, &err), &err);
    ck_assert_ptr_null(entry.note);
    ck_assert_str_eq(entry.id, id);
    ck_assert_str_eq(entry.subject, "a subject");
    ck_assert_int_eq(entry.time_unix_seconds, WHEN);
    epg_store_entry_free(&entry);
    epg_assert_ok(epg_store_note(store, "initial", "Score: 1.0\n", WHEN + 1, &err), &err);
    epg_assert_ok(epg_store_write_notes(store, &err), &err);
    epg_assert_ok(epg_store_note(store, "initial", "Score: 0.5\n", WHEN + 2, &err), &err);
    epg_assert_ok(epg_store_note(store, "initial", "Score: 2.0\n", WHEN + 2, &err), &err);
    epg_assert_ok(epg_store_write_notes(store, &err), &err);
    epg_assert_ok(epg_store_note(store, "initial", "Score: 2.0\n", WHEN + 3, &err), &err);
    reopen();
    epg_assert_ok(epg_store_find(store, "initial", &entry, &err), &err);
    ck_assert_str_eq(entry.note, "Score: 2.0\n");
    epg_store_entry_free(&entry);
    assert_git("notes show initial", "Score: 2.0\n");
    assert_git("rev-list --count refs/notes/commits", "2\n");
    assert_git("fsck --strict --full", "");
    epg_assert_code(epg_store_note(store, "nothing", "x", WHEN, &err), EPG_ERR_NOT_FOUND, &err);
}
END_TEST

/* git writes its notes without fan-out while they are few; both forms must live together. */
START_TEST(notes_of_git_are_kept_and_replaced)
{
    commit_text("initial", "one");
    commit_text("submission-000001", "two");
    epg_run_git(path, "-c user.name=x -c user.email=x@x notes add -m theirs initial");
    epg_run_git(path, "-c user.name=x -c user.email=x@x notes add -m theirs submission-000001");
    reopen();
    epg_assert_ok(epg_store_note(store, "submission-000001", "ours\n", WHEN, &err), &err);
    epg_assert_ok(epg_store_write_notes(store, &err), &err);
    assert_git("notes show initial", "theirs\n");
    assert_git("notes show submission-000001", "ours\n");
    epg_run_git(path, "-c user.name=x -c user.email=x@x notes add -f -m again submission-000001");
    epg_store_entry entry = {0};
    epg_assert_ok(epg_store_find(store, "submission-000001", &entry, &err), &err);
    ck_assert_str_eq(entry.note, "again\n");
    epg_store_entry_free(&entry);
    assert_git("fsck --strict --full", "");
}
END_TEST

START_TEST(many_notes_stay_in_gits_order)
{
    for (int i = 0; i < 40; i++) {
        EPG_AUTO_FREE char *name = epg_format("submission-%06d", i);
        EPG_AUTO_FREE char *text = epg_format("%d\n", i);
        commit_text(name, text);
        epg_assert_ok(epg_store_note(store, name, text, WHEN, &err), &err);
        if (i % 7 == 0) {
            epg_assert_ok(epg_store_write_notes(store, &err), &err);
        }
    }
    reopen(); /* closing writes what waits */
    assert_git("fsck --strict --full", "");
    assert_git("notes show submission-000017", "17\n");
    EPG_AUTO_FREE char *count = git("notes list");
    size_t lines = 0;
    for (const char *c = count; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    ck_assert_uint_eq(lines, 40);
}
END_TEST

typedef struct seen {
    size_t count;
    size_t notes;
    char last[EPG_STORE_NAME];
    size_t stop_at;
} seen;

static epg_code see(void *context, const epg_store_entry *entry, epg_error *error)
{
    seen *self = context;
    ck_assert_int_lt(strcmp(self->last, entry->name), 0);
    memcpy(self->last, entry->name, sizeof self->last);
    self->notes += entry->note != NULL;
    ck_assert(epg_digest_text_valid(entry->digest));
    return ++self->count == self->stop_at ? epg_fail(error, EPG_ERR_INTERRUPTED, "enough") : EPG_OK;
}

START_TEST(all_are_listed_in_order_of_their_names)
{
    seen all = {0};
    epg_assert_ok(epg_store_each(store, see, &all, &err), &err);
    ck_assert_uint_eq(all.count, 0);
    commit_text("submission-000002", "2");
    commit_text("initial", "0");
    commit_text("submission-000001", "1");
    epg_assert_ok(epg_store_note(store, "submission-000001", "n\n", WHEN, &err), &err);
    epg_run_git(path, "tag their+tag initial");
    epg_assert_ok(epg_store_each(store, see, &all, &err), &err);
    ck_assert_uint_eq(all.count, 3);
    ck_assert_uint_eq(all.notes, 1);
    seen some = {.stop_at = 2};
    epg_assert_code(epg_store_each(store, see, &some, &err), EPG_ERR_INTERRUPTED, &err);
    ck_assert_uint_eq(some.count, 2);
}
END_TEST

START_TEST(a_diff_is_what_git_prints)
{
    const char *const before[] = {"x.txt", "a\nb\nc\n", "gone.txt", "g\n", "old/name.py", "1\n2\n3\n4\n5\n", NULL};
    const char *const after[] = {"x.txt", "a\nB\nc", "fresh.txt", "f\n", "new/name.py", "1\n2\n3\n4\n6\n", NULL};
    epg_program first = program_of(before);
    epg_program second = program_of(after);
    epg_assert_ok(commit(&first, "initial"), &err);
    epg_assert_ok(commit(&second, "submission-000001"), &err);
    EPG_AUTO_BUFFER ours = {0};
    EPG_AUTO_FREE char *theirs = git("diff initial submission-000001");
    epg_assert_ok(epg_store_diff(store, "initial", "submission-000001", &ours, &err), &err);
    ck_assert_str_eq(epg_buffer_cstr(&ours), theirs);
    EPG_AUTO_BUFFER small = {.limit = 100};
    epg_assert_code(epg_store_diff(store, "initial", "submission-000001", &small, &err), EPG_ERR_LIMIT, &err);
    epg_assert_code(epg_store_diff(store, "initial", "none", &ours, &err), EPG_ERR_NOT_FOUND, &err);
    EPG_AUTO_BUFFER same = {0};
    epg_assert_ok(epg_store_diff(store, "initial", "initial", &same, &err), &err);
    ck_assert_uint_eq(same.size, 0);
    epg_program_free(&first);
    epg_program_free(&second);
}
END_TEST

START_TEST(an_unknown_snapshot_is_not_found)
{
    epg_program back = {0};
    epg_store_entry entry = {0};
    epg_assert_code(epg_store_load(store, "initial", &back, &err), EPG_ERR_NOT_FOUND, &err);
    epg_assert_code(epg_store_find(store, "initial", &entry, &err), EPG_ERR_NOT_FOUND, &err);
}
END_TEST

START_TEST(no_descriptor_is_left_open)
{
    epg_store_close(store);
    store = NULL;
    size_t before = epg_test_open_descriptors();
    epg_assert_ok(epg_store_open(path, &store, &err), &err);
    commit_text("initial", "one");
    epg_assert_ok(epg_store_note(store, "initial", "n\n", WHEN, &err), &err);
    seen all = {0};
    epg_assert_ok(epg_store_each(store, see, &all, &err), &err);
    epg_store_close(store);
    store = NULL;
    ck_assert_uint_eq(epg_test_open_descriptors(), before);
}
END_TEST

/* Whatever the user's git is set to, the history is the same. */
START_TEST(the_users_configuration_counts_for_nothing)
{
    epg_program program = program_with("x.txt", "one\r\n");
    epg_assert_ok(commit(&program, "initial"), &err);
    char plain[EPG_OBJECT_ID_TEXT];
    memcpy(plain, id, sizeof plain);
    epg_store_close(store);
    epg_test_write_text(directory, ".gitconfig",
                        "[core]\nautocrlf = true\ncompression = 9\nlogAllRefUpdates = always\n"
                        "[user]\nname = Somebody\nemail = s@example.org\n[init]\ndefaultBranch = trunk\n");
    ck_assert_int_eq(setenv("HOME", directory, 1), 0);
    EPG_AUTO_FREE char *second = epg_format("%s/second.git", directory);
    epg_assert_ok(epg_store_create(second, &store, &err), &err);
    epg_assert_ok(commit(&program, "initial"), &err);
    ck_assert_str_eq(id, plain);
    EPG_AUTO_FREE char *head = epg_test_read_text(second, "HEAD");
    ck_assert_str_eq(head, "ref: refs/heads/main\n");
    epg_program_free(&program);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store");
    TCase *keeping = new_case(suite, "keeping");
    tcase_add_test(keeping, a_new_store_is_an_empty_repository);
    tcase_add_test(keeping, what_a_dead_creator_left_is_no_hindrance);
    tcase_add_test(keeping, opening_what_is_no_store_is_refused);
    tcase_add_test(keeping, a_snapshot_comes_back);
    tcase_add_test(keeping, names_that_git_dislikes_are_kept);
    tcase_add_test(keeping, the_history_reads_as_plain_git);
    tcase_add_test(keeping, the_same_history_gives_the_same_ids);
    tcase_add_test(keeping, the_users_configuration_counts_for_nothing);
    tcase_add_test(keeping, an_unknown_snapshot_is_not_found);
    tcase_add_loop_test(keeping, bad_names_of_snapshots_are_refused, 0, (int)EPG_COUNT(bad_names));
    tcase_add_test(keeping, bad_messages_are_refused);
    tcase_add_test(keeping, no_descriptor_is_left_open);
    TCase *repeating = new_case(suite, "repeating");
    tcase_add_test(repeating, a_commit_repeated_is_the_same_commit);
    tcase_add_loop_test(repeating, a_commit_cut_off_after_its_tag_is_finished, 0, 2);
    tcase_add_test(repeating, a_dead_writers_lock_is_removed);
    tcase_add_loop_test(repeating, the_newest_snapshot_can_be_taken_back, 0, 2);
    TCase *reading = new_case(suite, "reading");
    tcase_add_test(reading, notes_are_added_and_replaced);
    tcase_add_test(reading, notes_of_git_are_kept_and_replaced);
    tcase_add_test(reading, many_notes_stay_in_gits_order);
    tcase_add_test(reading, all_are_listed_in_order_of_their_names);
    tcase_add_test(reading, a_diff_is_what_git_prints);
    return epg_test_main(suite);
}
