/* SPDX-License-Identifier: MIT */
/* src/base/prng.h - small random numbers for choosing victims and orders.
 *
 * Not for secrets.  The generator is xorshift64* (S. Vigna, "An experimental
 * exploration of Marsaglia's xorshift generators, scrambled", 2016).
 */
#ifndef PIRN_BASE_PRNG_H
#define PIRN_BASE_PRNG_H

#include <pirn/base.h>

struct pirn__prng {
    uint64_t state; /* never 0 */
};

static inline void pirn__prng_seed(struct pirn__prng *prng, uint64_t seed)
{
    /* Spread neighbouring seeds; 0 would stay 0. */
    prng->state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
    if (prng->state == 0)
        prng->state = 1;
}

static inline uint64_t pirn__prng_next(struct pirn__prng *prng)
{
    prng->state ^= prng->state >> 12;
    prng->state ^= prng->state << 25;
    prng->state ^= prng->state >> 27;
    return prng->state * 0x2545f4914f6cdd1dULL;
}

/* A number below `limit` > 0. */
static inline uint32_t pirn__prng_below(struct pirn__prng *prng, uint32_t limit)
{
    return (uint32_t)((pirn__prng_next(prng) >> 32) * limit >> 32);
}

#endif /* PIRN_BASE_PRNG_H */
