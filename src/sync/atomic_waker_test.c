/* SPDX-License-Identifier: MIT */
/* src/sync/atomic_waker_test.c - one waker for a user's own future. */
#include <pirn/atomic_waker.h>

#include "engine/poller.h"

static void expect_registered(pirn_atomic_waker *slot, poller *p)
{
    pirn_waker waker = poller_waker(p);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    pirn_atomic_waker_register(slot, &cx);
    EXPECT_EQ(1, p->wakers);
}

/* Goal: a registered waker is woken once, and then forgotten. */
TEST(atomic_waker_wakes_once)
{
    pirn_atomic_waker slot = PIRN_ATOMIC_WAKER_INIT;
    poller a = {0};

    pirn_atomic_waker_wake(&slot);
    expect_registered(&slot, &a);
    pirn_atomic_waker_wake(&slot);
    pirn_atomic_waker_wake(&slot);
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(0, a.wakers);
    pirn_atomic_waker_deinit(&slot);
}

/* Goal: the same waker is cloned once, another one replaces it. */
TEST(atomic_waker_keeps_the_latest)
{
    pirn_atomic_waker slot;
    poller a = {0}, b = {0};

    pirn_atomic_waker_init(&slot);
    expect_registered(&slot, &a);
    expect_registered(&slot, &a);
    EXPECT_EQ(1, poller_clones(&a));
    expect_registered(&slot, &b);
    EXPECT_EQ(0, a.wakers);
    pirn_atomic_waker_wake(&slot);
    EXPECT_EQ(0, a.wakes);
    EXPECT_EQ(1, b.wakes);
    pirn_atomic_waker_deinit(&slot);
}

/* Goal: the end drops what is registered; a take moves it out. */
TEST(atomic_waker_deinit_drops_and_take_moves)
{
    pirn_atomic_waker slot = PIRN_ATOMIC_WAKER_INIT;
    poller a = {0};
    pirn_waker taken;

    expect_registered(&slot, &a);
    taken = pirn_atomic_waker_take(&slot);
    EXPECT_EQ(1, a.wakers);
    pirn_waker_wake(taken);
    EXPECT_EQ(1, a.wakes);
    expect_registered(&slot, &a);
    pirn_atomic_waker_deinit(&slot);
    EXPECT_EQ(0, a.wakers);
    EXPECT_EQ(1, a.wakes);
}

static pirn_atomic_waker watched;

static void expect_unlocked(poller *p)
{
    (void)p;
    EXPECT_EQ(0, watched.lock_.word_.v_);
}

/* Goal: no foreign code under the lock. */
TEST(atomic_waker_clones_without_the_lock)
{
    poller a = {.on_clone = expect_unlocked};

    pirn_atomic_waker_init(&watched);
    expect_registered(&watched, &a);
    pirn_atomic_waker_deinit(&watched);
}
