#include "runs/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static json_t *parse(const char *text)
{
    json_t *object = NULL;
    epg_error err = {0};
    epg_assert_ok(epg_json_parse(epg_span_text(text), "test", &object, &err), &err);
    return object;
}

/* Lays `text` over the defaults and resolves. */
static epg_code resolve(const char *text, epg_config *config, epg_error *err)
{
    EPG_AUTO_JSON *object = parse(text);
    epg_config_init(config);
    EPG_TRY(epg_config_from_json(config, object, "config.json", err));
    return epg_config_resolve(config, err);
}

START_TEST(the_defaults_are_those_of_the_contract)
{
    epg_config config EPG_CLEANUP(epg_config_free);
    epg_error err = {0};
    epg_assert_ok(resolve("{}", &config, &err), &err);
    ck_assert_str_eq(config.split, "train");
    ck_assert_uint_eq(config.episode_budget, 1000);
    ck_assert_uint_eq(config.max_submissions, 1000);
    ck_assert_uint_eq(config.episode_pool_size, 1000);
    ck_assert_uint_eq(config.max_episodes_per_submission, 0);
    ck_assert_int_eq(config.finish_budget_policy, EPG_FINISH_ALLOW_EARLY);
    ck_assert_uint_eq(config.bulk_feedback_retention_bytes, UINT64_C(1073741824));
    ck_assert(!config.validate && !config.assess);
    ck_assert_uint_eq(config.max_candidates, 1);
    ck_assert_uint_eq(config.seed, 0);
    ck_assert_double_eq(config.episode_timeout_seconds, 30);
    ck_assert_double_eq(config.agent_timeout_seconds, 3600);
    ck_assert_double_eq(config.agent_grace_seconds, 30);
}
END_TEST

START_TEST(what_depends_on_other_members_is_filled_from_them)
{
    epg_config config EPG_CLEANUP(epg_config_free);
    epg_error err = {0};
    epg_assert_ok(resolve("{\"episode_budget\":2,\"validation\":{\"episodes_per_candidate\":5}}", &config, &err), &err);
    ck_assert_uint_eq(config.max_submissions, 2);
    ck_assert_uint_eq(config.episode_pool_size, 2);
    ck_assert_uint_eq(config.max_candidates, 2);
    ck_assert_str_eq(config.validation_split, "validation");
}
END_TEST

static const struct {
    const char *text;
    const char *says; /* part of a message that no other rule gives */
} refused[] = {
    {"{\"episode_budget\":0}", "\"episode_budget\" takes a whole number from 1"},
    {"{\"episode_budget\":-1}", "\"episode_budget\" takes"},
    {"{\"episode_budget\":1.0}", "\"episode_budget\" takes"},
    {"{\"episode_budget\":true}", "\"episode_budget\" takes"},
    {"{\"max_submissions\":null}", "\"max_submissions\" takes"},
    {"{\"seed\":18446744073709551616}", "seed"},
    {"{\"seed\":-1}", "from 0 to 18446744073709551615"},
    {"{\"episode_timeout_seconds\":0}", "positive"},
    {"{\"agent_grace_seconds\":-1}", "non-negative"},
    {"{\"agent_idle_seconds\":-1}", "non-negative"},
    {"{\"max_cost\":-0.5}", "US dollars"},
    {"{\"max_tokens\":0.5}", "whole number"},
    {"{\"agent_timeout_seconds\":\"1\"}", "positive"},
    {"{\"split\":\"\"}", "in one line"},
    {"{\"split\":\"a\\nb\"}", "in one line"},
    {"{\"finish_budget_policy\":\"never\"}", "allow_early or require_budget_exhaustion"},
    {"{\"episode_budgte\":1}", "did you mean \"episode_budget\"?"},
    {"{\"validation\":{\"episodes\":1}}", "config.json: validation: unknown member"},
    {"{\"validation\":1}", "takes an object or null"},
    {"{\"schema\":\"evopolicygym/run-config/v9\"}", "must be \"evopolicygym/run-config/v1\""},
    {"{\"validation\":{}}", "Validation needs episodes_per_candidate"},
    {"{\"assessment\":{}}", "Assessment needs its number of episodes"},
    {"{\"max_submissions\":2,\"validation\":{\"episodes_per_candidate\":1,\"max_candidates\":3}}",
     "is over max_submissions (2)"},
    {"{\"episode_budget\":5,\"max_episodes_per_submission\":6}", "is over episode_budget (5)"},
    {"{\"episode_pool_size\":4,\"max_episodes_per_submission\":6}", "is over episode_pool_size (4)"},
    {"{\"episode_budget\":10,\"max_submissions\":3,\"max_episodes_per_submission\":3,"
     "\"finish_budget_policy\":\"require_budget_exhaustion\"}",
     "can't spend a budget of 10"},
    /* A submission holds 2,048 indices at most, whatever the pool. */
    {"{\"episode_budget\":2049,\"max_submissions\":1,\"finish_budget_policy\":\"require_budget_exhaustion\"}",
     "can't spend a budget of 2049"},
};

