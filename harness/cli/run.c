/* `evopolicygym run`: an Agent improves a Program. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/agent_options.h"
#include "cli/cli.h"
#include "cli/outcome.h"
#include "cli/program_source.h"
#include "cli/setup.h"
#include "cli/traces_option.h"
#include "programs/store.h"
#include "runs/records.h"
#include "runs/request.h"
#include "runs/run.h"
#include "system/files.h"

static const char usage[] =
    "Usage: evopolicygym run RUN -b SPEC -p DIR --agent NAME [OPTIONS]\n"
    "       evopolicygym run RUN -b SPEC -p DIR [OPTIONS] -- AGENT-COMMAND...\n"
    "       evopolicygym run RUN --like OTHER-RUN [OPTIONS]\n\n"
    "Runs an Agent in a workspace of its own until it finishes, its time is over, or it ends; then selects on\n"
    "hidden Validation, measures on held-out Assessment, and leaves the whole record in the new directory RUN.\n\n"
    "The Agent works in RUN/workspace; a word of its command that names a file from here (with a '/') is made\n"
    "absolute. The task text reaches the command as {instructions} in an argument, or in workspace/instructions.md.\n\n"
    "Ctrl-C ends a Run early; 'evopolicygym resume RUN' goes on with it.";
static const char examples[] = "  # An agent CLI that is installed and logged in; 'agent list' tells which are.\n"
                               "  evopolicygym run out/first -b cartpole -p programs/examples/cartpole \\\n"
                               "      --agent NAME --model MODEL --episode-budget 200\n\n"
                               "  # A command of your own, and the result measured: the three best submissions\n"
                               "  # that it names are validated, and the winner is assessed on unseen Episodes.\n"
                               "  evopolicygym run out/second -b cartpole -p programs/examples/cartpole \\\n"
                               "      --episode-budget 60 --validation-episodes 20 --assessment-episodes 50 \\\n"
                               "      -- python3 agents/demo/demo_agent.py\n\n"
                               "  # A command that takes the task as an argument.\n"
                               "  evopolicygym run out/third -b cartpole -p my-program \\\n"
                               "      -- my-agent --task '{instructions}'\n\n"
                               "  # The same again with another seed; begin with what another Run ended with.\n"
                               "  evopolicygym run out/again --like out/second --seed 7\n"
                               "  evopolicygym run out/more --like out/second -p out/second:final\n";

enum { CONFIG_MAX = 1024 * 1024 };

/* The Agent works in its workspace: a word of its command that names a file from here is made absolute. */
static char **absolute_words(const char *const *words, size_t count)
{
    char **out = epg_alloc_array(count + 1, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        bool relative = words[i][0] != '/' && strchr(words[i], '/') != NULL;
        out[i] = relative && stat(words[i], &info) == 0 && S_ISREG(info.st_mode) ? realpath(words[i], NULL) : NULL;
        out[i] = out[i] != NULL ? out[i] : epg_strdup(words[i]);
    }
    return out;
}

static bool names_agent(const epg_options *options)
{
    return epg_option_given(options, "agent") || epg_option_given(options, "agent-file") || options->rest_count > 0;
}

/* The Agent of the Run that --like names, as it was. */
static epg_code keep_likeness(const epg_options *options, epg_error *err)
{
    static const char *const changes[] = {"model",      "effort",    "agent-option", "agent-executable",
                                          "agent-task", "agent-home"};
    for (size_t i = 0; i < EPG_COUNT(changes); i++) {
        if (epg_option_given(options, changes[i])) {
            return epg_fail(err, EPG_ERR_USAGE,
                            "--%s changes the Agent that --like gives: name the Agent too (--agent NAME)", changes[i]);
        }
    }
    return EPG_OK;
}

