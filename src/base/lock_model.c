/* SPDX-License-Identifier: MIT */
/* src/base/lock_model.c - the lock itself under every interleaving.
 *
 * Elsewhere in the model build a lock is one operation of the explorer; here it
 * is the algorithm of lock.c, over the explorer's futex.
 */
#include "base/lock.h"

#include "engine/explore.h"
#include "sys/sys.h"

static pirn_lock lock;
static PIRN_SHARED(int) count; /* under the lock */

static void wait_on(uint32_t *word, uint32_t expected)
{
    (void)pirn__sys->futex_wait(word, expected, PIRN_NEVER);
}

static void wake_one(uint32_t *word)
{
    pirn__sys->futex_wake(word, 1);
}

static void increment(void *arg)
{
    (void)arg;
    pirn__futex_lock(&lock);
    pirn_cell_write(&count, pirn_cell_read(&count) + 1);
    pirn__futex_unlock(&lock);
}

static void increment_twice(void *arg)
{
    increment(arg);
    increment(arg);
}

static void begin(void)
{
    static const struct pirn__lock_ops ops = {wait_on, wake_one};

    (void)pirn__lock_set_ops(&ops);
    pirn__lock_init(&lock);
}

/* Goal: one holder at a time, each sees what the one before did, and nobody
 * sleeps for ever.
 * Method: three threads; the one that waits, the one that takes the lock as 2
 * although nobody waits, and a wake that meets nobody are all among the
 * schedules. */
MODEL(lock_three_threads_take_turns, .preemptions = 3)
{
    begin();
    explore_thread(increment, NULL);
    explore_thread(increment, NULL);
    explore_thread(increment, NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&count) == 3);
    EXPLORE_CHECK(lock.word_.v_ == 0);
}

/* Goal: the same when a lock is taken again at once. */
MODEL(lock_taken_again_at_once, .preemptions = 4)
{
    begin();
    explore_thread(increment_twice, NULL);
    explore_thread(increment_twice, NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&count) == 4);
    EXPLORE_CHECK(lock.word_.v_ == 0);
}
