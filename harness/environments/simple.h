/* What the built-in Benchmarks share: everything but their dynamics.
 *
 * A kind is one table: how its parameters are read, what its spec says, and how its state is reset, moved and observed.
 * The rest is here: Episode seeds (CONTRACTS section 11), checking Actions strictly, the step limit, ends, and Feedback
 * (mean over all Episodes, a failed one counting as the worst return; diagnostics; a bounded trace.jsonl).
 *
 * An Environment's step leaves the name of its end ("pole_fell") in the step's private metrics, null before the end;
 * Feedback counts them. */
#ifndef EPG_ENVIRONMENTS_SIMPLE_H
#define EPG_ENVIRONMENTS_SIMPLE_H

#include "benchmark/benchmark.h"
#include "benchmark/parameters.h"
#include "environments/random.h"

/* A checked Action: `index` for kinds with counted Actions, `value` for those with a range. */
typedef struct epg_action {
    unsigned index;
    double value;
} epg_action;

typedef struct epg_outcome {
    double reward;
    bool terminated;
    const char *end; /* how it ended, when terminated: a lower_case name */
} epg_outcome;

typedef struct epg_simple_kind {
    const char *name; /* "frozen-lake": the registry's, and part of the domain of Episode seeds */
    const char *id;
    const char *primary_metric;
    unsigned action_count; /* ints 0 .. action_count - 1; 0: a float in [action_low, action_high] */
    double action_low, action_high;
    size_t parameters_size, state_size; /* of the kind's own structs; zeroed before use */

    /* Sets every parameter: its default, then what `text` ("key=value&...", may be NULL) says. NULL: no parameters. */
    epg_code (*configure)(void *parameters, const char *text, epg_error *err);
    /* Fills description, spaces, metadata, environment_parameters and max_episode_steps. */
    void (*describe)(const void *parameters, epg_spec *spec);
    double (*worst_return)(const void *parameters);
    void (*reset)(void *state, const void *parameters, epg_random *random);
    void (*step)(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out);
    void (*observe)(const void *state, const void *parameters, epg_buffer *out); /* canonical bytes */
} epg_simple_kind;

/* `kind` lives as long as the Benchmark. */
epg_code epg_simple_open(const epg_simple_kind *kind, const char *parameters, epg_benchmark **out, epg_error *err);

/* Appends the value of a JSON text that is written with ' for ", so that specs stay readable in C: integers become
 * ints, numbers with a point or an exponent floats. A fault in it is a fault of ours and aborts. */
void epg_simple_literal(epg_buffer *out, const char *json);
/* Adds a member behind another to such a text. */
void epg_simple_literal_number(epg_buffer *text, const char *key, double value);

/* Appends a list of float32 values, widened: an observation in one piece, for Environments that are stepped millions of
 * times a second. */
void epg_simple_put_float32s(epg_buffer *out, const double *values, size_t count);

/* A float32 value, widened: what Gymnasium's observations hold. */
static inline double epg_float32(double value)
{
    return (double)(float)value;
}

#endif