/* A variable that is to be handed on must be there. */
static epg_code check_variables(const epg_option *option, epg_error *err)
{
    for (size_t i = 0; i < option->value_count; i++) {
        if (strchr(option->values[i], '=') == NULL && getenv(option->values[i]) == NULL) {
            return epg_fail(err, EPG_ERR_USAGE, "--%s %s: that variable is not set: export it, or leave this out",
                            option->name, option->values[i]);
        }
    }
    return EPG_OK;
}

static epg_code read_agent(const epg_options *options, epg_cli_agent *agent, epg_run_request *request, epg_error *err)
{
    const epg_option *name = epg_option_find(options, "agent");
    if (!names_agent(options) && (request->agent.command_count > 0 || request->agent.adapter != NULL)) {
        return keep_likeness(options, err);
    }
    EPG_TRY(epg_cli_agent_read(options, name->value, agent, err));
    if (options->rest_count == 0 && agent->adapter.document == NULL) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "name an Agent (--agent NAME) or its command after --: evopolicygym run RUN ... -- my-agent");
    }
    EPG_TRY(epg_cli_agent_look(agent, err));
    epg_cli_agent_request(agent, &request->agent);
    request->agent_private_home = agent->private_home;
    request->agent_login = agent->login_directory;
    agent->command = absolute_words(options->rest, options->rest_count);
    request->agent.command = (const char *const *)agent->command;
    request->agent.command_count = options->rest_count;
    const epg_option *inherit = epg_option_find(options, "inherit");
    const epg_option *secret = epg_option_find(options, "secret");
    EPG_TRY(check_variables(inherit, err));
    EPG_TRY(check_variables(secret, err));
    request->agent.inherit = (const char *const *)inherit->values;
    request->agent.inherit_count = inherit->value_count;
    request->agent.secret = (const char *const *)secret->values;
    request->agent.secret_count = secret->value_count;
    return EPG_OK;
}

/* The Agent is contained as the Policies are unless the user says otherwise; a command gets no network, an agent CLI,
 * which must reach its model, the Host's. */
static epg_code read_containment(const epg_options *options, const epg_setup *setup, epg_run_request *request,
                                 epg_error *err)
{
    const epg_option *profile = epg_option_find(options, "agent-execution");
    const epg_option *network = epg_option_find(options, "agent-network");
    const epg_option *shown = epg_option_find(options, "agent-show");
    request->agent_profile = setup->pool.execution.profile;
    if (profile->given) {
        EPG_TRY(epg_profile_parse(profile->value, &request->agent_profile, err));
    }
    if (request->agent_profile == EPG_PROFILE_PROCESS && !epg_option_given(options, "allow-unsafe-process")) {
        return epg_fail(
            err, EPG_ERR_USAGE,
            "--agent-execution process gives the Agent all your rights; add --allow-unsafe-process to accept that");
    }
    if (request->agent_profile == EPG_PROFILE_PROCESS && (network->given || shown->given)) {
        return epg_fail(err, EPG_ERR_USAGE, "--%s goes with --agent-execution sandbox only",
                        network->given ? network->name : shown->name);
    }
    if (epg_option_given(options, "allow-unsafe-process") && request->agent_profile != EPG_PROFILE_PROCESS &&
        setup->pool.execution.profile != EPG_PROFILE_PROCESS) {
        return epg_fail(
            err, EPG_ERR_USAGE,
            "--allow-unsafe-process acknowledges --execution process or --agent-execution process; give one");
    }
    const char *text = network->given ? network->value : request->agent.adapter != NULL ? "host" : "none";
    for (size_t i = 0; i < shown->value_count; i++) {
        if (access(shown->values[i], F_OK) != 0) {
            return epg_fail(err, EPG_ERR_USAGE, "--agent-show %s: %s", shown->values[i], strerror(errno));
        }
    }
    request->agent_shown = (const char *const *)shown->values;
    request->agent_shown_count = shown->value_count;
    return epg_network_parse(text, &request->agent_network, err);
}

