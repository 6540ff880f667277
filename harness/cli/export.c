/* `evopolicygym export`: a Run's trajectory for other tools. */

#include "runs/export.h"
#include "cli/cli.h"

static const char usage[] =
    "Usage: evopolicygym export RUN [OPTIONS]\n\n"
    "Writes a Run's trajectory to standard output: the task, what the Agent said and did, its submissions with their\n"
    "Feedback, and the outcome. atif is one document of the Agent Trajectory Interchange Format; jsonl is one object "
    "a\n"
    "line, schema evopolicygym/trajectory/v1.";
static const char examples[] = "  evopolicygym export out/first --format atif > trajectory.json\n"
                               "  evopolicygym export out/first --format jsonl |\n"
                               "      jq -c 'select(.type == \"submission\")'\n";

static epg_code print(void *context, epg_buffer *bytes, epg_error *err)
{
    (void)context;
    epg_code code = epg_cli_print(bytes, err);
    epg_buffer_clear(bytes);
    return code;
}

static epg_code run_export(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    epg_export_format format = epg_option_given(options, "json") ? EPG_EXPORT_ATIF : EPG_EXPORT_JSONL;
    if (epg_option_given(options, "format")) {
        EPG_TRY(epg_export_format_parse(epg_option_text(options, "format"), &format, err));
    }
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    EPG_TRY(epg_reading_open(options->operands[0], EPG_READ_SUBMISSIONS, &reading, err));
    return epg_export(&reading, format, print, NULL, err);
}

static const epg_option table[] = {
    {.name = "format",
     .short_name = 'f',
     .kind = EPG_OPTION_VALUE,
     .value_name = "FORMAT",
     .help = "atif or jsonl (jsonl)"},
    {.name = "json", .kind = EPG_OPTION_FLAG, .help = "one JSON document: the same as --format atif"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_export = {
    .name = "export",
    .summary = "write a Run's trajectory for other tools",
    .usage = usage,
    .examples = examples,
    .wanted = "name one Run: evopolicygym export RUN --format atif",
    .options = {table},
    .least = 1,
    .most = 1,
    .run = run_export,
};
