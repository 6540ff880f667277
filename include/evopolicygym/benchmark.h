/* A Benchmark of your own in C, as a shared library: --benchmark lib:./mine.so
 *
 *     cc -shared -fPIC -I INCLUDE mine.c -o mine.so
 *
 * Needs nothing but this header. The library exports one function, evopolicygym_benchmark_entry, which returns a table
 * of its functions. The Host calls them in a worker process of its own, one at a time; every worker loads the library
 * anew, opens the Benchmark once, and has one Environment at a time. Whatever goes wrong in the library is the
 * Benchmark's fault and ends the Evaluation with a message that names it; it is never a Policy's.
 *
 * The order of calls: open, spec, then episodes (plans) and Episodes in any order: make, reset, step ..., close; and
 * feedback, over the records of an Evaluation, perhaps in another worker than the one that played them. destroy is
 * last.
 *
 * Functions that can fail return 0, or anything else after host->fail(error, ...) said why. Pointers that the Host
 * passes are valid until the function returns. What `spec` and `step` point to (texts) must live until the next call.
 */
#ifndef EVOPOLICYGYM_BENCHMARK_H
#define EVOPOLICYGYM_BENCHMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes whenever anything below does. A library built for another one is refused. */
#define EVOPOLICYGYM_BENCHMARK_ABI 1

/* A value that crosses the Policy boundary: null, bool, int (-2^63 .. 2^64-1), float (finite), string (UTF-8), bytes,
 * tensor, list, tuple, map with string keys. Read it with the Host's functions. */
typedef struct evo_value {
    const unsigned char *data;
    size_t size;
} evo_value;

typedef struct evo_out evo_out;     /* where one value is written */
typedef struct evo_error evo_error; /* where a fault is told */
typedef struct evo_records evo_records;
typedef struct evo_feedback evo_feedback;

/* Walks a list, tuple or map. */
typedef struct evo_cursor {
    evo_value rest;
    uint64_t left;
    bool is_map;
} evo_cursor;

typedef struct evo_spec {
    const char *id;
    const char *description; /* all that an agent needs: ranges, units, meanings, ends */
    const char *primary_metric;
    bool minimize;              /* the score; else it is maximized */
    uint64_t max_episode_steps; /* > 0; the Environment itself must end an Episode within them */
    double failed_return;       /* what a failed Episode counts, when `feedback` is left to the Host */
    evo_out *observation_space; /* both must be written */
    evo_out *action_space;
    evo_out *environment_parameters; /* a map; empty when nothing is written */
    evo_out *metadata;               /* as that */
} evo_spec;

typedef struct evo_episode {
    uint64_t environment_seed;
    evo_out *scenario_out; /* in `episodes`: written by you (null when nothing is) */
    evo_value scenario;    /* in `make`: what was written */
} evo_episode;

typedef struct evo_step {
    evo_out *observation;
    evo_out *metrics; /* private to the Benchmark; null when nothing is written */
    double reward;    /* finite */
    bool terminated, truncated;
    bool invalid_action; /* the Action is refused: a Policy's failure; nothing else is looked at */
    const char *invalid_reason;
} evo_step;

typedef struct evo_record {
    uint64_t environment_seed;
    evo_value scenario;
    uint64_t policy_seed;
    bool has_observation;
    evo_value initial_observation;
    const char *failure; /* NULL; or "exception", "timeout", "invalid_action", "protocol_error" */
    uint64_t steps;
    double reward; /* the sum; meaningless when the Policy failed */
} evo_record;

typedef struct evo_transition {
    evo_value action, observation, metrics;
    double reward;
    bool terminated, truncated;
} evo_transition;

