/* The Episode lifecycle, seen by a Benchmark and a Policy that write down in one file what is done to them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "evaluation/episode.h"
#include "support/guests.h"
#include "support/support.h"

typedef struct diary_benchmark {
    epg_benchmark base;
    const char *directory;
    const char *scratch;
    uint64_t ends_after;
    bool truncates;
    int64_t slow_ns; /* how long a step takes */
    bool step_fails;
} diary_benchmark;

typedef struct diary_environment {
    epg_environment base;
    uint64_t steps;
} diary_environment;

static const diary_benchmark *of(const epg_environment *environment)
{
    return (const diary_benchmark *)environment->benchmark;
}

static void write_down(const diary_benchmark *self, const char *what)
{
    EPG_AUTO_FREE char *path = epg_format("%s/diary", self->directory);
    EPG_AUTO_FREE char *program = epg_format("%s/episode/program/policy.py", self->scratch);
    FILE *file = fopen(path, "ae");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "%s%s\n", what, access(program, F_OK) == 0 ? " (with scratch)" : "");
    (void)fclose(file);
}

static epg_code diary_open(epg_benchmark *benchmark, const epg_episode_spec *episode, epg_environment **out,
                           epg_error *err)
{
    (void)episode;
    (void)err;
    diary_environment *environment = epg_alloc(sizeof *environment);
    environment->base.benchmark = benchmark;
    write_down((const diary_benchmark *)benchmark, "make_environment");
    *out = &environment->base;
    return EPG_OK;
}

static epg_code diary_reset(epg_environment *environment, epg_buffer *observation, epg_error *err)
{
    (void)err;
    write_down(of(environment), "reset");
    epg_value_put_text(observation, "first");
    return EPG_OK;
}

static epg_code diary_step(epg_environment *environment, epg_span action, epg_step *out, epg_error *err)
{
    diary_environment *self = (diary_environment *)environment;
    epg_span text = {0};
    if (!epg_value_get_string(action, &text)) {
        out->invalid_action = true;
        return EPG_OK;
    }
    EPG_AUTO_FREE char *what = epg_format("step %.*s", (int)text.size, (const char *)text.data);
    write_down(of(environment), what);
    if (of(environment)->step_fails) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "the diary is full");
    }
    int64_t until = epg_deadline_after_ns(of(environment)->slow_ns);
    while (epg_monotonic_ns() < until) {
        (void)usleep(1000);
    }
    self->steps++;
    epg_value_put_text(&out->observation, "next");
    epg_value_put_null(&out->metrics);
    out->reward = 1.5;
    out->terminated = self->steps == of(environment)->ends_after && !of(environment)->truncates;
    out->truncated = self->steps == of(environment)->ends_after && of(environment)->truncates;
    return EPG_OK;
}

static epg_code diary_close(epg_environment *environment, epg_error *err)
{
    (void)err;
    write_down(of(environment), "close");
    free(environment);
    return EPG_OK;
}

static const epg_benchmark_vtable diary_vtable = {
    .open = diary_open, .reset = diary_reset, .step = diary_step, .close = diary_close};

/* --- fixture --- */

static epg_test_guest guest;
static char *directory;
static char *scratch_path;
static int scratch;
static epg_spec spec;
static diary_benchmark benchmark;
static epg_buffer record;

static void set_up(void)
{
    epg_test_guest_open(&guest);
    directory = epg_test_directory();
    scratch_path = epg_format("%s/scratch", directory);
    ck_assert_int_eq(mkdir(scratch_path, 0700), 0);
    scratch = open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    benchmark = (diary_benchmark){
        .base.vtable = &diary_vtable, .directory = directory, .scratch = scratch_path, .ends_after = 2};
    spec = (epg_spec){.max_episode_steps = 5};
    epg_value_put_map(&spec.metadata, 1);
    epg_value_put_key(&spec.metadata, "diary");
    EPG_AUTO_FREE char *diary = epg_format("%s/diary", directory);
    epg_value_put_text(&spec.metadata, diary);
    epg_value_put_map(&spec.environment_parameters, 0);
    epg_value_put_null(&spec.observation_space);
    epg_value_put_null(&spec.action_space);
}

static void tear_down(void)
{
    epg_spec_free(&spec);
    epg_buffer_free(&record);
    (void)close(scratch);
    free(scratch_path);
    epg_test_directory_free(directory);
    epg_test_guest_close(&guest);
}

static epg_code keep(void *context, epg_buffer *bytes, epg_error *err)
{
    (void)err;
    (void)epg_buffer_append_span(context, epg_buffer_span(bytes));
    epg_buffer_clear(bytes);
    return EPG_OK;
}

