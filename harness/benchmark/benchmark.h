/* A Benchmark: a spec, deterministic Episode plans, fresh Environments, and Feedback from records.
 *
 * One interface for every kind: built in (environments/), an external process (frames), a shared library. All values
 * cross it as canonical bytes (value/value.h), so nothing is encoded twice. A Benchmark runs in a worker, never in the
 * coordinator. Its faults are trusted faults: functions fail with EPG_ERR_BENCHMARK and a text that names the call and
 * why. One Benchmark serves one worker, one Environment at a time is enough. */
#ifndef EPG_BENCHMARK_BENCHMARK_H
#define EPG_BENCHMARK_BENCHMARK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "programs/program.h"
#include "value/outcome.h"
#include "value/value.h"

typedef enum epg_direction { EPG_MAXIMIZE, EPG_MINIMIZE } epg_direction;
const char *epg_direction_name(epg_direction direction); /* "maximize", "minimize" */
/* True when `a` is strictly better than `b`. */
bool epg_direction_better(epg_direction direction, double a, double b);

/* CONTRACTS section 6. Owned texts and canonical bytes. */
typedef struct epg_spec {
    char *id;
    char *description;
    epg_buffer observation_space;
    epg_buffer action_space;
    epg_buffer metadata;               /* a map */
    epg_buffer environment_parameters; /* a map */
    char environment_digest[EPG_DIGEST_TEXT];
    uint64_t max_episode_steps; /* > 0 */
    char *primary_metric;
    epg_direction direction;
} epg_spec;
void epg_spec_free(epg_spec *spec);
void epg_spec_copy(const epg_spec *spec, epg_spec *out);
epg_code epg_spec_check(epg_spec *spec, epg_error *err); /* every rule of section 6; fills the digest; BENCHMARK */
void epg_spec_to_value(const epg_spec *spec, epg_buffer *out);
epg_code epg_spec_from_value(epg_span bytes, epg_spec *out, epg_error *err); /* checked; exactly the members above */
/* The public projection (task text, --json): id, description, spaces, metadata, parameters, digest, metric, ... */
void epg_spec_to_json(const epg_spec *spec, epg_json_writer *writer, const char *key);

typedef struct epg_episode_spec {
    uint64_t environment_seed;
    epg_buffer scenario; /* canonical; trusted; never shown to a Policy */
} epg_episode_spec;
void epg_episode_spec_free(epg_episode_spec *spec);

typedef struct epg_step {
    epg_buffer observation;
    double reward;
    bool terminated;
    bool truncated;
    epg_buffer metrics;   /* private to the Benchmark */
    bool invalid_action;  /* the Environment refused the Action; the rest is not set */
    char *invalid_reason; /* Host-only evidence; may be NULL */
} epg_step;
void epg_step_clear(epg_step *step); /* keeps the memory */
void epg_step_free(epg_step *step);
/* Every rule for what an Environment hands back, within the limits of a Policy's frame. BENCHMARK; texts say what. */
epg_code epg_observation_check(epg_span observation, epg_error *err);
epg_code epg_step_check(const epg_step *step, epg_error *err); /* an invalid Action's step is always right */

/* An Episode's record, read forward: what Feedback is made of. Spans are valid until the next call. */
typedef struct epg_transition {
    epg_span action;
    epg_span observation;
    epg_span metrics;
    double reward;
    bool terminated;
    bool truncated;
} epg_transition;

typedef struct epg_record_head {
    uint64_t environment_seed;
    epg_span scenario;
    uint64_t policy_seed;
    bool has_observation; /* false only when the Policy failed before reset was seen */
    epg_span initial_observation;
    epg_policy_failure failure;
    uint64_t steps;
    double reward; /* the sum; meaningless when failed */
} epg_record_head;

/* Records of one Evaluation in plan order. `next_record` moves to the next Episode (its head is valid until the next
 * call of it), `next_step` walks its transitions. Both set *have to false at the end. */
typedef struct epg_records {
    void *context;
    uint64_t count;
    epg_code (*next_record)(void *context, epg_record_head *head, bool *have, epg_error *err);
    epg_code (*next_step)(void *context, epg_transition *step, bool *have, epg_error *err);
} epg_records;

typedef struct epg_artifact {
    char *name; /* relative POSIX path */
    char *media_type;
    epg_buffer content;
    bool bulk; /* retention: bulk, else permanent */
} epg_artifact;

