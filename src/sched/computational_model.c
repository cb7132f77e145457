/* SPDX-License-Identifier: MIT */
/* src/sched/computational_model.c - a runtime whose workers are woken by name:
 * each has its own tasks, one at most watches the wait set.
 *
 * Time stands still where nothing is timed, so that a wake that is lost is lost
 * for ever, and shows as a deadlock.
 */
#include "engine/model_workers.h"

static void begin_computational(uint32_t workers)
{
    begin_with((pirn_runtime_options){.workers = workers,
                                      .pool = PIRN_POOL_COMPUTATIONAL});
}

/* A task that keeps its worker until the child has run. */
static enum pirn_poll holder_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    wait_for_child();
    return PIRN_READY;
}

static const pirn_future_ops holder_ops = {.poll = holder_poll,
                                           .drop = nothing_drop};

/* Goal: workers that sleep, or are about to, in the set and apart, end when they
 * are told. */
MODEL(computational_stop_against_sleep, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin_computational(2);
    end();
}

/* Goal: a spawn from outside is run, whenever it meets the worker's way to
 * sleep. */
MODEL(computational_spawn_against_sleep, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin_computational(1);
    join(spawn(NULL));
    end();
}

/* Goal: the same for a wake. */
MODEL(computational_wake_against_sleep, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_task *task;

    begin_computational(1);
    task = spawn(&condition);
    meet(&condition);
    join(task);
    end();
}

/* Goal: a task of one slot wakes one of the other, wherever its worker sleeps. */
MODEL(computational_wake_across_slots, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_task *waiter;
    pirn_task *waker;

    begin_computational(2);
    waiter = spawn(&condition);
    waker = spawn_plain(&waker_ops);
    join(waiter);
    join(waker);
    end();
}

/* Goal: a worker that is held keeps nothing from the other, which is woken by
 * name although nobody else could bring it. */
MODEL(computational_held_worker_keeps_nobody, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_task *holder;
    pirn_task *child;

    begin_computational(2);
    holder = spawn_plain(&holder_ops);
    child = spawn_plain(&child_ops);
    join(holder);
    join(child);
    end();
}

/* A child that sleeps first. */
static enum pirn_poll sleeping_child_poll(pirn_future *self, pirn_cx *cx)
{
    if (sleeper_poll(self, cx) == PIRN_PENDING)
        return PIRN_PENDING;
    return child_poll(self, cx);
}

static const pirn_future_ops sleeping_child_ops = {
    .poll = sleeping_child_poll, .drop = sleeper_drop};

enum { SOON_NS = 2000000 };

/* Goal: somebody watches the set for the alarm of a sleeper's wheel, also when
 * the one that did is held by a task: the last one to leave the set tells one
 * that sleeps apart. */
MODEL(computational_timer_beside_a_held_worker, .preemptions = 1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *holder;
    pirn_task *child;

    begin_computational(2);
    pirn_sleep_init(&long_sleep, (pirn_deadline){SOON_NS});
    child = spawn_plain(&sleeping_child_ops);
    holder = spawn_plain(&holder_ops);
    join(child);
    join(holder);
    expect_before_the_monitor();
    end();
}

/* Goal: an earlier time reaches a worker that sleeps, or is about to. */
MODEL(computational_earlier_timer_reaches_a_worker, .preemptions = 2,
      .stale = 1, .spurious = -1, .timeouts = -1)
{
    pirn_task *sleeper;

    begin_computational(1);
    sleeper = spawn_sleeper(PIRN_NEVER);
    pirn_sleep_reset(&long_sleep, (pirn_deadline){SOON_NS});
    join(sleeper);
    expect_before_the_monitor();
    end();
}

/* Goal: a spawn from outside that meets the end is refused, or its task ends
 * with it. */
MODEL(computational_spawn_against_shutdown, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin_computational(1);
    end_against_a_spawn();
}
