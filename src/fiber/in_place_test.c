/* SPDX-License-Identifier: MIT */
/* src/fiber/in_place_test.c - blocking while the worker goes on elsewhere. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include <pirn/pirn.h>

#include "base/atomic.h"
#include "engine/test.h"
#include "sys/sys.h"

static PIRN_ATOMIC(uint32_t) released;
static PIRN_ATOMIC(uint32_t) ended;

static int block_until_released(void *arg)
{
    /* acquire: pairs with release_it(). */
    while (pirn__load(&released, acquire) == 0)
        sched_yield();
    return *(int *)arg;
}

static int release_it(void *arg)
{
    (void)arg;
    /* release: the blocked thread goes on. */
    pirn__store(&released, 1, release);
    return 0;
}

/* Blocks on the only worker until another task of that worker has run. */
static int block_with_others_waiting(void *arg)
{
    int answer = 42;
    int rc = pirn_go(release_it, NULL);

    (void)arg;
    EXPECT_EQ(0, rc);
    EXPECT_EQ(42, pirn_block_in_place(block_until_released, &answer));
    /* Once more without a worker, and then back to life with one. */
    EXPECT_EQ(42, pirn_block_in_place(block_until_released, &answer));
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(0, pirn_sleep(pirn_after_us(10)));
    EXPECT_EQ(42, pirn_block_in_place(block_until_released, &answer));
    /* relaxed: read after the runtime has ended. */
    pirn__add(&ended, 1, relaxed);
    return 7;
}

/* Goal: while a fiber blocks, everything else of its worker goes on; it goes on
 * itself afterwards, as a task like any other.
 * Method: one worker, and a fiber that blocks until another one has run. */
TEST(in_place_others_go_on_meanwhile)
{
    const pirn_runtime_options options = {.workers = 1};
    pirn_report report;

    pirn__init(&released, 0);
    pirn__init(&ended, 0);
    EXPECT_EQ(7, pirn_run_with(block_with_others_waiting, NULL, &options,
                               &report));
    EXPECT_EQ(1, ended.v_);
    EXPECT(report.in_time);
    EXPECT_EQ(report.spawned, report.completed);
}

static int suspend_inside(void *arg)
{
    (void)arg;
    EXPECT_EQ(-EDEADLK, pirn_sleep(PIRN_EXPIRED));
    EXPECT_EQ(-EDEADLK, pirn_block_in_place(suspend_inside, NULL));
    return -EIO;
}

static int end_without_worker(void *arg)
{
    (void)arg;
    return pirn_block_in_place(suspend_inside, NULL);
}

/* Goal: the function may not suspend; its code comes back, and a fiber may end
 * on the thread that its worker has left. */
TEST(in_place_fiber_ends_without_a_worker)
{
    const pirn_runtime_options options = {.workers = 1};

    EXPECT_EQ(-EIO, pirn_run_with(end_without_worker, NULL, &options, NULL));
}

static int answer_nine(void *arg)
{
    (void)arg;
    return 9;
}

static int try_on_one_thread(void *arg)
{
    (void)arg;
    EXPECT_EQ(-EINVAL, pirn_block_in_place(NULL, NULL));
    EXPECT_EQ(-EPERM, pirn_block_in_place(answer_nine, NULL));
    return 0;
}

/* Goal: on a current-thread runtime there is nobody to go on; on a plain thread
 * it is a plain call. */
TEST(in_place_needs_a_worker)
{
    const pirn_runtime_options options = {.workers = 0};

    EXPECT_EQ(0, pirn_run_with(try_on_one_thread, NULL, &options, NULL));
    EXPECT_EQ(9, pirn_block_in_place(answer_nine, NULL));
}

static PIRN_ATOMIC(uint32_t) refuses;

static int start_unless_refused(const char *name, size_t stack_size,
                                void (*fn)(void *arg), void *arg)
{
    /* relaxed: set and read by the same task. */
    if (pirn__load(&refuses, relaxed) != 0)
        return -EAGAIN;
    return pirn__sys_linux.thread_start(name, stack_size, fn, arg);
}

/* Before any test: a thread on its last lines, after the end of its runtime, may
 * still look at the table. */
__attribute__((constructor)) static void install_table(void)
{
    static struct pirn__sys table;

    table = pirn__sys_linux;
    table.thread_start = start_unless_refused;
    pirn__sys = &table;
}

static int try_without_threads(void *arg)
{
    (void)arg;
    /* relaxed: as above. */
    pirn__store(&refuses, 1, relaxed);
    EXPECT_EQ(-EAGAIN, pirn_block_in_place(answer_nine, NULL));
    EXPECT_EQ(0, pirn_yield());
    /* relaxed: as above. */
    pirn__store(&refuses, 0, relaxed);
    EXPECT_EQ(9, pirn_block_in_place(answer_nine, NULL));
    return 0;
}

/* Goal: without a thread to be had the function does not run and the fiber
 * keeps its worker. */
TEST(in_place_without_a_thread_changes_nothing)
{
    const pirn_runtime_options options = {.workers = 1};

    EXPECT_EQ(0, pirn_run_with(try_without_threads, NULL, &options, NULL));
}
