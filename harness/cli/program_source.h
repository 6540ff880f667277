/* Where a command takes a Program from, a directory or a submission of a Run, and where it puts one. */
#ifndef EPG_CLI_PROGRAM_SOURCE_H
#define EPG_CLI_PROGRAM_SOURCE_H

#include "programs/program.h"

/* "DIR", or "RUN:SUBMISSION" with a Run's directory and a word as for epg_reading_find ("out/first:submission-000003",
 * "out/first:best"). A directory of that very name goes before. `what` names the argument in the error. USAGE. */
epg_code epg_cli_program_source(const char *text, const char *what, epg_program *out, epg_error *err);

/* Writes it into the new directory `path`; what was made is taken away again when it can't be filled. `what` as above.
 * USAGE when that can't be a new directory. */
epg_code epg_cli_program_write(const epg_program *program, const char *path, const char *what, epg_error *err);

#endif
