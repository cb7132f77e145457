/* SPDX-License-Identifier: MIT */
/* src/sync/waker_set_test.c - the wait list for users' own futures, under a
 * pool of items as a user would write it.
 */
#include <pirn/waker_set.h>

#include "engine/poller.h"
#include "sync/waitlist.h"

static struct {
    pirn_waker_set waiting;
    int items;
    void (*before_look)(void); /* after it has entered; or NULL */
} pool;

struct take_op {
    pirn_future future;
    pirn_waiter waiter;
};

static enum pirn_poll take_poll(pirn_future *self, pirn_cx *cx)
{
    struct take_op *op = PIRN_CONTAINER_OF(self, struct take_op, future);
    void (*before_look)(void) = pool.before_look;

    pirn_waker_set_enter(&pool.waiting, &op->waiter, cx);
    pool.before_look = NULL;
    if (before_look != NULL)
        before_look();
    if (pool.items == 0)
        return PIRN_PENDING;
    pool.items--;
    pirn_waker_set_leave(&pool.waiting, &op->waiter);
    return PIRN_READY;
}

static void take_drop(pirn_future *self)
{
    struct take_op *op = PIRN_CONTAINER_OF(self, struct take_op, future);

    pirn_waker_set_leave(&pool.waiting, &op->waiter);
}

static poller taker(struct take_op *op)
{
    static const pirn_future_ops ops = {.poll = take_poll, .drop = take_drop};

    op->future.ops = &ops;
    pirn_waker_set_prepare(&op->waiter);
    return (poller){.fut = &op->future};
}

static void put(void)
{
    pool.items++;
    pirn_waker_set_wake_one(&pool.waiting);
}

static void begin(void)
{
    pirn_waker_set_init(&pool.waiting);
    pool.items = 0;
    pool.before_look = NULL;
}

/* Goal: the one that has waited longest is woken, one for each put. */
TEST(waker_set_wakes_in_order)
{
    struct take_op ops[2];
    poller a, b;

    begin();
    EXPECT(!pirn_waker_set_wake_one(&pool.waiting));
    a = taker(&ops[0]);
    b = taker(&ops[1]);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    put();
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(0, b.wakes);
    put();
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    pirn_waker_set_deinit(&pool.waiting);
}

/* Goal: one that was woken and found nothing waits again, at the end. */
TEST(waker_set_woken_for_nothing_enters_again)
{
    struct take_op ops[2];
    poller a, b, moved;

    begin();
    a = taker(&ops[0]);
    b = taker(&ops[1]);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    EXPECT(pirn_waker_set_wake_one(&pool.waiting));
    EXPECT_EQ(0, a.wakers);
    moved = (poller){.fut = a.fut};
    EXPECT_EQ(PIRN_PENDING, poller_poll(&moved));
    put();
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(0, moved.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    poller_drop(&moved);
    pirn_waker_set_deinit(&pool.waiting);
}

/* Goal: a wake for one that is dropped goes to the next, one for all does not.
 */
TEST(waker_set_dropped_after_its_wake_passes_on)
{
    struct take_op ops[3];
    poller a, b, c;

    begin();
    a = taker(&ops[0]);
    b = taker(&ops[1]);
    c = taker(&ops[2]);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    put();
    poller_drop(&a);
    EXPECT_EQ(1, b.wakes);
    pirn_waker_set_wake_all(&pool.waiting);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    b = taker(&ops[1]);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    pirn_waker_set_wake_all(&pool.waiting);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&c));
    poller_drop(&b);
    EXPECT_EQ(0, c.wakes);
    poller_drop(&c);
    pirn_waker_set_deinit(&pool.waiting);
}

static struct take_op behind_op;
static poller behind;

/* While A has entered and not looked: B comes, finds that A will take the item
 * (as it does not look here), and another item arrives, whose wake goes to A.
 */
static void come_and_put(void)
{
    pool.items--;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&behind));
    pool.items++;
    put();
}

/* Goal: a wake that comes between enter and leave may be meant for another, and
 * is passed on.
 * Method: A finds one of two items; the wake for the second must reach B. */
TEST(waker_set_wake_between_enter_and_leave_is_passed_on)
{
    struct take_op op;
    poller a;

    begin();
    a = taker(&op);
    behind = taker(&behind_op);
    pool.items = 1;
    pool.before_look = come_and_put;
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, a.wakers);
    EXPECT_EQ(1, behind.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&behind));
    pirn_waker_set_deinit(&pool.waiting);
}

/* Goal: all are woken, in any number. */
TEST(waker_set_wake_all_reaches_everybody)
{
    enum { CROWD = PIRN__WAKE_BATCH + 1 };
    static struct take_op ops[CROWD];
    static poller crowd[CROWD];

    begin();
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = taker(&ops[i]);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&crowd[i]));
    }
    pirn_waker_set_wake_all(&pool.waiting);
    for (int i = 0; i < CROWD; i++) {
        EXPECT_EQ(1, crowd[i].wakes);
        poller_drop(&crowd[i]);
    }
    pirn_waker_set_deinit(&pool.waiting);
}

static void deinit_set(void *arg)
{
    pirn_waker_set_deinit(arg);
}

/* Goal: a set in which somebody waits does not end. */
TEST(waker_set_deinit_with_waiter_aborts)
{
    struct take_op op;
    poller a;

    begin();
    a = taker(&op);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_DEATH(deinit_set, &pool.waiting, "nobody waits");
    poller_drop(&a);
}
