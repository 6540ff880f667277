#include "cli/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "runs/session.h"

/* What a person would do now. */
static void print_next(const char *directory, const epg_run_outcome *outcome)
{
    EPG_AUTO_FREE char *program = epg_shell_word(program_invocation_name); /* as it was typed */
    EPG_AUTO_FREE char *run = epg_shell_word(directory);
    if (strcmp(outcome->terminal_reason, "interrupted") == 0) {
        (void)printf("Go on with: %s resume %s\n", program, run);
    } else if (outcome->final_submission > 0) {
        (void)printf("Look at it with:\n  %s log %s\n  %s report %s -o report.html\n", program, run, program, run);
    } else if (outcome->submissions > 0) {
        (void)printf("No candidate was handed over. To choose one: %s finish %s best\n", program, run);
    } else {
        (void)printf("What the Agent said stands in %s/agent/stderr.log and stdout.log\n", directory);
    }
}

static void print_outcome(const char *directory, const epg_run_outcome *outcome)
{
    (void)printf("Run %s: %s\n", directory, outcome->terminal_reason);
    if (outcome->detail != NULL) {
        EPG_AUTO_FREE char *why = epg_printable(outcome->detail, strlen(outcome->detail));
        (void)printf("  why         %s\n", why);
    }
    (void)printf("  submissions %llu\n", (unsigned long long)outcome->submissions);
    if (outcome->final_submission > 0) {
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(outcome->final_submission, id);
        (void)printf("  selected    %s\n", id);
    }
    if (outcome->has_validation_score) {
        (void)printf("  validation  %.6g\n", outcome->validation_score);
    }
    if (outcome->has_assessment_score) {
        (void)printf("  assessment  %.6g\n", outcome->assessment_score);
    }
    print_next(directory, outcome);
}

static void print_outcome_json(const char *directory, const epg_run_outcome *outcome)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(outcome->final_submission, id);
    epg_json_begin(&writer, &out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_known(&writer, "assessment_score", outcome->has_assessment_score, outcome->assessment_score);
    epg_json_put_text(&writer, "detail", outcome->detail);
    epg_json_put_text(&writer, "directory", directory);
    epg_json_put_text(&writer, "final_submission_id", outcome->final_submission > 0 ? id : NULL);
    epg_json_put_text(&writer, "schema", "evopolicygym/run-outcome/v1");
    epg_json_put_u64(&writer, "submissions", outcome->submissions);
    epg_json_put_text(&writer, "terminal_reason", outcome->terminal_reason);
    epg_json_put_known(&writer, "validation_score", outcome->has_validation_score, outcome->validation_score);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    (void)fputs(epg_buffer_cstr(&out), stdout);
}

/* Whose fault it was: the Benchmark's, unless it was told to be another trusted party's. */
static epg_code whose_fault(epg_code told)
{
    const int mistake = epg_exit_code(EPG_ERR_USAGE);
    return told == EPG_OK || epg_exit_code(told) == mistake ? EPG_ERR_BENCHMARK : told;
}

/* A Run that ended as it should is success; one that did not says so by its exit code, and its record stands. */
static epg_code outcome_code(const epg_run_outcome *outcome, bool *negative, epg_error *err)
{
    const struct {
        const char *reason;
        epg_code code;
    } faults[] = {
        {"evaluation_failed", whose_fault(outcome->fault)},
        {"validation_failed", whose_fault(outcome->fault)},
        {"assessment_failed", whose_fault(outcome->fault)},
        {"interrupted", EPG_ERR_INTERRUPTED},
    };
    for (size_t i = 0; i < EPG_COUNT(faults); i++) {
        if (strcmp(outcome->terminal_reason, faults[i].reason) == 0) {
            return epg_fail(err, faults[i].code, "the Run ended as %s%s%s", faults[i].reason,
                            outcome->detail != NULL ? ": " : "", outcome->detail != NULL ? outcome->detail : "");
        }
    }
    *negative = outcome->final_submission == 0;
    return EPG_OK;
}

epg_code epg_outcome_tell(const char *directory, const epg_run_outcome *outcome, bool json, bool *negative,
                          epg_error *err)
{
    if (json) {
        print_outcome_json(directory, outcome);
    } else {
        print_outcome(directory, outcome);
    }
    return outcome_code(outcome, negative, err);
}
