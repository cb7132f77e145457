/* SPDX-License-Identifier: MIT */
/* src/base/prng_test.c - small random numbers. */
#include "base/prng.h"

#include "engine/test.h"

/* Goal: a seed gives one sequence, and its neighbours others.
 * Method: the first numbers of a few seeds, also of the one that would start
 * the generator at 0, where it would stay. */
TEST(prng_sequence_follows_from_the_seed)
{
    static const uint64_t seeds[] = {0, 1, 2, UINT64_MAX - 1, UINT64_MAX};
    enum { SEEDS = sizeof seeds / sizeof seeds[0] };
    struct pirn__prng all[SEEDS];
    struct pirn__prng again[SEEDS];

    for (size_t i = 0; i < SEEDS; i++) {
        pirn__prng_seed(&all[i], seeds[i]);
        pirn__prng_seed(&again[i], seeds[i]);
    }
    for (int round = 0; round < 1000; round++) {
        uint64_t values[SEEDS];

        for (size_t i = 0; i < SEEDS; i++) {
            values[i] = pirn__prng_next(&all[i]);
            EXPECT_EQ(values[i], pirn__prng_next(&again[i]));
            EXPECT_NE(0, all[i].state);
            for (size_t j = 0; j < i; j++)
                EXPECT_NE(values[j], values[i]);
        }
    }
}

/* Goal: a bounded number stays below its bound and takes every value, about
 * equally often.
 * Method: a thousand draws for each value. */
TEST(prng_below_is_even)
{
    static const uint32_t limits[] = {1, 2, 3, 7, 64, 512};

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint32_t counts[512] = {0};
        struct pirn__prng prng;

        pirn__prng_seed(&prng, i);
        for (uint32_t n = 0; n < 1000 * limits[i]; n++) {
            uint32_t value = pirn__prng_below(&prng, limits[i]);

            REQUIRE(value < limits[i]);
            counts[value]++;
        }
        for (uint32_t value = 0; value < limits[i]; value++) {
            EXPECT_LE(800, counts[value]);
            EXPECT_LE(counts[value], 1200);
        }
    }
}

/* Goal: the largest bound works.
 * Method: all 32 bits turn up. */
TEST(prng_below_uses_all_bits)
{
    struct pirn__prng prng;
    uint32_t ones = 0;
    uint32_t zeros = 0;

    pirn__prng_seed(&prng, 42);
    for (int i = 0; i < 100; i++) {
        uint32_t value = pirn__prng_below(&prng, UINT32_MAX);

        ones |= value;
        zeros |= ~value;
    }
    EXPECT_EQ(UINT32_MAX, ones);
    EXPECT_EQ(UINT32_MAX, zeros);
}
