/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_waits.c - who waits at the end of a pool sleeps, and not
 * for ever.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pirn/blocking.h>

#include <time.h>

#include "engine/pool_fixture.h"

enum { DRAIN_MS = 500 };

static int hear_bell_shielded(void *arg)
{
    int rc;

    pirn_fiber_shield_begin();
    rc = hear_bell(arg);
    pirn_fiber_shield_end();
    return rc;
}

struct joiner {
    pirn_task *task;
    uint64_t cpu_ns;
};

static void join_and_measure(void *arg, size_t index)
{
    struct joiner *joiner = arg;
    struct timespec cpu;
    int outcome;

    (void)index;
    EXPECT_EQ(0, pirn_task_join(joiner->task, PIRN_NEVER, &outcome));
    EXPECT_EQ(PIRN_EABORTED, outcome);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    joiner->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec;
}

/* Goal: a plain thread that joins a task sleeps on while the runtime waits for
 * that task to end, and is told of the abort.
 * Method: a task that does not listen to its cancellation; the processor time
 * of the thread is a small part of the drain. */
TEST(pool_joiner_sleeps_while_the_pool_drains)
{
    pirn_runtime *rt = pool_new(2);
    struct joiner joiner;
    struct bell bell;
    struct crew crew;

    bell_init(&bell);
    joiner.task = go_task(rt, hear_bell_shielded, &bell);
    wait_for_tally(&bell.waiting, 1);
    crew_start(&crew, 1, join_and_measure, &joiner);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_runtime_shutdown(rt, pirn_after_ms(DRAIN_MS), NULL));
    crew_join(&crew);
    EXPECT_LE(joiner.cpu_ns, DRAIN_MS * UINT64_C(1000000) / 5);
    pirn_task_unref(joiner.task);
    pirn_runtime_unref(rt);
}

static tally in_hook;
static tally let_go;

static void hang_in_hook(void *arg, const pirn_failure *failure)
{
    (void)arg;
    (void)failure;
    tally_up(&in_hook);
    wait_for_tally(&let_go, 1);
}

static int fail(void *arg)
{
    (void)arg;
    return -EIO;
}

/* Goal: a worker that hangs in a hook, with no task left, does not hold up the
 * shutdown beyond its deadline; it keeps the memory until it comes back.
 * Method: a failure hook that waits until the shutdown is over. */
TEST(pool_shutdown_does_not_wait_for_a_hook)
{
    struct meter meter;
    pirn_report report;
    pirn_runtime *rt;

    meter_init(&meter);
    rt = pool_with(&(pirn_runtime_options){.workers = 2,
                                           .alloc = &meter.alloc,
                                           .on_failure = hang_in_hook});
    go(rt, fail, NULL);
    wait_for_tally(&in_hook, 1);
    EXPECT_EQ(-ETIMEDOUT,
              pirn_runtime_shutdown(rt, pirn_after_ms(50), &report));
    EXPECT_EQ(1, report.failed);
    EXPECT_EQ(0, report.still_running);
    EXPECT(!report.in_time);
    pirn_runtime_unref(rt);
    EXPECT_EQ(0, tally_of(&meter.dones));
    tally_set(&let_go, 1);
    wait_for_tally(&meter.dones, 1);
}

/* A call that blocks until a shutdown has long gone to sleep. */
struct call {
    pirn_runtime *rt;
    tally begun;
    tally may_end;
};

static int wait_in_place(void *arg)
{
    struct call *call = arg;

    tally_up(&call->begun);
    wait_for_tally(&call->may_end, 1);
    return 0;
}

static int block_in_place(void *arg)
{
    return pirn_block_in_place(wait_in_place, arg);
}

static void end_soon(void *arg, size_t index)
{
    struct call *call = arg;

    (void)index;
    while (pirn__runtime_phase(call->rt) == PIRN__PHASE_OPEN)
        sched_yield();
    /* Time for the shutdown to go to sleep. */
    for (int i = 0; i < 10000; i++)
        sched_yield();
    tally_set(&call->may_end, 1);
}

/* Goal: the last task may end on a thread that has given its worker away, while
 * all workers sleep; the shutdown notices, long before its deadline.
 * Method: a fiber that blocks in place; there is no deadline, and the engine ends
 * a test that takes too long. */
TEST(pool_shutdown_notices_the_end_of_a_blocking_task)
{
    struct call call = {.rt = pool_new(2)};
    struct crew crew;

    go(call.rt, block_in_place, &call);
    wait_for_tally(&call.begun, 1);
    while (pool_sleepers(call.rt) < 2)
        sched_yield();
    crew_start(&crew, 1, end_soon, &call);
    EXPECT_EQ(0, pirn_runtime_shutdown(call.rt, PIRN_NEVER, NULL));
    crew_join(&crew);
    pirn_runtime_unref(call.rt);
}
