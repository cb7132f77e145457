/* SPDX-License-Identifier: MIT */
/* src/time/timeout_test.c - a deadline around a future that the test makes
 * ready when it likes, polled by hand on a paused clock. */
#include "engine/timers_fixture.h"

/* The future inside: spends budget like a real one, and counts its end. */
struct inner {
    pirn_future future;
    bool ready;
    int polls;
    int drops;
    int discards;
};

static enum pirn_poll inner_poll(pirn_future *self, pirn_cx *cx)
{
    struct inner *inner = PIRN_CONTAINER_OF(self, struct inner, future);

    inner->polls++;
    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    return inner->ready ? PIRN_READY : PIRN_PENDING;
}

static void inner_drop(pirn_future *self)
{
    PIRN_CONTAINER_OF(self, struct inner, future)->drops++;
}

static void inner_discard(pirn_future *self)
{
    PIRN_CONTAINER_OF(self, struct inner, future)->discards++;
}

static void inner_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "inner");
}

static int inner_outcome(const pirn_future *self)
{
    (void)self;
    return 77;
}

static const pirn_future_ops inner_ops = {
    .poll = inner_poll,
    .drop = inner_drop,
    .discard = inner_discard,
    .describe = inner_describe,
    .outcome = inner_outcome,
};

static void story_init(struct inner *inner, pirn_timeout_op *op,
                       pirn_deadline deadline)
{
    *inner = (struct inner){.future = {&inner_ops}};
    pirn_timeout_init(op, &inner->future, deadline);
}

/* Goal: what ends in time passes through.
 * Method: pending, then ready before the deadline; no timer stays behind. */
TEST(timeout_of_a_future_that_ends_in_time_is_transparent)
{
    struct test_home home;
    struct bell bell = {0};
    struct inner inner;
    pirn_timeout_op op;

    test_home_begin(&home);
    story_init(&inner, &op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(1, pirn__timers_count(&home.timers));
    EXPECT_EQ(0, advance_ns(&home, 10 * MS - 1));
    inner.ready = true;
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, op.rc);
    EXPECT_EQ(77, pirn_future_outcome(&op.future));
    EXPECT_EQ(0, inner.drops);
    EXPECT_EQ(0, wakers(&bell));
    EXPECT_EQ(0, pirn__timers_count(&home.timers));
    test_home_finish(&home);
}

/* Goal: the deadline ends the wait and drops what is inside, once.
 * Method: let the time pass while it waits. */
