/* `evopolicygym show`: all about one submission. */
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/table.h"

#define SCHEMA "evopolicygym/run-submission/v1"
enum { DIFF_MAX = 64 * 1024 * 1024, EPISODES_SHOWN = 50 };

static const char usage[] =
    "Usage: evopolicygym show RUN SUBMISSION [OPTIONS]\n\n"
    "Tells all about one submission: its facts, its Episodes, its Feedback, and with --patch what its Program\n"
    "changed from the submission before. SUBMISSION is an id or a number, or initial, last, best (by training score)\n"
    "or final.";
static const char examples[] = "  evopolicygym show out/first 3\n"
                               "  evopolicygym show out/first best --patch\n"
                               "  evopolicygym show out/first submission-000003 --json | jq .feedback.content\n"
                               "\n"
                               "  # Commit, note and patch with git alone.\n"
                               "  git -C out/first/history.git show --notes submission-000003\n";

typedef struct shown_submission {
    const epg_reading *reading;
    uint64_t number;
    epg_submission_mark mark;
    json_t *feedback; /* NULL: none */
    epg_buffer diff;
    bool has_diff; /* snapshots are left */
} shown_submission;

static void shown_submission_free(shown_submission *self)
{
    json_decref(self->feedback);
    epg_buffer_free(&self->diff);
}

static void put_json_text(epg_shown *out, const json_t *value, const char *indent)
{
    EPG_AUTO_BUFFER text = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &text, 2);
    epg_json_put_json(&writer, NULL, value);
    epg_json_finish(&writer);
    epg_shown_text(out, epg_buffer_cstr(&text), text.size, indent);
}

/* Feedback counts the Episodes of an evaluation from 0; what the Agent asked for are indices of the training pool. */
static void put_episodes(epg_shown *out, const json_t *episodes)
{
    static const epg_column columns[] = {
        {.title = "pool index", .right = true}, {.title = "in Feedback", .right = true},
        {.title = "reward", .right = true},     {.title = "steps", .right = true},
        {.title = "status", .least = 8},
    };
    size_t count = json_array_size(episodes);
    EPG_CLEANUP(epg_table_free) epg_table table;
    epg_table_begin(&table, columns, EPG_COUNT(columns), false);
    for (size_t i = 0; i < count && i < EPISODES_SHOWN; i++) {
        const json_t *one = json_array_get(episodes, i);
        const json_t *reward = json_object_get(one, "reward");
        const char *failure = json_string_value(json_object_get(one, "failure"));
        char score[EPG_SHOWN_NUMBER];
        epg_shown_score(json_is_number(reward), json_number_value(reward), score);
        epg_table_add_u64(&table, (uint64_t)json_integer_value(json_object_get(one, "episode_index")));
        epg_table_add_u64(&table, i);
        epg_table_add(&table, score);
        epg_table_add_u64(&table, (uint64_t)json_integer_value(json_object_get(one, "steps")));
        if (failure != NULL) {
            epg_table_add_shaded(&table, EPG_SHADE_BAD, failure);
        } else {
            epg_table_add(&table, json_string_value(json_object_get(one, "status")));
        }
    }
    (void)epg_buffer_text(&out->text, "\nEpisodes\n");
    epg_table_put(&table, out);
    if (count > EPISODES_SHOWN) {
        (void)epg_buffer_format(&out->text, "... and %zu more; --json tells all\n", count - EPISODES_SHOWN);
    }
}

static void put_artifacts(epg_shown *out, const json_t *artifacts, const char *id)
{
    for (size_t i = 0; i < json_array_size(artifacts); i++) {
        const json_t *one = json_array_get(artifacts, i);
        (void)epg_buffer_format(&out->text, "%ssubmissions/%s/", i == 0 ? "\nArtifacts (below the Run)\n  " : "  ", id);
        epg_shown_line(out, json_string_value(json_object_get(one, "path")));
        (void)epg_buffer_format(&out->text, "  %lld bytes\n",
                                (long long)json_integer_value(json_object_get(one, "size")));
    }
}

