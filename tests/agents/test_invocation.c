/* An adapter and options become exactly what is started; a secret never becomes part of what is recorded. */
#include "agents/invocation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/support.h"

static char *const host[] = {(char[]){"PATH=/nowhere"},
                             (char[]){"HOME=/home/user"},
                             (char[]){"LANG=C"},
                             (char[]){"EDITOR=vi"},
                             (char[]){"CODEX_API_KEY=sk-0123456789abcdefghijkl"},
                             (char[]){"ANTHROPIC_API_KEY=sk-ant-0123456789abcdefgh"},
                             (char[]){"MY_TOKEN=very-secret-token"},
                             NULL};

static void adapter_called(const char *name, epg_adapter *out)
{
    epg_error err = {0};
    EPG_AUTO_FREE char *path = epg_format("%s/agents/adapters/%s.json", EPG_TEST_SOURCE, name);
    epg_assert_ok(epg_adapter_read(path, out, &err), &err);
}

static epg_agent_request request_of(const epg_adapter *adapter)
{
    return (epg_agent_request){
        .adapter = adapter, .instructions = "Do {this}\nwell", .workspace = "/run/workspace", .environment = host};
}

static void expect_texts(char *const *got, const char *const *expected)
{
    size_t i = 0;
    for (; got[i] != NULL && expected[i] != NULL; i++) {
        ck_assert_str_eq(got[i], expected[i]);
    }
    ck_assert_msg(got[i] == NULL && expected[i] == NULL, "another length than %zu: %s %s", i,
                  got[i] != NULL ? got[i] : "-", expected[i] != NULL ? expected[i] : "-");
}

