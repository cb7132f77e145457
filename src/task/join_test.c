/* SPDX-License-Identifier: MIT */
/* src/task/join_test.c - waiting for the end of a task, polled by hand: the
 * waiter and the end in every order. */
#include "task/lab_test.h"

#include <pthread.h>

/* A waiter with its operation. */
struct waiter {
    pirn_join_op op;
    poller poller;
};

static void waiter_init(struct waiter *waiter, pirn_task *task)
{
    *waiter = (struct waiter){.poller.fut = &waiter->op.future};
    pirn_join_init(&waiter->op, task);
}

/* Goal: a join that waits is woken once, at the end, and has the outcome.
 * Method: poll, end the task, poll. */
TEST(join_is_woken_at_the_end_with_the_outcome)
{
    struct script script = {.on_poll = script_wait_once, .outcome = 7};
    struct waiter waiter;
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    waiter_init(&waiter, task);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&waiter.poller));
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, waiter.poller.wakes);
    script_wake(&script);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(1, waiter.poller.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&waiter.poller));
    EXPECT_EQ(0, waiter.op.rc);
    EXPECT_EQ(7, waiter.op.outcome);
    EXPECT_EQ(7, pirn_future_outcome(&waiter.op.future));
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* Goal: a join after the end is ready at once, for any number of askers.
 * Method: three of them, one after the other. */
TEST(join_after_the_end_is_ready_for_everybody)
{
    struct script script = {.outcome = -EIO};
    struct waiter waiter;
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    EXPECT(lab_run(&lab));
    for (int i = 0; i < 3; i++) {
        waiter_init(&waiter, task);
        EXPECT_EQ(PIRN_READY, poller_poll(&waiter.poller));
        EXPECT_EQ(0, waiter.op.rc);
        EXPECT_EQ(-EIO, waiter.op.outcome);
        EXPECT_EQ(-EIO, pirn_future_outcome(&waiter.op.future));
    }
    pirn_task_unref(task);
    EXPECT_EQ(0, lab.fails);
    lab_finish(&lab);
}

/* Goal: one waiter at a time; a second is told so and the first is not
 * disturbed; when the first gives up the next may wait.
 * Method: two waiters, the first dropped. */
TEST(join_by_two_at_once_is_busy)
{
    struct script script = {.on_poll = script_wait_once};
    struct waiter first, second;
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    EXPECT(lab_run(&lab));
    waiter_init(&first, task);
    waiter_init(&second, task);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&first.poller));
    EXPECT_EQ(PIRN_READY, poller_poll(&second.poller));
    EXPECT_EQ(-EBUSY, second.op.rc);
    EXPECT_EQ(-EBUSY, pirn_future_outcome(&second.op.future));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&first.poller));
    poller_drop(&first.poller);

    waiter_init(&second, task);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&second.poller));
    script_wake(&script);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, first.poller.wakes);
    EXPECT_EQ(1, second.poller.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&second.poller));
    EXPECT_EQ(0, second.op.rc);
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* Goal: a join may be given up at any point and loses nothing.
 * Method: drop it before its first poll, waiting, and woken but not polled; the
 * outcome then counts as unseen and reaches the hook. */
TEST(join_dropped_anywhere_loses_nothing)
{
    struct script script = {.on_poll = script_wait_once, .outcome = -EIO};
    struct waiter waiter;
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    waiter_init(&waiter, task);
    poller_drop(&waiter.poller);
    EXPECT(lab_run(&lab));
    waiter_init(&waiter, task);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&waiter.poller));
    poller_drop(&waiter.poller);
    waiter_init(&waiter, task);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&waiter.poller));
    script_wake(&script);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(1, waiter.poller.wakes);
    poller_drop(&waiter.poller);
    EXPECT_EQ(0, lab.fails);
    pirn_task_unref(task);
    EXPECT_EQ(1, lab.fails);
    EXPECT_EQ(-EIO, lab.fail_outcome);
    lab_finish(&lab);
}

/* Goal: the newest waker is woken, and an equal one is not cloned again.
 * Method: poll twice with one poller, then with another. */
