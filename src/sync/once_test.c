/* SPDX-License-Identifier: MIT */
/* src/sync/once_test.c - the once cell, polled by hand, and its calls on a
 * plain thread.
 */
#include <pirn/once.h>

#include <errno.h>
#include <string.h>

#include "engine/poller.h"

static poller beginner(pirn_once_begin_op *op, pirn_once *once)
{
    pirn_once_begin_init(op, once);
    return (poller){.fut = &op->future};
}

static int made;
static int make_rc;

static int make(void *arg)
{
    made++;
    EXPECT_EQ(-EAGAIN, pirn_once_try_begin(arg));
    return make_rc;
}

/* Goal: made once; a failure is returned and the next call tries again. */
TEST(once_call_makes_once_after_failures)
{
    pirn_once once = PIRN_ONCE_INIT;

    made = 0;
    make_rc = -EIO;
    EXPECT_EQ(-EIO, pirn_once_call(&once, make, &once, PIRN_NEVER));
    EXPECT(!pirn_once_is_done(&once));
    make_rc = 5;
    EXPECT_EQ(0, pirn_once_call(&once, make, &once, PIRN_NEVER));
    EXPECT(pirn_once_is_done(&once));
    EXPECT_EQ(0, pirn_once_call(&once, make, &once, PIRN_NEVER));
    EXPECT_EQ(2, made);
    EXPECT_EQ(0, pirn_once_try_begin(&once));
    pirn_once_deinit(&once);
}

/* Goal: who waits learns that it has been made, all of them. */
TEST(once_finish_tells_everybody)
{
    pirn_once once;
    pirn_once_begin_op ops[2];
    poller a, b;

    pirn_once_init(&once);
    a = beginner(&ops[0], &once);
    b = beginner(&ops[1], &once);
    EXPECT_EQ(1, pirn_once_begin(&once, PIRN_NEVER));
    EXPECT_EQ(-ETIMEDOUT, pirn_once_begin(&once, PIRN_EXPIRED));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    pirn_once_finish(&once);
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    EXPECT(!ops[0].must_make && !ops[1].must_make);
    pirn_once_deinit(&once);
}

/* Goal: an abandoned making goes to the one that has waited longest; dropped
 * unseen, to the next; and with nobody there the cell is as new. */
TEST(once_abandon_hands_over_in_order)
{
    pirn_once once = PIRN_ONCE_INIT;
    pirn_once_begin_op ops[3];
    poller a = beginner(&ops[0], &once), b = beginner(&ops[1], &once);
    poller c = beginner(&ops[2], &once);

    EXPECT_EQ(1, pirn_once_try_begin(&once));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&c));
    pirn_once_abandon(&once);
    EXPECT_EQ(1, a.wakes);
    EXPECT_EQ(0, b.wakes);
    poller_drop(&a);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(0, c.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    EXPECT(ops[1].must_make);
    EXPECT_EQ(1, pirn_future_outcome(&ops[1].future));
    poller_drop(&c);
    pirn_future_discard(&ops[1].future); /* abandons */
    EXPECT_EQ(1, pirn_once_try_begin(&once));
    pirn_once_finish(&once);
    a = beginner(&ops[0], &once);
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    pirn_future_discard(&ops[0].future); /* nothing to abandon */
    EXPECT(pirn_once_is_done(&once));
    pirn_once_deinit(&once);
}

/* A future that makes it. */
struct maker {
    pirn_future future;
    int polls_left; /* PENDING so often */
    int rc;
    int polls;
    int drops;
};

static enum pirn_poll maker_poll(pirn_future *self, pirn_cx *cx)
{
    struct maker *maker = PIRN_CONTAINER_OF(self, struct maker, future);

    (void)cx;
    maker->polls++;
    return maker->polls_left-- > 0 ? PIRN_PENDING : PIRN_READY;
}

static void maker_drop(pirn_future *self)
{
    PIRN_CONTAINER_OF(self, struct maker, future)->drops++;
}

static int maker_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const struct maker, future)->rc;
}

static struct maker maker_of(int polls_left, int rc)
{
    static const pirn_future_ops ops = {
        .poll = maker_poll, .drop = maker_drop, .outcome = maker_outcome};

