/* SPDX-License-Identifier: MIT */
/* tests/regress/parker_wake.c - a thread that drives may give its runtime up as
 * soon as its wait is over, while whoever wakes it is still inside; and a wake
 * may come late, when the thread is long awake. */
#include <poll.h>
#include <sched.h>

#include "sched/runtime_test.h"
#include "sys/sys.h"
#include "task/home.h"
#include "task/local.h"

/* A home whose wake takes its time. */
struct slow_home {
    struct pirn__home home; /* first */
    tally entered;
    tally left;
    tally freed;
};

static struct slow_home *slow_of(struct pirn__home *home)
{
    return PIRN_CONTAINER_OF(home, struct slow_home, home);
}

static void wake_slowly(struct pirn__home *home)
{
    tally_up(&slow_of(home)->entered);
    for (int i = 0; i < 1000; i++)
        sched_yield();
    EXPECT_EQ(0, tally_of(&slow_of(home)->freed));
    tally_up(&slow_of(home)->left);
}

static void free_slow(struct pirn__home *home)
{
    EXPECT_EQ(1, tally_of(&slow_of(home)->left));
    tally_up(&slow_of(home)->freed);
}

static void unpark(void *arg, size_t index)
{
    (void)index;
    pirn__parker_unpark(arg);
}

/* Goal: a home outlives an unpark that is still inside it.
 * Method: the thread that drove it ends its drive and gives the home up while
 * the home's wake is being called. */
TEST(parker_unpark_keeps_the_home_it_wakes)
{
    static const struct pirn__home_ops ops = {.wake = wake_slowly,
                                              .free = free_slow};
    struct slow_home slow = {.home.ops = &ops};
    struct pirn__parker *parker = pirn__parker_of(pirn__local());
    struct crew crew;

    REQUIRE(parker != NULL);
    pirn__init(&slow.home.refs, 1);
    pirn__parker_reset(parker);
    EXPECT(pirn__parker_drive_begin(parker, &slow.home));
    crew_start(&crew, 1, unpark, parker);
    wait_for_tally(&slow.entered, 1);
    EXPECT(pirn__parker_drive_end(parker));
    pirn__parker_drive_over(parker);
    pirn__home_unref(&slow.home);
    crew_join(&crew);
    EXPECT_EQ(1, tally_of(&slow.left));
    EXPECT_EQ(1, tally_of(&slow.freed));
}

struct leaver {
    struct bell bell;
    tally stop;
};

static void ring_for_ever(void *arg, size_t index)
{
    struct leaver *leaver = arg;

    (void)index;
    while (tally_of(&leaver->stop) == 0) {
        bell_ring(&leaver->bell);
        /* Who has only one processor would wait long for the lock. */
        (void)sched_yield();
    }
}

static enum pirn_poll step_busy(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: the same with everything around it.
 * Method: four threads ring a bell without pause while runtimes come and go
 * under it; a busy task keeps the driver from sleeping, so that it does not
 * need the wake to go on. */
TEST(parker_wakers_do_not_touch_a_runtime_that_is_gone)
{
    size_t rounds = test_size(100, 1000, 30000);
    struct leaver leaver = {.stop = {0}};
    struct crew crew;

    bell_init(&leaver.bell);
    crew_start(&crew, 4, ring_for_ever, &leaver);
    for (size_t i = 0; i < rounds; i++) {
        pirn_runtime *rt = runtime_new();

        spawn_probe(rt, step_busy, NULL, NULL);
        EXPECT_EQ(0, bell_block_on(rt, &leaver.bell, PIRN_NEVER));
        EXPECT_EQ(1, runtime_end(rt).cancelled);
    }
    tally_up(&leaver.stop);
    crew_join(&crew);
}
