/* The client against a Host, and against peers that are none. It runs in a child; this process turns the Host. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runs/client.h"
#include "support/host.h"
#include "support/support.h"
#include "system/socket.h"

static const char policy[] = "class P:\n    def act(self, o):\n        return 1\n";
static test_host host;
static char *workspace;

static void set_up(void)
{
    epg_config config;
    epg_config_init(&config);
    config.episode_budget = 10;
    test_host_open(&host, &config, policy, NULL);
    workspace = epg_format("%s/workspace", host.path);
}

static void tear_down(void)
{
    free(workspace);
    test_host_close(&host);
}

typedef struct outcome {
    int exit_code;
    char *out;
    char *diagnostics;
} outcome;

static void outcome_free(outcome *o)
{
    free(o->out);
    free(o->diagnostics);
}

static const char *const *words(const char *line, char *copy, const char **argv)
{
    size_t count = 0;
    argv[count++] = "evopolicygym-session";
    (void)strcpy(copy, line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[count++] = word;
    }
    argv[count] = NULL;
    return argv;
}

_Noreturn static void be_client(const char *line, const char *from, const char *socket_path)
{
    char copy[256];
    const char *argv[16];
    int argc = 0;
    (void)words(line, copy, argv);
    while (argv[argc] != NULL) {
        argc++;
    }
    EPG_AUTO_FREE char *out_path = epg_format("%s/out", host.directory);
    EPG_AUTO_FREE char *diagnostics_path = epg_format("%s/diagnostics", host.directory);
    FILE *out = fopen(out_path, "we");
    FILE *diagnostics = fopen(diagnostics_path, "we");
    if (out == NULL || diagnostics == NULL || chdir(from) != 0) {
        _exit(99);
    }
    (void)setenv("EVOPOLICYGYM_SESSION_SOCKET", socket_path, 1);
    (void)setenv("EVOPOLICYGYM_WORKSPACE", workspace, 1);
    int exit_code = epg_client_main(argc, (char *const *)(uintptr_t)argv, out, diagnostics);
    (void)fclose(out);
    (void)fclose(diagnostics);
    _exit(exit_code);
}

/* Runs the client with `line` as its arguments in the directory `from`; `serve` is called until it has ended. */
static outcome run_client(const char *line, const char *from, const char *socket_path, void (*serve)(void *),
                          void *context)
{
    int status = 0;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        be_client(line, from, socket_path);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        serve(context);
        (void)usleep(1000);
    }
    return (outcome){WIFEXITED(status) ? WEXITSTATUS(status) : -1, epg_test_read_text(host.directory, "out"),
                     epg_test_read_text(host.directory, "diagnostics")};
}

static void serve_host(void *context)
{
    (void)context;
    test_host_turn(&host);
}

static outcome with_host(const char *line, const char *from)
{
    return run_client(line, from, epg_gateway_socket_path(host.gateway), serve_host, NULL);
}

START_TEST(submit_works_from_anywhere_in_the_workspace)
{
    static const struct {
        const char *from; /* below the workspace */
        const char *line;
    } cases[] = {
        {".", "submit program --episodes 0:2"},
        {".", "submit ./program/ --episodes 0"},
        {"analysis", "submit program --episodes 0"},
        {"analysis", "submit ../program --episodes=0"},
        {"program", "submit . --episodes 0"},
        {"program", "submit program --episodes 0"},
        {"analysis/deep", "--episodes 0 submit program"},
    };
    EPG_AUTO_FREE char *from = epg_format("%s/%s", workspace, cases[_i].from);
    EPG_AUTO_FREE char *deep = epg_format("%s/analysis/deep", workspace);
    ck_assert_int_eq(mkdir(deep, 0700), 0);
    outcome o EPG_CLEANUP(outcome_free) = with_host(cases[_i].line, from);
    ck_assert_msg(o.exit_code == 0, "%d: %s", o.exit_code, o.diagnostics);
    ck_assert_str_eq(o.diagnostics, "");
    EPG_AUTO_JSON *reply = json_loads(o.out, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(reply, "result"), "submission_id")),
                     "submission-000001");
    ck_assert_int_eq(o.out[strlen(o.out) - 1], '\n');
}
END_TEST

START_TEST(anything_but_the_workspaces_program_is_a_client_error)
{
    static const char *const lines[] = {"submit analysis --episodes 0", "submit /tmp --episodes 0",
                                        "submit nope --episodes 0", "submit .. --episodes 0"};
    outcome o EPG_CLEANUP(outcome_free) = with_host(lines[_i], workspace);
    ck_assert_int_eq(o.exit_code, 2);
    ck_assert_str_eq(o.out, "");
    ck_assert_ptr_nonnull(strstr(o.diagnostics, "\"client_error\""));
    ck_assert_uint_eq(host.session.submission_count, 0);
}
END_TEST

START_TEST(a_program_beside_the_workspaces_own_is_not_taken_for_it)
{
    epg_test_write_text(workspace, "analysis/program/policy.py", "");
    EPG_AUTO_FREE char *from = epg_format("%s/analysis", workspace);
    outcome o EPG_CLEANUP(outcome_free) = with_host("submit program --episodes 0", from);
    ck_assert_int_eq(o.exit_code, 2);
}
END_TEST