START_TEST(each_rule_refuses_with_a_message_of_its_own)
{
    EPG_AUTO_JSON *object = NULL;
    epg_config config EPG_CLEANUP(epg_config_free);
    epg_error err = {0};
    epg_config_init(&config);
    epg_code code = epg_json_parse(epg_span_text(refused[_i].text), "seed", &object, &err);
    if (code == EPG_OK) {
        code = epg_config_from_json(&config, object, "config.json", &err);
    }
    if (code == EPG_OK) {
        code = epg_config_resolve(&config, &err);
    }
    ck_assert_msg(code != EPG_OK, "%s was accepted", refused[_i].text);
    ck_assert_msg(strstr(err.text, refused[_i].says) != NULL, "%s: \"%s\"", refused[_i].text, err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}
END_TEST

START_TEST(a_budget_that_can_just_be_spent_is_accepted)
{
    epg_config config EPG_CLEANUP(epg_config_free);
    epg_error err = {0};
    epg_assert_ok(resolve("{\"episode_budget\":9,\"max_submissions\":3,\"max_episodes_per_submission\":3,"
                          "\"finish_budget_policy\":\"require_budget_exhaustion\"}",
                          &config, &err),
                  &err);
}
END_TEST

START_TEST(a_layer_that_is_refused_changes_nothing)
{
    epg_config config EPG_CLEANUP(epg_config_free);
    EPG_AUTO_JSON *object = parse("{\"episode_budget\":7,\"split\":\"other\",\"seed\":-1}");
    epg_error err = {0};
    epg_config_init(&config);
    epg_assert_code(epg_config_from_json(&config, object, "x", &err), EPG_ERR_USAGE, &err);
    ck_assert_uint_eq(config.episode_budget, 1000);
    ck_assert_str_eq(config.split, "train");
}
END_TEST

static json_t *written(const epg_config *config)
{
    EPG_AUTO_BUFFER text = {0};
    epg_json_writer json;
    json_t *object = NULL;
    epg_error err = {0};
    epg_json_begin(&json, &text, 2);
    epg_config_to_json(config, &json, NULL);
    epg_json_finish(&json);
    epg_assert_ok(epg_json_parse(epg_buffer_span(&text), "written", &object, &err), &err);
    return object;
}

START_TEST(the_config_that_a_foreign_run_recorded_is_read_and_written_alike)
{
    EPG_AUTO_FREE char *text = epg_test_read_text(EPG_TEST_SOURCE, "tests/vectors/data/sample-run/run.json");
    EPG_AUTO_JSON *run = parse(text);
    epg_config config EPG_CLEANUP(epg_config_free);
    epg_error err = {0};
    json_t *recorded = json_object_get(run, "config");
    epg_config_init(&config);
    epg_assert_ok(epg_config_from_json(&config, recorded, "run.json", &err), &err);
    epg_assert_ok(epg_config_resolve(&config, &err), &err);
    ck_assert_uint_eq(config.episodes_per_candidate, 3);
    ck_assert_uint_eq(config.seed, 7);
    EPG_AUTO_JSON *ours = written(&config);
    ck_assert_double_eq(json_real_value(json_object_get(ours, "agent_grace_seconds")), 30);
    (void)json_object_del(ours, "agent_grace_seconds"); /* ours in addition */
    ck_assert(json_equal(ours, recorded));
}
END_TEST

START_TEST(what_is_written_reads_back_the_same)
{
    static const char *const texts[] = {
        "{\"seed\":18446744073709551615,\"split\":\"tr\\u00e4in\",\"episode_timeout_seconds\":0.25}",
        "{\"validation\":{\"episodes_per_candidate\":2,\"split\":\"v\"},\"assessment\":{\"episodes\":9},"
        "\"max_episodes_per_submission\":3,\"agent_grace_seconds\":0}",
        "{\"episode_budget\":10,\"agent_idle_seconds\":60.5,\"agent_start_retries\":2,\"max_cost\":1.25,"
        "\"max_tokens\":100000}",
        "{\"validation\":null,\"assessment\":null,\"max_episodes_per_submission\":null}",
    };
    epg_config config EPG_CLEANUP(epg_config_free);
    epg_config again EPG_CLEANUP(epg_config_free);
    epg_error err = {0};
    epg_assert_ok(resolve(texts[_i], &config, &err), &err);
    EPG_AUTO_JSON *first = written(&config);
    epg_config_init(&again);
    epg_assert_ok(epg_config_from_json(&again, first, "again", &err), &err);
    epg_assert_ok(epg_config_resolve(&again, &err), &err);
    EPG_AUTO_JSON *second = written(&again);
    ck_assert(json_equal(first, second));
    if (_i == 0) {
        ck_assert_uint_eq(again.seed, UINT64_MAX);
    }
}
END_TEST

/* Parses flags and lays them over `config`. */
static epg_code give_flags(epg_config *config, int argc, const char *const argv[], epg_error *err)
{
    epg_options options EPG_CLEANUP(epg_options_free) = {0};
    epg_options_add(&options, epg_config_options);
    EPG_TRY(epg_options_parse(&options, argc, (char *const *)(uintptr_t)argv, err));
    return epg_config_from_options(config, &options, err);
}

START_TEST(flags_replace_what_a_file_gave)
{
    EPG_AUTO_JSON *object = parse("{\"episode_budget\":50,\"seed\":3,\"validation\":{\"episodes_per_candidate\":2}}");
    static const char *const argv[] = {"--seed", "18446744073709551615", "--assessment-episodes=4", "--agent-timeout",
                                       "2.5",    "--no-validation"};
    epg_config config EPG_CLEANUP(epg_config_free);
    epg_error err = {0};
    epg_config_init(&config);
    epg_assert_ok(epg_config_from_json(&config, object, "x", &err), &err);
    epg_assert_ok(give_flags(&config, (int)EPG_COUNT(argv), argv, &err), &err);
    epg_assert_ok(epg_config_resolve(&config, &err), &err);
    ck_assert_uint_eq(config.episode_budget, 50);
    ck_assert_uint_eq(config.seed, UINT64_MAX);
    ck_assert_double_eq(config.agent_timeout_seconds, 2.5);
    ck_assert(config.assess && !config.validate);
    ck_assert_uint_eq(config.assessment_episodes, 4);
    ck_assert_str_eq(config.assessment_split, "test");
}
END_TEST

START_TEST(a_wrong_flag_is_named)
{
    static const char *const wrong[] = {"--episode-budget=0", "--seed=1e3", "--episode-timeout=inf",
                                        "--split=", "--finish-budget-policy=x"};
    epg_config config EPG_CLEANUP(epg_config_free);
    epg_error err = {0};
    epg_config_init(&config);
    epg_assert_code(give_flags(&config, 1, &wrong[_i], &err), EPG_ERR_USAGE, &err);
    ck_assert_msg(strncmp(err.text, wrong[_i], strcspn(wrong[_i], "=")) == 0, "%s", err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *cases = tcase_create("config");
    tcase_add_test(cases, the_defaults_are_those_of_the_contract);
    tcase_add_test(cases, what_depends_on_other_members_is_filled_from_them);
    tcase_add_loop_test(cases, each_rule_refuses_with_a_message_of_its_own, 0, (int)EPG_COUNT(refused));
    tcase_add_test(cases, a_budget_that_can_just_be_spent_is_accepted);
    tcase_add_test(cases, a_layer_that_is_refused_changes_nothing);
    tcase_add_test(cases, the_config_that_a_foreign_run_recorded_is_read_and_written_alike);
    tcase_add_loop_test(cases, what_is_written_reads_back_the_same, 0, 4);
    tcase_add_test(cases, flags_replace_what_a_file_gave);
    tcase_add_loop_test(cases, a_wrong_flag_is_named, 0, 5);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
