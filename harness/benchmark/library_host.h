/* The functions that a Benchmark in a shared library is given, and what its opaque types are. */
#ifndef EPG_BENCHMARK_LIBRARY_HOST_H
#define EPG_BENCHMARK_LIBRARY_HOST_H

#include "benchmark/benchmark.h"
#include <evopolicygym/benchmark.h>

struct evo_out {
    epg_buffer *buffer;
};

struct evo_error {
    char text[512];
};

struct evo_records {
    const epg_records *records;
    epg_code code; /* the first failure of reading them: our own fault, not the library's */
    epg_error err;
};

struct evo_feedback {
    epg_feedback *feedback;
    evo_out content;
    bool scored;
};

extern const evo_host epg_library_host;

static inline evo_value epg_library_value(epg_span span)
{
    return (evo_value){span.data, span.size};
}

#endif
