/* Typed parameters of a built-in Benchmark: what stands after '?' in "frozen-lake?map=8x8&slippery=false".
 *
 * A table names each parameter, its kind and where its value goes; what is not given keeps its default. Anything
 * unknown, given twice, of another type or out of range is USAGE with one line that says what would be right. */
#ifndef EPG_BENCHMARK_PARAMETERS_H
#define EPG_BENCHMARK_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum epg_parameter_kind {
    EPG_PARAMETER_BOOL,   /* true, false, 1, 0, yes, no -> bool */
    EPG_PARAMETER_REAL,   /* a finite number within [minimum, maximum] -> double */
    EPG_PARAMETER_COUNT,  /* a decimal integer within [minimum, maximum] -> uint64_t */
    EPG_PARAMETER_CHOICE, /* one of `choices` -> its index, as int */
} epg_parameter_kind;

typedef struct epg_parameter {
    const char *name;
    const char *alias; /* another spelling, or NULL */
    epg_parameter_kind kind;
    void *target;
    double minimum, maximum;
    const char *const *choices; /* ends with NULL */
} epg_parameter;

/* `text` is "key=value&..." or NULL; `benchmark` names it in errors. Targets are untouched on failure only as a whole
 * Benchmark is: the caller drops them. */
epg_code epg_parameters_parse(const char *benchmark, const char *text, const epg_parameter *table, size_t count,
                              epg_error *err);

#endif
