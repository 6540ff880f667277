/* A writer that dies at any point leaves a sound repository in which the same step, repeated, succeeds; a call that
 * fails at any point is told, and can be repeated too. Nothing is written past the seam: libgit2 only reads.
 *
 * Each try runs in a process of its own on a copy of one prepared store; the faults come from EPG_IO_FAULT. To see what
 * libgit2 does, this program puts its own rename and mkdir before the C library's. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "programs/store.h"
#include "store/git.h"
#include "support/support.h"

enum { WHEN = 1700000000, FEW = 3, MANY = 48 /* so many packs that maintain joins them */ };

static char *directory;
static char *path; /* the store of the current try */
static epg_error err;

/* The names that a library calls to write; the seam calls others. */
int rename(const char *from, const char *to)
{
    (void)fprintf(stderr, "renamed past the seam: %s to %s\n", from, to);
    abort();
}

int mkdir(const char *name, mode_t mode)
{
    (void)fprintf(stderr, "made past the seam: %s (%o)\n", name, (unsigned)mode);
    abort();
}

static epg_program program_number(int i)
{
    epg_program program = {0};
    program.count = 1;
    program.files = epg_alloc(sizeof *program.files);
    program.files[0].path = epg_strdup("policy.py");
    (void)epg_buffer_format(&program.files[0].content, "number = %d\n", i);
    program.total_bytes = program.files[0].content.size;
    ck_assert_int_eq(epg_program_seal(&program, &epg_program_default_limits, NULL), EPG_OK);
    return program;
}

static epg_code commit_number(epg_store *store, int i)
{
    char id[EPG_OBJECT_ID_TEXT];
    EPG_CLEANUP(epg_program_free) epg_program program = program_number(i);
    EPG_AUTO_FREE char *name = epg_format("submission-%06d", i);
    return epg_store_commit(store, &program, name, name, NULL, WHEN + i, id, &err);
}

/* The steps. Each may be taken again when it was cut off. */

static epg_code step_commit(epg_store *store)
{
    return commit_number(store, FEW + 1);
}

static epg_code step_note(epg_store *store)
{
    epg_code code = epg_store_note(store, "submission-000001", "Score: 1\n", WHEN, &err);
    return code == EPG_OK ? epg_store_write_notes(store, &err) : code;
}

static epg_code step_drop(epg_store *store)
{
    EPG_AUTO_FREE char *name = epg_format("submission-%06d", FEW);
    return epg_store_drop(store, name, &err);
}

static epg_code step_maintain(epg_store *store)
{
    return epg_store_maintain(store, &err);
}

static const struct step {
    const char *name;
    epg_code (*take)(epg_store *store);
    int before;        /* how many snapshots there are */
    const char *count; /* of commits on main, once it is done */
    const char *note;
} steps[] = {
    {"commit", step_commit, FEW, "4\n", ""},
    {"note", step_note, FEW, "3\n", "Score: 1\n"},
    {"drop", step_drop, FEW, "2\n", ""},
    {"maintain", step_maintain, MANY, "48\n", ""},
};

typedef enum way { WAY_KILL, WAY_TORN, WAY_FAIL, WAYS } way;

/* Runs `act` in a process of its own and returns its wait status. */
static int in_child(int (*act)(const void *context), const void *context)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        _exit(act(context));
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static int prepare(const void *context)
{
    const int *count = context;
    epg_store *store = NULL;
    epg_code code = epg_store_create(path, &store, &err);
    for (int i = 1; i <= *count && code == EPG_OK; i++) {
        code = commit_number(store, i);
    }
    epg_store_close(store);
    return (int)code;
}

typedef struct attempt {
    const struct step *step;
    way way;
    unsigned point;
} attempt;

/* Exit code: 0 when the step was taken without having met its fault, 1 when it failed and then went well. */
static int take(const void *context)
{
    const attempt *self = context;
    static const char *const faults[] = {"kill@%u", "torn@%u:write", "errno=ENOSPC@%u"};
    epg_store *store = NULL;
    EPG_AUTO_BUFFER fault = {0};
    for (const char *c = faults[self->way]; *c != '\0'; c++) {
        if (*c == '%') {
            (void)epg_buffer_format(&fault, "%u", self->point);
            c++;
        } else {
            (void)epg_buffer_byte(&fault, (uint8_t)*c);
        }
    }
    (void)setenv("EPG_IO_FAULT", epg_buffer_cstr(&fault), 1);
    if (epg_store_open(path, &store, &err) != EPG_OK) {
        return 99;
    }
    epg_code first = self->step->take(store);
    if (first != EPG_OK && (first != EPG_ERR_IO || self->step->take(store) != EPG_OK)) {
        (void)fprintf(stderr, "%s: %s\n", self->step->name, err.text);
        return 98;
    }
    epg_store_close(store);
    return first == EPG_OK ? 0 : 1;
}

