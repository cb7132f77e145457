/* SPDX-License-Identifier: MIT */
/* src/scope/wakeset_test.c - the set of woken children, by itself. */
#include "scope/wakeset.h"

#include <string.h>

#include "engine/poller.h"
#include "task/local.h"

enum { CHILDREN = 130 };

/* The indices that a round hands out, as a string of marks; how many. */
static size_t round_into(struct pirn__wakeset *set, size_t start, char *marks)
{
    pirn_waker nobody = {0};
    pirn_cx cx = pirn_cx_of_waker(&nobody);
    struct pirn__round round = pirn__round_begin(set, CHILDREN, start);
    size_t count = 0;
    size_t index;
    pirn_cx child;

    memset(marks, 0, CHILDREN);
    while (pirn__round_next(&round, &cx, &child, &index)) {
        EXPECT(index < CHILDREN);
        marks[index]++;
        count++;
    }
    return count;
}

/* Goal: a new set hands out every child once, wherever the round begins, and
 * then none.
 * Method: all starts; the same without a set, where it is all each time. */
TEST(wakeset_new_hands_out_every_child_once)
{
    char marks[CHILDREN];

    for (size_t start = 0; start < CHILDREN; start++) {
        struct pirn__wakeset *set = pirn__wakeset_new(CHILDREN, NULL);

        EXPECT_EQ(CHILDREN, round_into(set, start, marks));
        for (size_t i = 0; i < CHILDREN; i++)
            EXPECT_EQ(1, marks[i]);
        EXPECT_EQ(0, round_into(set, start, marks));
        pirn__wakeset_close(set);
        EXPECT_EQ(CHILDREN, round_into(NULL, start, marks));
        for (size_t i = 0; i < CHILDREN; i++)
            EXPECT_EQ(1, marks[i]);
    }
}

/* Goal: the round begins at its start.
 * Method: the first index of a full set. */
TEST(wakeset_round_begins_where_it_should)
{
    pirn_waker nobody = {0};
    pirn_cx cx = pirn_cx_of_waker(&nobody);

    for (size_t start = 0; start < CHILDREN; start++) {
        struct pirn__wakeset *set = pirn__wakeset_new(CHILDREN, NULL);
        struct pirn__round round = pirn__round_begin(set, CHILDREN, start);
        size_t index;
        pirn_cx child;

        EXPECT(pirn__round_next(&round, &cx, &child, &index));
        EXPECT_EQ(start, index);
        pirn__wakeset_close(set);
    }
}

/* Goal: a wake marks its child and wakes the parent once until the next poll.
 * Method: wakes of two children, before and after arming. */
TEST(wakeset_wake_marks_the_child_and_wakes_the_parent_once)
{
    struct pirn__wakeset *set = pirn__wakeset_new(CHILDREN, NULL);
    char marks[CHILDREN];
    poller p = {0};
    pirn_waker waker = poller_waker(&p);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    (void)round_into(set, 0, marks);
    pirn__wakeset_wake(set, 129);
    EXPECT_EQ(0, p.wakes);
    EXPECT_EQ(1, round_into(set, 5, marks));
    EXPECT_EQ(1, marks[129]);

    pirn__wakeset_arm(set, &cx);
    pirn__wakeset_arm(set, &cx);
    EXPECT_EQ(1, p.wakers);
    EXPECT_EQ(1, poller_clones(&p));
    pirn__wakeset_wake(set, 64);
    pirn__wakeset_wake(set, 64);
    pirn__wakeset_wake(set, 63);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(0, p.wakers);
    EXPECT_EQ(2, round_into(set, 5, marks));
    EXPECT_EQ(1, marks[63]);
    EXPECT_EQ(1, marks[64]);

    pirn__wakeset_arm(set, &cx);
    pirn__wakeset_close(set);
    EXPECT_EQ(0, p.wakers);
    EXPECT_EQ(1, p.wakes);
}

/* Goal: a round that is left early loses nothing.
 * Method: leave it after each child in turn; the next rounds see the rest. */
TEST(wakeset_round_left_early_keeps_the_rest_woken)
{
    pirn_waker nobody = {0};
    pirn_cx cx = pirn_cx_of_waker(&nobody);
    char seen[CHILDREN] = {0};
    struct pirn__wakeset *set = pirn__wakeset_new(CHILDREN, NULL);

    for (size_t i = 0; i < CHILDREN; i++) {
        struct pirn__round round = pirn__round_begin(set, CHILDREN, i * 7 % 130);
        size_t index;
        pirn_cx child;

        EXPECT(pirn__round_next(&round, &cx, &child, &index));
        pirn__round_end(&round);
        EXPECT_EQ(0, seen[index]);
        seen[index] = 1;
    }
    pirn__wakeset_close(set);
}

/* Goal: few children have no set, nor have those of a plain thread.
 * Method: at the limit and above; a thread that would park. */
TEST(wakeset_for_few_children_or_a_plain_thread_is_none)
{
    pirn_waker nobody = {0};
    pirn_cx cx = pirn_cx_of_waker(&nobody);
    struct pirn__wakeset *set =
        pirn__wakeset_for(6, 5, &cx);
    struct pirn__turn turn = {.parker = (struct pirn__parker *)(void *)&set};

    EXPECT_PTR_EQ(NULL, pirn__wakeset_for(5, 5, &cx));
    cx.turn_ = &turn;
    EXPECT_PTR_EQ(NULL, pirn__wakeset_for(6, 5, &cx));
    EXPECT(set != NULL);
    pirn__wakeset_close(set);
    pirn__wakeset_close(NULL);
}
