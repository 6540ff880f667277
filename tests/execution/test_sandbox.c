/* The sandbox of Policies: what the probe proves, what is refused, and what becomes of it when its Host dies. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "execution/agent_sandbox.h"
#include "execution/cgroup.h"
#include "execution/filter.h"
#include "execution/paths.h"
#include "execution/probe.h"
#include "support/guests.h"
#include "support/support.h"

static epg_test_guest host;

static void prepare_host(void)
{
    epg_test_guest_prepare(&host);
    ck_assert_int_eq(chmod(host.directory, 0755), 0);
    host.execution.profile = EPG_PROFILE_SANDBOX;
    host.execution.scratch = host.directory;
}

static void close_host(void)
{
    epg_test_guest_close(&host);
}

/* Somewhere that is neither /tmp nor a home. */
static char *far_directory(void)
{
    char *path = epg_format("%s/epg-far-XXXXXX", access("/var/tmp", W_OK) == 0 ? "/var/tmp" : EPG_TEST_BIN);
    ck_assert_ptr_nonnull(mkdtemp(path));
    return path;
}

/* --- The probe. --- */

START_TEST(every_check_holds)
{
    static const char *const needed[] = {"seccomp",         "no_new_privs",    "capabilities",     "internet_sockets",
                                         "vsock_sockets",   "unshare",         "read_only_system", "host_files",
                                         "kernel_settings", "private_scratch", "seen_from_outside"};
    epg_error err = {0};
    epg_probe probe;
    epg_assert_ok(epg_containment_probe(&host.execution, _i == 0, &probe, &err), &err);
    const epg_probe_check *miss = epg_containment_miss(&probe);
    ck_assert_msg(miss == NULL, "%s: %s", miss != NULL ? miss->name : "", miss != NULL ? miss->detail : "");
    for (size_t i = 0; i < EPG_COUNT(needed); i++) {
        bool found = false;
        for (size_t j = 0; j < probe.count; j++) {
            found = found || strcmp(probe.checks[j].name, needed[i]) == 0;
        }
        ck_assert_msg(found, "no check of %s", needed[i]);
    }
    epg_assert_ok(epg_execution_check(&host.execution, &err), &err);
}
END_TEST

START_TEST(a_process_that_is_not_contained_is_seen)
{
    epg_error err = {0};
    epg_assert_code(epg_containment_look(getpid(), 1, 1, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_containment_look(999999999, 1, 1, &err), EPG_ERR_INVALID, &err);
}
END_TEST

/* --- Machines that give less. --- */

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s", path);
    ck_assert_msg(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
    (void)close(fd);
}

/* From here on this process is an ordinary user of a machine that allows so many user namespaces. */
static void become_a_user_of(const char *namespaces)
{
    EPG_AUTO_FREE char *users = epg_format("4321 %d 1", (int)getuid());
    EPG_AUTO_FREE char *groups = epg_format("4321 %d 1", (int)getgid());
    ck_assert_int_eq(unshare(CLONE_NEWUSER), 0);
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", users);
    write_file("/proc/self/gid_map", groups);
    write_file("/proc/sys/user/max_user_namespaces", namespaces);
}

START_TEST(no_user_namespaces_no_sandbox)
{
    epg_error err = {0};
    prepare_host();
    become_a_user_of("0");
    epg_assert_code(epg_execution_check(&host.execution, &err), EPG_ERR_UNAVAILABLE, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "containment unavailable"));
    ck_assert_ptr_nonnull(strstr(err.text, "max_user_namespaces"));
    ck_assert_int_eq(epg_exit_code(EPG_ERR_UNAVAILABLE), 6);
    close_host();
}
END_TEST

/* The fork server can't have cells (it has a thread, which a fork would not copy): as contained, each by itself. */
START_TEST(without_cells_each_policy_has_a_sandbox_of_its_own)
{
    epg_error err = {0};
    epg_guest_stats stats;
    prepare_host();
    char *far = far_directory(); /* a sandbox has a /tmp of its own */
    ck_assert_int_eq(chmod(far, 0755), 0);
    epg_test_venv(far, host.execution.python);
    EPG_AUTO_FREE char *python = epg_format("%s/bin/python3", far);
    host.execution.python = python;
    host.execution.preload = "threaded";
    epg_assert_ok(epg_execution_check(&host.execution, &err), &err);
    epg_test_guest_start(&host, -1);
    for (int i = 0; i < 2; i++) {
        epg_policy_end end;
        epg_policy *policy = epg_test_policy_begin(&host, "import os\n"
                                                          "class P:\n"
                                                          "    def act(self, observation):\n"
                                                          "        seen = os.listdir('/tmp')\n"
                                                          "        open('/tmp/mark', 'w').close()\n"
                                                          "        return '%s %s' % (seen, os.getcwd()[:8])\n"
                                                          "def make_policy(context):\n"
                                                          "    return P()\n");
        epg_policy_reply reply = epg_test_policy_start(policy, 7, 60);
        ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s", reply.detail);
        EPG_AUTO_FREE char *answer = epg_test_policy_ask(policy);
        ck_assert_str_eq(answer, "[] /policy/");
        epg_test_policy_finish(policy, &end);
        ck_assert(end.ended.complete);
        ck_assert_int_eq(end.exit.code, 0);
        epg_policy_end_free(&end);
    }
    epg_guest_statistics(host.guest, &stats);
    ck_assert_uint_eq(stats.forked, 0);
    ck_assert_uint_ge(stats.spawned, 2);
    close_host();
    epg_test_directory_free(far);
}
END_TEST