static epg_code run(const char *policy, double seconds, epg_episode_outcome *out, epg_error *err)
{
    EPG_AUTO_FREE char *source = epg_format("%s/source", directory);
    epg_test_write_text(directory, "source/policy.py", policy);
    EPG_CLEANUP(epg_program_free) epg_program program = {0};
    epg_assert_ok(epg_program_capture_path(source, &epg_program_default_limits, &program, err), err);
    epg_episode_setup setup = {.benchmark = &benchmark.base,
                               .spec = &spec,
                               .guest = guest.guest,
                               .program = &program,
                               .scratch = scratch,
                               .scratch_path = scratch_path,
                               .policy_limit_ns = (int64_t)(seconds * 1e9),
                               .sink = keep,
                               .sink_context = &record};
    epg_episode_spec episode = {.environment_seed = 7};
    epg_value_put_null(&episode.scenario);
    epg_code code = epg_episode_run(&setup, &episode, 99, out, err);
    epg_episode_spec_free(&episode);
    return code;
}

static char *diary(void)
{
    char *text = epg_test_read_text(directory, "diary");
    ck_assert_ptr_nonnull(text);
    return text;
}

static const char writer[] = "class Diary:\n"
                             "    def __init__(self, context):\n"
                             "        self.path = context.metadata['diary']\n"
                             "        self.write('make_policy %d' % context.policy_seed)\n"
                             "        self.turn = 0\n"
                             "    def write(self, text):\n"
                             "        with open(self.path, 'a') as file:\n"
                             "            file.write(text + '\\n')\n"
                             "    def act(self, observation):\n"
                             "        self.turn += 1\n"
                             "        self.write('act ' + observation)\n"
                             "        return 'action-%d' % self.turn\n"
                             "def make_policy(context):\n"
                             "    return Diary(context)\n";

START_TEST(the_seven_steps_are_done_in_order)
{
    epg_error err;
    EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
    epg_assert_ok(run(writer, 60, &outcome, &err), &err);
    EPG_AUTO_FREE char *text = diary();
    /* The Program is there only after reset, and its directory lives until the Environment is closed. */
    ck_assert_str_eq(text, "make_environment\n"
                           "reset\n"
                           "make_policy 99\n"
                           "act first\n"
                           "step action-1 (with scratch)\n"
                           "act next\n"
                           "step action-2 (with scratch)\n"
                           "close (with scratch)\n");
    ck_assert_int_eq(outcome.end.failure, EPG_POLICY_OK);
    ck_assert_uint_eq(outcome.end.steps, 2);
    ck_assert(outcome.end.reward == 3.0);
    EPG_AUTO_FREE char *program = epg_format("%s/episode", scratch_path);
    ck_assert_int_ne(access(program, F_OK), 0);
}
END_TEST

START_TEST(a_truncated_step_ends_the_episode_too)
{
    epg_error err;
    EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
    benchmark.truncates = true;
    epg_assert_ok(run(writer, 60, &outcome, &err), &err);
    ck_assert_uint_eq(outcome.end.steps, 2);
}
END_TEST

START_TEST(a_refused_action_is_never_replaced_and_both_are_closed)
{
    epg_error err;
    EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
    epg_assert_ok(run("class P:\n    def act(self, o):\n        return 1\ndef make_policy(c):\n    return P()\n", 60,
                      &outcome, &err),
                  &err);
    ck_assert_int_eq(outcome.end.failure, EPG_POLICY_INVALID_ACTION);
    ck_assert_int_eq(outcome.cause, EPG_CAUSE_REFUSED_ACTION);
    ck_assert_uint_eq(outcome.end.steps, 0);
    EPG_AUTO_FREE char *text = diary();
    ck_assert_str_eq(text, "make_environment\nreset\nclose (with scratch)\n");
}
END_TEST

START_TEST(a_fault_in_a_step_is_the_benchmarks_and_closes_all)
{
    epg_error err;
    EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
    benchmark.step_fails = true;
    epg_assert_code(run(writer, 60, &outcome, &err), EPG_ERR_BENCHMARK, &err);
    ck_assert_str_eq(err.text, "Environment.step: the diary is full");
    EPG_AUTO_FREE char *text = diary();
    ck_assert_ptr_nonnull(strstr(text, "close"));
}
END_TEST

START_TEST(an_environment_without_an_end_is_a_trusted_fault_at_its_horizon)
{
    epg_error err;
    EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
    benchmark.ends_after = 100;
    epg_assert_code(run(writer, 60, &outcome, &err), EPG_ERR_BENCHMARK, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "horizon of 5 steps"));
}
END_TEST

