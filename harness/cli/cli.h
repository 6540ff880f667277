/* The command line: one small file a subcommand.
 *
 * A subcommand gets the words after its name, prints results on stdout and progress on stderr, and returns an
 * epg_code with the error filled; main prints the error in one line and turns the code into the exit code of
 * docs/exit-codes.md. `--json` puts one document, and nothing else, on stdout. */
#ifndef EPG_CLI_CLI_H
#define EPG_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/options.h"

/* `negative` (exit 1) is for an answer that is "no": a difference found, a check that failed, a refusal. */
typedef epg_code epg_command_run(int argc, char **argv, bool *negative, epg_error *err);

typedef struct epg_command {
    const char *name;
    const char *summary; /* one line */
    epg_command_run *run;
} epg_command;

epg_command_run epg_cmd_agent;
epg_command_run epg_cmd_benchmark;
epg_command_run epg_cmd_checkout;
epg_command_run epg_cmd_compare;
epg_command_run epg_cmd_diff;
epg_command_run epg_cmd_doctor;
epg_command_run epg_cmd_evaluate;
epg_command_run epg_cmd_export;
epg_command_run epg_cmd_finish;
epg_command_run epg_cmd_list;
epg_command_run epg_cmd_log;
epg_command_run epg_cmd_program;
epg_command_run epg_cmd_replay;
epg_command_run epg_cmd_report;
epg_command_run epg_cmd_resume;
epg_command_run epg_cmd_run;
epg_command_run epg_cmd_show;
epg_command_run epg_cmd_verify;

/* Parses `argv` and answers --help itself: *done is true then. `usage` holds the synopsis lines and, after a blank
 * line, what the command is for; `examples` the text below "Examples:". The table needs an option "help". */
epg_code epg_cli_parse(epg_options *options, int argc, char **argv, const char *usage, const char *examples, bool *done,
                       epg_error *err);
#define EPG_CLI_HELP                                                                                                   \
    {                                                                                                                  \
        .name = "help", .short_name = 'h', .kind = EPG_OPTION_FLAG, .help = "print this help"                          \
    }

/* USAGE: `word` is none of the commands of `group` ("benchmark"), and which is meant, or which there are. */
epg_code epg_cli_no_command(const char *group, const char *word, const char *const *known, size_t count,
                            epg_error *err);

/* Writes a whole buffer to stdout; IO when it can't (a full disk, a closed pipe). */
epg_code epg_cli_print(const epg_buffer *text, epg_error *err);

bool epg_cli_is_live(int fd);     /* a terminal on which a line can be written over */
bool epg_cli_is_terminal(int fd); /* one that takes colour, too: NO_COLOR is not set */

#endif
