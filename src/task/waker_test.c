/* SPDX-License-Identifier: MIT */
/* src/task/waker_test.c - the generic operations on a recording waker, and the
 * waker of a task. */
#include "task/lab_test.h"

#include <pthread.h>

#include "task/await.h"
#include "task/waker.h"

/* Goal: the empty waker does nothing, in any operation.
 * Method: all of them. */
TEST(waker_empty_does_nothing)
{
    pirn_waker empty = {0};
    pirn_waker copy = pirn_waker_clone(&empty);

    EXPECT_PTR_EQ(NULL, copy.ops);
    pirn_waker_wake_by_ref(&empty);
    pirn_waker_wake(empty);
    pirn_waker_drop(empty);
    EXPECT(pirn_waker_same(&empty, &copy));
    copy = pirn_waker_take(&empty);
    EXPECT_PTR_EQ(NULL, copy.ops);
}

/* Goal: a foreign waker is cloned, woken and dropped through its own table,
 * each once per call.
 * Method: a poller's, which counts. */
TEST(waker_foreign_is_called_through_its_table)
{
    poller p = {0};
    pirn_waker waker = poller_waker(&p);
    pirn_waker copy = pirn_waker_clone(&waker);

    EXPECT_EQ(1, p.wakers);
    pirn_waker_wake_by_ref(&copy);
    EXPECT_EQ(1, p.wakes);
    EXPECT_EQ(1, p.wakers);
    pirn_waker_wake(copy);
    EXPECT_EQ(2, p.wakes);
    EXPECT_EQ(0, p.wakers);
    copy = pirn_waker_clone(&waker);
    pirn_waker_drop(copy);
    EXPECT_EQ(2, p.wakes);
    EXPECT_EQ(0, p.wakers);
}

/* Goal: store clones only what differs and hands the old one out; take empties.
 * Method: store twice from one context, then from another. */
TEST(waker_store_clones_only_what_differs)
{
    poller a = {0}, b = {0};
    pirn_waker of_a = poller_waker(&a), of_b = poller_waker(&b);
    pirn_cx cx_a = pirn_cx_of_waker(&of_a), cx_b = pirn_cx_of_waker(&of_b);
    pirn_waker slot = {0};

    pirn_waker_drop(pirn_waker_store(&slot, &cx_a));
    EXPECT(pirn_waker_same(&slot, &of_a));
    EXPECT_EQ(1, a.wakers);
    pirn_waker_drop(pirn_waker_store(&slot, &cx_a));
    EXPECT_EQ(1, a.wakers);
    EXPECT_EQ(1, poller_clones(&a));
    pirn_waker_drop(pirn_waker_store(&slot, &cx_b));
    EXPECT_EQ(0, a.wakers);
    EXPECT_EQ(1, b.wakers);
    EXPECT(!pirn_waker_same(&slot, &of_a));
    pirn_waker_drop(pirn_waker_take(&slot));
    EXPECT_PTR_EQ(NULL, slot.ops);
    EXPECT_EQ(0, b.wakers);
}

/* Goal: under a lock a foreign waker is not cloned but asked for, and a task's
 * own is; what is left over comes back.
 * Method: place both in slots that are empty, that hold the same, and that hold
 * another, with and without a spare. */
TEST(waker_place_asks_for_a_foreign_clone)
{
    struct script script = {.on_poll = script_wait_once};
    poller p = {0};
    pirn_waker of_p = poller_waker(&p);
    pirn_waker slot = {0}, spare = {0}, of_task;
    pirn_cx foreign = pirn_cx_of_waker(&of_p), own;
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT(lab_run(&lab));
    of_task = script.waker;
    own = pirn_cx_of_waker(&of_task);

    EXPECT(!pirn__waker_place(&slot, &foreign, &spare));
    EXPECT_EQ(0, p.wakers);
    spare = pirn_waker_clone(&of_p);
    EXPECT(pirn__waker_place(&slot, &foreign, &spare));
    EXPECT_PTR_EQ(NULL, spare.ops);
    EXPECT(pirn__waker_place(&slot, &foreign, &spare));
    EXPECT_PTR_EQ(NULL, spare.ops);
    EXPECT_EQ(1, p.wakers);
    EXPECT(pirn__waker_place(&slot, &own, &spare));
    EXPECT(pirn_waker_same(&spare, &of_p));
    EXPECT(pirn_waker_same(&slot, &of_task));
    EXPECT(pirn__waker_place(&slot, &own, &spare));
    EXPECT(pirn_waker_same(&spare, &of_p));
    pirn_waker_drop(spare);
    pirn_waker_drop(slot);
    EXPECT_EQ(0, p.wakers);

    script_wake(&script);
    EXPECT(lab_run(&lab));
    lab_finish(&lab);
}

