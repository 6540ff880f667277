/* The built-in Benchmarks played by Policies whose outcomes are known from their rules. Their trajectories are compared
 * with Gymnasium's in tests/vectors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "support/play.h"
#include "support/support.h"

static const char *const names[] = {
    "cartpole",
    "acrobot",
    "mountain-car",
    "mountain-car-continuous",
    "pendulum",
    "frozen-lake",
    "frozen-lake?map=8x8&slippery=false",
    "cliff-walking",
    "cliff-walking?slippery=true",
    "taxi",
    "taxi?rainy=true&fickle=true",
    "blackjack",
    "blackjack?natural=true&sab=false",
};

static double number(epg_span observation, const char *key)
{
    epg_span value = epg_test_member(observation, key);
    int64_t whole = 0;
    return epg_value_get_i64(value, &whole) ? (double)whole : epg_test_float(value);
}

static bool is_text(epg_span observation, const char *key, const char *text)
{
    epg_span found;
    return epg_value_get_string(epg_test_member(observation, key), &found) &&
           epg_span_equal(found, epg_span_text(text));
}

static bool takes_floats(epg_benchmark *benchmark)
{
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {0};
    epg_error err = {0};
    epg_assert_ok(epg_benchmark_spec(benchmark, &spec, &err), &err);
    return is_text(epg_buffer_span(&spec.action_space), "type", "float");
}

/* Pseudo-random Actions that depend on the step alone; `context` is the Benchmark. */
static epg_policy_failure wander(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)observation;
    uint64_t mixed = (step + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    if (takes_floats(context)) {
        epg_value_put_float(action, (double)(mixed % 2001) / 1000.0 - 1.0);
    } else {
        epg_value_put_i64(action, (int64_t)(mixed % 2));
    }
    return EPG_POLICY_OK;
}

static epg_policy_failure refuse(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)context;
    (void)observation;
    (void)step;
    epg_value_put_text(action, "left");
    return EPG_POLICY_OK;
}

START_TEST(every_spec_is_right_and_every_episode_ends_within_its_horizon)
{
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        epg_benchmark *benchmark = epg_test_benchmark(names[i]);
        EPG_CLEANUP(epg_spec_free) epg_spec spec = {0};
        epg_error err = {0};
        epg_assert_ok(epg_benchmark_spec(benchmark, &spec, &err), &err);
        epg_assert_ok(epg_spec_check(&spec, &err), &err);
        ck_assert_uint_gt(strlen(spec.description), 200);
        epg_test_run *run = epg_test_play(benchmark, "train", i, 3, wander, benchmark);
        for (uint64_t k = 0; k < 3; k++) {
            ck_assert_uint_le(epg_test_steps(run, k), spec.max_episode_steps);
            ck_assert_str_ne(epg_test_end(run, k), "");
        }
        epg_test_run_free(run);
        epg_benchmark_destroy(benchmark);
    }
}
END_TEST

START_TEST(the_same_plan_gives_the_same_feedback_to_the_byte)
{
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        epg_feedback feedback[2] = {{.score = 0.0}, {.score = 0.0}};
        for (int turn = 0; turn < 2; turn++) {
            epg_benchmark *benchmark = epg_test_benchmark(names[i]);
            epg_test_run *run = epg_test_play(benchmark, "test", 11, 4, wander, benchmark);
            epg_test_feedback(benchmark, run, &feedback[turn]);
            epg_test_run_free(run);
            epg_benchmark_destroy(benchmark);
        }
        ck_assert_double_eq(feedback[0].score, feedback[1].score);
        ck_assert(epg_span_equal(epg_buffer_span(&feedback[0].content), epg_buffer_span(&feedback[1].content)));
        ck_assert(epg_span_equal(epg_buffer_span(&feedback[0].artifacts[0].content),
                                 epg_buffer_span(&feedback[1].artifacts[0].content)));
        epg_feedback_free(&feedback[0]);
        epg_feedback_free(&feedback[1]);
    }
}
END_TEST

