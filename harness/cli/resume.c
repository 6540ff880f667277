/* `evopolicygym resume` and `evopolicygym finish`: a Run that exists goes on. */
#include "cli/cli.h"
#include "cli/outcome.h"
#include "cli/setup.h"

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

static epg_code go_on(const epg_options *options, epg_run_again_request *again, bool *negative, epg_error *err)
{
    EPG_TRY(epg_setup_jobs(options, &again->jobs, err));
    if (epg_option_given(options, "progress")) {
        EPG_TRY(epg_progress_mode_parse(epg_option_text(options, "progress"), &again->progress, err));
    }
    EPG_CLEANUP(epg_run_outcome_free) epg_run_outcome outcome = {0};
    EPG_TRY(epg_run_again(options->operands[0], again, &outcome, err));
    return epg_outcome_tell(options->operands[0], &outcome, epg_option_given(options, "json"), negative, err);
}

static epg_code run_resume(epg_options *options, bool *negative, epg_error *err)
{
    epg_run_again_request again = {0};
    return go_on(options, &again, negative, err);
}

static epg_code run_finish(epg_options *options, bool *negative, epg_error *err)
{
    epg_run_again_request again = {.candidates = options->operands + 1, .candidate_count = options->operand_count - 1};
    return go_on(options, &again, negative, err);
}

static const epg_option table[] = {
    {.name = "jobs",
     .short_name = 'j',
     .kind = EPG_OPTION_VALUE,
     .value_name = "N",
     .help = "Episodes at a time (as before)"},
    {.name = "progress", .kind = EPG_OPTION_VALUE, .value_name = "MODE", .help = "auto, plain, json or none"},
    {.name = "json", .kind = EPG_OPTION_FLAG, .help = "the outcome as one JSON document on standard output"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_resume = {
    .name = "resume",
    .summary = "go on with a Run that was cut off",
    .usage = resume_usage,
    .examples = resume_examples,
    .wanted = "name one Run: evopolicygym resume RUN",
    .options = {table},
    .least = 1,
    .most = 1,
    .run = run_resume,
};

const epg_command epg_cmd_finish = {
    .name = "finish",
    .summary = "hand over candidates for a Run whose Agent did not",
    .usage = finish_usage,
    .examples = finish_examples,
    .wanted = "name a Run and its candidates: evopolicygym finish RUN best",
    .options = {table},
    .least = 2,
    .most = SIZE_MAX,
    .run = run_finish,
};
