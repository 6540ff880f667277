/* bench_publication [SUBMISSIONS [DIRECTORY]]: what one submission of one Episode costs beside its evaluation: git,
 * ledger, publication and retention, with every sync that a Run has. Medians of the first and of the last tenth, so
 * that growth shows. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/store.h"
#include "runs/ledger.h"
#include "runs/publication.h"
#include "runs/records.h"
#include "runs/retention.h"
#include "support/support.h"
#include "system/io.h"

enum { STEPS = 7 };
static const char *const step_names[STEPS] = {"git commit", "charge",    "publish", "event",
                                              "latest",     "retention", "git note"};

static void need(epg_code code, const epg_error *err)
{
    if (code != EPG_OK) {
        (void)fprintf(stderr, "%s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

static void make_program(uint64_t number, epg_program *out)
{
    epg_error err = {0};
    EPG_AUTO_FREE char *text =
        epg_format("VALUE = %llu\n\ndef make_policy(context):\n    return None\n", (unsigned long long)number);
    char *directory = epg_test_directory();
    epg_test_write_text(directory, "policy.py", text);
    epg_test_write_text(directory, "lib/helper.py", "def help():\n    return 1\n");
    need(epg_program_capture_path(directory, &epg_program_default_limits, out, &err), &err);
    epg_test_directory_free(directory);
}

typedef struct bench {
    int run;
    epg_store *store;
    epg_ledger *ledger;
    epg_publisher *publisher;
    epg_retention *retention;
    epg_session session;
    double *times[STEPS]; /* milliseconds */
    double *totals;
} bench;

static int64_t mark(bench *b, size_t step, size_t i, int64_t since)
{
    int64_t now = epg_monotonic_ns();
    b->times[step][i] = (double)(now - since) / 1e6;
    b->totals[i] += b->times[step][i];
    return now;
}

static void make_result(epg_evaluation_result *out)
{
    *out = (epg_evaluation_result){.episodes = epg_alloc_array(1, sizeof *out->episodes), .count = 1};
    out->episodes[0].reward = 1;
    out->episodes[0].steps = 1;
    out->feedback.score = 1;
    epg_value_put_text(&out->feedback.content, "one Episode");
    (void)epg_buffer_text(&epg_feedback_add(&out->feedback, "trace.txt", "text/plain", false)->content, "0 1\n");
    (void)epg_buffer_text(
        &epg_feedback_add(&out->feedback, "bulk/frames.bin", "application/octet-stream", true)->content,
        "0123456789abcdef");
}

static void submit(bench *b, size_t i)
{
    epg_error err = {0};
    epg_program program EPG_CLEANUP(epg_program_free) = {0};
    epg_evaluation_result result EPG_CLEANUP(epg_evaluation_result_free) = {0};
    char id[EPG_SUBMISSION_ID_TEXT];
    char commit[EPG_OBJECT_ID_TEXT];
    epg_indices indices = {(uint64_t[]){0}, 1};
    make_program(i, &program);
    make_result(&result);
    epg_submission_id(i + 1, id);
    int64_t at = epg_monotonic_ns();
    need(epg_store_commit(b->store, &program, id, id, "Episodes: 1\n", 1, commit, &err), &err);
    at = mark(b, 0, i, at);
    need(EPG_EVENT(b->ledger, "evaluation_started", &err, epg_field_text("submission_id", id),
                   epg_field_text("episode_indices", "0"), epg_field_text("program_digest", program.digest)),
         &err);
    need(epg_ledger_sync(b->ledger, &err), &err);
    epg_submission *submission = epg_session_charge(&b->session, &indices, program.digest);
    at = mark(b, 1, i, at);
    need(EPG_EVENT(b->ledger, "episode_completed", &err, epg_field_text("submission_id", id)), &err);
    need(epg_publish(b->publisher, submission, &program, &result, NULL, &err), &err);
    at = mark(b, 2, i, at);
    need(EPG_EVENT(b->ledger, "submission_published", &err, epg_field_text("submission_id", id)), &err);
    need(epg_ledger_sync(b->ledger, &err), &err);
    epg_session_published(&b->session, 1, 0);
    at = mark(b, 3, i, at);
    need(epg_publish_latest(b->publisher, submission, NULL, &err), &err);
    at = mark(b, 4, i, at);
    need(epg_retention_apply(b->retention, b->publisher, i + 1, NULL, &err), &err);
    at = mark(b, 5, i, at);
    need(epg_store_note(b->store, id, "Score: 1.0\n", 1, &err), &err);
    need(epg_store_maintain(b->store, &err), &err);
    (void)mark(b, 6, i, at);
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double quantile(const double *values, size_t count, double part)
{
    EPG_AUTO_FREE double *sorted = epg_alloc_array(count, sizeof *sorted);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    return sorted[(size_t)((double)(count - 1) * part)];
}

static void print_row(const char *name, const double *values, size_t count)
{
    size_t tenth = count < 10 ? 1 : count / 10;
    (void)printf("%-12s %9.3f %9.3f %9.3f %9.3f\n", name, quantile(values, count, 0.5), quantile(values, count, 0.95),
                 quantile(values, tenth, 0.5), quantile(values + count - tenth, tenth, 0.5));
}

int main(int argc, char *argv[])
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    epg_error err = {0};
    bench b = {.run = -1};
    epg_config config;
    epg_program initial = {0};
    if (argc > 2) {
        (void)setenv("TMPDIR", argv[2], 1);
    }
    char *directory = epg_test_directory();
    EPG_AUTO_FREE char *path = epg_format("%s/run", directory);
    EPG_AUTO_FREE char *git = epg_format("%s/history.git", path);
    epg_config_init(&config);
    config.episode_budget = count;
    need(epg_config_resolve(&config, &err), &err);
    make_program(0, &initial);
    need(epg_run_directory_create(path, &initial, NULL, 0, &b.run, &err), &err);
    need(epg_store_create(git, &b.store, &err), &err);
    need(epg_ledger_create(b.run, &b.ledger, &err), &err);
    need(epg_publisher_open(b.run, &b.publisher, &err), &err);
    b.retention = epg_retention_new(config.bulk_feedback_retention_bytes);
    epg_session_init(&b.session, &config);
    b.totals = epg_alloc_array(count, sizeof *b.totals);
    for (size_t s = 0; s < STEPS; s++) {
        b.times[s] = epg_alloc_array(count, sizeof *b.times[s]);
    }
    uint64_t points = epg_io_points();
    for (size_t i = 0; i < count; i++) {
        submit(&b, i);
    }
    (void)printf("%zu submissions, %.1f writing calls each; milliseconds\n", count,
                 (double)(epg_io_points() - points) / (double)count);
    (void)printf("%-12s %9s %9s %9s %9s\n", "", "median", "95 %", "first", "last");
    for (size_t s = 0; s < STEPS; s++) {
        print_row(step_names[s], b.times[s], count);
        free(b.times[s]);
    }
    print_row("all", b.totals, count);
    free(b.totals);
    epg_session_free(&b.session);
    epg_retention_free(b.retention);
    epg_publisher_close(b.publisher);
    epg_ledger_close(b.ledger);
    epg_store_close(b.store);
    epg_config_free(&config);
    epg_program_free(&initial);
    (void)close(b.run);
    epg_test_directory_free(directory);
    return EXIT_SUCCESS;
}