/* What the Host offers. */
typedef struct evo_host {
    uint32_t abi;

    /* Writing one value; lists, tuples and maps are followed by their items. Keys of a map in ascending byte order. */
    void (*null)(evo_out *out);
    void (*boolean)(evo_out *out, bool value);
    void (*integer)(evo_out *out, int64_t value);
    void (*number)(evo_out *out, double value);
    void (*text)(evo_out *out, const char *utf8);
    void (*bytes)(evo_out *out, const void *data, size_t size);
    void (*list)(evo_out *out, uint64_t count);
    void (*tuple)(evo_out *out, uint64_t count);
    void (*map)(evo_out *out, uint64_t count);
    void (*key)(evo_out *out, const char *utf8);
    void (*tensor)(evo_out *out, const char *dtype, const uint64_t *shape, size_t rank, const void *data, size_t size);
    void (*copy)(evo_out *out, evo_value value);
    /* A whole value from JSON, in which ' may stand for ": integers are ints, numbers with a point floats. */
    bool (*json)(evo_out *out, const char *text);

    /* Reading: false when it is another kind of value. Kinds: 'N' 'B' 'I' 'F' 'S' 'Y' 'T' 'L' 'U' 'M'. */
    char (*kind)(evo_value value);
    bool (*get_boolean)(evo_value value, bool *out);
    bool (*get_integer)(evo_value value, int64_t *out);
    bool (*get_number)(evo_value value, double *out);  /* a float, never an int */
    bool (*get_text)(evo_value value, evo_value *out); /* not NUL-terminated */
    bool (*get_bytes)(evo_value value, evo_value *out);
    bool (*enter)(evo_value value, evo_cursor *cursor);
    bool (*next)(evo_cursor *cursor, evo_value *key, evo_value *value); /* key: of maps; may be NULL */
    bool (*lookup)(evo_value map, const char *key, evo_value *value);

    /* Feedback: records in plan order, each with its transitions. False at the end. */
    uint64_t (*record_count)(evo_records *records);
    bool (*next_record)(evo_records *records, evo_record *out);
    bool (*next_transition)(evo_records *records, evo_transition *out);
    void (*score)(evo_feedback *feedback, double score); /* must be called */
    evo_out *(*content)(evo_feedback *feedback);         /* null when nothing is written */
    void (*artifact)(evo_feedback *feedback, const char *name, const char *media_type, bool bulk, const void *data,
                     size_t size);

    /* Says why a function fails; returns -1. */
    int (*fail)(evo_error *error, const char *format, ...);
} evo_host;

typedef struct evo_benchmark {
    uint32_t abi;            /* EVOPOLICYGYM_BENCHMARK_ABI */
    uint32_t size;           /* sizeof(evo_benchmark) */
    size_t environment_size; /* of your Environment's struct: the Host gives zeroed memory for each, and frees it */
    /* `parameters`: what the user wrote after '?', or NULL. open NULL: there are none, and `benchmark` is NULL. */
    int (*open)(const char *parameters, void **benchmark, evo_error *error);
    void (*destroy)(void *benchmark); /* NULL: nothing to free */
    int (*spec)(void *benchmark, evo_spec *out, evo_error *error);
    /* Exactly `count` Episodes, the same for the same arguments. NULL: the Host derives seeds for the splits train,
     * validation and test, with scenario null. */
    int (*episodes)(void *benchmark, const char *split, uint64_t seed, uint64_t count, evo_episode *out,
                    evo_error *error);
    int (*make)(void *benchmark, const evo_episode *episode, void *environment, evo_error *error);
    int (*reset)(void *environment, evo_out *observation, evo_error *error);
    int (*step)(void *environment, evo_value action, evo_step *out, evo_error *error);
    int (*close)(void *environment, evo_error *error); /* NULL: nothing to do; not called when `make` failed */
    /* NULL: the mean return, a failed Episode counting `failed_return`, with diagnostics and a trace. */
    int (*feedback)(void *benchmark, evo_records *records, evo_feedback *out, evo_error *error);
} evo_benchmark;

/* `host` lives as long as the library is loaded: keep it. */
typedef const evo_benchmark *evo_benchmark_entry(const evo_host *host);
#ifdef __cplusplus
extern "C" evo_benchmark_entry evopolicygym_benchmark_entry;
#else
evo_benchmark_entry evopolicygym_benchmark_entry;
#endif

#endif