START_TEST(what_the_host_refuses_is_told_on_stderr)
{
    outcome o EPG_CLEANUP(outcome_free) = with_host("submit program --episodes 10", workspace);
    ck_assert_int_eq(o.exit_code, 1);
    ck_assert_str_eq(o.out, "");
    EPG_AUTO_JSON *reply = json_loads(o.diagnostics, 0, NULL);
    ck_assert_str_eq(test_error_code(reply), "invalid_request");
}
END_TEST

START_TEST(finish_status_and_wait_speak_with_the_host)
{
    outcome submitted EPG_CLEANUP(outcome_free) = with_host("submit program --episodes 0", workspace);
    outcome waited EPG_CLEANUP(outcome_free) = with_host("wait", "/");
    outcome again EPG_CLEANUP(outcome_free) = with_host("wait submission-000001 --timeout 30", "/");
    outcome status EPG_CLEANUP(outcome_free) = with_host("status", "/");
    outcome finished EPG_CLEANUP(outcome_free) = with_host("finish submission-000001", "/");
    ck_assert_str_eq(waited.out, submitted.out);
    ck_assert_str_eq(again.out, submitted.out);
    ck_assert_ptr_nonnull(strstr(status.out, "\"episodes_remaining\":9"));
    ck_assert_str_eq(finished.out,
                     "{\"ok\":true,\"protocol\":\"agent-session/v3\",\"result\":{\"agent_authority_closed\":"
                     "true,\"candidate_submission_ids\":[\"submission-000001\"]}}\n");
}
END_TEST

START_TEST(a_time_limit_of_the_clients_own_leaves_the_submission_alone)
{
    host.hold_evaluation = true;
    outcome o EPG_CLEANUP(outcome_free) = with_host("submit program --episodes 0 --timeout 0.2", workspace);
    ck_assert_int_eq(o.exit_code, 2);
    ck_assert_ptr_nonnull(strstr(o.diagnostics, "evopolicygym-session wait"));
    host.hold_evaluation = false;
    outcome waited EPG_CLEANUP(outcome_free) = with_host("wait", workspace);
    ck_assert_int_eq(waited.exit_code, 0);
    ck_assert_uint_eq(host.session.episodes_remaining, 9);
}
END_TEST

/* --- A peer that is no Host: takes one connection, says `size` bytes of `text`, and ends it. --- */

typedef struct impostor {
    int listener;
    const char *text;
    size_t size;
} impostor;

static void serve_impostor(void *context)
{
    const impostor *peer = context;
    int fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        char request[4096];
        (void)recv(fd, request, sizeof request, 0);
        (void)send(fd, peer->text, peer->size, MSG_NOSIGNAL);
        (void)close(fd);
    }
}

static const struct {
    const char *text;
    size_t size;
} replies[] = {
    {"", 0},
    {"\0\0", 2},
    {"\0\0\0\0", 4},
    {"\0\0\0\x20{\"ok\":true,\"protocol\":\"agent", 30}, /* cut off */
    {"\xff\xff\xff\xff", 4},                             /* too long */
    {"\0\0\0\2[]", 6},                                   /* no object */
    {"\0\0\0\2{]", 6},                                   /* no JSON */
    {"\0\0\0\x0b{\"ok\":true}", 15},                     /* no protocol */
    {"\0\0\0\x25{\"ok\":true,\"protocol\":\"agent-session/v2\"}", 43},
    {"\0\0\0\x22{\"ok\":1,\"protocol\":\"agent-session/v3\"}", 40},
    {"HTTP/1.1 400 Bad Request\r\n\r\n", 28},
};

START_TEST(a_reply_that_is_cut_off_or_is_none_is_a_client_error)
{
    epg_error err = {0};
    char *directory = NULL;
    char *path = NULL;
    impostor peer = {-1, replies[_i].text, replies[_i].size};
    epg_assert_ok(epg_socket_listen(&peer.listener, &directory, &path, &err), &err);
    outcome o EPG_CLEANUP(outcome_free) = run_client("status", "/", path, serve_impostor, &peer);
    (void)close(peer.listener);
    epg_socket_remove(directory, path);
    ck_assert_int_eq(o.exit_code, 2);
    ck_assert_str_eq(o.out, "");
    EPG_AUTO_JSON *told = json_loads(o.diagnostics, 0, NULL);
    ck_assert_str_eq(test_error_code(told), "client_error");
}
END_TEST

START_TEST(no_host_is_a_client_error)
{
    outcome o EPG_CLEANUP(outcome_free) = run_client("status", "/", "/nowhere/session.sock", serve_host, NULL);
    ck_assert_int_eq(o.exit_code, 2);
    ck_assert_ptr_nonnull(strstr(o.diagnostics, "client_error"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client");
    TCase *cases = tcase_create("client");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, submit_works_from_anywhere_in_the_workspace, 0, 7);
    tcase_add_loop_test(cases, anything_but_the_workspaces_program_is_a_client_error, 0, 4);
    tcase_add_test(cases, a_program_beside_the_workspaces_own_is_not_taken_for_it);
    tcase_add_test(cases, what_the_host_refuses_is_told_on_stderr);
    tcase_add_test(cases, finish_status_and_wait_speak_with_the_host);
    tcase_add_test(cases, a_time_limit_of_the_clients_own_leaves_the_submission_alone);
    tcase_add_loop_test(cases, a_reply_that_is_cut_off_or_is_none_is_a_client_error, 0, (int)EPG_COUNT(replies));
    tcase_add_test(cases, no_host_is_a_client_error);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
