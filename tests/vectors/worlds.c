/* The built-in Benchmarks over many worlds, held against tests/vectors/worlds.py: an account of their dynamics and
 * draws that was written without ours, and that says what the file holds. Discrete worlds are the same to the byte;
 * continuous ones as near as sine and cosine allow, at the steps that were written down, and they end where they
 * should. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "benchmark/benchmark.h"
#include "support/play.h"
#include "vectors/vectors.h"

/* A float may differ by this part of max(1, its size). */
static const double TOLERANCE = 1e-6;

/* --- Policies, the same as in worlds.py --- */

typedef struct player {
    const char *world;  /* "taxi" */
    const char *policy; /* "drawn", "steered", "first", "second" */
    uint64_t episode;
    unsigned actions; /* 0: a float in [low, high] */
    double low, high;
} player;

static const struct {
    const char *world;
    unsigned actions;
    double low, high;
} kinds[] = {
    {"cartpole", 2, 0, 0},  {"acrobot", 3, 0, 0},     {"mountain-car", 3, 0, 0}, {"mountain-car-continuous", 0, -1, 1},
    {"pendulum", 0, -2, 2}, {"frozen-lake", 4, 0, 0}, {"taxi", 6, 0, 0},         {"cliff-walking", 4, 0, 0},
    {"blackjack", 2, 0, 0},
};

