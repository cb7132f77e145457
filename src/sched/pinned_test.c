/* SPDX-License-Identifier: MIT */
/* src/sched/pinned_test.c - tasks that stay on their thread. */
#include <errno.h>
#include <pthread.h>

#include <pirn/pirn.h>

#include "base/atomic.h"
#include "engine/test.h"

enum { BURSTS = 6, TASKS = 20 };

static const pirn_spawn_options pinned = {.pinned = true};

static int stay(void *arg)
{
    long rounds = (long)arg;
    pthread_t home = pthread_self();

    for (long i = 0; i < rounds; i++) {
        EXPECT_EQ(0, i % 2 == 0 ? pirn_yield() : pirn_sleep(pirn_after_us(20)));
        EXPECT(pthread_equal(home, pthread_self()));
    }
    return 0;
}

static int spawn_burst(void *arg)
{
    pirn_task *tasks[TASKS];
    int outcome = -1;

    for (int i = 0; i < TASKS; i++)
        REQUIRE_OR_RETURN(pirn_go_with(stay, arg, &pinned, &tasks[i]) == 0, -1);
    for (int i = 0; i < TASKS; i++) {
        EXPECT_EQ(0, pirn_task_join(tasks[i], PIRN_NEVER, &outcome));
        EXPECT_EQ(0, outcome);
        pirn_task_unref(tasks[i]);
    }
    return 0;
}

static int spawn_bursts(void *arg)
{
    pirn_task *tasks[BURSTS];
    int outcome = -1;

    for (int i = 0; i < BURSTS; i++)
        REQUIRE_OR_RETURN(
            pirn_go_with(spawn_burst, arg, NULL, &tasks[i]) == 0, -1);
    for (int i = 0; i < BURSTS; i++) {
        EXPECT_EQ(0, pirn_task_join(tasks[i], PIRN_NEVER, &outcome));
        EXPECT_EQ(0, outcome);
        pirn_task_unref(tasks[i]);
    }
    return 0;
}

/* Goal: a pinned task runs on one thread from its first run to its last, woken
 * by timers, yields and joins from any worker, and no wake is lost although its
 * worker sleeps on a descriptor of its own.
 * Method: bursts of such tasks from whatever worker, on 0, 1, 2 and 4 workers. */
TEST(pinned_tasks_stay_on_their_thread)
{
    static const uint32_t workers[] = {0, 1, 2, 4};
    long rounds = (long)test_size(10, 40, 2000);

    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
        const pirn_runtime_options options = {.workers = workers[i]};
        pirn_report report;

        EXPECT_EQ(0, pirn_run_with(spawn_bursts, (void *)rounds, &options,
                                   &report));
        EXPECT(report.in_time);
        EXPECT_EQ(1 + BURSTS + BURSTS * TASKS, report.completed);
    }
}

static int return_zero(void *arg)
{
    (void)arg;
    return 0;
}

/* Goal: outside a worker there is nothing to pin to. */
TEST(pinned_spawn_outside_a_worker_is_refused)
{
    const pirn_runtime_options options = {.workers = 1};
    pirn_spawn_options spawn = pinned;
    pirn_runtime *rt;

    REQUIRE(pirn_runtime_new(&options, &rt) == 0);
    spawn.runtime = rt;
    EXPECT_EQ(-EINVAL, pirn_go_with(return_zero, NULL, &spawn, NULL));
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, pirn_after_ms(5000), NULL));
    pirn_runtime_unref(rt);
}

static int no_way_back(void *arg)
{
    int rc = pirn_go_with(return_zero, NULL, &pinned, NULL);

    EXPECT_EQ(0, rc);
    return pirn_block_in_place(return_zero, arg);
}

/* Goal: a worker with pinned tasks cannot change threads. */
TEST(pinned_worker_does_not_block_in_place)
{
    const pirn_runtime_options options = {.workers = 1};

    EXPECT_EQ(-EPERM, pirn_run_with(no_way_back, NULL, &options, NULL));
}
