/* SPDX-License-Identifier: MIT */
/* tests/regress/deadlines_kept.c - deadlines that were answered too early or
 * too late. */
#include <pirn/runtime.h>
#include <pirn/time.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "engine/test.h"

static void drop_nothing(pirn_future *self)
{
    (void)self;
}

static enum pirn_poll ready_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    return pirn_coop_spend(cx) ? PIRN_READY : PIRN_PENDING;
}

static int await_expired(void *arg)
{
    static const pirn_future_ops ops = {.poll = ready_poll,
                                        .drop = drop_nothing};
    size_t *wrong = arg;

    for (int i = 0; i < 1000; i++) {
        pirn_future future = {&ops};

        *wrong += pirn_await(&future, PIRN_EXPIRED) != 0;
    }
    return 0;
}

/* Goal: success beats an expired deadline, also when the coop budget is used
 * up, which refuses the poll but is no answer.
 * Method: a fiber tries once what is always ready, a thousand times. */
TEST(expired_deadline_without_budget_still_tries_once)
{
    size_t wrong = 0;

    EXPECT_EQ(0, pirn_run(await_expired, &wrong));
    EXPECT_EQ(0, wrong);
}

struct jam {
    sem_t begun;
    sem_t may_end;
};

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

static int hold_up(void *arg)
{
    struct jam *jam = arg;

    sem_post(&jam->begun);
    wait_for(&jam->may_end);
    return 0;
}

static void *join_task(void *arg)
{
    int outcome = -1;

    EXPECT_EQ(0, pirn_task_join(arg, PIRN_NEVER, &outcome));
    EXPECT_EQ(0, outcome);
    return NULL;
}

static enum pirn_poll never_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    return PIRN_PENDING;
}

/* Goal: block_on() keeps its deadline also when it cannot have the seat.
 * Method: a plain thread drives and is stuck in a task until block_on() has
 * given up. */
TEST(block_on_behind_a_stuck_waiting_thread_times_out)
{
    static const pirn_future_ops ops = {.poll = never_poll,
                                        .drop = drop_nothing};
    pirn_spawn_options options = {.name = "stuck"};
    pirn_future future = {&ops};
    pirn_runtime *rt;
    pirn_task *task;
    pthread_t thread;
    struct jam jam;

    sem_init(&jam.begun, 0, 0);
    sem_init(&jam.may_end, 0, 0);
    REQUIRE(pirn_runtime_new(NULL, &rt) == 0);
    options.runtime = rt;
    REQUIRE(pirn_go_with(hold_up, &jam, &options, &task) == 0);
    REQUIRE(pthread_create(&thread, NULL, join_task, task) == 0);
    wait_for(&jam.begun);
    EXPECT_EQ(-ETIMEDOUT, pirn_block_on(rt, &future, pirn_after_ms(1)));
    sem_post(&jam.may_end);
    pthread_join(thread, NULL);
    pirn_task_unref(task);
    pirn_runtime_unref(rt);
}
