/* SPDX-License-Identifier: MIT */
/* src/sync/notify_test.c - notifications, polled by hand. */
#include <pirn/notify.h>

#include <errno.h>
#include <string.h>

#include "engine/poller.h"

static poller waiter(pirn_notify_op *op, pirn_notify *notify)
{
    pirn_notify_wait_init(op, notify);
    return (poller){.fut = &op->future};
}

/* Goal: without a waiter one notification is kept, and no second one. */
TEST(notify_one_is_stored_once)
{
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op op;
    poller a;

    EXPECT_EQ(-EAGAIN, pirn_notify_try_wait(&notify));
    pirn_notify_one(&notify);
    pirn_notify_one(&notify);
    EXPECT_EQ(0, pirn_notify_wait(&notify, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, pirn_notify_wait(&notify, PIRN_EXPIRED));
    pirn_notify_last(&notify);
    a = waiter(&op, &notify);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(-EAGAIN, pirn_notify_try_wait(&notify));
    pirn_notify_deinit(&notify);
}

/* Goal: one reaches the first, last reaches the last, each one only. */
TEST(notify_one_and_last_reach_the_ends)
{
    pirn_notify notify;
    pirn_notify_op ops[3];
    poller pollers[3];

    pirn_notify_init(&notify);
    for (int i = 0; i < 3; i++) {
        pollers[i] = waiter(&ops[i], &notify);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&pollers[i]));
    }
    pirn_notify_one(&notify);
    pirn_notify_last(&notify);
    EXPECT_EQ(1, pollers[0].wakes);
    EXPECT_EQ(0, pollers[1].wakes);
    EXPECT_EQ(1, pollers[2].wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&pollers[0]));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&pollers[1]));
    EXPECT_EQ(PIRN_READY, poller_poll(&pollers[2]));
    poller_drop(&pollers[1]);
    pirn_notify_deinit(&notify);
}

/* Goal: all reaches who waits and who is only prepared, not who prepares
 * afterwards; and stores nothing.
 * Method: A waits, B was prepared and is polled afterwards, C comes later. */
TEST(notify_all_reaches_the_prepared_too)
{
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op ops[3];
    poller a = waiter(&ops[0], &notify), b = waiter(&ops[1], &notify), c;

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    pirn_notify_all(&notify);
    c = waiter(&ops[2], &notify);
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&c));
    poller_drop(&c);
    EXPECT_EQ(-EAGAIN, pirn_notify_try_wait(&notify));
}

/* Goal: one that was reached by all leaves the stored notification alone. */
TEST(notify_all_does_not_use_up_the_stored_one)
{
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op op;
    poller a = waiter(&op, &notify);

    pirn_notify_one(&notify);
    pirn_notify_all(&notify);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    pirn_future_discard(&op.future);
    EXPECT_EQ(0, pirn_notify_try_wait(&notify));
    EXPECT_EQ(-EAGAIN, pirn_notify_try_wait(&notify));
}

/* Goal: a notification for one that is dropped unseen goes on: the first's to
 * the first, the last's to the last, all's to nobody, and without others it is
 * stored. */
TEST(notify_dropped_after_it_was_reached_passes_on)
{
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op ops[4];
    poller p[4];

    for (int i = 0; i < 4; i++) {
        p[i] = waiter(&ops[i], &notify);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p[i]));
    }
    pirn_notify_one(&notify);
    poller_drop(&p[0]);
    EXPECT_EQ(1, p[1].wakes);
    EXPECT_EQ(0, p[2].wakes);
    pirn_notify_last(&notify);
    poller_drop(&p[3]);
    EXPECT_EQ(1, p[2].wakes);
    poller_drop(&p[2]); /* nobody waits: stored */
    EXPECT_EQ(PIRN_READY, poller_poll(&p[1]));
    EXPECT_EQ(0, pirn_notify_try_wait(&notify));
    p[0] = waiter(&ops[0], &notify);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p[0]));
    pirn_notify_all(&notify);
    poller_drop(&p[0]);
    EXPECT_EQ(-EAGAIN, pirn_notify_try_wait(&notify));
}

/* Goal: an enabled wait is in line before it is polled.
 * Method: two are enabled; two notifications reach both, none is stored. */
TEST(notify_enabled_wait_is_reached_before_its_first_poll)
{
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op ops[2];
    poller a = waiter(&ops[0], &notify), b = waiter(&ops[1], &notify);

    EXPECT(!pirn_notify_enable(&ops[0]));
    EXPECT(!pirn_notify_enable(&ops[0]));
    EXPECT(!pirn_notify_enable(&ops[1]));
    pirn_notify_one(&notify);
    pirn_notify_one(&notify);
    EXPECT(pirn_notify_enable(&ops[0]));
    EXPECT_EQ(-EAGAIN, pirn_notify_try_wait(&notify));
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
}

/* Goal: enabling takes the stored notification, and a drop gives it back. */
TEST(notify_enable_takes_what_is_stored)
{
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op op;
    poller a = waiter(&op, &notify);

    pirn_notify_one(&notify);
    EXPECT(pirn_notify_enable(&op));
    EXPECT_EQ(-EAGAIN, pirn_notify_try_wait(&notify));
    poller_drop(&a);
    EXPECT_EQ(0, pirn_notify_try_wait(&notify));
    a = waiter(&op, &notify);
    EXPECT(!pirn_notify_enable(&op));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(1, a.wakers);
    pirn_notify_one(&notify);
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
}

/* Goal: the result nobody wants is kept for another. */
TEST(notify_discard_passes_on)
{
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op op;
    poller a = waiter(&op, &notify);

    pirn_notify_one(&notify);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    pirn_future_discard(&op.future);
    EXPECT_EQ(0, pirn_notify_try_wait(&notify));
}

/* Goal: a wait costs one unit of budget. */
TEST(notify_wait_spends_budget)
{
    struct pirn__turn turn = {.budget = 0};
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op op;
    poller a = waiter(&op, &notify);

    a.turn = &turn;
    pirn_notify_one(&notify);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, turn.budget);
}

static void deinit_notify(void *arg)
{
    pirn_notify_deinit(arg);
}

/* Goal: a notify for which somebody waits does not end. */
TEST(notify_deinit_with_waiter_aborts)
{
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op op;
    poller a = waiter(&op, &notify);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_DEATH(deinit_notify, &notify, "nobody waits");
    poller_drop(&a);
}

/* Goal: it says what it waits for. */
TEST(notify_describes_itself)
{
    char buf[64];
    pirn_text text = {buf, sizeof buf, 0};
    pirn_notify notify = PIRN_NOTIFY_INIT;
    pirn_notify_op op;

    pirn_notify_wait_init(&op, &notify);
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "notify") != NULL);
}
