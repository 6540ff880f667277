/* `evopolicygym resume` and `evopolicygym finish`: a Run that exists goes on. */
#include "cli/cli.h"
#include "cli/outcome.h"

static const char resume_usage[] =
    "Usage: evopolicygym resume RUN [OPTIONS]\n\n"
    "Goes on with a Run that was cut off, from wherever it was. A submission that was charged is completed and\n"
    "published at no charge; the Agent is started again in its workspace with the time that is left; after finish,\n"
    "Validation and Assessment go on where they stopped.";
static const char resume_examples[] = "  evopolicygym resume out/first\n"
                                      "  evopolicygym resume out/first --jobs 2 --progress json 2> progress.jsonl\n";
static const char finish_usage[] =
    "Usage: evopolicygym finish RUN SUBMISSION... [OPTIONS]\n\n"
    "Hands over candidates for a Run whose Agent ended without doing so; Validation and Assessment follow as the\n"
    "Run was configured. A SUBMISSION is submission-000003, 3, best (by training score) or last. The record says\n"
    "that the operator chose.";
static const char finish_examples[] = "  # What there is, and the best of it.\n"
                                      "  evopolicygym log out/first\n"
                                      "  evopolicygym finish out/first best\n\n"
                                      "  # Several, when the Run has Validation to choose among them.\n"
                                      "  evopolicygym finish out/first submission-000003 7\n";

static epg_code go_on(epg_options *options, epg_run_again_request *again, bool *negative, epg_error *err)
{
    unsigned long long jobs = 0;
    EPG_TRY(epg_option_u64(options, "jobs", 1, 256, &jobs, err));
    again->jobs = (unsigned)jobs;
    if (epg_option_find(options, "progress")->given) {
        EPG_TRY(epg_progress_mode_parse(epg_option_find(options, "progress")->value, &again->progress, err));
    }
    EPG_CLEANUP(epg_run_outcome_free) epg_run_outcome outcome = {0};
    EPG_TRY(epg_run_again(options->operands[0], again, &outcome, err));
    return epg_outcome_tell(options->operands[0], &outcome, epg_option_find(options, "json")->given, negative, err);
}

#define AGAIN_OPTIONS                                                                                                  \
    {.name = "jobs",                                                                                                   \
     .short_name = 'j',                                                                                                \
     .kind = EPG_OPTION_VALUE,                                                                                         \
     .value_name = "N",                                                                                                \
     .help = "Episodes at a time (as before)"},                                                                        \
        {.name = "progress", .kind = EPG_OPTION_VALUE, .value_name = "MODE", .help = "auto, plain, json or none"},     \
        {.name = "json", .kind = EPG_OPTION_FLAG, .help = "the outcome as one JSON document on standard output"},      \
        EPG_CLI_HELP

epg_code epg_cmd_resume(int argc, char **argv, bool *negative, epg_error *err)
{
    epg_option table[] = {AGAIN_OPTIONS};
    EPG_CLEANUP(epg_options_free) epg_options options = {.table = table, .count = EPG_COUNT(table)};
    bool done = false;
    EPG_TRY(epg_cli_parse(&options, argc, argv, resume_usage, resume_examples, &done, err));
    if (done) {
        return EPG_OK;
    }
    if (options.operand_count != 1 || options.rest_count > 0) {
        return epg_fail(err, EPG_ERR_USAGE, "name one Run: evopolicygym resume RUN");
    }
    epg_run_again_request again = {0};
    return go_on(&options, &again, negative, err);
}

epg_code epg_cmd_finish(int argc, char **argv, bool *negative, epg_error *err)
{
    epg_option table[] = {AGAIN_OPTIONS};
    EPG_CLEANUP(epg_options_free) epg_options options = {.table = table, .count = EPG_COUNT(table)};
    bool done = false;
    EPG_TRY(epg_cli_parse(&options, argc, argv, finish_usage, finish_examples, &done, err));
    if (done) {
        return EPG_OK;
    }
    if (options.operand_count < 2 || options.rest_count > 0) {
        return epg_fail(err, EPG_ERR_USAGE, "name a Run and its candidates: evopolicygym finish RUN best");
    }
    epg_run_again_request again = {.candidates = options.operands + 1, .candidate_count = options.operand_count - 1};
    return go_on(&options, &again, negative, err);
}
