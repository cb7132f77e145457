/* SPDX-License-Identifier: MIT */
/* src/sched/computational_model.c - a runtime whose workers are woken by name:
 * each has its own tasks, one at most watches the wait set.
 *
 * Time stands still where nothing is timed, so that a wake that is lost is lost
 * for ever, and shows as a deadlock.
 */
#include <pirn/runtime.h>
#include <pirn/task.h>
#include <pirn/time.h>

#include "base/lock.h"
#include "engine/explore.h"
#include "sys/sys.h"

static pirn_runtime *rt;

static void begin(uint32_t workers)
{
    const pirn_runtime_options options = {.alloc = &explore_heap,
                                          .seed = 1,
                                          .workers = workers,
                                          .pool = PIRN_POOL_COMPUTATIONAL};

    EXPLORE_CHECK(pirn_runtime_new(&options, &rt) == 0);
}

static void end(void)
{
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, NULL) == 0);
    pirn_runtime_unref(rt);
}

/* Something that a task waits for, or a thread, which then sleeps. */
struct condition {
    pirn_lock lock;
    bool met;         /* lock */
    pirn_waker waker; /* lock */
    PIRN_SHARED(int) news;
    PIRN_ATOMIC(uint32_t) told;
};

static struct condition conditions[2];

static void meet(struct condition *condition)
{
    pirn_waker waker;

    pirn_cell_write(&condition->news, 1);
    pirn__lock(&condition->lock);
    condition->met = true;
    waker = pirn_waker_take(&condition->waker);
    pirn__unlock(&condition->lock);
    pirn_waker_wake(waker);
    pirn__store(&condition->told, 1, release);
    pirn__sys->futex_wake(&condition->told.v_, 1);
}

static void wait_as_thread(struct condition *condition)
{
    while (pirn__load(&condition->told, acquire) == 0)
        (void)pirn__sys->futex_wait(&condition->told.v_, 0, PIRN_NEVER);
}

/* A task: first waits for one thing, if it does, and then brings another about,
 * if it does. */
struct step {
    pirn_future future;
    struct condition *awaited; /* or NULL */
    struct condition *met;     /* or NULL */
    bool holds; /* waits as a thread, with its worker */
};

static enum pirn_poll await(struct condition *condition, pirn_cx *cx)
{
    pirn_waker old = {0};
    bool met;

    pirn__lock(&condition->lock);
    met = condition->met;
    if (!met)
        old = pirn_waker_store(&condition->waker, cx);
    pirn__unlock(&condition->lock);
    pirn_waker_drop(old);
    if (met)
        EXPLORE_CHECK(pirn_cell_read(&condition->news) == 1);
    return met ? PIRN_READY : PIRN_PENDING;
}

static enum pirn_poll step_poll(pirn_future *self, pirn_cx *cx)
{
    struct step *step = PIRN_CONTAINER_OF(self, struct step, future);

    if (step->holds)
        wait_as_thread(step->awaited);
    else if (step->awaited != NULL && await(step->awaited, cx) == PIRN_PENDING)
        return PIRN_PENDING;
    if (step->met != NULL)
        meet(step->met);
    return PIRN_READY;
}

static void step_drop(pirn_future *self)
{
    struct step *step = PIRN_CONTAINER_OF(self, struct step, future);
    pirn_waker old = {0};

    if (step->awaited == NULL || step->holds)
        return;
    pirn__lock(&step->awaited->lock);
    old = pirn_waker_take(&step->awaited->waker);
    pirn__unlock(&step->awaited->lock);
    pirn_waker_drop(old);
}

/* The slots are taken in turn. */
static pirn_task *spawn(struct step step)
{
    static const pirn_future_ops ops = {.poll = step_poll, .drop = step_drop};
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task;

    step.future.ops = &ops;
    EXPLORE_CHECK(pirn_spawn(&step.future, sizeof step, &options, &task) == 0);
    return task;
}

static void join(pirn_task *task)
{
    int outcome = -1;

    EXPLORE_CHECK(pirn_task_join(task, PIRN_NEVER, &outcome) == 0);
    EXPLORE_CHECK(outcome == 0);
    pirn_task_unref(task);
}

/* Goal: workers that sleep, or are about to, in the set and apart, end when they
 * are told. */
