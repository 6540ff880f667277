/* What is looked at, in order: the spec, the plan, closing early, strange Actions, Episodes played twice, Feedback. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "benchmark/check_play.h"
#include "system/children.h"

enum { SEED_DIGITS_MIN = 8 }; /* a shorter number says nothing: it can stand anywhere by chance */

/* --- Spec and plan --- */

static epg_code get_spec(epg_trial *self, epg_spec *out, epg_error *err)
{
    self->mark->began = epg_monotonic_ns();
    self->mark->call = "spec";
    epg_code code = epg_benchmark_spec(self->benchmark, out, err);
    self->mark->call = NULL;
    return code;
}

static bool check_spec(epg_trial *self)
{
    epg_error err = {.text = ""};
    if (get_spec(self, &self->spec, &err) != EPG_OK || epg_spec_check(&self->spec, &err) != EPG_OK) {
        epg_trial_finding(self, "structure", "%s", err.text);
        return false;
    }
    EPG_CLEANUP(epg_spec_free) epg_spec again = {.id = NULL};
    EPG_AUTO_BUFFER first = {0};
    EPG_AUTO_BUFFER second = {0};
    epg_spec_to_value(&self->spec, &first);
    if (get_spec(self, &again, &err) == EPG_OK) {
        epg_spec_to_value(&again, &second);
    }
    if (!epg_span_equal(epg_buffer_span(&first), epg_buffer_span(&second))) {
        epg_trial_finding(self, "determinism", "the spec differs when it is asked for again");
    }
    return true;
}

static void plan_free(epg_episode_spec *plan, uint64_t count)
{
    for (uint64_t i = 0; plan != NULL && i < count; i++) {
        epg_episode_spec_free(&plan[i]);
    }
    free(plan);
}

static epg_code get_plan(epg_trial *self, uint64_t count, epg_episode_spec **out, epg_error *err)
{
    epg_episode_spec *plan = epg_alloc_array(count, sizeof *plan);
    self->mark->began = epg_monotonic_ns();
    self->mark->call = "episodes";
    epg_code code =
        self->benchmark->vtable->episodes(self->benchmark, self->request->split, self->request->seed, count, plan, err);
    self->mark->call = NULL;
    if (code != EPG_OK) {
        plan_free(plan, count);
        return code;
    }
    *out = plan;
    return EPG_OK;
}

static bool same_plans(const epg_episode_spec *a, const epg_episode_spec *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (a[i].environment_seed != b[i].environment_seed ||
            !epg_span_equal(epg_buffer_span(&a[i].scenario), epg_buffer_span(&b[i].scenario))) {
            return false;
        }
    }
    return true;
}

/* A plan is asked for twice, the second time one Episode longer: neither may change the Episodes before. */
static epg_code check_plan(epg_trial *self, bool *ok, epg_error *err)
{
    uint64_t count = self->request->episodes;
    epg_error fault = {.text = ""};
    epg_code code = get_plan(self, count, &self->plan, &fault);
    *ok = code == EPG_OK;
    if (code == EPG_ERR_USAGE) {
        return epg_fail(err, EPG_ERR_USAGE, "%s", fault.text);
    }
    if (code != EPG_OK) {
        epg_trial_finding(self, "structure", "episodes failed: %s", fault.text);
        return EPG_OK;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (epg_value_check(epg_buffer_span(&self->plan[i].scenario), &epg_value_policy_limits, &fault) != EPG_OK) {
            epg_trial_finding(self, "structure", "Episode %llu: the scenario: %s", (unsigned long long)i, fault.text);
            *ok = false;
        }
    }
    epg_episode_spec *again = NULL;
    epg_episode_spec *longer = NULL;
    if (get_plan(self, count, &again, &fault) != EPG_OK || !same_plans(self->plan, again, count)) {
        epg_trial_finding(self, "determinism", "episodes gives other Episodes for the same split, seed and count");
    } else if (get_plan(self, count + 1, &longer, &fault) != EPG_OK || !same_plans(self->plan, longer, count)) {
        epg_trial_note(self, "an Episode of a plan depends on how many are planned: results of different --episodes "
                             "can't be compared");
    }
    plan_free(again, count);
    plan_free(longer, count + 1);
    return EPG_OK;
}

/* --- Environments --- */

