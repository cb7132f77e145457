/* SPDX-License-Identifier: MIT */
/* tests/sweep/fault_runtime.c - runtimes, tasks and jobs in a world without
 * memory, threads, mappings or descriptors.
 */
#include <errno.h>
#include <pthread.h>

#include <pirn/async.h>
#include <pirn/blocking.h>
#include <pirn/histogram.h>
#include <pirn/select.h>

#include "fault_fixture.h"

static uint32_t workers;

static void make_runtime(void)
{
    pirn_runtime *rt = fault_runtime(workers);

    fault_runtime_end(rt);
}

/* Goal: a runtime is made, or is not there at all.
 * Method: one without workers. */
TEST(fault_in_runtime_new)
{
    workers = 0;
    SWEEP(make_runtime, SWEEP_EVERYTHING);
}

/* Goal, Method: the same with workers. */
TEST(fault_in_runtime_new_with_workers)
{
    workers = 3;
    SWEEP(make_runtime, SWEEP_EVERYTHING);
}

static void make_runtime_with_everything(void)
{
    const pirn_runtime_options options = {
        .alloc = sweep_alloc(),
        .workers = 2,
        .worker_name = "swept",
        .worker_stack_size_bytes = 256 * 1024,
        .histograms = true,
        .overflow_report = true,
    };
    pirn_runtime *rt = SWEEP_JUNK;
    int rc = SWEPT(pirn_runtime_new(&options, &rt));

    EXPECT(rc == 0 || rt == NULL);
    fault_runtime_end(rt);
}

/* Goal: what options add is undone, too.
 * Method: all that take something. */
