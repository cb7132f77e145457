/* SPDX-License-Identifier: MIT */
/* src/fiber/coop_test.c - fibers let each other run: by a yield, when their
 * budget is used up, and when they ignore that they were cancelled. */
#include "fiber/rig_test.h"

struct order {
    char letters[32];
    size_t length;
};

static void note(struct order *order, char letter)
{
    if (order->length < sizeof order->letters - 1)
        order->letters[order->length++] = letter;
}

struct speaker {
    struct order *order;
    char letter;
};

static int speak_thrice(void *arg)
{
    struct speaker *speaker = arg;

    for (int i = 0; i < 3; i++) {
        note(speaker->order, speaker->letter);
        EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

/* Goal: a yield lets every other ready task run once.
 * Method: three fibers that take turns. */
TEST(yield_lets_every_other_ready_task_run_once)
{
    struct order order = {0};
    struct speaker a = {&order, 'a'}, b = {&order, 'b'}, c = {&order, 'c'};
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(speak_thrice, &a));
    EXPECT_EQ(0, pirn_go(speak_thrice, &b));
    EXPECT_EQ(0, pirn_go(speak_thrice, &c));
    rig_turn(&rig);
    EXPECT_STR_EQ("abcabcabc", order.letters);
    rig_end(&rig);
}

/* The coop budget. */

struct hog {
    struct gate gate; /* always open, spends */
    int rounds;
    int seen; /* of the other, when it ran */
    bool stop;
};

static int await_ready_things(void *arg)
{
    struct hog *hog = arg;

    while (!hog->stop) {
        EXPECT_EQ(0, pirn_await(&hog->gate.future, PIRN_NEVER));
        hog->rounds++;
    }
    return 0;
}

static int look_and_stop(void *arg)
{
    struct hog *hog = arg;

    hog->seen = hog->rounds;
    hog->stop = true;
    return 0;
}

/* Goal: a fiber whose operations are always ready lets others run after 128 of
 * them.
 * Method: a fiber in such a loop; another, spawned behind it, ends it. */
TEST(coop_makes_a_fiber_with_ready_operations_yield)
{
    struct hog hog = {.gate = OPEN_GATE};
    struct rig rig;

    hog.gate.spends = true;
    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(await_ready_things, &hog));
    EXPECT_EQ(0, pirn_go(look_and_stop, &hog));
    rig_turn(&rig);
    EXPECT_EQ(128, hog.seen);
    EXPECT_LE(hog.rounds, 129);
    rig_end(&rig);
}

static int try_ready_things(void *arg)
{
    struct hog *hog = arg;

    for (; hog->rounds < 500; hog->rounds++)
        EXPECT_EQ(0, pirn_await(&hog->gate.future, PIRN_EXPIRED));
    return 0;
}

/* Goal: a future that is ready succeeds at an expired deadline also when the
 * budget is used up: it then has not been tried yet.
 * Method: far more of them than one poll has units. */
TEST(coop_without_budget_is_no_timeout)
{
    struct hog hog = {.gate = OPEN_GATE};
    struct rig rig;

    hog.gate.spends = true;
    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(try_ready_things, &hog));
    rig_turn(&rig);
    EXPECT_EQ(500, hog.rounds);
    EXPECT_EQ(0, hog.gate.drops);
    rig_end(&rig);
}

/* A stackless task that does the same under a deadline. */
struct greedy {
    pirn_frame frame;
    struct gate gate;
    int rounds;
};

static enum pirn_poll greedy_poll(pirn_future *self, pirn_cx *cx)
{
    struct greedy *g = PIRN_FRAME_OF(self, struct greedy, frame);

    PIRN_ASYNC_BEGIN(&g->frame, cx);
    for (;;) {
        PIRN_AWAIT(&g->gate.future);
        g->rounds++;
    }
    PIRN_ASYNC_END();
}

static const pirn_async_ops greedy_ops = PIRN_ASYNC_OPS(greedy_poll, NULL);

static int time_greed_out(void *arg)
{
    struct greedy *g = arg;
    pirn_timeout_op timeout;

    pirn_timeout_init(&timeout, &g->frame.future, pirn_after_ms(50));
    EXPECT_EQ(0, pirn_await(&timeout.future, PIRN_NEVER));
    return timeout.rc;
}

/* Goal: a deadline ends a loop over an operation that is always ready.
 * Method: the loop as a frame in a timeout; the clock moves between turns. */
TEST(coop_lets_a_deadline_end_an_always_ready_loop)
{
    struct greedy g = {.gate = OPEN_GATE};
    struct rig rig;
    pirn_task *task;

    g.gate.spends = true;
    pirn_frame_init(&g.frame, &greedy_ops);
    rig_begin(&rig);
    task = rig_go(time_greed_out, &g);
    for (int ms = 0; ms < 50; ms++) {
        EXPECT_LE(1, pirn_runtime_turn(rig.rt, PIRN_EXPIRED));
        EXPECT(!pirn_task_is_done(task));
        EXPECT_EQ(0, pirn_runtime_clock_advance(rig.rt, 1000000));
    }
    EXPECT_LE(1, pirn_runtime_turn(rig.rt, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, rig_outcome(task));
    EXPECT_LE(128, g.rounds);
    rig_end(&rig);
}

/* A fiber that ignores what it is told. */
struct stubborn {
    bool free; /* set by the other fiber */
    int refusals;
    int (*call)(void);
};

static int ignore_cancellation(void *arg)
{
    struct stubborn *s = arg;

    /* Ends: refused calls let the other fiber run. */
    while (!s->free)
        s->refusals += s->call() == -ECANCELED;
    return 0;
}

static int free_it_later(void *arg)
{
    struct stubborn *s = arg;

    for (int i = 0; i < 3; i++)
        EXPECT_EQ(0, pirn_yield());
    s->free = true;
    return 0;
}

static int sleep_for_ever(void)
{
    return pirn_sleep(PIRN_NEVER);
}

static int await_never(void)
{
    struct gate gate = GATE;

    return pirn_await(&gate.future, PIRN_NEVER);
}

/* Goal: a fiber that ignores its cancellation does not keep others from
 * running, whatever it calls.
 * Method: one loops over refused calls until another, which needs turns, lets
 * it go. */
TEST(wait_refused_again_and_again_gives_others_a_turn)
{
    static int (*const calls[])(void) = {pirn_yield, sleep_for_ever,
                                         await_never};

    for (int i = 0; i < 3; i++) {
        struct stubborn s = {.call = calls[i]};
        struct rig rig;
        pirn_task *task;

        rig_begin(&rig);
        task = rig_go(ignore_cancellation, &s);
        EXPECT_EQ(0, pirn_go(free_it_later, &s));
        pirn_task_cancel(task);
        rig_turn(&rig);
        EXPECT_LE(100, s.refusals);
        EXPECT_EQ(0, rig_outcome(task));
        rig_end(&rig);
    }
}
