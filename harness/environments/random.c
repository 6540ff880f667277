#include "environments/random.h"

__extension__ typedef unsigned __int128 u128;

static const uint64_t MULTIPLIER_HIGH = UINT64_C(2549297995355413924);
static const uint64_t MULTIPLIER_LOW = UINT64_C(4865540595714422341);

static u128 join(uint64_t high, uint64_t low)
{
    return ((u128)high << 64) | low;
}

static void advance(epg_random *random)
{
    u128 state = join(random->state_high, random->state_low) * join(MULTIPLIER_HIGH, MULTIPLIER_LOW) +
                 join(random->increment_high, random->increment_low);
    random->state_high = (uint64_t)(state >> 64);
    random->state_low = (uint64_t)state;
}

/* --- SeedSequence: a pool of four words mixed with the seed's words, then stretched to eight. --- */

static uint32_t hash_word(uint32_t value, uint32_t *constant, uint32_t multiplier)
{
    value ^= *constant;
    *constant *= multiplier;
    value *= *constant;
    return value ^ (value >> 16);
}

static uint32_t mix_words(uint32_t x, uint32_t y)
{
    uint32_t mixed = UINT32_C(0xca01f9dd) * x - UINT32_C(0x4973f715) * y;
    return mixed ^ (mixed >> 16);
}

static void seed_words(uint64_t seed, uint64_t out[4])
{
    const uint32_t words[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), 0, 0};
    uint32_t pool[4];
    uint32_t constant = UINT32_C(0x43b0d7e5);
    for (size_t i = 0; i < 4; i++) {
        pool[i] = hash_word(words[i], &constant, UINT32_C(0x931e8875));
    }
    for (size_t from = 0; from < 4; from++) {
        for (size_t to = 0; to < 4; to++) {
            if (from != to) {
                pool[to] = mix_words(pool[to], hash_word(pool[from], &constant, UINT32_C(0x931e8875)));
            }
        }
    }
    constant = UINT32_C(0x8b51f9dd);
    for (size_t i = 0; i < 4; i++) {
        uint64_t low = hash_word(pool[2 * i % 4], &constant, UINT32_C(0x58f38ded));
        uint64_t high = hash_word(pool[(2 * i + 1) % 4], &constant, UINT32_C(0x58f38ded));
        out[i] = high << 32 | low;
    }
}

void epg_random_seed(epg_random *random, uint64_t seed)
{
    uint64_t words[4];
    seed_words(seed, words);
    u128 increment = join(words[2], words[3]) << 1 | 1;
    *random = (epg_random){.increment_high = (uint64_t)(increment >> 64), .increment_low = (uint64_t)increment};
    advance(random);
    u128 state = join(random->state_high, random->state_low) + join(words[0], words[1]);
    random->state_high = (uint64_t)(state >> 64);
    random->state_low = (uint64_t)state;
    advance(random);
}

/* --- PCG64 (XSL-RR): both halves xored, rotated by the top six bits. --- */

uint64_t epg_random_u64(epg_random *random)
{
    advance(random);
    uint64_t value = random->state_high ^ random->state_low;
    unsigned turn = (unsigned)(random->state_high >> 58);
    return value >> turn | value << (-turn & 63);
}

static uint32_t random_u32(epg_random *random)
{
    if (random->has_spare) {
        random->has_spare = false;
        return random->spare;
    }
    uint64_t value = epg_random_u64(random);
    random->spare = (uint32_t)(value >> 32);
    random->has_spare = true;
    return (uint32_t)value;
}

double epg_random_double(epg_random *random)
{
    return (double)(epg_random_u64(random) >> 11) * 0x1p-53;
}

double epg_random_uniform(epg_random *random, double low, double high)
{
    return low + (high - low) * epg_random_double(random);
}

uint32_t epg_random_below(epg_random *random, uint32_t count)
{
    if (count == 1) {
        return 0; /* nothing is drawn */
    }
    /* Lemire's method: the high half of a product is fair once low halves under the threshold are drawn again. */
    uint64_t product = (uint64_t)random_u32(random) * count;
    if ((uint32_t)product < count) {
        uint32_t threshold = -count % count;
        while ((uint32_t)product < threshold) {
            product = (uint64_t)random_u32(random) * count;
        }
    }
    return (uint32_t)(product >> 32);
}

size_t epg_random_categorical(epg_random *random, const double *probabilities, size_t count)
{
    double draw = epg_random_double(random);
    double cumulative = 0.0;
    for (size_t i = 0; i < count; i++) {
        cumulative += probabilities[i];
        if (cumulative > draw) {
            return i;
        }
    }
    return 0;
}