static void check_worst(const char *name, double right)
{
    epg_benchmark *benchmark = epg_test_benchmark(name);
    epg_test_run *run = epg_test_play(benchmark, "train", 0, 2, refuse, NULL);
    epg_feedback feedback = {0};
    epg_test_feedback(benchmark, run, &feedback);
    ck_assert_int_eq(epg_test_failure(run, 0), EPG_POLICY_INVALID_ACTION);
    ck_assert_double_eq_tol(feedback.score, right, 1e-9);
    epg_feedback_free(&feedback);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}

START_TEST(a_failed_episode_counts_as_the_worst_return)
{
    check_worst("cartpole", 0.0);
    check_worst("acrobot", -500.0);
    check_worst("mountain-car", -200.0);
    check_worst("mountain-car-continuous", -99.9);
    check_worst("pendulum", -200.0 * (9.869604401089358 + 6.4 + 0.004));
    check_worst("frozen-lake", 0.0);
    check_worst("cliff-walking", -20000.0);
    check_worst("taxi", -2000.0);
    check_worst("blackjack", -1.0);
}
END_TEST

/* --- Continuous Actions are taken as they are or not at all --- */

static epg_policy_failure send(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)observation;
    (void)step;
    (void)epg_buffer_append_span(action, epg_buffer_span(context));
    return EPG_POLICY_OK;
}

static epg_policy_failure outcome_of(const char *name, epg_buffer *action)
{
    epg_benchmark *benchmark = epg_test_benchmark(name);
    epg_test_run *run = epg_test_play(benchmark, "train", 0, 1, send, action);
    epg_policy_failure failure = epg_test_failure(run, 0);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
    epg_buffer_free(action);
    return failure;
}

START_TEST(a_force_is_a_float_in_the_range_never_clipped)
{
    epg_buffer action = {0};
    epg_value_put_float(&action, 2.0);
    ck_assert_int_eq(outcome_of("pendulum", &action), EPG_POLICY_OK);
    epg_value_put_float(&action, nextafter(2.0, 3.0));
    ck_assert_int_eq(outcome_of("pendulum", &action), EPG_POLICY_INVALID_ACTION);
    epg_value_put_float(&action, -2.5);
    ck_assert_int_eq(outcome_of("pendulum", &action), EPG_POLICY_INVALID_ACTION);
    epg_value_put_i64(&action, 1);
    ck_assert_int_eq(outcome_of("pendulum", &action), EPG_POLICY_INVALID_ACTION);
    epg_value_put_float(&action, 1.5);
    ck_assert_int_eq(outcome_of("mountain-car-continuous", &action), EPG_POLICY_INVALID_ACTION);
    epg_value_put_list(&action, 1);
    epg_value_put_float(&action, 0.5);
    ck_assert_int_eq(outcome_of("mountain-car-continuous", &action), EPG_POLICY_INVALID_ACTION);
}
END_TEST

/* --- Policies with known outcomes --- */

static epg_policy_failure with_the_motion(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)step;
    double velocity = number(observation, "velocity");
    if (takes_floats(context)) {
        epg_value_put_float(action, velocity < 0.0 ? -1.0 : 1.0);
    } else {
        epg_value_put_i64(action, velocity < 0.0 ? 0 : 2);
    }
    return EPG_POLICY_OK;
}

START_TEST(pushing_with_the_motion_climbs_the_hill)
{
    static const char *const cars[] = {"mountain-car", "mountain-car-continuous"};
    for (size_t i = 0; i < EPG_COUNT(cars); i++) {
        epg_benchmark *benchmark = epg_test_benchmark(cars[i]);
        epg_test_run *run = epg_test_play(benchmark, "train", 0, 10, with_the_motion, benchmark);
        for (uint64_t k = 0; k < 10; k++) {
            ck_assert_str_eq(epg_test_end(run, k), "reached_the_flag");
            double steps = (double)epg_test_steps(run, k);
            ck_assert_double_eq_tol(epg_test_return(run, k), i == 0 ? -steps : 100.0 - 0.1 * steps, 1e-9);
        }
        epg_test_run_free(run);
        epg_benchmark_destroy(benchmark);
    }
}
END_TEST

