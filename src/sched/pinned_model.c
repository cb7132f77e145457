/* SPDX-License-Identifier: MIT */
/* src/sched/pinned_model.c - a worker with pinned tasks goes to sleep: in the wait
 * set if nobody else is there, else apart from it, to be woken by name.
 */
#include "engine/model_pool.h"
#include "sys/sys.h"

static struct model_pool model;

static struct pirn__worker *pinned(void)
{
    return model_worker(&model, 0);
}

static void begin(void)
{
    model_pool_begin(&model);
    for (int i = 0; i < MODEL_TASKS; i++)
        pirn__init(&model.tasks[i].task.cell.word,
                   PIRN__QUEUED | PIRN__PINNED);
}

/* Its first pinned task is about to come. */
static void prepare(void)
{
    model_become(pinned());
    EXPLORE_CHECK(pirn__pinned_prepare(pinned()) == 0);
}

/* Sleep as worker.c does. */
static void sleep_once(struct pirn__worker *self)
{
    self->harvest.woken = false;
    if (pirn__pinned_sleep(self, false))
        (void)pirn__reactor_harvest(model.rt->home.reactor, &self->harvest,
                                    PIRN_EXPIRED);
    /* The wake of a stop was not claimed. */
    if (self->harvest.woken && !pirn__pool_is_stopped(model.pool))
        (void)pirn__idle_stop_search(&model.pool->idle);
}

static void run_pinned(void *arg)
{
    int *count = arg;

    prepare();
    for (int i = 0; i < *count; i++) {
        while (model_pop(&model, pinned()) < 0)
            sleep_once(pinned());
    }
}

static int one = 1, two = 2;

static void push(void *arg)
{
    int *index = arg;

    model_push_outside(&model, *index, PIRN__ORIGIN_WAKE);
}

/* Goal: a push meets the worker on its way to sleep in the set. */
MODEL(pinned_push_against_sleep_in_the_set, .preemptions = 4, .frozen = true,
      .may_leak = true)
{
    begin();
    explore_thread(run_pinned, &one);
    model_push_outside(&model, 0, PIRN__ORIGIN_WAKE);
    explore_join();
    EXPLORE_CHECK(pirn__load(&model.pool->idle.word, relaxed) == 0);
    EXPLORE_CHECK(pirn__load(&model.pool->pinned_apart, relaxed) == 0);
}

/* Goal: the same apart from it, as another worker is there. */
MODEL(pinned_push_against_sleep_apart, .preemptions = 4, .frozen = true,
      .may_leak = true)
{
    begin();
    pirn__idle_enter_sleep(&model.pool->idle, false);
    explore_thread(run_pinned, &one);
    model_push_outside(&model, 0, PIRN__ORIGIN_WAKE);
    explore_join();
    EXPLORE_CHECK(pirn__idle_sleepers(&model.pool->idle) == 1);
    EXPLORE_CHECK(pirn__load(&model.pool->pinned_apart, relaxed) == 0);
}

/* Goal: two pushers: of two wakers one may write, and both tasks are run. */
MODEL(pinned_two_pushes_against_sleep, .preemptions = 2, .frozen = true,
      .stale = 3, .may_leak = true)
{
    begin();
    explore_thread(run_pinned, &two);
    explore_thread(push, &one);
    model_push_outside(&model, 0, PIRN__ORIGIN_WAKE);
    explore_join();
}

/* The worker with pinned tasks until it has seen work of all. */
static void watch_set(void *arg)
{
    (void)arg;
    prepare();
    while (model_find(&model, pinned()) < 0)
        sleep_once(pinned());
}

/* Goal: the last one in the set leaves it for good while one with pinned tasks
 * goes to sleep: that one watches the set, or is told to.
 * Method: work for anybody comes after that. */
MODEL(pinned_watches_the_set_when_the_last_one_leaves, .preemptions = 3,
      .frozen = true, .stale = 3, .may_leak = true)
{
    begin();
    pirn__init(&model.tasks[0].task.cell.word, PIRN__QUEUED);
    pirn__idle_enter_sleep(&model.pool->idle, false);
    explore_thread(watch_set, NULL);
    if (pirn__idle_leave_sleep(&model.pool->idle))
        pirn__pinned_nudge(model.pool);
    model_push_outside(&model, 0, PIRN__ORIGIN_SPAWN);
    explore_join();
}

/* A second worker with pinned tasks, until it has seen work of all. */
static void watch_beside(void *arg)
{
    struct pirn__worker *self = model_worker(&model, 1);

    (void)arg;
    model_become(self);
    EXPLORE_CHECK(pirn__pinned_prepare(self) == 0);
    while (model_find(&model, self) < 0)
        sleep_once(self);
}

static PIRN_ATOMIC(uint32_t) busy; /* the first one, from now on */

static void run_pinned_and_stay(void *arg)
{
    run_pinned(arg);
    pirn__store(&busy, 1, release);
    pirn__sys->futex_wake(&busy.v_, 1);
}

/* Goal: of two with pinned tasks the one in the set gets one; the other one
 * watches the set then.
 * Method: as before. */
MODEL(pinned_watches_the_set_after_another_one, .preemptions = 2,
      .frozen = true, .stale = 2, .spurious = -1, .may_leak = true)
{
    begin();
    pirn__init(&model.tasks[1].task.cell.word, PIRN__QUEUED);
    explore_thread(run_pinned_and_stay, &one);
    explore_thread(watch_beside, NULL);
    model_push_outside(&model, 0, PIRN__ORIGIN_WAKE);
    while (pirn__load(&busy, acquire) == 0)
        (void)pirn__sys->futex_wait(&busy.v_, 0, PIRN_NEVER);
    model_push_outside(&model, 1, PIRN__ORIGIN_SPAWN);
    explore_join();
}

static void stop(void *arg)
{
    (void)arg;
    pirn__pool_stop(model.pool);
}

static void sleep_until_stopped(void *arg)
{
    (void)arg;
    prepare();
    while (!pirn__pool_is_stopped(model.pool))
        sleep_once(pinned());
}

/* Goal: the end reaches it, in the set or apart. */
MODEL(pinned_stop_against_sleep, .preemptions = 3, .frozen = true,
      .may_leak = true)
{
    begin();
    if (explore_choose(2) == 0)
        pirn__idle_enter_sleep(&model.pool->idle, false);
    explore_thread(sleep_until_stopped, NULL);
    explore_thread(stop, NULL);
    explore_join();
}
