/* SPDX-License-Identifier: MIT */
/* src/scope/select_test.c - the first of several futures.  The children are
 * made ready by the test, and the operation is polled by hand. */
#include "scope/children_test.h"

#include <pirn/fiber.h>
#include <pirn/time.h>

#include "scope/wakeset.h"

enum { MANY = 100 };
_Static_assert((int)MANY > (int)PIRN__WAKESET_FEW, "many means many");

/* Goal: the first that is ready wins, the others are dropped.
 * Method: three children; the middle one becomes ready while all wait. */
TEST(select_first_ready_branch_wins_and_the_others_are_dropped)
{
    struct child children[3];
    pirn_branch branches[3];
    pirn_select_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, 3);
    children[1].outcome = 7;
    pirn_select_init(&op, branches, 3);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(3, children_polls(children, 3));
    child_fire(&children[1]);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(1, op.index);
    EXPECT_EQ(1, pirn_future_outcome(&op.future));
    EXPECT(branches[1].ended);
    EXPECT_EQ(7, branches[1].outcome);
    EXPECT_PTR_EQ(&children[1].future, branches[1].future);
    EXPECT_PTR_EQ(NULL, branches[0].future);
    EXPECT_PTR_EQ(NULL, branches[2].future);
    EXPECT_EQ(1, children[0].drops);
    EXPECT_EQ(0, children[1].drops);
    EXPECT_EQ(1, children[2].drops);
}

/* Goal: what is kept lives on over the turns of a loop, and may win later.
 * Method: the other branch wins three turns; the kept one is polled in each and
 * dropped in none; then it wins, and is not polled again. */
TEST(select_kept_branch_stays_live_across_turns)
{
    struct child other, kept;
    pirn_branch branches[2];
    pirn_select_op op;
    poller p = {.fut = &op.future};

    child_init(&kept);
    branches[1] = (pirn_branch)PIRN_BRANCH_KEPT(&kept);
    for (int turn = 0; turn < 3; turn++) {
        child_init(&other);
        branches[0] = (pirn_branch)PIRN_BRANCH(&other);
        pirn_select_init(&op, branches, 2);
        p.fut = &op.future;
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
        child_fire(&other);
        EXPECT_EQ(PIRN_READY, poller_poll_raced(&p));
        EXPECT_EQ(0, op.index);
        EXPECT_EQ(0, kept.drops);
        EXPECT_PTR_EQ(&kept.future, branches[1].future);
    }
    EXPECT_EQ(1, poller_wakers(&p));
    child_fire(&kept);
    child_init(&other);
    branches[0] = (pirn_branch)PIRN_BRANCH(&other);
    pirn_select_init(&op, branches, 2);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(1, op.index);

    /* Ended, it is as though it were not there, until it is set again. */
    branches[0].future = NULL;
    pirn_select_init(&op, branches, 2);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(-ENOENT, op.index);
    child_init(&kept);
    kept.ready = true;
    pirn_branch_set(&branches[1], &kept.future);
    EXPECT(branches[1].keep);
    pirn_select_init(&op, branches, 2);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(1, op.index);
}

/* Goal: a branch that is off is as though it were not there.
 * Method: it is ready, but neither polled nor dropped; on again it wins. */
TEST(select_branch_that_is_off_is_left_alone)
{
    struct child children[2];
    pirn_branch branches[2];
    pirn_select_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, 2);
    children[0].ready = true;
    branches[0].off = true;
    pirn_select_init(&op, branches, 2);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    child_fire(&children[1]);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(1, op.index);
    EXPECT_EQ(0, children[0].polls);
    EXPECT_EQ(0, children[0].drops);

    branches[0].off = false;
    pirn_select_init(&op, branches, 2);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(0, op.index);
}

/* Goal: with nothing to wait for it says so instead of waiting for ever.
 * Method: no branch, only ones that are off, an array that cannot be; polled
 * and dropped. */
