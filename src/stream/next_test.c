/* SPDX-License-Identifier: MIT */
/* src/stream/next_test.c - the next item of a stream as a future and as a call. */
#include <pirn/select.h>

#include "stream/source_test.h"

/* Goal: items in order, then the end, again and again.
 * Method: the straight-line call on a plain thread. */
TEST(next_gives_items_in_order_and_then_the_end)
{
    struct source source;
    int item = 0;

    source_init(&source);
    source_put(&source, 10);
    source_put(&source, 20);
    source_end(&source);
    EXPECT_EQ(1, pirn_next(&source.stream, &item, PIRN_NEVER));
    EXPECT_EQ(10, item);
    EXPECT_EQ(1, pirn_next(&source.stream, &item, PIRN_NEVER));
    EXPECT_EQ(20, item);
    EXPECT_EQ(0, pirn_next(&source.stream, &item, PIRN_NEVER));
    EXPECT_EQ(0, pirn_next(&source.stream, &item, PIRN_NEVER));
    EXPECT_EQ(0, source.drops);
    pirn_stream_drop(&source.stream);
    EXPECT_EQ(1, source.drops);
    EXPECT_EQ(-EINVAL, pirn_next(NULL, &item, PIRN_NEVER));
}

/* Goal: a next that is given up loses nothing.
 * Method: a deadline that has passed, a loser of a select, a drop; an item comes
 * in between; the next one gets it. */
TEST(next_given_up_loses_no_item)
{
    struct source source, other;
    pirn_next_op ops[2];
    pirn_branch branches[2];
    poller p = {0};
    int items[2] = {0};

    source_init(&source);
    source_init(&other);
    EXPECT_EQ(-ETIMEDOUT, pirn_next(&source.stream, &items[0], PIRN_EXPIRED));
    source_put(&source, 1);
    EXPECT_EQ(1, pirn_next(&source.stream, &items[0], PIRN_NEVER));

    pirn_next_init(&ops[0], &source.stream, &items[0]);
    p.fut = &ops[0].future;
    EXPECT_EQ(PIRN_PENDING, poller_poll_raced(&p));
    source_put(&source, 2);
    EXPECT_EQ(1, p.wakes);
    poller_drop(&p);
    EXPECT_EQ(2, source.withdraws);
    EXPECT_EQ(1, pirn_next(&source.stream, &items[0], PIRN_NEVER));
    EXPECT_EQ(2, items[0]);

    source_put(&other, 3);
    source_put(&source, 4);
    for (int i = 0; i < 2; i++) {
        pirn_next_init(&ops[i], i == 0 ? &source.stream : &other.stream,
                       &items[i]);
        branches[i] = (pirn_branch)PIRN_BRANCH(&ops[i]);
    }
    EXPECT_EQ(1, branches[pirn_select(branches, 2, PIRN_NEVER)].outcome);
    EXPECT_EQ(1, source.count - source.given + other.count - other.given);
    pirn_stream_drop(&source.stream);
    pirn_stream_drop(&other.stream);
    EXPECT_EQ(0, poller_wakers(&p));
}

/* Goal: a failure is passed on, and one may ask again.
 * Method: a failure between two items. */
TEST(next_after_a_failure_goes_on)
{
    struct source source;
    int item = 0;

    source_init(&source);
    source_fail(&source, -EIO);
    EXPECT_EQ(-EIO, pirn_next(&source.stream, &item, PIRN_NEVER));
    source_put(&source, 5);
    EXPECT_EQ(1, pirn_next(&source.stream, &item, PIRN_NEVER));
    EXPECT_EQ(5, item);
    pirn_stream_drop(&source.stream);
}

/* Goal: an item without a taker is discarded by its stream; no other answer is.
 * Method: discard the future after an item and after the end. */
TEST(next_discarded_discards_its_item)
{
    struct source source;
    pirn_next_op op;
    poller p = {0};
    int item;

    source_init(&source);
    source_put(&source, 1);
    source_end(&source);
    for (int i = 0; i < 2; i++) {
        pirn_next_init(&op, &source.stream, &item);
        p.fut = &op.future;
        EXPECT_EQ(PIRN_READY, poller_poll(&p));
        EXPECT_EQ(1 - i, pirn_future_outcome(&op.future));
        pirn_future_discard(&op.future);
        EXPECT_EQ(1, source.discards);
    }
    pirn_stream_drop(&source.stream);
}

static enum pirn_poll silent_poll_next(pirn_stream *self, pirn_cx *cx,
                                       void *item, int *rc)
{
    (void)self;
    EXPECT_EQ(-EDEADLK, pirn_next(self, item, PIRN_NEVER));
    pirn_waker_wake_by_ref(cx->waker);
    *rc = 0;
    return PIRN_READY;
}

static void silent_drop(pirn_stream *self)
{
    (void)self;
}

/* Goal: what a stream may leave out; nothing waits inside a poll.
 * Method: a table without discard and describe. */
TEST(next_of_a_stream_with_a_short_table)
{
    static const pirn_stream_ops ops = {.poll_next = silent_poll_next,
                                        .drop = silent_drop};
    pirn_stream stream = {&ops};
    pirn_next_op op;
    char buf[40] = "";
    pirn_text text = {.buf = buf, .size = sizeof buf};
    poller p = {0};
    int item;

    pirn_next_init(&op, &stream, &item);
    pirn_future_describe(&op.future, &text);
    EXPECT_STR_EQ("next of ?", buf);
    EXPECT_EQ(0, ask(&p, &stream, &item));
    pirn_stream_withdraw(&stream);
    pirn_stream_discard(&stream, &item);
    pirn_stream_drop(&stream);
}
