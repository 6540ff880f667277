/* What `evaluate` and `run` ask of their user in the same words: the Benchmark, the profile, the interpreter, the
 * workers. */
#ifndef EPG_CLI_SETUP_H
#define EPG_CLI_SETUP_H

#include "base/options.h"
#include "evaluation/evaluation.h"

/* Rows for a subcommand's option table. */
#define EPG_SETUP_BENCHMARK                                                                                            \
    {                                                                                                                  \
        .name = "benchmark", .short_name = 'b', .kind = EPG_OPTION_VALUE, .value_name = "SPEC",                        \
        .group = "What to run",                                                                                        \
        .help = "the Benchmark: a built-in name ('evopolicygym benchmark list'), with parameters as NAME?key=value; "  \
                "or python:MODULE:FACTORY, cmd:COMMAND, lib:PATH (docs/benchmarks.md)"                                 \
    }
#define EPG_SETUP_EVALUATION                                                                                           \
    {.name = "python",                                                                                                 \
     .kind = EPG_OPTION_VALUE,                                                                                         \
     .value_name = "PATH",                                                                                             \
     .group = "How to evaluate",                                                                                       \
     .help = "interpreter of the Policies, CPython 3.9 or newer (default python3)"},                                   \
        {.name = "preload",                                                                                            \
         .kind = EPG_OPTION_VALUE,                                                                                     \
         .value_name = "MODULES",                                                                                      \
         .help = "modules, such as numpy, that are imported once for all Policies instead of in every Episode"},       \
        {.name = "benchmark-python",                                                                                   \
         .kind = EPG_OPTION_VALUE,                                                                                     \
         .value_name = "PATH",                                                                                         \
         .help = "interpreter of python: Benchmarks (default: as --python)"},                                          \
        {.name = "jobs",                                                                                               \
         .short_name = 'j',                                                                                            \
         .kind = EPG_OPTION_VALUE,                                                                                     \
         .value_name = "N",                                                                                            \
         .help = "Episodes at a time; results do not depend on it (default: the processor's cores)"},                  \
        {.name = "environment-timeout",                                                                                \
         .kind = EPG_OPTION_VALUE,                                                                                     \
         .value_name = "SECONDS",                                                                                      \
         .help = "limit on one call of the Environment (default 60)"},                                                 \
    {                                                                                                                  \
        .name = "benchmark-memory", .kind = EPG_OPTION_VALUE, .value_name = "SIZE",                                    \
        .help = "limit on the memory of an external Benchmark's process and what it starts, such as 4G (default none)" \
    }
#define EPG_SETUP_CONTAINMENT                                                                                          \
    {.name = "execution",                                                                                              \
     .kind = EPG_OPTION_VALUE,                                                                                         \
     .value_name = "PROFILE",                                                                                          \
     .group = "Containment",                                                                                           \
     .help = "what a Policy may touch: sandbox or process; never replaced by a lesser one (default sandbox)"},         \
        {.name = "policy-memory",                                                                                      \
         .kind = EPG_OPTION_VALUE,                                                                                     \
         .value_name = "SIZE",                                                                                         \
         .help = "limit on the memory of a Policy, such as 512M (default 4G)"},                                        \
    {                                                                                                                  \
        .name = "allow-unsafe-process", .kind = EPG_OPTION_FLAG,                                                       \
        .help = "acknowledge that the profile process contains nothing: what runs in it has all your rights"           \
    }

/* Owned texts behind an epg_pool_config. */
typedef struct epg_setup {
    char *python;
    char *benchmark_python; /* NULL: that of the Policies */
    char *guest_root;
    epg_pool_config pool;
} epg_setup;
void epg_setup_free(epg_setup *setup);

/* --jobs; untouched when it was not given. USAGE. */
epg_code epg_setup_jobs(const epg_options *options, unsigned *jobs, epg_error *err);
/* Reads the rows above and checks that the profile can be had. The caller fills the rest of `pool`. USAGE or
 * UNAVAILABLE. */
epg_code epg_setup_read(const epg_options *options, epg_setup *out, epg_error *err);

#endif
