/* `evopolicygym compare`: Runs of one Benchmark, ranked by held-out score. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "runs/compare.h"

#define SCHEMA "evopolicygym/run-comparison/v1"

static const char usage[] =
    "Usage: evopolicygym compare RUN... [OPTIONS]\n\n"
    "Ranks Runs of one Benchmark by the held-out (Assessment) score of their selected submission, with a 95% "
    "bootstrap\n"
    "confidence interval over its Episodes where the score is a mean over them, and tells Validation, the best "
    "training\n"
    "score within fixed budgets, Episodes, submissions, failures, time, tokens and cost. Agents with several Runs are\n"
    "told together too. Runs of different Benchmarks, or of different Environments of one, are refused.";
static const char examples[] = "  evopolicygym compare out/first out/second out/third\n"
                               "  evopolicygym compare out/* --at 50 --at 200\n"
                               "  evopolicygym compare out/* --json |\n"
                               "      jq '.runs[] | [.directory, .held_out.score]'\n";

static void interval_text(const epg_interval *interval, char out[2 * EPG_SHOWN_NUMBER + 8])
{
    char low[EPG_SHOWN_NUMBER];
    char high[EPG_SHOWN_NUMBER];
    epg_shown_score(true, interval->low, low);
    epg_shown_score(true, interval->high, high);
    EPG_AUTO_FREE char *text = interval->known ? epg_format("[%s, %s]", low, high) : epg_strdup("-");
    memcpy(out, text, strlen(text) + 1);
}

static char *agent_text(const char *provider, const char *model)
{
    EPG_AUTO_FREE char *text =
        epg_format("%s%s%s", provider != NULL ? provider : "?", model != NULL ? " " : "", model != NULL ? model : "");
    return epg_printable(text, strlen(text));
}

static void add_run(epg_table *table, const epg_comparison *comparison, size_t at)
{
    const epg_compared *run = &comparison->runs[at];
    const epg_summary *summary = &run->summary;
    const epg_history *history = &run->reading->history;
    char number[EPG_SHOWN_NUMBER];
    char interval[2 * EPG_SHOWN_NUMBER + 8];
    EPG_AUTO_FREE char *agent = agent_text(history->provider, history->model);
    EPG_AUTO_FREE char *rank = epg_format("%zu", at + 1);
    epg_table_add(table, summary->has_assessment ? rank : NULL);
    epg_table_add(table, agent);
    epg_shown_score(summary->has_assessment, summary->assessment, number);
    epg_table_add(table, number);
    interval_text(&run->interval, interval);
    epg_table_add(table, interval);
    epg_shown_score(summary->has_validation, summary->validation, number);
    epg_table_add(table, number);
    for (size_t i = 0; i < comparison->budget_count; i++) {
        epg_shown_score(run->has_best_at[i], run->best_at[i], number);
        epg_table_add(table, number);
    }
    epg_table_add_u64(table, summary->episodes_used);
    epg_table_add_u64(table, summary->submissions);
    epg_table_add_u64(table, summary->policy_failures);
    epg_shown_seconds(true, summary->wall_seconds, number);
    epg_table_add(table, number);
    epg_shown_tokens(summary->tokens_known, summary->tokens, number);
    epg_table_add(table, number);
    epg_shown_cost(summary->cost_known, summary->cost, number);
    epg_table_add(table, number);
    epg_table_add(table, summary->state);
    epg_table_add(table, run->reading->path);
}

/* The best-so-far columns stand in the middle, as many as there are budgets. */
static void put_runs(epg_shown *out, const epg_comparison *comparison)
{
    static const epg_column before[] = {
        {.title = "rank", .right = true},
        {.title = "Agent", .least = 12},
        {.title = "held-out", .right = true},
        {.title = "95% interval", .right = true},
        {.title = "validation", .right = true, .drop = 1},
    };
    static const epg_column after[] = {
        {.title = "Episodes", .right = true, .drop = 3},
        {.title = "submissions", .right = true, .drop = 3},
        {.title = "failed", .right = true, .drop = 3},
        {.title = "time", .right = true, .drop = 3},
        {.title = "tokens", .right = true, .drop = 3},
        {.title = "cost", .right = true, .drop = 3},
        {.title = "state", .drop = 3},
        {.title = "Run", .least = 20},
    };
    epg_column columns[EPG_COUNT(before) + EPG_COMPARE_BUDGETS + EPG_COUNT(after)];
    char titles[EPG_COMPARE_BUDGETS][32];
    size_t count = EPG_COUNT(before);
    memcpy(columns, before, sizeof before);
    for (size_t i = 0; i < comparison->budget_count; i++) {
        (void)snprintf(titles[i], sizeof titles[i], "best@%llu", (unsigned long long)comparison->budgets[i]);
        columns[count++] = (epg_column){.title = titles[i], .right = true, .drop = 2};
    }
    memcpy(&columns[count], after, sizeof after);
    EPG_CLEANUP(epg_table_free) epg_table table;
    epg_table_begin(&table, columns, count + EPG_COUNT(after), true);
    for (size_t i = 0; i < comparison->run_count; i++) {
        add_run(&table, comparison, i);
    }
    epg_table_put(&table, out);
}