static epg_policy_failure with_the_swing(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)context;
    (void)step;
    double joint = number(observation, "theta_2_angular_velocity");
    epg_value_put_i64(action, joint < 0.0 ? 0 : 2);
    return EPG_POLICY_OK;
}

START_TEST(torque_with_the_swing_brings_the_acrobot_up)
{
    epg_benchmark *benchmark = epg_test_benchmark("acrobot");
    epg_test_run *run = epg_test_play(benchmark, "train", 0, 10, with_the_swing, NULL);
    for (uint64_t k = 0; k < 10; k++) {
        ck_assert_str_eq(epg_test_end(run, k), "reached_the_height");
        ck_assert_double_eq(epg_test_return(run, k), -(double)epg_test_steps(run, k) + 1.0);
    }
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}
END_TEST

/* Sends the Actions of a text, one digit each, and then the last one again. */
static epg_policy_failure follow(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)observation;
    const char *path = context;
    size_t last = strlen(path) - 1;
    epg_value_put_i64(action, path[step < last ? step : last] - '0');
    return EPG_POLICY_OK;
}

static void check_path(const char *name, char *path, const char *end, double right, uint64_t steps)
{
    epg_benchmark *benchmark = epg_test_benchmark(name);
    epg_test_run *run = epg_test_play(benchmark, "train", 0, 1, follow, path);
    ck_assert_str_eq(epg_test_end(run, 0), end);
    ck_assert_double_eq(epg_test_return(run, 0), right);
    ck_assert_uint_eq(epg_test_steps(run, 0), steps);
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}

START_TEST(walks_on_firm_ground_end_where_they_lead)
{
    char safe[] = "112212";
    char hole[] = "21";
    char wall[] = "0";
    char long_way[] = "22222221111111";
    check_path("frozen-lake?slippery=false", safe, "reached_the_goal", 1.0, 6);
    check_path("frozen-lake?slippery=false", hole, "fell_into_a_hole", 0.0, 2);
    check_path("frozen-lake?slippery=false", wall, "time_limit", 0.0, 100);
    check_path("frozen-lake?slippery=false&map=8x8", long_way, "reached_the_goal", 1.0, 14);
    check_path("frozen-lake?map_name=8x8&is_slippery=true&success_rate=1", long_way, "reached_the_goal", 1.0, 14);
    char along[] = "0111111111112";
    char over[] = "1";
    check_path("cliff-walking", along, "reached_the_goal", -13.0, 13);
    check_path("cliff-walking", over, "time_limit", -20000.0, 200);
}
END_TEST

/* Columns are joined only through row 2, the one row without walls: go there, across, and to the landmark. */
static int64_t drive(int row, int column, int to_row, int to_column)
{
    if (column != to_column) {
        return row != 2 ? (row < 2 ? 0 : 1) : column < to_column ? 2 : 3;
    }
    return row < to_row ? 0 : 1;
}

static epg_policy_failure deliver(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)context;
    (void)step;
    static const char *const places[] = {"red", "green", "yellow", "blue"};
    static const int rows[] = {0, 0, 4, 4};
    static const int columns[] = {0, 4, 0, 3};
    bool aboard = is_text(observation, "passenger_location", "in_taxi");
    int row = (int)number(observation, "taxi_row");
    int column = (int)number(observation, "taxi_column");
    for (int i = 0; i < 4; i++) {
        if (is_text(observation, aboard ? "destination" : "passenger_location", places[i])) {
            bool there = row == rows[i] && column == columns[i];
            epg_value_put_i64(action, !there ? drive(row, column, rows[i], columns[i]) : aboard ? 5 : 4);
            return EPG_POLICY_OK;
        }
    }
    return EPG_POLICY_EXCEPTION;
}

static void check_delivery(const char *name)
{
    epg_benchmark *benchmark = epg_test_benchmark(name);
    epg_test_run *run = epg_test_play(benchmark, "train", 0, 100, deliver, NULL);
    for (uint64_t k = 0; k < 100; k++) {
        ck_assert_msg(strcmp(epg_test_end(run, k), "delivered") == 0, "%s: Episode %d: %s", name, (int)k,
                      epg_test_end(run, k));
        ck_assert_double_eq(epg_test_return(run, k), 20.0 - ((double)epg_test_steps(run, k) - 1.0));
    }
    epg_test_run_free(run);
    epg_benchmark_destroy(benchmark);
}