TEST(select_without_a_live_branch_ends_with_a_code)
{
    struct child child;
    pirn_branch branch = PIRN_BRANCH(&child);
    pirn_select_op op;
    poller p = {.fut = &op.future};

    pirn_select_init(&op, NULL, 0);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(-ENOENT, op.index);
    child_init(&child);
    branch.off = true;
    pirn_select_init(&op, &branch, 1);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(-ENOENT, op.index);
    pirn_future_discard(&op.future);

    pirn_select_init(&op, NULL, 2);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(-EINVAL, op.index);
    pirn_select_init(&op, &branch, SIZE_MAX);
    pirn_future_drop(&op.future);
    EXPECT_EQ(0, child.drops);
    EXPECT_EQ(-EINVAL, pirn_select(NULL, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_race(&branch, SIZE_MAX, PIRN_NEVER));
    EXPECT_EQ(-ENOENT, pirn_select_biased(&branch, 1, PIRN_NEVER));
}

/* Which of `count` branches that are all ready wins how often. */
static void count_wins(size_t count, bool biased, int rounds, int *wins)
{
    static struct child children[MANY];
    static pirn_branch branches[MANY];

    for (int round = 0; round < rounds; round++) {
        pirn_select_op op;
        poller p = {.fut = &op.future};

        children_init(children, branches, count);
        for (size_t i = 0; i < count; i++)
            children[i].ready = true;
        if (biased)
            pirn_select_biased_init(&op, branches, count);
        else
            pirn_select_init(&op, branches, count);
        EXPECT_EQ(PIRN_READY, poller_poll(&p));
        wins[op.index]++;
    }
}

/* Goal: fair by default: among those that are ready each wins about as often.
 * Method: three ready branches, and as many as are polled by their wakes. */
TEST(select_among_ready_branches_is_fair)
{
    int few[3] = {0};
    int many[MANY] = {0};

    count_wins(3, false, 3000, few);
    for (int i = 0; i < 3; i++)
        EXPECT(few[i] > 850);
    count_wins(MANY, false, MANY * 100, many);
    for (int i = 0; i < MANY; i++)
        EXPECT(many[i] > 40);
}

/* Goal: biased, the first that is ready wins.
 * Method: all are ready, then all but the first. */
TEST(select_biased_takes_the_first_that_is_ready)
{
    struct child children[3];
    pirn_branch branches[3];
    pirn_select_op op;
    poller p = {.fut = &op.future};
    int few[3] = {0};
    int many[MANY] = {0};

    count_wins(3, true, 100, few);
    EXPECT_EQ(100, few[0]);
    count_wins(MANY, true, 100, many);
    EXPECT_EQ(100, many[0]);

    children_init(children, branches, 3);
    children[1].ready = true;
    children[2].ready = true;
    pirn_select_biased_init(&op, branches, 3);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(1, op.index);
}

/* Goal: without budget no branch is polled, so that one that spends none does
 * not win each time; the next poll comes by itself.
 * Method: none left, or none left for a branch; one that would be ready without
 * any. */
TEST(select_without_budget_polls_no_branch)
{
    struct pirn__turn turn = {0};
    struct child children[2];
    pirn_branch branches[2];
    pirn_select_op op;
    poller p = {.fut = &op.future, .turn = &turn};

    children_init(children, branches, 2);
    children[0].ready = true;
    children[1].ready = true;
    children[1].unbudgeted = true;
    pirn_select_init(&op, branches, 2);
    for (int left = 0; left < 2; left++) {
        turn.budget = left;
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
        EXPECT_EQ(0, children_polls(children, 2));
        EXPECT(turn.deferred);
        EXPECT_EQ(left + 1, p.wakes);
    }
    turn.budget = 2;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    poller_drop(&p);
}

/* Goal: looking at branches that wait costs no budget, a select costs one unit,
 * and a branch that does work pays for it.
 * Method: what is left after each poll. */
TEST(select_of_waiting_branches_costs_one_unit)
{
    struct pirn__turn turn = {.budget = 100};
    static struct child children[MANY];
    static pirn_branch branches[MANY];
    pirn_select_op op;
    poller p = {.fut = &op.future, .turn = &turn};

    children_init(children, branches, MANY);
    pirn_select_init(&op, branches, 16);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(99, turn.budget);
    child_fire(&children[3]);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(97, turn.budget);

    children_init(children, branches, MANY);
    pirn_select_init(&op, branches, MANY);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(96, turn.budget);
    poller_drop(&p);

    children_init(children, branches, 2);
    children[0].greedy = true;
    pirn_select_init(&op, branches, 2);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT(turn.budget <= 1);
    poller_drop(&p);
}

/* Goal: a select that is dropped drops its branches, but for those kept or off,
 * before and after its first poll.
 * Method: both, with few branches and with many. */
TEST(select_dropped_drops_its_branches)
{
    static struct child children[MANY];
    static pirn_branch branches[MANY];

    for (int step = 0; step < 4; step++) {
        size_t count = step < 2 ? 5 : MANY;
        pirn_select_op op;
        poller p = {.fut = &op.future};

        children_init(children, branches, count);
        branches[1].keep = true;
        branches[2].off = true;
        pirn_select_init(&op, branches, count);
        if (step % 2 == 1)
            EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
        poller_drop_raced(&p);
        EXPECT_EQ((int)count - 2, children_drops(children, count));
        EXPECT_EQ(0, children[1].drops);
        EXPECT_EQ(0, children[2].drops);
        pirn_branches_drop(branches, count);
        pirn_branches_drop(branches, count);
        EXPECT_EQ((int)count, children_drops(children, count));
        EXPECT_EQ(0, poller_wakers(&p));
    }
}

/* Goal: a race keeps nothing.
 * Method: a kept branch loses; one is in the way of a race that is dropped. */
TEST(select_race_drops_every_loser)
{
    struct child children[2];
    pirn_branch branches[2];
    pirn_select_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, 2);
    branches[0].keep = true;
    pirn_race_init(&op, branches, 2);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    child_fire(&children[1]);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(1, op.index);
    EXPECT_EQ(1, children[0].drops);

    children_init(children, branches, 2);
    branches[0].keep = true;
    pirn_race_init(&op, branches, 2);
    pirn_future_drop(&op.future);
    EXPECT_EQ(2, children_drops(children, 2));
}

