/* `evopolicygym report`: Runs as one page to look at. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "runs/report.h"
#include "system/files.h"

static const char usage[] =
    "Usage: evopolicygym report RUN... [-o FILE]\n\n"
    "Writes one HTML file that shows Runs: scores over submissions and Episodes, every submission's Episodes, changes "
    "and\n"
    "Feedback, the Agent's timeline, and Episodes to replay. It needs no network and nothing beside itself, and is "
    "never\n"
    "over 5 MB; what did not fit is told in it. A file of that name is replaced. Runs that are still running or were\n"
    "killed are shown as far as they went.";
static const char examples[] = "  evopolicygym report out/first -o report.html\n"
                               "  evopolicygym report out/first out/second -o both.html\n"
                               "  evopolicygym report out/first -o - > report.html\n";

typedef struct readings {
    epg_reading *items;
    size_t count;
} readings;

static void readings_free(readings *self)
{
    for (size_t i = 0; i < self->count; i++) {
        epg_reading_free(&self->items[i]);
    }
    free(self->items);
}

static epg_code write_page(const char *path, epg_span page, epg_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    EPG_AUTO_FREE char *above = slash == NULL ? epg_strdup(".") : epg_strndup(path, (size_t)(slash - path) + 1);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "--output '%s' names no file", path);
    }
    EPG_AUTO_CLOSE int directory = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return epg_fail(err, EPG_ERR_USAGE, "--output '%s': there is no directory '%s'", path, above);
    }
    return epg_file_write_atomic(directory, name, page, 0644, err);
}

static epg_code report(const epg_options *options, const char *path, epg_error *err)
{
    EPG_CLEANUP(readings_free)
    readings all = {.items = epg_alloc_array(options->operand_count, sizeof *all.items)};
    for (size_t i = 0; i < options->operand_count; i++) {
        EPG_TRY(epg_reading_open(options->operands[i], EPG_READ_EPISODES, &all.items[i], err));
        all.count++;
    }
    EPG_AUTO_BUFFER page = {0};
    EPG_TRY(epg_report_page(all.items, all.count, &page, err));
    if (strcmp(path, "-") == 0) {
        return epg_cli_print(&page, err);
    }
    EPG_TRY(write_page(path, epg_buffer_span(&page), err));
    (void)printf("%s: %zu bytes, %zu %s\n", path, page.size, all.count, all.count == 1 ? "Run" : "Runs");
    return EPG_OK;
}

epg_code epg_cmd_report(int argc, char **argv, bool *negative, epg_error *err)
{
    (void)negative;
    epg_option table[] = {
        {.name = "output",
         .short_name = 'o',
         .kind = EPG_OPTION_VALUE,
         .value_name = "FILE",
         .help = "where the page goes (report.html); -: standard output"},
        EPG_CLI_HELP,
    };
    EPG_CLEANUP(epg_options_free) epg_options options = {.table = table, .count = EPG_COUNT(table)};
    bool done = false;
    EPG_TRY(epg_cli_parse(&options, argc, argv, usage, examples, &done, err));
    if (done) {
        return EPG_OK;
    }
    if (options.operand_count == 0 || options.operand_count > EPG_REPORT_RUNS || options.rest_count != 0) {
        return epg_fail(err, EPG_ERR_USAGE, "name 1 to %d Runs: evopolicygym report RUN -o report.html",
                        EPG_REPORT_RUNS);
    }
    const epg_option *output = epg_option_find(&options, "output");
    return report(&options, output->given ? output->value : "report.html", err);
}
