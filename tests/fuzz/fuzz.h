/* Fuzz targets: tests/fuzz/fuzz_X.c is one, built twice: as a plain program (fuzz/standalone.c) that runs the files
 * that it is given or, without any, a fixed number of inputs drawn from a fixed seed, which is how ctest runs it; and,
 * where clang has libFuzzer and EPG_FUZZ is ON, as a fuzzer. */
#ifndef EPG_TESTS_FUZZ_H
#define EPG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* The target: aborts when it finds a fault. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Draws an input that is near to what the target expects; `state` is the whole of the randomness. */
void epg_fuzz_seed(uint64_t *state, epg_buffer *out);

#endif