static bool holds(char *const *texts, const char *text)
{
    for (size_t i = 0; texts[i] != NULL; i++) {
        if (strcmp(texts[i], text) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(own_command_gets_the_task_as_an_argument)
{
    epg_error err = {0};
    const char *const command[] = {"agent", "--task={instructions}", "{other}", "{workspace}"};
    epg_agent_request request = request_of(NULL);
    request.command = command;
    request.command_count = 4;
    EPG_AUTO_INVOCATION made = {0};
    epg_assert_ok(epg_invocation_build(&request, &made, &err), &err);
    expect_texts(made.argv,
                 (const char *const[]){"agent", "--task=Do {this}\nwell", "{other}", "/run/workspace", NULL});
    expect_texts(made.recorded_argv,
                 (const char *const[]){"agent", "--task=@agent/instructions.md", "{other}", "/run/workspace", NULL});
    ck_assert_int_eq(made.task_way, EPG_TASK_ARGUMENT);
    ck_assert_str_eq(made.stdout_media_type, "text/plain");
    ck_assert_uint_eq(made.identity_count, 1);
    ck_assert_str_eq(made.identity[0].value, "command");
    expect_texts(made.environment, (const char *const[]){"HOME=/home/user", "LANG=C", NULL});
}
END_TEST

START_TEST(own_command_without_a_placeholder_gets_a_file)
{
    epg_error err = {0};
    const char *const command[] = {"python3", "agent.py"};
    const epg_pair options[] = {{(char[]){"model"}, (char[]){"scripted"}}};
    const char *const inherit[] = {"EDITOR"};
    const char *const secret[] = {"MY_TOKEN"};
    epg_agent_request request = request_of(NULL);
    request.command = command;
    request.command_count = 2;
    request.options = options;
    request.option_count = 1;
    request.inherit = inherit;
    request.inherit_count = 1;
    request.secret = secret;
    request.secret_count = 1;
    EPG_AUTO_INVOCATION made = {0};
    epg_assert_ok(epg_invocation_build(&request, &made, &err), &err);
    ck_assert_int_eq(made.task_way, EPG_TASK_FILE_WAY);
    expect_texts(made.argv, (const char *const[]){"python3", "agent.py", NULL});
    ck_assert_uint_eq(made.identity_count, 2);
    ck_assert_str_eq(made.identity[0].name, "model");
    ck_assert_str_eq(made.identity[1].name, "provider");
    ck_assert(holds(made.environment, "MY_TOKEN=very-secret-token"));
    ck_assert(holds(made.environment, "EDITOR=vi"));
    expect_texts(made.secrets, (const char *const[]){"very-secret-token", NULL});
    request.task_way = EPG_TASK_ARGUMENT;
    EPG_AUTO_INVOCATION none = {0};
    epg_assert_code(epg_invocation_build(&request, &none, &err), EPG_ERR_USAGE, &err);
    request.task_way = EPG_TASK_STDIN;
    epg_assert_ok(epg_invocation_build(&request, &none, &err), &err);
    ck_assert_int_eq(none.task_way, EPG_TASK_STDIN);
}
END_TEST

START_TEST(adapter_makes_the_observed_command)
{
    epg_error err = {0};
    EPG_AUTO_ADAPTER adapter = {0};
    adapter_called("codex", &adapter);
    const epg_pair options[] = {{(char[]){"effort"}, (char[]){"high"}}, {(char[]){"model"}, (char[]){"m1"}}};
    epg_agent_request request = request_of(&adapter);
    request.options = options;
    request.option_count = 2;
    EPG_AUTO_INVOCATION made = {0};
    epg_assert_ok(epg_invocation_build(&request, &made, &err), &err);
    expect_texts(made.argv,
                 (const char *const[]){"codex",
                                       "--ask-for-approval",
                                       "never",
                                       "--config",
                                       "model_reasoning_effort=\"high\"",
                                       "--config",
                                       "allow_login_shell=false",
                                       "--config",
                                       "analytics.enabled=false",
                                       "--config",
                                       "shell_environment_policy.exclude=[\"CODEX_API_KEY\",\"OPENAI_API_KEY\"]",
                                       "--config",
                                       "web_search=\"disabled\"",
                                       "--disable",
                                       "plugins",
                                       "--disable",
                                       "apps",
                                       "exec",
                                       "--ephemeral",
                                       "--json",
                                       "--model",
                                       "m1",
                                       "--skip-git-repo-check",
                                       "--ignore-user-config",
                                       "--ignore-rules",
                                       "--sandbox",
                                       "danger-full-access",
                                       "--color",
                                       "never",
                                       "Do {this}\nwell",
                                       NULL});
    ck_assert_str_eq(made.stdout_media_type, "application/x-ndjson");
    ck_assert(holds(made.environment, "CODEX_API_KEY=sk-0123456789abcdefghijkl"));
    ck_assert(!holds(made.environment, "ANTHROPIC_API_KEY=sk-ant-0123456789abcdefgh"));
    ck_assert(!holds(made.environment, "PATH=/nowhere"));
    char **whole = epg_invocation_environment(&made, "/nowhere", "/client", "/tmp/s.sock", "/run/workspace");
    ck_assert_str_eq(whole[0], "PATH=/client:/nowhere");
    ck_assert(holds(whole, "EVOPOLICYGYM_SESSION_SOCKET=/tmp/s.sock"));
    ck_assert(holds(whole, "EVOPOLICYGYM_WORKSPACE=/run/workspace"));
    ck_assert(holds(whole, "PYTHONUNBUFFERED=1"));
    epg_texts_free(whole);
}
END_TEST

START_TEST(record_has_names_and_no_secret)
{
    epg_error err = {0};
    EPG_AUTO_ADAPTER adapter = {0};
    adapter_called("claude-code", &adapter);
    const epg_pair options[] = {{(char[]){"model"}, (char[]){"m1"}}};
    const char *const more[] = {"--extra", "sk-ant-0123456789abcdefgh"};
    epg_agent_request request = request_of(&adapter);
    request.options = options;
    request.option_count = 1;
    request.command = more;
    request.command_count = 2;
    request.home = "/run/agent/home";
    EPG_AUTO_INVOCATION made = {0};
    epg_assert_ok(epg_invocation_build(&request, &made, &err), &err);
    ck_assert(holds(made.argv, "--bare"));
    ck_assert(holds(made.environment, "HOME=/run/agent/home"));
    ck_assert(holds(made.environment, "CLAUDE_CONFIG_DIR=/run/agent/home/.claude"));
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = NULL;
    epg_assert_ok(epg_invocation_redactor(&made, &adapter, &redactor, &err), &err);
    EPG_AUTO_BUFFER out = {0};
    epg_assert_ok(epg_invocation_write(&made, redactor, &out, &err), &err);
    ck_assert_ptr_null(strstr(epg_buffer_cstr(&out), "sk-ant"));
    EPG_AUTO_JSON *document = NULL;
    epg_assert_ok(epg_json_parse(epg_buffer_span(&out), "invocation.json", &document, &err), &err);
    /* the keys of the sample Run's own invocation.json */
    EPG_AUTO_FREE char *sample_text =
        epg_test_read_text(EPG_TEST_SOURCE "/tests/vectors/data/sample-run", "agent/invocation.json");
    EPG_AUTO_JSON *sample = NULL;
    epg_assert_ok(epg_json_parse(epg_span_text(sample_text), "sample", &sample, &err), &err);
    const char *key = NULL;
    json_t *value = NULL;
    ck_assert_uint_eq(json_object_size(document), json_object_size(sample));
    json_object_foreach(sample, key, value)
    {
        ck_assert_int_eq(json_typeof(json_object_get(document, key)), json_typeof(value));
    }
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(document, "command"), 0)), "claude");
    const json_t *environment = json_object_get(document, "environment");
    ck_assert_uint_eq(json_object_size(environment), 2);
    EPG_AUTO_FREE char *names = json_dumps(environment, 0);
    ck_assert_ptr_nonnull(strstr(names, "\"ANTHROPIC_API_KEY\""));
}
END_TEST

