/* SPDX-License-Identifier: MIT */
/* tests/regress/fork.c - a process forks while it has a runtime.
 *
 * In the child the parent's runtime answers PIRN_EFORKED and keeps its hands
 * off the descriptors that both share; a new one works.  Expectations in the
 * child count there; its exit status brings them over.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pirn/io.h>

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/one_thread.h"
#include "sched/runtime_test.h"

/* Reachable in the child to its end, where a leak checker looks. */
static struct scene {
    pirn_runtime *rt;
    struct bell bell;
    tally drops;
    int driver_rc;
    pirn_task *task;
} scene;

static void scene_begin(void)
{
    scene = (struct scene){.rt = runtime_new()};
    bell_init(&scene.bell);
    scene.task = go_task(scene.rt, hear_bell, &scene.bell);
}

/* The parent's runtime has not noticed anything. */
static void scene_end(void)
{
    EXPECT_EQ(0, tally_of(&scene.bell.drops));
    bell_ring(&scene.bell);
    EXPECT_EQ(0, join_and_unref(scene.task));
    runtime_end(scene.rt);
}

/* Run fn in a child that then leaves by `leave`; with 1 and at once if an
 * expectation failed there. */
static void in_child(void (*fn)(void), void (*leave)(int status))
{
    int status = -1;
    pid_t child;

    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        fn();
        if (test_failures() != 0)
            _exit(1);
        leave(0);
        abort();
    }
    EXPECT_GE(child, 1);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(0, WEXITSTATUS(status));
}

static int never_run(void *arg)
{
    (void)arg;
    EXPECT(false);
    return 0;
}

static void use_nothing(void)
{
}

static void use_forked_runtime(void)
{
    const pirn_spawn_options options = {.runtime = scene.rt};
    struct probe probe = probe_of(step_ready, NULL, &scene.drops);
    pirn_task *task = scene.task;
    pirn_report report;

    EXPECT_EQ(PIRN_EFORKED, pirn_go_with(never_run, NULL, &options, &task));
    EXPECT_PTR_EQ(NULL, task);
    EXPECT_EQ(PIRN_EFORKED,
              pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    EXPECT_EQ(0, tally_of(&scene.drops));
    EXPECT_EQ(PIRN_EFORKED, pirn_runtime_turn(scene.rt, PIRN_NEVER));
    EXPECT_EQ(PIRN_EFORKED, pirn_block_on(scene.rt, &probe.future, PIRN_NEVER));
    EXPECT_EQ(1, tally_of(&scene.drops));
    EXPECT_EQ(PIRN_EFORKED,
              pirn_runtime_shutdown(scene.rt, PIRN_NEVER, &report));
    pirn_runtime_enter(scene.rt);
    EXPECT_EQ(PIRN_EFORKED, pirn_go(never_run, NULL));
    pirn_runtime_enter(NULL);
    pirn_runtime_unref(scene.rt);
}

struct wire {
    int fds[2];
    char got[8];
};

static int send_hello(void *arg)
{
    struct wire *wire = arg;

    EXPECT_EQ(0, pirn_sleep(pirn_after_us(100)));
    return write(wire->fds[1], "hello", 5) == 5 ? 0 : -EIO;
}

static int echo(void *arg)
{
    struct wire *wire = arg;
    pirn_fd *in;
    int rc = pirn_fd_adopt(wire->fds[0], &in);
    ssize_t n;

    REQUIRE_OR_RETURN(rc == 0, rc);
    EXPECT_EQ(0, pirn_go(send_hello, wire));
    n = pirn_fd_read(in, wire->got, sizeof wire->got - 1,
                     pirn_after_ms(RESCUE_MS));
    pirn_fd_close(in);
    return (int)n;
}

static void use_new(int (*run)(pirn_fiber_fn *fn, void *arg))
{
    struct wire wire = {.got = ""};

    EXPECT_EQ(0, pipe(wire.fds));
    EXPECT_EQ(5, run(echo, &wire));
    EXPECT_STR_EQ("hello", wire.got);
    close(wire.fds[1]);
}

/* ThreadSanitizer lets a child start threads only if its parent had one. */
static void use_new_pool(void)
{
    use_new(pirn_run);
}

static void use_new_runtime(void)
{
    use_new(run_on_one_thread);
}

/* Goal: a child that does not care ends cleanly.
 * Method: exit(0), which runs handlers and leak checkers. */
TEST(fork_child_may_exit)
{
    scene_begin();
    in_child(use_nothing, exit);
    scene_end();
}

/* Goal: in a child every call on the parent's runtime says PIRN_EFORKED and
 * does nothing; unref does nothing either.
 * Method: each of them. */
TEST(fork_child_may_not_use_the_runtime)
{
    scene_begin();
    in_child(use_forked_runtime, exit);
    scene_end();
}

/* Goal: a new runtime in the child works.
 * Method: sleep, spawn, and read from a pipe there. */
TEST(fork_child_may_make_a_runtime)
{
    scene_begin();
    in_child(use_new_runtime, exit);
    in_child(use_new_pool, exit);
    scene_end();
}

static void drive(void *arg, size_t index)
{
    pirn_join_op join;

    (void)index;
    pirn_join_init(&join, arg);
    scene.driver_rc = pirn_block_on(scene.rt, &join.future, PIRN_NEVER);
}

/* Goal: all that while another thread drives the parent's runtime.
 * Method: it sleeps in block_on.  The child has no such thread and therefore
 * leaks its memory: no exit handlers, which would say so. */
TEST(fork_while_another_thread_drives)
{
    struct crew crew;

    scene_begin();
    crew_start(&crew, 1, drive, scene.task);
    wait_for_tally(&scene.bell.waiting, 1);
    in_child(use_nothing, _exit);
    in_child(use_forked_runtime, _exit);
    in_child(use_new_runtime, _exit);
    EXPECT_EQ(0, tally_of(&scene.bell.drops));
    bell_ring(&scene.bell);
    crew_join(&crew);
    EXPECT_EQ(0, scene.driver_rc);
    EXPECT_EQ(0, join_and_unref(scene.task));
    runtime_end(scene.rt);
}

static void use_inside_a_task(void)
{
    EXPECT_EQ(PIRN_EFORKED, pirn_go(never_run, NULL));
}

static int fork_in_fiber(void *arg)
{
    (void)arg;
    in_child(use_inside_a_task, _exit);
    return pirn_yield();
}

/* Goal: a fiber may fork; in the child its runtime is the parent's.
 * Method: fork there, and go on in the parent. */
TEST(fork_inside_a_fiber)
{
    pirn_runtime *rt = runtime_new();

    EXPECT_EQ(0, join_and_unref(go_task(rt, fork_in_fiber, NULL)));
    EXPECT_EQ(1, runtime_end(rt).completed);
}