static epg_code read_skills(const epg_options *options, epg_skill **skills, size_t *count, epg_error *err)
{
    const epg_option *option = epg_option_find(options, "skill");
    *skills = epg_alloc_array(option->value_count, sizeof **skills);
    for (; *count < option->value_count; ++*count) {
        if (epg_skill_capture(option->values[*count], &(*skills)[*count], err) != EPG_OK) {
            return epg_fail_as(err, EPG_ERR_USAGE, "--skill %s", option->values[*count]);
        }
    }
    if (epg_skills_check(*skills, *count, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "--skill");
    }
    return EPG_OK;
}

static epg_code read_on_exit(const epg_options *options, uint64_t *best, epg_error *err)
{
    const epg_option *option = epg_option_find(options, "on-agent-exit");
    if (!option->given) {
        return EPG_OK;
    }
    const char *number = strncmp(option->value, "best=", 5) == 0 ? option->value + 5 : "";
    if (!epg_parse_u64(number, strlen(number), 1000, best) || *best == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "--on-agent-exit takes best=K with K from 1 to 1000");
    }
    return EPG_OK;
}

static epg_code run(const epg_options *options, epg_run_request *request, bool *negative, epg_error *err)
{
    EPG_CLEANUP(epg_run_outcome_free) epg_run_outcome outcome = {0};
    EPG_TRY(epg_run(request, &outcome, err));
    return epg_outcome_tell(request->directory, &outcome, epg_option_given(options, "json"), negative, err);
}

/* What --like takes over from another Run; everything borrows from `history` and `stored`. */
typedef struct likeness {
    epg_history history;
    epg_stored_request stored;
    bool given;
} likeness;

static void likeness_free(likeness *like)
{
    epg_stored_request_free(&like->stored);
    epg_history_free(&like->history);
}

/* The other Run's settings stand where no flag was given; its acknowledgements are not taken over. */
static epg_code read_likeness(epg_options *options, likeness *out, epg_error *err)
{
    const epg_option *like = epg_option_find(options, "like");
    if (!like->given) {
        return EPG_OK;
    }
    EPG_AUTO_CLOSE int run = -1;
    EPG_TRY(epg_run_directory_open(like->value, &run, err));
    if (epg_history_read(run, &out->history, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "--like %s", like->value);
    }
    if (out->history.request == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "--like %s: that Run has no config.json; use --config with its \"config\"",
                        like->value);
    }
    const json_t *request = out->history.request;
    const json_t *benchmark = json_object_get(request, "benchmark");
    const json_t *execution = json_object_get(request, "execution");
    epg_option_default(options, "benchmark", json_string_value(json_object_get(benchmark, "spec")));
    epg_option_default(options, "benchmark-python", json_string_value(json_object_get(benchmark, "python")));
    epg_option_default(options, "execution", json_string_value(json_object_get(execution, "profile")));
    epg_option_default(options, "python", json_string_value(json_object_get(execution, "python")));
    epg_option_default(options, "preload", json_string_value(json_object_get(execution, "preload")));
    out->given = true;
    return EPG_OK;
}

static epg_code read_config(const epg_options *options, const likeness *like, epg_config *config, epg_error *err)
{
    const epg_option *file = epg_option_find(options, "config");
    epg_config_init(config);
    if (like->given) {
        EPG_TRY(epg_config_from_json(config, json_object_get(like->history.request, "config"), "--like", err));
    }
    if (file->given) {
        EPG_AUTO_BUFFER text = {0};
        EPG_AUTO_JSON *document = NULL;
        if (epg_file_read(AT_FDCWD, file->value, CONFIG_MAX, &text, err) != EPG_OK ||
            epg_json_parse(epg_buffer_span(&text), file->value, &document, err) != EPG_OK) {
            return epg_fail_as(err, EPG_ERR_USAGE, "--config");
        }
        EPG_TRY(epg_config_from_json(config, document, file->value, err));
    }
    EPG_TRY(epg_config_from_options(config, options, err));
    return epg_config_resolve(config, err);
}

