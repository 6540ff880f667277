/* `evopolicygym run`: an Agent improves a Program. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/outcome.h"
#include "cli/setup.h"
#include "runs/run.h"

static const char usage[] =
    "Usage: evopolicygym run RUN --benchmark SPEC --program DIR [OPTIONS] -- AGENT-COMMAND...\n\n"
    "Runs an Agent in a workspace of its own until it finishes, its time is over, or it ends; then selects on\n"
    "hidden Validation, measures on held-out Assessment, and leaves the whole record in the new directory RUN.\n"
    "The task text reaches the command as {instructions} in an argument, or in workspace/instructions.md.";
static const char examples[] =
    "  evopolicygym run out/first --benchmark cartpole --program programs/examples/cartpole \\\n"
    "      --episode-budget 60 --validation-episodes 20 --assessment-episodes 50 \\\n"
    "      -- python3 agents/demo/demo_agent.py\n"
    "  evopolicygym run out/second -b cartpole -p my-program -- my-agent --task '{instructions}'\n";

static epg_code read_agent(epg_options *options, epg_run_request *request, epg_error *err)
{
    if (options->rest_count == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "name the Agent's command after --: evopolicygym run RUN ... -- my-agent");
    }
    request->agent.command = options->rest;
    request->agent.command_count = options->rest_count;
    const epg_option *inherit = epg_option_find(options, "inherit");
    const epg_option *secret = epg_option_find(options, "secret");
    request->agent.inherit = (const char *const *)inherit->values;
    request->agent.inherit_count = inherit->value_count;
    request->agent.secret = (const char *const *)secret->values;
    request->agent.secret_count = secret->value_count;
    request->agent.environment = environ;
    return EPG_OK;
}

static epg_code read_skills(epg_options *options, epg_skill **skills, size_t *count, epg_error *err)
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

static epg_code read_on_exit(epg_options *options, uint64_t *best, epg_error *err)
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

static epg_code run(epg_options *options, epg_run_request *request, bool *negative, epg_error *err)
{
    EPG_CLEANUP(epg_run_outcome_free) epg_run_outcome outcome = {0};
    EPG_TRY(epg_run(request, &outcome, err));
    return epg_outcome_tell(request->directory, &outcome, epg_option_find(options, "json")->given, negative, err);
}

static epg_code read_and_run(epg_options *options, bool *negative, epg_error *err)
{
    EPG_CLEANUP(epg_config_free) epg_config config = {0};
    EPG_CLEANUP(epg_setup_free) epg_setup setup = {0};
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    epg_run_request request = {.directory = options->operands[0], .agent_profile = EPG_PROFILE_PROCESS};
    epg_config_init(&config);
    EPG_TRY(epg_config_from_options(&config, options, err));
    EPG_TRY(epg_config_resolve(&config, err));
    EPG_TRY(read_agent(options, &request, err));
    EPG_TRY(read_on_exit(options, &request.best_on_exit, err));
    if (epg_option_find(options, "progress")->given) {
        EPG_TRY(epg_progress_mode_parse(epg_option_find(options, "progress")->value, &request.progress, err));
    }
    const epg_option *from = epg_option_find(options, "program");
    if (!from->given) {
        return epg_fail(err, EPG_ERR_USAGE, "name the Program to start from: --program DIR");
    }
    if (epg_program_capture_path(from->value, &epg_program_default_limits, &program, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "--program");
    }
    EPG_TRY(epg_setup_read(options, &setup, err));
    epg_skill *skills = NULL;
    size_t count = 0;
    epg_code code = read_skills(options, &skills, &count, err);
    if (code == EPG_OK) {
        request.initial = &program;
        request.initial_origin = from->value;
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

epg_code epg_cmd_run(int argc, char **argv, bool *negative, epg_error *err)
{
    const epg_option own[] = {
        EPG_SETUP_OPTIONS,
        {.name = "program",
         .short_name = 'p',
         .kind = EPG_OPTION_VALUE,
         .value_name = "DIR",
         .help = "the Program that the Agent starts from"},
        {.name = "skill",
         .kind = EPG_OPTION_LIST,
         .value_name = "DIR",
         .help = "an Agent Skill to lay into the workspace; repeatable"},
        {.name = "inherit",
         .kind = EPG_OPTION_LIST,
         .value_name = "NAME",
         .help = "a variable that the Agent's command inherits; repeatable"},
        {.name = "secret",
         .kind = EPG_OPTION_LIST,
         .value_name = "NAME",
         .help = "an inherited variable whose value is kept out of all records;\nrepeatable"},
        {.name = "on-agent-exit",
         .kind = EPG_OPTION_VALUE,
         .value_name = "best=K",
         .help = "when the Agent ends without finish: hand over its K best"},
        {.name = "progress",
         .kind = EPG_OPTION_VALUE,
         .value_name = "MODE",
         .help = "auto, plain, json or none, on standard error"},
        {.name = "json", .kind = EPG_OPTION_FLAG, .help = "the outcome as one JSON document on standard output"},
        EPG_CLI_HELP,
    };
    size_t count = EPG_COUNT(own) + epg_config_option_count;
    EPG_AUTO_FREE epg_option *table = epg_alloc_array(count, sizeof *table);
    memcpy(table, own, sizeof own);
    memcpy(table + EPG_COUNT(own), epg_config_options, epg_config_option_count * sizeof *table);
    EPG_CLEANUP(epg_options_free) epg_options options = {.table = table, .count = count};
    bool done = false;
    EPG_TRY(epg_cli_parse(&options, argc, argv, usage, examples, &done, err));
    if (done) {
        return EPG_OK;
    }
    if (options.operand_count != 1) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "name one directory for the Run: evopolicygym run RUN --benchmark SPEC ...");
    }
    return read_and_run(&options, negative, err);
}