START_TEST(a_taxi_that_looks_delivers_in_every_weather)
{
    check_delivery("taxi");
    check_delivery("taxi?rainy=true");
    check_delivery("taxi?fickle_passenger=true&fickle_probability=1");
    check_delivery("taxi?is_rainy=true&fickle=true");
}
END_TEST

/* Counts the Episodes in which the destination changes while the passenger is aboard. */
typedef struct watch {
    char destination[16];
    unsigned changes;
} watch;

static epg_policy_failure deliver_and_watch(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    watch *seen = context;
    epg_span name;
    ck_assert(epg_value_get_string(epg_test_member(observation, "destination"), &name));
    if (step > 0 && !epg_span_equal(name, epg_span_text(seen->destination))) {
        ck_assert(is_text(observation, "passenger_location", "in_taxi"));
        seen->changes++;
    }
    memcpy(seen->destination, name.data, name.size);
    seen->destination[name.size] = '\0';
    return deliver(NULL, observation, step, action);
}

START_TEST(a_fickle_passenger_changes_the_destination_once_and_others_never)
{
    static const struct {
        const char *name;
        unsigned low, high;
    } cases[] = {{"taxi", 0, 0}, {"taxi?fickle=true&fickle_probability=1", 200, 200}, {"taxi?fickle=true", 30, 90}};
    for (size_t i = 0; i < EPG_COUNT(cases); i++) {
        watch seen = {0};
        epg_benchmark *benchmark = epg_test_benchmark(cases[i].name);
        epg_test_run *run = epg_test_play(benchmark, "train", 0, 200, deliver_and_watch, &seen);
        ck_assert_uint_ge(seen.changes, cases[i].low);
        ck_assert_uint_le(seen.changes, cases[i].high);
        epg_test_run_free(run);
        epg_benchmark_destroy(benchmark);
    }
}
END_TEST

static epg_policy_failure stick(void *context, epg_span observation, uint64_t step, epg_buffer *action)
{
    (void)context;
    (void)observation;
    (void)step;
    epg_value_put_i64(action, 0);
    return EPG_POLICY_OK;
}

static bool starts_with_a_natural(const epg_test_run *run, uint64_t episode)
{
    epg_span first = epg_test_initial(run, episode);
    return number(first, "player_sum") == 21.0; /* two cards make 21 only as an ace and a ten */
}

START_TEST(naturals_earn_what_the_rules_say)
{
    enum { HANDS = 3000 };
    epg_benchmark *sab = epg_test_benchmark("blackjack");
    epg_benchmark *bonus = epg_test_benchmark("blackjack?natural=true&sab=false");
    epg_benchmark *plain = epg_test_benchmark("blackjack?natural=false&sab=false");
    epg_test_run *by_sab = epg_test_play(sab, "train", 0, HANDS, stick, NULL);
    epg_test_run *by_bonus = epg_test_play(bonus, "train", 0, HANDS, stick, NULL);
    epg_test_run *by_plain = epg_test_play(plain, "train", 0, HANDS, stick, NULL);
    unsigned naturals = 0;
    unsigned differ = 0;
    for (uint64_t i = 0; i < HANDS; i++) {
        double usual = epg_test_return(by_plain, i);
        if (!starts_with_a_natural(by_plain, i)) {
            ck_assert_double_eq(epg_test_return(by_sab, i), usual);
            ck_assert_double_eq(epg_test_return(by_bonus, i), usual);
            continue;
        }
        naturals++;
        ck_assert_double_ge(usual, 0.0); /* nothing beats 21 */
        ck_assert_double_eq(epg_test_return(by_bonus, i), usual == 1.0 ? 1.5 : 0.0);
        ck_assert_double_ge(epg_test_return(by_sab, i), usual);
        differ += epg_test_return(by_sab, i) != usual ? 1 : 0;
    }
    ck_assert_uint_gt(naturals, 80); /* 2 * 1/13 * 4/13 of the hands: 142 expected */
    ck_assert_uint_lt(naturals, 220);
    ck_assert_uint_gt(differ, 0);
    epg_test_run_free(by_sab);
    epg_test_run_free(by_bonus);
    epg_test_run_free(by_plain);
    epg_benchmark_destroy(sab);
    epg_benchmark_destroy(bonus);
    epg_benchmark_destroy(plain);
}
END_TEST

