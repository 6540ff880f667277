/* From what a user writes to a Benchmark: NAME[?key=value&...] for a built-in one, KIND:... for another's. */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "benchmark/benchmark.h"
#include "benchmark/external.h"
#include "benchmark/library.h"

enum { NAMES_MAX = 64 };

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);
    return size > strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

/* How a Benchmark of another kind is named, where the text looks like one. */
static const char *kind_by_looks(const char *name)
{
    if (ends_with(name, ".so")) {
        return "lib:PATH, as in lib:./mine.so";
    }
    if (ends_with(name, ".py")) {
        return "python:MODULE:FACTORY, as in python:my_benchmark:make_benchmark, or cmd:python3 FILE for one that "
               "speaks "
               "the protocol";
    }
    if (strchr(name, '/') != NULL && access(name, X_OK) == 0) {
        return "cmd:COMMAND LINE, as in cmd:./my-benchmark";
    }
    return strchr(name, ':') != NULL || strchr(name, '.') != NULL
               ? "python:MODULE:FACTORY, as in python:my_benchmark:make_benchmark"
               : NULL;
}

static epg_code unknown(const char *name, epg_error *err)
{
    size_t count = 0;
    const epg_builtin *builtins = epg_builtin_benchmarks(&count);
    const char *names[NAMES_MAX];
    EPG_AUTO_BUFFER known = {0};
    for (size_t i = 0; i < count && i < NAMES_MAX; i++) {
        names[i] = builtins[i].name;
        (void)epg_buffer_format(&known, "%s%s", i == 0 ? "" : ", ", builtins[i].name);
    }
    EPG_AUTO_FREE char *shown = epg_printable(name, strnlen(name, 100));
    const char *kind = kind_by_looks(name);
    if (kind != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "unknown benchmark \"%s\"; did you mean %s?", shown, kind);
    }
    const char *nearest = epg_nearest_word(name, names, count < NAMES_MAX ? count : NAMES_MAX);
    if (nearest != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "unknown benchmark \"%s\"; did you mean %s?", shown, nearest);
    }
    return epg_fail(err, EPG_ERR_USAGE,
                    "unknown benchmark \"%s\"; there are: %s; others are named "
                    "python:MODULE:FACTORY, cmd:COMMAND LINE or lib:PATH",
                    shown, epg_buffer_cstr(&known));
}

static epg_code open_builtin(const char *text, epg_benchmark **out, epg_error *err)
{
    EPG_AUTO_FREE char *name = epg_strdup(text);
    char *parameters = strchr(name, '?');
    if (parameters != NULL) {
        *parameters++ = '\0';
    }
    const epg_builtin *builtin = epg_builtin_find(name);
    if (builtin == NULL) {
        return unknown(name, err);
    }
    return builtin->open(parameters, out, err);
}

epg_code epg_benchmark_open(const char *text, const epg_benchmark_options *options, epg_benchmark **out, epg_error *err)
{
    if (text[0] == '\0') {
        return epg_fail(err, EPG_ERR_USAGE,
                        "the benchmark's name is empty; \"evopolicygym benchmark list\" names them");
    }
    if (epg_starts_with(text, "lib:")) {
        return epg_library_open(text + strlen("lib:"), options->source_root, out, err);
    }
    if (epg_starts_with(text, "cmd:")) {
        return epg_command_open(text + strlen("cmd:"), options, out, err);
    }
    if (epg_starts_with(text, "python:")) {
        return epg_python_benchmark_open(text + strlen("python:"), options, out, err);
    }
    return open_builtin(text, out, err);
}