START_TEST(a_slow_environment_is_never_the_policys_timeout)
{
    epg_error err;
    EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
    const int64_t slow = 700 * EPG_MILLISECOND;
    benchmark.slow_ns = slow;
    benchmark.ends_after = 4;
    epg_assert_ok(run(writer, 2.5, &outcome, &err), &err); /* four steps take longer than the Policy's limit */
    ck_assert_int_eq(outcome.end.failure, EPG_POLICY_OK);
    ck_assert(outcome.environment_ns >= 4 * slow);
    ck_assert(outcome.total_ns >= 4 * slow);
}
END_TEST

START_TEST(the_limit_is_one_for_the_whole_episode)
{
    epg_error err;
    EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
    benchmark.ends_after = 5;
    epg_assert_ok(run("import time\nclass P:\n    def act(self, o):\n        time.sleep(1.0)\n        return 'x'\n"
                      "def make_policy(c):\n    return P()\n",
                      2.5, &outcome, &err),
                  &err);
    ck_assert_int_eq(outcome.end.failure, EPG_POLICY_TIMEOUT);
    ck_assert_int_eq(outcome.cause, EPG_CAUSE_TIMEOUT_ACT);
    ck_assert_uint_lt(outcome.end.steps, 3);
}
END_TEST

/* --- the record --- */

static epg_code from_memory(void *context, uint64_t index, uint64_t offset, epg_buffer *out, uint64_t *size,
                            epg_record_end *end, epg_error *err)
{
    (void)err;
    ck_assert_uint_eq(index, 0);
    const epg_buffer *bytes = context;
    *size = bytes->size;
    *end = (epg_record_end){.failure = EPG_POLICY_OK, .steps = 2, .reward = 3};
    (void)epg_buffer_append(out, bytes->data + offset, 1); /* the smallest piece there is */
    return EPG_OK;
}

START_TEST(a_record_reads_back_as_it_happened_in_pieces_of_any_size)
{
    epg_error err;
    EPG_CLEANUP(epg_episode_outcome_free) epg_episode_outcome outcome = {0};
    epg_assert_ok(run(writer, 60, &outcome, &err), &err);
    epg_record_reader *reader = epg_record_reader_new(from_memory, &record, 1);
    epg_records records;
    epg_record_reader_records(reader, &records);
    epg_record_head head;
    bool have = false;
    epg_assert_ok(records.next_record(records.context, &head, &have, &err), &err);
    ck_assert(have);
    ck_assert_uint_eq(head.environment_seed, 7);
    ck_assert_uint_eq(head.policy_seed, 99);
    epg_span text = {0};
    ck_assert(head.has_observation && epg_value_get_string(head.initial_observation, &text));
    ck_assert(epg_span_equal(text, epg_span_text("first")));
    for (int i = 1; i <= 2; i++) {
        epg_transition step;
        epg_assert_ok(records.next_step(records.context, &step, &have, &err), &err);
        ck_assert(have);
        EPG_AUTO_FREE char *action = epg_format("action-%d", i);
        ck_assert(epg_value_get_string(step.action, &text) && epg_span_equal(text, epg_span_text(action)));
        ck_assert(epg_value_get_string(step.observation, &text) && epg_span_equal(text, epg_span_text("next")));
        ck_assert(step.reward == 1.5 && step.terminated == (i == 2) && !step.truncated);
    }
    epg_transition step;
    epg_assert_ok(records.next_step(records.context, &step, &have, &err), &err);
    ck_assert(!have);
    epg_assert_ok(records.next_record(records.context, &head, &have, &err), &err);
    ck_assert(!have);
    record.size -= 20; /* into the last step: a damaged record is told, not read past */
    epg_record_reader_free(reader);
    reader = epg_record_reader_new(from_memory, &record, 1);
    epg_record_reader_records(reader, &records);
    epg_assert_ok(records.next_record(records.context, &head, &have, &err), &err);
    epg_assert_ok(records.next_step(records.context, &step, &have, &err), &err);
    epg_assert_code(records.next_step(records.context, &step, &have, &err), EPG_ERR_INTERNAL, &err);
    epg_record_reader_free(reader);
}
END_TEST

static Suite *episode_suite(void)
{
    Suite *suite = suite_create("evaluation episode");
    TCase *tests = tcase_create("episode");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_seven_steps_are_done_in_order);
    tcase_add_test(tests, a_truncated_step_ends_the_episode_too);
    tcase_add_test(tests, a_refused_action_is_never_replaced_and_both_are_closed);
    tcase_add_test(tests, a_fault_in_a_step_is_the_benchmarks_and_closes_all);
    tcase_add_test(tests, an_environment_without_an_end_is_a_trusted_fault_at_its_horizon);
    tcase_add_test(tests, a_slow_environment_is_never_the_policys_timeout);
    tcase_add_test(tests, the_limit_is_one_for_the_whole_episode);
    tcase_add_test(tests, a_record_reads_back_as_it_happened_in_pieces_of_any_size);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(episode_suite());
}