START_TEST(mistakes_are_told_at_once)
{
    epg_error err = {0};
    EPG_AUTO_ADAPTER adapter = {0};
    adapter_called("codex", &adapter);
    static const struct {
        const char *name, *value, *told;
    } wrong[] = {{"model", "", "model"},
                 {"model", "a b", "model"},
                 {"effort", "very high", "effort"},
                 {"base-url", "ftp://x", "base-url"},
                 {"colour", "x", "colour"}};
    epg_agent_request request = request_of(&adapter);
    EPG_AUTO_INVOCATION none = {0};
    epg_assert_code(epg_invocation_build(&request, &none, &err), EPG_ERR_USAGE, &err);
    ck_assert_msg(strstr(err.text, "model") != NULL, "%s", err.text);
    for (size_t i = 0; i < EPG_COUNT(wrong); i++) {
        EPG_AUTO_FREE char *name = epg_strdup(wrong[i].name);
        EPG_AUTO_FREE char *value = epg_strdup(wrong[i].value);
        const epg_pair options[] = {{name, value}};
        request.options = options;
        request.option_count = 1;
        epg_assert_code(epg_invocation_build(&request, &none, &err), EPG_ERR_USAGE, &err);
        ck_assert_msg(strstr(err.text, wrong[i].told) != NULL, "%s", err.text);
    }
    char long_model[EPG_MODEL_MAX + 2];
    memset(long_model, 'm', sizeof long_model - 1);
    long_model[sizeof long_model - 1] = '\0';
    const epg_pair options[] = {{(char[]){"model"}, long_model}};
    request.options = options;
    epg_assert_code(epg_invocation_build(&request, &none, &err), EPG_ERR_USAGE, &err);
    request.executable = "two\nlines";
    epg_assert_code(epg_invocation_build(&request, &none, &err), EPG_ERR_USAGE, &err);
    epg_agent_request empty = request_of(NULL);
    epg_assert_code(epg_invocation_build(&empty, &none, &err), EPG_ERR_USAGE, &err);
    const char *const inherit[] = {"PATH"};
    empty.command = inherit;
    empty.command_count = 1;
    empty.inherit = inherit;
    empty.inherit_count = 1;
    epg_assert_code(epg_invocation_build(&empty, &none, &err), EPG_ERR_USAGE, &err);
}
END_TEST

START_TEST(long_task_goes_another_way_or_is_refused)
{
    epg_error err = {0};
    size_t size = 140000;
    EPG_AUTO_FREE char *text = epg_alloc(size + 1);
    memset(text, 'x', size);
    const epg_pair options[] = {{(char[]){"model"}, (char[]){"m1"}}};
    static const struct {
        const char *name;
        epg_task_way way;
    } expected[] = {{"codex", EPG_TASK_STDIN}, {"claude-code", EPG_TASK_STDIN}, {"kimi-code", EPG_TASK_FILE_WAY}};
    for (size_t i = 0; i < EPG_COUNT(expected); i++) {
        EPG_AUTO_ADAPTER adapter = {0};
        adapter_called(expected[i].name, &adapter);
        epg_agent_request request = request_of(&adapter);
        request.options = options;
        request.option_count = 1;
        request.instructions = text;
        EPG_AUTO_INVOCATION made = {0};
        epg_assert_ok(epg_invocation_build(&request, &made, &err), &err);
        ck_assert_int_eq(made.task_way, expected[i].way);
        ck_assert(!holds(made.argv, text));
    }
    EPG_AUTO_ADAPTER adapter = {0};
    adapter_called("qoder", &adapter);
    epg_agent_request request = request_of(&adapter);
    request.options = options;
    request.option_count = 1;
    request.instructions = text;
    EPG_AUTO_INVOCATION none = {0};
    epg_assert_code(epg_invocation_build(&request, &none, &err), EPG_ERR_USAGE, &err);
    ck_assert_msg(strstr(err.text, "140000") != NULL, "%s", err.text);
}
END_TEST