static int take_plainly(const void *context)
{
    const struct step *step = context;
    epg_store *store = NULL;
    epg_program back = {0};
    if (epg_store_open(path, &store, &err) != EPG_OK || step->take(store) != EPG_OK ||
        epg_store_load(store, "submission-000002", &back, &err) != EPG_OK) {
        (void)fprintf(stderr, "%s again: %s\n", step->name, err.text);
        return 1;
    }
    epg_program_free(&back);
    epg_store_close(store);
    return 0;
}

/* One try; false when the step has no such point any more. */
static bool try_point(const attempt *self)
{
    free(epg_test_shell("rm -rf '%s'; cp -a '%s/prepared.git' '%s'", path, directory, path));
    int status = in_child(take, self);
    bool died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    ck_assert_msg(died || (WIFEXITED(status) && WEXITSTATUS(status) <= 1), "%s, point %u, way %d: status %d",
                  self->step->name, self->point, (int)self->way, status);
    epg_assert_sound(path);
    int again = in_child(take_plainly, self->step);
    ck_assert_msg(again == 0, "%s, point %u, way %d", self->step->name, self->point, (int)self->way);
    EPG_AUTO_FREE char *found =
        epg_test_shell("exec 2>&1; cd '%s'; git fsck --strict --full --no-dangling; git rev-list --count main;"
                       "git notes show submission-000001 2>/dev/null || true",
                       path);
    EPG_AUTO_FREE char *expected = epg_format("%s%s", self->step->count, self->step->note);
    ck_assert_str_eq(found, expected);
    return died || WEXITSTATUS(status) == 1;
}

static void set_up(void)
{
    directory = epg_test_directory();
    path = epg_format("%s/tried.git", directory);
}

static void tear_down(void)
{
    free(path);
    epg_test_directory_free(directory);
}

START_TEST(a_step_cut_off_anywhere_can_be_taken_again)
{
    attempt self = {.step = &steps[_i / WAYS], .way = (way)(_i % WAYS), .point = 1};
    ck_assert_int_eq(in_child(prepare, &self.step->before), 0);
    free(epg_test_shell("mv '%s' '%s/prepared.git'", path, directory));
    while (try_point(&self)) {
        self.point += self.step->take == step_maintain && self.point > 12 ? 23 : 1; /* it removes many files alike */
    }
    ck_assert_uint_gt(self.point, self.way == WAY_TORN && self.step->take == step_drop ? 0 : 2);
}
END_TEST

static int create(const void *context)
{
    const unsigned *point = context;
    epg_store *store = NULL;
    if (*point > 0) {
        EPG_AUTO_FREE char *fault = epg_format("kill@%u", *point);
        (void)setenv("EPG_IO_FAULT", fault, 1);
    }
    epg_code code = epg_store_create(path, &store, &err);
    epg_store_close(store);
    return (int)code;
}

START_TEST(a_store_is_made_whole_or_not_at_all)
{
    bool died = true;
    for (unsigned point = 1; died; point += 3) { /* it makes many files alike */
        static const unsigned never = 0;
        int status = in_child(create, &point);
        died = WIFSIGNALED(status) != 0;
        if (access(path, F_OK) == 0) {
            epg_store *store = NULL;
            epg_assert_ok(epg_store_open(path, &store, &err), &err);
            epg_store_close(store);
        } else {
            ck_assert(died);
            ck_assert_int_eq(in_child(create, &never), 0);
        }
        free(epg_test_shell("rm -rf '%s'", path));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crash");
    TCase *tests = tcase_create("crash");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 250);
    tcase_add_loop_test(tests, a_step_cut_off_anywhere_can_be_taken_again, 0, (int)EPG_COUNT(steps) * WAYS);
    tcase_add_test(tests, a_store_is_made_whole_or_not_at_all);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
