/* `evopolicygym diff`: what changed from one submission to another. */
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "runs/comparison.h"

#define SCHEMA "evopolicygym/run-diff/v1"
enum { DIFF_MAX = 64 * 1024 * 1024, ROWS_SHOWN = 100, VALUE_SHOWN = 200 };

static const char usage[] =
    "Usage: evopolicygym diff RUN A B [OPTIONS]\n\n"
    "Tells what changed from submission A to submission B of a Run: the Program as a unified diff, then score,\n"
    "Episodes and Feedback side by side. A and B are ids or numbers, or initial, last, best or final.";
static const char examples[] = "  evopolicygym diff out/first initial final\n"
                               "  evopolicygym diff out/first 2 3 --feedback\n"
                               "  evopolicygym diff out/first 2 3 --program | git apply\n"
                               "\n"
                               "  # The Program with git alone.\n"
                               "  git -C out/first/history.git diff submission-000002 submission-000003\n";

typedef struct shown_pair {
    const epg_reading *reading;
    uint64_t numbers[2];
    json_t *feedback[2]; /* NULL: none */
    epg_pair pair;
    epg_buffer diff;
    bool program, results; /* what is to be told */
} shown_pair;

static void shown_pair_free(shown_pair *self)
{
    json_decref(self->feedback[0]);
    json_decref(self->feedback[1]);
    epg_pair_free(&self->pair);
    epg_buffer_free(&self->diff);
}

