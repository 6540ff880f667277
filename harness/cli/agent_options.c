#include "cli/agent_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/probe.h"

void epg_cli_agent_free(epg_cli_agent *agent)
{
    epg_adapter_free(&agent->adapter);
    for (size_t i = 0; i < agent->option_count; i++) {
        free(agent->options[i].name);
        free(agent->options[i].value);
    }
    free(agent->options);
    free(agent->executable);
    free(agent->login_directory);
    free(agent->version);
    epg_texts_free(agent->command);
    *agent = (epg_cli_agent){0};
}

bool epg_cli_agent_has(const epg_cli_agent *agent, const char *option)
{
    for (size_t i = 0; i < agent->option_count; i++) {
        if (strcmp(agent->options[i].name, option) == 0) {
            return true;
        }
    }
    return false;
}

void epg_cli_agent_add(epg_cli_agent *agent, const char *option, const char *value)
{
    agent->options = epg_grow_array(agent->options, agent->option_count + 1, sizeof *agent->options);
    agent->options[agent->option_count++] = (epg_pair){epg_strdup(option), epg_strdup(value)};
}

static epg_code add_once(epg_cli_agent *agent, const char *option, const char *value, epg_error *err)
{
    if (epg_cli_agent_has(agent, option)) {
        return epg_fail(err, EPG_ERR_USAGE, "the agent's option %s is given twice", option);
    }
    epg_cli_agent_add(agent, option, value);
    return EPG_OK;
}

static epg_code read_options(const epg_options *options, epg_cli_agent *agent, epg_error *err)
{
    static const char *const named[] = {"model", "effort"};
    for (size_t i = 0; i < EPG_COUNT(named); i++) {
        const epg_option *option = epg_option_find(options, named[i]);
        if (option->given) {
            EPG_TRY(add_once(agent, named[i], option->value, err));
        }
    }
    const epg_option *list = epg_option_find(options, "agent-option");
    for (size_t i = 0; i < list->value_count; i++) {
        const char *equals = strchr(list->values[i], '=');
        if (equals == NULL || equals == list->values[i]) {
            return epg_fail(err, EPG_ERR_USAGE, "--agent-option takes NAME=VALUE, not \"%s\"", list->values[i]);
        }
        EPG_AUTO_FREE char *name = epg_strndup(list->values[i], (size_t)(equals - list->values[i]));
        EPG_TRY(add_once(agent, name, equals + 1, err));
    }
    return EPG_OK;
}

static epg_code read_home(const epg_options *options, epg_cli_agent *agent, epg_error *err)
{
    const epg_option *home = epg_option_find(options, "agent-home");
    agent->private_home = agent->adapter.document != NULL && epg_adapter_private_home(&agent->adapter);
    if (!home->given) {
        return EPG_OK;
    }
    if (strcmp(home->value, "shared") == 0) {
        agent->private_home = false;
        return EPG_OK;
    }
    if (!agent->private_home) {
        return epg_fail(err, EPG_ERR_USAGE, "--agent-home needs an agent with a private home, and %s has none",
                        agent->adapter.name != NULL ? agent->adapter.name : "a command of your own");
    }
    agent->login_directory = realpath(home->value, NULL);
    if (agent->login_directory == NULL || access(agent->login_directory, R_OK | X_OK) != 0) {
        return epg_fail(err, EPG_ERR_USAGE, "--agent-home %s: no such directory that can be read", home->value);
    }
    return EPG_OK;
}

static epg_code read_all(const epg_options *options, const char *name, epg_cli_agent *agent, epg_error *err)
{
    const epg_option *file = epg_option_find(options, "agent-file");
    if (file->given && name != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "give an agent's name or --agent-file, not both");
    }
    if (file->given) {
        EPG_TRY(epg_adapter_read(file->value, &agent->adapter, err));
    } else if (name != NULL && strcmp(name, "command") != 0) {
        EPG_TRY(epg_adapter_find(name, &agent->adapter, err));
    }
    const epg_option *executable = epg_option_find(options, "agent-executable");
    if (executable->given && agent->adapter.document == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "--agent-executable goes with an agent; your own command stands after --");
    }
    if (executable->given) {
        /* The agent starts in another directory than this. */
        char *resolved = strchr(executable->value, '/') != NULL ? realpath(executable->value, NULL) : NULL;
        agent->executable = resolved != NULL ? resolved : epg_strdup(executable->value);
    }
    const epg_option *way = epg_option_find(options, "agent-task");
    if (way->given && (!epg_task_way_parse(way->value, &agent->task_way) || agent->task_way == EPG_TASK_AUTO)) {
        return epg_fail(err, EPG_ERR_USAGE, "--agent-task takes argument, stdin or file");
    }
    EPG_TRY(read_options(options, agent, err));
    return read_home(options, agent, err);
}

epg_code epg_cli_agent_read(const epg_options *options, const char *name, epg_cli_agent *out, epg_error *err)
{
    epg_cli_agent agent = {0};
    epg_code code = read_all(options, name, &agent, err);
    if (code != EPG_OK) {
        epg_cli_agent_free(&agent);
        return code;
    }
    *out = agent;
    return EPG_OK;
}

epg_code epg_cli_agent_look(epg_cli_agent *agent, epg_error *err)
{
    if (agent->adapter.document == NULL) {
        return EPG_OK;
    }
    EPG_AUTO_FREE char *why = NULL;
    EPG_AUTO_FREE char *path = epg_probe_find(&agent->adapter, agent->executable, getenv("PATH"), &why);
    if (path == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "agent %s: %s", agent->adapter.name, why);
    }
    /* Whatever it says is recorded; one that tells no version may work all the same. */
    (void)epg_probe_version(&agent->adapter, path, environ, &agent->version, NULL);
    return EPG_OK;
}

void epg_cli_agent_request(const epg_cli_agent *agent, epg_agent_request *request)
{
    request->adapter = agent->adapter.document != NULL ? &agent->adapter : NULL;
    request->options = agent->options;
    request->option_count = agent->option_count;
    request->executable = agent->executable;
    request->version = agent->version;
    request->task_way = agent->task_way;
    request->environment = environ;
}
