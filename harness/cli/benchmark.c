/* `evopolicygym benchmark list | show SPEC | check SPEC | baseline SPEC`. */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "benchmark/check.h"
#include "cli/benchmark.h"
#include "cli/cli.h"
#include "evaluation/evaluation.h"
#include "system/files.h"

enum { ACTIONS_BYTES_MAX = 64 * 1024 * 1024 };

static const char usage[] =
    "Usage: evopolicygym benchmark COMMAND [ARGUMENTS]\n\n"
    "Commands:\n"
    "  list         the built-in Benchmarks and their parameters\n"
    "  show SPEC    what a Benchmark says of itself: spaces, parameters, ends, score\n"
    "  check SPEC   play Episodes twice and look for faults (exit 1: found one)\n"
    "  baseline SPEC --to DIR\n               write the Benchmark's baseline Program, to begin with\n\n"
    "SPEC is a name of the list, with parameters as NAME?key=value&key=value; or\n"
    "python:MODULE:FACTORY, cmd:COMMAND LINE, lib:PATH (docs/benchmarks.md).\n\n"
    "'evopolicygym benchmark COMMAND --help' teaches each.";

/* --- list --- */

/* "?key=value&key=value", a new line where the next one would not fit. */
static void put_parameters(const char *text, epg_buffer *out)
{
    enum { COLUMN = 25, WIDTH = 80 };
    size_t column = COLUMN;
    (void)epg_buffer_format(out, "%*s", COLUMN, "");
    for (char mark = '?'; *text != '\0'; mark = '&') {
        size_t size = strcspn(text, "&");
        if (column > COLUMN && column + 1 + size > WIDTH) {
            (void)epg_buffer_format(out, "\n%*s", COLUMN, "");
            column = COLUMN;
        }
        (void)epg_buffer_format(out, "%c%.*s", mark, (int)size, text);
        column += 1 + size;
        text += text[size] == '&' ? size + 1 : size;
    }
    (void)epg_buffer_byte(out, '\n');
}

static void list_text(epg_buffer *out)
{
    size_t count = 0;
    const epg_builtin *builtins = epg_builtin_benchmarks(&count);
    for (size_t i = 0; i < count; i++) {
        (void)epg_buffer_format(out, "%-24s %s\n", builtins[i].name, builtins[i].summary);
        if (builtins[i].parameters != NULL) {
            put_parameters(builtins[i].parameters, out);
        }
    }
}