static void put_groups(epg_shown *out, const epg_comparison *comparison)
{
    static const epg_column columns[] = {
        {.title = "Agent", .least = 12},
        {.title = "held-out", .right = true},
        {.title = "95% interval", .right = true},
        {.title = "Runs", .right = true, .drop = 1},
        {.title = "measured", .right = true, .drop = 2},
    };
    if (comparison->group_count == comparison->run_count) {
        return; /* they would say the same */
    }
    EPG_CLEANUP(epg_table_free) epg_table table;
    epg_table_begin(&table, columns, EPG_COUNT(columns), true);
    for (size_t i = 0; i < comparison->group_count; i++) {
        const epg_compared_group *group = &comparison->groups[i];
        char number[EPG_SHOWN_NUMBER];
        char interval[2 * EPG_SHOWN_NUMBER + 8];
        EPG_AUTO_FREE char *agent = agent_text(group->provider, group->model);
        epg_shown_score(group->measured > 0, group->mean, number);
        interval_text(&group->interval, interval);
        epg_table_add(&table, agent);
        epg_table_add(&table, number);
        epg_table_add(&table, interval);
        epg_table_add_u64(&table, group->runs);
        epg_table_add_u64(&table, group->measured);
    }
    (void)epg_buffer_byte(&out->text, '\n');
    epg_table_put(&table, out);
}

static void compare_text(const epg_comparison *comparison, epg_shown *out)
{
    const epg_history *history = &comparison->runs[0].reading->history;
    epg_shown_line(out, history->benchmark_id);
    if (history->metric != NULL && history->direction_known) {
        (void)epg_buffer_text(&out->text, ", ");
        epg_shown_line(out, history->metric);
        (void)epg_buffer_format(&out->text, ", %s", epg_direction_name(history->direction));
    }
    (void)epg_buffer_byte(&out->text, '\n');
    put_runs(out, comparison);
    put_groups(out, comparison);
    if (comparison->splits_differ) {
        (void)epg_buffer_text(&out->text, "\nNote: the held-out Episodes are not all of one split.\n");
    }
}

/* --- JSON --- */

static void put_held_out(epg_json_writer *writer, bool known, double score, const epg_interval *interval)
{
    if (!known) {
        epg_json_put_null(writer, "held_out");
        return;
    }
    epg_json_object(writer, "held_out");
    if (interval->known) {
        epg_json_array(writer, "interval");
        epg_json_put_computed(writer, NULL, interval->low);
        epg_json_put_computed(writer, NULL, interval->high);
        epg_json_end(writer);
    } else {
        epg_json_put_null(writer, "interval");
    }
    epg_json_put_computed(writer, "score", score);
    epg_json_end(writer);
}

static void run_json(const epg_comparison *comparison, const epg_compared *run, epg_json_writer *writer)
{
    epg_json_object(writer, NULL);
    epg_json_array(writer, "best_at");
    for (size_t i = 0; i < comparison->budget_count; i++) {
        epg_json_object(writer, NULL);
        epg_json_put_u64(writer, "episodes", comparison->budgets[i]);
        epg_json_put_known(writer, "score", run->has_best_at[i], run->best_at[i]);
        epg_json_end(writer);
    }
    epg_json_end(writer);
    epg_json_put_text(writer, "directory", run->reading->path);
    put_held_out(writer, run->summary.has_assessment, run->summary.assessment, &run->interval);
    epg_summary_run_json(run->reading, writer, "run");
    epg_json_end(writer);
}

