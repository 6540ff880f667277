/* What a well-meaning Policy sees, and what becomes of its own mistakes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/guests.h"
#include "support/support.h"

static epg_test_guest host;

static void open_host(void)
{
    (void)setenv("PYTHONPATH", "/host-python-path", 1);
    (void)setenv("HOST_SECRET", "secret", 1);
    epg_test_guest_open(&host);
}

static void close_host(void)
{
    epg_test_guest_close(&host);
}

/* make_policy(context) is `body`; act answers with the string that it left in `answer`. */
static char *ask_once(const char *imports, const char *body, uint64_t seed)
{
    EPG_AUTO_FREE char *source = epg_format("%s\n"
                                            "class P:\n"
                                            "    def act(self, observation):\n"
                                            "        return answer\n"
                                            "def make_policy(context):\n"
                                            "    global answer\n"
                                            "    %s\n"
                                            "    return P()\n",
                                            imports, body);
    epg_policy *policy = epg_test_policy_begin(&host, source);
    epg_policy_reply reply = epg_test_policy_start(policy, seed, 30);
    ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s: %s", epg_policy_cause_name(reply.cause), reply.detail);
    char *answer = epg_test_policy_ask(policy);
    epg_test_policy_finish(policy, NULL);
    return answer;
}

#define assert_answer(expected, imports, body)                                                                         \
    do {                                                                                                               \
        EPG_AUTO_FREE char *answer_ = ask_once(imports, body, 7);                                                      \
        ck_assert_str_eq(answer_, expected);                                                                           \
    } while (0)

START_TEST(context_reaches_make_policy_whole)
{
    assert_answer("{'name': 'observation_space'} {'name': 'action_space'} {'name': 'metadata'} "
                  "{'name': 'environment_parameters'} 7",
                  "",
                  "c = context; answer = ' '.join(map(str, (c.observation_space, c.action_space, dict(c.metadata), "
                  "dict(c.environment_parameters), c.policy_seed)))");
}
END_TEST