TEST(fault_in_runtime_new_with_all_options)
{
    SWEEP(make_runtime_with_everything, SWEEP_EVERYTHING);
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void run(void)
{
    (void)SWEPT(pirn_run(do_nothing, NULL));
}

/* Goal: a program that is all Pirn.
 * Method: pirn_run(), as many workers as there are processors. */
TEST(fault_in_run)
{
    SWEEP(run, SWEEP_EVERYTHING);
}

/* Spawning. */

struct life {
    pirn_frame frame;
    pirn_sleep_op sleep;
    int *ends; /* counts clean-ups */
};

static enum pirn_poll life_poll(pirn_future *self, pirn_cx *cx)
{
    struct life *life = PIRN_FRAME_OF(self, struct life, frame);

    PIRN_ASYNC_BEGIN(&life->frame, cx);
    pirn_sleep_init(&life->sleep, pirn_after_us(10));
    PIRN_AWAIT(&life->sleep.future);
    PIRN_ASYNC_RETURN(pirn_sleep_rc(&life->sleep));
    PIRN_ASYNC_END();
}

static void life_cleanup(pirn_frame *frame)
{
    struct life *life = PIRN_CONTAINER_OF(frame, struct life, frame);

    __atomic_add_fetch(life->ends, 1, __ATOMIC_RELAXED);
}

static const pirn_async_ops life_ops = PIRN_ASYNC_OPS(life_poll, life_cleanup);

static int spawn_stackless(int *ends)
{
    const pirn_spawn_options options = {.name = "stackless", .context = ends};
    struct life life = {.ends = ends};
    pirn_task *task = SWEEP_JUNK;
    int outcome = 1;
    int rc;

    pirn_frame_init(&life.frame, &life_ops);
    rc = SWEPT(
        pirn_spawn(&life.frame.future, sizeof life, &options, &task));
    if (rc < 0) {
        EXPECT_PTR_EQ(NULL, task);
        /* It is still ours, live and unpolled. */
        EXPECT_EQ(0, __atomic_load_n(ends, __ATOMIC_RELAXED));
        pirn_future_drop(&life.frame.future);
        EXPECT_EQ(1, __atomic_load_n(ends, __ATOMIC_RELAXED));
        return rc;
    }
    rc = SWEPT(pirn_task_join(task, PIRN_NEVER, &outcome));
    if (rc == 0) {
        EXPECT_EQ(0, outcome);
        EXPECT_EQ(1, __atomic_load_n(ends, __ATOMIC_RELAXED));
    }
    pirn_task_unref(task);
    return rc;
}

static int sleep_shortly(void *arg)
{
    int *runs = arg;
    int rc = SWEPT(pirn_sleep(pirn_after_us(10)));

    if (rc == 0)
        rc = SWEPT(pirn_yield());
    __atomic_add_fetch(runs, 1, __ATOMIC_RELAXED);
    return rc;
}

static int go_with_stack(size_t stack_size_bytes)
{
    const pirn_spawn_options options = {.name = "fiber",
                                        .stack_size_bytes = stack_size_bytes};
    pirn_task *task = SWEEP_JUNK;
    int runs = 0;
    int outcome = 1;
    int rc = SWEPT(pirn_go_with(sleep_shortly, &runs, &options, &task));

    if (rc < 0) {
        EXPECT_PTR_EQ(NULL, task);
        EXPECT_EQ(0, runs);
        return rc;
    }
    rc = SWEPT(pirn_task_join(task, PIRN_NEVER, &outcome));
    EXPECT_EQ(0, rc);
    EXPECT_EQ(0, outcome);
    EXPECT_EQ(1, runs);
    pirn_task_unref(task);
    return rc;
}

static int spawn_all_kinds(void *arg)
{
    int ends = 0;

    (void)arg;
    (void)spawn_stackless(&ends);
    (void)go_with_stack(0);
    (void)go_with_stack(256 * 1024);
    return 0;
}

static void spawn_in_runtime(void)
{
    fault_run(workers, spawn_all_kinds, NULL);
}

/* Goal: a refused spawn leaves the future, or the argument, with its caller; one
 * that is not refused runs to its end, on stacks of any size.
 * Method: both kinds of task, by a fiber that joins them. */
TEST(fault_in_spawn)
{
    workers = 0;
    SWEEP(spawn_in_runtime, SWEEP_EVERYTHING);
}

/* Goal, Method: the same with workers. */
TEST(fault_in_spawn_with_workers)
{
    workers = 2;
    SWEEP(spawn_in_runtime, SWEEP_EVERYTHING);
}

static void spawn_in_computational_pool(void)
{
    const pirn_runtime_options options = {.alloc = sweep_alloc(),
                                          .workers = 2,
                                          .pool = PIRN_POOL_COMPUTATIONAL};
    pirn_runtime *rt = SWEEP_JUNK;
    pirn_spawn_options spawn = {.priority = PIRN_PRIORITY_HIGH};
    pirn_task *task = SWEEP_JUNK;
    int outcome = -1;
    int rc = SWEPT(pirn_runtime_new(&options, &rt));

    EXPECT(rc == 0 || rt == NULL);
    if (rc < 0)
        return;
    spawn.runtime = rt;
    rc = SWEPT(pirn_go_with(spawn_all_kinds, NULL, &spawn, &task));
    EXPECT(rc == 0 || task == NULL);
    sweep_hold();
    if (rc == 0)
        EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    sweep_go_on();
    EXPECT_EQ(rc == 0 ? 0 : -1, outcome);
    fault_runtime_end(rt);
    pirn_task_unref(task);
}

/* Goal, Method: the same in the pool that does not steal. */
TEST(fault_in_spawn_in_computational_pool)
{
    SWEEP(spawn_in_computational_pool, SWEEP_EVERYTHING);
}

/* Many futures at once. */

enum { BRANCHES = 40 };

static int select_of_many(void *arg)
{
    pirn_sleep_op sleeps[BRANCHES];
    pirn_branch branches[BRANCHES];
    int rc;

    (void)arg;
    for (size_t i = 0; i < BRANCHES; i++) {
        pirn_sleep_init(&sleeps[i], pirn_after_us(10 + i));
        branches[i] = (pirn_branch)PIRN_BRANCH(&sleeps[i]);
    }
    rc = SWEPT(pirn_select(branches, BRANCHES, PIRN_NEVER));
    EXPECT(rc < BRANCHES);
    for (size_t i = 0; i < BRANCHES; i++) {
        pirn_sleep_init(&sleeps[i], pirn_after_us(10 + i));
        branches[i] = (pirn_branch)PIRN_BRANCH(&sleeps[i]);
    }
    rc = SWEPT(pirn_join_all(branches, BRANCHES, PIRN_NEVER));
    for (size_t i = 0; i < BRANCHES && rc == 0; i++)
        EXPECT(branches[i].ended);
    return 0;
}

static void select_in_runtime(void)
{
    fault_run(workers, select_of_many, NULL);
}

/* Goal: a select and a join of many futures end without memory, too.
 * Method: forty sleeps. */
TEST(fault_in_select)
{
    workers = 0;
    SWEEP(select_in_runtime, SWEEP_MEMORY | SWEEP_WAITS | SWEEP_INTERRUPTS);
    workers = 2;
    SWEEP(select_in_runtime, SWEEP_MEMORY | SWEEP_WAITS);
}

static int pin(void *arg)
{
    const pirn_spawn_options options = {.pinned = true};
    pirn_task *task = SWEEP_JUNK;
    int runs = 0;
    int outcome = 1;
    int rc = SWEPT(pirn_go_with(sleep_shortly, &runs, &options, &task));

    (void)arg;
    EXPECT(rc == 0 || task == NULL);
    if (rc < 0)
        return 0;
    EXPECT_EQ(0, SWEPT(pirn_task_join(task, PIRN_NEVER, &outcome)));
    EXPECT_EQ(0, outcome);
    pirn_task_unref(task);
    return 0;
}

static void pin_in_runtime(void)
{
    fault_run(2, pin, NULL);
}

/* Goal: the same for pinned tasks, whose worker needs a descriptor more.
 * Method: as above. */
TEST(fault_in_pinned)
{
    SWEEP(pin_in_runtime, SWEEP_EVERYTHING);
}

/* From outside. */

static void join_from_outside(void)
{
    pirn_runtime *rt = fault_runtime(workers);
    const pirn_spawn_options options = {.runtime = rt, .name = "outside"};
    pirn_task *task = SWEEP_JUNK;
    pirn_join_op join;
    int runs = 0;
    int rc;

    if (rt == NULL)
        return;
    rc = SWEPT(pirn_go_with(sleep_shortly, &runs, &options, &task));
    EXPECT(rc == 0 || task == NULL);
    if (rc == 0) {
        pirn_join_init(&join, task);
        rc = SWEPT(pirn_block_on(rt, &join.future, PIRN_NEVER));
        if (rc == 0)
            EXPECT_EQ(0, join.rc);
    }
    if (rc == 0)
        EXPECT_EQ(1, runs);
    fault_runtime_end(rt);
    pirn_task_unref(task);
}

/* Goal: a plain thread that waits needs a parker; without one it is told so.
 * Method: pirn_block_on() on the scenario's own thread. */
TEST(fault_in_block_on)
{
    workers = 0;
    SWEEP(join_from_outside, SWEEP_EVERYTHING);
}

/* Goal, Method: the same with workers. */
TEST(fault_in_block_on_with_workers)
{
    workers = 2;
    SWEEP(join_from_outside, SWEEP_EVERYTHING);
}

static void turn_by_hand(void)
{
    pirn_runtime *rt = fault_runtime(0);
    const pirn_spawn_options options = {.runtime = rt};
    int runs = 0;
    int rc;

    if (rt == NULL)
        return;
    if (SWEPT(pirn_go_with(sleep_shortly, &runs, &options, NULL)) == 0) {
        do {
            rc = SWEPT(pirn_runtime_turn(rt, PIRN_NEVER));
        } while (rc >= 0 && runs == 0);
    }
    fault_runtime_end(rt);
}

/* Goal: a host that turns a runtime itself.
 * Method: until a fiber has slept. */
TEST(fault_in_turn)
{
    SWEEP(turn_by_hand, SWEEP_EVERYTHING);
}

static void *make_for_another(void *out)
{
    const pirn_runtime_options options = {.alloc = sweep_alloc()};

    EXPECT_EQ(0, pirn_runtime_new(&options, out));
    return NULL;
}

/* A runtime that another thread has made. */
static pirn_runtime *foreign_runtime(void)
{
    pirn_runtime *rt = NULL;
    pthread_t thread;

    sweep_hold();
    if (pthread_create(&thread, NULL, make_for_another, &rt) == 0)
        pthread_join(thread, NULL);
    sweep_go_on();
    return rt;
}

static void turn_as_the_first_thing(void)
{
    pirn_runtime *rt = foreign_runtime();

    (void)SWEPT(pirn_runtime_turn(rt, PIRN_NEVER));
    fault_runtime_end(rt);
}

static void block_as_the_first_thing(void)
{
    pirn_runtime *rt = foreign_runtime();
    pirn_sleep_op sleep;

    pirn_sleep_init(&sleep, PIRN_EXPIRED);
    (void)SWEPT(pirn_block_on(rt, &sleep.future, PIRN_NEVER));
    fault_runtime_end(rt);
}

static void end_as_the_first_thing(void)
{
    pirn_runtime *rt = foreign_runtime();
    int rc = SWEPT(pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));

    EXPECT_EQ(0, rc);
    pirn_runtime_unref(rt);
}

