/* `evopolicygym log`: one line a submission. */

#include "base/text.h"
#include "cli/cli.h"
#include "cli/table.h"

#define SCHEMA "evopolicygym/run-log/v1"

static const char usage[] =
    "Usage: evopolicygym log RUN [OPTIONS]\n\n"
    "Tells what the Agent of a Run submitted, one line a submission, in order: score, its change from the submission\n"
    "before, Episodes, how many of them failed, time, and the Agent's tokens and cost where they are known.\n"
    "'*' marks the best score of all, '+' one that was better than all before it, '=' after an id a Program that did\n"
    "not change. RUN may be complete, running or killed.";
static const char examples[] = "  evopolicygym log out/first\n"
                               "  evopolicygym log out/first --last 20\n"
                               "  evopolicygym log out/first --json | jq '.submissions[].score'\n"
                               "  git -C out/first/history.git log --notes       the same with git alone\n";

static bool is_candidate(const epg_history *history, uint64_t number)
{
    for (size_t i = 0; i < history->candidate_count; i++) {
        if (history->candidates[i] == number) {
            return true;
        }
    }
    return false;
}

/* What else is to be said of a submission. */
static void add_remark(epg_table *table, const epg_reading *reading, uint64_t number)
{
    const epg_history *history = &reading->history;
    const epg_submission *facts = &history->submissions[number - 1].facts;
    if (facts->state != EPG_SUBMISSION_PUBLISHED) {
        epg_table_add_shaded(table, EPG_SHADE_BAD,
                             facts->failure != NULL ? facts->failure : epg_summary_submission_state(reading, number));
    } else {
        epg_table_add(table, history->selected == number     ? "selected"
                             : is_candidate(history, number) ? "candidate"
                                                             : "");
    }
}

static const epg_column columns[] = {
    {.title = "  submission"},
    {.title = "score", .right = true},
    {.title = "change", .right = true, .drop = 3},
    {.title = "Episodes", .right = true, .drop = 1},
    {.title = "failed", .right = true, .drop = 2},
    {.title = "time", .right = true, .drop = 6},
    {.title = "tokens", .right = true, .drop = 4},
    {.title = "cost", .right = true, .drop = 5},
    {.title = "", .drop = 1},
};

static void add_submission(epg_table *table, const epg_reading *reading, uint64_t number,
                           const epg_submission_mark *mark)
{
    const epg_history_submission *one = &reading->history.submissions[number - 1];
    const epg_submission *facts = &one->facts;
    char id[EPG_SUBMISSION_ID_TEXT];
    char text[EPG_SHOWN_NUMBER];
    epg_submission_id(number, id);
    EPG_AUTO_FREE char *name = epg_format("%c %s%s",
                                          !mark->improves ? ' '
                                          : mark->best    ? '*'
                                                          : '+',
                                          id, mark->same ? "=" : "");
    if (mark->improves) {
        epg_table_add_shaded(table, EPG_SHADE_GOOD, name);
    } else {
        epg_table_add(table, name);
    }
    epg_shown_score(facts->state == EPG_SUBMISSION_PUBLISHED, facts->score, text);
    epg_table_add(table, text);
    epg_shown_change(mark->has_change, mark->change, text);
    epg_table_add(table, text);
    epg_table_add_u64(table, facts->indices.count);
    epg_table_add_u64(table, facts->policy_failures);
    epg_shown_seconds(one->ended_unix_ns != 0, (double)(one->ended_unix_ns - one->started_unix_ns) / 1e9, text);
    epg_table_add(table, text);
    epg_shown_tokens(one->tokens_known, one->tokens, text);
    epg_table_add(table, text);
    epg_shown_cost(one->cost_known, one->cost, text);
    epg_table_add(table, text);
    add_remark(table, reading, number);
}

static void put_measure(epg_shown *out, const char *what, const epg_history_measure *measure)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    char score[EPG_SHOWN_NUMBER];
    epg_submission_id(measure->number, id);
    epg_shown_score(measure->completed, measure->score, score);
    EPG_AUTO_FREE char *episodes = epg_shown_count(measure->episode_count, "Episode");
    (void)epg_buffer_format(&out->text, "%-10s  %s  %s over %s, %llu failed\n", what, id, score, episodes,
                            (unsigned long long)measure->policy_failures);
}

static void log_text(const epg_reading *reading, const epg_submission_mark *marks, uint64_t first, epg_shown *out)
{
    const epg_history *history = &reading->history;
    epg_shown_run(out, reading);
    EPG_CLEANUP(epg_table_free) epg_table table;
    epg_table_begin(&table, columns, EPG_COUNT(columns), false);
    for (uint64_t i = first; i < history->submission_count; i++) {
        add_submission(&table, reading, i + 1, &marks[i]);
    }
    if (history->submission_count > 0) {
        epg_table_put(&table, out);
    }
    for (size_t i = 0; i < history->validation_count; i++) {
        put_measure(out, "Validation", &history->validation[i]);
    }
    if (history->assessment_started) {
        put_measure(out, "Assessment", &history->assessment);
    }
}

static void log_json(const epg_reading *reading, const epg_submission_mark *marks, uint64_t first, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_summary_run_json(reading, &writer, "run");
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_array(&writer, "submissions");
    for (uint64_t i = first; i < reading->history.submission_count; i++) {
        epg_summary_submission_json(reading, i + 1, &marks[i], &writer, NULL);
    }
    epg_json_end(&writer);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code run_log(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    unsigned long long last = UINT64_MAX;
    EPG_TRY(epg_option_u64(options, "last", 1, UINT64_MAX, &last, err));
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    EPG_CLEANUP(epg_shown_free) epg_shown out;
    epg_shown_begin(&out);
    EPG_TRY(epg_reading_open(options->operands[0], EPG_READ_SUBMISSIONS, &reading, err));
    uint64_t count = reading.history.submission_count;
    uint64_t first = count > last ? count - last : 0;
    EPG_AUTO_FREE epg_submission_mark *marks = epg_alloc_array(count, sizeof *marks);
    epg_summary_marks(&reading, marks);
    if (epg_option_given(options, "json")) {
        log_json(&reading, marks, first, &out.text);
    } else {
        log_text(&reading, marks, first, &out);
    }
    return epg_cli_print(&out.text, err);
}

static const epg_option table[] = {
    EPG_CLI_JSON,
    {.name = "last",
     .short_name = 'n',
     .kind = EPG_OPTION_VALUE,
     .value_name = "N",
     .help = "the last N submissions only"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_log = {
    .name = "log",
    .summary = "tell what a Run submitted, one line a submission",
    .usage = usage,
    .examples = examples,
    .wanted = "name one Run: evopolicygym log RUN",
    .options = {table},
    .least = 1,
    .most = 1,
    .run = run_log,
};