/* A Run inside of the Program would be a part of it from then on, with all that is hidden from Agents. */
static epg_code keep_apart(const char *run, const char *program, epg_error *err)
{
    EPG_AUTO_FREE char *name = epg_strdup(run);
    EPG_AUTO_FREE char *above = realpath(dirname(name), NULL);
    EPG_AUTO_FREE char *root = realpath(program, NULL);
    size_t size = root != NULL ? strlen(root) : 0;
    if (above == NULL || root == NULL || strncmp(above, root, size) != 0 ||
        (above[size] != '/' && above[size] != '\0')) {
        return EPG_OK;
    }
    EPG_AUTO_FREE char *shown = epg_printable(run, strlen(run));
    EPG_AUTO_FREE char *of = epg_printable(program, strlen(program));
    return epg_fail(err, EPG_ERR_USAGE,
                    "the Run '%s' would lie in the Program '%s' and become a part of it; name a "
                    "directory outside of it, as ../out",
                    shown, of);
}

static epg_code read_program(const epg_options *options, const likeness *like, epg_program *out, const char **origin,
                             epg_error *err)
{
    const epg_option *from = epg_option_find(options, "program");
    *origin = from->value;
    if (from->given) {
        return epg_cli_program_source(from->value, "--program", out, err);
    }
    if (!like->given) {
        return epg_fail(err, EPG_ERR_USAGE, "name the Program to start from: --program DIR");
    }
    EPG_AUTO_FREE char *path = epg_format("%s/history.git", epg_option_text(options, "like"));
    epg_store *store = NULL;
    *origin = epg_option_text(options, "like");
    epg_code code = epg_store_open(path, &store, err);
    if (code == EPG_OK) {
        code = epg_store_load(store, "initial", out, err);
        epg_store_close(store);
    }
    return code == EPG_OK ? EPG_OK : epg_fail_as(err, EPG_ERR_USAGE, "--like");
}

static epg_code take_likeness(const epg_options *options, likeness *like, epg_run_request *request, epg_error *err)
{
    if (!like->given || names_agent(options)) {
        return EPG_OK;
    }
    epg_run_again_request again = {0};
    const char *directory = epg_option_text(options, "like");
    EPG_TRY(epg_stored_request_read(directory, &like->history, &again, &like->stored, err));
    if (like->stored.missing != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "--like %s: %s", directory, like->stored.missing);
    }
    request->agent = like->stored.request.agent;
    request->agent_private_home = like->stored.request.agent_private_home;
    request->agent_login = like->stored.request.agent_login;
    return EPG_OK;
}

static epg_code read_and_run(epg_options *options, bool *negative, epg_error *err)
{
    EPG_CLEANUP(epg_config_free) epg_config config = {0};
    EPG_CLEANUP(epg_setup_free) epg_setup setup = {0};
    EPG_CLEANUP(epg_cli_agent_free) epg_cli_agent agent = {0};
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    EPG_CLEANUP(likeness_free) likeness like = {0};
    epg_run_request request = {.directory = options->operands[0], .agent_profile = EPG_PROFILE_PROCESS};
    EPG_TRY(read_likeness(options, &like, err));
    EPG_TRY(read_config(options, &like, &config, err));
    EPG_TRY(take_likeness(options, &like, &request, err));
    EPG_TRY(read_agent(options, &agent, &request, err));
    EPG_TRY(read_on_exit(options, &request.best_on_exit, err));
    if (like.given) {
        epg_stored_request_traces(like.history.request, &request.full_traces, &request.trace_bytes);
    }
    EPG_TRY(epg_traces_option_read(options, &request.full_traces, &request.trace_bytes, err));
    if (epg_option_given(options, "progress")) {
        EPG_TRY(epg_progress_mode_parse(epg_option_text(options, "progress"), &request.progress, err));
    }
    EPG_TRY(read_program(options, &like, &program, &request.initial_origin, err));
    if (epg_option_given(options, "program")) {
        EPG_TRY(keep_apart(request.directory, request.initial_origin, err));
    }
    EPG_TRY(epg_setup_read(options, &setup, err));
    EPG_TRY(read_containment(options, &setup, &request, err));
    epg_skill *skills = NULL;
    size_t count = 0;
    epg_code code = read_skills(options, &skills, &count, err);
    if (code == EPG_OK) {
        request.initial = &program;
        request.config = &config;
        request.pool = &setup.pool;
        request.skills = skills;
        request.skill_count = count;
        code = run(options, &request, negative, err);
    }
    for (size_t i = 0; i < count; i++) {
        epg_skill_free(&skills[i]);
    }
    free(skills);
    return code;
}

