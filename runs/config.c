/* One table names every member: where it stands in the JSON form, its kind, bounds and place in the struct. The flags
 * stand beside it in the same order, so a member is added in two adjacent lines. */
#include "runs/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

typedef enum member_kind {
    MEMBER_COUNT,
    MEMBER_CAP,
    MEMBER_SEED,
    MEMBER_SECONDS,
    MEMBER_GRACE,
    MEMBER_COST,
    MEMBER_TEXT,
    MEMBER_POLICY
} member_kind;
typedef enum member_group { GROUP_NONE, GROUP_VALIDATION, GROUP_ASSESSMENT } member_group;

typedef struct member {
    const char *name; /* in JSON, within its group */
    member_group group;
    member_kind kind;
    size_t offset;
} member;

#define AT(field) offsetof(epg_config, field)
static const member members[] = {
    {"split", GROUP_NONE, MEMBER_TEXT, AT(split)},
    {"episode_budget", GROUP_NONE, MEMBER_COUNT, AT(episode_budget)},
    {"max_submissions", GROUP_NONE, MEMBER_COUNT, AT(max_submissions)},
    {"episode_pool_size", GROUP_NONE, MEMBER_COUNT, AT(episode_pool_size)},
    {"max_episodes_per_submission", GROUP_NONE, MEMBER_CAP, AT(max_episodes_per_submission)},
    {"finish_budget_policy", GROUP_NONE, MEMBER_POLICY, AT(finish_budget_policy)},
    {"bulk_feedback_retention_bytes", GROUP_NONE, MEMBER_COUNT, AT(bulk_feedback_retention_bytes)},
    {"split", GROUP_VALIDATION, MEMBER_TEXT, AT(validation_split)},
    {"episodes_per_candidate", GROUP_VALIDATION, MEMBER_COUNT, AT(episodes_per_candidate)},
    {"max_candidates", GROUP_VALIDATION, MEMBER_COUNT, AT(max_candidates)},
    {"split", GROUP_ASSESSMENT, MEMBER_TEXT, AT(assessment_split)},
    {"episodes", GROUP_ASSESSMENT, MEMBER_COUNT, AT(assessment_episodes)},
    {"seed", GROUP_NONE, MEMBER_SEED, AT(seed)},
    {"episode_timeout_seconds", GROUP_NONE, MEMBER_SECONDS, AT(episode_timeout_seconds)},
    {"agent_timeout_seconds", GROUP_NONE, MEMBER_SECONDS, AT(agent_timeout_seconds)},
    {"agent_grace_seconds", GROUP_NONE, MEMBER_GRACE, AT(agent_grace_seconds)},
    {"agent_idle_seconds", GROUP_NONE, MEMBER_GRACE, AT(agent_idle_seconds)},
    {"agent_start_retries", GROUP_NONE, MEMBER_CAP, AT(agent_start_retries)},
    {"max_cost", GROUP_NONE, MEMBER_COST, AT(max_cost)},
    {"max_tokens", GROUP_NONE, MEMBER_CAP, AT(max_tokens)},
};

#define VALUE(flag, word, heading, text)                                                                               \
    {                                                                                                                  \
        .name = (flag), .kind = EPG_OPTION_VALUE, .value_name = (word), .group = (heading), .help = (text)             \
    }
