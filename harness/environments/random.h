/* numpy's random numbers: SeedSequence(seed) and PCG64, as Gymnasium draws them.
 *
 * For the same seed, the same calls in the same order give the same numbers as numpy.random.Generator does (numpy 1.17
 * and later). Not for secrets. */
#ifndef EPG_ENVIRONMENTS_RANDOM_H
#define EPG_ENVIRONMENTS_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct epg_random {
    uint64_t state_high, state_low; /* of a 128-bit linear congruential generator */
    uint64_t increment_high, increment_low;
    uint32_t spare; /* the upper half of a 64-bit draw that a 32-bit draw left over */
    bool has_spare;
} epg_random;

void epg_random_seed(epg_random *random, uint64_t seed);
uint64_t epg_random_u64(epg_random *random);
double epg_random_double(epg_random *random);                           /* random(): [0, 1) */
double epg_random_uniform(epg_random *random, double low, double high); /* uniform(low, high) */
/* integers(0, count) and choice(a sequence of count items), count in 1 .. 2^32 - 1. */
uint32_t epg_random_below(epg_random *random, uint32_t count);
/* Gymnasium's categorical_sample: the first index whose cumulative probability is above random(), else 0. */
size_t epg_random_categorical(epg_random *random, const double *probabilities, size_t count);

#endif
