/* SPDX-License-Identifier: MIT */
/* src/testing/sim_thread_test.c - virtual threads of the program itself. */
#include "testing/sim_test.h"

#include "task/local.h"

static uint32_t sum;

static void add_badly(void *arg)
{
    uint32_t seen = sum;

    (void)arg;
    pirn_sim_pause("between", seen);
    sum = seen + 1;
}

static int race(void *arg)
{
    (void)arg;
    sum = 0;
    for (int i = 0; i < 2; i++)
        pirn_sim_check(pirn_sim_thread(add_badly, NULL) == 0,
                       "a thread starts");
    /* Ends: a look costs time. */
    for (int i = 0; i < 100 && sum < 2; i++)
        pirn_sim_block(1);
    pirn_sim_check(sum == 2, "both have counted");
    return 0;
}

/* Goal: a race of threads of the program is found.  Method: an update that is
 * lost if the other thread comes between; a few seeds. */
TEST(sim_race_of_threads_is_found)
{
    const pirn_sim_case scenario = {.program = race};
    pirn_sim_result result;

    EXPECT_EQ(PIRN_EFAILED, pirn_sim_search(&scenario, 1, 300, &result));
    EXPECT_STR_EQ("both have counted", result.text);
    EXPECT_LE(2, result.runs);
}

static void wait_a_bit(void *arg)
{
    (void)arg;
    pirn_sim_block(10);
}

static int start_many(void *arg)
{
    int rc = 0;
    int started = 0;

    (void)arg;
    EXPECT_EQ(-EINVAL, pirn_sim_thread(NULL, NULL));
    while (rc == 0 && started < 300) {
        rc = pirn_sim_thread(wait_a_bit, NULL);
        started += rc == 0;
    }
    EXPECT_EQ(-EAGAIN, rc);
    EXPECT_EQ(255, started);
    return test_failures() == 0 ? 0 : -EIO;
}

/* Goal: there is a bound on threads, and those that nobody waits for end before
 * the run does.  Method: start too many, which sleep. */
TEST(sim_threads_have_a_bound)
{
    pirn_sim_result result = run_apart(start_many, NULL, kind);

    EXPECT_EQ(PIRN_SIM_CLEAN, result.finding);
    EXPECT_LE(10000000, result.ns);
}

/* As if this fiber ran here. */
static void be_fiber(void *arg)
{
    struct pirn__local *local = pirn__local();

    local->fiber = arg;
    for (int i = 0; i < 20; i++)
        pirn_sim_pause("in the fiber", 0);
    local->fiber = NULL;
}

static int start_twins(void *arg)
{
    int fibers[2];

    for (int i = 0; i < 2; i++) {
        int rc = pirn_sim_thread(be_fiber, arg != NULL ? &fibers[i] : fibers);

        if (rc < 0)
            return rc;
    }
    pirn_sim_block(10);
    return 0;
}

/* Goal: a fiber that runs on two threads at once is found, two fibers are not.
 * Method: pretend; the threads are switched all the time. */
TEST(sim_fiber_on_two_threads_is_found)
{
    pirn_sim_options options = kind;
    pirn_sim_result result;

    options.preemptions = 500;
    result = run_apart(start_twins, NULL, options);
    EXPECT_EQ(PIRN_SIM_CHECK_FAILED, result.finding);
    EXPECT_STR_EQ("polls", result.checker);
    result = run_apart(start_twins, &options, options);
    EXPECT_EQ(PIRN_SIM_CLEAN, result.finding);
}