#define BUDGET "Budget"
#define MEASUREMENT "Hidden Validation and held-out Assessment"
const epg_option epg_config_options[] = {
    VALUE("split", "NAME", BUDGET, "split that the training Episodes are drawn from (default train)"),
    VALUE("episode-budget", "N", BUDGET, "Episodes that the Agent may spend in all (default 1000)"),
    VALUE("max-submissions", "N", BUDGET, "submissions that the Agent may make (default: the budget)"),
    VALUE("episode-pool-size", "N", BUDGET, "distinct training Episodes (default: the budget)"),
    VALUE("max-episodes-per-submission", "N", BUDGET, "most Episodes in one submission (no cap)"),
    VALUE("finish-budget-policy", "POLICY", BUDGET,
          "allow_early, or require_budget_exhaustion: finish only when the budget is spent (default allow_early)"),
    VALUE("bulk-retention-bytes", "N", "How to evaluate",
          "bulk artifacts kept, in both copies together (default 1 GiB)"),
    VALUE("validation-split", "NAME", MEASUREMENT, "split for Validation (default validation)"),
    VALUE("validation-episodes", "N", MEASUREMENT, "validate each candidate on N Episodes (no Validation)"),
    VALUE("max-candidates", "N", MEASUREMENT, "submissions that finish may name (default 3 with Validation, else 1)"),
    VALUE("assessment-split", "NAME", MEASUREMENT, "split for Assessment (default test)"),
    VALUE("assessment-episodes", "N", MEASUREMENT, "assess the selected Program on N Episodes (no Assessment)"),
    VALUE("seed", "N", "What to run", "seed of the Run, 0 to 2^64-1 (default 0)"),
    VALUE("episode-timeout", "SECONDS", "How to evaluate", "time that the Policy may take in one Episode (default 30)"),
    VALUE("agent-timeout", "SECONDS", BUDGET, "time that the Agent may take (default 3600)"),
    VALUE("agent-grace", "SECONDS", BUDGET, "time for the Agent to end its turn after finish (default 30)"),
    VALUE("agent-idle", "SECONDS", BUDGET, "end an Agent that does nothing for so long (no limit)"),
    VALUE("agent-start-retries", "N", BUDGET,
          "start the Agent again when its provider failed before anything was spent (default 0)"),
    VALUE("max-cost", "USD", BUDGET, "end the Agent when it reports a higher cost (no limit)"),
    VALUE("max-tokens", "N", BUDGET, "end the Agent when it reports more tokens (no limit)"),
    {.name = "no-validation",
     .kind = EPG_OPTION_FLAG,
     .group = MEASUREMENT,
     .help = "turn off what --config or --like turned on"},
    {.name = "no-assessment",
     .kind = EPG_OPTION_FLAG,
     .group = MEASUREMENT,
     .help = "turn off what --config or --like turned on"},
    EPG_OPTIONS_END,
};
_Static_assert(EPG_COUNT(epg_config_options) == EPG_COUNT(members) + 2 + 1, "a flag a member, two switches, the end");

/* What a count can be at most: sums and products of two stay far from the end of 64 bits. */
static const uint64_t count_max = 1000000000;
static const uint64_t bytes_max = INT64_MAX;

static uint64_t *u64_at(epg_config *config, const member *m)
{
    return (uint64_t *)(void *)((char *)config + m->offset);
}

static uint64_t most(const member *m)
{
    return m->offset == AT(bulk_feedback_retention_bytes) ? bytes_max : count_max;
}

const char *epg_finish_policy_name(epg_finish_policy policy)
{
    return policy == EPG_FINISH_REQUIRE_EXHAUSTION ? "require_budget_exhaustion" : "allow_early";
}

void epg_config_init(epg_config *config)
{
    *config = (epg_config){
        .split = epg_strdup("train"),
        .episode_budget = 1000,
        .bulk_feedback_retention_bytes = UINT64_C(1) << 30,
        .validation_split = epg_strdup("validation"),
        .assessment_split = epg_strdup("test"),
        .episode_timeout_seconds = 30,
        .agent_timeout_seconds = 3600,
        .agent_grace_seconds = 30,
    };
}

void epg_config_free(epg_config *config)
{
    free(config->split);
    free(config->validation_split);
    free(config->assessment_split);
    *config = (epg_config){0};
}

void epg_config_copy(const epg_config *from, epg_config *out)
{
    *out = *from;
    out->split = epg_strdup(from->split);
    out->validation_split = epg_strdup(from->validation_split);
    out->assessment_split = epg_strdup(from->assessment_split);
}

/* --- Setting one member. `where` names it for the user: "config.json: \"seed\"", "--seed". --- */

