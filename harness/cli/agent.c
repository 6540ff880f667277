/* `evopolicygym agent`: which agents there are, what would be run, and what is missing for it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/probe.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/agent_options.h"
#include "cli/cli.h"

#define LIST_SCHEMA "evopolicygym/agent-list/v1"
#define SHOW_SCHEMA "evopolicygym/agent-description/v1"
#define CHECK_SCHEMA "evopolicygym/agent-check/v1"

/* Where the paths of a Run would be: it is made later. */
#define RUN_WORKSPACE "/RUN/workspace"
#define RUN_HOME "/RUN/agent/home"

static const char usage[] = "Usage: evopolicygym agent list [--json]\n"
                            "       evopolicygym agent show NAME [OPTIONS]\n"
                            "       evopolicygym agent check NAME [OPTIONS]\n"
                            "\n"
                            "  list         which Agents there are, which are installed, in which version,\n"
                            "               and whether that was tested\n"
                            "  show NAME    the exact command that a Run would start, without its secrets\n"
                            "  check NAME   whether a Run could start it now, and what is missing; spends\n"
                            "               nothing (exit 1: something is missing)";

static const char examples[] = "  evopolicygym agent list\n"
                               "  evopolicygym agent show NAME --model MODEL --effort high\n"
                               "  evopolicygym agent check NAME --model MODEL\n"
                               "  evopolicygym agent check --agent-file my-agent.json\n";

static void put_line(epg_buffer *out, const char *name, const char *version, const char *text)
{
    enum { TEXT_COLUMN = 26 };
    (void)epg_buffer_format(out, "%-14s %-10s ", name, version);
    epg_fill_text(text, TEXT_COLUMN, TEXT_COLUMN, out);
}

typedef struct listed {
    const epg_adapter_entry *entry;
    char *executable;
    char *version;
    bool tested;
    char *why;
} listed;

static void look_at(const epg_adapter_entry *entry, listed *out)
{
    epg_error err = {.text = ""};
    *out = (listed){.entry = entry};
    if (entry->error.code != EPG_OK) {
        out->why = epg_strdup(entry->error.text);
        return;
    }
    out->executable = epg_probe_find(&entry->adapter, NULL, getenv("PATH"), &out->why);
    if (out->executable == NULL) {
        return;
    }
    if (epg_probe_version(&entry->adapter, out->executable, environ, &out->version, &err) != EPG_OK) {
        out->why = epg_strdup(err.text);
        return;
    }
    out->tested = epg_probe_tested(&entry->adapter, out->version);
}

