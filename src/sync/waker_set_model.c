/* SPDX-License-Identifier: MIT */
/* src/sync/waker_set_model.c - the parts for users' own futures between
 * threads, used as their headers say, with a condition that is ordered by
 * nothing else.
 */
#include <pirn/atomic_waker.h>
#include <pirn/waker_set.h>

#include "engine/model_home.h"

static struct model_bell bells[2];
static PIRN_ATOMIC(int) items;

/* One that waits. */

static pirn_atomic_waker slot;
static bool found;

static void look(struct model_bell *bell)
{
    const pirn_waker waker = model_bell_waker(bell);
    pirn_cx cx = pirn_cx_of_waker(&waker);

    pirn_atomic_waker_register(&slot, &cx);
    found = pirn__load(&items, relaxed) == 1;
}

static void look_twice(void *arg)
{
    (void)arg;
    look(&bells[0]);
    if (!found)
        look(&bells[1]); /* by another task */
}

static void set_and_wake(void *arg)
{
    (void)arg;
    pirn__store(&items, 1, relaxed);
    pirn_atomic_waker_wake(&slot);
}

/* Goal: who registers and finds nothing is woken by the latest waker. */
MODEL(atomic_waker_register_against_wake, .preemptions = 4)
{
    explore_thread(look_twice, NULL);
    explore_thread(set_and_wake, NULL);
    explore_join();
    EXPLORE_CHECK(found || model_bell_rang(&bells[1]));
    pirn_atomic_waker_deinit(&slot);
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    EXPLORE_CHECK(model_bell_wakers(&bells[1]) == 0);
}

/* Several that wait. */

static pirn_waker_set set;
static pirn_waiter waiters[2];
static bool took[2];

static void take(int index)
{
    const pirn_waker waker = model_bell_waker(&bells[index]);
    pirn_cx cx = pirn_cx_of_waker(&waker);
    int seen;

    pirn_waker_set_enter(&set, &waiters[index], &cx);
    seen = pirn__load(&items, relaxed);
    while (seen > 0 && !took[index])
        took[index] = pirn__cas(&items, &seen, seen - 1, relaxed, relaxed);
    if (took[index])
        pirn_waker_set_leave(&set, &waiters[index]);
}

static void take_of(void *arg)
{
    take(*(int *)arg);
}

static void put(void *arg)
{
    (void)arg;
    pirn__add(&items, 1, relaxed);
    pirn_waker_set_wake_one(&set);
}

/* After the join: who has been woken looks again, until nobody has. */
static void settle(void)
{
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++)
            if (!took[i] && model_bell_rang(&bells[i]))
                take(i);
}

static int numbers[2] = {0, 1};

/* Goal: as long as there are items, nobody waits.
 * Method: an item is there already and another one comes, while two take. */
MODEL(waker_set_two_items_for_two, .preemptions = 3, .stale = 2)
{
    pirn__store(&items, 1, relaxed);
    explore_thread(take_of, &numbers[0]);
    explore_thread(take_of, &numbers[1]);
    explore_thread(put, NULL);
    explore_join();
    settle();
    EXPLORE_CHECK(took[0] && took[1]);
    pirn_waker_set_deinit(&set);
}

static void leave_first(void *arg)
{
    (void)arg;
    pirn_waker_set_leave(&set, &waiters[0]);
}

/* Goal: a wake for one that gives up reaches the other. */
MODEL(waker_set_wake_against_leave, .preemptions = 4)
{
    take(0);
    take(1);
    explore_thread(put, NULL);
    explore_thread(leave_first, NULL);
    explore_join();
    EXPLORE_CHECK(model_bell_wakers(&bells[0]) == 0);
    EXPLORE_CHECK(model_bell_rang(&bells[1]));
    take(1);
    EXPLORE_CHECK(took[1]);
    pirn_waker_set_deinit(&set);
}