START_TEST(a_sandbox_that_fails_is_a_fault_of_execution)
{
    epg_error err = {0};
    epg_policy *policy = NULL;
    const char *source = "def make_policy(context):\n    return 1\n";
    prepare_host();
    become_a_user_of("0");
    epg_test_guest_start(&host, -1);
    EPG_AUTO_FREE char *path = epg_test_guest_program(&host, source);
    epg_assert_code(epg_policy_begin(host.guest, path, &policy, &err), EPG_ERR_EXECUTION, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "bwrap"));
    close_host();
}
END_TEST

/* --- The Host's death. --- */

START_TEST(nothing_outlives_a_killed_host)
{
    int ends[2];
    char byte = 0;
    prepare_host();
    ck_assert_int_eq(epg_become_subreaper(), 0);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        epg_test_guest_start(&host, -1);
        epg_policy *policy = epg_test_policy_begin(&host, "import os, time\n"
                                                          "for i in range(3):\n"
                                                          "    if os.fork() == 0:\n"
                                                          "        os.setsid()\n"
                                                          "        time.sleep(1000)\n"
                                                          "def make_policy(context):\n"
                                                          "    return 1\n");
        (void)epg_test_policy_start(policy, 7, 60);
        (void)!write(ends[1], "x", 1);
        for (;;) {
            (void)pause(); /* a timer of patience may end one */
        }
    }
    (void)close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_uint_gt(epg_descendants_count(child), 5);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    for (int i = 0; i < 3000 && epg_descendants_reap(NULL, 0) > 0; i++) {
        (void)usleep(10000);
    }
    ck_assert_uint_eq(epg_descendants_count(getpid()), 0);
    (void)close(ends[0]);
    epg_test_directory_free(host.directory);
}
END_TEST

/* --- Interpreters. --- */

/* Whether `paths` are exactly these, below `directory`. */
static void expect_paths(const epg_words *paths, const char *directory, const char *const *expected, size_t count)
{
    ck_assert_uint_eq(paths->count, count);
    for (size_t i = 0; i < count; i++) {
        EPG_AUTO_FREE char *path = epg_format("%s/%s", directory, expected[i]);
        ck_assert_str_eq(paths->texts[i], path);
    }
}

START_TEST(an_interpreters_prefix_is_shown_and_no_more)
{
    static const char *const expected[] = {"pythons/3.12"};
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_AUTO_FREE char *run = NULL;
    epg_error err = {0};
    char *far = far_directory();
    EPG_AUTO_FREE char *python = epg_format("%s/pythons/3.12/bin/python3", far);
    epg_test_write_text(far, "pythons/3.12/bin/python3", "");
    epg_test_write_text(far, "pythons/3.12/lib/python3.12/os.py", "");
    epg_assert_ok(epg_interpreter_paths(python, &paths, &run, &err), &err);
    expect_paths(&paths, far, expected, 1);
    ck_assert_str_eq(run, python);
    epg_test_directory_free(far);
}
END_TEST

START_TEST(a_venv_brings_the_interpreter_that_it_is_of)
{
    static const char *const expected[] = {"venv/bin/python3", "venv", "pythons/3.12"};
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_AUTO_FREE char *run = NULL;
    epg_error err = {0};
    char *far = far_directory();
    EPG_AUTO_FREE char *python = epg_format("%s/venv/bin/python3", far);
    EPG_AUTO_FREE char *base = epg_format("%s/pythons/3.12/bin/python3", far);
    EPG_AUTO_FREE char *config = epg_format("include = x\nhome  =  %s/pythons/3.12/bin\n", far);
    epg_test_write_text(far, "pythons/3.12/bin/python3", "");
    epg_test_write_text(far, "venv/pyvenv.cfg", config);
    epg_test_write_text(far, "venv/bin/other", "");
    ck_assert_int_eq(symlink(base, python), 0);
    epg_assert_ok(epg_interpreter_paths(python, &paths, &run, &err), &err);
    expect_paths(&paths, far, expected, 3);
    ck_assert_str_eq(run, python);
    epg_test_directory_free(far);
}
END_TEST

