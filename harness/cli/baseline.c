/* `evopolicygym benchmark baseline SPEC --to DIR`. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/benchmark.h"
#include "cli/program_source.h"
#include "programs/program.h"
#include "system/installed.h"

/* Built-in ones have theirs as files: beside the installed binary, or in the source tree it was built from. */
static epg_code builtin_baseline(const char *text, epg_program *out, epg_error *err)
{
    EPG_AUTO_FREE char *name = epg_strndup(text, strcspn(text, "?"));
    EPG_AUTO_FREE char *below = epg_format("examples/%s", name);
    EPG_AUTO_FREE char *in_source = epg_format("programs/examples/%s", name);
    EPG_AUTO_FREE char *path = epg_installed_find(below, in_source);
    return path != NULL ? epg_program_capture_path(path, &epg_program_default_limits, out, err)
                        : epg_fail(err, EPG_ERR_NOT_FOUND, "no baseline Program of %s is installed", name);
}

static epg_code find_baseline(const char *text, const char *python, epg_program *out, epg_error *err)
{
    const epg_benchmark_options options = {.python = python, .call_limit_ns = 60 * EPG_SECOND};
    epg_benchmark *benchmark = NULL;
    if (epg_starts_with(text, "lib:")) { /* and none of it runs in this process */
        return epg_fail(
            err, EPG_ERR_UNAVAILABLE,
            "a Benchmark in a shared library has no baseline Program; begin with any directory that holds a "
            "policy.py");
    }
    EPG_TRY(epg_benchmark_open(text, &options, &benchmark, err));
    epg_code code = EPG_OK;
    if (benchmark->vtable->baseline != NULL) {
        code = benchmark->vtable->baseline(benchmark, out, err);
    } else {
        code = builtin_baseline(text, out, err);
    }
    epg_benchmark_destroy(benchmark);
    return code;
}

static epg_code run_baseline(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    EPG_CLEANUP(epg_program_free) epg_program program = {.count = 0};
    EPG_AUTO_FREE char *python = NULL;
    const char *text = options->operands[0];
    const char *to = epg_option_text(options, "to");
    if (to == NULL || to[0] == '\0') {
        return epg_fail(err, EPG_ERR_USAGE, "benchmark baseline needs --to DIR, a directory that is not there yet");
    }
    if (faccessat(AT_FDCWD, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "--to: %s is there already; name a new directory", to);
    }
    EPG_TRY(epg_benchmark_python(options, text, &python, err));
    EPG_TRY(find_baseline(text, python, &program, err));
    EPG_TRY(epg_cli_program_write(&program, to, "--to", err));
    EPG_AUTO_BUFFER out = {0};
    (void)epg_buffer_format(&out, "%s: %zu files, %s\n", to, program.count, program.digest);
    return epg_cli_print(&out, err);
}

static const epg_option baseline_options[] = {
    EPG_BENCHMARK_OPTION,
    {.name = "to", .kind = EPG_OPTION_VALUE, .value_name = "DIR", .help = "a new directory for the Program"},
    EPG_OPTIONS_END,
};

const epg_command epg_benchmark_baseline = {
    .name = "baseline",
    .usage = "Usage: evopolicygym benchmark baseline SPEC --to DIR\n\nWrites the Benchmark's baseline "
             "Program, from which an Agent or you can begin, to a new directory.",
    .examples = "  evopolicygym benchmark baseline cartpole --to program\n"
                "  evopolicygym benchmark baseline python:my_benchmark:make --to program\n",
    .wanted = "benchmark baseline needs one Benchmark, as in: evopolicygym benchmark baseline cartpole",
    .options = {baseline_options},
    .least = 1,
    .most = 1,
    .run = run_baseline,
};