/* Goal: a result without a taker is discarded by the branch that has it.
 * Method: discard the select, twice. */
TEST(select_discarded_discards_the_winner)
{
    struct child children[2];
    pirn_branch branches[2];
    pirn_select_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, 2);
    children[0].ready = true;
    pirn_select_init(&op, branches, 2);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    pirn_future_discard(&op.future);
    EXPECT_EQ(1, children[0].discards);
    EXPECT_EQ(0, children[1].discards);
    pirn_branches_discard(branches, 2);
    EXPECT_EQ(1, children[0].discards);
}

/* Goal: a dump names what is waited for.
 * Method: describe, before and after one has been taken out. */
TEST(select_describes_its_branches)
{
    struct child children[2];
    pirn_branch branches[2];
    char buf[40] = "";
    pirn_text text = {.buf = buf, .size = sizeof buf};
    pirn_select_op op;

    children_init(children, branches, 2);
    pirn_select_init(&op, branches, 2);
    pirn_future_describe(&op.future, &text);
    EXPECT_STR_EQ("select(child, child)", buf);
    pirn_future_drop(&op.future);
    text.len = 0;
    pirn_race_init(&op, branches, 2);
    pirn_future_describe(&op.future, &text);
    EXPECT_STR_EQ("race()", buf);
}

/* Goal: with many branches a wake costs the poll of the one that was woken.
 * Method: count polls; a second wake before the poll costs nothing more. */
