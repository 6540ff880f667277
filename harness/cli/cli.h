/* The command line: one small file a subcommand, which is a constant that tells of it.
 *
 * epg_cli_run does what is alike for all: it reads the words, answers --help, and refuses what is no use of the
 * command. The command itself prints results on stdout and progress on stderr, and returns an epg_code with the error
 * filled; main prints the error in one line and turns the code into the exit code of docs/exit-codes.md. `--json` puts
 * one document, and nothing else, on stdout. */
#ifndef EPG_CLI_CLI_H
#define EPG_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/options.h"

enum { EPG_CLI_TABLES = 3 };

typedef struct epg_command {
    const char *name;    /* the word that calls it */
    const char *summary; /* one line; NULL for a member of a group, whose own usage tells it */
    const char *usage;   /* the synopsis lines and, after a blank line, what the command is for */
    const char *wanted;  /* the error for operands (or, of a group, no word) that are no use of it */

    /* A command of its own: */
    const char *examples;                      /* the text below "Examples:" in --help; NULL: none */
    const epg_option *options[EPG_CLI_TABLES]; /* in the order of --help, which is added to them */
    size_t least, most;                        /* operands */
    bool takes_rest;                           /* words after `--` may stand there */
    /* `negative` (exit 1) is for an answer that is "no": a difference found, a check that failed, a refusal. */
    epg_code (*run)(epg_options *options, bool *negative, epg_error *err);

    /* Or a group of commands: */
    const struct epg_command *const *members; /* ends with NULL */

    /* Or one that takes the words after its name as they are. */
    epg_code (*words)(int argc, char **argv, bool *negative, epg_error *err);
} epg_command;

extern const epg_command epg_cmd_agent, epg_cmd_benchmark, epg_cmd_checkout, epg_cmd_compare, epg_cmd_diff,
    epg_cmd_doctor, epg_cmd_evaluate, epg_cmd_export, epg_cmd_finish, epg_cmd_list, epg_cmd_log, epg_cmd_program,
    epg_cmd_replay, epg_cmd_report, epg_cmd_resume, epg_cmd_run, epg_cmd_show, epg_cmd_verify;

/* `argv`: the words after the command's name. */
epg_code epg_cli_run(const epg_command *command, int argc, char **argv, bool *negative, epg_error *err);

bool epg_cli_asks_for_help(const char *word); /* --help or -h */

/* A row that many tables have. */
#define EPG_CLI_JSON                                                                                                   \
    {                                                                                                                  \
        .name = "json", .kind = EPG_OPTION_FLAG, .help = "one JSON document on standard output"                        \
    }

/* USAGE: `word` is none of the commands of `group` ("benchmark"), and which is meant, or which there are. */
epg_code epg_cli_no_command(const char *group, const char *word, const char *const *known, size_t count,
                            epg_error *err);

/* Writes a whole buffer to stdout; IO when it can't (a full disk, a closed pipe). */
epg_code epg_cli_print(const epg_buffer *text, epg_error *err);

bool epg_cli_is_live(int fd);     /* a terminal on which a line can be written over */
bool epg_cli_is_terminal(int fd); /* one that takes colour, too: NO_COLOR is not set */

#endif