TEST(join_polled_by_another_wakes_the_newest)
{
    struct script script = {.on_poll = script_wait_once};
    struct waiter waiter;
    poller other = {0};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    EXPECT(lab_run(&lab));
    waiter_init(&waiter, task);
    EXPECT_EQ(PIRN_PENDING, poller_poll(&waiter.poller));
    EXPECT_EQ(PIRN_PENDING, poller_poll(&waiter.poller));
    EXPECT_EQ(1, waiter.poller.wakers);
    other.fut = &waiter.op.future;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&other));
    EXPECT_EQ(0, waiter.poller.wakers);
    EXPECT_EQ(1, other.wakers);
    script_wake(&script);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, waiter.poller.wakes);
    EXPECT_EQ(1, other.wakes);
    EXPECT_EQ(PIRN_READY, poller_poll(&other));
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* A joiner in whose clone the task ends. */
struct unlucky {
    struct waiter waiter;
    struct lab *lab;
};

static void end_in_clone(poller *p)
{
    struct unlucky *unlucky =
        PIRN_CONTAINER_OF(p, struct unlucky, waiter.poller);

    EXPECT(lab_run(unlucky->lab));
}

/* Goal: a task that ends between a waiter's claim and the hand-over of its waker
 * is seen by that same poll, and the waker is given back.
 * Method: the end comes while the waker is cloned. */
