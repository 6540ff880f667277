/* What the commands of `evopolicygym benchmark` share. */
#ifndef EPG_CLI_BENCHMARK_H
#define EPG_CLI_BENCHMARK_H

#include "benchmark/benchmark.h"
#include "cli/cli.h"
#include "guest/guest.h"

/* A row of an option table. */
#define EPG_BENCHMARK_OPTION                                                                                           \
    {                                                                                                                  \
        .name = "benchmark-python", .kind = EPG_OPTION_VALUE, .value_name = "PATH",                                    \
        .help = "interpreter of python: Benchmarks (python3)"                                                          \
    }

/* The interpreter for a python: Benchmark, found once; untouched for another kind. Caller frees. USAGE. */
epg_code epg_benchmark_python(const epg_options *options, const char *text, char **out, epg_error *err);

extern const epg_command epg_benchmark_baseline; /* a member of the group */

#endif
