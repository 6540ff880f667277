/* Finding an interpreter and the guest package, and the ways to fail at it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/guests.h"
#include "support/support.h"

static char *directory;

static void make_directory(void)
{
    directory = epg_test_directory();
}

static void remove_directory(void)
{
    epg_test_directory_free(directory);
}

/* A shell script that stands for a python. Caller frees the path. */
static char *script(const char *text)
{
    char *path = epg_format("%s/python", directory);
    epg_test_write_text(directory, "python", text);
    ck_assert_int_eq(chmod(path, 0755), 0);
    return path;
}

static void expect_refusal(const char *name, const char *part)
{
    char *path = NULL;
    epg_error err = {0};
    epg_assert_code(epg_python_find(name, &path, &err), EPG_ERR_USAGE, &err);
    ck_assert_ptr_null(path);
    ck_assert_msg(strstr(err.text, part) != NULL, "%s", err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "--python"));
    ck_assert_ptr_null(strchr(err.text, '\n'));
}

static void expect_refusal_of(const char *text, const char *part)
{
    EPG_AUTO_FREE char *path = script(text);
    expect_refusal(path, part);
}

START_TEST(an_interpreter_is_found_by_name_and_by_path)
{
    char *path = NULL;
    epg_error err = {0};
    epg_assert_ok(epg_python_find(epg_test_python(), &path, &err), &err);
    ck_assert_str_eq(path, epg_test_python());
    EPG_AUTO_FREE char *folder = epg_strndup(path, (size_t)(strrchr(path, '/') - path));
    EPG_AUTO_FREE char *name = epg_strdup(strrchr(path, '/') + 1);
    free(path);
    ck_assert_int_eq(setenv("PATH", folder, 1), 0);
    epg_assert_ok(epg_python_find(name, &path, &err), &err);
    ck_assert_str_eq(path, epg_test_python());
    free(path);
}
END_TEST

START_TEST(a_shim_is_looked_through)
{
    char *path = NULL;
    epg_error err = {0};
    EPG_AUTO_FREE char *text = epg_format("#!/bin/sh\nexec '%s' \"$@\"\n", epg_test_python());
    EPG_AUTO_FREE char *shim = script(text);
    epg_assert_ok(epg_python_find(shim, &path, &err), &err);
    ck_assert_str_eq(path, epg_test_python());
    free(path);
}
END_TEST

START_TEST(what_is_no_usable_python_is_refused_in_one_line)
{
    expect_refusal("", "empty");
    expect_refusal("no-python-of-this-name", "no python found as 'no-python-of-this-name'");
    expect_refusal("/nowhere/python3", "no python found as '/nowhere/python3'");
    expect_refusal(directory, "no usable python");
    expect_refusal("/dev/null", "no usable python");
    expect_refusal_of("#!/bin/sh\nexit 0\n", "no CPython");
    expect_refusal_of("#!/bin/sh\nexit 3\n", "failed to run");
    expect_refusal_of("#!/bin/sh\necho started >&2\nprintf 'no \\033[1m libx.so\\n\\n' >&2\nexit 127\n",
                      "a small script: no \\x1b[1m libx.so)");
    expect_refusal_of("#!/bin/sh\nyes 123456789 | head -n 100000 >&2\necho the last >&2\nexit 1\n",
                      "a small script: the last)");
    expect_refusal_of("#!/bin/sh\n[ $1 = -I ] || exec printf 2.7\necho 'Unknown option: -I' >&2\nexit 2\n",
                      "Python 2.7, too old");
    expect_refusal_of("#!/bin/sh\nkill -9 $$\n", "failed to run");
    expect_refusal_of("#!/bin/sh\nexec yes\n", "printed too much");
    expect_refusal_of("#!/nowhere/interpreter\n", "python");
    expect_refusal_of("#!/bin/sh\nprintf 'pypy\\n3\\n10\\n/usr/bin/pypy3\\n'\n", "no CPython");
    expect_refusal_of("#!/bin/sh\nprintf 'cpython\\n3\\n8\\n/usr/bin/python3.8\\n'\n", "Python 3.8, too old");
    expect_refusal_of("#!/bin/sh\nprintf 'cpython\\n2\\n7\\n/usr/bin/python2.7\\n'\n", "Python 2.7, too old");
    expect_refusal_of("#!/bin/sh\nprintf 'cpython\\n3\\n11\\n\\n'\n", "no CPython");
}
END_TEST

START_TEST(a_candidate_that_hangs_is_ended)
{
    expect_refusal_of("#!/bin/sh\nexec >&-\nexec sleep 600\n", "did not end in 10 s");
}
END_TEST

START_TEST(the_guest_package_is_found_and_whole)
{
    epg_error err = {0};
    EPG_AUTO_FREE char *root = NULL;
    epg_assert_ok(epg_guest_root_find(&root, &err), &err);
    EPG_AUTO_FREE char *policy = epg_test_read_text(root, "evopolicygym/policy.py");
    ck_assert_ptr_nonnull(policy);
    ck_assert_int_eq(root[0], '/');
}
END_TEST

START_TEST(a_broken_interpreter_is_a_fault_of_execution_that_says_why)
{
    epg_error err = {0};
    epg_policy *policy = NULL;
    epg_test_guest host;
    epg_test_guest_prepare(&host);
    EPG_AUTO_FREE char *broken = script("#!/bin/sh\necho 'libbroken.so: cannot open' >&2\nexit 1\n");
    host.execution.python = broken;
    epg_test_guest_start(&host, -1);
    EPG_AUTO_FREE char *path = epg_test_guest_program(&host, "");
    epg_assert_code(epg_policy_begin(host.guest, path, &policy, &err), EPG_ERR_EXECUTION, &err);
    ck_assert_msg(strstr(err.text, "libbroken.so: cannot open") != NULL, "%s", err.text);
    ck_assert_uint_eq(epg_descendants_count(getpid()), 0);
    host.execution.python = "/nowhere/python3";
    epg_guest_close(host.guest);
    epg_test_guest_start(&host, -1);
    epg_assert_code(epg_policy_begin(host.guest, path, &policy, &err), EPG_ERR_EXECUTION, &err);
    ck_assert_msg(strstr(err.text, "/nowhere/python3") != NULL, "%s", err.text);
    epg_test_guest_close(&host);
}
END_TEST

START_TEST(only_a_profile_that_can_be_had_is_given)
{
    epg_error err = {0};
    epg_profile profile = EPG_PROFILE_SANDBOX;
    epg_assert_ok(epg_profile_parse("process", &profile, &err), &err);
    ck_assert_int_eq(profile, EPG_PROFILE_PROCESS);
    ck_assert_str_eq(epg_profile_name(profile), "process");
    epg_assert_code(epg_profile_parse("none", &profile, &err), EPG_ERR_USAGE, &err);
    epg_assert_code(epg_profile_parse("", &profile, &err), EPG_ERR_USAGE, &err);
    ck_assert_int_eq(profile, EPG_PROFILE_PROCESS);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("find");
    TCase *tests = tcase_create("find");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_add_test(tests, an_interpreter_is_found_by_name_and_by_path);
    tcase_add_test(tests, a_shim_is_looked_through);
    tcase_add_test(tests, what_is_no_usable_python_is_refused_in_one_line);
    tcase_add_test(tests, a_candidate_that_hangs_is_ended);
    tcase_add_test(tests, the_guest_package_is_found_and_whole);
    tcase_add_test(tests, a_broken_interpreter_is_a_fault_of_execution_that_says_why);
    tcase_add_test(tests, only_a_profile_that_can_be_had_is_given);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    (void)epg_test_python();
    return epg_test_main(make_suite());
}