TEST(join_sees_an_end_that_comes_before_the_hand_over)
{
    struct script script = {.outcome = 4};
    struct lab lab;
    struct unlucky unlucky = {.lab = &lab};
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    waiter_init(&unlucky.waiter, task);
    unlucky.waiter.poller.on_clone = end_in_clone;
    EXPECT_EQ(PIRN_READY, poller_poll(&unlucky.waiter.poller));
    EXPECT_EQ(0, unlucky.waiter.poller.wakes);
    EXPECT_EQ(0, unlucky.waiter.op.rc);
    EXPECT_EQ(4, unlucky.waiter.op.outcome);
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* Goal: a task that ends by being dropped is joined like any other.
 * Method: cancel and abort under a waiting join. */
TEST(join_sees_cancelled_and_aborted_tasks)
{
    for (int i = 0; i < 2; i++) {
        struct script script = {.on_poll = script_wait};
        struct waiter waiter;
        struct lab lab;
        pirn_task *task;

        lab_begin(&lab);
        task = lab_spawn(&lab, &script);
        waiter_init(&waiter, task);
        EXPECT_EQ(PIRN_PENDING, poller_poll(&waiter.poller));
        if (i == 0)
            pirn_task_cancel(task);
        else
            pirn_task_abort(task);
        EXPECT(lab_run(&lab));
        EXPECT_EQ(PIRN_READY, poller_poll(&waiter.poller));
        EXPECT_EQ(i == 0 ? -ECANCELED : PIRN_EABORTED, waiter.op.outcome);
        pirn_task_unref(task);
        lab_finish(&lab);
    }
}

/* Goal: a task spawned without a handle has no place for a waiter, but its
 * outcome can be asked for once it has ended.
 * Method: find it by id, join before and after the end. */
TEST(join_of_a_task_without_a_slot_is_not_supported)
{
    struct script script = {.on_poll = script_wait_once, .outcome = 3};
    struct waiter waiter;
    struct lab lab;
    pirn_task *task;
    int outcome = 0;

    lab_begin(&lab);
    EXPECT_EQ(0, pirn_id_find(lab_spawn_loose(&lab, &script), &task));
    EXPECT(lab_run(&lab));
    waiter_init(&waiter, task);
    EXPECT_EQ(PIRN_READY, poller_poll(&waiter.poller));
    EXPECT_EQ(-ENOTSUP, waiter.op.rc);
    EXPECT_EQ(-ENOTSUP, pirn_task_join(task, PIRN_NEVER, &outcome));
    script_wake(&script);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(3, lab_outcome(task));
    pirn_task_unref(task);
    lab_finish(&lab);
}

static enum pirn_poll join_self(struct script *script, pirn_cx *cx)
{
    pirn_join_op op;

    pirn_join_init(&op, script->arg);
    EXPECT_EQ(PIRN_READY, pirn_future_poll(&op.future, cx));
    EXPECT_EQ(-EDEADLK, op.rc);
    return PIRN_READY;
}

/* Goal: a task cannot join itself.
 * Method: it tries, in its poll; afterwards it can still be joined. */
TEST(join_of_oneself_is_a_deadlock)
{
    struct script script = {.on_poll = join_self};
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    script.arg = task;
    EXPECT(lab_run(&lab));
    EXPECT_EQ(0, lab_outcome(task));
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* Goal: nonsense has its own answer and touches nothing.
 * Method: NULL for the task and for the outcome; a deadline that has passed. */
TEST(join_of_nonsense_is_refused)
{
    struct script script = {.on_poll = script_wait};
    struct lab lab;
    pirn_task *task;
    int outcome = 11;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    EXPECT_EQ(-EINVAL, pirn_task_join(NULL, PIRN_EXPIRED, &outcome));
    EXPECT_EQ(-EINVAL, pirn_task_join(task, PIRN_EXPIRED, NULL));
    EXPECT_EQ(-ETIMEDOUT, pirn_task_join(task, PIRN_EXPIRED, &outcome));
    EXPECT_EQ(11, outcome);
    pirn_task_cancel(task);
    EXPECT(lab_run(&lab));
    EXPECT_EQ(-ECANCELED, lab_outcome(task));
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* Goal: a join that is ready many times over spends coop budget.
 * Method: a poll without a unit left waits, and asks for another turn. */
TEST(join_without_budget_waits_a_turn)
{
    struct pirn__turn turn = {.budget = 0};
    struct script script = {0};
    struct waiter waiter;
    struct lab lab;
    pirn_task *task;

    lab_begin(&lab);
    task = lab_spawn(&lab, &script);
    EXPECT(lab_run(&lab));
    waiter_init(&waiter, task);
    waiter.poller.turn = &turn;
    EXPECT_EQ(PIRN_PENDING, poller_poll(&waiter.poller));
    EXPECT_EQ(1, waiter.poller.wakes);
    EXPECT(turn.deferred);
    turn.budget = 1;
    EXPECT_EQ(PIRN_READY, poller_poll(&waiter.poller));
    EXPECT_EQ(0, turn.budget);
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* Goal: a dump can say whom a join waits for.
 * Method: describe a join of a named and of an unnamed task. */
TEST(join_describes_whom_it_waits_for)
{
    const pirn_spawn_options options = {.name = "worker"};
    struct script script = {0};
    struct waiter waiter;
    struct lab lab;
    char buf[64];
    pirn_text text = {buf, sizeof buf, 0};
    pirn_task *task;

    lab_begin(&lab);
    task = (pirn_task *)lab_spawn_with(&lab, &script, &options, true);
    waiter_init(&waiter, task);
    pirn_future_describe(&waiter.op.future, &text);
    EXPECT(strstr(buf, "worker") != NULL);
    poller_drop(&waiter.poller);
    EXPECT(lab_run(&lab));
    pirn_task_unref(task);
    lab_finish(&lab);
}

/* Threads. */

struct race {
    struct lab lab;
    pirn_task *task;
};

static void *end_task(void *arg)
{
    struct race *race = arg;

    EXPECT(lab_run(&race->lab));
    return NULL;
}

/* Goal: a waiter that polls, polls again and drops while the task ends on
 * another thread never loses a wake nor a waker.
 * Method: again and again; every second waiter gives up after its poll. */
TEST(join_raced_with_the_end_loses_no_wake)
{
    size_t rounds = test_size(100, 500, 20000);

    for (size_t i = 0; i < rounds; i++) {
        struct script script = {.outcome = 5};
        struct race race;
        struct waiter waiter;
        pthread_t thread;

        lab_begin(&race.lab);
        race.task = lab_spawn(&race.lab, &script);
        waiter_init(&waiter, race.task);
        REQUIRE(pthread_create(&thread, NULL, end_task, &race) == 0);
        if (poller_poll_raced(&waiter.poller) == PIRN_PENDING && i % 2 == 0 &&
            poller_poll_raced(&waiter.poller) == PIRN_PENDING) {
            pthread_join(thread, NULL);
            EXPECT_EQ(1, poller_wakes(&waiter.poller));
            EXPECT_EQ(PIRN_READY, poller_poll(&waiter.poller));
            EXPECT_EQ(5, waiter.op.outcome);
        } else {
            poller_drop_raced(&waiter.poller);
            pthread_join(thread, NULL);
        }
        EXPECT_EQ(0, poller_wakers(&waiter.poller));
        pirn_task_unref(race.task);
        lab_finish(&race.lab);
    }
}