START_TEST(an_interpreter_that_would_show_a_whole_home_is_refused)
{
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_AUTO_FREE char *run = NULL;
    epg_error err = {0};
    char *far = far_directory();
    EPG_AUTO_FREE char *python = epg_format("%s/me/bin/python3", far);
    EPG_AUTO_FREE char *home = epg_format("%s/me", far);
    epg_test_write_text(far, "me/bin/python3", "");
    ck_assert_int_eq(setenv("HOME", home, 1), 0);
    epg_assert_code(epg_interpreter_paths(python, &paths, &run, &err), EPG_ERR_USAGE, &err);
    ck_assert_ptr_nonnull(strstr(err.text, home));
    ck_assert_int_eq(setenv("HOME", far, 1), 0);
    epg_assert_ok(epg_interpreter_paths(python, &paths, &run, &err), &err);
    epg_test_directory_free(far);
}
END_TEST

START_TEST(an_interpreter_in_tmp_is_refused)
{
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_AUTO_FREE char *run = NULL;
    epg_error err = {0};
    char *directory = epg_strdup("/tmp/epg-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    EPG_AUTO_FREE char *python = epg_format("%s/bin/python3", directory);
    epg_test_write_text(directory, "bin/python3", "");
    epg_assert_code(epg_interpreter_paths(python, &paths, &run, &err), EPG_ERR_USAGE, &err);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(the_systems_interpreter_needs_nothing)
{
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_AUTO_FREE char *run = NULL;
    epg_error err = {0};
    epg_assert_ok(epg_interpreter_paths("/bin/sh", &paths, &run, &err), &err);
    ck_assert_uint_eq(paths.count, 0);
}
END_TEST

START_TEST(links_are_followed_as_the_kernel_does)
{
    static const char *const expected[] = {"current", "real/bin/tool"};
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_AUTO_FREE char *real = NULL;
    epg_error err = {0};
    char *far = far_directory();
    epg_test_write_text(far, "real/lib/tool.js", "");
    epg_test_write_text(far, "real/bin/x", "");
    EPG_AUTO_FREE char *current = epg_format("%s/current", far);
    EPG_AUTO_FREE char *tool = epg_format("%s/real/bin/tool", far);
    EPG_AUTO_FREE char *way = epg_format("%s/current/bin/../bin/./tool", far);
    EPG_AUTO_FREE char *end = epg_format("%s/real/lib/tool.js", far);
    ck_assert_int_eq(symlink("real", current), 0);
    ck_assert_int_eq(symlink("../lib/tool.js", tool), 0);
    epg_assert_ok(epg_paths_follow(way, &paths, &real, &err), &err);
    expect_paths(&paths, far, expected, 2);
    ck_assert_str_eq(real, end);
    epg_assert_code(epg_paths_follow("/nowhere/at/all", &paths, &real, &err), EPG_ERR_NOT_FOUND, &err);
    epg_test_directory_free(far);
}
END_TEST

/* --- Installations of Agents. --- */

START_TEST(a_script_brings_its_package_and_its_interpreter)
{
    epg_error err = {0};
    char **found = NULL;
    char *far = far_directory();
    EPG_AUTO_FREE char *link = epg_format("%s/node/bin/agent", far);
    EPG_AUTO_FREE char *node = epg_format("%s/node/bin/node", far);
    EPG_AUTO_FREE char *script = epg_format("%s/node/lib/node_modules/@maker/agent/bin/agent.js", far);
    EPG_AUTO_FREE char *path = epg_format("%s/node/bin:/usr/bin", far);
    epg_test_write_text(far, "node/bin/node", "\177ELF");
    epg_test_write_text(far, "node/lib/node_modules/@maker/agent/bin/agent.js", "#!/usr/bin/env -S node --flag\n");
    (void)chmod(node, 0755);
    (void)chmod(script, 0755);
    ck_assert_int_eq(symlink("../lib/node_modules/@maker/agent/bin/agent.js", link), 0);
    epg_assert_ok(epg_installation_find("agent", path, &found, &err), &err);
    EPG_AUTO_FREE char *modules = epg_format("%s/node/lib/node_modules", far);
    EPG_AUTO_FREE char *prefix = epg_format("%s/node", far);
    ck_assert_str_eq(found[0], link);
    ck_assert_str_eq(found[1], modules);
    ck_assert_str_eq(found[2], prefix);
    ck_assert_ptr_null(found[3]);
    epg_paths_free(found);
    epg_assert_code(epg_installation_find("no-such-agent", path, &found, &err), EPG_ERR_NOT_FOUND, &err);
    epg_test_directory_free(far);
}
END_TEST

/* --- Limits and records. --- */

START_TEST(the_record_says_by_what_each_limit_holds)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_JSON *document = NULL;
    epg_json_writer writer;
    epg_error err = {0};
    epg_json_begin(&writer, &text, 0);
    epg_json_object(&writer, NULL);
    epg_execution_describe(&host.execution, &writer, "execution");
    epg_json_end(&writer);
    epg_json_finish(&writer);
    epg_assert_ok(epg_json_parse(epg_buffer_span(&text), "it", &document, &err), &err);
    const json_t *execution = json_object_get(document, "execution");
    const json_t *limits = json_object_get(execution, "limits");
    ck_assert(json_is_true(json_object_get(execution, "contained")));
    ck_assert_str_eq(json_string_value(json_object_get(execution, "profile")), "sandbox");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(limits, "descriptors"), "by")), "rlimit");
    ck_assert(json_is_null(json_object_get(limits, "cpu_seconds")));
    const char *memory = json_string_value(json_object_get(json_object_get(limits, "memory_bytes"), "by"));
    bool degraded = json_array_size(json_object_get(execution, "degraded")) > 0;
    ck_assert(epg_cgroup_find()->memory != NULL ? strncmp(memory, "cgroup", 6) == 0
                                                : strcmp(memory, "rlimit") == 0 && degraded);
}
END_TEST