enum { LENT = PIRN__LOAN + 10 };

/* Takes more references than the loan has, and gives all but one back in the
 * next poll, which is the last. */
static enum pirn_poll borrow_and_give(struct script *script, pirn_cx *cx)
{
    pirn_waker *wakers = script->arg;

    if (script->polls == 1) {
        for (size_t i = 0; i < LENT; i++)
            wakers[i] = pirn__waker_get(cx);
        pirn_waker_wake_by_ref(cx->waker);
        return PIRN_PENDING;
    }
    for (size_t i = 1; i < LENT; i++)
        pirn__waker_give(wakers[i]);
    return PIRN_READY;
}

/* Goal: wakers that a poll gets and gives are references like others, however
 * many, and whichever poll gives them back.
 * Method: as above; the cell lives until the last one is dropped. */
TEST(waker_got_in_one_poll_is_given_in_another)
{
    pirn_waker wakers[LENT];
    struct script script = {.on_poll = borrow_and_give, .arg = wakers};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT_EQ(2, lab_run_all(&lab));
    EXPECT_EQ(0, pirn__group_read(&lab.group).live);
    pirn__waker_give(wakers[0]);
    lab_finish(&lab);
}

/* Goal: any number of wakes before the next poll make one poll, also during a
 * poll; a wake after the end does nothing.
 * Method: the waker of a task, woken in every moment. */
TEST(waker_of_a_task_makes_one_poll_of_many_wakes)
{
    struct script script = {.on_poll = script_wait_once};
    struct lab lab;
    pirn_waker late;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT(lab_run(&lab));
    late = pirn_waker_clone(&script.waker);
    for (int i = 0; i < 10; i++)
        pirn_waker_wake_by_ref(&script.waker);
    EXPECT_EQ(1, lab.submits);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(2, script.polls);
    pirn_waker_wake_by_ref(&late);
    pirn_waker_wake(late);
    EXPECT_EQ(1, lab.submits);
    EXPECT_EQ(0, lab_run_all(&lab));
    lab_finish(&lab);
}

static enum pirn_poll wake_in_poll(struct script *script, pirn_cx *cx)
{
    if (script->polls == 3)
        return PIRN_READY;
    for (int i = 0; i < 10; i++)
        pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: a task that wakes itself during its poll runs exactly once more.
 * Method: ten wakes in each of two polls. */
TEST(waker_of_a_task_woken_in_its_poll_makes_one_more)
{
    struct script script = {.on_poll = wake_in_poll};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT_EQ(3, lab_run_all(&lab));
    EXPECT_EQ(3, script.polls);
    lab_finish(&lab);
}

static enum pirn_poll wake_and_yield_in_poll(struct script *script, pirn_cx *cx)
{
    const struct pirn__turn *turn = cx->turn_;

