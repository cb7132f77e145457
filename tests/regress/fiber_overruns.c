/* SPDX-License-Identifier: MIT */
/* tests/regress/fiber_overruns.c - the report of an overrun stack where threads have
 * changed: of a fiber that has left its worker by blocking in place, and of one on
 * the thread that has taken the worker over.
 *
 * Each is a child of this process, which has no other threads itself: some checkers
 * do not let threads start after the fork of a process that has.
 */
#include <pirn/blocking.h>
#include <pirn/fiber.h>
#include <pirn/runtime.h>
#include <pirn/task.h>
#include <pirn/time.h>

#include <signal.h>

#include "engine/overrun.h"
#include "engine/test.h"

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int overrun_alone(void *arg)
{
    volatile int depth = 0;

    (void)arg;
    EXPECT_EQ(0, pirn_block_in_place(do_nothing, NULL));
    return overrun(&depth);
}

static int start_diver(void *arg)
{
    const pirn_spawn_options options = {.name = "diver"};
    pirn_task *task;
    int rc = pirn_go_with(overrun_alone, arg, &options, &task);

    return rc < 0 ? rc : pirn_task_join(task, PIRN_NEVER, &rc);
}

static void run_diver(void *arg)
{
    (void)!pirn_run(start_diver, arg);
}

/* Goal: the report of an overrun names the fiber also where it has no worker.
 * Method: a child process. */
TEST(fiber_overrun_without_a_worker_is_reported)
{
    EXPECT_DEATH_BY(SIGSEGV, run_diver, NULL,
                    "stack overflow in fiber diver (");
}

static int overrun_behind(void *arg)
{
    volatile int depth = 0;

    (void)arg;
    return overrun(&depth);
}

/* Its worker has gone to another thread, where the next one overruns. */
static int send_worker_away(void *arg)
{
    const pirn_spawn_options options = {.name = "second"};
    pirn_task *task;

    EXPECT_EQ(0, pirn_go_with(overrun_behind, arg, &options, &task));
    EXPECT_EQ(0, pirn_block_in_place(do_nothing, NULL));
    return pirn_task_join(task, PIRN_NEVER, &(int){0});
}

static void run_second_diver(void *arg)
{
    const pirn_runtime_options options = {.workers = 1,
                                          .overflow_report = true};

    (void)!pirn_run_with(send_worker_away, arg, &options, NULL);
}

/* Goal: the same on a thread that has taken a worker over. */
TEST(fiber_overrun_on_a_new_thread_is_reported)
{
    EXPECT_DEATH_BY(SIGSEGV, run_second_diver, NULL,
                    "stack overflow in fiber second (");
}
