#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/play.h"
#include "support/support.h"

static void fill_spec(epg_spec *spec)
{
    spec->id = epg_strdup("example/one");
    spec->description = epg_strdup("two\nlines");
    spec->primary_metric = epg_strdup("mean");
    spec->max_episode_steps = 7;
    spec->direction = EPG_MINIMIZE;
    epg_value_put_map(&spec->observation_space, 0);
    epg_value_put_text(&spec->action_space, "any");
    epg_value_put_map(&spec->metadata, 1);
    epg_value_put_key(&spec->metadata, "a");
    epg_value_put_null(&spec->metadata);
    epg_value_put_map(&spec->environment_parameters, 0);
}

START_TEST(a_spec_goes_through_its_value_unchanged)
{
    epg_spec spec = {0};
    epg_spec back = {0};
    epg_error err = {0};
    EPG_AUTO_BUFFER first = {0};
    EPG_AUTO_BUFFER second = {0};
    fill_spec(&spec);
    epg_assert_ok(epg_spec_check(&spec, &err), &err);
    epg_spec_to_value(&spec, &first);
    epg_assert_ok(epg_spec_from_value(epg_buffer_span(&first), &back, &err), &err);
    epg_spec_to_value(&back, &second);
    ck_assert(epg_span_equal(epg_buffer_span(&first), epg_buffer_span(&second)));
    ck_assert_str_eq(spec.environment_digest, back.environment_digest);
    ck_assert_int_eq(back.direction, EPG_MINIMIZE);
    epg_spec_free(&spec);
    epg_spec_free(&back);
}
END_TEST

START_TEST(a_broken_spec_is_refused_and_the_member_named)
{
    static const char *const named[] = {"id",
                                        "description",
                                        "observation_space",
                                        "action_space",
                                        "metadata",
                                        "environment_parameters",
                                        "primary_metric",
                                        "max_episode_steps"};
    for (size_t i = 0; i < EPG_COUNT(named); i++) {
        epg_spec spec = {0};
        epg_error err = {0};
        fill_spec(&spec);
        char *texts[] = {spec.id, spec.description, spec.primary_metric};
        epg_buffer *values[] = {&spec.observation_space, &spec.action_space, &spec.metadata,
                                &spec.environment_parameters};
        if (i < 2) {
            texts[i][0] = '\0';
        } else if (i < 6) {
            epg_buffer_clear(values[i - 2]);
            if (i >= 4) {
                epg_value_put_list(values[i - 2], 0); /* a value, but no map */
            }
        } else if (i == 6) {
            texts[2][0] = '\xff';
        } else {
            spec.max_episode_steps = 0;
        }
        epg_assert_code(epg_spec_check(&spec, &err), EPG_ERR_BENCHMARK, &err);
        ck_assert_msg(strstr(err.text, named[i]) != NULL, "%s is not named: %s", named[i], err.text);
        epg_spec_free(&spec);
    }
}
END_TEST

START_TEST(a_spec_value_with_other_members_is_refused)
{
    epg_spec out = {0};
    epg_error err = {0};
    EPG_AUTO_BUFFER bytes = {0};
    epg_value_put_map(&bytes, 1);
    epg_value_put_key(&bytes, "id");
    epg_value_put_text(&bytes, "x");
    epg_assert_code(epg_spec_from_value(epg_buffer_span(&bytes), &out, &err), EPG_ERR_BENCHMARK, &err);
    ck_assert_ptr_null(out.id);
    epg_buffer_clear(&bytes);
    (void)epg_buffer_text(&bytes, "junk");
    epg_assert_code(epg_spec_from_value(epg_buffer_span(&bytes), &out, &err), EPG_ERR_BENCHMARK, &err);
}
END_TEST

static void check_artifact_name(const char *name, const char *second, bool right)
{
    epg_feedback feedback = {.score = 1.0};
    epg_error err = {0};
    epg_value_put_null(&feedback.content);
    epg_feedback_add(&feedback, name, "text/plain", false);
    if (second != NULL) {
        epg_feedback_add(&feedback, second, "text/plain", true);
    }
    epg_code code = epg_feedback_check(&feedback, &err);
    ck_assert_msg((code == EPG_OK) == right, "%s: %s", name, code == EPG_OK ? "taken" : err.text);
    ck_assert(right || code == EPG_ERR_BENCHMARK);
    epg_feedback_free(&feedback);
}

START_TEST(artifact_names_are_relative_paths_that_can_lie_beside_each_other)
{
    static const char *const right[] = {"a", "a/b", "a/b/c.txt", "..a/...", "a b", ".hidden"};
    static const char *const wrong[] = {"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\\b", "a/.", "\xff"};
    for (size_t i = 0; i < EPG_COUNT(right); i++) {
        check_artifact_name(right[i], NULL, true);
    }
    for (size_t i = 0; i < EPG_COUNT(wrong); i++) {
        check_artifact_name(wrong[i], NULL, false);
    }
    check_artifact_name("a", "b", true);
    check_artifact_name("a", "a", false);
    check_artifact_name("a/b", "a", false);
    check_artifact_name("a", "a-b", true);
    check_artifact_name("a/b", "a/c", true);
}
END_TEST

