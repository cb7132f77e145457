/* SPDX-License-Identifier: MIT */
/* src/scope/join_all_test.c - all of several futures.  The children are made
 * ready by the test, and the operation is polled by hand. */
#include "scope/children_test.h"

#include <pirn/fiber.h>
#include <pirn/time.h>

#include "scope/wakeset.h"

enum { MANY = 300 };
_Static_assert(MANY > 2 * PIRN__COOP_BUDGET, "more than one poll can pay for");

/* Goal: it ends with the last, and each outcome is in its branch.
 * Method: three children, ready one after the other, one with a failure. */
TEST(join_all_ends_when_all_have_ended)
{
    struct child children[3];
    pirn_branch branches[3];
    pirn_join_all_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, 3);
    children[0].outcome = 10;
    children[1].outcome = -EPIPE;
    pirn_join_all_init(&op, branches, 3);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    child_fire(&children[1]);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT(branches[1].ended);
    child_fire(&children[2]);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(2, children[1].polls);
    child_fire(&children[0]);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(0, op.rc);
    EXPECT_EQ(0, pirn_future_outcome(&op.future));
    EXPECT_EQ(10, branches[0].outcome);
    EXPECT_EQ(-EPIPE, branches[1].outcome);
    EXPECT_EQ(0, children_drops(children, 3));
    pirn_future_discard(&op.future);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(1, children[i].discards);
}

/* Goal: the first failure ends it and drops the rest; successes are kept for
 * the caller.
 * Method: a success, then a failure; one kept, one not. */
TEST(join_all_that_tries_ends_with_the_first_failure)
{
    struct child children[4];
    pirn_branch branches[4];
    pirn_join_all_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, 4);
    children[1].outcome = -EPIPE;
    branches[3].keep = true;
    pirn_try_join_all_init(&op, branches, 4);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    child_fire(&children[0]);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    child_fire(&children[1]);
    EXPECT_EQ(PIRN_READY, poller_poll_raced(&p));
    EXPECT_EQ(-EPIPE, op.rc);
    EXPECT_EQ(0, children[0].discards);
    EXPECT(branches[0].ended);
    EXPECT_EQ(1, children[2].drops);
    EXPECT_PTR_EQ(NULL, branches[2].future);
    EXPECT_EQ(0, children[3].drops);

    /* Called again over what is left, it still knows of the failure. */
    pirn_try_join_all_init(&op, branches, 4);
    p.fut = &op.future;
    EXPECT_EQ(PIRN_READY, poller_poll_raced(&p));
    EXPECT_EQ(-EPIPE, op.rc);
    pirn_branches_drop(branches, 4);
    pirn_branches_discard(branches, 4);
    EXPECT_EQ(1, children[0].discards);
    EXPECT_EQ(1, children[1].discards);
    EXPECT_EQ(1, children[3].drops);
    EXPECT_EQ(0, poller_wakers(&p));
}

/* Goal: all well, a join that tries is a join.
 * Method: all ready at once. */
TEST(join_all_that_tries_ends_when_all_have_succeeded)
{
    struct child children[3];
    pirn_branch branches[3];

    children_init(children, branches, 3);
    for (int i = 0; i < 3; i++)
        children[i].ready = true;
    EXPECT_EQ(0, pirn_try_join_all(branches, 3, PIRN_NEVER));
    children_init(children, branches, 3);
    for (int i = 0; i < 3; i++)
        children[i].ready = true;
    children[2].outcome = -EPIPE;
    EXPECT_EQ(-EPIPE, pirn_try_join_all(branches, 3, PIRN_NEVER));
}

/* Goal: nothing to wait for is the end; an array that cannot be is refused.
 * Method: no branch, none that is on, NULL. */
