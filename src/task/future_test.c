/* SPDX-License-Identifier: MIT */
/* src/task/future_test.c - calling a future's operations, the coop budget, and
 * failing outside a task. */
#include "task/lab_test.h"

#include <pirn/time.h>

#include "task/await.h"

/* Goal: the four operations reach the future's own; those it lacks have
 * defaults.
 * Method: a scripted future, and one with nothing but poll and drop. */
TEST(future_operations_reach_the_table)
{
    static const pirn_future_ops bare_ops = {.poll = step_poll,
                                             .drop = step_drop};
    struct script script = {.outcome = 5};
    struct step step = step_of(&script);
    struct step bare = {.future = {&bare_ops}, .script = &script};
    char buf[32] = "";
    pirn_text text = {buf, sizeof buf, 0};
    poller p = {.fut = &step.future};

    pirn_future_describe(&step.future, &text);
    EXPECT_STR_EQ("step after 0 polls", buf);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(1, script.polls);
    EXPECT_EQ(5, pirn_future_outcome(&step.future));
    pirn_future_discard(&step.future);
    EXPECT_EQ(1, script.discards);

    text = (pirn_text){buf, sizeof buf, 0};
    pirn_future_describe(&bare.future, &text);
    EXPECT_STR_EQ("?", buf);
    EXPECT_EQ(0, pirn_future_outcome(&bare.future));
    pirn_future_discard(&bare.future);
    EXPECT_EQ(1, script.discards);
    pirn_future_drop(&bare.future);
    EXPECT_EQ(1, script.drops);
}

static int refusals;
static pirn_task *ended; /* a task that would not keep a joiner waiting */

static void try_to_wait(void)
{
    int outcome;

    EXPECT_EQ(-EDEADLK, pirn__may_suspend());
    EXPECT_EQ(-EDEADLK, pirn_yield());
    EXPECT_EQ(-EDEADLK, pirn_sleep(PIRN_EXPIRED));
    EXPECT_EQ(-EDEADLK, pirn_task_join(ended, PIRN_EXPIRED, &outcome));
    refusals++;
}

static enum pirn_poll strict_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    try_to_wait();
    return PIRN_READY;
}

static void strict_drop(pirn_future *self)
{
    (void)self;
    try_to_wait();
}

static void strict_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    (void)out;
    try_to_wait();
}

/* Goal: nothing suspends inside a poll, a drop, a discard or a describe, whether
 * or not it would wait, also outside any runtime; and it may again afterwards.
 * Method: a future whose operations try. */
TEST(future_operations_may_not_suspend)
{
    static const pirn_future_ops ops = {
        .poll = strict_poll,
        .drop = strict_drop,
        .discard = strict_drop,
        .describe = strict_describe,
    };
    pirn_future future = {&ops};
    char buf[8];
    pirn_text text = {buf, sizeof buf, 0};
    poller p = {.fut = &future};
    struct script script = {0};
    struct lab lab;

    lab_begin(&lab);
    ended = lab_spawn(&lab, &script);
    EXPECT(lab_run(&lab));
    refusals = 0;
    pirn_future_describe(&future, &text);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    pirn_future_discard(&future);
    pirn_future_drop(&future);
    EXPECT_EQ(4, refusals);
    EXPECT_EQ(0, pirn__may_suspend());
    EXPECT_EQ(0, lab_outcome(ended));
    pirn_task_unref(ended);
    lab_finish(&lab);
}

/* Goal: outside a runtime the budget has no end, and failing does nothing.
 * Method: a poll by hand that spends a thousand units. */
TEST(future_polled_by_hand_has_no_budget)
{
    poller p = {0};
    pirn_waker waker = poller_waker(&p);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    for (int i = 0; i < 1000; i++)
        EXPECT(pirn_coop_spend(&cx));
    pirn_cx_fail(&cx, "nobody hears %s", "this");
    EXPECT_EQ(0, p.wakes);
}

struct spender {
    int spent; /* in the first poll */
    int wakes_seen;
};

/* Spends all it is given in the first poll. */
static enum pirn_poll spend_all(struct script *script, pirn_cx *cx)
{
    struct spender *spender = script->arg;

    if (script->polls > 1)
        return pirn_coop_spend(cx) ? PIRN_READY : PIRN_PENDING;
    while (spender->spent < 1000 && pirn_coop_spend(cx))
        spender->spent++;
    return PIRN_PENDING;
}

/* Goal: a task may spend 128 units a poll; then it is run again without
 * anybody's wake, with a new budget.
 * Method: spend until refused; the next poll is ready. */
TEST(coop_budget_is_128_units_a_poll)
{
    struct spender spender = {0};
    struct script script = {.on_poll = spend_all, .arg = &spender};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(128, spender.spent);
    EXPECT(lab.turn.deferred);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(2, script.polls);
    EXPECT_EQ(0, lab.submits);
    lab_finish(&lab);
}

/* Goal: when a combinator gave its own waker, that one is told: it may have to
 * know which child asked.
 * Method: spend without a unit left through a context with a foreign waker. */
TEST(coop_refusal_wakes_a_foreign_waker)
{
    struct pirn__turn turn = {.budget = 1};
    poller p = {0};
    pirn_waker waker = poller_waker(&p);
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};

    EXPECT(pirn_coop_spend(&cx));
    EXPECT_EQ(0, p.wakes);
    EXPECT(!pirn_coop_spend(&cx));
    EXPECT(!pirn_coop_spend(&cx));
    EXPECT_EQ(2, p.wakes);
    EXPECT_EQ(0, turn.budget);
    EXPECT(turn.deferred);
}

/* Goal: who has to wait for a look at the events does so, also if another child of
 * the same task is only out of budget.
 * Method: both in one poll, in either order. */
TEST(coop_refusal_shortens_no_other_wait)
{
    poller p = {0};
    pirn_waker waker = poller_waker(&p);

    for (int first = 0; first < 2; first++) {
        struct pirn__turn turn = {.budget = 0};
        pirn_cx cx = {.waker = &waker, .turn_ = &turn};

        for (int i = 0; i < 2; i++) {
            if (i == first)
                EXPECT(!pirn_coop_spend(&cx));
            else
                pirn__turn_defer(&cx, PIRN__DEFER_TO_EVENTS);
        }
        EXPECT_EQ(PIRN__DEFER_TO_EVENTS, turn.deferred);
    }
}
