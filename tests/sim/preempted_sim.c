/* SPDX-License-Identifier: MIT */
/* tests/sim/preempted_sim.c - a thread that loses its processor inside a function
 * of the library.
 *
 * Two threads count without a lock.  Between the look and the step of each there
 * is a call that asks the system for nothing, so that only a pause inside of it
 * can lose a count.  Built where there is the library that has such pauses.
 */
#include <errno.h>
#include <stdio.h>

#include "engine/sim.h"

enum { TRIES = 50, STEPS = 30 };

static uint32_t count;
static uint32_t ended;

static void count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < STEPS; i++) {
        uint32_t seen = count;

        sim_check(pirn_err_name(-EIO) != NULL, "a code has a name");
        count = seen + 1;
    }
    ended++;
}

static void story(void)
{
    count = 0;
    ended = 0;
    sim_preempt_often();
    sim_thread(count_up, NULL);
    sim_thread(count_up, NULL);
    /* Ends with them. */
    while (ended < 2)
        sim_block_ms(1);
    sim_check(count == 2 * STEPS, "no count is lost");
}

/* Goal: threads are preempted where they call nothing.
 * Method: run seeds until a count is lost, a few at most. */
TEST(preempted_thread_loses_a_count)
{
    const struct sim_options options = {.preemptions = 300};
    uint64_t seed = test_seed();
    int tries = 1;

    while (tries <= TRIES &&
           sim_run_apart(story, &options, seed + (uint64_t)tries).finding !=
               SIM_CHECK_FAILED)
        tries++;
    printf("sim: a lost count: found by seed %d\n", tries);
    EXPECT_LE(tries, TRIES);
}