static uint64_t mixed(uint64_t episode, uint64_t step)
{
    uint64_t z = ((episode << 32 | step) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double number_of(epg_span value)
{
    double number = 0.0;
    int64_t whole = 0;
    if (epg_value_get_i64(value, &whole)) {
        return (double)whole;
    }
    return epg_value_get_float(value, &number) ? number : NAN;
}

static double seen(epg_span observation, const char *key)
{
    epg_span value;
    return epg_value_lookup(observation, key, &value) ? number_of(value) : NAN;
}

static bool names(epg_span observation, const char *key, const char *text)
{
    epg_span value;
    epg_span found;
    return epg_value_lookup(observation, key, &value) && epg_value_get_string(value, &found) &&
           epg_span_equal(found, epg_span_text(text));
}

static unsigned steer_cartpole(epg_span observation)
{
    double at[4] = {0.0};
    epg_value_cursor cursor;
    epg_span item;
    if (epg_value_enter(observation, &cursor)) {
        for (size_t i = 0; i < EPG_COUNT(at) && epg_value_next(&cursor, NULL, &item); i++) {
            at[i] = number_of(item);
        }
    }
    return at[2] + 0.25 * at[3] + 0.05 * at[1] + 0.02 * at[0] > 0.0 ? 1 : 0;
}

/* To the passenger's landmark and then to the destination, wandering. */
static unsigned steer_taxi(epg_span observation, uint64_t number)
{
    static const struct {
        const char *name;
        double row, column;
    } places[] = {{"red", 0, 0}, {"green", 0, 4}, {"yellow", 4, 0}, {"blue", 4, 3}};
    bool aboard = names(observation, "passenger_location", "in_taxi");
    const char *key = aboard ? "destination" : "passenger_location";
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        if (names(observation, key, places[i].name) && seen(observation, "taxi_row") == places[i].row &&
            seen(observation, "taxi_column") == places[i].column) {
            return aboard ? 5 : 4;
        }
    }
    unsigned moves[6] = {0};
    uint64_t count = 0;
    epg_span legal;
    epg_span item;
    epg_value_cursor cursor;
    if (epg_value_lookup(observation, "legal_actions", &legal) && epg_value_enter(legal, &cursor)) {
        while (count < EPG_COUNT(moves) && epg_value_next(&cursor, NULL, &item)) {
            double action = number_of(item);
            if (action < 4.0) {
                moves[count++] = (unsigned)action;
            }
        }
    }
    return count > 0 ? moves[number % count] : 0;
}

static unsigned steer_cliff(epg_span observation)
{
    if (seen(observation, "state") == 36.0) {
        return 0;
    }
    return seen(observation, "column") < 11.0 ? 1 : 2;
}

static unsigned steer(const char *world, epg_span observation, uint64_t number)
{
    if (strcmp(world, "cartpole") == 0) {
        return steer_cartpole(observation);
    }
    if (strcmp(world, "acrobot") == 0) {
        return seen(observation, "theta_2_angular_velocity") > 0.0 ? 2 : 0;
    }
    if (strcmp(world, "mountain-car") == 0) {
        return seen(observation, "velocity") >= 0.0 ? 2 : 0;
    }
    if (strcmp(world, "frozen-lake") == 0) {
        return 1 + (unsigned)(number % 2);
    }
    if (strcmp(world, "cliff-walking") == 0) {
        return steer_cliff(observation);
    }
    if (strcmp(world, "taxi") == 0) {
        return steer_taxi(observation, number);
    }
    return seen(observation, "player_sum") < 17.0 ? 1 : 0;
}

static void act(const player *self, epg_span observation, uint64_t step, epg_buffer *action)
{
    uint64_t number = mixed(self->episode, step);
    bool draws = strcmp(self->policy, "drawn") == 0;
    bool steers = strcmp(self->policy, "steered") == 0;
    if (self->actions > 0) {
        uint64_t chosen = draws    ? number % self->actions
                          : steers ? steer(self->world, observation, number)
                                   : strcmp(self->policy, "second") == 0;
        epg_value_put_u64(action, chosen);
    } else if (draws) {
        epg_value_put_float(action, self->low + (self->high - self->low) * ((double)(number % 2001) / 2000.0));
    } else if (strcmp(self->world, "pendulum") == 0) {
        epg_value_put_float(action, seen(observation, "theta_angular_velocity") >= 0.0 ? 1.7 : -1.9);
    } else {
        epg_value_put_float(action, seen(observation, "velocity") >= 0.0 ? 0.9 : -0.8);
    }
}

/* --- Playing --- */

/* What hears of the reset's observation (step 0) and of every step. */
typedef bool listener(void *context, uint64_t step, epg_span observation, const epg_step *happened, char **why);

static bool play(epg_benchmark *benchmark, const epg_episode_spec *episode, const player *self, listener *tell,
                 void *context, char **why)
{
    static const epg_step none = {.reward = 0.0};
    EPG_TEST_AUTO_ENVIRONMENT *environment = NULL;
    EPG_AUTO_BUFFER observation = {0};
    EPG_AUTO_BUFFER action = {0};
    EPG_CLEANUP(epg_step_free) epg_step step = {0};
    epg_error err = {.text = ""};
    if (benchmark->vtable->open(benchmark, episode, &environment, &err) != EPG_OK ||
        benchmark->vtable->reset(environment, &observation, &err) != EPG_OK) {
        *why = epg_strdup(err.text);
        return false;
    }
    bool ok = tell(context, 0, epg_buffer_span(&observation), &none, why);
    for (uint64_t i = 0; ok && !step.terminated && !step.truncated; i++) {
        epg_buffer_clear(&action);
        act(self, epg_buffer_span(i == 0 ? &observation : &step.observation), i, &action);
        if (benchmark->vtable->step(environment, epg_buffer_span(&action), &step, &err) != EPG_OK ||
            step.invalid_action) {
            *why = epg_format("step %" PRIu64 ": %s", i + 1, step.invalid_action ? step.invalid_reason : err.text);
            return false;
        }
        ok = tell(context, i + 1, epg_buffer_span(&step.observation), &step, why);
    }
    return ok;
}

/* --- Discrete worlds: one digest over all that happened --- */

typedef struct digester {
    epg_sha256 *hash;
    uint64_t steps;
} digester;

static bool digest(void *context, uint64_t step, epg_span observation, const epg_step *happened, char **why)
{
    (void)why;
    digester *self = context;
    EPG_AUTO_BUFFER told = {0};
    (void)epg_buffer_append_span(&told, observation);
    epg_value_put_float(&told, happened->reward);
    epg_value_put_bool(&told, happened->terminated);
    epg_value_put_bool(&told, happened->truncated);
    epg_sha256_update(self->hash, told.data, told.size);
    self->steps = step;
    return true;
}

static void check_discrete(epg_benchmark *benchmark, const epg_episode_spec *plan, uint64_t count, player *self,
                           const json_t *group, const char *name, epg_vector_report *report)
{
    digester all = {.hash = epg_sha256_new()};
    EPG_AUTO_FREE char *why = NULL;
    for (uint64_t i = 0; i < count; i++) {
        self->episode = i;
        if (!play(benchmark, &plan[i], self, digest, &all, &why)) {
            epg_vector_fail(report, name, "Episode %" PRIu64 ": %s", i, why);
            break;
        }
        json_int_t steps = json_integer_value(json_array_get(json_object_get(group, "steps"), (size_t)i));
        (void)epg_vector_verdict(report, name, all.steps == (uint64_t)steps, "Episode %" PRIu64 ": %" PRIu64 " steps",
                                 i, all.steps);
    }
    uint8_t hash[EPG_SHA256_SIZE];
    char hex[2 * EPG_SHA256_SIZE + 1];
    epg_sha256_finish(all.hash, hash);
    epg_hex(hash, sizeof hash, hex);
    const char *right = json_string_value(json_object_get(group, "sha256"));
    (void)epg_vector_verdict(report, name, right != NULL && strcmp(hex, right) == 0, "another trajectory: %s", hex);
}

/* --- Continuous worlds: some observations of each Episode, its return so far, and how it ends --- */

typedef struct comparer {
    const json_t *right;
    size_t next; /* of what was seen */
    uint64_t steps;
    double sum;
    bool terminated;
} comparer;

static bool near_numbers(double ours, double theirs)
{
    return fabs(ours - theirs) <= TOLERANCE * fmax(1.0, fabs(theirs));
}

/* The observation's numbers, in the order of its keys, beside [step, numbers...]. */
static bool same_numbers(epg_span observation, const json_t *right)
{
    epg_value_cursor cursor;
    epg_span value;
    size_t i = 1;
    if (!epg_value_enter(observation, &cursor) || cursor.left + 1 != json_array_size(right)) {
        return false;
    }
    for (; epg_value_next(&cursor, NULL, &value); i++) {
        if (!near_numbers(number_of(value), json_number_value(json_array_get(right, i)))) {
            return false;
        }
    }
    return i == json_array_size(right);
}

static bool compare(void *context, uint64_t step, epg_span observation, const epg_step *happened, char **why)
{
    comparer *self = context;
    const json_t *wanted = json_array_get(json_object_get(self->right, "seen"), self->next);
    uint64_t common = (uint64_t)json_integer_value(json_object_get(self->right, "common"));
    self->steps = step;
    self->sum += step <= common ? happened->reward : 0.0;
    self->terminated = happened->terminated;
    if (wanted == NULL || (uint64_t)json_integer_value(json_array_get(wanted, 0)) != step) {
        return true;
    }
    self->next++;
    if (!same_numbers(observation, wanted)) {
        *why = epg_format("step %" PRIu64 ": another observation", step);
        return false;
    }
    return true;
}

static bool as_written(const comparer *self)
{
    const char *end = json_string_value(json_object_get(self->right, "end"));
    uint64_t steps = (uint64_t)json_integer_value(json_object_get(self->right, "steps"));
    bool ended = end == NULL || (self->steps == steps && self->terminated == (strcmp(end, "terminated") == 0));
    return ended && self->next == json_array_size(json_object_get(self->right, "seen")) &&
           near_numbers(self->sum, json_number_value(json_object_get(self->right, "return")));
}

static void check_continuous(epg_benchmark *benchmark, const epg_episode_spec *plan, uint64_t count, player *self,
                             const json_t *group, const char *name, epg_vector_report *report)
{
    for (uint64_t i = 0; i < count; i++) {
        comparer one = {.right = json_array_get(json_object_get(group, "episodes"), (size_t)i)};
        EPG_AUTO_FREE char *why = NULL;
        self->episode = i;
        bool same = one.right != NULL && play(benchmark, &plan[i], self, compare, &one, &why) && as_written(&one);
        (void)epg_vector_verdict(report, name, same, "Episode %" PRIu64 ": %s (%" PRIu64 " steps, a return of %.12g)",
                                 i, why != NULL ? why : "another end or return", one.steps, one.sum);
    }
}

/* --- Groups --- */

static bool describe_player(const char *benchmark, player *self)
{
    size_t size = strcspn(benchmark, "?");
    for (size_t i = 0; i < EPG_COUNT(kinds); i++) {
        if (strlen(kinds[i].world) == size && strncmp(kinds[i].world, benchmark, size) == 0) {
            self->world = kinds[i].world;
            self->actions = kinds[i].actions;
            self->low = kinds[i].low;
            self->high = kinds[i].high;
            return true;
        }
    }
    return false;
}

static void check_plan(epg_benchmark *benchmark, player *self, const json_t *group, const char *name,
                       epg_vector_report *report)
{
    const char *split = json_string_value(json_object_get(group, "split"));
    const char *seed = json_string_value(json_object_get(group, "seed"));
    uint64_t count = (uint64_t)json_integer_value(json_object_get(group, "count"));
    epg_episode_spec *plan = epg_alloc_array(count, sizeof *plan);
    if (split == NULL || seed == NULL || count == 0 ||
        benchmark->vtable->episodes(benchmark, split, strtoull(seed, NULL, 10), count, plan, NULL) != EPG_OK) {
        epg_vector_fail(report, name, "it can't be planned");
    } else if (json_object_get(group, "sha256") != NULL) {
        check_discrete(benchmark, plan, count, self, group, name, report);
    } else {
        check_continuous(benchmark, plan, count, self, group, name, report);
    }
    for (uint64_t i = 0; i < count; i++) {
        epg_episode_spec_free(&plan[i]);
    }
    free(plan);
}

static void check_group(const json_t *group, epg_vector_report *report)
{
    const char *text = json_string_value(json_object_get(group, "benchmark"));
    player self = {.policy = json_string_value(json_object_get(group, "policy"))};
    epg_error err = {.text = "a group without a benchmark that is known, or without a policy"};
    EPG_TEST_AUTO_BENCHMARK *benchmark = NULL;
    if (text == NULL || self.policy == NULL || !describe_player(text, &self) ||
        epg_benchmark_open(text, &(epg_benchmark_options){0}, &benchmark, &err) != EPG_OK) {
        epg_vector_fail(report, text != NULL ? text : "(unnamed)", "%s", err.text);
        return;
    }
    EPG_AUTO_FREE char *name = epg_format("%s, %s", text, self.policy);
    check_plan(benchmark, &self, group, name, report);
}

void epg_vectors_worlds(const json_t *document, epg_vector_report *report)
{
    size_t i = 0;
    json_t *group = NULL;
    json_array_foreach(json_object_get(document, "groups"), i, group)
    {
        check_group(group, report);
    }
}
