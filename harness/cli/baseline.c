/* `evopolicygym benchmark baseline SPEC --to DIR`. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/benchmark.h"
#include "programs/program.h"
#include "system/files.h"
#include "system/io.h"
#include "system/process.h"

enum { FILE_MODE = 0644, DIRECTORY_MODE = 0755 };

/* Built-in ones have theirs as files: beside the installed binary, or in the source tree it was built from. */
static epg_code builtin_baseline(const char *text, epg_program *out, epg_error *err)
{
    EPG_AUTO_FREE char *name = epg_strndup(text, strcspn(text, "?"));
    EPG_AUTO_FREE char *own = epg_own_executable();
    char *slash = own != NULL ? strrchr(own, '/') : NULL;
    EPG_AUTO_FREE char *beside = NULL;
    if (slash != NULL) {
        *slash = '\0';
        beside = epg_format("%s/../share/evopolicygym/examples/%s", own, name);
    }
    EPG_AUTO_FREE char *source = epg_format(EPG_SOURCE_ROOT "/programs/examples/%s", name);
    EPG_AUTO_FREE char *installed = epg_format(EPG_DATA_DIRECTORY "/examples/%s", name);
    const char *const places[] = {beside, source, installed};
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        if (places[i] != NULL && access(places[i], R_OK) == 0) {
            return epg_program_capture_path(places[i], &epg_program_default_limits, out, err);
        }
    }
    return epg_fail(err, EPG_ERR_NOT_FOUND, "no baseline Program of %s is installed", name);
}

static epg_code find_baseline(const char *text, const char *python, epg_program *out, epg_error *err)
{
    const epg_benchmark_options options = {.python = python, .call_limit_ns = 60 * EPG_SECOND};
    epg_benchmark *benchmark = NULL;
    EPG_TRY(epg_benchmark_open(text, &options, &benchmark, err));
    epg_code code = EPG_OK;
    if (benchmark->vtable->baseline != NULL) {
        code = benchmark->vtable->baseline(benchmark, out, err);
    } else if (epg_starts_with(text, "lib:")) {
        code = epg_fail(err, EPG_ERR_UNAVAILABLE, "a Benchmark in a shared library has no baseline Program");
    } else {
        code = builtin_baseline(text, out, err);
    }
    epg_benchmark_destroy(benchmark);
    return code;
}

static epg_code write_program(const epg_program *program, const char *to, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    if (epg_io_mkdir(AT_FDCWD, to, 0755) != 0) {
        int reason = errno;
        (void)epg_fail_errno(err, reason, "can't make the directory %s", to);
        return reason == EEXIST || reason == ENOENT ? epg_fail_as(err, EPG_ERR_USAGE, "--to") : EPG_ERR_IO;
    }
    EPG_TRY(epg_dir_open(AT_FDCWD, to, &directory, err));
    return epg_program_materialise(program, directory, FILE_MODE, DIRECTORY_MODE, false, err);
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
    EPG_TRY(write_program(&program, to, err));
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