static epg_code set_text(epg_config *config, const member *m, const char *text, const char *where, epg_error *err)
{
    size_t size = strlen(text);
    if (size == 0 || size > 128 || !epg_utf8_valid(text, size) || strpbrk(text, "\r\n") != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "%s takes a name of 1 to 128 bytes in one line", where);
    }
    char **place = (char **)(void *)((char *)config + m->offset);
    char *copy = epg_strdup(text);
    free(*place);
    *place = copy;
    return EPG_OK;
}

static epg_code set_policy(epg_config *config, const char *text, const char *where, epg_error *err)
{
    for (int policy = EPG_FINISH_ALLOW_EARLY; policy <= EPG_FINISH_REQUIRE_EXHAUSTION; policy++) {
        if (strcmp(text, epg_finish_policy_name((epg_finish_policy)policy)) == 0) {
            config->finish_budget_policy = (epg_finish_policy)policy;
            return EPG_OK;
        }
    }
    return epg_fail(err, EPG_ERR_USAGE, "%s takes allow_early or require_budget_exhaustion", where);
}

static epg_code set_seconds(epg_config *config, const member *m, double value, const char *where, epg_error *err)
{
    bool zero_fits = m->kind != MEMBER_SECONDS;
    if (m->kind == MEMBER_COST && (!isfinite(value) || value < 0)) {
        return epg_fail(err, EPG_ERR_USAGE, "%s takes a non-negative amount in US dollars", where);
    }
    if (!isfinite(value) || value < 0 || (value <= 0 && !zero_fits)) {
        return epg_fail(err, EPG_ERR_USAGE, "%s takes a %s finite number of seconds", where,
                        zero_fits ? "non-negative" : "positive");
    }
    *(double *)(void *)((char *)config + m->offset) = value;
    return EPG_OK;
}

static epg_code refuse_count(const member *m, const char *where, epg_error *err)
{
    if (m->kind == MEMBER_SEED) {
        return epg_fail(err, EPG_ERR_USAGE, "%s takes a whole number from 0 to 18446744073709551615", where);
    }
    return epg_fail(err, EPG_ERR_USAGE, "%s takes a whole number from 1 to %llu", where, (unsigned long long)most(m));
}

static epg_code set_count(epg_config *config, const member *m, uint64_t value, const char *where, epg_error *err)
{
    if (m->kind != MEMBER_SEED && (value == 0 || value > most(m))) {
        return refuse_count(m, where, err);
    }
    *u64_at(config, m) = value;
    return EPG_OK;
}

/* Naming how many Episodes a phase has is what turns it on. */
static void switch_on(epg_config *config, const member *m)
{
    config->validate = config->validate || m->offset == AT(episodes_per_candidate);
    config->assess = config->assess || m->offset == AT(assessment_episodes);
}

/* --- Layers --- */

static epg_code member_from_json(epg_config *config, const member *m, const json_t *value, const char *where,
                                 epg_error *err)
{
    uint64_t number = 0;
    switch (m->kind) {
    case MEMBER_CAP:
        if (json_is_null(value)) {
            *u64_at(config, m) = 0;
            return EPG_OK;
        }
        __attribute__((fallthrough));
    case MEMBER_COUNT:
    case MEMBER_SEED:
        return epg_json_is_u64(value, &number) ? set_count(config, m, number, where, err) : refuse_count(m, where, err);
    case MEMBER_SECONDS:
    case MEMBER_GRACE:
    case MEMBER_COST:
        return set_seconds(config, m, json_is_number(value) ? json_number_value(value) : (double)NAN, where, err);
    case MEMBER_TEXT:
        return set_text(config, m, json_is_string(value) ? json_string_value(value) : "", where, err);
    case MEMBER_POLICY:
        return set_policy(config, json_is_string(value) ? json_string_value(value) : "", where, err);
    }
    return EPG_OK;
}

static const member *find_member(member_group group, const char *name)
{
    for (size_t i = 0; i < EPG_COUNT(members); i++) {
        if (members[i].group == group && strcmp(members[i].name, name) == 0) {
            return &members[i];
        }
    }
    return NULL;
}