    return (struct maker){.future = {&ops}, .polls_left = polls_left, .rc = rc};
}

static poller caller(pirn_once_op *op, pirn_once *once, struct maker *maker)
{
    pirn_once_call_init(op, once, &maker->future);
    return (poller){.fut = &op->future};
}

/* Goal: one future makes it, the other's is dropped unpolled. */
TEST(once_call_as_future_makes_once)
{
    pirn_once once = PIRN_ONCE_INIT;
    struct maker first = maker_of(1, 3), second = maker_of(0, 0);
    pirn_once_op ops[2];
    poller a = caller(&ops[0], &once, &first);
    poller b = caller(&ops[1], &once, &second);

    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT_EQ(0, ops[0].rc);
    EXPECT_EQ(1, b.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&b));
    EXPECT_EQ(0, pirn_future_outcome(&ops[1].future));
    EXPECT_EQ(0, second.polls);
    EXPECT_EQ(1, second.drops);
    EXPECT_EQ(0, first.drops);
    pirn_once_deinit(&once);
}

/* Goal: a maker that fails, or is dropped, hands over.
 * Method: A fails, B is dropped while it makes, C makes it. */
TEST(once_call_as_future_hands_over)
{
    pirn_once once = PIRN_ONCE_INIT;
    struct maker makers[3] = {maker_of(1, -EIO), maker_of(9, 0),
                              maker_of(0, 0)};
    pirn_once_op ops[3];
    poller p[3];

    for (int i = 0; i < 3; i++) {
        p[i] = caller(&ops[i], &once, &makers[i]);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p[i]));
    }
    EXPECT_EQ(PIRN_READY, poller_poll(&p[0]));
    EXPECT_EQ(-EIO, ops[0].rc);
    EXPECT_EQ(1, p[1].wakes);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p[1]));
    EXPECT_EQ(1, makers[1].polls);
    poller_drop(&p[1]);
    EXPECT_EQ(1, makers[1].drops);
    EXPECT_EQ(1, p[2].wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&p[2]));
    EXPECT_EQ(0, ops[2].rc);
    EXPECT(pirn_once_is_done(&once));
    pirn_once_deinit(&once);
}

/* Goal: dropped in line, it drops its maker and nothing else happens. */
TEST(once_call_dropped_in_line_drops_its_maker)
{
    pirn_once once = PIRN_ONCE_INIT;
    struct maker maker = maker_of(0, 0);
    pirn_once_op op;
    poller a = caller(&op, &once, &maker);
    char buf[64];
    pirn_text text = {buf, sizeof buf, 0};

    EXPECT_EQ(1, pirn_once_try_begin(&once));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    pirn_future_describe(&op.future, &text);
    EXPECT(strstr(buf, "once") != NULL);
    poller_drop(&a);
    EXPECT_EQ(1, maker.drops);
    EXPECT_EQ(0, maker.polls);
    pirn_once_abandon(&once);
    EXPECT_EQ(1, pirn_once_try_begin(&once));
}

/* Goal: it costs one unit of budget to begin, also when it has been made. */
TEST(once_begin_spends_budget)
{
    struct pirn__turn turn = {.budget = 0};
    pirn_once once = PIRN_ONCE_INIT;
    pirn_once_begin_op op;
    poller a = beginner(&op, &once);

    a.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&a));
    EXPECT(op.must_make);
    EXPECT_EQ(0, turn.budget);
}

static void finish_once(void *arg)
{
    pirn_once_finish(arg);
}

static void abandon_once(void *arg)
{
    pirn_once_abandon(arg);
}

static void deinit_once(void *arg)
{
    pirn_once_deinit(arg);
}

/* Goal: broken rules abort. */
TEST(once_broken_rules_abort)
{
    pirn_once once = PIRN_ONCE_INIT;
    pirn_once_begin_op op;
    poller a = beginner(&op, &once);

    EXPECT_DEATH(finish_once, &once, "only who has begun");
    EXPECT_DEATH(abandon_once, &once, "only who has begun");
    EXPECT_EQ(1, pirn_once_try_begin(&once));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&a));
    EXPECT_DEATH(deinit_once, &once, "nobody waits");
    poller_drop(&a);
}