static void compare_json(const epg_comparison *comparison, epg_buffer *out)
{
    const epg_history *history = &comparison->runs[0].reading->history;
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_object(&writer, "benchmark");
    epg_json_put_text(&writer, "environment_digest", history->environment_digest);
    epg_json_put_text(&writer, "id", history->benchmark_id);
    epg_json_end(&writer);
    epg_json_put_double(&writer, "confidence", 0.95);
    epg_json_array(&writer, "groups");
    for (size_t i = 0; i < comparison->group_count; i++) {
        const epg_compared_group *group = &comparison->groups[i];
        epg_json_object(&writer, NULL);
        put_held_out(&writer, group->measured > 0, group->mean, &group->interval);
        epg_json_put_text(&writer, "model", group->model);
        epg_json_put_text(&writer, "provider", group->provider);
        epg_json_put_u64(&writer, "runs", group->runs);
        epg_json_put_u64(&writer, "runs_measured", group->measured);
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_array(&writer, "runs");
    for (size_t i = 0; i < comparison->run_count; i++) {
        run_json(comparison, &comparison->runs[i], &writer);
    }
    epg_json_end(&writer);
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_put_bool(&writer, "splits_differ", comparison->splits_differ);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

typedef struct readings {
    epg_reading *items;
    size_t count;
} readings;

static void readings_free(readings *all)
{
    for (size_t i = 0; i < all->count; i++) {
        epg_reading_free(&all->items[i]);
    }
    epg_free_cleanup(&all->items);
}

static epg_code read_budgets(const epg_options *options, uint64_t budgets[EPG_COMPARE_BUDGETS], size_t *count,
                             epg_error *err)
{
    const epg_option *at = epg_option_find(options, "at");
    if (at->value_count > EPG_COMPARE_BUDGETS) {
        return epg_fail(err, EPG_ERR_USAGE, "--at may be given %d times", EPG_COMPARE_BUDGETS);
    }
    for (; *count < at->value_count; ++*count) {
        const char *text = at->values[*count];
        if (!epg_parse_u64(text, strlen(text), UINT64_MAX, &budgets[*count]) || budgets[*count] == 0) {
            return epg_fail(err, EPG_ERR_USAGE, "--at takes a number of Episodes");
        }
    }
    return EPG_OK;
}

static epg_code run_compare(epg_options *options, bool *negative, epg_error *err)
{
    (void)negative;
    uint64_t budgets[EPG_COMPARE_BUDGETS];
    size_t budget_count = 0;
    EPG_TRY(read_budgets(options, budgets, &budget_count, err));
    readings all EPG_CLEANUP(readings_free) = {.items = epg_alloc_array(options->operand_count, sizeof(epg_reading))};
    for (; all.count < options->operand_count; all.count++) {
        EPG_TRY(epg_reading_open(options->operands[all.count], EPG_READ_SUBMISSIONS, &all.items[all.count], err));
    }
    EPG_CLEANUP(epg_comparison_free) epg_comparison comparison = {0};
    EPG_TRY(epg_compare(all.items, all.count, budget_count > 0 ? budgets : NULL, budget_count, &comparison, err));
    EPG_CLEANUP(epg_shown_free) epg_shown out;
    epg_shown_begin(&out);
    if (epg_option_given(options, "json")) {
        compare_json(&comparison, &out.text);
    } else {
        compare_text(&comparison, &out);
    }
    return epg_cli_print(&out.text, err);
}

static const epg_option table[] = {
    {.name = "at",
     .kind = EPG_OPTION_LIST,
     .value_name = "EPISODES",
     .help = "tell the best training score within this budget; repeatable\n(quarters of the smallest budget)"},
    EPG_CLI_JSON,
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_compare = {
    .name = "compare",
    .summary = "rank Runs of one Benchmark by held-out score",
    .usage = usage,
    .examples = examples,
    .wanted = "name Runs: evopolicygym compare RUN...",
    .options = {table},
    .least = 1,
    .most = SIZE_MAX,
    .run = run_compare,
};
