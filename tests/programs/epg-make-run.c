/* epg-make-run DIR SUBMISSIONS EPISODES: a Run as a Host would have left it, without having run anything: every
 * document and the ledger come from the Host's own writers; scores and times are made up. For tests and measurements of
 * what reads Runs. Without a history.git. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "benchmark/benchmark.h"
#include "runs/document.h"
#include "runs/ledger.h"
#include "runs/records.h"
#include "system/files.h"
#include "system/io.h"

typedef struct maker {
    int run;
    uint64_t submissions, episodes;
    epg_config config;
    epg_spec spec;
    epg_program program;
    epg_session session;
    epg_ledger *ledger;
} maker;

static double score_of(uint64_t number)
{
    return (double)(number * 7919 % 1000) / 2 + (double)number / 1000;
}

static epg_code set_up(maker *self, const char *path, epg_error *err)
{
    epg_benchmark *benchmark = NULL;
    EPG_TRY(epg_benchmark_open("cartpole", &(epg_benchmark_options){0}, &benchmark, err));
    epg_code code = epg_benchmark_spec(benchmark, &self->spec, err);
    epg_benchmark_destroy(benchmark);
    EPG_TRY(code);
    self->program.files = epg_alloc_array(1, sizeof *self->program.files);
    self->program.files[self->program.count++].path = epg_strdup("policy.py");
    (void)epg_buffer_text(&self->program.files[0].content, "# made up\n");
    EPG_TRY(epg_program_seal(&self->program, &epg_program_default_limits, err));
    epg_config_init(&self->config);
    self->config.episode_budget = self->submissions * self->episodes;
    EPG_TRY(epg_config_resolve(&self->config, err));
    epg_session_init(&self->session, &self->config);
    epg_pool_config pool = {.benchmark = "cartpole", .jobs = 1, .execution = {.python = "/usr/bin/python3"}};
    const char *const command[] = {"made-up"};
    epg_run_request request = {.directory = path,
                               .initial = &self->program,
                               .config = &self->config,
                               .pool = &pool,
                               .agent = {.command = command, .command_count = 1}};
    EPG_TRY(epg_run_directory_create(path, &self->program, NULL, 0, &self->run, err));
    EPG_TRY(epg_run_document_write(self->run, &request, &self->spec, NULL, err));
    return epg_ledger_create(self->run, &self->ledger, err);
}

static epg_code write_feedback(maker *self, const epg_submission *submission, const char *id, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &text, 2);
    epg_json_object(&writer, NULL);
    epg_json_array(&writer, "artifacts");
    epg_json_end(&writer);
    epg_json_object(&writer, "content");
    epg_json_put_u64(&writer, "made_up", submission->number);
    epg_json_end(&writer);
    epg_json_array(&writer, "episodes");
    epg_json_end(&writer);
    epg_json_put_text(&writer, "schema", "evopolicygym/feedback/v2");
    epg_json_put_double(&writer, "score", submission->score);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    EPG_AUTO_CLOSE int all = -1;
    EPG_AUTO_CLOSE int own = -1;
    EPG_TRY(epg_dir_open(self->run, "submissions", &all, err));
    if (epg_io_mkdir(all, id, 0755) != 0) {
        return epg_fail(err, EPG_ERR_IO, "can't make submissions/%s", id);
    }
    EPG_TRY(epg_dir_open(all, id, &own, err));
    return epg_file_write_new(own, "feedback.json", epg_buffer_span(&text), 0444, false, err);
}

static epg_code submit(maker *self, uint64_t number, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_BUFFER list = {0};
    EPG_AUTO_FREE char *selector = epg_format("%llu:%llu", (unsigned long long)((number - 1) * self->episodes),
                                              (unsigned long long)(number * self->episodes));
    epg_indices indices = {0};
    EPG_TRY(epg_selector_parse(selector, &indices, err));
    epg_submission_id(number, id);
    epg_indices_text(&indices, &list);
    uint64_t remaining = self->session.episodes_remaining - self->episodes;
    EPG_TRY(EPG_EVENT(self->ledger, "evaluation_started", err,
                      epg_field_text("commit", "0123456789012345678901234567890123456789"),
                      epg_field_text("episode_indices", epg_buffer_cstr(&list)),
                      epg_field_u64("episodes", self->episodes), epg_field_u64("episodes_remaining", remaining),
                      epg_field_text("program_digest", self->program.digest), epg_field_text("submission_id", id)));
    epg_submission *submission = epg_session_charge(&self->session, &indices, self->program.digest);
    for (uint64_t i = 0; i < self->episodes; i++) {
        EPG_TRY(EPG_EVENT(self->ledger, "episode_completed", err, epg_field_u64("completed", i + 1),
                          epg_field_u64("episode_index", indices.items[i]), epg_field_null("failure"),
                          epg_field_i64("policy_ns", 123456), epg_field_text("record_sha256", self->program.digest + 7),
                          epg_field_u64("record_offset", i * 1000), epg_field_u64("record_size", 1000),
                          epg_field_u64("record_spool", 0), epg_field_double("reward", score_of(number)),
                          epg_field_text("status", "completed"), epg_field_u64("steps", 100),
                          epg_field_text("submission_id", id), epg_field_i64("total_ns", 234567),
                          epg_field_u64("total", self->episodes)));
    }
    epg_indices_free(&indices);
    EPG_TRY(EPG_EVENT(self->ledger, "submission_published", err, epg_field_u64("agent_tokens", 1000 + number),
                      epg_field_double("agent_cost_usd", 0.25), epg_field_u64("episodes_remaining", remaining),
                      epg_field_u64("policy_failures", 0), epg_field_text("program_digest", self->program.digest),
                      epg_field_double("score", score_of(number)), epg_field_text("submission_id", id)));
    epg_session_published(&self->session, score_of(number), 0);
    submission->score = score_of(number);
    return write_feedback(self, submission, id, err);
}

static epg_code make(maker *self, const char *path, epg_error *err)
{
    EPG_TRY(set_up(self, path, err));
    EPG_TRY(EPG_EVENT(self->ledger, "agent_started", err, epg_field_text("benchmark_id", self->spec.id),
                      epg_field_text("initial_program_digest", self->program.digest)));
    for (uint64_t i = 1; i <= self->submissions; i++) {
        EPG_TRY(submit(self, i, err));
    }
    EPG_TRY(EPG_EVENT(self->ledger, "agent_exited", err, epg_field_i64("returncode", 0)));
    EPG_TRY(EPG_EVENT(self->ledger, "run_finished", err, epg_field_text("terminal_reason", "budget_exhausted")));
    epg_run_record record = {.config = &self->config,
                             .spec = &self->spec,
                             .session = &self->session,
                             .agent_has_returncode = true,
                             .initial_program_digest = self->program.digest,
                             .terminal_reason = "budget_exhausted"};
    return epg_run_record_write(self->run, &record, err);
}

int main(int argc, char **argv)
{
    maker self = {.run = -1};
    epg_error err = {.text = ""};
    if (argc != 4 || !epg_parse_u64(argv[2], strlen(argv[2]), 1000000, &self.submissions) ||
        !epg_parse_u64(argv[3], strlen(argv[3]), 2048, &self.episodes) || self.submissions * self.episodes == 0) {
        (void)fputs("usage: epg-make-run DIR SUBMISSIONS EPISODES\n", stderr);
        return 2;
    }
    epg_code code = make(&self, argv[1], &err);
    if (code != EPG_OK) {
        (void)fprintf(stderr, "epg-make-run: %s\n", err.text);
    }
    if (self.ledger != NULL) {
        epg_ledger_close(self.ledger);
    }
    epg_session_free(&self.session);
    epg_program_free(&self.program);
    epg_spec_free(&self.spec);
    epg_config_free(&self.config);
    epg_close_cleanup(&self.run);
    return code == EPG_OK ? 0 : 1;
}