START_TEST(private_home_is_laid_out_with_a_login)
{
    epg_error err = {0};
    EPG_AUTO_ADAPTER adapter = {0};
    adapter_called("kimi-code", &adapter);
    const epg_pair options[] = {{(char[]){"model"}, (char[]){"m1"}}};
    char *user = epg_test_directory();
    char *home = epg_test_directory();
    epg_test_write_text(user, ".kimi-code/config.toml", "key");
    epg_test_write_text(user, ".kimi-code/credentials/a.json", "token");
    epg_test_write_text(user, ".kimi-code/history", "private");
    epg_agent_request request = request_of(&adapter);
    request.options = options;
    request.option_count = 1;
    request.home = home;
    EPG_AUTO_INVOCATION made = {0};
    epg_assert_ok(epg_invocation_build(&request, &made, &err), &err);
    int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    epg_assert_ok(epg_invocation_lay_home(&made, fd, user, &err), &err);
    EPG_AUTO_FREE char *config = epg_test_read_text(home, ".kimi-code/config.toml");
    EPG_AUTO_FREE char *token = epg_test_read_text(home, ".kimi-code/credentials/a.json");
    EPG_AUTO_FREE char *history = epg_test_read_text(home, ".kimi-code/history");
    ck_assert_str_eq(config, "key");
    ck_assert_str_eq(token, "token");
    ck_assert_ptr_null(history);
    struct stat info;
    ck_assert_int_eq(fstatat(fd, ".kimi-code/config.toml", &info, 0), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0600);
    ck_assert_int_eq(fstatat(fd, "tmp", &info, 0), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
    (void)close(fd);
    epg_test_directory_free(user);
    epg_test_directory_free(home);
}
END_TEST

START_TEST(files_of_a_home_hold_what_options_say)
{
    epg_error err = {0};
    EPG_AUTO_ADAPTER adapter = {0};
    adapter_called("opencode", &adapter);
    const epg_pair options[] = {{(char[]){"model"}, (char[]){"m\"1"}},
                                {(char[]){"base-url"}, (char[]){"http://127.0.0.1:9/v1"}}};
    epg_agent_request request = request_of(&adapter);
    request.options = options;
    request.option_count = 2;
    request.home = "/run/agent/home";
    EPG_AUTO_INVOCATION made = {0};
    epg_assert_ok(epg_invocation_build(&request, &made, &err), &err);
    ck_assert_uint_eq(made.home_file_count, 2);
    ck_assert_str_eq(made.home_files[1].path, ".config/opencode/opencode.json");
    EPG_AUTO_JSON *document = NULL;
    epg_assert_ok(epg_json_parse(epg_buffer_span(&made.home_files[1].content), "file", &document, &err), &err);
    const json_t *given = json_object_get(json_object_get(document, "provider"), "given");
    ck_assert_ptr_nonnull(json_object_get(json_object_get(given, "models"), "m\"1"));
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(given, "options"), "apiKey")),
                     "{env:OPENCODE_PROVIDER_KEY}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("invocation");
    TCase *group = tcase_create("invocation");
    tcase_add_test(group, own_command_gets_the_task_as_an_argument);
    tcase_add_test(group, own_command_without_a_placeholder_gets_a_file);
    tcase_add_test(group, adapter_makes_the_observed_command);
    tcase_add_test(group, record_has_names_and_no_secret);
    tcase_add_test(group, mistakes_are_told_at_once);
    tcase_add_test(group, long_task_goes_another_way_or_is_refused);
    tcase_add_test(group, private_home_is_laid_out_with_a_login);
    tcase_add_test(group, files_of_a_home_hold_what_options_say);
    suite_add_tcase(suite, group);
    return epg_test_main(suite);
}