    if (script->polls == 2)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    EXPECT(!pirn__turn_is_deferred(turn));
    pirn__turn_defer(cx, PIRN__DEFER_TO_EVENTS);
    pirn_waker_wake_by_ref(cx->waker);
    EXPECT_EQ(PIRN__DEFER_TO_EVENTS, turn->deferred);
    return PIRN_PENDING;
}

/* Goal: a task that yields and wakes itself yields. */
TEST(waker_of_a_task_that_yields_changes_nothing)
{
    struct script script = {.on_poll = wake_and_yield_in_poll};
    struct lab lab;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT_EQ(2, lab_run_all(&lab));
    lab_finish(&lab);
}

/* Goal: a task's own waker takes no allocation; a clone keeps its cell, and the
 * last one gives it back, also long after the end.
 * Method: count allocations and cells. */
TEST(waker_of_a_task_keeps_the_cell_and_allocates_nothing)
{
    struct script script = {.on_poll = script_wait_once};
    struct pirn__slab_stats stats;
    struct lab lab;
    pirn_waker wakers[8];
    pirn_task_id id;
    int calls;

    lab_begin(&lab);
    id = lab_spawn_loose(&lab, &script);
    EXPECT(lab_run(&lab));
    calls = lab.calls;
    for (int i = 0; i < 8; i++)
        wakers[i] = pirn_waker_clone(&script.waker);
    EXPECT(pirn_waker_same(&wakers[0], &wakers[7]));
    EXPECT_EQ(calls, lab.calls);
    script_wake(&script);
    EXPECT(lab_run(&lab));
    for (int i = 0; i < 8; i++) {
        enum pirn_task_state state;

        EXPECT_EQ(0, pirn_id_state(id, &state));
        EXPECT_EQ(PIRN_TASK_DONE, state);
        pirn__slabs_stats(&lab.slabs, &stats);
        EXPECT_EQ(1, stats.cells_out);
        pirn_waker_drop(wakers[i]);
    }
    pirn__slabs_stats(&lab.slabs, &stats);
    EXPECT_EQ(0, stats.cells_out);
    lab_finish(&lab);
}

/* What nothing may suspend means, seen from inside a callback. */
static int suspends_refused;

static void try_to_suspend(void)
{
    suspends_refused += pirn__may_suspend() == -EDEADLK;
    suspends_refused += pirn_yield() == -EDEADLK;
}

static pirn_waker nosy_clone(const pirn_waker *self)
{
    try_to_suspend();
    return *self;
}

static void nosy_wake(pirn_waker self)
{
    (void)self;
    try_to_suspend();
}

static void nosy_wake_by_ref(const pirn_waker *self)
{
    (void)self;
    try_to_suspend();
}

/* Goal: nothing may suspend inside a waker's own functions, and it may again
 * afterwards.
 * Method: a waker whose four functions try. */
TEST(waker_callbacks_may_not_suspend)
{
    static const pirn_waker_ops ops = {
        .clone = nosy_clone,
        .wake = nosy_wake,
        .wake_by_ref = nosy_wake_by_ref,
        .drop = nosy_wake,
    };
    pirn_waker waker = {.ops = &ops};

    suspends_refused = 0;
    pirn_waker_wake_by_ref(&waker);
    pirn_waker_wake(pirn_waker_clone(&waker));
    pirn_waker_drop(waker);
    EXPECT_EQ(8, suspends_refused);
    EXPECT_EQ(0, pirn__may_suspend());
    EXPECT_EQ(0, pirn_yield());
}

/* Threads. */

struct many {
    struct script *script;
    size_t rounds;
};

static void *wake_clones(void *arg)
{
    struct many *many = arg;
    pirn_waker waker = pirn_waker_clone(many->script->arg);

    for (size_t i = 0; i < many->rounds; i++) {
        pirn_waker copy = pirn_waker_clone(&waker);

        if (i % 2 == 0)
            pirn_waker_drop(copy);
        else
            pirn_waker_wake(copy);
    }
    pirn_waker_drop(waker);
    return NULL;
}

/* Goal: wakers are counted right when many threads clone, wake and drop them
 * after the end of the task.
 * Method: three threads on a finished task; the cell goes with the last. */
TEST(waker_of_an_ended_task_is_safe_from_many_threads)
{
    enum { THREADS = 3 };
    struct script script = {.on_poll = script_wait_once};
    struct many many = {&script, test_size(1000, 20000, 1000000)};
    struct pirn__slab_stats stats;
    pthread_t threads[THREADS];
    struct lab lab;
    pirn_waker keeper;

    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT(lab_run(&lab));
    keeper = pirn_waker_clone(&script.waker);
    script.arg = &keeper;
    script_wake(&script);
    EXPECT(lab_run(&lab));
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, wake_clones, &many) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pirn__slabs_stats(&lab.slabs, &stats);
    EXPECT_EQ(1, stats.cells_out);
    pirn_waker_drop(keeper);
    EXPECT_EQ(1, lab.submits);
    lab_finish(&lab);
}