static epg_code unknown_member(member_group group, const char *name, const char *what, epg_error *err)
{
    const char *known[EPG_COUNT(members) + 2];
    size_t count = 0;
    for (size_t i = 0; i < EPG_COUNT(members); i++) {
        if (members[i].group == group) {
            known[count++] = members[i].name;
        }
    }
    if (group == GROUP_NONE) {
        known[count++] = "validation";
        known[count++] = "assessment";
    }
    const char *nearest = epg_nearest_word(name, known, count);
    EPG_AUTO_FREE char *shown = epg_printable(name, strlen(name));
    return epg_fail(err, EPG_ERR_USAGE, "%s: unknown member \"%s\"%s%s%s", what, shown,
                    nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                    nearest != NULL ? "\"?" : "");
}

static epg_code group_from_json(epg_config *config, member_group group, const json_t *object, const char *what,
                                epg_error *err);

static epg_code phase_from_json(epg_config *config, member_group group, const json_t *value, const char *name,
                                const char *what, epg_error *err)
{
    bool on = json_is_object(value);
    if (!on && !json_is_null(value)) {
        return epg_fail(err, EPG_ERR_USAGE, "%s: \"%s\" takes an object or null", what, name);
    }
    *(group == GROUP_VALIDATION ? &config->validate : &config->assess) = on;
    EPG_AUTO_FREE char *inside = epg_format("%s: %s", what, name);
    return on ? group_from_json(config, group, value, inside, err) : EPG_OK;
}