MODEL(computational_stop_against_sleep, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin(2);
    end();
}

/* Goal: a spawn from outside is run, whenever it meets the worker's way to
 * sleep. */
MODEL(computational_spawn_against_sleep, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    begin(1);
    join(spawn((struct step){.holds = false}));
    end();
}

/* Goal: the same for a wake. */
MODEL(computational_wake_against_sleep, .preemptions = 2, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_task *task;

    begin(1);
    task = spawn((struct step){.awaited = &conditions[0]});
    meet(&conditions[0]);
    join(task);
    end();
}

/* Goal: a task of one slot wakes one of the other, wherever its worker sleeps. */
MODEL(computational_wake_across_slots, .preemptions = 1, .stale = 1,
      .spurious = -1, .frozen = true)
{
    pirn_task *waiter;
    pirn_task *waker;

    begin(2);
    waiter = spawn((struct step){.awaited = &conditions[0]});
    waker = spawn((struct step){.met = &conditions[0]});
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
    pirn_task *other;

    begin(2);
    holder = spawn(
        (struct step){.awaited = &conditions[0], .holds = true});
    other = spawn((struct step){.met = &conditions[0]});
    join(holder);
    join(other);
    end();
}

/* A task around a sleep that others can reach. */

static pirn_sleep_op long_sleep;

static enum pirn_poll sleeper_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    if (pirn_future_poll(&long_sleep.future, cx) == PIRN_PENDING)
        return PIRN_PENDING;
    meet(&conditions[0]);
    return PIRN_READY;
}

static void sleeper_drop(pirn_future *self)
{
    (void)self;
    pirn_future_drop(&long_sleep.future);
}

static pirn_task *spawn_sleeper(pirn_deadline deadline)
{
    static const pirn_future_ops ops = {.poll = sleeper_poll,
                                        .drop = sleeper_drop};
    const pirn_spawn_options options = {.runtime = rt};
    pirn_future sleeper = {&ops};
    pirn_task *task;

    pirn_sleep_init(&long_sleep, deadline);
    EXPLORE_CHECK(pirn_spawn(&sleeper, sizeof sleeper, &options, &task) == 0);
    return task;
}

enum { SOON_NS = 2000000, MONITOR_NS = 5000000 };

/* Goal: somebody watches the set for the alarm of a sleeper's wheel, also when
 * the one that did is held by a task: the last one to leave the set tells one
 * that sleeps apart. */
MODEL(computational_timer_beside_a_held_worker, .preemptions = 1, .stale = -1,
      .spurious = -1, .timeouts = -1)
{
    pirn_task *holder;
    pirn_task *sleeper;

    begin(2);
    sleeper = spawn_sleeper((pirn_deadline){SOON_NS});
    holder = spawn(
        (struct step){.awaited = &conditions[0], .holds = true});
    join(sleeper);
    join(holder);
    EXPLORE_CHECK(pirn__sys->clock_ns() < MONITOR_NS);
    end();
}

/* Goal: an earlier time reaches a worker that sleeps, or is about to. */
MODEL(computational_earlier_timer_reaches_a_worker, .preemptions = 2,
      .stale = 1, .spurious = -1, .timeouts = -1)
{
    pirn_task *sleeper;

    begin(1);
    sleeper = spawn_sleeper(PIRN_NEVER);
    pirn_sleep_reset(&long_sleep, (pirn_deadline){SOON_NS});
    join(sleeper);
    EXPLORE_CHECK(pirn__sys->clock_ns() < MONITOR_NS);
    end();
}

static void spawn_and_unref(void *arg)
{
    static const pirn_future_ops ops = {.poll = step_poll, .drop = step_drop};
    const pirn_spawn_options options = {.runtime = rt};
    struct step step = {.future = {&ops}};
    int rc = pirn_spawn(&step.future, sizeof step, &options, NULL);

    (void)arg;
    EXPLORE_CHECK(rc == 0 || rc == PIRN_ESHUTDOWN);
    pirn_runtime_unref(rt);
}

/* Goal: a spawn from outside that meets the end is refused, or its task ends
 * with it. */
MODEL(computational_spawn_against_shutdown, .preemptions = 2, .stale = 1,
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
