/* `evopolicygym list`: the Runs below a directory. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "runs/finding.h"

#define SCHEMA "evopolicygym/run-list/v1"
enum { ROOMY = 120 };

static const char usage[] =
    "Usage: evopolicygym list [DIR...] [OPTIONS]\n\n"
    "Tells the Runs below directories (the working directory when none is named): state, submissions, Episodes, best\n"
    "training score, Validation and Assessment of the selected submission, Benchmark and Agent. Runs are not entered.";
static const char examples[] = "  evopolicygym list out\n"
                               "  evopolicygym list out --json |\n"
                               "      jq -r '.runs[] | select(.run.state == \"killed\").directory'\n";

static const epg_column columns[] = {
    {.title = "state"},
    {.title = "started", .drop = 5},
    {.title = "submissions", .right = true, .drop = 4},
    {.title = "Episodes", .right = true, .drop = 6},
    {.title = "best", .right = true},
    {.title = "validation", .right = true, .drop = 7},
    {.title = "assessment", .right = true},
    {.title = "Benchmark", .drop = 1, .least = 11},
    {.title = "Agent", .drop = 3, .least = 8},
    {.title = "Run", .least = 20},
};

static void add_unreadable(epg_table *table, const epg_found_run *found)
{
    epg_table_add_shaded(table, EPG_SHADE_BAD, "unreadable");
    for (size_t i = 1; i + 1 < EPG_COUNT(columns); i++) {
        epg_table_add(table, "-");
    }
    epg_table_add(table, found->path);
}

/* In little room an id like AUTHOR/NAME/METRIC tells most by its NAME. */
static char *benchmark_text(const char *id)
{
    const char *name = id != NULL ? strchr(id, '/') : NULL;
    const char *end = name != NULL ? strrchr(name + 1, '/') : NULL;
    if (end == NULL || epg_table_width() >= ROOMY) {
        return id != NULL ? epg_strdup(id) : NULL;
    }
    return epg_strndup(name + 1, (size_t)(end - name) - 1);
}

static void add_run(epg_table *table, const epg_found_run *found)
{
    const epg_history *history = &found->reading.history;
    epg_summary summary;
    char score[EPG_SHOWN_NUMBER];
    char started[32] = "-";
    epg_summary_of(&found->reading, &summary);
    time_t when = (time_t)(history->first_unix_ns / EPG_SECOND);
    struct tm local;
    if (when > 0 && localtime_r(&when, &local) != NULL) {
        (void)strftime(started, sizeof started, "%Y-%m-%d %H:%M", &local);
    }
    epg_table_add(table, summary.state);
    epg_table_add(table, started);
    epg_table_add_u64(table, summary.submissions);
    epg_table_add_u64(table, summary.episodes_used);
    epg_shown_score(summary.best > 0, summary.best > 0 ? history->submissions[summary.best - 1].facts.score : 0, score);
    epg_table_add(table, score);
    epg_shown_score(summary.has_validation, summary.validation, score);
    epg_table_add(table, score);
    epg_shown_score(summary.has_assessment, summary.assessment, score);
    epg_table_add(table, score);
    EPG_AUTO_FREE char *benchmark = benchmark_text(history->benchmark_id);
    epg_table_add(table, benchmark);
    epg_table_add(table, history->model != NULL ? history->model : history->provider);
    epg_table_add(table, found->path);
}

static void list_text(const epg_found_runs *runs, epg_shown *out)
{
    if (runs->count == 0) {
        (void)epg_buffer_text(&out->text, "no Runs here\n");
        return;
    }
    EPG_CLEANUP(epg_table_free) epg_table table;
    epg_table_begin(&table, columns, EPG_COUNT(columns), false);
    for (size_t i = 0; i < runs->count; i++) {
        if (runs->items[i].readable) {
            add_run(&table, &runs->items[i]);
        } else {
            add_unreadable(&table, &runs->items[i]);
        }
    }
    epg_table_put(&table, out);
    for (size_t i = 0; i < runs->count; i++) {
        if (!runs->items[i].readable) {
            (void)epg_buffer_text(&out->text, "unreadable: ");
            epg_shown_line(out, runs->items[i].why);
            (void)epg_buffer_byte(&out->text, '\n');
        }
    }
}

static void list_json(const epg_found_runs *runs, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_array(&writer, "runs");
    for (size_t i = 0; i < runs->count; i++) {
        const epg_found_run *found = &runs->items[i];
        EPG_AUTO_FREE char *path = epg_printable(found->path, strlen(found->path));
        epg_json_object(&writer, NULL);
        epg_json_put_text(&writer, "directory", path);
        epg_json_put_text(&writer, "error", found->readable ? NULL : found->why);
        if (found->readable) {
            epg_summary_run_json(&found->reading, &writer, "run");
        } else {
            epg_json_put_null(&writer, "run");
        }
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code run_list(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    EPG_CLEANUP(epg_found_runs_free) epg_found_runs runs = {0};
    EPG_CLEANUP(epg_shown_free) epg_shown out;
    epg_shown_begin(&out);
    for (size_t i = 0; i < options->operand_count; i++) {
        EPG_TRY(epg_find_runs(options->operands[i], &runs, err));
    }
    if (options->operand_count == 0) {
        EPG_TRY(epg_find_runs(".", &runs, err));
    }
    if (epg_option_given(options, "json")) {
        list_json(&runs, &out.text);
    } else {
        list_text(&runs, &out);
    }
    return epg_cli_print(&out.text, err);
}

static const epg_option table[] = {
    EPG_CLI_JSON,
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_list = {
    .name = "list",
    .summary = "tell the Runs below a directory",
    .usage = usage,
    .examples = examples,
    .wanted = "name directories: evopolicygym list DIR...",
    .options = {table},
    .least = 0,
    .most = SIZE_MAX,
    .run = run_list,
};
