#include "runs/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "environments/random.h"

#define SEED UINT64_C(20011)
enum { RESAMPLES = 10000, RESAMPLES_MIN = 500, DRAWS_MAX = 100000000, QUARTERS = 4 };

void epg_comparison_free(epg_comparison *comparison)
{
    free(comparison->runs);
    free(comparison->groups);
    *comparison = (epg_comparison){0};
}

/* --- may they be compared --- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static epg_code check_pair(const epg_reading *a, const epg_reading *b, epg_error *err)
{
    const epg_history *one = &a->history;
    const epg_history *other = &b->history;
    if (!same_text(one->benchmark_id, other->benchmark_id)) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "'%s' and '%s' measured different Benchmarks (%.200s, %.200s); compare each alone", a->path,
                        b->path, one->benchmark_id, other->benchmark_id);
    }
    if (!same_text(one->environment_digest, other->environment_digest)) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "'%s' and '%s' measured different Environments of %.200s (environment digests differ); compare "
                        "each alone",
                        a->path, b->path, one->benchmark_id);
    }
    if (one->direction_known && other->direction_known && one->direction != other->direction) {
        return epg_fail(err, EPG_ERR_USAGE, "'%s' and '%s' do not agree whether a high score is the best", a->path,
                        b->path);
    }
    return EPG_OK;
}

static epg_code check(const epg_reading *readings, size_t count, epg_direction *direction, epg_error *err)
{
    bool known = false;
    for (size_t i = 0; i < count; i++) {
        EPG_TRY(check_pair(&readings[0], &readings[i], err));
        if (readings[i].history.direction_known) {
            *direction = readings[i].history.direction;
            known = true;
        }
    }
    return known ? EPG_OK : epg_fail(err, EPG_ERR_USAGE, "no Run tells yet whether a high score is the best");
}

/* --- intervals --- */

typedef struct sample {
    double *values; /* one an Episode */
    size_t count;
} sample;

/* The values whose mean is the held-out score; false when there are none such. */
static bool take_sample(const epg_history *history, sample *out)
{
    const epg_history_measure *measure = &history->assessment;
    double sum = 0;
    size_t failed = 0;
    if (!measure->completed || measure->episodes == NULL || measure->episode_count < 2 || history->request == NULL) {
        return false;
    }
    for (size_t i = 0; i < measure->episode_count; i++) {
        const epg_episode_result *episode = &measure->episodes[i];
        if (!episode->finished) {
            return false;
        }
        failed += episode->failure != EPG_POLICY_OK;
        sum += episode->failure == EPG_POLICY_OK ? episode->reward : 0;
    }
    double n = (double)measure->episode_count;
    if (failed == 0 && fabs(sum / n - measure->score) > 1e-9 * (fabs(measure->score) + 1)) {
        return false; /* another kind of score */
    }
    double failure = failed > 0 ? (measure->score * n - sum) / (double)failed : 0;
    out->count = measure->episode_count;
    out->values = epg_alloc_array(out->count, sizeof *out->values);
    for (size_t i = 0; i < out->count; i++) {
        const epg_episode_result *episode = &measure->episodes[i];
        out->values[i] = episode->failure == EPG_POLICY_OK ? episode->reward : failure;
    }
    return true;
}