static void check_early_close(epg_trial *self)
{
    epg_environment *environment = NULL;
    if (epg_trial_open(self, 0, &environment)) {
        (void)epg_trial_close(self, environment);
    }
    EPG_AUTO_BUFFER observation = {0};
    environment = NULL;
    if (epg_trial_open(self, 0, &environment)) {
        (void)epg_trial_reset(self, environment, &observation);
        (void)epg_trial_close(self, environment);
    }
}

static void strange_action(unsigned which, epg_buffer *out)
{
    switch (which) {
    case 0:
        epg_value_put_null(out);
        break;
    case 1:
        epg_value_put_text(out, "no such Action");
        break;
    case 2:
        epg_value_put_map(out, 0);
        break;
    case 3:
        epg_value_put_u64(out, UINT64_MAX);
        break;
    case 4:
        epg_value_put_float(out, -1e300);
        break;
    case 5:
        epg_value_put_bytes(out, epg_span_of("\0\xff", 2));
        break;
    default:
        for (int i = 0; i < 30; i++) {
            epg_value_put_list(out, 1);
        }
        epg_value_put_bool(out, true);
        break;
    }
}

/* Whatever a Policy sends, the Environment takes it or refuses it; a fault here would abort an Evaluation. */
static void check_strange_actions(epg_trial *self)
{
    enum { STRANGE = 7 };
    unsigned taken = 0;
    for (unsigned i = 0; i < STRANGE; i++) {
        EPG_AUTO_BUFFER action = {0};
        EPG_AUTO_BUFFER observation = {0};
        EPG_CLEANUP(epg_step_free) epg_step step = {.reward = 0.0};
        epg_environment *environment = NULL;
        strange_action(i, &action);
        if (!epg_trial_open(self, 0, &environment)) {
            return;
        }
        epg_error err = {.text = ""};
        if (epg_trial_reset(self, environment, &observation)) {
            epg_code code = epg_trial_step_call(self, environment, epg_buffer_span(&action), &step, &err);
            if (code != EPG_OK) {
                static const char *const names[STRANGE] = {
                    "null", "a string", "an empty map", "the largest int", "a huge float", "bytes", "a deep list"};
                epg_trial_finding(self, "structure",
                                  "Environment.step fails on %s instead of refusing it as an invalid Action, so any "
                                  "Policy can abort an Evaluation: %s",
                                  names[i], err.text);
            }
            taken += code == EPG_OK && !step.invalid_action ? 1 : 0;
        }
        (void)epg_trial_close(self, environment);
    }
    if (taken == STRANGE) {
        epg_trial_note(self, "no strange Action was refused (null, a string, an empty map, ...)");
    }
}

/* Open descriptors of this process and of all below it. */
static size_t count_descriptors(pid_t pid)
{
    EPG_AUTO_FREE char *path = epg_format("/proc/%d/fd", (int)pid);
    size_t count = 0;
    DIR *directory = opendir(path);
    if (directory != NULL) {
        while (readdir(directory) != NULL) {
            count++;
        }
        (void)closedir(directory);
    }
    EPG_AUTO_PIDS children = {.pids = NULL};
    epg_children_list(pid, &children);
    for (size_t i = 0; i < children.count; i++) {
        count += count_descriptors(children.pids[i]);
    }
    return count;
}

static void compare_episodes(epg_trial *self, uint64_t index, const epg_trial_episode *a, const epg_trial_episode *b)
{
    unsigned long long number = index;
    if (a->faulted || b->faulted) {
        if (a->faulted != b->faulted) {
            epg_trial_finding(self, "determinism", "Episode %llu fails in one play and not in another", number);
        }
        return;
    }
    if (!epg_span_equal(epg_buffer_span(&a->initial), epg_buffer_span(&b->initial))) {
        epg_trial_finding(self, "determinism", "Episode %llu: reset gives another observation the second time", number);
        return;
    }
    for (uint64_t i = 0; i < a->count && i < b->count; i++) {
        const epg_step *x = &a->steps[i].step;
        const epg_step *y = &b->steps[i].step;
        const char *what = NULL;
        if (!epg_span_equal(epg_buffer_span(&x->observation), epg_buffer_span(&y->observation))) {
            what = "the observation";
        } else if (memcmp(&x->reward, &y->reward, sizeof x->reward) != 0) {
            what = "the reward";
        } else if (x->terminated != y->terminated || x->truncated != y->truncated) {
            what = "the end";
        } else if (!epg_span_equal(epg_buffer_span(&x->metrics), epg_buffer_span(&y->metrics))) {
            what = "the metrics";
        }
        if (what != NULL) {
            epg_trial_finding(self, "determinism",
                              "Episode %llu, step %llu: the same Actions give %s another value the second time", number,
                              (unsigned long long)i, what);
            return;
        }
    }
    if (a->count != b->count || a->failure != b->failure) {
        epg_trial_finding(self, "determinism", "Episode %llu: the same Actions end it at another step", number);
    }
}