TEST(select_of_many_polls_only_what_was_woken)
{
    static struct child children[MANY];
    static pirn_branch branches[MANY];
    pirn_select_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, MANY);
    pirn_select_init(&op, branches, MANY);
    EXPECT_EQ(PIRN_PENDING, poller_poll_raced(&p));
    EXPECT_EQ(MANY, children_polls(children, MANY));
    EXPECT_EQ(PIRN_PENDING, poller_poll_raced(&p));
    EXPECT_EQ(MANY, children_polls(children, MANY));
    pirn_waker_wake_by_ref(&children[70].waker);
    pirn_waker_wake_by_ref(&children[70].waker);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(PIRN_PENDING, poller_poll_raced(&p));
    EXPECT_EQ(MANY + 1, children_polls(children, MANY));
    EXPECT_EQ(2, children[70].polls);
    child_fire(&children[3]);
    EXPECT_EQ(2, p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(3, op.index);
    EXPECT_EQ(MANY - 1, children_drops(children, MANY));
}

/* Goal: without memory for that, all are polled, and nothing else changes.
 * Method: an allocator that has none. */
TEST(select_of_many_without_memory_polls_all)
{
    static struct child children[MANY];
    static pirn_branch branches[MANY];
    struct pirn__home home;
    struct pirn__turn turn = poor_turn(&home);
    pirn_select_op op;
    poller p = {.fut = &op.future, .turn = &turn};

    children_init(children, branches, MANY);
    pirn_select_init(&op, branches, MANY);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    child_fire(&children[70]);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(70, op.index);
}

/* Goal: a copy of a branch's waker that somebody still holds when the select is
 * gone does nothing.
 * Method: copies are taken out, used and dropped after the end. */
TEST(select_of_many_may_be_gone_when_a_branch_is_woken)
{
    static struct child children[MANY];
    static pirn_branch branches[MANY];
    pirn_waker first, second;
    poller p = {0};
    pirn_select_op op;

    p.fut = &op.future;
    children_init(children, branches, MANY);
    pirn_select_init(&op, branches, MANY);
    EXPECT_EQ(PIRN_PENDING, poller_poll_raced(&p));
    first = pirn_waker_clone(&children[20].waker);
    second = pirn_waker_clone(&children[21].waker);
    poller_drop(&p);
    memset(&op, 0xa5, sizeof op);
    pirn_waker_wake_by_ref(&first);
    pirn_waker_wake(second);
    pirn_waker_drop(first);
    EXPECT_EQ(0, p.wakes);
}

/* Goal: the straight-line calls on a plain thread.
 * Method: a winner; a deadline that has passed, which drops all but what is
 * kept. */
TEST(select_called_on_a_plain_thread_waits_there)
{
    struct child children[3];
    pirn_branch branches[3];

    children_init(children, branches, 3);
    children[2].ready = true;
    EXPECT_EQ(2, pirn_select(branches, 3, PIRN_NEVER));
    children_init(children, branches, 3);
    children[1].ready = true;
    children[2].ready = true;
    EXPECT_EQ(1, pirn_select_biased(branches, 3, PIRN_NEVER));
    children_init(children, branches, 3);
    branches[0].keep = true;
    EXPECT_EQ(-ETIMEDOUT, pirn_select(branches, 3, PIRN_EXPIRED));
    EXPECT_EQ(2, children_drops(children, 3));
    EXPECT_PTR_EQ(&children[0].future, branches[0].future);
    EXPECT_EQ(-ETIMEDOUT, pirn_race(branches, 3, PIRN_EXPIRED));
    EXPECT_EQ(3, children_drops(children, 3));
}

static enum pirn_poll calling_poll(pirn_future *self, pirn_cx *cx)
{
    struct child child;
    pirn_branch branch = PIRN_BRANCH(&child);

    (void)self;
    (void)cx;
    child_init(&child);
    child.ready = true;
    EXPECT_EQ(-EDEADLK, pirn_select(&branch, 1, PIRN_NEVER));
    EXPECT_EQ(1, child.drops);
    return PIRN_READY;
}

/* Goal: inside a poll the straight-line call refuses, and the branches have
 * been dropped.
 * Method: a future whose poll calls it. */
TEST(select_called_inside_a_poll_is_refused)
{
    static const pirn_future_ops ops = {.poll = calling_poll};
    pirn_future future = {&ops};
    poller p = {.fut = &future};

    EXPECT_EQ(PIRN_READY, poller_poll(&p));
}