static double drawn_mean(epg_random *random, const sample *from)
{
    double sum = 0;
    for (size_t i = 0; i < from->count; i++) {
        sum += from->values[epg_random_below(random, (uint32_t)from->count)];
    }
    return sum / (double)from->count;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bootstrap(const sample *samples, size_t count, epg_interval *out)
{
    size_t episodes = 0;
    for (size_t i = 0; i < count; i++) {
        episodes += samples[i].count;
    }
    size_t resamples = episodes > 0 && DRAWS_MAX / episodes < RESAMPLES ? DRAWS_MAX / episodes : RESAMPLES;
    resamples = resamples < RESAMPLES_MIN ? RESAMPLES_MIN : resamples;
    EPG_AUTO_FREE double *means = epg_alloc_array(resamples, sizeof *means);
    epg_random random;
    epg_random_seed(&random, SEED);
    for (size_t i = 0; i < resamples; i++) {
        for (size_t j = 0; j < count; j++) {
            size_t which = count > 1 ? epg_random_below(&random, (uint32_t)count) : 0;
            means[i] += drawn_mean(&random, &samples[which]) / (double)count;
        }
    }
    qsort(means, resamples, sizeof *means, by_value);
    out->known = true;
    out->low = means[resamples * 25 / 1000];
    out->high = means[resamples - 1 - resamples * 25 / 1000];
}

/* Of some of the Runs, each of which must have a sample. */
static void find_interval(const epg_compared *runs, const size_t *members, size_t count, epg_interval *out)
{
    EPG_AUTO_FREE sample *samples = epg_alloc_array(count, sizeof *samples);
    size_t taken = 0;
    while (taken < count && take_sample(&runs[members[taken]].reading->history, &samples[taken])) {
        taken++;
    }
    *out = (epg_interval){0};
    if (count > 0 && taken == count) {
        bootstrap(samples, count, out);
    }
    for (size_t i = 0; i < taken; i++) {
        free(samples[i].values);
    }
}

/* --- rows --- */

static bool ranks_before(epg_direction direction, const epg_compared *a, const epg_compared *b)
{
    if (a->summary.has_assessment != b->summary.has_assessment) {
        return a->summary.has_assessment;
    }
    return a->summary.has_assessment && epg_direction_better(direction, a->summary.assessment, b->summary.assessment);
}

/* Stable, and few: by insertion. */
static void rank(epg_comparison *out, epg_direction direction)
{
    for (size_t i = 1; i < out->run_count; i++) {
        epg_compared one = out->runs[i];
        size_t at = i;
        for (; at > 0 && ranks_before(direction, &one, &out->runs[at - 1]); at--) {
            out->runs[at] = out->runs[at - 1];
        }
        out->runs[at] = one;
    }
}

static bool in_group(const epg_compared_group *group, const epg_history *history)
{
    return same_text(group->provider, history->provider) && same_text(group->model, history->model);
}

static void fill_group(const epg_comparison *comparison, epg_compared_group *group)
{
    EPG_AUTO_FREE size_t *members = epg_alloc_array(comparison->run_count, sizeof *members);
    double sum = 0;
    for (size_t i = 0; i < comparison->run_count; i++) {
        const epg_compared *run = &comparison->runs[i];
        if (!in_group(group, &run->reading->history)) {
            continue;
        }
        group->runs++;
        if (run->summary.has_assessment) {
            members[group->measured++] = i;
            sum += run->summary.assessment;
        }
    }
    group->mean = group->measured > 0 ? sum / (double)group->measured : 0;
    find_interval(comparison->runs, members, group->measured, &group->interval);
}

static bool group_before(epg_direction direction, const epg_compared_group *a, const epg_compared_group *b)
{
    if ((a->measured > 0) != (b->measured > 0)) {
        return a->measured > 0;
    }
    return a->measured > 0 && epg_direction_better(direction, a->mean, b->mean);
}

static void make_groups(epg_comparison *out, epg_direction direction)
{
    out->groups = epg_alloc_array(out->run_count, sizeof *out->groups);
    for (size_t i = 0; i < out->run_count; i++) {
        const epg_history *history = &out->runs[i].reading->history;
        bool there = false;
        for (size_t j = 0; j < out->group_count; j++) {
            there = there || in_group(&out->groups[j], history);
        }
        if (there) {
            continue;
        }
        epg_compared_group group = {.provider = history->provider, .model = history->model};
        fill_group(out, &group);
        size_t at = out->group_count++;
        for (; at > 0 && group_before(direction, &group, &out->groups[at - 1]); at--) {
            out->groups[at] = out->groups[at - 1];
        }
        out->groups[at] = group;
    }
}

static void choose_budgets(const epg_reading *readings, size_t count, const uint64_t *budgets, size_t budget_count,
                           epg_comparison *out)
{
    uint64_t least = readings[0].history.config.episode_budget;
    for (size_t i = 1; i < count; i++) {
        uint64_t budget = readings[i].history.config.episode_budget;
        least = budget < least ? budget : least;
    }
    for (size_t i = 0; budgets == NULL && i < QUARTERS; i++) {
        uint64_t budget = least / QUARTERS * (i + 1) + least % QUARTERS * (i + 1) / QUARTERS;
        if (budget > 0 && (out->budget_count == 0 || budget > out->budgets[out->budget_count - 1])) {
            out->budgets[out->budget_count++] = budget;
        }
    }
    for (size_t i = 0; budgets != NULL && i < budget_count && i < EPG_COMPARE_BUDGETS; i++) {
        out->budgets[out->budget_count++] = budgets[i];
    }
}

epg_code epg_compare(const epg_reading *readings, size_t count, const uint64_t *budgets, size_t budget_count,
                     epg_comparison *out, epg_error *err)
{
    epg_direction direction = EPG_MAXIMIZE;
    EPG_TRY(check(readings, count, &direction, err));
    epg_comparison comparison = {.run_count = count, .runs = epg_alloc_array(count, sizeof *comparison.runs)};
    choose_budgets(readings, count, budgets, budget_count, &comparison);
    for (size_t i = 0; i < count; i++) {
        epg_compared *run = &comparison.runs[i];
        run->reading = &readings[i];
        epg_summary_of(&readings[i], &run->summary);
        find_interval(comparison.runs, &i, 1, &run->interval);
        for (size_t j = 0; j < comparison.budget_count; j++) {
            run->has_best_at[j] =
                epg_summary_best_within(&readings[i].history, comparison.budgets[j], &run->best_at[j]);
        }
        comparison.splits_differ = comparison.splits_differ || !same_text(readings[0].history.config.assessment_split,
                                                                          readings[i].history.config.assessment_split);
    }
    rank(&comparison, direction);
    make_groups(&comparison, direction);
    *out = comparison;
    return EPG_OK;
}
