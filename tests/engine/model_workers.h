/* SPDX-License-Identifier: MIT */
/* tests/engine/model_workers.h - a whole runtime in model tests, with workers of
 * its own or none, conditions to wait for, and tasks that hold their worker.
 *
 * Where time stands still a wake that is lost is lost for ever, and shows as a
 * deadlock.  Where it passes, naps end, and what was lost shows as late: the
 * monitor has looked.
 */
#ifndef PIRN_TESTS_ENGINE_MODEL_WORKERS_H
#define PIRN_TESTS_ENGINE_MODEL_WORKERS_H

#include <pirn/runtime.h>
#include <pirn/task.h>
#include <pirn/time.h>

#include "base/lock.h"
#include "engine/explore.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/sys.h"
#include "task/local.h"

static pirn_runtime *rt;

static inline void begin_with(pirn_runtime_options options)
{
    options.alloc = &explore_heap;
    options.seed = 1;
    EXPLORE_CHECK(pirn_runtime_new(&options, &rt) == 0);
}

static inline void begin(uint32_t workers)
{
    begin_with((pirn_runtime_options){.workers = workers});
}

static inline void end(void)
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

static inline enum pirn_poll waiting_poll(pirn_future *self, pirn_cx *cx)
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

static inline void waiting_drop(pirn_future *self)
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

static inline void meet(struct condition *of)
{
    pirn_waker waker;

    pirn_cell_write(&of->news, 1);
    pirn__lock(&of->lock);
    of->met = true;
    waker = pirn_waker_take(&of->waker);
    pirn__unlock(&of->lock);
    pirn_waker_wake(waker);
}

/* The same, by a thread beside. */
static inline void meet_late(void *of)
{
    meet(of);
}

static inline pirn_task *spawn(struct condition *of)
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

static inline void join(pirn_task *task)
{
    int outcome = -1;

    EXPLORE_CHECK(pirn_task_join(task, PIRN_NEVER, &outcome) == 0);
    EXPLORE_CHECK(outcome == 0);
    pirn_task_unref(task);
}

static PIRN_ATOMIC(uint32_t) never;

/* This thread, or the worker of this task, does nothing else for so long; who else
 * has something to do does it first. */
static inline void wait_ns(uint64_t ns)
{
    pirn_deadline end = {pirn__sys->clock_ns() + ns};

    while (pirn__sys->clock_ns() < end.ns)
        (void)pirn__sys->futex_wait(&never.v_, 0, end);
}

/* What is late, but is not lost, comes when the monitor looks. */
static inline void expect_before_the_monitor(void)
{
    EXPLORE_CHECK(pirn__sys->clock_ns() < 5000000);
}

static inline void nothing_drop(pirn_future *self)
{
    (void)self;
}

/* Spawn a future that is nothing but its operations. */
static inline pirn_task *spawn_plain(const pirn_future_ops *ops)
{
    pirn_future future = {ops};
    const pirn_spawn_options options = {.runtime = rt};
    pirn_task *task;

    EXPLORE_CHECK(
        pirn_spawn(&future, sizeof future, &options, &task) == 0);
    return task;
}

/* A task that wakes the one that waits for the condition. */
static inline enum pirn_poll waker_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    meet(&condition);
    return PIRN_READY;
}

static const pirn_future_ops waker_ops = {.poll = waker_poll,
                                          .drop = nothing_drop};

static inline void spawn_late(void *arg)
{
    pirn_future future = {&waker_ops};
    const pirn_spawn_options options = {.runtime = rt};
    int rc = pirn_spawn(&future, sizeof future, &options, NULL);

    (void)arg;
    EXPLORE_CHECK(rc == 0 || rc == PIRN_ESHUTDOWN);
    pirn_runtime_unref(rt);
}

/* A spawn from outside that meets the end is refused, or its task ends with it.
 */
static inline void end_against_a_spawn(void)
{
    pirn_report report;

    (void)pirn_runtime_ref(rt);
    explore_thread(spawn_late, NULL);
    EXPLORE_CHECK(pirn_runtime_shutdown(rt, PIRN_NEVER, &report) == 0);
    explore_join();
    EXPLORE_CHECK(report.spawned == report.completed + report.cancelled);
    pirn_runtime_unref(rt);
}

/* A task that sleeps, and its sleep, which others can reach. */

static pirn_sleep_op long_sleep;

static inline enum pirn_poll sleeper_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    return pirn_future_poll(&long_sleep.future, cx);
}

static inline void sleeper_drop(pirn_future *self)
{
    (void)self;
    pirn_future_drop(&long_sleep.future);
}

static inline pirn_task *spawn_sleeper(pirn_deadline deadline)
{
    static const pirn_future_ops ops = {.poll = sleeper_poll,
                                        .drop = sleeper_drop};

    pirn_sleep_init(&long_sleep, deadline);
    return spawn_plain(&ops);
}

/* What a task waits for that does not come back before another one has run. */

static PIRN_ATOMIC(uint32_t) child_ran;

static inline enum pirn_poll child_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    pirn__store(&child_ran, 1, release);
    pirn__sys->futex_wake(&child_ran.v_, 1);
    return PIRN_READY;
}

static const pirn_future_ops child_ops = {.poll = child_poll,
                                          .drop = nothing_drop};

static inline void wait_for_child(void)
{
    while (pirn__load(&child_ran, acquire) == 0)
        (void)pirn__sys->futex_wait(&child_ran.v_, 0, PIRN_NEVER);
}

/* Tasks that do not come back before both have begun. */

static PIRN_ATOMIC(uint32_t) begun;

static inline enum pirn_poll meeting_poll(pirn_future *self, pirn_cx *cx)
{
    uint32_t count = pirn__add(&begun, 1, acq_rel) + 1;

    (void)self;
    (void)cx;
    pirn__sys->futex_wake(&begun.v_, 1);
    while (count < 2) {
        (void)pirn__sys->futex_wait(&begun.v_, count, PIRN_NEVER);
        count = pirn__load(&begun, acquire);
    }
    return PIRN_READY;
}

static const pirn_future_ops meeting_ops = {.poll = meeting_poll,
                                            .drop = nothing_drop};

#endif /* PIRN_TESTS_ENGINE_MODEL_WORKERS_H */