/* A value on one line; owned. */
static char *value_text(const json_t *value)
{
    if (value == NULL) {
        return epg_strdup("-");
    }
    if (json_is_number(value)) {
        return epg_format("%.6g", json_number_value(value));
    }
    if (json_is_string(value)) {
        return epg_strndup(json_string_value(value), strnlen(json_string_value(value), VALUE_SHOWN));
    }
    return epg_strdup(json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
}

static void add_row(epg_table *table, const char *name, const json_t *a, const json_t *b)
{
    char change[EPG_SHOWN_NUMBER] = "";
    EPG_AUTO_FREE char *left = value_text(a);
    EPG_AUTO_FREE char *right = value_text(b);
    if (json_is_number(a) && json_is_number(b)) {
        epg_shown_change(true, json_number_value(b) - json_number_value(a), change);
    }
    epg_table_add(table, name);
    epg_table_add(table, left);
    epg_table_add(table, right);
    epg_table_add(table, change);
}

/* A failed Episode shows its failure in place of a reward. */
static const json_t *episode_value(const json_t *episode)
{
    const json_t *failure = json_object_get(episode, "failure");
    return json_is_string(failure) ? failure : json_object_get(episode, "reward");
}

/* How many Episodes both played. */
static size_t add_episodes(epg_table *table, const epg_pair *pair)
{
    size_t matched = 0;
    for (size_t i = 0; i < pair->episode_count; i++) {
        const epg_pair_row *row = &pair->episodes[i];
        matched += row->a != NULL && row->b != NULL;
        if (i < ROWS_SHOWN) {
            EPG_AUTO_FREE char *name = epg_format("Episode %s", row->name);
            add_row(table, name, episode_value(row->a), episode_value(row->b));
        }
    }
    return matched;
}

static void put_left_out(epg_shown *out, size_t count, const char *what)
{
    if (count > ROWS_SHOWN) {
        (void)epg_buffer_format(&out->text, "... and %zu more %s; --json tells all\n", count - ROWS_SHOWN, what);
    }
}

/* Score, Episodes and Feedback, side by side. */
static void put_results(const shown_pair *self, const char *a, const char *b, epg_shown *out)
{
    const epg_pair *pair = &self->pair;
    const epg_column columns[] = {{.title = "", .least = 16},
                                  {.title = a, .right = true, .least = 18},
                                  {.title = b, .right = true, .least = 18},
                                  {.title = "change", .right = true}};
    EPG_CLEANUP(epg_table_free) epg_table table;
    epg_table_begin(&table, columns, EPG_COUNT(columns), false);
    add_row(&table, "score", json_object_get(self->feedback[0], "score"), json_object_get(self->feedback[1], "score"));
    size_t matched = add_episodes(&table, pair);
    for (size_t i = 0; i < pair->value_count && i < ROWS_SHOWN; i++) {
        add_row(&table, pair->values[i].name, pair->values[i].a, pair->values[i].b);
    }
    epg_table_put(&table, out);
    (void)epg_buffer_format(&out->text, "%zu of %zu Episodes were played by both\n", matched, pair->episode_count);
    put_left_out(out, pair->episode_count, "Episodes");
    put_left_out(out, pair->value_count, "values");
}

static void diff_text(const shown_pair *self, epg_shown *out)
{
    char a[EPG_SUBMISSION_ID_TEXT];
    char b[EPG_SUBMISSION_ID_TEXT];
    epg_reading_name(self->numbers[0], a);
    epg_reading_name(self->numbers[1], b);
    if (self->program) {
        epg_shown_diff(out, epg_buffer_span(&self->diff));
        if (self->diff.size == 0 && self->results) {
            (void)epg_buffer_text(&out->text, "The Programs are the same.\n");
        }
    }
    if (!self->results) {
        return;
    }
    (void)epg_buffer_text(&out->text, self->program ? "\n" : "");
    put_results(self, a, b, out);
}

static void put_rows(epg_json_writer *writer, const char *key, const epg_pair_row *rows, size_t count)
{
    epg_json_array(writer, key);
    for (size_t i = 0; i < count; i++) {
        const json_t *const sides[] = {rows[i].a, rows[i].b};
        static const char *const names[] = {"a", "b"};
        epg_json_object(writer, NULL);
        for (size_t j = 0; j < EPG_COUNT(sides); j++) {
            epg_json_put_json(writer, names[j], sides[j]);
        }
        epg_json_put_text(writer, "name", rows[i].name);
        epg_json_end(writer);
    }
    epg_json_end(writer);
}

static void put_side(epg_json_writer *writer, const char *key, const shown_pair *self, size_t side)
{
    char name[EPG_SUBMISSION_ID_TEXT];
    const json_t *score = json_object_get(self->feedback[side], "score");
    epg_reading_name(self->numbers[side], name);
    epg_json_object(writer, key);
    epg_json_put_text(writer, "program_digest", epg_reading_digest(self->reading, self->numbers[side]));
    epg_json_put_known(writer, "score", json_is_number(score), json_number_value(score));
    epg_json_put_text(writer, "submission", name);
    epg_json_end(writer);
}

static void diff_json(const shown_pair *self, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    put_side(&writer, "a", self, 0);
    put_side(&writer, "b", self, 1);
    put_rows(&writer, "episodes", self->pair.episodes, self->pair.episode_count);
    put_rows(&writer, "feedback", self->pair.values, self->pair.value_count);
    bool shown = self->program && epg_utf8_valid(self->diff.data, self->diff.size);
    epg_json_put_text(&writer, "patch", shown ? epg_buffer_cstr(&self->diff) : NULL);
    epg_json_put_text(&writer, "run", self->reading->path);
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static epg_code gather(shown_pair *self, epg_error *err)
{
    for (size_t i = 0; i < 2 && self->results; i++) {
        epg_code code = epg_reading_feedback(self->reading, self->numbers[i], &self->feedback[i], err);
        if (code != EPG_OK && code != EPG_ERR_NOT_FOUND) {
            return code;
        }
    }
    epg_pair_feedback(self->feedback[0], self->feedback[1], &self->pair);
    if (self->program) {
        self->diff.limit = DIFF_MAX;
        epg_code code = epg_reading_diff(self->reading, self->numbers[0], self->numbers[1], &self->diff, err);
        return code == EPG_ERR_NOT_FOUND ? epg_fail_as(err, EPG_ERR_USAGE, "--feedback compares the rest") : code;
    }
    return EPG_OK;
}

static epg_code run_diff(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    EPG_CLEANUP(shown_pair_free) shown_pair self = {.reading = &reading};
    EPG_CLEANUP(epg_shown_free) epg_shown out;
    epg_shown_begin(&out);
    bool only_feedback = epg_option_given(options, "feedback");
    bool only_program = epg_option_given(options, "program");
    self.program = only_program || !only_feedback;
    self.results = only_feedback || !only_program;
    EPG_TRY(epg_reading_open(options->operands[0], EPG_READ_SUBMISSIONS, &reading, err));
    EPG_TRY(epg_reading_find(&reading, options->operands[1], &self.numbers[0], err));
    EPG_TRY(epg_reading_find(&reading, options->operands[2], &self.numbers[1], err));
    EPG_TRY(gather(&self, err));
    if (epg_option_given(options, "json")) {
        diff_json(&self, &out.text);
    } else {
        diff_text(&self, &out);
    }
    return epg_cli_print(&out.text, err);
}

static const epg_option table[] = {
    {.name = "feedback", .kind = EPG_OPTION_FLAG, .help = "score, Episodes and Feedback only"},
    EPG_CLI_JSON,
    {.name = "program", .kind = EPG_OPTION_FLAG, .help = "the Program's unified diff only"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_diff = {
    .name = "diff",
    .summary = "tell what changed from one submission to another",
    .usage = usage,
    .examples = examples,
    .wanted = "name a Run and two submissions: evopolicygym diff RUN A B",
    .options = {table},
    .least = 3,
    .most = 3,
    .run = run_diff,
};