START_TEST(feedback_needs_a_finite_score_a_value_and_few_small_artifacts)
{
    epg_feedback feedback = {.score = NAN};
    epg_error err = {0};
    epg_value_put_null(&feedback.content);
    epg_assert_code(epg_feedback_check(&feedback, &err), EPG_ERR_BENCHMARK, &err);
    feedback.score = 0.5;
    epg_assert_ok(epg_feedback_check(&feedback, &err), &err);
    (void)epg_buffer_byte(&feedback.content, 'N');
    epg_assert_code(epg_feedback_check(&feedback, &err), EPG_ERR_BENCHMARK, &err);
    epg_buffer_clear(&feedback.content);
    epg_value_put_null(&feedback.content);
    for (int i = 0; i < EPG_ARTIFACTS_MAX; i++) {
        EPG_AUTO_FREE char *name = epg_format("a-%d", i);
        epg_feedback_add(&feedback, name, "text/plain", false);
    }
    epg_assert_ok(epg_feedback_check(&feedback, &err), &err);
    epg_feedback_add(&feedback, "one-more", "text/plain", false);
    epg_assert_code(epg_feedback_check(&feedback, &err), EPG_ERR_BENCHMARK, &err);
    feedback.artifact_count--;
    free(feedback.artifacts[feedback.artifact_count].name);
    free(feedback.artifacts[feedback.artifact_count].media_type);
    epg_artifact *first = &feedback.artifacts[0];
    memset(epg_buffer_reserve(&first->content, EPG_ARTIFACT_BYTES_MAX + 1), 0, EPG_ARTIFACT_BYTES_MAX + 1);
    first->content.size = EPG_ARTIFACT_BYTES_MAX;
    epg_assert_ok(epg_feedback_check(&feedback, &err), &err);
    first->content.size++;
    epg_assert_code(epg_feedback_check(&feedback, &err), EPG_ERR_BENCHMARK, &err);
    epg_buffer_clear(&first->content);
    free(first->media_type);
    first->media_type = epg_strdup("text/plain\nx");
    epg_assert_code(epg_feedback_check(&feedback, &err), EPG_ERR_BENCHMARK, &err);
    epg_feedback_free(&feedback);
}
END_TEST

START_TEST(directions_compare_strictly)
{
    ck_assert(epg_direction_better(EPG_MAXIMIZE, 2.0, 1.0));
    ck_assert(!epg_direction_better(EPG_MAXIMIZE, 1.0, 1.0));
    ck_assert(epg_direction_better(EPG_MINIMIZE, 1.0, 2.0));
    ck_assert(!epg_direction_better(EPG_MINIMIZE, 1.0, 1.0));
    ck_assert_str_eq(epg_direction_name(EPG_MINIMIZE), "minimize");
    ck_assert_str_eq(epg_direction_name(EPG_MAXIMIZE), "maximize");
}
END_TEST

static void check_refused(const char *text, epg_code code, const char *told)
{
    epg_benchmark *benchmark = NULL;
    epg_error err = {0};
    epg_assert_code(epg_benchmark_open(text, &(epg_benchmark_options){0}, &benchmark, &err), code, &err);
    ck_assert_msg(strstr(err.text, told) != NULL, "%s: %s", text, err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
    ck_assert_ptr_null(benchmark);
}

START_TEST(a_wrong_name_or_parameter_is_told_with_what_would_be_right)
{
    check_refused("cartpol", EPG_ERR_USAGE, "did you mean cartpole?");
    check_refused("CARTPOLE-V1-OF-SOMETHING-ELSE", EPG_ERR_USAGE, "there are: cartpole");
    check_refused("", EPG_ERR_USAGE, "empty");
    check_refused("cartpole?", EPG_ERR_USAGE, "key=value");
    check_refused("cartpole?length=2", EPG_ERR_USAGE, "takes no parameters");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("benchmark");
    TCase *tests = tcase_create("benchmark");
    tcase_add_test(tests, a_spec_goes_through_its_value_unchanged);
    tcase_add_test(tests, a_broken_spec_is_refused_and_the_member_named);
    tcase_add_test(tests, a_spec_value_with_other_members_is_refused);
    tcase_add_test(tests, artifact_names_are_relative_paths_that_can_lie_beside_each_other);
    tcase_add_test(tests, feedback_needs_a_finite_score_a_value_and_few_small_artifacts);
    tcase_add_test(tests, directions_compare_strictly);
    tcase_add_test(tests, a_wrong_name_or_parameter_is_told_with_what_would_be_right);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