static void list_json(const listed *all, size_t count, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_array(&writer, "agents");
    for (size_t i = 0; i < count; i++) {
        epg_json_object(&writer, NULL);
        epg_json_put_bool(&writer, "built_in", all[i].entry->adapter.built_in);
        epg_json_put_text(&writer, "executable", all[i].executable);
        epg_json_put_text(&writer, "fault", all[i].why);
        epg_json_put_text(&writer, "file", all[i].entry->adapter.path);
        epg_json_put_text(&writer, "name", all[i].entry->adapter.name);
        epg_json_put_bool(&writer, "tested", all[i].tested);
        epg_json_put_text(&writer, "version", all[i].version);
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_put_text(&writer, "schema", LIST_SCHEMA);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static void list_text(const listed *all, size_t count, epg_buffer *out)
{
    put_line(out, "AGENT", "VERSION", "WHAT IT IS, OR LACKS");
    for (size_t i = 0; i < count; i++) {
        const epg_adapter *adapter = &all[i].entry->adapter;
        const char *own = adapter->built_in ? "" : ", your own";
        const json_t *program = json_object_get(adapter->document, "executable");
        const char *install = json_string_value(json_object_get(program, "install"));
        bool absent = all[i].executable == NULL && all[i].entry->error.code == EPG_OK && install != NULL;
        EPG_AUTO_FREE char *text = absent ? epg_format("not installed: %s", install)
                                   : all[i].why != NULL
                                       ? epg_strdup(all[i].why)
                                       : epg_format("%s, %s%s", epg_adapter_title(adapter),
                                                    all[i].tested ? "tested" : "not tested with this version", own);
        put_line(out, adapter->name, all[i].version != NULL ? all[i].version : "-", text);
    }
    put_line(out, "command", "-", "any command of yours: evopolicygym run ... -- COMMAND");
}

static epg_code do_list(bool as_json, epg_error *err)
{
    epg_adapter_entry *entries = NULL;
    size_t count = 0;
    EPG_AUTO_BUFFER out = {0};
    EPG_TRY(epg_adapter_list(&entries, &count, err));
    EPG_AUTO_FREE listed *all = epg_alloc_array(count, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        look_at(&entries[i], &all[i]);
    }
    if (as_json) {
        list_json(all, count, &out);
    } else {
        list_text(all, count, &out);
    }
    for (size_t i = 0; i < count; i++) {
        free(all[i].executable);
        free(all[i].version);
        free(all[i].why);
    }
    epg_adapter_list_free(entries, count);
    return epg_cli_print(&out, err);
}

/* Required options that were not given stand as their names in capitals, so that the command can be shown. */
static void fill_required(epg_cli_agent *agent)
{
    const char *name = NULL;
    json_t *option = NULL;
    json_t *options = json_object_get(agent->adapter.document, "options");
    json_object_foreach(options, name, option)
    {
        if (json_is_true(json_object_get(option, "required")) && json_object_get(option, "default") == NULL &&
            !epg_cli_agent_has(agent, name)) {
            EPG_AUTO_FREE char *value = epg_strdup(name);
            for (char *c = value; *c != '\0'; c++) {
                *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
            }
            epg_cli_agent_add(agent, name, value);
        }
    }
}

static void put_options(const epg_adapter *adapter, epg_buffer *out)
{
    const char *name = NULL;
    json_t *option = NULL;
    json_t *options = json_object_get(adapter->document, "options");
    (void)epg_buffer_text(out, "\nOptions (--agent-option NAME=VALUE):\n");
    json_object_foreach(options, name, option)
    {
        const char *standard = json_string_value(json_object_get(option, "default"));
        (void)epg_buffer_format(out, "  %-14s %s%s%s%s\n", name, json_string_value(json_object_get(option, "help")),
                                json_is_true(json_object_get(option, "required")) ? "; required" : "",
                                standard != NULL ? "; default " : "", standard != NULL ? standard : "");
    }
}

static void show_text(const epg_adapter *adapter, const epg_invocation *made, const epg_redactor *redactor,
                      epg_buffer *out)
{
    static const char *const ways[] = {"", "as an argument", "on stdin",
                                       "as the file instructions.md of the workspace"};
    EPG_AUTO_BUFFER text = {0};
    (void)epg_buffer_format(&text, "%s (%s), from %s\n", epg_adapter_title(adapter), adapter->name, adapter->path);
    (void)epg_buffer_format(&text, "The task goes in %s.\n\nCommand, in %s:\n ", ways[made->task_way], RUN_WORKSPACE);
    for (size_t i = 0; made->recorded_argv[i] != NULL; i++) {
        EPG_AUTO_FREE char *word = epg_shell_word(made->recorded_argv[i]);
        (void)epg_buffer_format(&text, " %s", word);
    }
    (void)epg_buffer_text(&text, "\n\nEnvironment, beside PATH and the session's variables:\n");
    for (size_t i = 0; made->environment[i] != NULL; i++) {
        (void)epg_buffer_format(&text, "  %s\n", made->environment[i]);
    }
    for (size_t i = 0; i < made->home_file_count; i++) {
        (void)epg_buffer_format(&text, "%s  %s\n", i == 0 ? "\nIn the Run's private home:\n" : "",
                                made->home_files[i].path);
    }
    put_options(adapter, &text);
    (void)epg_redact(redactor, epg_buffer_span(&text), out);
}

static epg_code do_show(epg_cli_agent *agent, bool as_json, epg_error *err)
{
    EPG_AUTO_INVOCATION made = {0};
    EPG_AUTO_BUFFER out = {0};
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = NULL;
    fill_required(agent);
    epg_cli_agent_request(agent, &agent->request);
    EPG_TRY(epg_invocation_build(&agent->request, &made, err));
    EPG_TRY(epg_invocation_redactor(&made, &agent->adapter, &redactor, err));
    if (!as_json) {
        show_text(&agent->adapter, &made, redactor, &out);
        return epg_cli_print(&out, err);
    }
    EPG_AUTO_BUFFER invocation = {0};
    EPG_AUTO_JSON *document = NULL;
    EPG_TRY(epg_invocation_write(&made, redactor, &invocation, err));
    EPG_TRY(epg_json_parse(epg_buffer_span(&invocation), "invocation", &document, err));
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "file", agent->adapter.path);
    epg_json_put_json(&writer, "invocation", document);
    epg_json_put_text(&writer, "name", agent->adapter.name);
    epg_json_put_text(&writer, "schema", SHOW_SCHEMA);
    epg_json_put_text(&writer, "title", epg_adapter_title(&agent->adapter));
    epg_json_end(&writer);
    epg_json_finish(&writer);
    return epg_cli_print(&out, err);
}

static const char *const states[] = {
    [EPG_CHECK_GOOD] = "ok", [EPG_CHECK_NOTE] = "note", [EPG_CHECK_MISSING] = "missing"};

static void check_json(const epg_adapter *adapter, const epg_check_report *report, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_array(&writer, "checks");
    for (size_t i = 0; i < report->count; i++) {
        epg_json_object(&writer, NULL);
        epg_json_put_text(&writer, "state", states[report->lines[i].state]);
        epg_json_put_text(&writer, "text", report->lines[i].text);
        epg_json_put_text(&writer, "what", report->lines[i].what);
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_put_text(&writer, "name", adapter->name);
    epg_json_put_bool(&writer, "ready", report->ready);
    epg_json_put_text(&writer, "schema", CHECK_SCHEMA);
    epg_json_put_text(&writer, "version", report->version);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code do_check(epg_cli_agent *agent, bool as_json, bool *negative, epg_error *err)
{
    EPG_AUTO_BUFFER out = {0};
    epg_check_report report = {0};
    epg_cli_agent_request(agent, &agent->request);
    epg_agent_check(&agent->request, agent->login_directory, &report);
    if (as_json) {
        check_json(&agent->adapter, &report, &out);
    } else {
        for (size_t i = 0; i < report.count; i++) {
            (void)epg_buffer_format(&out, "%-8s %-11s %s\n", states[report.lines[i].state], report.lines[i].what,
                                    report.lines[i].text);
        }
        (void)epg_buffer_text(&out, report.ready ? "ready\n" : "not ready\n");
    }
    *negative = !report.ready;
    epg_check_report_free(&report);
    return epg_cli_print(&out, err);
}

static epg_code run_agent(epg_options *options, bool *negative, epg_error *err)
{
    static const char *const actions[] = {"list", "show", "check"};
    const char *action = options->operands[0];
    bool as_json = epg_option_given(options, "json");
    if (strcmp(action, "list") == 0) {
        return options->operand_count == 1 ? do_list(as_json, err)
                                           : epg_fail(err, EPG_ERR_USAGE, "agent list takes no name");
    }
    bool show = strcmp(action, "show") == 0;
    if (!show && strcmp(action, "check") != 0) {
        return epg_cli_no_command("agent", action, actions, EPG_COUNT(actions), err);
    }
    bool has_file = epg_option_given(options, "agent-file");
    if (options->operand_count != (has_file ? 1U : 2U)) {
        return epg_fail(err, EPG_ERR_USAGE, "name one agent: agent %s NAME, or agent %s --agent-file FILE", action,
                        action);
    }
    EPG_CLEANUP(epg_cli_agent_free) epg_cli_agent agent = {0};
    EPG_TRY(epg_cli_agent_read(options, has_file ? NULL : options->operands[1], &agent, err));
    if (agent.adapter.document == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "command is whatever you put after -- of evopolicygym run");
    }
    agent.request.workspace = RUN_WORKSPACE;
    agent.request.home = agent.private_home ? RUN_HOME : NULL;
    agent.request.instructions = EPG_RECORDED_INSTRUCTIONS;
    agent.request.root = geteuid() == 0;
    return show ? do_show(&agent, as_json, err) : do_check(&agent, as_json, negative, err);
}

static const epg_option table[] = {
    EPG_CLI_AGENT_OPTIONS,
    EPG_CLI_JSON,
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_agent = {
    .name = "agent",
    .summary = "tell which Agents there are, and what is missing for one",
    .usage = usage,
    .examples = examples,
    .wanted = "say what to do: agent list, agent show NAME or agent check NAME",
    .options = {table},
    .least = 1,
    .most = SIZE_MAX,
    .run = run_agent,
};
