/* SPDX-License-Identifier: MIT */
/* src/task/await_test.c - straight-line waiting on a plain thread without any
 * runtime; fibers are in src/fiber/wait_test.c. */
#include "task/lab_test.h"

#include <pirn/fiber.h>
#include <pthread.h>
#include <sched.h>

#include "base/lock.h"
#include "task/await.h"

/* Goal: what is ready is returned, whatever the deadline.
 * Method: a future that is ready at its first poll, with each deadline. */
TEST(await_of_a_ready_future_succeeds_at_any_deadline)
{
    const pirn_deadline deadlines[] = {PIRN_NEVER, PIRN_EXPIRED, {1}};

    for (int i = 0; i < 3; i++) {
        struct script script = {0};
        struct step step = step_of(&script);

        EXPECT_EQ(0, pirn_await(&step.future, deadlines[i]));
        EXPECT_EQ(42, step.value);
        EXPECT_EQ(1, script.polls);
        EXPECT_EQ(0, script.drops);
    }
}

/* Goal: what is not ready at its deadline is dropped, once, after one try.
 * Method: a future that is never ready, with deadlines in the past. */
TEST(await_past_its_deadline_drops_the_future)
{
    const pirn_deadline deadlines[] = {PIRN_EXPIRED, {1}};

    for (int i = 0; i < 2; i++) {
        struct script script = {.on_poll = script_wait};
        struct step step = step_of(&script);

        EXPECT_EQ(-ETIMEDOUT, pirn_await(&step.future, deadlines[i]));
        EXPECT_EQ(1, script.polls);
        EXPECT_EQ(1, script.drops);
    }
}

/* Goal: nonsense is refused.
 * Method: NULL. */
TEST(await_of_null_is_refused)
{
    EXPECT_EQ(-EINVAL, pirn_await(NULL, PIRN_EXPIRED));
}

/* Goal: outside any task a yield does nothing.
 * Method: call it; the fast path is free, too. */
TEST(yield_on_a_plain_thread_does_nothing)
{
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(0, pirn__may_suspend());
    EXPECT_EQ(0, pirn__fast_path(pirn__local()));
}

static enum pirn_poll await_inside(struct script *script, pirn_cx *cx)
{
    struct script inner = {0};
    struct step step = step_of(&inner);

    (void)cx;
    (void)script;
    EXPECT_EQ(-EDEADLK, pirn_await(&step.future, PIRN_NEVER));
    EXPECT_EQ(0, inner.polls);
    EXPECT_EQ(1, inner.drops);
    EXPECT_EQ(-EDEADLK, pirn_yield());
    EXPECT_EQ(-EDEADLK, pirn__fast_path(pirn__local()));
    return PIRN_READY;
}

/* Goal: inside a poll every wait is refused and drops its future unpolled.
 * Method: in a future that a plain thread awaits, and in a task. */
TEST(await_inside_a_poll_is_a_deadlock)
{
    struct script script = {.on_poll = await_inside};
    struct step step = step_of(&script);
    struct lab lab;

    EXPECT_EQ(0, pirn_await(&step.future, PIRN_NEVER));
    EXPECT_EQ(1, script.polls);
    lab_begin(&lab);
    (void)lab_spawn_loose(&lab, &script);
    EXPECT_EQ(1, lab_run_all(&lab));
    EXPECT_EQ(2, script.polls);
    lab_finish(&lab);
}

static enum pirn_poll wake_twice(struct script *script, pirn_cx *cx)
{
    if (script->polls == 3)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: a wake during the poll is not lost.
 * Method: a future that wakes its waiter from inside its poll. */
TEST(await_woken_in_its_poll_polls_again)
{
    struct script script = {.on_poll = wake_twice};
    struct step step = step_of(&script);

    EXPECT_EQ(0, pirn_await(&step.future, PIRN_NEVER));
    EXPECT_EQ(3, script.polls);
}

/* A future that another thread completes. */
struct handed {
    pirn_lock lock;
    bool done;         /* lock */
    bool waiting;      /* lock */
    pirn_waker waker;  /* lock */
};

static bool hand_over(struct handed *handed)
{
    pirn_waker waker;
    bool waiting;

    pirn__lock(&handed->lock);
    waiting = handed->waiting;
    handed->done = waiting;
    waker = pirn_waker_take(&handed->waker);
    pirn__unlock(&handed->lock);
    pirn_waker_wake(waker);
    return waiting;
}

static void *complete_when_waited_for(void *arg)
{
    /* Ends: the main thread comes to its poll. */
    while (!hand_over(arg))
        sched_yield();
    return NULL;
}

static enum pirn_poll wait_for_thread(struct script *script, pirn_cx *cx)
{
    struct handed *handed = script->arg;
    pirn_waker old = {0};
    bool done;

    pirn__lock(&handed->lock);
    done = handed->done;
    handed->waiting = true;
    if (!done)
        old = pirn_waker_store(&handed->waker, cx);
    pirn__unlock(&handed->lock);
    pirn_waker_drop(old);
    return done ? PIRN_READY : PIRN_PENDING;
}

/* Goal: a plain thread sleeps until another wakes it, again and again.
 * Method: a thread completes the future once it is being waited for. */
TEST(await_on_a_plain_thread_is_woken_by_another)
{
    size_t rounds = test_size(20, 200, 5000);

    for (size_t i = 0; i < rounds; i++) {
        struct handed handed = {0};
        struct script script = {.on_poll = wait_for_thread, .arg = &handed};
        struct step step = step_of(&script);
        pthread_t thread;

        REQUIRE(pthread_create(&thread, NULL, complete_when_waited_for,
                               &handed) == 0);
        EXPECT_EQ(0, pirn_await(&step.future, PIRN_NEVER));
        pthread_join(thread, NULL);
        EXPECT_EQ(42, step.value);
    }
}
