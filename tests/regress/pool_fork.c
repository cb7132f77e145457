/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_fork.c - a process forks while it has a pool.
 *
 * The child has none of the workers, and shares their descriptors: every call
 * refuses, and what does not refuse (a wake, an unref) must not reach the
 * parent's workers.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/pool_fixture.h"
#include "sys/checker.h"

static struct scene {
    pirn_runtime *rt;
    struct bell bell;
    struct bell other;
    pirn_task *task;
    tally runs;
} scene;

static int count_run(void *arg)
{
    tally_up(arg);
    return 0;
}

/* Run fn in a child; its failed expectations come back as its status.  The
 * workers' memory is leaked there, so it leaves without exit handlers. */
static void in_child(void (*fn)(void))
{
    int status = -1;
    pid_t child;

    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        fn();
        _exit(test_failures() != 0);
    }
    EXPECT_GE(child, 1);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(0, WEXITSTATUS(status));
}

static void scene_begin(void)
{
    scene = (struct scene){.rt = pool_new(2)};
    bell_init(&scene.bell);
    bell_init(&scene.other);
    scene.task = go_task(scene.rt, hear_bell, &scene.bell);
    wait_for_tally(&scene.bell.waiting, 1);
}

/* The parent's pool has not noticed anything. */
static void scene_end(void)
{
    go(scene.rt, count_run, &scene.runs);
    wait_for_tally(&scene.runs, 1);
    EXPECT(!pirn_task_is_done(scene.task));
    bell_ring(&scene.bell);
    EXPECT_EQ(0, join_and_unref(scene.task));
    EXPECT_EQ(2, runtime_end(scene.rt).completed);
}

static void use_forked_pool(void)
{
    const pirn_spawn_options options = {.runtime = scene.rt};
    struct probe probe = probe_of(step_ready, NULL, NULL);
    pirn_task *task = scene.task;
    pirn_report report;
    int outcome;

    EXPECT_EQ(PIRN_EFORKED,
              pirn_go_with(count_run, &scene.runs, &options, &task));
    EXPECT_PTR_EQ(NULL, task);
    EXPECT_EQ(PIRN_EFORKED,
              pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    EXPECT_EQ(PIRN_EFORKED, pirn_runtime_turn(scene.rt, PIRN_NEVER));
    EXPECT_EQ(PIRN_EFORKED,
              bell_block_on(scene.rt, &scene.other, PIRN_NEVER));
    EXPECT_EQ(PIRN_EFORKED,
              pirn_task_join(scene.task, PIRN_NEVER, &outcome));
    EXPECT_EQ(PIRN_EFORKED,
              pirn_runtime_shutdown(scene.rt, PIRN_NEVER, &report));
    (void)pirn_runtime_enter(scene.rt);
    EXPECT_EQ(PIRN_EFORKED, pirn_go(count_run, &scene.runs));
    (void)pirn_runtime_enter(NULL);
    pirn_runtime_unref(scene.rt);
}

static void wake_forked_task(void)
{
    for (int i = 0; i < 10; i++)
        pirn_task_cancel(scene.task);
    EXPECT_EQ(0, pirn_id_wake(pirn_task_get_id(scene.task)));
    bell_ring(&scene.bell);
}

static int nap_and_count(void *arg)
{
    EXPECT_EQ(0, pirn_sleep(pirn_after_us(100)));
    return count_run(arg);
}

/* TSan ends a child of a process with threads that starts one. */
static void use_new_pool(void)
{
    if (PIRN__WITH_TSAN)
        return;

    pirn_runtime *rt = pool_new(2);

    for (int i = 0; i < 10; i++)
        go(rt, nap_and_count, &scene.runs);
    wait_for_tally(&scene.runs, 10);
    runtime_end(rt);
}

/* Goal: every call on the parent's pool says PIRN_EFORKED.
 * Method: each of them; the parent goes on as before. */
TEST(pool_fork_child_may_not_use_the_pool)
{
    scene_begin();
    in_child(use_forked_pool);
    scene_end();
}

/* Goal: waking and cancelling a task of the parent in a child does nothing to
 * the parent, again and again.
 * Method: its workers sleep meanwhile. */
TEST(pool_fork_child_wakes_nobody)
{
    scene_begin();
    for (size_t i = 0; i < test_size(2, 20, 200); i++)
        in_child(wake_forked_task);
    scene_end();
}

/* Goal: a new pool in the child works.
 * Method: make one, use it, end it. */
TEST(pool_fork_child_may_make_a_pool)
{
    scene_begin();
    in_child(use_new_pool);
    scene_end();
}

static int keep_busy(void *arg)
{
    tally *stop = arg;

    while (tally_of(stop) == 0)
        EXPECT_EQ(0, pirn_yield());
    return 0;
}

/* Goal: all that while the workers are busy.
 * Method: tasks that yield without end. */
TEST(pool_fork_while_workers_run)
{
    tally stop = {0};
    pirn_task *busy[4];

    scene_begin();
    for (int i = 0; i < 4; i++)
        busy[i] = go_task(scene.rt, keep_busy, &stop);
    for (size_t i = 0; i < test_size(2, 10, 200); i++) {
        in_child(wake_forked_task);
        in_child(use_new_pool);
    }
    tally_up(&stop);
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(0, join_and_unref(busy[i]));
    go(scene.rt, count_run, &scene.runs);
    wait_for_tally(&scene.runs, 1);
    EXPECT(!pirn_task_is_done(scene.task));
    bell_ring(&scene.bell);
    EXPECT_EQ(0, join_and_unref(scene.task));
    runtime_end(scene.rt);
}
