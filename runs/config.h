/* A Run's config: every number and name of CONTRACTS section 9, with defaults, rules and a JSON form.
 *
 * Life of a config: epg_config_init, then any number of layers on top of each other (a JSON file or a former Run's
 * record, then flags: what a layer gives replaces, what it leaves out stays), then epg_config_resolve, which fills
 * the defaults that depend on other members and checks every rule. Only a resolved config is used for a Run. */
#ifndef EPG_RUNS_CONFIG_H
#define EPG_RUNS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/options.h"

#define EPG_CONFIG_SCHEMA "evopolicygym/run-config/v1" /* optional member "schema" of a config file */

typedef enum epg_finish_policy { EPG_FINISH_ALLOW_EARLY, EPG_FINISH_REQUIRE_EXHAUSTION } epg_finish_policy;
const char *epg_finish_policy_name(epg_finish_policy policy); /* "allow_early", "require_budget_exhaustion" */

typedef struct epg_config {
    char *split;                          /* "train" */
    uint64_t episode_budget;              /* 1000 */
    uint64_t max_submissions;             /* 0 until resolved: the budget */
    uint64_t episode_pool_size;           /* 0 until resolved: the budget */
    uint64_t max_episodes_per_submission; /* 0: no cap */
    epg_finish_policy finish_budget_policy;
    uint64_t bulk_feedback_retention_bytes; /* 1 GiB */
    bool validate;
    char *validation_split;          /* "validation" */
    uint64_t episodes_per_candidate; /* must be given to validate */
    uint64_t max_candidates; /* 0 until resolved: 3, or max_submissions when that is less; without Validation 1 */
    bool assess;
    char *assessment_split;       /* "test" */
    uint64_t assessment_episodes; /* must be given to assess */
    uint64_t seed;
    double episode_timeout_seconds; /* 30 */
    double agent_timeout_seconds;   /* 3600 */
    double agent_idle_seconds;      /* 0: no limit; ours, as the next three */
    double max_cost;                /* US dollars that the Agent may report; 0: no limit */
    uint64_t max_tokens;            /* that the Agent may report, in and out; 0: no limit */
    uint64_t agent_start_retries;   /* new starts after a provider's failure while nothing was spent */
    double agent_grace_seconds;     /* 30: what an Agent gets to end its turn after finish; 0 is allowed; ours */
} epg_config;

void epg_config_init(epg_config *config);
void epg_config_free(epg_config *config);
void epg_config_copy(const epg_config *from, epg_config *out);

/* Lays the members of `object` over the config. The shape is the one that run.json records ("validation" and
 * "assessment" are objects or null; null turns them off). USAGE names `what` and the member: unknown, of another type,
 * out of range. The config is untouched on failure. */
epg_code epg_config_from_json(epg_config *config, const json_t *object, const char *what, epg_error *err);

/* Flags: a table for epg_options_add, and the laying of what was given over the config. */
extern const epg_option epg_config_options[];
epg_code epg_config_from_options(epg_config *config, const epg_options *options, epg_error *err);

/* Fills what depends on other members and checks every rule; USAGE, each rule with a message of its own. */
epg_code epg_config_resolve(epg_config *config, epg_error *err);

/* The JSON form of a resolved config under `key`: reads back through epg_config_from_json to an equal config. */
void epg_config_to_json(const epg_config *config, epg_json_writer *writer, const char *key);

/* The most Episodes that one submission can hold: the cap or the pool, at most EPG_SUBMIT_INDICES_MAX. */
uint64_t epg_config_submission_capacity(const epg_config *config);

enum { EPG_SUBMIT_INDICES_MAX = 2048 };

/* CONTRACTS section 5. */
uint64_t epg_training_pool_seed(uint64_t run_seed);
uint64_t epg_training_policy_seed(uint64_t run_seed, uint64_t pool_index);
uint64_t epg_validation_seed(uint64_t run_seed);
uint64_t epg_assessment_seed(uint64_t run_seed);
/* Policy seed of Episode `index` of an Evaluation with seed `evaluation_seed` (Validation, Assessment, eval). */
uint64_t epg_policy_seed(uint64_t evaluation_seed, uint64_t index);

#endif
