/* SPDX-License-Identifier: MIT */
/* src/sync/giver_test.c - who gives way, and when nobody does any more. */
#include "sync/giver.h"

#include "engine/poller.h"

static char tasks[2][64]; /* only their addresses matter */

static struct pirn__turn turn_of(int task)
{
    return (struct pirn__turn){.task = (struct pirn__task *)(void *)tasks[task],
                               .budget = 1};
}

/* Does this task give way, with an operation of that kind?  `again`: and a
 * second time with the same operation? */
static bool gives_way(pirn_giver *giver, int task, uint16_t kind, bool *again)
{
    struct pirn__turn turn = turn_of(task);
    poller p = {.turn = &turn};
    pirn_waker waker = poller_waker(&p);
    pirn_cx cx = pirn_cx_of_waker(&waker);
    pirn_waiter waiter = {.kind_ = kind};
    bool gives;

    cx.turn_ = &turn;
    gives = pirn__giver_gives_way(giver, &cx, &waiter);
    EXPECT_EQ(gives, pirn__turn_is_deferred(&turn));
    EXPECT_EQ(gives, p.wakes);
    *again = pirn__giver_gives_way(giver, &cx, &waiter);
    return gives;
}

/* One hand-over, after which the task wants it back. */
static bool hand_over_and_ask(pirn_giver *giver)
{
    struct pirn__turn turn = turn_of(0);
    bool again;

    pirn__giver_note_locked(giver, pirn__giver_of(&turn));
    return gives_way(giver, 0, PIRN__GIVER_PATIENT, &again);
}

/* Goal: the task that handed over gives way, once, and no other one; nor does
 * one that only tries. */
TEST(giver_gives_way_once)
{
    pirn_giver giver = {{0}, {0}, {0}};
    struct pirn__turn turn = turn_of(0);
    bool again;

    EXPECT(!gives_way(&giver, 0, PIRN__GIVER_PATIENT, &again));
    pirn__giver_note_locked(&giver, pirn__giver_of(&turn));
    EXPECT(pirn__giver_is(&giver, &turn));
    EXPECT(!pirn__giver_is(&giver, NULL));
    EXPECT(!gives_way(&giver, 1, PIRN__GIVER_PATIENT, &again));
    EXPECT(!gives_way(&giver, 0, PIRN__GIVER_AT_ONCE, &again));
    EXPECT(gives_way(&giver, 0, PIRN__GIVER_PATIENT, &again));
    EXPECT(!again);
}

/* Goal: without a task nobody gives way: a plain thread, or a future polled by
 * hand. */
TEST(giver_that_is_no_task_does_not_give_way)
{
    pirn_giver giver;
    struct pirn__turn turn = {.task = NULL};

    pirn__giver_init(&giver);
    pirn__giver_note_locked(&giver, pirn__giver_here());
    EXPECT(!pirn__giver_is(&giver, &turn));
    EXPECT(!pirn__giver_is(&giver, NULL));
}

/* Goal: turns that bring nothing are given up for long, and then tried again. */
TEST(giver_rests_after_turns_in_vain)
{
    pirn_giver giver = {{0}, {0}, {0}};
    int turns = 0;

    while (hand_over_and_ask(&giver))
        turns++;
    EXPECT_EQ(PIRN__GIVER_DEBT / PIRN__GIVER_WORTH + 1, turns);
    for (int i = 1; i < PIRN__GIVER_REST; i++)
        EXPECT(!hand_over_and_ask(&giver));
    EXPECT(hand_over_and_ask(&giver));
}

/* Goal: turns after which the line is gone for a while do not tire. */
TEST(giver_goes_on_where_it_is_worth_it)
{
    pirn_giver giver = {{0}, {0}, {0}};

    for (int turn = 0; turn < 3 * PIRN__GIVER_DEBT; turn++) {
        EXPECT(hand_over_and_ask(&giver));
        for (int i = 0; i < PIRN__GIVER_WORTH + 1; i++)
            pirn__giver_repay(&giver);
    }
}