TEST(timeout_that_passes_drops_the_inner_future)
{
    struct test_home home;
    struct bell bell = {0};
    struct inner inner;
    pirn_timeout_op op;

    test_home_begin(&home);
    story_init(&inner, &op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, advance_ns(&home, 10 * MS - 1));
    EXPECT_EQ(0, inner.drops);
    EXPECT_EQ(1, advance_ns(&home, 1));
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(0, inner.drops);
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(-ETIMEDOUT, op.rc);
    EXPECT_EQ(-ETIMEDOUT, pirn_future_outcome(&op.future));
    EXPECT_EQ(1, inner.drops);
    pirn_future_discard(&op.future);
    EXPECT_EQ(0, inner.discards);
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: success beats the deadline, before the first poll and when both come
 * together; without success an expired deadline ends it at the first poll.
 * Method: the three cases. */
TEST(timeout_success_beats_an_expired_deadline)
{
    struct test_home home;
    struct bell bell = {0};
    struct inner inner;
    pirn_timeout_op op;

    test_home_begin(&home);
    story_init(&inner, &op, PIRN_EXPIRED);
    inner.ready = true;
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, op.rc);

    story_init(&inner, &op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(1, advance_ns(&home, 10 * MS));
    inner.ready = true;
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(0, op.rc);
    EXPECT_EQ(0, inner.drops);
    pirn_future_discard(&op.future);
    EXPECT_EQ(1, inner.discards);

    story_init(&inner, &op, PIRN_EXPIRED);
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(-ETIMEDOUT, op.rc);
    EXPECT_EQ(1, inner.polls);
    EXPECT_EQ(1, inner.drops);
    test_home_finish(&home);
}

/* Goal: a task that has used its budget up still meets its deadline.
 * Method: the inner future is always ready but the task has no budget left;
 * the deadline passes, before and during the wait. */
TEST(timeout_without_coop_budget_still_ends)
{
    struct test_home home;
    struct bell bell = {0};
    struct inner inner;
    pirn_timeout_op op;

    test_home_begin(&home);
    home.turn.budget = 0;
    story_init(&inner, &op, in_ms(&home, 50));
    inner.ready = true;
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(1, advance_ns(&home, 50 * MS));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(-ETIMEDOUT, op.rc);
    EXPECT_EQ(0, home.turn.budget);

    story_init(&inner, &op, PIRN_EXPIRED);
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(-ETIMEDOUT, op.rc);
    test_home_finish(&home);
}

/* Goal: a timer is needed only for a real wait with a real deadline.
 * Method: no runtime, with and without one; a runtime that ends. */
TEST(timeout_that_must_wait_needs_a_runtime)
{
    struct test_home home;
    struct bell bell = {0};
    struct inner inner;
    pirn_timeout_op op;

    test_home_begin(&home);
    story_init(&inner, &op, PIRN_NEVER);
    EXPECT_EQ(PIRN_PENDING, poll_in(NULL, &op.future, &bell));
    inner.ready = true;
    EXPECT_EQ(PIRN_READY, poll_in(NULL, &op.future, &bell));
    EXPECT_EQ(0, op.rc);

    story_init(&inner, &op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_READY, poll_in(NULL, &op.future, &bell));
    EXPECT_EQ(PIRN_ENORUNTIME, op.rc);
    EXPECT_EQ(1, inner.drops);

    story_init(&inner, &op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
    pirn__timers_shutdown(&home.timers);
    EXPECT_EQ(1, rings(&bell));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(PIRN_ESHUTDOWN, op.rc);
    EXPECT_EQ(1, inner.drops);

    story_init(&inner, &op, in_ms(&home, 10));
    EXPECT_EQ(PIRN_READY, poll_in(&home, &op.future, &bell));
    EXPECT_EQ(PIRN_ESHUTDOWN, op.rc);
    EXPECT_EQ(1, inner.drops);
    EXPECT_EQ(0, wakers(&bell));
    test_home_finish(&home);
}

/* Goal: dropping the timeout drops what is inside.
 * Method: before the first poll, while it waits, and after the time came. */
TEST(timeout_dropped_drops_the_inner_future)
{
    struct test_home home;
    struct bell bell = {0};
    struct inner inner;
    pirn_timeout_op op;

    test_home_begin(&home);
    for (int step = 0; step < 3; step++) {
        story_init(&inner, &op, in_ms(&home, 10));
        if (step > 0)
            EXPECT_EQ(PIRN_PENDING, poll_in(&home, &op.future, &bell));
        if (step > 1)
            EXPECT_EQ(1, advance_ns(&home, 10 * MS));
        pirn_future_drop(&op.future);
        EXPECT_EQ(1, inner.drops);
        EXPECT_EQ(0, wakers(&bell));
    }
    test_home_finish(&home);
}

/* Goal: a dump says what is waited for and that it has an end.
 * Method: describe. */
TEST(timeout_describes_what_is_inside)
{
    char buf[40] = "";
    pirn_text text = {.buf = buf, .size = sizeof buf};
    struct inner inner;
    pirn_timeout_op op;

    story_init(&inner, &op, PIRN_NEVER);
    pirn_future_describe(&op.future, &text);
    EXPECT_STR_EQ("inner until a deadline", buf);
    pirn_future_drop(&op.future);
}
