/* --record-traces and --trace-bytes, as `run` and `replay` take them. */
#ifndef EPG_CLI_TRACES_OPTION_H
#define EPG_CLI_TRACES_OPTION_H

#include <stdbool.h>

#include "base/options.h"

#define EPG_TRACES_OPTIONS                                                                                             \
    {.name = "record-traces",                                                                                          \
     .kind = EPG_OPTION_VALUE,                                                                                         \
     .value_name = "WHAT",                                                                                             \
     .help = "digests (eight bytes a step) or full (every observation and Action; docs/replay.md) (default digests)"}, \
    {                                                                                                                  \
        .name = "trace-bytes", .kind = EPG_OPTION_VALUE, .value_name = "N",                                            \
        .help = "what full traces may come to, compressed; behind that, digests (default 256 MiB)"                     \
    }

/* Leaves `full` and `bytes` as they are where nothing is given, but for a zero in `bytes`. */
epg_code epg_traces_option_read(const epg_options *options, bool *full, uint64_t *bytes, epg_error *err);

#endif
