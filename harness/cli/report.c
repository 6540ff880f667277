/* `evopolicygym report`: Runs as one page to look at. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/cli.h"
#include "runs/report.h"
#include "system/files.h"
#include "system/io.h"

#define DEFAULT_FILE "report.html"

static const char usage[] =
    "Usage: evopolicygym report RUN... [-o FILE]\n\n"
    "Writes one HTML file that shows Runs: scores over submissions and Episodes, every submission's Episodes, changes "
    "and\n"
    "Feedback, the Agent's timeline, and Episodes to replay. It needs no network and nothing beside itself, and is "
    "never\n"
    "over 5 MB; what did not fit is told in it. Runs that are still running or were killed are shown as far as they "
    "went.\n"
    "The records are verified on the way: what does not hold stands on top of the page and on standard error, and the "
    "exit\n"
    "code is 1. FILE is replaced at once when it is whole; without -o, a " DEFAULT_FILE
    " that is no report is left alone.";
static const char examples[] = "  evopolicygym report out/first -o report.html\n"
                               "  evopolicygym report out/first out/second -o both.html\n"
                               "  evopolicygym report out/first -o - > report.html\n";

typedef struct readings {
    epg_reading *items;
    epg_verification *verifications;
    epg_report_run *runs;
    size_t count;
} readings;

static void readings_free(readings *self)
{
    for (size_t i = 0; i < self->count; i++) {
        epg_reading_free(&self->items[i]);
        epg_verification_free(&self->verifications[i]);
    }
    free(self->items);
    free(self->verifications);
    free(self->runs);
}

static epg_code read_all(const epg_options *options, readings *all, epg_error *err)
{
    for (; all->count < options->operand_count; all->count++) {
        size_t i = all->count;
        EPG_TRY(epg_reading_open(options->operands[i], EPG_READ_EPISODES, &all->items[i], err));
        all->runs[i].reading = &all->items[i];
        /* A Host may be in the middle of writing: half of what it writes is no fault. */
        if (!all->items[i].locked && epg_verify(options->operands[i], &all->verifications[i], err) == EPG_OK) {
            all->runs[i].verification = &all->verifications[i];
        }
    }
    return EPG_OK;
}

/* One line a Run whose record does not hold. */
static bool warn(const readings *all)
{
    bool sound = true;
    for (size_t i = 0; i < all->count; i++) {
        const epg_evidence_list *findings = &all->verifications[i].findings;
        if (findings->count == 0) {
            continue;
        }
        sound = false;
        const char *path = all->items[i].path;
        EPG_AUTO_FREE char *run = epg_printable(path, strlen(path));
        EPG_AUTO_FREE char *what = epg_format("%s: %s", findings->items[0].path, findings->items[0].what);
        EPG_AUTO_FREE char *first = epg_printable(what, strlen(what));
        (void)fprintf(stderr, "evopolicygym: the record of '%s' does not hold (%zu finding%s; %s); verify tells all\n",
                      run, findings->count, findings->count == 1 ? "" : "s", first);
    }
    return sound;
}

/* --- where the page goes --- */

/* A file that the user did not name is replaced only when it is an older report. */
static epg_code check_default(int directory, epg_error *err)
{
    EPG_AUTO_BUFFER old = {0};
    epg_code code = epg_file_read(directory, DEFAULT_FILE, 2 * (size_t)EPG_REPORT_BYTES, &old, NULL);
    if (code == EPG_ERR_NOT_FOUND || (code == EPG_OK && epg_report_is_page(epg_buffer_span(&old)))) {
        return EPG_OK;
    }
    return epg_fail(err, EPG_ERR_USAGE, "'" DEFAULT_FILE "' is there and is no report; name a file with -o");
}

/* Devices and pipes are written to as they are. */
static epg_code write_stream(const char *path, epg_span page, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = epg_io_open(AT_FDCWD, path, O_WRONLY | O_NOCTTY, 0);
    if (fd < 0 || epg_io_write_all(fd, page.data, page.size) != 0) {
        return epg_fail_errno(err, errno, "can't write to '%s'", path);
    }
    return EPG_OK;
}

static epg_code write_file(const char *path, bool named, epg_span page, epg_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    EPG_AUTO_FREE char *above = slash == NULL ? epg_strdup(".") : epg_strndup(path, (size_t)(slash - path) + 1);
    EPG_AUTO_CLOSE int directory = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return epg_fail(err, EPG_ERR_USAGE, "--output '%s': there is no directory '%s'", path, above);
    }
    if (!named) {
        EPG_TRY(check_default(directory, err));
    }
    return epg_file_write_atomic(directory, name, page, 0644, err);
}

static epg_code write_page(const char *path, bool named, epg_span page, epg_error *err)
{
    struct stat info;
    bool there = stat(path, &info) == 0;
    if (*path == '\0' || (there && S_ISDIR(info.st_mode)) || path[strlen(path) - 1] == '/') {
        return epg_fail(err, EPG_ERR_USAGE, "--output '%s' names no file", path);
    }
    if (there && !S_ISREG(info.st_mode)) {
        return write_stream(path, page, err);
    }
    EPG_AUTO_FREE char *real = there ? realpath(path, NULL) : NULL; /* a link stays one */
    return write_file(real != NULL ? real : path, named, page, err);
}

static epg_code run_report(epg_options *options, bool *negative, epg_error *err)
{
    const char *path = epg_option_text(options, "output");
    EPG_CLEANUP(readings_free)
    readings all = {.items = epg_alloc_array(options->operand_count, sizeof *all.items),
                    .verifications = epg_alloc_array(options->operand_count, sizeof *all.verifications),
                    .runs = epg_alloc_array(options->operand_count, sizeof *all.runs)};
    EPG_AUTO_BUFFER page = {0};
    EPG_TRY(read_all(options, &all, err));
    EPG_TRY(epg_report_page(all.runs, all.count, &page, err));
    if (path != NULL && strcmp(path, "-") == 0) {
        EPG_TRY(epg_cli_print(&page, err));
    } else {
        const char *file = path != NULL ? path : DEFAULT_FILE;
        EPG_TRY(write_page(file, path != NULL, epg_buffer_span(&page), err));
        (void)printf("%s: %zu bytes, %zu %s\n", file, page.size, all.count, all.count == 1 ? "Run" : "Runs");
    }
    *negative = !warn(&all);
    return EPG_OK;
}

static const epg_option table[] = {
    {.name = "output",
     .short_name = 'o',
     .kind = EPG_OPTION_VALUE,
     .value_name = "FILE",
     .help = "where the page goes (report.html); -: standard output"},
    EPG_OPTIONS_END,
};

_Static_assert(EPG_REPORT_RUNS == 20, "the command says so");

const epg_command epg_cmd_report = {
    .name = "report",
    .summary = "write a page that shows Runs",
    .usage = usage,
    .examples = examples,
    .wanted = "name 1 to 20 Runs: evopolicygym report RUN -o report.html",
    .options = {table},
    .least = 1,
    .most = EPG_REPORT_RUNS,
    .run = run_report,
};