static char *digest_of(const char *text)
{
    epg_benchmark *benchmark = epg_test_benchmark(text);
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {0};
    epg_error err = {0};
    epg_assert_ok(epg_benchmark_spec(benchmark, &spec, &err), &err);
    epg_benchmark_destroy(benchmark);
    return epg_strdup(spec.environment_digest);
}

START_TEST(parameters_mean_the_same_however_they_are_written)
{
    static const char *const same[][2] = {
        {"frozen-lake?is_slippery=False&map_name=8x8", "frozen-lake?map=8x8&slippery=0"},
        {"frozen-lake?success_rate=-0", "frozen-lake?success_rate=0.0"},
        {"frozen-lake?slippery=true", "frozen-lake"},
        {"taxi?is_rainy=True&fickle_passenger=yes", "taxi?fickle=1&rainy=true"},
    };
    for (size_t i = 0; i < EPG_COUNT(same); i++) {
        EPG_AUTO_FREE char *one = digest_of(same[i][0]);
        EPG_AUTO_FREE char *other = digest_of(same[i][1]);
        EPG_AUTO_FREE char *plain = digest_of(i < 3 ? "frozen-lake?map=8x8" : "taxi");
        ck_assert_str_eq(one, other);
        ck_assert_str_ne(one, plain);
    }
}
END_TEST

static void check_refused(const char *text, const char *told)
{
    epg_benchmark *benchmark = NULL;
    epg_error err = {0};
    epg_assert_code(epg_benchmark_open(text, &(epg_benchmark_options){0}, &benchmark, &err), EPG_ERR_USAGE, &err);
    ck_assert_msg(strstr(err.text, told) != NULL, "%s: %s", text, err.text);
}

START_TEST(wrong_parameters_are_told_with_what_would_be_right)
{
    check_refused("frozen-lake?map=16x16", "one of 4x4, 8x8");
    check_refused("frozen-lake?slipery=true", "did you mean slippery?");
    check_refused("frozen-lake?slippery=maybe", "true or false");
    check_refused("frozen-lake?success_rate=1.5", "a number from 0 to 1");
    check_refused("frozen-lake?success_rate=nan", "a number from 0 to 1");
    check_refused("frozen-lake?success_rate=", "a number from 0 to 1");
    check_refused("frozen-lake?map=4x4&map_name=8x8", "given twice");
    check_refused("frozen-lake?map", "key=value");
    check_refused("frozen-lake?=4x4", "key=value");
    check_refused("frozen-lake?map=4x4&", "key=value");
    check_refused("mountain-car?slippery=true", "takes no parameters");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worlds");
    TCase *tests = tcase_create("worlds");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_spec_is_right_and_every_episode_ends_within_its_horizon);
    tcase_add_test(tests, the_same_plan_gives_the_same_feedback_to_the_byte);
    tcase_add_test(tests, a_failed_episode_counts_as_the_worst_return);
    tcase_add_test(tests, a_force_is_a_float_in_the_range_never_clipped);
    tcase_add_test(tests, pushing_with_the_motion_climbs_the_hill);
    tcase_add_test(tests, torque_with_the_swing_brings_the_acrobot_up);
    tcase_add_test(tests, walks_on_firm_ground_end_where_they_lead);
    tcase_add_test(tests, a_taxi_that_looks_delivers_in_every_weather);
    tcase_add_test(tests, a_fickle_passenger_changes_the_destination_once_and_others_never);
    tcase_add_test(tests, naturals_earn_what_the_rules_say);
    tcase_add_test(tests, wrong_parameters_are_told_with_what_would_be_right);
    tcase_add_test(tests, parameters_mean_the_same_however_they_are_written);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
