/* The recorded sessions, end to end: `evopolicygym run` with test/one-step and an Agent that replays the exchanges
 * (tests/programs/epg-replay-session.c). The answers are judged by the Agent, the ledger here. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runs/ledger.h"
#include "support/support.h"

static const char sessions_path[] = EPG_TEST_SOURCE "/tests/vectors/data/sessions.json";
static const char first_policy[] = "class P:\n    def act(self, o):\n        return 1\ndef make_policy(context):\n"
                                   "    return P()\n";

enum { SESSIONS = 8, ARGUMENTS = 48 };

typedef struct arguments {
    char *items[ARGUMENTS];
    size_t count;
} arguments;

static void add(arguments *list, const char *text)
{
    list->items[list->count++] = epg_strdup(text);
}

static void add_number(arguments *list, const char *flag, const json_t *value)
{
    if (json_is_integer(value)) {
        char text[32];
        (void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        add(list, flag);
        add(list, text);
    }
}

static void add_config(arguments *list, const json_t *config)
{
    const json_t *validation = json_object_get(config, "validation");
    const char *policy = json_string_value(json_object_get(config, "finish_budget_policy"));
    add_number(list, "--episode-budget", json_object_get(config, "episode_budget"));
    add_number(list, "--episode-pool-size", json_object_get(config, "episode_pool_size"));
    add_number(list, "--max-submissions", json_object_get(config, "max_submissions"));
    add_number(list, "--max-episodes-per-submission", json_object_get(config, "max_episodes_per_submission"));
    add_number(list, "--validation-episodes", json_object_get(validation, "episodes_per_candidate"));
    add_number(list, "--max-candidates", json_object_get(validation, "max_candidates"));
    if (policy != NULL) {
        add(list, "--finish-budget-policy");
        add(list, policy);
    }
}

static void run_host(const char *directory, const json_t *vector)
{
    static const char *const fixed[] = {"evopolicygym", "run",   "run",           "-b",      "test/one-step",
                                        "-p",           "first", "--execution",   "process", "--allow-unsafe-process",
                                        "-j",           "1",     "--agent-grace", "5",       "--progress",
                                        "none"};
    arguments list = {0};
    int status = 0;
    for (size_t i = 0; i < EPG_COUNT(fixed); i++) {
        add(&list, fixed[i]);
    }
    add_config(&list, json_object_get(vector, "config"));
    add(&list, "--");
    add(&list, EPG_TEST_BIN "/epg-replay-session");
    add(&list, sessions_path);
    add(&list, json_string_value(json_object_get(vector, "name")));
    pid_t child = fork();
    if (child == 0) {
        (void)setenv("EPG_TEST_BENCHMARKS", "1", 1);
        if (chdir(directory) == 0) {
            (void)execv(EPG_TEST_BIN "/evopolicygym", list.items);
        }
        _exit(127);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) != 127, "the Host ended with status %x", status);
    for (size_t i = 0; i < list.count; i++) {
        free(list.items[i]);
    }
}

/* --- The ledger: the recorded events of the session in their order, with their fields, among others of the Run's. ---
 */

typedef struct expectation {
    const json_t *exchanges;
    size_t exchange;
    size_t event; /* of the exchange */
} expectation;

static const json_t *next_expected(expectation *e)
{
    for (; e->exchange < json_array_size(e->exchanges); e->exchange++, e->event = 0) {
        const json_t *events = json_object_get(json_array_get(e->exchanges, e->exchange), "events");
        if (e->event < json_array_size(events)) {
            return json_array_get(events, e->event);
        }
    }
    return NULL;
}

static bool is_of_the_session(const char *event)
{
    static const char *const names[] = {"evaluation_started", "episode_completed",    "evaluation_failed",
                                        "publication_failed", "submission_published", "submission_rejected",
                                        "finish_requested",   "finish_rejected"};
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        if (strcmp(event, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static epg_code compare_event(void *context, const epg_ledger_line *line, epg_error *err)
{
    expectation *e = context;
    ck_assert_msg(line->chained, "line %d is not chained", (int)line->number);
    if (!is_of_the_session(line->event)) {
        return EPG_OK;
    }
    const json_t *expected = next_expected(e);
    const char *key = NULL;
    json_t *value = NULL;
    if (expected == NULL) {
        return epg_fail(err, EPG_ERR_INVALID, "line %d: a %s more than was recorded", (int)line->number, line->event);
    }
    e->event++;
    json_object_foreach((json_t *)(uintptr_t)expected, key, value)
    {
        if (json_equal(json_object_get(line->object, key), value) == 0) {
            return epg_fail(err, EPG_ERR_INVALID, "line %d (%s), exchange %zu: \"%s\" differs", (int)line->number,
                            line->event, e->exchange, key);
        }
    }
    return EPG_OK;
}

START_TEST(a_recorded_session_goes_the_same_way_in_a_whole_run)
{
    epg_error err = {0};
    char *directory = epg_test_directory();
    EPG_AUTO_JSON *document = json_load_file(sessions_path, 0, NULL);
    const json_t *vector = json_array_get(document, (size_t)_i);
    expectation e = {.exchanges = json_object_get(vector, "exchanges")};
    ck_assert_uint_eq(json_array_size(document), SESSIONS);
    epg_test_write_text(directory, "first/policy.py", first_policy);
    run_host(directory, vector);
    EPG_AUTO_FREE char *findings = epg_test_read_text(directory, "run/workspace/analysis/replay.txt");
    ck_assert_msg(findings != NULL, "the Agent has not come to its end");
    ck_assert_str_eq(findings, "");
    EPG_AUTO_FREE char *path = epg_format("%s/run", directory);
    int run = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    epg_assert_ok(epg_ledger_read(run, compare_event, &e, NULL, NULL, NULL, &err), &err);
    ck_assert_msg(next_expected(&e) == NULL, "exchange %zu: an event is missing", e.exchange);
    (void)close(run);
    epg_test_directory_free(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay");
    TCase *cases = tcase_create("replay");
    tcase_set_timeout(cases, 240);
    tcase_add_loop_test(cases, a_recorded_session_goes_the_same_way_in_a_whole_run, 0, SESSIONS);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