START_TEST(a_control_group_leaves_nothing)
{
    const epg_cgroup_places *places = epg_cgroup_find();
    epg_cgroup group;
    epg_cgroup_events events;
    epg_cgroup_make(UINT64_C(64) << 20, 16, &group);
    ck_assert_int_eq(group.memory != NULL, places->memory != NULL);
    ck_assert_int_eq(group.processes != NULL, places->processes != NULL);
    EPG_AUTO_FREE char *memory = group.memory != NULL ? epg_strdup(group.memory) : NULL;
    EPG_AUTO_FREE char *processes = group.processes != NULL ? epg_strdup(group.processes) : NULL;
    epg_cgroup_read(&group, &events);
    ck_assert_uint_eq(events.memory_kills + events.processes_denied, 0);
    epg_cgroup_remove(&group);
    ck_assert(memory == NULL || access(memory, F_OK) != 0);
    ck_assert(processes == NULL || access(processes, F_OK) != 0);
}
END_TEST

START_TEST(every_kind_of_filter_can_be_made)
{
    static const epg_filter_kind kinds[] = {EPG_FILTER_GUEST, EPG_FILTER_SERVER, EPG_FILTER_AGENT};
    epg_error err = {0};
    for (size_t i = 0; i < EPG_COUNT(kinds); i++) {
        struct stat counted;
        struct stat uncounted;
        int one = -1;
        int two = -1;
        epg_assert_ok(epg_filter_make(kinds[i], false, &one, &err), &err);
        epg_assert_ok(epg_filter_make(kinds[i], true, &two, &err), &err);
        ck_assert_int_eq(fstat(one, &counted), 0);
        ck_assert_int_eq(fstat(two, &uncounted), 0);
        ck_assert_int_gt(uncounted.st_size, 0);
        ck_assert_int_gt(counted.st_size, uncounted.st_size);
        (void)close(one);
        (void)close(two);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("sandbox");
    TCase *with_host = tcase_create("with a host");
    tcase_set_timeout(with_host, 120);
    tcase_add_checked_fixture(with_host, prepare_host, close_host);
    tcase_add_loop_test(with_host, every_check_holds, 0, 2);
    tcase_add_test(with_host, the_record_says_by_what_each_limit_holds);
    suite_add_tcase(suite, with_host);
    TCase *alone = tcase_create("alone");
    tcase_set_timeout(alone, 120);
    tcase_add_test(alone, a_process_that_is_not_contained_is_seen);
    tcase_add_test(alone, no_user_namespaces_no_sandbox);
    tcase_add_test(alone, without_cells_each_policy_has_a_sandbox_of_its_own);
    tcase_add_test(alone, a_sandbox_that_fails_is_a_fault_of_execution);
    tcase_add_test(alone, nothing_outlives_a_killed_host);
    tcase_add_test(alone, an_interpreters_prefix_is_shown_and_no_more);
    tcase_add_test(alone, a_venv_brings_the_interpreter_that_it_is_of);
    tcase_add_test(alone, an_interpreter_that_would_show_a_whole_home_is_refused);
    tcase_add_test(alone, an_interpreter_in_tmp_is_refused);
    tcase_add_test(alone, the_systems_interpreter_needs_nothing);
    tcase_add_test(alone, links_are_followed_as_the_kernel_does);
    tcase_add_test(alone, a_script_brings_its_package_and_its_interpreter);
    tcase_add_test(alone, a_control_group_leaves_nothing);
    tcase_add_test(alone, every_kind_of_filter_can_be_made);
    suite_add_tcase(suite, alone);
    return suite;
}

int main(void)
{
    (void)epg_test_python();
    return epg_test_main(make_suite());
}
