/* SPDX-License-Identifier: MIT */
/* src/base/lock_test.c - the four-byte lock under contention. */
#include "base/lock.h"

#include <pthread.h>
#include <sched.h>

#include "engine/test.h"
#include "sys/sys.h"

struct shared {
    pirn_lock lock;
    uint64_t count; /* lock */
    size_t rounds;
};

static void *increment(void *arg)
{
    struct shared *shared = arg;

    for (size_t i = 0; i < shared->rounds; i++) {
        pirn__lock(&shared->lock);
        shared->count++;
        pirn__unlock(&shared->lock);
    }
    return NULL;
}

/* Goal: no increment under the lock is lost and nobody sleeps for ever.
 * Method: two threads, a million each; TSan looks on in its build. */
TEST(lock_contended_loses_nothing)
{
    struct shared shared = {.rounds = test_size(20000, 1000000, 10000000)};
    pthread_t other;

    /* The table brings the futex operations into this program. */
    REQUIRE(pirn__sys != NULL);
    pirn__lock_init(&shared.lock);
    REQUIRE(pthread_create(&other, NULL, increment, &shared) == 0);
    increment(&shared);
    pthread_join(other, NULL);
    EXPECT_EQ(2 * shared.rounds, shared.count);
    EXPECT_EQ(0, shared.lock.word_.v_);
}

static void *take_once(void *arg)
{
    struct shared *shared = arg;

    pirn__lock(&shared->lock);
    shared->count++;
    pirn__unlock(&shared->lock);
    return NULL;
}

/* Goal: a waiter that sleeps in the kernel is woken by the holder.
 * Method: hold the lock until the other thread has announced itself as a
 * waiter, which it does last before it sleeps, then let go. */
TEST(lock_held_puts_waiter_to_sleep_and_wakes_it)
{
    struct shared shared = {0};
    pthread_t other;

    REQUIRE(pirn__sys != NULL);
    pirn__lock(&shared.lock);
    REQUIRE(pthread_create(&other, NULL, take_once, &shared) == 0);
    /* relaxed: only the waiter's mark is of interest. */
    while (pirn__load(&shared.lock.word_, relaxed) != 2)
        sched_yield();
    EXPECT_EQ(0, shared.count);
    pirn__unlock(&shared.lock);
    pthread_join(other, NULL);
    EXPECT_EQ(1, shared.count);
}
