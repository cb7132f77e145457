/* SPDX-License-Identifier: MIT */
/* src/base/checked_test.c - arithmetic at the edges. */
#include "base/checked.h"

#include "engine/test.h"

/* Goal: a sum or product is given exactly where it fits.
 * Method: the last that fits and the first that does not. */
TEST(checked_add_and_mul_at_the_edge_say_so)
{
    size_t out = 7;

    EXPECT(pirn__checked_add(SIZE_MAX - 1, 1, &out));
    EXPECT_EQ(SIZE_MAX, out);
    EXPECT(!pirn__checked_add(SIZE_MAX, 1, &out));
    EXPECT(pirn__checked_mul(SIZE_MAX / 3, 3, &out));
    EXPECT_EQ(SIZE_MAX / 3 * 3, out);
    EXPECT(!pirn__checked_mul(SIZE_MAX / 3 + 1, 3, &out));
    EXPECT(pirn__checked_mul(0, SIZE_MAX, &out));
    EXPECT_EQ(0, out);
}

/* Goal: saturating arithmetic stops at the top.
 * Method: as above. */
TEST(saturating_beyond_the_top_stays_there)
{
    EXPECT_EQ(UINT64_MAX - 1, pirn__saturating_add(UINT64_MAX - 3, 2));
    EXPECT_EQ(UINT64_MAX, pirn__saturating_add(UINT64_MAX - 3, 4));
    EXPECT_EQ(UINT64_MAX, pirn__saturating_add(UINT64_MAX, UINT64_MAX));
    EXPECT_EQ(UINT64_MAX - 1, pirn__saturating_mul(UINT64_MAX / 2, 2));
    EXPECT_EQ(UINT64_MAX, pirn__saturating_mul(UINT64_MAX / 2, 3));
    EXPECT_EQ(0, pirn__saturating_mul(UINT64_MAX, 0));
}

/* Goal: rounding up gives the least multiple that is not below.
 * Method: every value around several multiples, by search. */
TEST(round_up_gives_least_multiple)
{
    for (size_t align = 1; align <= 64; align *= 2) {
        for (size_t value = 0; value < 200; value++) {
            size_t wanted = value;

            while (wanted % align != 0)
                wanted++;
            EXPECT_EQ(wanted, pirn__round_up(value, align));
        }
    }
}
