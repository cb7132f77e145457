/* SPDX-License-Identifier: MIT */
/* src/testing/sim_options_test.c - what a simulated world is like. */
#include "testing/sim_test.h"

#include <stdlib.h>

/* Goal: PIRN_SIM sets options by name, before what the program wants, and
 * PIRN_SIM_SEEDS says how many.  Method: set them; nonsense, too. */
TEST(sim_environment_sets_options)
{
    const pirn_sim_case scenario = {.program = end_at_once,
                                    .options = {.workers = 2}};
    pirn_sim_result result;

    setenv("PIRN_SIM", " clients=5 workers=3  resets=none late_us=77", 1);
    EXPECT_EQ(0, pirn_sim_run(&scenario, 1, &result));
    EXPECT_EQ(3, result.options.workers);
    EXPECT_EQ(0, result.options.resets);
    EXPECT_EQ(77, result.options.late_us);
    setenv("PIRN_SIM", "workers=many", 1);
    EXPECT_EQ(-EINVAL, pirn_sim_run(&scenario, 1, &result));
    setenv("PIRN_SIM", "workers=", 1);
    EXPECT_EQ(-EINVAL, pirn_sim_run(&scenario, 1, &result));
    setenv("PIRN_SIM", "workers=65", 1);
    EXPECT_EQ(-EINVAL, pirn_sim_run(&scenario, 1, &result));
    unsetenv("PIRN_SIM");

    setenv("PIRN_SIM_SEEDS", "4", 1);
    EXPECT_EQ(0, pirn_sim_search(&scenario, 1, 100, &result));
    EXPECT_EQ(4, result.runs);
    setenv("PIRN_SIM_SEEDS", "some", 1);
    EXPECT_EQ(-EINVAL, pirn_sim_search(&scenario, 1, 100, &result));
    unsetenv("PIRN_SIM_SEEDS");
    setenv("PIRN_SIM_SEED", "that one", 1);
    EXPECT_EQ(-EINVAL, pirn_sim_search(&scenario, 1, 100, &result));
    unsetenv("PIRN_SIM_SEED");
}

/* Goal: arguments that make no sense are refused.  Method: each once. */
TEST(sim_nonsense_is_refused)
{
    const pirn_sim_checker nameless = {.name = NULL};
    pirn_sim_case scenario = {.program = end_at_once};
    pirn_sim_result result;
    const pirn_sim_options wrong[] = {
        {.workers = 65},          {.computational = 2},
        {.latency_us = 10000001}, {.buffer = (1 << 24) + 1},
        {.resets = 10001},        {.refusals = 1001},
        {.spurious = 1001},       {.weather_ms = 1000001},
        {.preemptions = 1001},    {.late_us = 10000001},
        {.fault_ms = 10000001},   {.live_s = 1000001},
    };

    EXPECT_EQ(-EINVAL, pirn_sim_run(NULL, 1, &result));
    EXPECT_EQ(-EINVAL, pirn_sim_search(NULL, 1, 1, &result));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        scenario.options = wrong[i];
        EXPECT_EQ(-EINVAL, pirn_sim_run(&scenario, 1, &result));
    }
    scenario.options = (pirn_sim_options){0};
    scenario.checker_count = 1;
    EXPECT_EQ(-EINVAL, pirn_sim_run(&scenario, 1, &result));
    scenario.checkers = &nameless;
    EXPECT_EQ(-EINVAL, pirn_sim_run(&scenario, 1, &result));
    scenario.checker_count = 0;
    scenario.program = NULL;
    EXPECT_EQ(-EINVAL, pirn_sim_run(&scenario, 1, &result));
    scenario.program = end_at_once;
    EXPECT_EQ(0, pirn_sim_run(&scenario, 1, NULL));
    EXPECT_EQ(0, pirn_sim_search(&scenario, 1, 0, &result));
    EXPECT_EQ(0, result.runs);
}

/* Options at the ends of their ranges are a world, too. */
TEST(sim_extreme_worlds_work)
{
    const pirn_sim_options worlds[] = {
        {.workers = PIRN_SIM_NONE,
         .computational = PIRN_SIM_NONE,
         .latency_us = PIRN_SIM_NONE,
         .buffer = PIRN_SIM_NONE,
         .resets = PIRN_SIM_NONE,
         .refusals = PIRN_SIM_NONE,
         .spurious = PIRN_SIM_NONE,
         .weather_ms = PIRN_SIM_NONE,
         .preemptions = PIRN_SIM_NONE,
         .late_us = PIRN_SIM_NONE,
         .fault_ms = PIRN_SIM_NONE,
         .live_s = PIRN_SIM_NONE},
        {.workers = 64,
         .computational = 1,
         .resets = 10000,
         .refusals = 1000,
         .spurious = 999,
         .preemptions = 1000,
         .fault_ms = 5},
    };

    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        pirn_sim_result result = run_apart(conversation, NULL, worlds[i]);

        EXPECT_EQ(PIRN_SIM_CLEAN, result.finding);
    }
}
