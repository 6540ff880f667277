/* Benchmarks of Python packages: "python:MODULE:FACTORY[?key=value&...]". The process is the interpreter on
 * harness/benchmark/python/runner.py, which speaks the same frames as any external Benchmark. */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "benchmark/external.h"
#include "system/installed.h"

extern char **environ;

static epg_code find_runner(char **path, epg_error *err)
{
    *path = epg_installed_find("benchmark/runner.py", "harness/benchmark/python/runner.py");
    return *path != NULL
               ? EPG_OK
               : epg_fail(err, EPG_ERR_UNAVAILABLE,
                          "the Python side of Benchmarks is not at %s/benchmark: install it again", EPG_DATA_DIRECTORY);
}

/* Cuts the text into MODULE, FACTORY and parameters, in place. */
static epg_code cut(char *text, char **factory, char **parameters, epg_error *err)
{
    *parameters = strchr(text, '?');
    if (*parameters != NULL) {
        *(*parameters)++ = '\0';
    }
    *factory = strchr(text, ':');
    if (*factory != NULL) {
        *(*factory)++ = '\0';
    }
    if (text[0] == '\0' || *factory == NULL || (*factory)[0] == '\0' || strchr(*factory, ':') != NULL) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "python: needs a module and a factory in it, as in python:my_benchmark:make_benchmark");
    }
    size_t size = strlen(text);
    if (strchr(text, '/') != NULL || (size > 3 && strcmp(text + size - 3, ".py") == 0)) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "python: takes a module's name and no file's, as in python:my_benchmark:make_benchmark; it is "
                        "looked for in PYTHONPATH and the working directory");
    }
    return EPG_OK;
}

enum { PARAMETERS_MAX = 64, FIXED_WORDS = 4 };

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* %XX stands for a byte, so that a value can hold '&' and '%'. */
static void decode_percent(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        if (low >= 0 && high * 16 + low != 0) {
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

/* One word for each "key=value", after the `count` words that are there. */
static epg_code add_parameters(char *text, const char **argv, size_t count, epg_error *err)
{
    size_t most = count + PARAMETERS_MAX;
    char *word = NULL;
    while ((word = strsep(&text, "&")) != NULL) {
        if (word[0] == '\0') {
            continue;
        }
        if (strchr(word, '=') == NULL || word[0] == '=' || count == most) {
            return epg_fail(err, EPG_ERR_USAGE,
                            "python: parameters are written key=value&key=value, at most %d of them",
                            (int)PARAMETERS_MAX);
        }
        decode_percent(word);
        argv[count++] = word;
    }
    return EPG_OK;
}

/* Ours, with a fixed hash seed unless the user chose one: the order of a set is then the same in every worker. */
static const char **make_environment(void)
{
    static const char seed[] = "PYTHONHASHSEED=0";
    size_t count = 0;
    bool chosen = getenv("PYTHONHASHSEED") != NULL;
    while (environ[count] != NULL) {
        count++;
    }
    const char **out = epg_alloc_array(count + 2, sizeof *out);
    memcpy(out, environ, count * sizeof *out);
    if (!chosen) {
        out[count] = seed;
    }
    return out;
}

epg_code epg_python_benchmark_open(const char *text, const epg_benchmark_options *options, epg_benchmark **out,
                                   epg_error *err)
{
    EPG_AUTO_FREE char *words = epg_strdup(text);
    EPG_AUTO_FREE char *name = epg_format("python:%s", text);
    EPG_AUTO_FREE char *runner = NULL;
    EPG_AUTO_FREE const char **environment = make_environment();
    char *factory = NULL;
    char *parameters = NULL;
    EPG_TRY(cut(words, &factory, &parameters, err));
    EPG_TRY(find_runner(&runner, err));
    const char *argv[FIXED_WORDS + PARAMETERS_MAX + 1] = {options->python != NULL ? options->python : "python3", runner,
                                                          words, factory};
    EPG_TRY(add_parameters(parameters, argv, FIXED_WORDS, err));
    const epg_external_start start = {
        .name = name,
        .argv = argv,
        .environment = environment,
        .directory = options->source_root,
        .call_limit_ns = options->call_limit_ns,
        .memory_bytes = options->memory_bytes,
        .company = options->company,
    };
    return epg_external_open(&start, out, err);
}