enum { EPG_ARTIFACTS_MAX = 1024, EPG_ARTIFACT_BYTES_MAX = 16 * 1024 * 1024 };

typedef struct epg_feedback {
    double score;
    epg_buffer content; /* canonical */
    epg_artifact *artifacts;
    size_t artifact_count;
} epg_feedback;
void epg_feedback_free(epg_feedback *feedback);
epg_artifact *epg_feedback_add(epg_feedback *feedback, const char *name, const char *media_type, bool bulk);
epg_code epg_feedback_check(const epg_feedback *feedback, epg_error *err); /* every rule of section 6; BENCHMARK */

typedef struct epg_benchmark epg_benchmark;
typedef struct epg_environment epg_environment;

typedef struct epg_benchmark_vtable {
    epg_code (*spec)(epg_benchmark *benchmark, epg_spec *out, epg_error *err);
    /* Exactly `count` specs into `out` (an array of zeroed items); deterministic; opens no Environment. */
    epg_code (*episodes)(epg_benchmark *benchmark, const char *split, uint64_t seed, uint64_t count,
                         epg_episode_spec *out, epg_error *err);
    epg_code (*open)(epg_benchmark *benchmark, const epg_episode_spec *episode, epg_environment **out, epg_error *err);
    /* Both replace what `observation` and `out` held, and keep its memory. */
    epg_code (*reset)(epg_environment *environment, epg_buffer *observation, epg_error *err);
    epg_code (*step)(epg_environment *environment, epg_span action, epg_step *out, epg_error *err);
    epg_code (*close)(epg_environment *environment, epg_error *err); /* always frees */
    epg_code (*feedback)(epg_benchmark *benchmark, const epg_records *records, epg_feedback *out, epg_error *err);
    void (*destroy)(epg_benchmark *benchmark);
    /* The child of ours that it runs in, which is its own affair with all below it; NULL or 0: there is none. */
    pid_t (*process)(const epg_benchmark *benchmark);
    /* A Program to begin with; NULL: it has none. */
    epg_code (*baseline)(epg_benchmark *benchmark, epg_program *out, epg_error *err);
} epg_benchmark_vtable;

/* Implementations put these first in their own structs. */
struct epg_benchmark {
    const epg_benchmark_vtable *vtable;
};
struct epg_environment {
    epg_benchmark *benchmark;
};

static inline epg_code epg_benchmark_spec(epg_benchmark *b, epg_spec *out, epg_error *err)
{
    return b->vtable->spec(b, out, err);
}
static inline void epg_benchmark_destroy(epg_benchmark *b)
{
    if (b != NULL) {
        b->vtable->destroy(b);
    }
}

/* --- The registry: from what the user writes to a Benchmark. --- */

/* `text` is NAME[?key=value&...] for a built-in one ("cartpole", "frozen-lake?map=8x8&slippery=false"), or
 * "cmd:...", "python:...", "lib:...". USAGE, with the nearest name, when it is unknown or a parameter is wrong.
 * Opening a built-in one touches nothing; an external one starts its process. */
typedef struct epg_benchmark_options {
    const char *python;    /* interpreter for python: Benchmarks; NULL: the default one */
    int64_t call_limit_ns; /* an external Benchmark's time limit per call */
    uint64_t memory_bytes; /* limit on the memory of an external Benchmark's process and what it starts; 0: none */
    struct epg_company *company; /* that an external Benchmark's process is a member of; NULL: none; not owned */
    const char *source_root;     /* directory that relative paths in `text` start from; NULL: working directory */
} epg_benchmark_options;
epg_code epg_benchmark_open(const char *text, const epg_benchmark_options *options, epg_benchmark **out,
                            epg_error *err);

typedef struct epg_builtin {
    const char *name;       /* "cartpole" */
    const char *summary;    /* one line */
    const char *parameters; /* what stands after '?', for help; NULL: none */
    /* `parameters`: "key=value&..." or NULL. USAGE when wrong. */
    epg_code (*open)(const char *parameters, epg_benchmark **out, epg_error *err);
} epg_builtin;
const epg_builtin *epg_builtin_benchmarks(size_t *count); /* environments/builtin.c fills it */
/* By its exact name; NULL when there is none. Those named "test/..." are for this project's own tests: they are found
 * here only with EPG_TEST_BENCHMARKS=1 in the environment, and never listed. */
const epg_builtin *epg_builtin_find(const char *name);

#endif
