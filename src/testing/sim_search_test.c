/* SPDX-License-Identifier: MIT */
/* src/testing/sim_search_test.c - many seeds, and one of them again. */
#include "testing/sim_test.h"

#include <stdlib.h>

/* Goal: the text says how to repeat a run, and doing so repeats it.  Method: a
 * run that fails; then by the variables that it names. */
TEST(sim_finding_can_be_repeated)
{
    const pirn_sim_case scenario = {.program = object, .options = kind};
    pirn_sim_result found, again;
    char text[PIRN_SIM_TEXT_SIZE];
    char little[10];
    size_t len;

    EXPECT_EQ(PIRN_EFAILED, pirn_sim_search(&scenario, 20, 30, &found));
    EXPECT_EQ(1, found.runs);
    len = pirn_sim_format(&found, text, sizeof text);
    EXPECT_EQ(strlen(text), len);
    EXPECT(strstr(text, "seed 20: check failed (program): this is wrong") !=
           NULL);
    EXPECT(strstr(text, "PIRN_SIM_SEED=20") != NULL);
    EXPECT(strstr(text, "resets=none") != NULL);
    EXPECT_EQ(len, pirn_sim_format(&found, little, sizeof little));
    EXPECT_EQ(len, pirn_sim_format(&found, NULL, 0));
    EXPECT_STR_EQ("seed 20: ", little);
    EXPECT_EQ(0, pirn_sim_format(NULL, little, sizeof little));
    EXPECT_STR_EQ("", little);

    setenv("PIRN_SIM_SEED", "20", 1);
    EXPECT_EQ(PIRN_EFAILED, pirn_sim_search(&scenario, 1, 30, &again));
    unsetenv("PIRN_SIM_SEED");
    EXPECT_EQ(20, again.seed);
    EXPECT_EQ(found.hash, again.hash);
}