static epg_code group_from_json(epg_config *config, member_group group, const json_t *object, const char *what,
                                epg_error *err)
{
    void *at = json_object_iter((json_t *)(uintptr_t)object);
    for (; at != NULL; at = json_object_iter_next((json_t *)(uintptr_t)object, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        const member *m = find_member(group, name);
        if (m != NULL) {
            EPG_AUTO_FREE char *where = epg_format("%s: \"%s\"", what, name);
            EPG_TRY(member_from_json(config, m, value, where, err));
        } else if (group == GROUP_NONE && strcmp(name, "validation") == 0) {
            EPG_TRY(phase_from_json(config, GROUP_VALIDATION, value, name, what, err));
        } else if (group == GROUP_NONE && strcmp(name, "assessment") == 0) {
            EPG_TRY(phase_from_json(config, GROUP_ASSESSMENT, value, name, what, err));
        } else if (group == GROUP_NONE && strcmp(name, "schema") == 0) {
            if (!json_is_string(value) || strcmp(json_string_value(value), EPG_CONFIG_SCHEMA) != 0) {
                return epg_fail(err, EPG_ERR_USAGE, "%s: \"schema\" must be \"%s\"", what, EPG_CONFIG_SCHEMA);
            }
        } else {
            return unknown_member(group, name, what, err);
        }
    }
    return EPG_OK;
}

epg_code epg_config_from_json(epg_config *config, const json_t *object, const char *what, epg_error *err)
{
    if (!json_is_object(object)) {
        return epg_fail(err, EPG_ERR_USAGE, "%s: a config is a JSON object", what);
    }
    epg_config layered;
    epg_config_copy(config, &layered);
    epg_code code = group_from_json(&layered, GROUP_NONE, object, what, err);
    if (code != EPG_OK) {
        epg_config_free(&layered);
        return code;
    }
    epg_config_free(config);
    *config = layered;
    return EPG_OK;
}

static epg_code read_text(epg_config *config, const member *m, const char *text, const char *where, epg_error *err)
{
    uint64_t number = 0;
    double seconds = NAN;
    switch (m->kind) {
    case MEMBER_COUNT:
    case MEMBER_CAP:
    case MEMBER_SEED:
        return epg_parse_u64(text, strlen(text), UINT64_MAX, &number) ? set_count(config, m, number, where, err)
                                                                      : refuse_count(m, where, err);
    case MEMBER_SECONDS:
    case MEMBER_GRACE:
    case MEMBER_COST:
        return set_seconds(config, m, epg_parse_double(text, &seconds) ? seconds : (double)NAN, where, err);
    case MEMBER_TEXT:
        return set_text(config, m, text, where, err);
    case MEMBER_POLICY:
        return set_policy(config, text, where, err);
    }
    return EPG_OK;
}

static epg_code member_from_text(epg_config *config, const member *m, const char *text, const char *where,
                                 epg_error *err)
{
    epg_error why = {.text = ""};
    epg_code code = read_text(config, m, text, where, &why);
    if (code != EPG_OK) {
        EPG_AUTO_FREE char *shown = epg_printable(text, strnlen(text, 100));
        return epg_fail(err, code, "%s, not \"%s\"", why.text, shown);
    }
    return EPG_OK;
}

epg_code epg_config_from_options(epg_config *config, const epg_options *options, epg_error *err)
{
    for (size_t i = 0; i < EPG_COUNT(members); i++) {
        const epg_option *option = epg_option_find(options, epg_config_options[i].name);
        if (option->given) {
            EPG_AUTO_FREE char *where = epg_format("--%s", option->name);
            EPG_TRY(member_from_text(config, &members[i], option->value, where, err));
            switch_on(config, &members[i]);
        }
    }
    if (epg_option_find(options, "no-validation")->given) {
        if (epg_option_find(options, "validation-episodes")->given) {
            return epg_fail(err, EPG_ERR_USAGE, "--no-validation and --validation-episodes exclude each other");
        }
        config->validate = false;
    }
    if (epg_option_find(options, "no-assessment")->given) {
        if (epg_option_find(options, "assessment-episodes")->given) {
            return epg_fail(err, EPG_ERR_USAGE, "--no-assessment and --assessment-episodes exclude each other");
        }
        config->assess = false;
    }
    return EPG_OK;
}

/* --- Rules --- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t epg_config_submission_capacity(const epg_config *config)
{
    uint64_t capacity = least(config->episode_pool_size, EPG_SUBMIT_INDICES_MAX);
    return config->max_episodes_per_submission == 0 ? capacity : least(capacity, config->max_episodes_per_submission);
}

static epg_code check_phases(epg_config *config, epg_error *err)
{
    if (config->validate && config->episodes_per_candidate == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "Validation needs episodes_per_candidate (--validation-episodes N)");
    }
    if (config->validate && config->max_candidates > config->max_submissions) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "max_candidates (%llu) is over max_submissions (%llu): lower --max-candidates",
                        (unsigned long long)config->max_candidates, (unsigned long long)config->max_submissions);
    }
    if (!config->validate && config->max_candidates > 1) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "max_candidates (%llu) needs Validation to choose among them: add --validation-episodes N",
                        (unsigned long long)config->max_candidates);
    }
    if (config->assess && config->assessment_episodes == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "Assessment needs its number of episodes (--assessment-episodes N)");
    }
    return EPG_OK;
}

static epg_code check_budget(const epg_config *config, epg_error *err)
{
    uint64_t cap = config->max_episodes_per_submission;
    if (cap > config->episode_budget) {
        return epg_fail(
            err, EPG_ERR_USAGE,
            "max_episodes_per_submission (%llu) is over episode_budget (%llu): lower one or raise the other",
            (unsigned long long)cap, (unsigned long long)config->episode_budget);
    }
    if (cap > config->episode_pool_size) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "max_episodes_per_submission (%llu) is over episode_pool_size (%llu): a submission names an "
                        "Episode of the pool once",
                        (unsigned long long)cap, (unsigned long long)config->episode_pool_size);
    }
    uint64_t capacity = epg_config_submission_capacity(config);
    if (config->finish_budget_policy == EPG_FINISH_REQUIRE_EXHAUSTION &&
        config->episode_budget > config->max_submissions * capacity) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "require_budget_exhaustion: %llu submissions of at most %llu Episodes can't spend a budget of "
                        "%llu: raise --max-submissions or the cap, or lower --episode-budget",
                        (unsigned long long)config->max_submissions, (unsigned long long)capacity,
                        (unsigned long long)config->episode_budget);
    }
    return EPG_OK;
}

epg_code epg_config_resolve(epg_config *config, epg_error *err)
{
    if (config->max_submissions == 0) {
        config->max_submissions = config->episode_budget;
    }
    if (config->episode_pool_size == 0) {
        config->episode_pool_size = config->episode_budget;
    }
    if (config->max_candidates == 0) {
        config->max_candidates = config->validate ? least(3, config->max_submissions) : 1;
    }
    EPG_TRY(check_budget(config, err));
    return check_phases(config, err);
}

/* --- Writing --- */

/* Limits that were not asked for are not written: the record then has the shape that its other readers know. */
static void put_limit(epg_json_writer *writer, const char *key, double value)
{
    if (value > 0) {
        epg_json_put_double(writer, key, value);
    }
}

static void put_count_limit(epg_json_writer *writer, const char *key, uint64_t value)
{
    if (value > 0) {
        epg_json_put_u64(writer, key, value);
    }
}

void epg_config_to_json(const epg_config *config, epg_json_writer *writer, const char *key)
{
    epg_json_object(writer, key);
    epg_json_put_double(writer, "agent_grace_seconds", config->agent_grace_seconds);
    put_limit(writer, "agent_idle_seconds", config->agent_idle_seconds);
    put_count_limit(writer, "agent_start_retries", config->agent_start_retries);
    epg_json_put_double(writer, "agent_timeout_seconds", config->agent_timeout_seconds);
    if (config->assess) {
        epg_json_object(writer, "assessment");
        epg_json_put_u64(writer, "episodes", config->assessment_episodes);
        epg_json_put_text(writer, "split", config->assessment_split);
        epg_json_end(writer);
    } else {
        epg_json_put_null(writer, "assessment");
    }
    epg_json_put_u64(writer, "bulk_feedback_retention_bytes", config->bulk_feedback_retention_bytes);
    epg_json_put_u64(writer, "episode_budget", config->episode_budget);
    epg_json_put_u64(writer, "episode_pool_size", config->episode_pool_size);
    epg_json_put_double(writer, "episode_timeout_seconds", config->episode_timeout_seconds);
    epg_json_put_text(writer, "finish_budget_policy", epg_finish_policy_name(config->finish_budget_policy));
    put_limit(writer, "max_cost", config->max_cost);
    if (config->max_episodes_per_submission != 0) {
        epg_json_put_u64(writer, "max_episodes_per_submission", config->max_episodes_per_submission);
    } else {
        epg_json_put_null(writer, "max_episodes_per_submission");
    }
    epg_json_put_u64(writer, "max_submissions", config->max_submissions);
    put_count_limit(writer, "max_tokens", config->max_tokens);
    epg_json_put_u64(writer, "seed", config->seed);
    epg_json_put_text(writer, "split", config->split);
    if (config->validate) {
        epg_json_object(writer, "validation");
        epg_json_put_u64(writer, "episodes_per_candidate", config->episodes_per_candidate);
        epg_json_put_u64(writer, "max_candidates", config->max_candidates);
        epg_json_put_text(writer, "split", config->validation_split);
        epg_json_end(writer);
    } else {
        epg_json_put_null(writer, "validation");
    }
    epg_json_end(writer);
}

/* --- Seeds --- */

uint64_t epg_training_pool_seed(uint64_t run_seed)
{
    return epg_seed("evopolicygym/training-pool/v1", run_seed);
}

uint64_t epg_training_policy_seed(uint64_t run_seed, uint64_t pool_index)
{
    return epg_seed_indexed("evopolicygym/training-policy/v1", run_seed, pool_index);
}

uint64_t epg_validation_seed(uint64_t run_seed)
{
    return epg_seed("evopolicygym/validation-seed/v1", run_seed);
}

uint64_t epg_assessment_seed(uint64_t run_seed)
{
    return epg_seed("evopolicygym/assessment-seed/v1", run_seed);
}

uint64_t epg_policy_seed(uint64_t evaluation_seed, uint64_t index)
{
    return epg_seed_indexed("evopolicygym/policy-seed/v1", evaluation_seed, index);
}