static void put_facts(epg_shown *out, const shown_submission *self, const char *id)
{
    const epg_history_submission *one = &self->reading->history.submissions[self->number - 1];
    const epg_submission *facts = &one->facts;
    bool published = facts->state == EPG_SUBMISSION_PUBLISHED;
    char number[EPG_SHOWN_NUMBER];
    EPG_AUTO_BUFFER selector = {0};
    epg_selector_text(&facts->indices, &selector);
    (void)epg_buffer_text(&out->text, "\n");
    epg_shown_shade(out, EPG_SHADE_STRONG, id);
    (void)epg_buffer_format(&out->text, "%s%s\n", self->mark.best ? "  best of the Run" : "",
                            self->reading->history.selected == self->number ? "  selected" : "");
    (void)epg_buffer_format(&out->text, "  state      %s", epg_summary_submission_state(self->reading, self->number));
    if (facts->failure != NULL) {
        (void)epg_buffer_format(&out->text, " (%s)", facts->failure);
    }
    epg_shown_score(published, facts->score, number);
    (void)epg_buffer_format(&out->text, "\n  score      %s", number);
    if (self->mark.has_change) {
        epg_shown_change(true, self->mark.change, number);
        (void)epg_buffer_format(&out->text, " (%s from the one before)", number);
    }
    (void)epg_buffer_format(&out->text, "\n  Episodes   %s (%zu), %llu failed; %llu remain\n",
                            epg_buffer_cstr(&selector), facts->indices.count,
                            (unsigned long long)facts->policy_failures, (unsigned long long)facts->episodes_remaining);
    epg_shown_seconds(one->ended_unix_ns != 0, (double)(one->ended_unix_ns - one->started_unix_ns) / 1e9, number);
    (void)epg_buffer_format(&out->text, "  time       %s\n", number);
    epg_shown_tokens(one->tokens_known, one->tokens, number);
    (void)epg_buffer_format(&out->text, "  tokens     %s", number);
    epg_shown_cost(one->cost_known, one->cost, number);
    (void)epg_buffer_format(&out->text, ", cost %s, of the Agent since the submission before\n", number);
    (void)epg_buffer_format(&out->text, "  Program    %s%s\n", facts->program_digest,
                            self->mark.same ? " (as before)" : "");
    if (one->commit[0] != '\0') {
        (void)epg_buffer_format(&out->text, "  commit     %s\n", one->commit);
    }
}

static void show_text(const shown_submission *self, bool patch, epg_shown *out)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_reading_name(self->number, id);
    epg_shown_run(out, self->reading);
    if (self->number == 0) {
        (void)epg_buffer_format(&out->text, "\ninitial\n  Program    %s\n", epg_reading_digest(self->reading, 0));
        return;
    }
    put_facts(out, self, id);
    if (self->feedback != NULL) {
        put_episodes(out, json_object_get(self->feedback, "episodes"));
        (void)epg_buffer_text(&out->text, "\nFeedback\n");
        put_json_text(out, json_object_get(self->feedback, "content"), "  ");
        put_artifacts(out, json_object_get(self->feedback, "artifacts"), id);
    }
    if (patch && self->has_diff) {
        (void)epg_buffer_text(&out->text, "\n");
        epg_shown_diff(out, epg_buffer_span(&self->diff));
    }
}

static void show_json(const shown_submission *self, bool patch, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_json(&writer, "feedback", self->feedback);
    bool shown = patch && self->has_diff && epg_utf8_valid(self->diff.data, self->diff.size);
    epg_json_put_text(&writer, "patch", shown ? epg_buffer_cstr(&self->diff) : NULL);
    epg_summary_run_json(self->reading, &writer, "run");
    epg_json_put_text(&writer, "schema", SCHEMA);
    if (self->number > 0) {
        epg_summary_submission_json(self->reading, self->number, &self->mark, &writer, "submission");
    } else {
        epg_json_put_null(&writer, "submission");
    }
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code gather(shown_submission *self, bool patch, epg_error *err)
{
    const epg_reading *reading = self->reading;
    if (self->number == 0) {
        return EPG_OK;
    }
    EPG_AUTO_FREE epg_submission_mark *marks = epg_alloc_array(reading->history.submission_count, sizeof *marks);
    epg_summary_marks(reading, marks);
    self->mark = marks[self->number - 1];
    epg_code code = epg_reading_feedback(reading, self->number, &self->feedback, err);
    if (code != EPG_OK && code != EPG_ERR_NOT_FOUND) {
        return code;
    }
    if (patch) {
        self->diff.limit = DIFF_MAX;
        EPG_TRY(epg_reading_diff(reading, self->number - 1, self->number, &self->diff, err));
        self->has_diff = true;
    }
    return EPG_OK;
}

static epg_code run_show(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    bool patch = epg_option_given(options, "patch");
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    EPG_CLEANUP(shown_submission_free) shown_submission self = {.reading = &reading};
    EPG_CLEANUP(epg_shown_free) epg_shown out;
    epg_shown_begin(&out);
    EPG_TRY(epg_reading_open(options->operands[0], EPG_READ_SUBMISSIONS, &reading, err));
    EPG_TRY(epg_reading_find(&reading, options->operands[1], &self.number, err));
    EPG_TRY(gather(&self, patch, err));
    if (epg_option_given(options, "json")) {
        show_json(&self, patch, &out.text);
    } else {
        show_text(&self, patch, &out);
    }
    return epg_cli_print(&out.text, err);
}

static const epg_option table[] = {
    EPG_CLI_JSON,
    {.name = "patch",
     .short_name = 'p',
     .kind = EPG_OPTION_FLAG,
     .help = "what the Program changed from the submission before"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_show = {
    .name = "show",
    .summary = "tell all about one submission of a Run",
    .usage = usage,
    .examples = examples,
    .wanted = "name a Run and a submission: evopolicygym show RUN SUBMISSION",
    .options = {table},
    .least = 2,
    .most = 2,
    .run = run_show,
};
