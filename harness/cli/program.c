/* `evopolicygym program`: what a snapshot of a directory would be. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "programs/program.h"

#define SCHEMA "evopolicygym/program-description/v1"

static const char usage[] =
    "Usage: evopolicygym program digest [OPTIONS] DIR\n"
    "       evopolicygym program show [OPTIONS] DIR\n"
    "\n"
    "Takes a snapshot of a Program's directory, as a submission does, and tells its digest, or all that is in it.\n"
    "Nothing is written. Left out are directories named .git and __pycache__, and files that end in .pyc.";

static const char examples[] = "  # The digest, alone on one line.\n"
                               "  evopolicygym program digest my-program\n\n"
                               "  # Files, sizes and digest; the same for machines.\n"
                               "  evopolicygym program show my-program\n"
                               "  evopolicygym program show --json my-program | jq .\n";

static epg_code read_limits(const epg_options *options, epg_program_limits *limits, epg_error *err)
{
    const struct {
        const char *name;
        uint64_t *field;
    } table[] = {
        {"max-files", &limits->files},
        {"max-bytes", &limits->total_bytes},
        {"max-file-bytes", &limits->file_bytes},
    };
    *limits = epg_program_default_limits;
    for (size_t i = 0; i < EPG_COUNT(table); i++) {
        unsigned long long value = *table[i].field;
        EPG_TRY(epg_option_u64(options, table[i].name, 1, INT64_MAX, &value, err));
        *table[i].field = value;
    }
    return EPG_OK;
}

static void describe_json(const epg_program *program, bool with_files, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "digest", program->digest);
    epg_json_put_u64(&writer, "file_count", program->count);
    if (with_files) {
        epg_json_array(&writer, "files");
        for (size_t i = 0; i < program->count; i++) {
            epg_json_object(&writer, NULL);
            epg_json_put_text(&writer, "path", program->files[i].path);
            epg_json_put_u64(&writer, "size", program->files[i].content.size);
            epg_json_end(&writer);
        }
        epg_json_end(&writer);
    }
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_put_u64(&writer, "total_bytes", program->total_bytes);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static void describe_text(const epg_program *program, epg_buffer *out)
{
    for (size_t i = 0; i < program->count; i++) {
        const epg_program_file *file = &program->files[i];
        EPG_AUTO_FREE char *path = epg_printable(file->path, strlen(file->path));
        (void)epg_buffer_format(out, "%12zu  %s\n", file->content.size, path);
    }
    (void)epg_buffer_format(out, "%12llu  bytes in %zu file%s\n%s\n", (unsigned long long)program->total_bytes,
                            program->count, program->count == 1 ? "" : "s", program->digest);
}

static epg_code run_program(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    epg_program_limits limits;
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    EPG_AUTO_BUFFER text = {0};
    bool show = strcmp(options->operands[0], "show") == 0;
    if (!show && strcmp(options->operands[0], "digest") != 0) {
        static const char *const known[] = {"digest", "show"};
        return epg_cli_no_command("program", options->operands[0], known, EPG_COUNT(known), err);
    }
    bool after_dashes = options->operand_count == 1 && options->rest_count == 1;
    if (!after_dashes && (options->operand_count != 2 || options->rest_count > 0)) {
        return epg_fail(err, EPG_ERR_USAGE, "name one directory: program %s DIR", options->operands[0]);
    }
    const char *directory = after_dashes ? options->rest[0] : options->operands[1];
    EPG_TRY(read_limits(options, &limits, err));
    epg_code code = epg_program_capture_path(directory, &limits, &program, err);
    if (code == EPG_ERR_INVALID || code == EPG_ERR_LIMIT) {
        return epg_fail_as(err, EPG_ERR_USAGE,
                           "no snapshot of it can be taken"); /* the user's directory, and told now */
    }
    EPG_TRY(code);
    if (epg_option_given(options, "json")) {
        describe_json(&program, show, &text);
    } else if (show) {
        describe_text(&program, &text);
    } else {
        (void)epg_buffer_format(&text, "%s\n", program.digest);
    }
    return epg_cli_print(&text, err);
}

static const epg_option table[] = {
    EPG_CLI_JSON,
    {.name = "max-files",
     .kind = EPG_OPTION_VALUE,
     .value_name = "N",
     .help = "refuse more files than this (default 1000)"},
    {.name = "max-bytes",
     .kind = EPG_OPTION_VALUE,
     .value_name = "N",
     .help = "refuse more bytes in all (default 67108864)"},
    {.name = "max-file-bytes",
     .kind = EPG_OPTION_VALUE,
     .value_name = "N",
     .help = "refuse a larger file (default 16777216)"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_program = {
    .name = "program",
    .summary = "tell what a snapshot of a Program's directory would be",
    .usage = usage,
    .examples = examples,
    .wanted = "say what to do: program digest DIR, or program show DIR",
    .options = {table},
    .least = 1,
    .most = SIZE_MAX,
    .takes_rest = true, /* a directory whose name begins with a dash */
    .run = run_program,
};
