/* A venv as --python, libraries imported beforehand, and fresh interpreters where forking is impossible. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/guests.h"
#include "support/support.h"

static epg_test_guest host;
static char *venv;
static char *interpreter; /* the venv's */

static void make_venv(void)
{
    epg_error err = {0};
    venv = epg_test_directory();
    epg_test_guest_prepare(&host);
    epg_test_venv(venv, host.execution.python);
    EPG_AUTO_FREE char *link = epg_format("%s/bin/python3", venv);
    epg_assert_ok(epg_python_find(link, &interpreter, &err), &err);
    ck_assert_str_eq(interpreter, link);
    host.execution.python = interpreter;
}

static void remove_venv(void)
{
    epg_test_guest_close(&host);
    ck_assert_uint_eq(epg_descendants_count(getpid()), 0);
    epg_test_directory_free(venv);
    free(interpreter);
}

static char *ask_once(const char *imports, const char *answer)
{
    EPG_AUTO_FREE char *source = epg_format("%s\n"
                                            "class P:\n"
                                            "    def act(self, observation):\n"
                                            "        return %s\n"
                                            "def make_policy(context):\n"
                                            "    return P()\n",
                                            imports, answer);
    epg_policy *policy = epg_test_policy_begin(&host, source);
    epg_policy_reply reply = epg_test_policy_start(policy, 7, 30);
    ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s: %s", epg_policy_cause_name(reply.cause), reply.detail);
    char *text = epg_test_policy_ask(policy);
    epg_policy_end end;
    epg_test_policy_finish(policy, &end);
    ck_assert_int_eq(end.exit.code, 0);
    ck_assert_uint_gt(end.max_rss_bytes, 1000000);
    epg_policy_end_free(&end);
    return text;
}

START_TEST(a_venvs_packages_are_there)
{
    epg_test_guest_start(&host, -1);
    EPG_AUTO_FREE char *answer = ask_once("import os, quiet", "str(quiet.MADE_BY == os.getpid())");
    ck_assert_str_eq(answer, "True");
}
END_TEST

START_TEST(a_preloaded_module_is_loaded_once_in_the_server)
{
    epg_guest_stats stats;
    host.execution.preload = "quiet,math";
    epg_test_guest_start(&host, -1);
    EPG_AUTO_FREE char *first = ask_once("import os, quiet", "str(quiet.MADE_BY == os.getppid())");
    EPG_AUTO_FREE char *second = ask_once("import os, sys", "str('math' in sys.modules)");
    ck_assert_str_eq(first, "True");
    ck_assert_str_eq(second, "True");
    epg_guest_statistics(host.guest, &stats);
    ck_assert_uint_eq(stats.spawned, 0);
}
END_TEST

/* As interpreters are that were built against an old kernel's headers. */
START_TEST(an_interpreter_without_pidfds_forks_too)
{
    epg_guest_stats stats;
    for (int minor = 9; minor < 30; minor++) {
        EPG_AUTO_FREE char *path = epg_format("lib/python3.%d/site-packages/old.pth", minor);
        epg_test_write_text(venv, path, "import os; del os.pidfd_open\n");
    }
    epg_test_guest_start(&host, -1);
    for (int i = 0; i < 3; i++) {
        EPG_AUTO_FREE char *answer = ask_once("import os", "str(hasattr(os, 'pidfd_open'))");
        ck_assert_str_eq(answer, "False");
    }
    epg_guest_statistics(host.guest, &stats);
    ck_assert_uint_eq(stats.spawned, 0);
    ck_assert_uint_ge(stats.forked, 3);
}
END_TEST

START_TEST(a_preloaded_module_that_is_missing_is_told)
{
    epg_error err = {0};
    epg_policy *policy = NULL;
    host.execution.preload = "no_such_module";
    epg_test_guest_start(&host, -1);
    EPG_AUTO_FREE char *path = epg_test_guest_program(&host, "");
    epg_assert_code(epg_policy_begin(host.guest, path, &policy, &err), EPG_ERR_EXECUTION, &err);
    ck_assert_msg(strstr(err.text, "No module named 'no_such_module'") != NULL, "%s", err.text);
}
END_TEST

START_TEST(threads_in_the_server_mean_fresh_interpreters)
{
    epg_guest_stats stats;
    host.execution.preload = "threaded";
    epg_test_guest_start(&host, -1);
    for (int i = 0; i < 3; i++) {
        EPG_AUTO_FREE char *answer =
            ask_once("import os, sys, threading",
                     "'%s %s' % (threading.active_count() > 1 and 'threaded' in sys.modules, hash('a'))");
        EPG_AUTO_FREE char *other = ask_once("", "'True %s' % hash('a')");
        ck_assert_str_eq(answer, other);
    }
    epg_guest_statistics(host.guest, &stats);
    ck_assert_uint_eq(stats.forked, 0);
    ck_assert_uint_eq(stats.spawned, 7); /* and one parked */
    ck_assert_uint_eq(epg_descendants_count(getpid()), 1);
}
END_TEST

START_TEST(fresh_interpreters_are_ended_with_what_they_left)
{
    host.execution.preload = "threaded";
    epg_test_guest_start(&host, -1);
    static const char *const acts[] = {"time.sleep(1000)", "os._exit(3)", "os.fork() or time.sleep(1000)"};
    for (size_t i = 0; i < EPG_COUNT(acts); i++) {
        EPG_AUTO_FREE char *source = epg_format("import os, time\n"
                                                "class P:\n"
                                                "    def act(self, observation):\n"
                                                "        %s\n"
                                                "def make_policy(context):\n"
                                                "    return P()\n",
                                                acts[i]);
        epg_policy *policy = epg_test_policy_begin(&host, source);
        ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
        epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), i == 0 ? 0.3 : 30);
        ck_assert_int_eq(reply.cause, i == 0 ? EPG_CAUSE_TIMEOUT_ACT : i == 1 ? EPG_CAUSE_DIED : EPG_CAUSE_NONE);
        epg_test_policy_finish(policy, NULL);
        ck_assert_uint_eq(epg_descendants_count(getpid()), 1);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("plain");
    TCase *tests = tcase_create("plain");
    tcase_set_timeout(tests, 200);
    tcase_add_checked_fixture(tests, make_venv, remove_venv);
    tcase_add_test(tests, a_venvs_packages_are_there);
    tcase_add_test(tests, a_preloaded_module_is_loaded_once_in_the_server);
    tcase_add_test(tests, an_interpreter_without_pidfds_forks_too);
    tcase_add_test(tests, a_preloaded_module_that_is_missing_is_told);
    tcase_add_test(tests, threads_in_the_server_mean_fresh_interpreters);
    tcase_add_test(tests, fresh_interpreters_are_ended_with_what_they_left);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    (void)epg_test_python();
    return epg_test_main(make_suite());
}
