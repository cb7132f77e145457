/* SPDX-License-Identifier: MIT */
/* tests/regress/select_budget.c - what is always ready defeats no deadline, no
 * other branch and no other task. */
#include "sched/runtime_test.h"

#include <pirn/async.h>
#include <pirn/select.h>
#include <pirn/stream.h>

enum {
    DEADLINE_MS = 20,
    LATE_MS = 2000, /* far less than for ever; the machine may be busy */
    ROUNDS = 20000,
};

/* Something that is always ready, as far as the budget lets it. */
static enum pirn_poll ready_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    return pirn_coop_spend(cx) ? PIRN_READY : PIRN_PENDING;
}

/* The same that knows of no budget. */
static enum pirn_poll unpaid_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    return PIRN_READY;
}

static void nothing_drop(pirn_future *self)
{
    (void)self;
}

static const pirn_future_ops ready_ops = {.poll = ready_poll,
                                          .drop = nothing_drop};
static const pirn_future_ops unpaid_ops = {.poll = unpaid_poll,
                                           .drop = nothing_drop};

/* A stackless loop over it, without an end. */
struct loop {
    pirn_frame frame;
    struct {
        pirn_future future;
    } ready;
};

static enum pirn_poll loop_poll(pirn_future *self, pirn_cx *cx)
{
    struct loop *loop = PIRN_FRAME_OF(self, struct loop, frame);

    PIRN_ASYNC_BEGIN(&loop->frame, cx);
    for (;;) {
        loop->ready.future.ops = &ready_ops;
        PIRN_AWAIT(&loop->ready.future);
    }
    PIRN_ASYNC_END();
}

static void loop_init(struct loop *loop)
{
    static const pirn_async_ops ops = PIRN_ASYNC_OPS(loop_poll, NULL);

    pirn_frame_init(&loop->frame, &ops);
}

static void expect_in_time(pirn_deadline deadline)
{
    uint64_t now = pirn_now_ns();

    EXPECT_GE(now, deadline.ns);
    EXPECT_LE(now - deadline.ns, (uint64_t)LATE_MS * 1000000);
}

/* A deadline around the loop, in a fiber and as a future. */
static void meet_deadlines(void)
{
    pirn_deadline until = pirn_after_ms(DEADLINE_MS);
    struct loop loop;
    pirn_timeout_op timeout;
    pirn_branch branch;

    loop_init(&loop);
    EXPECT_EQ(-ETIMEDOUT, pirn_await(&loop.frame.future, until));
    expect_in_time(until);

    until = pirn_after_ms(DEADLINE_MS);
    loop_init(&loop);
    pirn_timeout_init(&timeout, &loop.frame.future, until);
    EXPECT_EQ(0, pirn_await(&timeout.future, PIRN_NEVER));
    EXPECT_EQ(-ETIMEDOUT, timeout.rc);
    expect_in_time(until);

    until = pirn_after_ms(DEADLINE_MS);
    loop_init(&loop);
    branch = (pirn_branch)PIRN_BRANCH(&loop.frame);
    EXPECT_EQ(-ETIMEDOUT, pirn_select(&branch, 1, until));
    expect_in_time(until);

    until = pirn_after_ms(DEADLINE_MS);
    loop_init(&loop);
    branch = (pirn_branch)PIRN_BRANCH(&loop.frame);
    EXPECT_EQ(-ETIMEDOUT, pirn_join_all(&branch, 1, until));
    expect_in_time(until);
}

/* A sleep beside the loop, whichever stands first. */
static void meet_sleeps(void)
{
    for (int i = 0; i < 4; i++) {
        pirn_deadline until = pirn_after_ms(DEADLINE_MS);
        size_t place = (size_t)i % 2;
        pirn_branch branches[2];
        pirn_sleep_op sleep;
        struct loop loop;

        loop_init(&loop);
        pirn_sleep_init(&sleep, until);
        branches[place] = (pirn_branch)PIRN_BRANCH(&loop.frame);
        branches[1 - place] = (pirn_branch)PIRN_BRANCH(&sleep);
        EXPECT_EQ(1 - place, i < 2 ? pirn_select(branches, 2, PIRN_NEVER)
                                   : pirn_select_biased(branches, 2,
                                                        PIRN_NEVER));
        expect_in_time(until);
    }
}

/* A select loop that always has something to do meets a kept sleep. */
static void meet_kept_sleep(void)
{
    pirn_deadline until = pirn_after_ms(DEADLINE_MS);
    pirn_future ready;
    pirn_branch branches[2] = {{0}};
    pirn_sleep_op sleep;
    int winner;

    pirn_sleep_init(&sleep, until);
    branches[1] = (pirn_branch)PIRN_BRANCH_KEPT(&sleep);
    do {
        ready.ops = &ready_ops;
        pirn_branch_set(&branches[0], &ready);
        winner = pirn_select(branches, 2, PIRN_NEVER);
    } while (winner == 0);
    EXPECT_EQ(1, winner);
    expect_in_time(until);
}

static int meet_all(void *arg)
{
    (void)arg;
    meet_deadlines();
    meet_sleeps();
    meet_kept_sleep();
    return 0;
}

/* Goal: what is always ready defeats neither a deadline around it nor a sleep
 * beside it.
 * Method: a stackless loop without an end, alone and in a select, fair and
 * biased, first and last; a loop of selects. */
TEST(select_of_what_is_always_ready_meets_deadlines)
{
    for (uint32_t workers = 0; workers <= 2; workers++) {
        const pirn_runtime_options options = {.workers = workers};

        EXPECT_EQ(0, pirn_run_with(meet_all, NULL, &options, NULL));
    }
}

static tally ticks;

static int tick(void *arg)
{
    (void)arg;
    while (pirn_yield() == 0)
        tally_up(&ticks);
    return -ECANCELED;
}

static int hog(void *arg)
{
    pirn_task *ticker = NULL;
    int outcome;

    (void)arg;
    EXPECT_EQ(0, pirn_go_with(tick, NULL, NULL, &ticker));
    for (int i = 0; i < ROUNDS; i++) {
        pirn_future futures[2] = {{&unpaid_ops}, {&unpaid_ops}};
        pirn_branch branches[2] = {{.future = &futures[0]},
                                   {.future = &futures[1]}};

        EXPECT_GE(pirn_select(branches, 2, PIRN_NEVER), 0);
    }
    pirn_task_cancel(ticker);
    EXPECT_EQ(0, pirn_task_join(ticker, PIRN_NEVER, &outcome));
    pirn_task_unref(ticker);
    return 0;
}

/* Goal: a loop of selects over futures that know of no budget lets others run.
 * Method: another fiber on the same worker counts its turns meanwhile. */
TEST(select_loop_lets_others_run)
{
    for (uint32_t workers = 0; workers <= 1; workers++) {
        const pirn_runtime_options options = {.workers = workers};

        tally_set(&ticks, 0);
        EXPECT_EQ(0, pirn_run_with(hog, NULL, &options, NULL));
        EXPECT_GE(tally_of(&ticks), ROUNDS / 128 - 1);
    }
}
