/* SPDX-License-Identifier: MIT */
/* src/sync/barrier_test.c - the barrier, polled by hand. */
#include <pirn/barrier.h>

#include <errno.h>
#include <string.h>

#include "engine/poller.h"
#include "sync/waitlist.h"

static poller comer(pirn_barrier_op *op, pirn_barrier *barrier)
{
    pirn_barrier_wait_init(op, barrier);
    return (poller){.fut = &op->future};
}

/* Goal: the last one is the leader, all go on, and again in the next round. */
TEST(barrier_last_one_leads_round_after_round)
{
    pirn_barrier barrier;
    pirn_barrier_op ops[3];
    poller p[3];

    EXPECT_EQ(0, pirn_barrier_init(&barrier, 3));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            p[i] = comer(&ops[i], &barrier);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p[0]));
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p[1]));
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p[0]));
        EXPECT_EQ(PIRN_READY, poller_poll(&p[2]));
        EXPECT_EQ(1, p[0].wakes);
        EXPECT_EQ(1, p[1].wakes);
        EXPECT_EQ(PIRN_READY, poller_poll(&p[0]));
        EXPECT_EQ(PIRN_READY, poller_poll(&p[1]));
        EXPECT(!ops[0].is_leader && !ops[1].is_leader && ops[2].is_leader);
        EXPECT_EQ(1, pirn_future_outcome(&ops[2].future));
        EXPECT_EQ(0, pirn_future_outcome(&ops[0].future));
    }
    pirn_barrier_deinit(&barrier);
}

/* Goal: the initialiser and the init make the same. */
TEST(barrier_initialiser_is_the_same_as_init)
{
    pirn_barrier by_init, by_macro = PIRN_BARRIER_INIT(3);

    memset(&by_init, 0xff, sizeof by_init);
    EXPECT_EQ(0, pirn_barrier_init(&by_init, 3));
    EXPECT_EQ(by_init.count_, by_macro.count_);
    EXPECT_EQ(by_init.arrived_, by_macro.arrived_);
    EXPECT_EQ(by_init.round_, by_macro.round_);
    EXPECT(pirn__waitlist_empty(&by_macro.waiters_));
}

/* Goal: who gives up has not come. */
TEST(barrier_who_gives_up_has_not_come)
{
    pirn_barrier barrier;
    pirn_barrier_op ops[3];
    poller p[3];

    EXPECT_EQ(0, pirn_barrier_init(&barrier, 2));
    for (int i = 0; i < 3; i++)
        p[i] = comer(&ops[i], &barrier);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p[0]));
    poller_drop(&p[0]);
    EXPECT_EQ(-ETIMEDOUT, pirn_barrier_wait(&barrier, PIRN_EXPIRED));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p[1]));
    EXPECT_EQ(PIRN_READY, poller_poll(&p[2]));
    poller_drop(&p[1]); /* after the round: changes nothing */
    EXPECT_EQ(-ETIMEDOUT, pirn_barrier_wait(&barrier, PIRN_EXPIRED));
    pirn_barrier_deinit(&barrier);
}

enum { CROWD = PIRN__WAKE_BATCH + 2 };

static pirn_barrier crowd_barrier;
static pirn_barrier_op crowd_ops[CROWD];
static poller crowd[CROWD];

static pirn_waker quitter_clone(const pirn_waker *self)
{
    return *self;
}

/* Woken first, it makes one give up that has not been woken yet. */
static void quitter_wake(pirn_waker self)
{
    (void)self;
    poller_drop(&crowd[CROWD - 1]);
}

static void quitter_drop(pirn_waker self)
{
    (void)self;
}

/* Goal: who gives up when its round is over does not count as one of the next.
 * Method: more wait than are woken at a time; the first wake drops the last. */
TEST(barrier_drop_while_the_round_ends)
{
    static const pirn_waker_ops ops = {
        .clone = quitter_clone, .wake = quitter_wake, .drop = quitter_drop};
    const pirn_waker quitter = {NULL, &ops};
    pirn_cx cx = pirn_cx_of_waker(&quitter);
    pirn_barrier_op first;

    EXPECT_EQ(0, pirn_barrier_init(&crowd_barrier, CROWD + 2));
    pirn_barrier_wait_init(&first, &crowd_barrier);
    EXPECT_EQ(PIRN_PENDING, pirn_future_poll(&first.future, &cx));
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = comer(&crowd_ops[i], &crowd_barrier);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&crowd[i]));
    }
    EXPECT_EQ(1, pirn_barrier_wait(&crowd_barrier, PIRN_EXPIRED));
    for (int i = 0; i < CROWD - 1; i++)
        EXPECT_EQ(PIRN_READY, poller_poll(&crowd[i]));
    EXPECT_EQ(PIRN_READY, pirn_future_poll(&first.future, &cx));
    EXPECT_EQ(0, crowd_barrier.arrived_);
    pirn_barrier_deinit(&crowd_barrier);
}

/* Goal: a barrier of one never waits, one of none cannot be. */
TEST(barrier_of_one_and_of_none)
{
    pirn_barrier barrier;

    EXPECT_EQ(-EINVAL, pirn_barrier_init(&barrier, 0));
    EXPECT_EQ(0, pirn_barrier_init(&barrier, 1));
    EXPECT_EQ(1, pirn_barrier_wait(&barrier, PIRN_NEVER));
    EXPECT_EQ(1, pirn_barrier_wait(&barrier, PIRN_NEVER));
    pirn_barrier_deinit(&barrier);
}

/* Goal: without budget it has not come. */
TEST(barrier_wait_spends_budget)
{
    struct pirn__turn turn = {.budget = 0};
    pirn_barrier barrier;
    pirn_barrier_op op;
    poller a;

    EXPECT_EQ(0, pirn_barrier_init(&barrier, 1));
    a = comer(&op, &barrier);
    a.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT(op.is_leader);
}

static void deinit_barrier(void *arg)
{
    pirn_barrier_deinit(arg);
}

/* Goal: a barrier at which somebody waits does not end; it says so who waits.
 */
TEST(barrier_deinit_with_waiter_aborts)
{
    char buf[64];
    pirn_text text = {buf, sizeof buf, 0};
    pirn_barrier barrier;
    pirn_barrier_op op;
    poller a;

    EXPECT_EQ(0, pirn_barrier_init(&barrier, 2));
    a = comer(&op, &barrier);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_DEATH(deinit_barrier, &barrier, "nobody waits");
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "barrier") != NULL);
    poller_drop(&a);
}
