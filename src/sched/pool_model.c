/* SPDX-License-Identifier: MIT */
/* src/sched/pool_model.c - the whole runtime with workers of its own.
 *
 * Time stands still, so that the monitor hides nothing: a wake that is lost is
 * lost for ever, and shows as a deadlock.
 */
#include <pirn/runtime.h>
#include <pirn/task.h>
#include <pirn/time.h>

#include <errno.h>

#include "base/lock.h"
#include "engine/explore.h"
#include "sys/sys.h"

static pirn_runtime *rt;

static void begin(uint32_t workers)
{
    const pirn_runtime_options options = {
        .alloc = &explore_heap, .seed = 1, .workers = workers};

    EXPLORE_CHECK(pirn_runtime_new(&options, &rt) == 0);
}

static void end(void)
{
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, NULL) == 0);
    pirn_runtime_unref(rt);
}

/* A future that waits for its condition, if it has one. */
struct condition {
    pirn_lock lock;
    bool met;         /* lock */
    pirn_waker waker; /* lock */
    PIRN_SHARED(int) news;
};

struct waiting {
    pirn_future future;
    struct condition *condition; /* or NULL */
};

static struct condition condition;

static enum pirn_poll waiting_poll(pirn_future *self, pirn_cx *cx)
{
    struct condition *of =
        PIRN_CONTAINER_OF(self, struct waiting, future)->condition;
    pirn_waker old = {0};
    bool met;

    if (of == NULL)
        return PIRN_READY;
    pirn__lock(&of->lock);
    met = of->met;
    if (!met)
        old = pirn_waker_store(&of->waker, cx);
    pirn__unlock(&of->lock);
    pirn_waker_drop(old);
    if (met)
        EXPLORE_CHECK(pirn_cell_read(&of->news) == 1);
    return met ? PIRN_READY : PIRN_PENDING;
}

static void waiting_drop(pirn_future *self)
{
    struct condition *of =
        PIRN_CONTAINER_OF(self, struct waiting, future)->condition;
    pirn_waker old = {0};

    if (of == NULL)
        return;
    pirn__lock(&of->lock);
    old = pirn_waker_take(&of->waker);
    pirn__unlock(&of->lock);
    pirn_waker_drop(old);
}

static void meet(struct condition *of)
{
    pirn_waker waker;

    pirn_cell_write(&of->news, 1);
    pirn__lock(&of->lock);
    of->met = true;
    waker = pirn_waker_take(&of->waker);
    pirn__unlock(&of->lock);
    pirn_waker_wake(waker);
}

static pirn_task *spawn(struct condition *of)
{
    static const pirn_future_ops ops = {.poll = waiting_poll,
                                        .drop = waiting_drop};
    struct waiting future = {{&ops}, of};
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task;

    EXPLORE_CHECK(
        pirn_spawn(&future.future, sizeof future, &options, &task) == 0);
    return task;
}

static void join(pirn_task *task)
{
    int outcome = -1;

    EXPLORE_CHECK(pirn_task_join(task, PIRN_NEVER, &outcome) == 0);
    EXPLORE_CHECK(outcome == 0);
    pirn_task_unref(task);
}

/* Goal: workers that sleep, or are about to, end when they are told. */
MODEL(pool_stop_against_workers_that_go_to_sleep, .preemptions = 1,
      .stale = 1, .spurious = -1, .frozen = true)
{
    begin(2);
    end();
}

/* Goal: a spawn from outside is run, whenever it meets the worker's way to
 * sleep. */
MODEL(pool_spawn_from_outside_against_sleep, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin(1);
    join(spawn(NULL));
    end();
}

/* Goal: the same for a wake, which goes to the inbox of the worker that ran it
 * last. */
MODEL(pool_wake_from_outside_against_sleep, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_task *task;

    begin(1);
    task = spawn(&condition);
    meet(&condition);
    join(task);
    end();
}

/* A task that wakes another one while it runs: by the LIFO slot. */
static enum pirn_poll waker_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    meet(&condition);
    return PIRN_READY;
}

static void waker_drop(pirn_future *self)
{
    (void)self;
}

static pirn_task *spawn_waker(void)
{
    static const pirn_future_ops ops = {.poll = waker_poll,
                                        .drop = waker_drop};
    pirn_future future = {&ops};
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task;

    EXPLORE_CHECK(
        pirn_spawn(&future, sizeof future, &options, &task) == 0);
    return task;
}

/* Goal: a wake from task to task, on one worker or across two. */
MODEL(pool_task_wakes_a_task, .preemptions = 1, .stale = 1, .spurious = -1,
      .frozen = true)
{
    pirn_task *waiter;
    pirn_task *waker;

    begin(2);
    waiter = spawn(&condition);
    waker = spawn_waker();
    join(waiter);
    join(waker);
    end();
}

