/* How a Run's outcome is told, by `run`, `resume` and `finish` alike. */
#ifndef EPG_CLI_OUTCOME_H
#define EPG_CLI_OUTCOME_H

#include "runs/run.h"

/* Prints it; the code is a fault's when a fault ended the Run, and *negative is set when nothing was selected. */
epg_code epg_outcome_tell(const char *directory, const epg_run_outcome *outcome, bool json, bool *negative,
                          epg_error *err);

#endif