/* --- Leaks --- */

static bool holds(epg_span bytes, const char *text)
{
    return bytes.size > 0 && memmem(bytes.data, bytes.size, text, strlen(text)) != NULL;
}

static bool holds_seed(epg_span bytes, uint64_t seed)
{
    EPG_AUTO_FREE char *decimal = epg_format("%llu", (unsigned long long)seed);
    EPG_AUTO_FREE char *hexadecimal = epg_format("%llx", (unsigned long long)seed);
    return (strlen(decimal) >= SEED_DIGITS_MIN && holds(bytes, decimal)) ||
           (strlen(hexadecimal) >= SEED_DIGITS_MIN && holds(bytes, hexadecimal));
}

static void check_leaks(epg_trial *self, epg_span bytes, const char *where)
{
    for (uint64_t i = 0; i < self->request->episodes; i++) {
        if (holds_seed(bytes, self->plan[i].environment_seed)) {
            epg_trial_finding(self, "leaks", "%s holds the Environment's seed of Episode %llu", where,
                              (unsigned long long)i);
            break;
        }
        if (holds_seed(bytes, epg_trial_policy_seed(self, i))) {
            epg_trial_finding(self, "leaks", "%s holds the Policy's seed of Episode %llu", where,
                              (unsigned long long)i);
            break;
        }
    }
    EPG_AUTO_FREE char *here = getcwd(NULL, 0);
    const char *const paths[] = {here, getenv("HOME"), getenv("TMPDIR"), "/tmp/"};
    for (size_t i = 0; i < EPG_COUNT(paths); i++) {
        if (paths[i] != NULL && strlen(paths[i]) > 3 && holds(bytes, paths[i])) {
            epg_trial_finding(self, "leaks", "%s holds a path of this machine (%s)", where, paths[i]);
            break;
        }
    }
}

static void check_observation_leaks(epg_trial *self, uint64_t index, const epg_trial_episode *episode)
{
    uint64_t seed = self->plan[index].environment_seed;
    bool found = holds_seed(epg_buffer_span(&episode->initial), seed);
    for (uint64_t i = 0; i < episode->count && !found; i++) {
        found = holds_seed(epg_buffer_span(&episode->steps[i].step.observation), seed);
    }
    if (found) {
        epg_trial_finding(self, "leaks", "an observation of Episode %llu holds the Environment's seed",
                          (unsigned long long)index);
    }
}

/* --- Feedback --- */

static bool same_feedback(const epg_feedback *a, const epg_feedback *b)
{
    if (memcmp(&a->score, &b->score, sizeof a->score) != 0 || a->artifact_count != b->artifact_count ||
        !epg_span_equal(epg_buffer_span(&a->content), epg_buffer_span(&b->content))) {
        return false;
    }
    for (size_t i = 0; i < a->artifact_count; i++) {
        const epg_artifact *x = &a->artifacts[i];
        const epg_artifact *y = &b->artifacts[i];
        if (strcmp(x->name, y->name) != 0 || strcmp(x->media_type, y->media_type) != 0 || x->bulk != y->bulk ||
            !epg_span_equal(epg_buffer_span(&x->content), epg_buffer_span(&y->content))) {
            return false;
        }
    }
    return true;
}

static void check_feedback_leaks(epg_trial *self, const epg_feedback *feedback)
{
    check_leaks(self, epg_buffer_span(&feedback->content), "Feedback's content");
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        EPG_AUTO_FREE char *where = epg_format("Feedback's artifact %s", feedback->artifacts[i].name);
        check_leaks(self, epg_buffer_span(&feedback->artifacts[i].content), where);
    }
}

