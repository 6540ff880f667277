/* `evopolicygym checkout`: a submission's Program, as a directory of the user's own. */
#include "cli/cli.h"
#include "cli/program_source.h"
#include "runs/reading.h"

static const char usage[] =
    "Usage: evopolicygym checkout RUN SUBMISSION DIR [OPTIONS]\n\n"
    "Writes the Program of a submission into the new directory DIR. SUBMISSION is an id or a number, or initial, "
    "last,\n"
    "best (by training score) or final (the selected one). The Program is checked against the Run's record first.";
static const char examples[] = "  evopolicygym checkout out/first submission-000003 third\n"
                               "  evopolicygym checkout out/first best my-program\n"
                               "\n"
                               "  # The same with git alone.\n"
                               "  git -C out/first/history.git archive submission-000003 | tar -x -C third\n";

static void tell(const epg_program *program, const char *name, const char *path, bool json, epg_buffer *out)
{
    if (!json) {
        (void)epg_buffer_format(out, "%s: %zu file%s of %s (%s)\n", path, program->count,
                                program->count == 1 ? "" : "s", name, program->digest);
        return;
    }
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "directory", path);
    epg_json_put_u64(&writer, "file_count", program->count);
    epg_json_put_text(&writer, "program_digest", program->digest);
    epg_json_put_text(&writer, "schema", "evopolicygym/run-checkout/v1");
    epg_json_put_text(&writer, "submission", name);
    epg_json_put_u64(&writer, "total_bytes", program->total_bytes);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code run_checkout(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    EPG_AUTO_BUFFER out = {0};
    uint64_t number = 0;
    char name[EPG_SUBMISSION_ID_TEXT];
    EPG_TRY(epg_reading_open(options->operands[0], EPG_READ_SUBMISSIONS, &reading, err));
    EPG_TRY(epg_reading_find(&reading, options->operands[1], &number, err));
    EPG_TRY(epg_reading_program(&reading, number, &program, err));
    EPG_TRY(epg_cli_program_write(&program, options->operands[2], "name a new directory", err));
    epg_reading_name(number, name);
    tell(&program, name, options->operands[2], epg_option_given(options, "json"), &out);
    return epg_cli_print(&out, err);
}

static const epg_option table[] = {
    EPG_CLI_JSON,
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_checkout = {
    .name = "checkout",
    .summary = "write a submission's Program into a directory",
    .usage = usage,
    .examples = examples,
    .wanted = "name a Run, a submission and a new directory: evopolicygym checkout RUN SUBMISSION DIR",
    .options = {table},
    .least = 3,
    .most = 3,
    .run = run_checkout,
};