static void give_up_as_the_first_thing(void)
{
    pirn_runtime_unref(foreign_runtime());
}

/* Goal: the first call that a thread makes is told if there is no memory for
 * what the thread needs; the end of a runtime needs none.
 * Method: the runtime is from another thread. */
TEST(fault_in_the_first_call_of_a_thread)
{
    SWEEP(turn_as_the_first_thing, SWEEP_MEMORY);
    SWEEP(block_as_the_first_thing, SWEEP_MEMORY | SWEEP_DESCRIPTORS);
    SWEEP(end_as_the_first_thing, SWEEP_EVERYTHING);
    SWEEP(give_up_as_the_first_thing, SWEEP_EVERYTHING);
}

/* Blocking. */

static int count_up(void *arg)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
    return 0;
}

static int run_jobs(void *arg)
{
    pirn_job *job = SWEEP_JUNK;
    int runs = 0;
    int due = 0;
    int outcome = 1;
    int rc = SWEPT(pirn_spawn_blocking(count_up, &runs, NULL, &job));

    (void)arg;
    EXPECT(rc == 0 || job == NULL);
    if (rc == 0) {
        EXPECT_EQ(0, SWEPT(pirn_job_join(job, PIRN_NEVER, &outcome)));
        EXPECT_EQ(0, outcome);
        pirn_job_unref(job);
        due++;
    }
    if (SWEPT(pirn_blocking_run(count_up, &runs)) == 0)
        due++;
    EXPECT_EQ(due, runs);
    return 0;
}

