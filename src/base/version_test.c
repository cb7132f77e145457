/* SPDX-License-Identifier: MIT */
/* src/base/version_test.c - the version as text. */
#include <pirn/base.h>

#include <stdio.h>

#include "engine/test.h"

/* Goal: the text says the numbers of the header.
 * Method: print them the other way. */
TEST(version_says_the_three_numbers)
{
    char wanted[32];

    snprintf(wanted, sizeof wanted, "%d.%d.%d", PIRN_VERSION_MAJOR,
             PIRN_VERSION_MINOR, PIRN_VERSION_PATCH);
    EXPECT_STR_EQ(wanted, pirn_version());
}