static void spawn_and_unref(void *arg)
{
    static const pirn_future_ops ops = {.poll = waker_poll,
                                        .drop = waker_drop};
    pirn_future future = {&ops};
    const pirn_spawn_options options = {.runtime = rt};
    int rc = pirn_spawn(&future, sizeof future, &options, NULL);

    (void)arg;
    EXPLORE_CHECK(rc == 0 || rc == PIRN_ESHUTDOWN);
    pirn_runtime_unref(rt);
}

/* Goal: a spawn from outside that meets the end is refused, or its task ends
 * with it. */
MODEL(pool_spawn_against_shutdown, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_report report;

    begin(1);
    (void)pirn_runtime_ref(rt);
    explore_thread(spawn_and_unref, NULL);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, &report) == 0);
    explore_join();
    EXPLORE_CHECK(report.spawned == report.completed + report.cancelled);
    pirn_runtime_unref(rt);
}

static void wake_late(void *arg)
{
    meet(arg);
}

/* Goal: a waker that is used while the runtime goes does nothing on what is
 * dead, and the last of all frees the memory. */
MODEL(pool_unref_against_a_waker, .preemptions = 1, .stale = 2,
      .spurious = -1, .frozen = true)
{
    begin(1);
    pirn_task_unref(spawn(&condition));
    explore_thread(wake_late, &condition);
    end();
}

static void block_on_condition(void *arg)
{
    static const pirn_future_ops ops = {.poll = waiting_poll,
                                        .drop = waiting_drop};
    struct waiting future = {{&ops}, arg};

    EXPLORE_CHECK(pirn_block_on(rt, &future.future, PIRN_NEVER) ==
                  PIRN_ESHUTDOWN);
    pirn_runtime_unref(rt);
}

/* Goal: a block_on that waits beside the workers is told of the end. */
MODEL(pool_shutdown_against_a_block_on, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin(1);
    (void)pirn_runtime_ref(rt);
    explore_thread(block_on_condition, &condition);
    end();
}

/* A task that starts another one and does not come back before that has run. */

static PIRN_ATOMIC(uint32_t) child_ran;

static enum pirn_poll child_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    pirn__store(&child_ran, 1, release);
    pirn__sys->futex_wake(&child_ran.v_, 1);
    return PIRN_READY;
}

static enum pirn_poll parent_poll(pirn_future *self, pirn_cx *cx)
{
    static const pirn_future_ops ops = {.poll = child_poll,
                                        .drop = waker_drop};
    pirn_future child = {&ops};

    (void)self;
    (void)cx;
    EXPLORE_CHECK(pirn_spawn(&child, sizeof child, NULL, NULL) == 0);
    while (pirn__load(&child_ran, acquire) == 0)
        (void)pirn__sys->futex_wait(&child_ran.v_, 0, PIRN_NEVER);
    return PIRN_READY;
}

/* Goal: what a task has started is run by another worker, asleep or on its way
 * to sleep, while the task keeps its own. */
MODEL(pool_task_that_waits_for_what_it_started, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    static const pirn_future_ops ops = {.poll = parent_poll,
                                        .drop = waker_drop};
    pirn_future parent = {&ops};
    pirn_spawn_options options = {0};
    pirn_task *task;

    begin(2);
    options.runtime = rt;
    EXPLORE_CHECK(pirn_spawn(&parent, sizeof parent, &options, &task) == 0);
    join(task);
    end();
}

/* A task around a sleep that others can reach. */

static pirn_sleep_op long_sleep;

static enum pirn_poll sleeper_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    return pirn_future_poll(&long_sleep.future, cx);
}

static void sleeper_drop(pirn_future *self)
{
    (void)self;
    pirn_future_drop(&long_sleep.future);
}

/* Goal: an earlier time reaches a worker that sleeps, or is about to, at that
 * time and not when the monitor looks. */
MODEL(pool_earlier_timer_reaches_a_worker, .preemptions = 2, .stale = 1,
      .spurious = -1, .timeouts = -1)
{
    static const pirn_future_ops ops = {.poll = sleeper_poll,
                                        .drop = sleeper_drop};
    enum { SOON_NS = 2000000, MONITOR_NS = 5000000 };
    pirn_future sleeper = {&ops};
    pirn_spawn_options options = {0};
    pirn_task *task;

    begin(1);
    options.runtime = rt;
    pirn_sleep_init(&long_sleep, PIRN_NEVER);
    EXPLORE_CHECK(pirn_spawn(&sleeper, sizeof sleeper, &options, &task) == 0);
    pirn_sleep_reset(&long_sleep, (pirn_deadline){SOON_NS});
    join(task);
    EXPLORE_CHECK(pirn__sys->clock_ns() < MONITOR_NS);
    end();
}

/* Goal: two spawns and two workers: one wake is under way at a time, and that
 * is enough. */
MODEL(pool_two_spawns_and_two_workers, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_task *tasks[2];

    begin(2);
    for (int i = 0; i < 2; i++)
        tasks[i] = spawn(NULL);
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
    end();
}