static const epg_option options_before[] = {
    EPG_SETUP_BENCHMARK,
    {.name = "program",
     .short_name = 'p',
     .kind = EPG_OPTION_VALUE,
     .value_name = "DIR",
     .help = "the Program that the Agent starts from: a directory, or a submission of another Run, as "
             "out/first:best or out/first:submission-000003"},
    {.name = "like",
     .kind = EPG_OPTION_VALUE,
     .value_name = "RUN",
     .help = "all settings of another Run: Benchmark, Program, config, Agent; options go before them"},
    {.name = "config",
     .kind = EPG_OPTION_VALUE,
     .value_name = "FILE",
     .help = "JSON with the members that run.json records under \"config\"; options go before it"},
    {.name = "skill",
     .kind = EPG_OPTION_LIST,
     .value_name = "DIR",
     .help = "an Agent Skill to lay into the workspace; repeatable"},
    {.name = "agent",
     .short_name = 'a',
     .kind = EPG_OPTION_VALUE,
     .value_name = "NAME",
     .group = "Agent",
     .help = "the Agent ('evopolicygym agent list' tells which there are); words after -- are added to its "
             "command"},
    EPG_CLI_AGENT_OPTIONS,
    {.name = "inherit",
     .kind = EPG_OPTION_LIST,
     .value_name = "NAME",
     .help = "a variable that the Agent's command inherits; repeatable"},
    {.name = "secret",
     .kind = EPG_OPTION_LIST,
     .value_name = "NAME",
     .help = "an inherited variable whose value is kept out of all records; repeatable"},
    {.name = "on-agent-exit",
     .kind = EPG_OPTION_VALUE,
     .value_name = "best=K",
     .help = "when the Agent ends without finish: hand over its K best"},
    EPG_OPTIONS_END,
};
static const epg_option options_after[] = {
    EPG_SETUP_EVALUATION,
    EPG_SETUP_CONTAINMENT,
    {.name = "agent-execution",
     .kind = EPG_OPTION_VALUE,
     .value_name = "PROFILE",
     .help = "what the Agent may touch: sandbox or process (default: as --execution)"},
    {.name = "agent-network",
     .kind = EPG_OPTION_VALUE,
     .value_name = "NETWORK",
     .help = "of a sandboxed Agent: none, host, or proxy=HOST:PORT (default: none for a command, host for an "
             "agent of --agent)"},
    {.name = "agent-show",
     .kind = EPG_OPTION_LIST,
     .value_name = "PATH",
     .help = "a file or directory that a sandboxed Agent sees, read-only; repeatable"},
    {.name = "progress",
     .kind = EPG_OPTION_VALUE,
     .value_name = "MODE",
     .group = "Output",
     .help = "auto, plain, json or none, on standard error (default auto)"},
    EPG_TRACES_OPTIONS,
    {.name = "json", .kind = EPG_OPTION_FLAG, .help = "the outcome as one JSON document on standard output"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_run = {
    .name = "run",
    .summary = "let an Agent improve a Program, and measure what came of it",
    .usage = usage,
    .examples = examples,
    .wanted = "name one directory for the Run: evopolicygym run RUN --benchmark SPEC ...",
    .options = {options_before, epg_config_options, options_after},
    .least = 1,
    .most = 1,
    .takes_rest = true,
    .run = read_and_run,
};
