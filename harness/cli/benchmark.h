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

/* The one Benchmark that stands as an operand. USAGE. */
epg_code epg_benchmark_operand(const epg_options *options, const char *command, const char **out, epg_error *err);
/* The interpreter for a python: Benchmark, found once; untouched for another kind. Caller frees. USAGE. */
epg_code epg_benchmark_python(epg_options *options, const char *text, char **out, epg_error *err);

epg_code epg_benchmark_run_baseline(int argc, char **argv, bool *negative, epg_error *err);

#endif
