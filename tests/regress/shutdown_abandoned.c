/* SPDX-License-Identifier: MIT */
/* tests/regress/shutdown_abandoned.c - shutdown while the driver is stuck
 * outside of every task.
 *
 * The report counted one task as running and all others, of which there were
 * none, less that one as aborted; and the driver wrote into it when it came
 * back.
 */
#include <pirn/runtime.h>
#include <pirn/time.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "engine/test.h"

static struct {
    pirn_runtime *rt;
    sem_t begun;
    sem_t may_end;
    int rc;
} scene;

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

static enum pirn_poll stuck_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    sem_post(&scene.begun);
    wait_for(&scene.may_end);
    return PIRN_READY;
}

static void stuck_drop(pirn_future *self)
{
    (void)self;
}

static void *drive(void *arg)
{
    static const pirn_future_ops ops = {.poll = stuck_poll,
                                        .drop = stuck_drop};
    pirn_future stuck = {&ops};

    (void)arg;
    scene.rc = pirn_block_on(scene.rt, &stuck, PIRN_NEVER);
    return NULL;
}

/* Goal: no task is invented, and the report stays what it was.
 * Method: block_on() is stuck in its own future; ask again when it is back. */
TEST(shutdown_of_a_driver_stuck_in_no_task_counts_none)
{
    pirn_report report, later;
    pthread_t thread;

    sem_init(&scene.begun, 0, 0);
    sem_init(&scene.may_end, 0, 0);
    REQUIRE(pirn_runtime_new(NULL, &scene.rt) == 0);
    REQUIRE(pthread_create(&thread, NULL, drive, NULL) == 0);
    wait_for(&scene.begun);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_runtime_shutdown(scene.rt, pirn_after_ms(1), &report));
    EXPECT(!report.in_time);
    EXPECT_EQ(0, report.aborted);
    EXPECT_EQ(0, report.still_running);
    EXPECT_EQ(0, report.task_count);
    sem_post(&scene.may_end);
    pthread_join(thread, NULL);
    EXPECT_EQ(0, scene.rc);
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(scene.rt, PIRN_NEVER, &later));
    EXPECT_EQ(0, later.aborted);
    EXPECT_EQ(0, later.still_running);
    EXPECT(!later.in_time);
    pirn_runtime_unref(scene.rt);
}
