/* SPDX-License-Identifier: MIT */
/* src/sched/pool_model.c - the whole runtime with workers of its own: spawns, wakes
 * and the end, against workers on their way to sleep.
 */
#include <errno.h>

#include "engine/model_workers.h"
#include "sched/worker.h"

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

static enum pirn_poll first_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    return PIRN_READY;
}

static void spawn_without_handle(const pirn_future_ops *ops)
{
    pirn_future future = {ops};
    const pirn_spawn_options options = {.runtime = rt};

    EXPLORE_CHECK(pirn_spawn(&future, sizeof future, &options, NULL) == 0);
}

/* Goal: the same for one without a handle, which is counted and queued at once, and
 * for the next one, which wakes nobody if the first is still there. */
MODEL(pool_plain_spawns_from_outside_against_sleep, .preemptions = 2,
      .stale = 1, .spurious = -1, .frozen = true)
{
    static const pirn_future_ops first_ops = {.poll = first_poll,
                                              .drop = nothing_drop};

    begin(1);
    spawn_without_handle(&first_ops);
    spawn_without_handle(&child_ops);
    wait_for_child();
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

/* Goal: a wake from task to task, by the LIFO slot of one worker or across two.
 */
MODEL(pool_task_wakes_a_task, .preemptions = 1, .stale = -1, .spurious = -1,
      .frozen = true)
{
    pirn_task *waiter;
    pirn_task *waker;

    begin(2);
    waiter = spawn(&condition);
    waker = spawn_plain(&waker_ops);
    join(waiter);
    join(waker);
    end();
}

/* Goal: the end of the last task is seen by the shutdown that waits for it, or
 * the worker sees the shutdown and tells it. */
MODEL(pool_last_end_against_shutdown, .preemptions = 2, .stale = 2,
      .spurious = -1, .frozen = true)
{
    begin(1);
    pirn_task_unref(spawn(NULL));
    end();
}

/* Goal: a spawn from outside that meets the end is refused, or its task ends
 * with it. */
MODEL(pool_spawn_against_shutdown, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin(1);
    end_against_a_spawn();
}

/* Goal: the same with two workers. */
MODEL(pool_spawn_against_shutdown_of_two, .preemptions = 1, .stale = -1,
      .spurious = -1, .frozen = true)
{
    begin(2);
    end_against_a_spawn();
}

/* Goal: the same for a wake: its task is run or cancelled. */
MODEL(pool_wake_against_shutdown_of_two, .preemptions = -1, .stale = -1,
      .spurious = -1, .frozen = true)
{
    pirn_report report;

    begin(2);
    pirn_task_unref(spawn(&condition));
    explore_thread(meet_late, &condition);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, &report) == 0);
    explore_join();
    EXPLORE_CHECK(report.completed + report.cancelled == 1);
    pirn_runtime_unref(rt);
}

/* Goal: a waker that is used while the runtime goes does nothing on what is
 * dead, and the last of all frees the memory. */
MODEL(pool_unref_against_a_waker, .preemptions = 1, .stale = 2,
      .spurious = -1, .frozen = true)
{
    begin(1);
    pirn_task_unref(spawn(&condition));
    explore_thread(meet_late, &condition);
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
static enum pirn_poll parent_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_future child = {&child_ops};

    (void)self;
    (void)cx;
    EXPLORE_CHECK(pirn_spawn(&child, sizeof child, NULL, NULL) == 0);
    wait_for_child();
    return PIRN_READY;
}

static const pirn_future_ops parent_ops = {.poll = parent_poll,
                                           .drop = nothing_drop};

/* Goal: what a task has started is run by another worker, asleep, on its way to
 * sleep or to a nap, while the task keeps its own. */
MODEL(pool_task_that_waits_for_what_it_started, .preemptions = 1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    begin(2);
    join(spawn_plain(&parent_ops));
    expect_before_the_monitor();
    end();
}

/* Have a cell at hand, so that a spawn is done in place. */
static void bring_cell(size_t future_size)
{
    struct pirn__slab_cache *cache = &pirn__local()->worker->cache;
    size_t size = pirn__task_cell_size(future_size);

    pirn__slabs_give(cache, pirn__slabs_take(&rt->slabs, cache, size));
}

static enum pirn_poll usual_parent_poll(pirn_future *self, pirn_cx *cx)
{
    bring_cell(sizeof(pirn_future));
    return parent_poll(self, cx);
}

static const pirn_future_ops usual_parent_ops = {.poll = usual_parent_poll,
                                                 .drop = nothing_drop};

/* Goal: the same for the usual spawn. */
MODEL(pool_task_that_waits_for_what_it_usually_starts, .preemptions = 1,
      .stale = -1, .spurious = -1, .timeouts = -1)
{
    begin(2);
    join(spawn_plain(&usual_parent_ops));
    expect_before_the_monitor();
    end();
}

/* A task that starts one that waits for ever, unless it is told to stop. */
static enum pirn_poll late_parent_poll(pirn_future *self, pirn_cx *cx)
{
    static const pirn_future_ops ops = {.poll = waiting_poll,
                                        .drop = waiting_drop};
    struct waiting child = {{&ops}, &condition};
    int rc;

    (void)self;
    (void)cx;
    bring_cell(sizeof child);
    rc = pirn_spawn(&child.future, sizeof child, NULL, NULL);
    EXPLORE_CHECK(rc == 0 || rc == PIRN_ESHUTDOWN);
    return PIRN_READY;
}

static const pirn_future_ops late_parent_ops = {.poll = late_parent_poll,
                                                .drop = nothing_drop};

/* Goal: a usual spawn that meets the end is refused, or its task is told of it:
 * by the visit, or by its spawner. */
MODEL(pool_usual_spawn_against_shutdown, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin(1);
    pirn_task_unref(spawn_plain(&late_parent_ops));
    end();
}

/* Goal: two spawns from outside that need two workers get them, also when one
 * worker has taken both. */
MODEL(pool_two_spawns_that_meet, .preemptions = 1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *tasks[2];

    begin(2);
    for (int i = 0; i < 2; i++)
        tasks[i] = spawn_plain(&meeting_ops);
    for (int i = 0; i < 2; i++)
        join(tasks[i]);
    expect_before_the_monitor();
    end();
}

static pirn_task *second_task;

static void spawn_second(void *arg)
{
    (void)arg;
    second_task = spawn_plain(&meeting_ops);
    pirn_runtime_unref(rt);
}

/* Goal: the same when the second spawn counts on the search of the worker that
 * the first one has woken. */
MODEL(pool_spawn_against_a_searcher, .preemptions = 1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *task;

    begin(2);
    wait_ns(1000);
    task = spawn_plain(&meeting_ops);
    (void)pirn_runtime_ref(rt);
    explore_thread(spawn_second, NULL);
    join(task);
    expect_before_the_monitor();
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, NULL) == 0);
    explore_join();
    pirn_task_unref(second_task);
    pirn_runtime_unref(rt);
}

/* Goal: two spawns and two workers: one wake is under way at a time, and that
 * is enough. */
MODEL(pool_two_spawns_and_two_workers, .preemptions = 1, .stale = -1,
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