START_TEST(observation_and_action_cross_unchanged)
{
    EPG_AUTO_BUFFER value = {0};
    const uint64_t shape[] = {2, 1};
    epg_value_put_map(&value, 3);
    epg_value_put_key(&value, "a");
    epg_value_put_tuple(&value, 3);
    epg_value_put_float(&value, -0.0);
    epg_value_put_u64(&value, UINT64_MAX);
    epg_value_put_i64(&value, INT64_MIN);
    epg_value_put_key(&value, "b");
    epg_value_put_list(&value, 4);
    epg_value_put_null(&value);
    epg_value_put_bool(&value, true);
    epg_value_put_text(&value, "\xc3\xa9");
    epg_value_put_bytes(&value, epg_span_of("\0\xff", 2));
    epg_value_put_key(&value, "c");
    epg_value_put_tensor(&value, "uint16", shape, 2, epg_span_of("\1\0\2\0", 4));
    epg_policy *policy = epg_test_policy_begin(&host, "class P:\n"
                                                      "    def act(self, observation):\n"
                                                      "        return observation\n"
                                                      "def make_policy(context):\n"
                                                      "    return P()\n");
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    for (int i = 0; i < 3; i++) {
        epg_policy_reply reply = epg_test_policy_act(policy, epg_buffer_span(&value), 30);
        ck_assert_int_eq(reply.failure, EPG_POLICY_OK);
        ck_assert(epg_span_equal(reply.action, epg_buffer_span(&value)));
    }
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(numbers_in_lists_and_tuples_of_any_length_cross_unchanged)
{
    static const double floats[] = {-0.0, 1.5, -5e-324, 1.7976931348623157e308};
    epg_policy *policy = epg_test_policy_begin(&host, "class P:\n"
                                                      "    def act(self, observation):\n"
                                                      "        return observation\n"
                                                      "def make_policy(context):\n"
                                                      "    return P()\n");
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    for (uint64_t shape = 0; shape < 4; shape++) { /* list or tuple, all floats or the last one an int */
        for (uint64_t count = 0; count < 60; count++) {
            EPG_AUTO_BUFFER value = {0};
            (shape % 2 == 0 ? epg_value_put_list : epg_value_put_tuple)(&value, count);
            for (uint64_t i = 0; i < count; i++) {
                if (shape >= 2 && i + 1 == count) {
                    epg_value_put_i64(&value, 7);
                } else {
                    epg_value_put_float(&value, floats[i % EPG_COUNT(floats)]);
                }
            }
            epg_policy_reply reply = epg_test_policy_act(policy, epg_buffer_span(&value), 30);
            ck_assert_int_eq(reply.failure, EPG_POLICY_OK);
            ck_assert(epg_span_equal(reply.action, epg_buffer_span(&value)));
        }
    }
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(largest_observation_and_action_cross)
{
    enum { CONTENT = 4 * 1024 * 1024 - 9 }; /* with its head exactly the bound */
    EPG_AUTO_BUFFER value = {0};
    uint8_t *content = epg_alloc(CONTENT);
    epg_value_put_bytes(&value, epg_span_of(content, CONTENT));
    free(content);
    epg_policy *policy = epg_test_policy_begin(&host, "class P:\n"
                                                      "    def act(self, observation):\n"
                                                      "        return observation\n"
                                                      "def make_policy(context):\n"
                                                      "    return P()\n");
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    epg_policy_reply reply = epg_test_policy_act(policy, epg_buffer_span(&value), 60);
    ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s: %s", epg_policy_cause_name(reply.cause), reply.detail);
    ck_assert(epg_span_equal(reply.action, epg_buffer_span(&value)));
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(observation_over_the_bound_is_the_benchmarks_fault)
{
    enum { CONTENT = 4 * 1024 * 1024 };
    epg_error err = {0};
    epg_policy_reply reply = {0};
    EPG_AUTO_BUFFER value = {0};
    uint8_t *content = epg_alloc(CONTENT);
    epg_value_put_bytes(&value, epg_span_of(content, CONTENT));
    free(content);
    epg_policy *policy = epg_test_policy_begin(&host, "def make_policy(context):\n    return None\n");
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    epg_assert_code(epg_policy_act(policy, epg_buffer_span(&value), EPG_NEVER, &reply, &err), EPG_ERR_BENCHMARK, &err);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(every_episode_has_a_fresh_process)
{
    EPG_AUTO_FREE char *first = ask_once("import os, sys", "sys.mark = 1; answer = str(os.getpid())", 7);
    EPG_AUTO_FREE char *second =
        ask_once("import os, sys", "answer = '%s %d' % (hasattr(sys, 'mark'), os.getpid())", 7);
    ck_assert_int_eq(strncmp(second, "False ", 6), 0);
    ck_assert_str_ne(first, second + 6);
}
END_TEST

START_TEST(randomness_follows_the_policy_seed)
{
    const char *body = "import random; answer = '%r %r' % (random.random(), random.random())";
    EPG_AUTO_FREE char *first = ask_once("", body, 7);
    EPG_AUTO_FREE char *second = ask_once("", body, 7);
    EPG_AUTO_FREE char *other = ask_once("", body, 8);
    /* random.seed(7) of the standard library */
    ck_assert_str_eq(first, "0.32383276483316237 0.15084917392450192");
    ck_assert_str_eq(first, second);
    ck_assert_str_ne(first, other);
}
END_TEST

START_TEST(hashes_are_the_same_in_every_guest)
{
    EPG_AUTO_FREE char *first = ask_once("", "answer = str(hash('a'))", 7);
    close_host();
    open_host();
    EPG_AUTO_FREE char *second = ask_once("", "answer = str(hash('a'))", 7);
    ck_assert_str_eq(first, second);
}
END_TEST

/* A numpy of three lines stands for the real one, which tests can't demand. */
START_TEST(numpys_global_generator_is_seeded_on_import)
{
    const char *source = "import numpy.random\n"
                         "class P:\n"
                         "    def act(self, observation):\n"
                         "        return repr(numpy.random.state)\n"
                         "def make_policy(context):\n"
                         "    return P()\n";
    EPG_AUTO_FREE char *path = epg_test_guest_program(&host, source);
    epg_test_write_text(path, "numpy/__init__.py", "");
    epg_test_write_text(path, "numpy/random/__init__.py",
                        "state = 'entropy'\n"
                        "def seed(value):\n"
                        "    global state\n"
                        "    state = value\n");
    epg_error err = {0};
    epg_policy *policy = NULL;
    epg_assert_ok(epg_policy_begin(host.guest, path, &policy, &err), &err);
    ck_assert_int_eq(epg_test_policy_start(policy, UINT64_C(0x100000002), 30).failure, EPG_POLICY_OK);
    EPG_AUTO_FREE char *state = epg_test_policy_ask(policy);
    ck_assert_str_eq(state, "[1, 2]");
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(nothing_of_the_hosts_environment_reaches_a_policy)
{
    assert_answer("None None False", "import os, sys",
                  "answer = '%s %s %s' % (os.environ.get('PYTHONPATH'), os.environ.get('HOST_SECRET'), "
                  "any('host-python-path' in p for p in sys.path))");
}
END_TEST

START_TEST(working_directory_is_the_program_and_scratch_is_its_parent)
{
    assert_answer("True True True True", "import os, sys, tempfile",
                  "here = os.path.dirname(__file__); up = os.path.dirname(here); "
                  "answer = '%s %s %s %s' % (os.getcwd() == here, os.environ['HOME'] == up, "
                  "tempfile.gettempdir() == up, sys.path[0] == here)");
}
END_TEST

START_TEST(only_the_standard_and_the_channels_descriptors_are_open)
{
    assert_answer(
        "0 1 2 250 251 /dev/null", "import os",
        "fds = [f for f in sorted(map(int, os.listdir('/proc/self/fd'))) if os.path.exists('/proc/self/fd/%d' "
        "% f) or f in (1, 2, 250, 251)]; answer = ' '.join(map(str, fds)) + ' ' + "
        "os.readlink('/proc/self/fd/0')");
}
END_TEST

START_TEST(the_guest_packages_files_are_no_modules_of_a_program)
{
    assert_answer("ok", "",
                  "answer = 'ok'\n"
                  "    for name in ('errors', 'server', '_guest', '_codec', 'policy_'):\n"
                  "        try:\n"
                  "            __import__(name)\n"
                  "            answer = name\n"
                  "        except ImportError:\n"
                  "            pass");
}
END_TEST

START_TEST(a_programs_modules_shadow_nothing_that_the_guest_needs)
{
    static const char *const names[] = {"json", "types",   "struct",     "random",    "os",
                                        "io",   "signal",  "typing",     "_socket",   "resource",
                                        "gc",   "posix",   "codecs",     "traceback", "importlib/__init__",
                                        "abc",  "enum",    "_struct",    "linecache", "evopolicygym/__init__",
                                        "site", "policy_", "server",     "functools", "evopolicygym/policy",
                                        "time", "stat",    "dataclasses"};
    const char *source = "import json\n"
                         "from evopolicygym.policy import Policy, PolicyContext, TensorValue\n"
                         "from evopolicygym import PolicyValue\n"
                         "class P(Policy):\n"
                         "    def act(self, observation):\n"
                         "        if observation is None:\n"
                         "            return json.WHOSE\n"
                         "        raise ValueError('told')\n"
                         "def make_policy(context):\n"
                         "    assert type(context) is PolicyContext\n"
                         "    return P()\n";
    EPG_AUTO_FREE char *path = epg_test_guest_program(&host, source);
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        EPG_AUTO_FREE char *file = epg_format("%s.py", names[i]);
        epg_test_write_text(path, file, strcmp(names[i], "json") == 0 ? "WHOSE = 'mine'\n" : "raise SystemError\n");
    }
    epg_error err = {0};
    epg_policy *policy = NULL;
    epg_assert_ok(epg_policy_begin(host.guest, path, &policy, &err), &err);
    epg_policy_reply reply = epg_test_policy_start(policy, 7, 30);
    ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s: %s", epg_policy_cause_name(reply.cause), reply.detail);
    EPG_AUTO_FREE char *whose = epg_test_policy_ask(policy);
    ck_assert_str_eq(whose, "mine");
    reply = epg_test_policy_act(policy, epg_span_text("B1"), 30);
    ck_assert_int_eq(reply.cause, EPG_CAUSE_ACT);
    ck_assert_str_eq(reply.detail, "ValueError: told");
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(printing_goes_to_the_log_and_breaks_nothing)
{
    epg_policy_end end;
    epg_policy *policy = epg_test_policy_begin(&host, "import os, sys\n"
                                                      "print('at import')\n"
                                                      "class P:\n"
                                                      "    def act(self, observation):\n"
                                                      "        print('in act', end='')\n"
                                                      "        os.write(1, b'<raw>')\n"
                                                      "        return 1\n"
                                                      "def make_policy(context):\n"
                                                      "    print('in make_policy', file=sys.stderr)\n"
                                                      "    return P()\n");
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    epg_test_policy_finish(policy, &end);
    ck_assert_str_eq(epg_buffer_cstr(&end.log), "at import\nin make_policy\n<raw>in act");
    ck_assert_uint_eq(end.log_dropped, 0);
    ck_assert_int_eq(end.exit.code, 0);
    epg_policy_end_free(&end);
}
END_TEST

START_TEST(a_flood_of_output_is_cut_in_the_middle)
{
    epg_policy_end end;
    epg_policy *policy = epg_test_policy_begin(&host, "import os\n"
                                                      "class P:\n"
                                                      "    def act(self, observation):\n"
                                                      "        os.write(2, b'first line\\n')\n"
                                                      "        for _ in range(4000):\n"
                                                      "            os.write(2, b'x' * 10000)\n"
                                                      "        os.write(2, b'last line\\n')\n"
                                                      "        return 1\n"
                                                      "def make_policy(context):\n"
                                                      "    return P()\n");
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 120).failure, EPG_POLICY_OK);
    epg_test_policy_finish(policy, &end);
    uint64_t printed = strlen("first line\n") + UINT64_C(4000) * 10000 + strlen("last line\n");
    EPG_AUTO_FREE char *cut = epg_format("\n[%llu bytes not kept]\n", (unsigned long long)end.log_dropped);
    const char *log = epg_buffer_cstr(&end.log);
    ck_assert_uint_eq(end.log.size - strlen(cut) + end.log_dropped, printed);
    ck_assert_uint_eq(end.log.size - strlen(cut), host.execution.limits.log_bytes);
    ck_assert_int_eq(strncmp(log, "first line\n", 11), 0);
    ck_assert_ptr_nonnull(strstr(log, cut));
    ck_assert_str_eq(log + end.log.size - 11, "xlast line\n");
    epg_policy_end_free(&end);
}
END_TEST

/* --- A Policy's own mistakes. --- */

typedef struct mistake {
    const char *source; /* of the whole policy.py, or the body of act */
    epg_policy_cause cause;
    const char *detail; /* how it starts */
} mistake;

static const mistake load_mistakes[] = {
    {"x = 1\n", EPG_CAUSE_LOAD, "AttributeError: module 'policy' has no attribute 'make_policy'"},
    {"def make_policy(:\n", EPG_CAUSE_LOAD, "SyntaxError: "},
    {"raise OSError('no')\n", EPG_CAUSE_LOAD, "OSError: no"},
    {"import sys\nsys.exit(3)\n", EPG_CAUSE_LOAD, "SystemExit: 3"},
    {"import nothing_of_that_name\n", EPG_CAUSE_LOAD, "ModuleNotFoundError: "},
    {"x = '\xff'\n", EPG_CAUSE_LOAD, "SyntaxError: "},
    {"make_policy = 1\n", EPG_CAUSE_MAKE_POLICY, "TypeError: "},
    {"def make_policy(context):\n    1 / 0\n", EPG_CAUSE_MAKE_POLICY, "ZeroDivisionError: "},
    {"def make_policy():\n    pass\n", EPG_CAUSE_MAKE_POLICY, "TypeError: "},
    {"def make_policy(context):\n    context.metadata['x'] = 1\n", EPG_CAUSE_MAKE_POLICY, "TypeError: "},
};

START_TEST(mistakes_in_loading_are_exceptions)
{
    const mistake *one = &load_mistakes[_i];
    epg_policy *policy = epg_test_policy_begin(&host, one->source);
    epg_policy_reply reply = epg_test_policy_start(policy, 7, 30);
    ck_assert_int_eq(reply.failure, EPG_POLICY_EXCEPTION);
    ck_assert_str_eq(epg_policy_cause_name(reply.cause), epg_policy_cause_name(one->cause));
    ck_assert_msg(strncmp(reply.detail, one->detail, strlen(one->detail)) == 0, "%s", reply.detail);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

static const mistake act_mistakes[] = {
    {"raise ValueError('v')", EPG_CAUSE_ACT, "ValueError: v"},
    {"raise TypeError('t')", EPG_CAUSE_ACT, "TypeError: t"},
    {"return self.act(observation)", EPG_CAUSE_ACT, "RecursionError: "},
    {"sys.exit('bye')", EPG_CAUSE_ACT, "SystemExit: bye"},
    {"raise KeyboardInterrupt", EPG_CAUSE_ACT, "KeyboardInterrupt"},
    {"raise GeneratorExit", EPG_CAUSE_ACT, "GeneratorExit"},
    {"raise Unspeakable", EPG_CAUSE_ACT, "Unspeakable: (its text can't be had)"},
    {"raise MemoryError", EPG_CAUSE_ACT, "MemoryError"},
    {"raise ValueError('a\\x1b[31m\\nb' * 10000)", EPG_CAUSE_ACT, "ValueError: a\\x1b[31m\\x0ab"},
    {"bytes(1 << 33)", EPG_CAUSE_ACT, "MemoryError"},
    {"os.kill(os.getpid(), 2); time.sleep(5)", EPG_CAUSE_ACT, "KeyboardInterrupt"},
    {"return float('nan')", EPG_CAUSE_INADMISSIBLE_VALUE, "ValueError: "},
    {"return [float('-inf')]", EPG_CAUSE_INADMISSIBLE_VALUE, "ValueError: "},
    {"return object()", EPG_CAUSE_INADMISSIBLE_VALUE, "TypeError: "},
    {"return {1: 2}", EPG_CAUSE_INADMISSIBLE_VALUE, "TypeError: "},
    {"return 1 << 64", EPG_CAUSE_INADMISSIBLE_VALUE, "ValueError: "},
    {"return '\\ud800'", EPG_CAUSE_INADMISSIBLE_VALUE, "ValueError: "},
    {"return bytes(4 << 20)", EPG_CAUSE_INADMISSIBLE_VALUE, "ValueError: "},
    {"return [0] * 65536", EPG_CAUSE_INADMISSIBLE_VALUE, "ValueError: "},
    {"x = []\n        for _ in range(33):\n            x = [x]\n        return x", EPG_CAUSE_INADMISSIBLE_VALUE,
     "ValueError: "},
    {"x = []\n        x.append(x)\n        return x", EPG_CAUSE_INADMISSIBLE_VALUE, "ValueError: "},
};

START_TEST(mistakes_in_acting_are_told_apart)
{
    const mistake *one = &act_mistakes[_i];
    EPG_AUTO_FREE char *source = epg_format("import os, sys, time\n"
                                            "class Unspeakable(BaseException):\n"
                                            "    def __str__(self):\n"
                                            "        raise self\n"
                                            "class P:\n"
                                            "    def act(self, observation):\n"
                                            "        %s\n"
                                            "def make_policy(context):\n"
                                            "    return P()\n",
                                            one->source);
    epg_policy *policy = epg_test_policy_begin(&host, source);
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 30);
    ck_assert_int_eq(reply.failure, one->cause == EPG_CAUSE_ACT ? EPG_POLICY_EXCEPTION : EPG_POLICY_PROTOCOL_ERROR);
    ck_assert_str_eq(epg_policy_cause_name(reply.cause), epg_policy_cause_name(one->cause));
    ck_assert_msg(strncmp(reply.detail, one->detail, strlen(one->detail)) == 0, "%s", reply.detail);
    ck_assert_uint_lt(strlen(reply.detail), 5000);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(a_policy_that_failed_is_asked_nothing_more)
{
    epg_error err = {0};
    epg_policy_reply reply;
    epg_policy *policy = epg_test_policy_begin(&host, "x = 1\n");
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_EXCEPTION);
    epg_assert_code(epg_policy_act(policy, epg_span_text("N"), EPG_NEVER, &reply, &err), EPG_ERR_INTERNAL, &err);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(a_traceback_is_kept_in_the_log)
{
    epg_policy_end end;
    epg_policy *policy = epg_test_policy_begin(&host, "def make_policy(context):\n    raise ValueError('where')\n");
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_EXCEPTION);
    epg_test_policy_finish(policy, &end);
    ck_assert_ptr_nonnull(strstr(epg_buffer_cstr(&end.log), "policy.py\", line 2, in make_policy"));
    ck_assert_ptr_nonnull(strstr(epg_buffer_cstr(&end.log), "ValueError: where"));
    epg_policy_end_free(&end);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("policy");
    TCase *tests = tcase_create("policy");
    tcase_set_timeout(tests, 200);
    tcase_add_checked_fixture(tests, open_host, close_host);
    tcase_add_test(tests, context_reaches_make_policy_whole);
    tcase_add_test(tests, observation_and_action_cross_unchanged);
    tcase_add_test(tests, numbers_in_lists_and_tuples_of_any_length_cross_unchanged);
    tcase_add_test(tests, largest_observation_and_action_cross);
    tcase_add_test(tests, observation_over_the_bound_is_the_benchmarks_fault);
    tcase_add_test(tests, every_episode_has_a_fresh_process);
    tcase_add_test(tests, randomness_follows_the_policy_seed);
    tcase_add_test(tests, hashes_are_the_same_in_every_guest);
    tcase_add_test(tests, numpys_global_generator_is_seeded_on_import);
    tcase_add_test(tests, nothing_of_the_hosts_environment_reaches_a_policy);
    tcase_add_test(tests, working_directory_is_the_program_and_scratch_is_its_parent);
    tcase_add_test(tests, only_the_standard_and_the_channels_descriptors_are_open);
    tcase_add_test(tests, the_guest_packages_files_are_no_modules_of_a_program);
    tcase_add_test(tests, a_programs_modules_shadow_nothing_that_the_guest_needs);
    tcase_add_test(tests, printing_goes_to_the_log_and_breaks_nothing);
    tcase_add_test(tests, a_flood_of_output_is_cut_in_the_middle);
    tcase_add_loop_test(tests, mistakes_in_loading_are_exceptions, 0, EPG_COUNT(load_mistakes));
    tcase_add_loop_test(tests, mistakes_in_acting_are_told_apart, 0, EPG_COUNT(act_mistakes));
    tcase_add_test(tests, a_policy_that_failed_is_asked_nothing_more);
    tcase_add_test(tests, a_traceback_is_kept_in_the_log);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    (void)epg_test_python();
    return epg_test_main(make_suite());
}
