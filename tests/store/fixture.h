/* A fresh store for each test, and short words for what is done with it. */
#ifndef EPG_TESTS_STORE_FIXTURE_H
#define EPG_TESTS_STORE_FIXTURE_H

#include <stdlib.h>

#include "base/memory.h"
#include "programs/store.h"
#include "store/git.h"
#include "support/support.h"

static char *directory;
static char *path;
static epg_store *store;
static epg_error err;
static char id[EPG_OBJECT_ID_TEXT];

enum { WHEN = 1700000000 };

static inline void set_up(void)
{
    directory = epg_test_directory();
    path = epg_format("%s/programs.git", directory);
    err = (epg_error){.text = ""};
    epg_assert_ok(epg_store_create(path, &store, &err), &err);
}

static inline void tear_down(void)
{
    epg_store_close(store);
    store = NULL;
    free(path);
    epg_test_directory_free(directory);
}

static inline void reopen(void)
{
    epg_store_close(store);
    store = NULL;
    epg_assert_ok(epg_store_open(path, &store, &err), &err);
}

/* A Program of "path", "text" pairs; policy.py is added. */
static inline epg_program program_of(const char *const *pairs)
{
    epg_program program = {0};
    EPG_AUTO_FREE char *source = epg_format("%s/source", directory);
    EPG_AUTO_FREE char *remove = epg_format("rm -rf '%s' && mkdir '%s'", source, source);
    ck_assert_int_eq(system(remove), 0);
    epg_test_write_text(source, "policy.py", "def make_policy(context): pass\n");
    for (size_t i = 0; pairs != NULL && pairs[i] != NULL; i += 2) {
        epg_test_write_text(source, pairs[i], pairs[i + 1]);
    }
    epg_assert_ok(epg_program_capture_path(source, &epg_program_default_limits, &program, &err), &err);
    return program;
}

static inline epg_program program_with(const char *name, const char *text)
{
    const char *const pairs[] = {name, text, NULL};
    return program_of(pairs);
}

static inline epg_code commit(const epg_program *program, const char *name)
{
    return epg_store_commit(store, program, name, "a subject", NULL, WHEN, id, &err);
}

static inline void commit_text(const char *name, const char *text)
{
    epg_program program = program_with("x.txt", text);
    epg_assert_ok(commit(&program, name), &err);
    epg_program_free(&program);
}

static inline char *git(const char *arguments)
{
    return epg_test_git(path, arguments);
}

static inline void assert_git(const char *arguments, const char *expected)
{
    epg_assert_git(path, arguments, expected);
}

static inline void assert_loads(const char *name, const epg_program *program)
{
    epg_program back = {0};
    epg_assert_ok(epg_store_load(store, name, &back, &err), &err);
    ck_assert_str_eq(back.digest, program->digest);
    ck_assert_uint_eq(back.count, program->count);
    ck_assert_uint_eq(back.total_bytes, program->total_bytes);
    for (size_t i = 0; i < back.count; i++) {
        ck_assert_str_eq(back.files[i].path, program->files[i].path);
    }
    epg_program_free(&back);
}

static inline TCase *new_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    suite_add_tcase(suite, tests);
    return tests;
}

#endif
