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

static const epg_command cmd_version;
static const epg_command cmd_help;

/* In the order of their use; a heading stands before the first of each group. */
static const struct {
    const char *heading;
    const epg_command *command;
} commands[] = {
    {"Improve a Program", &epg_cmd_run},
    {NULL, &epg_cmd_resume},
    {NULL, &epg_cmd_finish},
    {"Measure", &epg_cmd_evaluate},
    {NULL, &epg_cmd_replay},
    {"Look at what came of it", &epg_cmd_list},
    {NULL, &epg_cmd_log},
    {NULL, &epg_cmd_show},
    {NULL, &epg_cmd_diff},
    {NULL, &epg_cmd_compare},
    {NULL, &epg_cmd_report},
    {NULL, &epg_cmd_checkout},
    {NULL, &epg_cmd_export},
    {NULL, &epg_cmd_verify},
    {"What there is to work with", &epg_cmd_doctor},
    {NULL, &epg_cmd_agent},
    {NULL, &epg_cmd_benchmark},
    {NULL, &epg_cmd_program},
    {NULL, &cmd_help},
    {NULL, &cmd_version},
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
        (void)fprintf(to, "  %-12s %s\n", commands[i].command->name, commands[i].command->summary);
    }
    (void)fputs("\n'evopolicygym COMMAND --help' teaches a command with examples. To begin with:\n"
                "  evopolicygym run --help\n",
                to);
}

static const epg_command *find_command(const char *name)
{
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        if (strcmp(commands[i].command->name, name) == 0) {
            return commands[i].command;
        }
    }
    return NULL;
}

static epg_code unknown_command(const char *name, epg_error *err)
{
    const char *known[EPG_COUNT(commands)];
    for (size_t i = 0; i < EPG_COUNT(commands); i++) {
        known[i] = commands[i].command->name;
    }
    const char *nearest = epg_nearest_word(name, known, EPG_COUNT(commands));
    EPG_AUTO_FREE char *shown = epg_printable(name, strlen(name));
    return nearest != NULL ? epg_fail(err, EPG_ERR_USAGE, "no command \"%s\"; did you mean \"%s\"?", shown, nearest)
                           : epg_fail(err, EPG_ERR_USAGE, "no command \"%s\"; 'evopolicygym help' lists them", shown);
}

/* `help COMMAND [WORD...]` is `COMMAND [WORD...] --help`. */
static epg_code tell_help(int argc, char **argv, bool *negative, epg_error *err)
{
    static char asked[] = "--help";
    if (argc == 0 || epg_cli_asks_for_help(argv[0]) || strcmp(argv[0], "help") == 0) {
        print_commands(stdout);
        return EPG_OK;
    }
    const epg_command *command = find_command(argv[0]);
    if (command == NULL) {
        return unknown_command(argv[0], err);
    }
    EPG_AUTO_FREE char **words = epg_alloc_array((size_t)argc + 1, sizeof *words);
    int count = 0;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        words[count++] = argv[i];
    }
    words[count++] = asked;
    return epg_cli_run(command, count, words, negative, err);
}

static const epg_command cmd_help = {
    .name = "help", .summary = "print this, or the help of a command", .words = tell_help};

static epg_code tell_version(int argc, char **argv, bool *negative, epg_error *err)
{
    (void)negative;
    if (argc == 1 && epg_cli_asks_for_help(argv[0])) {
        (void)puts("Usage: evopolicygym version\n\nPrints the version.");
        return EPG_OK;
    }
    if (argc > 0) {
        return epg_fail(err, EPG_ERR_USAGE, "version takes no argument");
    }
    (void)puts("evopolicygym " EPG_VERSION);
    return EPG_OK;
}

static const epg_command cmd_version = {.name = "version", .summary = "print the version", .words = tell_version};

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
    if (epg_cli_asks_for_help(name)) {
        name = "help";
    } else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        name = "version";
    }
    epg_return_large_blocks();
    epg_error err = {.text = ""};
    bool negative = false;
    const epg_command *command = find_command(name);
    epg_code code =
        command != NULL ? epg_cli_run(command, argc - 2, argv + 2, &negative, &err) : unknown_command(name, &err);
    if (code == EPG_OK && (fflush(stdout) != 0 || ferror(stdout) != 0)) {
        code = epg_fail_errno(&err, errno, "can't write to standard output");
    }
    if (code != EPG_OK && reader_is_gone()) {
        return EXIT_READER_GONE;
    }
    if (code != EPG_OK) {
        EPG_AUTO_FREE char *line = epg_printable(err.text, strlen(err.text)); /* whatever names it repeats */
        (void)fprintf(stderr, "evopolicygym: %s\n", line);
        return epg_exit_code(code);
    }
    return negative ? 1 : 0;
}
