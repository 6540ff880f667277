#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "evaluation/evaluation.h"
#include "system/owner.h"

static epg_command_run cmd_version;
static epg_command_run cmd_help;

static const epg_command commands[] = {
    {"agent", "tell which agents there are, what would be run, and what is missing for it", epg_cmd_agent},
    {"benchmark", "list, show and check Benchmarks", epg_cmd_benchmark},
    {"checkout", "write a submission's Program into a directory", epg_cmd_checkout},
    {"compare", "rank Runs of one Benchmark by held-out score", epg_cmd_compare},
    {"diff", "tell what changed from one submission to another", epg_cmd_diff},
    {"doctor", "tell what works on this machine, what does not, and what to do", epg_cmd_doctor},
    {"evaluate", "evaluate a Program over a deterministic plan of Episodes", epg_cmd_evaluate},
    {"export", "write a Run's trajectory for other tools", epg_cmd_export},
    {"finish", "hand over candidates for a Run whose Agent did not", epg_cmd_finish},
    {"help", NULL, cmd_help},
    {"list", "tell the Runs below a directory", epg_cmd_list},
    {"log", "tell what a Run submitted, one line a submission", epg_cmd_log},
    {"replay", "evaluate a Run's snapshots again, and compare", epg_cmd_replay},
    {"report", "write a page that shows Runs", epg_cmd_report},
    {"resume", "go on with a Run that was cut off", epg_cmd_resume},
    {"program", "tell what a snapshot of a Program's directory would be", epg_cmd_program},
    {"run", "let an Agent improve a Program, and measure what came of it", epg_cmd_run},
    {"show", "tell all about one submission of a Run", epg_cmd_show},
    {"verify", "check a Run's record for what was changed after the fact", epg_cmd_verify},
    {"version", "print the version", cmd_version},
};

static void print_commands(FILE *to)
{
    (void)fputs("EvoPolicyGym: the Host on which coding agents improve programs under honest measurement\n\n"
                "Usage: evopolicygym COMMAND [ARGUMENTS]\n\nCommands:\n",
                to);
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        if (commands[i].summary != NULL) {
            (void)fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].summary);
        }
    }
    (void)fputs("\n'evopolicygym COMMAND --help' teaches a command with examples.\n", to);
}

static epg_code cmd_help(int argc, char **argv, bool *negative, epg_error *err)
{
    (void)argc;
    (void)argv;
    (void)negative;
    (void)err;
    print_commands(stdout);
    return EPG_OK;
}

static epg_code cmd_version(int argc, char **argv, bool *negative, epg_error *err)
{
    (void)argc;
    (void)argv;
    (void)negative;
    (void)err;
    (void)puts("evopolicygym " EPG_VERSION);
    return EPG_OK;
}

static const epg_command *find_command(const char *name)
{
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *known[EPG_COUNT(commands)];
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        known[i] = commands[i].name;
    }
    const char *nearest = epg_nearest_word(name, known, EPG_COUNT(commands));
    EPG_AUTO_FREE char *shown = epg_printable(name, strlen(name));
    if (nearest != NULL) {
        (void)fprintf(stderr, "evopolicygym: no command \"%s\"; did you mean \"%s\"?\n", shown, nearest);
    } else {
        (void)fprintf(stderr, "evopolicygym: no command \"%s\"; 'evopolicygym help' lists them\n", shown);
    }
    return epg_exit_code(EPG_ERR_USAGE);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "worker") == 0) {
        return epg_worker_main(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "monitor") == 0) {
        return epg_monitor_main(argc, argv);
    }
    if (argc < 2) {
        print_commands(stderr);
        return epg_exit_code(EPG_ERR_USAGE);
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        name = "version";
    }
    const epg_command *command = find_command(name);
    if (command == NULL) {
        return unknown_command(name);
    }
    epg_error err = {.text = ""};
    bool negative = false;
    epg_code code = command->run(argc - 2, argv + 2, &negative, &err);
    if (code == EPG_OK && (fflush(stdout) != 0 || ferror(stdout) != 0)) {
        code = epg_fail_errno(&err, errno, "can't write to standard output");
    }
    if (code != EPG_OK) {
        (void)fprintf(stderr, "evopolicygym: %s\n", err.text);
        return epg_exit_code(code);
    }
    return negative ? 1 : 0;
}
