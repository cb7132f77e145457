/* SPDX-License-Identifier: MIT */
/* tools/pirn/histogram_test.c - percentiles against the truth. */
#include "histogram.h"

#include "engine/test.h"

#include <stdlib.h>

static struct histogram *make(void)
{
    return calloc(1, sizeof(struct histogram));
}

/* Goal: an empty histogram answers, a single value is itself.
 * Method: ask before and after one value. */
TEST(histogram_of_none_and_one)
{
    struct histogram *histogram = make();

    REQUIRE(histogram != NULL);
    EXPECT_EQ(0, histogram_percentile(histogram, 50));
    EXPECT_EQ(0, histogram->max);
    histogram_add(histogram, 123456789);
    EXPECT_EQ(123456789, histogram->max);
    EXPECT_EQ(1, histogram->count);
    EXPECT_LE(histogram_percentile(histogram, 0), 123456789);
    EXPECT_LE(histogram_percentile(histogram, 100), 123456789);
    EXPECT_GE(histogram_percentile(histogram, 50), 123456789 / 100 * 99);
    free(histogram);
}

/* Goal: small values are exact.
 * Method: 1..200 once each; the percentiles are known. */
TEST(histogram_small_values_are_exact)
{
    struct histogram *histogram = make();

    REQUIRE(histogram != NULL);
    for (uint64_t i = 1; i <= 200; i++)
        histogram_add(histogram, i);
    EXPECT_EQ(1, histogram_percentile(histogram, 0));
    EXPECT_EQ(100, histogram_percentile(histogram, 50));
    EXPECT_EQ(180, histogram_percentile(histogram, 90));
    EXPECT_EQ(198, histogram_percentile(histogram, 99));
    EXPECT_EQ(200, histogram_percentile(histogram, 100));
    free(histogram);
}

/* Goal: no value is off by one per cent, at any size.
 * Method: one value alone below and one above each power of two and at random
 * places; the answer of a second, larger value must not clip it. */
TEST(histogram_error_is_below_one_per_cent)
{
    uint64_t state = test_seed() | 1;

    for (int bit = 0; bit < 63; bit++) {
        for (int i = 0; i < 20; i++) {
            struct histogram *histogram = make();
            REQUIRE(histogram != NULL);
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint64_t value =
                (UINT64_C(1) << bit) + (state >> (64 - bit - 1)) / 2;
            if (i == 0)
                value = (UINT64_C(1) << bit) - 1;

            histogram_add(histogram, value);
            histogram_add(histogram, UINT64_MAX);
            uint64_t answer = histogram_percentile(histogram, 50);
            uint64_t error = answer > value ? answer - value : value - answer;
            EXPECT_LE(error, value / 100);
            EXPECT_EQ(UINT64_MAX, histogram->max);
            free(histogram);
        }
    }
}

/* Goal: a merge is as if one histogram had seen all values.
 * Method: 1..100 in one and 101..200 in the other; the percentiles of both
 * together are known, and the one that was merged is as it was. */
TEST(histogram_merge_adds_all_values)
{
    struct histogram *into = make();
    struct histogram *from = make();

    REQUIRE(into != NULL && from != NULL);
    for (uint64_t i = 1; i <= 100; i++) {
        histogram_add(into, 100 + i);
        histogram_add(from, i);
    }
    histogram_merge(into, from);
    EXPECT_EQ(200, into->count);
    EXPECT_EQ(200, into->max);
    EXPECT_EQ(100, histogram_percentile(into, 50));
    EXPECT_EQ(198, histogram_percentile(into, 99));
    EXPECT_EQ(100, from->count);
    EXPECT_EQ(100, from->max);
    free(from);
    free(into);
}
