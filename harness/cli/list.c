/* `evopolicygym list`: the Runs below a directory. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/shown.h"
#include "runs/finding.h"

#define SCHEMA "evopolicygym/run-list/v1"

static const char usage[] =
    "Usage: evopolicygym list [DIR...] [OPTIONS]\n\n"
    "Tells the Runs below directories (the working directory when none is named): state, submissions, Episodes, best\n"
    "training score, Validation and Assessment of the selected submission, Benchmark and Agent. Runs are not entered.";
static const char examples[] =
    "  evopolicygym list out\n"
    "  evopolicygym list out --json | jq -r '.runs[] | select(.run.state == \"killed\").directory'\n";

static void put_run(epg_shown *out, const epg_found_run *found)
{
    char best[EPG_SHOWN_NUMBER];
    char validation[EPG_SHOWN_NUMBER];
    char assessment[EPG_SHOWN_NUMBER];
    if (!found->readable) {
        epg_shown_shade(out, EPG_SHADE_BAD, "unreadable");
        (void)epg_buffer_text(&out->text, "        ");
        epg_shown_line(out, found->path);
        (void)epg_buffer_text(&out->text, ": ");
        epg_shown_line(out, found->why);
        (void)epg_buffer_byte(&out->text, '\n');
        return;
    }
    epg_summary summary;
    epg_summary_of(&found->reading, &summary);
    const epg_history *history = &found->reading.history;
    epg_shown_score(summary.best > 0, summary.best > 0 ? history->submissions[summary.best - 1].facts.score : 0, best);
    epg_shown_score(summary.has_validation, summary.validation, validation);
    epg_shown_score(summary.has_assessment, summary.assessment, assessment);
    char started[32] = "-";
    time_t when = (time_t)(history->first_unix_ns / EPG_SECOND);
    struct tm local;
    if (when > 0 && localtime_r(&when, &local) != NULL) {
        (void)strftime(started, sizeof started, "%Y-%m-%d %H:%M", &local);
    }
    (void)epg_buffer_format(&out->text, "%-17s %-16s %5llu %8llu %10s %10s %10s  ", summary.state, started,
                            (unsigned long long)summary.submissions, (unsigned long long)summary.episodes_used, best,
                            validation, assessment);
    epg_shown_line(out, history->benchmark_id);
    (void)epg_buffer_text(&out->text, "  ");
    epg_shown_line(out, history->model != NULL ? history->model : history->provider);
    (void)epg_buffer_text(&out->text, "  ");
    epg_shown_line(out, found->path);
    (void)epg_buffer_byte(&out->text, '\n');
}

static void list_text(const epg_found_runs *runs, epg_shown *out)
{
    if (runs->count == 0) {
        (void)epg_buffer_text(&out->text, "no Runs here\n");
        return;
    }
    (void)epg_buffer_text(&out->text,
                          "state             started          submi. Episodes       best validation assessment"
                          "  Benchmark  Agent  Run\n");
    for (size_t i = 0; i < runs->count; i++) {
        put_run(out, &runs->items[i]);
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

epg_code epg_cmd_list(int argc, char **argv, bool *negative, epg_error *err)
{
    (void)negative;
    epg_option table[] = {
        {.name = "json", .kind = EPG_OPTION_FLAG, .help = "one JSON document on standard output"},
        EPG_CLI_HELP,
    };
    EPG_CLEANUP(epg_options_free) epg_options options = {.table = table, .count = EPG_COUNT(table)};
    bool done = false;
    EPG_TRY(epg_cli_parse(&options, argc, argv, usage, examples, &done, err));
    if (done) {
        return EPG_OK;
    }
    if (options.rest_count != 0) {
        return epg_fail(err, EPG_ERR_USAGE, "name directories: evopolicygym list DIR...");
    }
    EPG_CLEANUP(epg_found_runs_free) epg_found_runs runs = {0};
    EPG_CLEANUP(epg_shown_free) epg_shown out;
    epg_shown_begin(&out);
    for (size_t i = 0; i < options.operand_count; i++) {
        EPG_TRY(epg_find_runs(options.operands[i], &runs, err));
    }
    if (options.operand_count == 0) {
        EPG_TRY(epg_find_runs(".", &runs, err));
    }
    if (epg_option_find(&options, "json")->given) {
        list_json(&runs, &out.text);
    } else {
        list_text(&runs, &out);
    }
    return epg_cli_print(&out.text, err);
}
