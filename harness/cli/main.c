#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "evaluation/evaluation.h"
#include "system/owner.h"

enum { EXIT_READER_GONE = 141 }; /* as a shell tells of a program that SIGPIPE ended */

static epg_command_run cmd_version;
static epg_command_run cmd_help;

/* In the order of their use; a heading stands before the first of each group. */
static const struct {
    const char *heading;
    epg_command command;
} commands[] = {
    {"Improve a Program", {"run", "let an Agent improve a Program, and measure what came of it", epg_cmd_run}},
    {NULL, {"resume", "go on with a Run that was cut off", epg_cmd_resume}},
    {NULL, {"finish", "hand over candidates for a Run whose Agent did not", epg_cmd_finish}},
    {"Measure", {"evaluate", "evaluate a Program over a deterministic plan of Episodes", epg_cmd_evaluate}},
    {NULL, {"replay", "evaluate a Run's snapshots again, and compare", epg_cmd_replay}},
    {"Look at what came of it", {"list", "tell the Runs below a directory", epg_cmd_list}},
    {NULL, {"log", "tell what a Run submitted, one line a submission", epg_cmd_log}},
    {NULL, {"show", "tell all about one submission of a Run", epg_cmd_show}},
    {NULL, {"diff", "tell what changed from one submission to another", epg_cmd_diff}},
    {NULL, {"compare", "rank Runs of one Benchmark by held-out score", epg_cmd_compare}},
    {NULL, {"report", "write a page that shows Runs", epg_cmd_report}},
    {NULL, {"checkout", "write a submission's Program into a directory", epg_cmd_checkout}},
    {NULL, {"export", "write a Run's trajectory for other tools", epg_cmd_export}},
    {NULL, {"verify", "check a Run's record for what was changed after the fact", epg_cmd_verify}},
    {"What there is to work with", {"doctor", "tell what works on this machine, and what to do", epg_cmd_doctor}},
    {NULL, {"agent", "tell which Agents there are, and what is missing for one", epg_cmd_agent}},
    {NULL, {"benchmark", "list, show and check Benchmarks", epg_cmd_benchmark}},
    {NULL, {"program", "tell what a snapshot of a Program's directory would be", epg_cmd_program}},
    {NULL, {"help", "print this, or the help of a command", cmd_help}},
    {NULL, {"version", "print the version", cmd_version}},
};

static void print_commands(FILE *to)
{
    (void)fputs("EvoPolicyGym: the Host on which coding agents improve programs under honest\nmeasurement\n\n"
                "Usage: evopolicygym COMMAND [ARGUMENTS]\n",
                to);
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        if (commands[i].heading != NULL) {
            (void)fprintf(to, "\n%s:\n", commands[i].heading);
        }
        (void)fprintf(to, "  %-12s %s\n", commands[i].command.name, commands[i].command.summary);
    }
    (void)fputs("\n'evopolicygym COMMAND --help' teaches a command with examples. To begin with:\n"
                "  evopolicygym run --help\n",
                to);
}

static const epg_command *find_command(const char *name)
{
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        if (strcmp(commands[i].command.name, name) == 0) {
            return &commands[i].command;
        }
    }
    return NULL;
}

static epg_code unknown_command(const char *name, epg_error *err)
{
    const char *known[EPG_COUNT(commands)];
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        known[i] = commands[i].command.name;
    }
    const char *nearest = epg_nearest_word(name, known, EPG_COUNT(commands));
    EPG_AUTO_FREE char *shown = epg_printable(name, strlen(name));
    return nearest != NULL ? epg_fail(err, EPG_ERR_USAGE, "no command \"%s\"; did you mean \"%s\"?", shown, nearest)
                           : epg_fail(err, EPG_ERR_USAGE, "no command \"%s\"; 'evopolicygym help' lists them", shown);
}

/* `help COMMAND [WORD...]` is `COMMAND [WORD...] --help`. */
static epg_code cmd_help(int argc, char **argv, bool *negative, epg_error *err)
{
    static char asked[] = "--help";
    static char end_of_options[] = "--";
    if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0) {
        print_commands(stdout);
        return EPG_OK;
    }
    const epg_command *command = find_command(argv[0]);
    if (command == NULL) {
        return unknown_command(argv[0], err);
    }
    EPG_AUTO_FREE char **words = epg_alloc_array((size_t)argc + 1, sizeof *words);
    int count = 0;
    for (int i = 1; i < argc && strcmp(argv[i], end_of_options) != 0; i++) {
        words[count++] = argv[i];
    }
    words[count++] = asked;
    return command->run(count, words, negative, err);
}

static epg_code cmd_version(int argc, char **argv, bool *negative, epg_error *err)
{
    (void)negative;
    if (argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        (void)puts("Usage: evopolicygym version\n\nPrints the version.");
        return EPG_OK;
    }
    if (argc > 0) {
        return epg_fail(err, EPG_ERR_USAGE, "version takes no argument");
    }
    (void)puts("evopolicygym " EPG_VERSION);
    return EPG_OK;
}

/* Whoever read our output has read enough (`| head`): no fault, and nobody to tell. */
static bool reader_is_gone(void)
{
    struct pollfd fd = {.fd = STDOUT_FILENO};
    return ferror(stdout) != 0 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR) != 0;
}

/* Without a PATH nothing would be found, python3 first of all. */
static void complete_environment(void)
{
    const char *path = getenv("PATH");
    if (path == NULL || *path == '\0') {
        (void)setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    }
}

int main(int argc, char **argv)
{
    complete_environment();
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
    epg_error err = {.text = ""};
    bool negative = false;
    const epg_command *command = find_command(name);
    epg_code code = command != NULL ? command->run(argc - 2, argv + 2, &negative, &err) : unknown_command(name, &err);
    if (code == EPG_OK && (fflush(stdout) != 0 || ferror(stdout) != 0)) {
        code = epg_fail_errno(&err, errno, "can't write to standard output");
    }
    if (code != EPG_OK && reader_is_gone()) {
        return EXIT_READER_GONE;
    }
    if (code != EPG_OK) {
        (void)fprintf(stderr, "evopolicygym: %s\n", err.text);
        return epg_exit_code(code);
    }
    return negative ? 1 : 0;
}
