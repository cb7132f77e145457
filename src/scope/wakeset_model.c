/* SPDX-License-Identifier: MIT */
/* src/scope/wakeset_model.c - wakes of children against the polls and the end of
 * their parent. */
#include "scope/wakeset.h"

#include "engine/model_home.h"

enum { CHILDREN = 3 }; /* two words of bits in the model build */

static struct model_home model;
static struct model_bell bell;
static struct pirn__wakeset *set;

static pirn_waker child_wakers[CHILDREN];

/* A set for all children, of which none is woken, and a waker of each. */
static void begin(void)
{
    pirn_waker nobody = {0};
    pirn_cx cx = pirn_cx_of_waker(&nobody);
    struct pirn__round round;
    size_t index;
    pirn_cx child;

    model_home_begin(&model);
    set = pirn__wakeset_new(CHILDREN, &model.home);
    EXPLORE_CHECK(set != NULL);
    round = pirn__round_begin(set, CHILDREN, 0);
    while (pirn__round_next(&round, &cx, &child, &index))
        child_wakers[index] = pirn_waker_clone(child.waker);
}

static void finish(void)
{
    EXPLORE_CHECK(model_bell_wakers(&bell) == 0);
    model_home_finish(&model);
    EXPLORE_CHECK(pirn__load(&model.home.refs, relaxed) == 1);
}

/* What two wakers have to tell, relaxed: only the wake can hand it over. */
static PIRN_ATOMIC(int) news[2];
static bool seen[2];
static int rings_before; /* the parent's last poll */

static void tell_first(void *arg)
{
    (void)arg;
    pirn__store(&news[0], 1, relaxed);
    pirn_waker_wake(child_wakers[0]);
}

static void tell_second_by_the_same_child(void *arg)
{
    (void)arg;
    pirn__store(&news[1], 1, relaxed);
    pirn_waker_wake(child_wakers[1]);
}

static void tell_second_by_another_child(void *arg)
{
    (void)arg;
    pirn__store(&news[1], 1, relaxed);
    pirn_waker_wake(child_wakers[2]);
}

/* One poll of the parent, in which a child that was woken looks at the news. */
static void poll_once(bool leaves_early)
{
    const pirn_waker waker = model_bell_waker(&bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);
    struct pirn__round round;
    size_t index;
    pirn_cx child;

    rings_before = pirn__load(&bell.rings, relaxed);
    pirn__wakeset_arm(set, &cx);
    round = pirn__round_begin(set, CHILDREN, 1);
    while (pirn__round_next(&round, &cx, &child, &index)) {
        for (int i = 0; i < 2; i++)
            seen[i] |= pirn__load(&news[i], relaxed) == 1;
        if (leaves_early)
            break;
    }
    pirn__round_end(&round);
}

static void poll_twice(void *arg)
{
    (void)arg;
    poll_once(false);
    poll_once(false);
}

static void poll_and_leave_early(void *arg)
{
    (void)arg;
    poll_once(true);
    poll_once(false);
}

/* Whatever the polls have not seen has rung for another one. */
static void check_nothing_lost(void)
{
    bool rang = pirn__load(&bell.rings, relaxed) > rings_before;

    EXPLORE_CHECK(rang || (seen[0] && seen[1]));
    pirn__wakeset_close(set);
    finish();
}

/* Goal: a wake is seen by the poll that takes its bit, with all that was written
 * before it, or wakes the parent again; two wakes of one child, of which one is
 * merged into the other. */
MODEL(wakeset_merged_wakes_hand_over, .preemptions = 3)
{
    begin();
    pirn_waker_drop(child_wakers[1]);
    child_wakers[1] = pirn_waker_clone(&child_wakers[0]);
    pirn_waker_drop(pirn_waker_take(&child_wakers[2]));
    explore_thread(tell_first, NULL);
    explore_thread(tell_second_by_the_same_child, NULL);
    explore_thread(poll_twice, NULL);
    explore_join();
    check_nothing_lost();
}

/* Goal: the same for two children in two words. */
MODEL(wakeset_wakes_of_two_children_are_kept, .preemptions = 3)
{
    begin();
    pirn_waker_drop(pirn_waker_take(&child_wakers[1]));
    explore_thread(tell_first, NULL);
    explore_thread(tell_second_by_another_child, NULL);
    explore_thread(poll_and_leave_early, NULL);
    explore_join();
    check_nothing_lost();
}

/* A child's waker, as an operation keeps it. */
static pirn_lock lock;
static pirn_waker slot; /* lock */

static pirn_waker take(void)
{
    pirn_waker waker;

    pirn__lock(&lock);
    waker = pirn_waker_take(&slot);
    pirn__unlock(&lock);
    return waker;
}

static void wake_the_child(void *arg)
{
    (void)arg;
    pirn_waker_wake(take());
}

static void end_the_parent(void *arg)
{
    (void)arg;
    pirn_waker_drop(take());
    pirn__wakeset_close(set);
}

/* Goal: whoever wakes a child may be late: the block is freed by the last, and
 * no waker of the parent is left.
 * Method: the explorer's heap sees a leak and a use after free. */
MODEL(wakeset_wake_against_the_end_of_the_parent,
      .preemptions = EXPLORE_UNBOUNDED)
{
    const pirn_waker waker = model_bell_waker(&bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    begin();
    pirn__wakeset_arm(set, &cx);
    slot = pirn_waker_take(&child_wakers[0]);
    for (int i = 1; i < CHILDREN; i++)
        pirn_waker_drop(child_wakers[i]);
    explore_thread(wake_the_child, NULL);
    explore_thread(end_the_parent, NULL);
    explore_join();
    finish();
}