TEST(join_all_of_nothing_ends_at_once)
{
    struct child child;
    pirn_branch branch = PIRN_BRANCH(&child);
    pirn_join_all_op op;
    poller p = {.fut = &op.future};

    child_init(&child);
    branch.off = true;
    EXPECT_EQ(0, pirn_join_all(NULL, 0, PIRN_NEVER));
    EXPECT_EQ(0, pirn_try_join_all(&branch, 1, PIRN_NEVER));
    EXPECT_EQ(0, child.polls);
    EXPECT_EQ(-EINVAL, pirn_join_all(NULL, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, pirn_try_join_all(&branch, SIZE_MAX, PIRN_NEVER));
    pirn_join_all_init(&op, NULL, 1);
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
    EXPECT_EQ(-EINVAL, op.rc);
    pirn_join_all_init(&op, NULL, 1);
    pirn_future_drop(&op.future);
}

/* Goal: a deadline leaves the results that are there with the caller, drops the
 * rest but for what is kept, and the kept ones can be waited for again.
 * Method: the straight-line call, twice. */
TEST(join_all_that_times_out_hands_back_what_has_ended)
{
    struct child children[3];
    pirn_branch branches[3];

    children_init(children, branches, 3);
    children[0].ready = true;
    children[0].outcome = 5;
    branches[2].keep = true;
    EXPECT_EQ(-ETIMEDOUT, pirn_join_all(branches, 3, PIRN_EXPIRED));
    EXPECT(branches[0].ended);
    EXPECT_EQ(5, branches[0].outcome);
    EXPECT_EQ(0, children[0].discards);
    EXPECT_EQ(1, children[1].drops);
    EXPECT_EQ(0, children[2].drops);
    child_fire(&children[2]);
    EXPECT_EQ(0, pirn_join_all(branches, 3, PIRN_EXPIRED));
    EXPECT(branches[2].ended);
    EXPECT_EQ(1, children[0].polls);
}

/* Goal: the operation that is dropped leaves nothing: the waiting ones are
 * dropped, the results of the others discarded.
 * Method: few branches and many, before the first poll and after. */
TEST(join_all_dropped_discards_the_results_it_has)
{
    static struct child children[MANY];
    static pirn_branch branches[MANY];

    for (int step = 0; step < 4; step++) {
        size_t count = step < 2 ? 4 : MANY;
        pirn_join_all_op op;
        poller p = {.fut = &op.future};

        children_init(children, branches, count);
        children[1].ready = true;
        pirn_join_all_init(&op, branches, count);
        if (step % 2 == 1)
            EXPECT_EQ(PIRN_PENDING, poller_poll_raced(&p));
        poller_drop(&p);
        EXPECT_EQ(step % 2, children[1].discards);
        EXPECT_EQ((int)count - step % 2, children_drops(children, count));
    }
}

/* Goal: more children than there is budget are all polled in the first poll,
 * for those that wait cost none; those that are ready take their turns.
 * Method: with and without memory for a wake set. */
static void join_many(struct pirn__turn *turn)
{
    static struct child children[MANY];
    static pirn_branch branches[MANY];
    pirn_join_all_op op;
    poller p = {.fut = &op.future, .turn = turn};
    int turns = 0;

    children_init(children, branches, MANY);
    pirn_join_all_init(&op, branches, MANY);
    EXPECT_EQ(PIRN_PENDING, poller_poll_raced(&p));
    for (int i = 0; i < MANY; i++)
        EXPECT_EQ(1, children[i].full_polls);
    EXPECT_EQ(PIRN__COOP_BUDGET - 1, turn->budget);
    EXPECT(!turn->deferred);
    for (int i = 0; i < MANY; i++)
        child_fire(&children[i]);
    do {
        turn->budget = PIRN__COOP_BUDGET;
        turns++;
    } while (poller_poll_raced(&p) == PIRN_PENDING);
    EXPECT_EQ(0, op.rc);
    EXPECT_EQ(3, turns);
    EXPECT_EQ(0, poller_wakers(&p));
}

TEST(join_all_of_more_branches_than_budget_polls_them_all)
{
    struct pirn__turn turn = {.budget = PIRN__COOP_BUDGET};
    struct pirn__home home;
    struct pirn__turn poor;

    join_many(&turn);
    poor = poor_turn(&home);
    join_many(&poor);
}

/* Goal: with many branches a wake costs the poll of the one that was woken.
 * Method: count polls. */
TEST(join_all_of_many_polls_only_what_was_woken)
{
    static struct child children[MANY];
    static pirn_branch branches[MANY];
    pirn_join_all_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, MANY);
    pirn_join_all_init(&op, branches, MANY);
    EXPECT_EQ(PIRN_PENDING, poller_poll_raced(&p));
    for (int i = 0; i < MANY; i++) {
        child_fire(&children[i]);
        EXPECT_EQ(i == MANY - 1 ? PIRN_READY : PIRN_PENDING,
                  poller_poll_raced(&p));
    }
    EXPECT_EQ(2 * MANY, children_polls(children, MANY));
    EXPECT_EQ(0, poller_wakers(&p));
}

/* Goal: a child that eats the whole budget each time does not starve those
 * behind it.
 * Method: it stands first; the second needs budget. */
TEST(join_all_with_a_greedy_branch_polls_the_others_too)
{
    struct pirn__turn turn = {.budget = PIRN__COOP_BUDGET};
    struct child children[3];
    pirn_branch branches[3];
    pirn_join_all_op op;
    poller p = {.fut = &op.future, .turn = &turn};

    children_init(children, branches, 3);
    children[0].greedy = true;
    pirn_join_all_init(&op, branches, 3);
    for (int i = 0; i < 2; i++) {
        turn.budget = PIRN__COOP_BUDGET;
        EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    }
    EXPECT(children[1].full_polls > 0);
    EXPECT(children[2].full_polls > 0);
    poller_drop(&p);
}

/* Goal: without budget it waits for the next turn, which comes by itself.
 * Method: no budget at the first poll. */
TEST(join_all_without_budget_waits_a_turn)
{
    struct pirn__turn turn = {.budget = 0};
    struct child child;
    pirn_branch branch = PIRN_BRANCH(&child);
    pirn_join_all_op op;
    poller p = {.fut = &op.future, .turn = &turn};

    child_init(&child);
    child.ready = true;
    child.unbudgeted = true;
    pirn_join_all_init(&op, &branch, 1);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    EXPECT_EQ(0, child.polls);
    EXPECT_EQ(1, p.wakes);
    turn.budget = 2;
    EXPECT_EQ(PIRN_READY, poller_poll(&p));
}

/* Goal: a dump says how many, and names those that still wait.
 * Method: one of two has ended. */
TEST(join_all_describes_who_still_waits)
{
    struct child children[2];
    pirn_branch branches[2];
    char buf[40] = "";
    pirn_text text = {.buf = buf, .size = sizeof buf};
    pirn_join_all_op op;
    poller p = {.fut = &op.future};

    children_init(children, branches, 2);
    children[0].ready = true;
    pirn_join_all_init(&op, branches, 2);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&p));
    pirn_future_describe(&op.future, &text);
    EXPECT_STR_EQ("join of 2 (child)", buf);
    poller_drop(&p);
}