static void list_json(epg_buffer *out)
{
    size_t count = 0;
    const epg_builtin *builtins = epg_builtin_benchmarks(&count);
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_array(&writer, "benchmarks");
    for (size_t i = 0; i < count; i++) {
        epg_json_object(&writer, NULL);
        epg_json_put_text(&writer, "name", builtins[i].name);
        epg_json_put_text(&writer, "parameters", builtins[i].parameters);
        epg_json_put_text(&writer, "summary", builtins[i].summary);
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_put_text(&writer, "schema", "evopolicygym/benchmark-list/v1");
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code run_list(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    EPG_AUTO_BUFFER out = {0};
    if (epg_option_given(options, "json")) {
        list_json(&out);
    } else {
        list_text(&out);
    }
    return epg_cli_print(&out, err);
}

static const epg_option list_options[] = {
    {.name = "json", .kind = EPG_OPTION_FLAG, .help = "one JSON document"},
    EPG_OPTIONS_END,
};

static const epg_command list = {
    .name = "list",
    .usage = "Usage: evopolicygym benchmark list [--json]\n\nLists the built-in Benchmarks, each with the "
             "parameters that it takes.",
    .examples = "  evopolicygym benchmark list\n",
    .wanted = "benchmark list takes no operand; benchmark show SPEC tells more of one",
    .options = {list_options},
    .least = 0,
    .most = 0,
    .run = run_list,
};

/* --- show --- */

static void put_value(const char *title, const epg_buffer *value, epg_buffer *out)
{
    epg_json_writer writer;
    (void)epg_buffer_format(out, "\n%s\n", title);
    epg_json_begin(&writer, out, 2);
    epg_value_to_json(epg_buffer_span(value), &writer, NULL);
    epg_json_finish(&writer);
}

static void show_text(const epg_spec *spec, epg_buffer *out)
{
    (void)epg_buffer_format(out, "%s\n\n", spec->id);
    epg_fill_text(spec->description, 0, 0, out);
    (void)epg_buffer_byte(out, '\n');
    (void)epg_buffer_format(out, "Score               %s, %s\n", spec->primary_metric,
                            epg_direction_name(spec->direction));
    (void)epg_buffer_format(out, "Steps in an Episode at most %llu\n", (unsigned long long)spec->max_episode_steps);
    (void)epg_buffer_format(out, "Environment digest\n    %s\n", spec->environment_digest);
    put_value("Observation space", &spec->observation_space, out);
    put_value("Action space", &spec->action_space, out);
    put_value("Environment parameters", &spec->environment_parameters, out);
    if (spec->metadata.size > 9) { /* more than an empty map */
        put_value("Metadata", &spec->metadata, out);
    }
}

epg_code epg_benchmark_python(const epg_options *options, const char *text, char **out, epg_error *err)
{
    if (!epg_starts_with(text, "python:")) {
        return EPG_OK;
    }
    return epg_python_find(epg_option_text(options, "benchmark-python"), out, err);
}

/* A library is asked as it will be played, in a worker's process: what it does wrong there is told, and what it prints
 * is not our output. */
static epg_code read_library_spec(const char *text, const epg_benchmark_options *options, epg_spec *out, epg_error *err)
{
    const epg_pool_config config = {
        .benchmark = text, .jobs = 1, .episode_timeout_seconds = 1, .call_limit_ns = options->call_limit_ns};
    epg_pool *pool = NULL;
    EPG_AUTO_BUFFER bytes = {0};
    EPG_TRY(epg_pool_open(&config, &pool, err));
    epg_spec_to_value(epg_pool_spec(pool), &bytes);
    epg_code code = epg_spec_from_value(epg_buffer_span(&bytes), out, err);
    epg_pool_close(pool);
    return code;
}

static epg_code read_spec(const char *text, const epg_benchmark_options *options, epg_spec *out, epg_error *err)
{
    if (epg_starts_with(text, "lib:")) {
        return read_library_spec(text, options, out, err);
    }
    epg_benchmark *benchmark = NULL;
    EPG_TRY(epg_benchmark_open(text, options, &benchmark, err));
    epg_code code = epg_benchmark_spec(benchmark, out, err);
    if (code == EPG_OK) {
        code = epg_spec_check(out, err);
    }
    epg_benchmark_destroy(benchmark);
    return code;
}

static epg_code run_show(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    const char *text = options->operands[0];
    EPG_AUTO_FREE char *python = NULL;
    EPG_TRY(epg_benchmark_python(options, text, &python, err));
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {.id = NULL};
    epg_benchmark_options open = {.python = python, .call_limit_ns = 60 * EPG_SECOND};
    EPG_TRY(read_spec(text, &open, &spec, err));
    EPG_AUTO_BUFFER out = {0};
    if (epg_option_given(options, "json")) {
        epg_json_writer writer;
        epg_json_begin(&writer, &out, 2);
        epg_spec_to_json(&spec, &writer, NULL);
        epg_json_finish(&writer);
    } else {
        show_text(&spec, &out);
    }
    return epg_cli_print(&out, err);
}

static const epg_option show_options[] = {
    EPG_BENCHMARK_OPTION,
    {.name = "json", .kind = EPG_OPTION_FLAG, .help = "one JSON document"},
    EPG_OPTIONS_END,
};

static const epg_command show = {
    .name = "show",
    .usage = "Usage: evopolicygym benchmark show SPEC [--json]\n\nShows what an Agent is told of a "
             "Benchmark, and the digest of its parameters.",
    .examples = "  evopolicygym benchmark show cartpole\n"
                "  evopolicygym benchmark show 'frozen-lake?map=8x8&slippery=false' --json\n",
    .wanted = "benchmark show needs one Benchmark, as in: evopolicygym benchmark show cartpole",
    .options = {show_options},
    .least = 1,
    .most = 1,
    .run = run_show,
};

/* --- check --- */

static void put_time(double seconds, epg_buffer *out)
{
    const char *unit = seconds < 1e-3 ? "us" : seconds < 1.0 ? "ms" : "s";
    (void)epg_buffer_format(out, "%.3g %s", seconds * (seconds < 1e-3 ? 1e6 : seconds < 1.0 ? 1e3 : 1.0), unit);
}

static void check_text(const char *name, const epg_benchmark_report *report, epg_buffer *out)
{
    (void)epg_buffer_format(out, "Benchmark   %s%s%s%s\n", name, report->id == NULL ? "" : " (",
                            report->id == NULL ? "" : report->id, report->id == NULL ? "" : ")");
    (void)epg_buffer_format(out, "Played      %llu Episodes, %llu steps, each twice\n",
                            (unsigned long long)report->episodes, (unsigned long long)report->steps);
    if (report->steps > 0 && report->step_seconds > 0.0) {
        (void)epg_buffer_text(out, "Speed       ");
        put_time(report->open_seconds, out);
        (void)epg_buffer_text(out, " to open and reset, ");
        put_time(report->step_seconds, out);
        (void)epg_buffer_format(out, " a step (%.0f steps/s)\n", 1.0 / report->step_seconds);
    }
    for (size_t i = 0; i < report->note_count; i++) {
        (void)epg_buffer_format(out, "Note        %s\n", report->notes[i].text);
    }
    for (size_t i = 0; i < report->finding_count; i++) {
        (void)epg_buffer_format(out, "FAULT       %s: %s\n", report->findings[i].aspect, report->findings[i].text);
    }
    (void)epg_buffer_format(out, "Result      %zu fault%s found\n", report->finding_count,
                            report->finding_count == 1 ? "" : "s");
}

static void check_json(const char *name, const epg_benchmark_report *report, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "benchmark", name);
    epg_json_put_u64(&writer, "episodes", report->episodes);
    epg_json_array(&writer, "findings");
    for (size_t i = 0; i < report->finding_count; i++) {
        epg_json_object(&writer, NULL);
        epg_json_put_text(&writer, "aspect", report->findings[i].aspect);
        epg_json_put_text(&writer, "text", report->findings[i].text);
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_put_text(&writer, "id", report->id);
    epg_json_array(&writer, "notes");
    for (size_t i = 0; i < report->note_count; i++) {
        epg_json_put_text(&writer, NULL, report->notes[i].text);
    }
    epg_json_end(&writer);
    epg_json_put_bool(&writer, "ok", report->finding_count == 0);
    epg_json_put_text(&writer, "schema", "evopolicygym/benchmark-check/v1");
    epg_json_object(&writer, "seconds");
    epg_json_put_double(&writer, "feedback", report->feedback_seconds);
    epg_json_put_double(&writer, "open_and_reset", report->open_seconds);
    epg_json_put_double(&writer, "step", report->step_seconds);
    epg_json_end(&writer);
    epg_json_put_u64(&writer, "steps", report->steps);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code read_actions(const char *path, json_t **out, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_JSON *actions = NULL;
    if (epg_file_read(AT_FDCWD, path, ACTIONS_BYTES_MAX, &text, err) != EPG_OK ||
        epg_json_parse(epg_buffer_span(&text), path, &actions, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "--actions");
    }
    bool right = json_is_array(actions) && json_array_size(actions) > 0;
    for (size_t i = 0; right && i < json_array_size(actions); i++) {
        right = json_is_array(json_array_get(actions, i));
    }
    if (!right) {
        return epg_fail(err, EPG_ERR_USAGE, "--actions: %s must hold a list of Episodes, each a list of Actions", path);
    }
    *out = EPG_TAKE(actions);
    return EPG_OK;
}

static epg_code read_request(const epg_options *options, epg_benchmark_check_request *out, json_t **actions,
                             char **python, epg_error *err)
{
    unsigned long long seed = 0;
    unsigned long long episodes = 4;
    unsigned long long steps = 10000;
    double limit = 60.0;
    out->benchmark = options->operands[0];
    EPG_TRY(epg_benchmark_python(options, out->benchmark, python, err));
    EPG_TRY(epg_option_u64(options, "seed", 0, UINT64_MAX, &seed, err));
    EPG_TRY(epg_option_u64(options, "episodes", 1, 10000, &episodes, err));
    EPG_TRY(epg_option_u64(options, "steps", 1, 10000000, &steps, err));
    EPG_TRY(epg_option_seconds(options, "environment-timeout", &limit, err));
    if (epg_option_given(options, "actions")) {
        EPG_TRY(read_actions(epg_option_text(options, "actions"), actions, err));
    }
    const char *split = epg_option_text(options, "split");
    out->split = split != NULL ? split : "train";
    out->seed = seed;
    out->episodes = episodes;
    out->steps = steps;
    out->actions = *actions;
    out->call_limit_ns = epg_duration_ns(limit);
    /* An external Benchmark's own limit passes first and says more. */
    out->options = (epg_benchmark_options){.python = *python, .call_limit_ns = out->call_limit_ns};
    out->call_limit_ns += out->call_limit_ns / 10;
    return EPG_OK;
}

static const char check_usage[] =
    "Usage: evopolicygym benchmark check SPEC [OPTIONS]\n\n"
    "Plays Episodes twice with the same Actions, in a process of their own, and looks at structure,\n"
    "determinism, ends, cleanup, limits, leaks of seeds or paths, and speed. Exit 1 when there is a\n"
    "fault.";
static const char check_examples[] = "  evopolicygym benchmark check cartpole\n"
                                     "  evopolicygym benchmark check 'taxi?rainy=true' --episodes 20 --json\n"
                                     "  evopolicygym benchmark check mine --actions actions.json\n";

static epg_code run_check(epg_options *options, bool *negative, epg_error *err)
{
    epg_benchmark_check_request request = {.benchmark = NULL};
    EPG_AUTO_JSON *actions = NULL;
    EPG_AUTO_FREE char *python = NULL;
    EPG_TRY(read_request(options, &request, &actions, &python, err));
    EPG_CLEANUP(epg_benchmark_report_free) epg_benchmark_report report = {.id = NULL};
    EPG_TRY(epg_benchmark_check(&request, &report, err));
    EPG_AUTO_BUFFER out = {0};
    if (epg_option_given(options, "json")) {
        check_json(request.benchmark, &report, &out);
    } else {
        check_text(request.benchmark, &report, &out);
    }
    *negative = report.finding_count > 0;
    return epg_cli_print(&out, err);
}

static const epg_option check_options[] = {
    {.name = "actions",
     .kind = EPG_OPTION_VALUE,
     .value_name = "FILE",
     .help = "Actions to replay: a JSON list of Episodes, each a list of Actions\n(drawn from the action space)"},
    EPG_BENCHMARK_OPTION,
    {.name = "environment-timeout",
     .kind = EPG_OPTION_VALUE,
     .value_name = "SECONDS",
     .help = "limit on one call (60)"},
    {.name = "episodes", .short_name = 'n', .kind = EPG_OPTION_VALUE, .value_name = "N", .help = "how many (4)"},
    {.name = "seed", .kind = EPG_OPTION_VALUE, .value_name = "N", .help = "of the plan and of drawn Actions (0)"},
    {.name = "split", .kind = EPG_OPTION_VALUE, .value_name = "NAME", .help = "of the Benchmark (train)"},
    {.name = "steps", .kind = EPG_OPTION_VALUE, .value_name = "N", .help = "at most, of an Episode (10000)"},
    {.name = "json", .kind = EPG_OPTION_FLAG, .help = "one JSON document"},
    EPG_OPTIONS_END,
};

static const epg_command check = {
    .name = "check",
    .usage = check_usage,
    .examples = check_examples,
    .wanted = "benchmark check needs one Benchmark, as in: evopolicygym benchmark check cartpole",
    .options = {check_options},
    .least = 1,
    .most = 1,
    .run = run_check,
};

/* --- */

static const epg_command *const members[] = {&list, &show, &check, &epg_benchmark_baseline, NULL};

const epg_command epg_cmd_benchmark = {
    .name = "benchmark",
    .summary = "list, show and check Benchmarks",
    .usage = usage,
    .wanted = "benchmark needs a command: list, show SPEC, check SPEC or baseline SPEC",
    .members = members,
};
