/* Benchmarks in shared libraries: "lib:PATH[?parameters]", the other side of include/evopolicygym/benchmark.h. */
#ifndef EPG_BENCHMARK_LIBRARY_H
#define EPG_BENCHMARK_LIBRARY_H

#include "benchmark/benchmark.h"

/* `text` is what stands after "lib:"; a relative path starts from `root` (NULL: the working directory). USAGE when the
 * library can't be loaded, is none of these or speaks another ABI; BENCHMARK when its own open fails. */
epg_code epg_library_open(const char *text, const char *root, epg_benchmark **out, epg_error *err);

#endif