static void check_feedback(epg_trial *self, const epg_trial_episode *first, const epg_trial_episode *second)
{
    EPG_CLEANUP(epg_feedback_free) epg_feedback made = {.score = 0.0};
    EPG_CLEANUP(epg_feedback_free) epg_feedback again = {.score = 0.0};
    EPG_CLEANUP(epg_feedback_free) epg_feedback failed = {.score = 0.0};
    uint64_t count = self->request->episodes;
    epg_error err = {.text = ""};
    int64_t began = epg_monotonic_ns();
    if (epg_trial_feedback(self, first, count, false, &made, &err) != EPG_OK) {
        epg_trial_finding(self, "structure", "feedback: %s", err.text);
        return;
    }
    epg_trial_number(self, "feedback_seconds", (double)(epg_monotonic_ns() - began) / 1e9);
    if (epg_trial_feedback(self, second, count, false, &again, &err) != EPG_OK || !same_feedback(&made, &again)) {
        epg_trial_finding(self, "determinism", "Feedback differs for two plays of the same Actions");
    }
    check_feedback_leaks(self, &made);
    if (epg_trial_feedback(self, first, count, true, &failed, &err) != EPG_OK) {
        epg_trial_finding(self, "structure", "feedback for Episodes in which the Policy failed: %s", err.text);
    } else if (epg_direction_better(self->spec.direction, failed.score, made.score)) {
        epg_trial_note(self, "a Policy that always fails scores %g, better than the %g of drawn Actions", failed.score,
                       made.score);
    }
}

/* --- All of it --- */

static void tell_speed(epg_trial *self, const epg_trial_episode *episodes)
{
    uint64_t steps = 0;
    uint64_t opened = 0;
    int64_t step_ns = 0;
    int64_t open_ns = 0;
    for (uint64_t i = 0; i < self->request->episodes; i++) {
        steps += episodes[i].count;
        step_ns += episodes[i].step_ns;
        open_ns += episodes[i].open_ns;
        opened += episodes[i].opened ? 1 : 0;
    }
    epg_trial_number(self, "episodes", (double)opened);
    epg_trial_number(self, "steps", (double)steps);
    epg_trial_number(self, "step_seconds", steps == 0 ? 0.0 : (double)step_ns / 1e9 / (double)steps);
    epg_trial_number(self, "open_seconds", opened == 0 ? 0.0 : (double)open_ns / 1e9 / (double)opened);
}

static epg_code play_all(epg_trial *self, epg_trial_episode *first, epg_trial_episode *second, epg_error *err)
{
    uint64_t count = self->request->episodes;
    size_t before = 0;
    bool cut = false;
    for (uint64_t i = 0; i < count; i++) {
        EPG_TRY(epg_trial_play(self, i, true, &first[i], err));
        if (first[i].faulted) {
            return EPG_OK; /* told already; more of the same would hide it */
        }
        check_observation_leaks(self, i, &first[i]);
        cut = cut || (!first[i].ended && first[i].count < self->spec.max_episode_steps);
        before = i == 0 ? count_descriptors(getpid()) : before;
    }
    for (uint64_t i = count; i-- > 0;) {
        EPG_TRY(epg_trial_play(self, i, false, &second[i], err));
        compare_episodes(self, i, &first[i], &second[i]);
    }
    size_t after = count_descriptors(getpid());
    if (after >= before + count) {
        epg_trial_finding(self, "cleanup", "descriptors are left open: %zu after one Episode, %zu after %llu", before,
                          after, (unsigned long long)(2 * count));
    }
    if (cut) {
        epg_trial_note(self, "not every Episode was played to its end (--steps, or Actions that ran out)");
    }
    check_feedback(self, first, second);
    return EPG_OK;
}

epg_code epg_trial_rules(epg_trial *self, epg_error *err)
{
    if (!check_spec(self)) {
        return EPG_OK;
    }
    epg_trial_id(self, self->spec.id);
    bool ok = false;
    EPG_TRY(check_plan(self, &ok, err));
    if (!ok) {
        return EPG_OK;
    }
    uint64_t count = self->request->episodes;
    EPG_AUTO_FREE epg_trial_episode *first = epg_alloc_array(count, sizeof *first);
    EPG_AUTO_FREE epg_trial_episode *second = epg_alloc_array(count, sizeof *second);
    epg_code code = play_all(self, first, second, err);
    if (code == EPG_OK) {
        tell_speed(self, first);
        if (!first[0].faulted) {
            check_early_close(self);
            check_strange_actions(self);
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        epg_trial_episode_free(&first[i]);
        epg_trial_episode_free(&second[i]);
    }
    plan_free(self->plan, count);
    self->plan = NULL;
    return code;
}