static void run_jobs_in_runtime(void)
{
    fault_run(workers, run_jobs, NULL);
}

/* Goal: a job is refused and has not run, or has run once.
 * Method: with a handle, and waited for in place. */
TEST(fault_in_blocking_jobs)
{
    workers = 0;
    SWEEP(run_jobs_in_runtime, SWEEP_EVERYTHING);
    workers = 2;
    SWEEP(run_jobs_in_runtime, SWEEP_EVERYTHING);
}

static int block_in_place(void *arg)
{
    int runs = 0;
    int rc = SWEPT(pirn_block_in_place(count_up, &runs));

    (void)arg;
    EXPECT_EQ(rc == 0 ? 1 : 0, runs);
    return 0;
}

static void block_in_runtime(void)
{
    fault_run(2, block_in_place, NULL);
}

/* Goal: the same in place.
 * Method: on a worker. */
TEST(fault_in_block_in_place)
{
    SWEEP(block_in_runtime, SWEEP_EVERYTHING);
}

/* A plain thread. */

static void sleep_outside(void)
{
    int runs = 0;

    (void)SWEPT(pirn_sleep(pirn_after_us(10)));
    (void)SWEPT(pirn_yield());
    (void)SWEPT(pirn_blocking_run(count_up, &runs));
}

/* Goal: calls outside any runtime, on a thread that makes its first one.
 * Method: the scenario's own. */
TEST(fault_in_plain_thread)
{
    SWEEP(sleep_outside, SWEEP_EVERYTHING);
}
