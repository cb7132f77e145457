/* SPDX-License-Identifier: MIT */
/* src/sched/monitor_model.c - the monitor's alarm against workers that begin and
 * cease to run.
 *
 * The worker's half is what worker.c does: say that it runs, and arm when it has
 * found a task.
 */
#include "base/lock.h"
#include "engine/model_pool.h"

static struct model_pool model;

static bool is_armed(void)
{
    bool armed;

    pirn__lock(&model.pool->monitor.lock);
    armed = model.pool->monitor.armed_ns != UINT64_MAX;
    pirn__unlock(&model.pool->monitor.lock);
    return armed;
}

static void say(uint32_t index, enum pirn__worker_state state)
{
    pirn__store(&model_worker(&model, index)->state, (uint32_t)state, seq_cst);
}

static void begin(void)
{
    model_pool_begin(&model);
    say(0, PIRN__WORKER_SLEEPING);
    say(1, PIRN__WORKER_SLEEPING);
}

/* What the reactor does when it harvests the alarm. */
static void harvest(void)
{
    struct pirn__alarm *alarm = &model.pool->monitor;

    pirn__lock(&alarm->lock);
    alarm->armed_ns = UINT64_MAX;
    pirn__unlock(&alarm->lock);
    alarm->fn(alarm);
}

static void harvest_once(void *arg)
{
    (void)arg;
    harvest();
}

static void begin_to_run(void *arg)
{
    uint32_t *index = arg;

    say(*index, PIRN__WORKER_RUNNING);
    pirn__monitor_arm(model.pool);
}

static uint32_t first, second = 1;

/* Goal: a worker that begins to run is watched afterwards, whenever it meets the
 * event that would disarm the monitor. */
MODEL(monitor_arm_against_its_event, .preemptions = 4, .may_leak = true)
{
    begin();
    pirn__monitor_arm(model.pool);
    explore_thread(harvest_once, NULL);
    begin_to_run(&first);
    explore_join();
    EXPLORE_CHECK(is_armed());
}

/* Goal: the same for two workers at once, when it is not armed. */
MODEL(monitor_armed_by_two_workers, .preemptions = 4, .may_leak = true)
{
    begin();
    explore_thread(begin_to_run, &first);
    explore_thread(begin_to_run, &second);
    explore_join();
    EXPLORE_CHECK(is_armed());
    harvest();
    EXPLORE_CHECK(is_armed());
}

/* Goal: when the last worker goes to sleep the alarm is set at most once more. */
MODEL(monitor_rests_when_nobody_runs, .preemptions = 4, .may_leak = true)
{
    begin();
    begin_to_run(&first);
    explore_thread(harvest_once, NULL);
    say(0, PIRN__WORKER_SLEEPING);
    explore_join();
    if (is_armed())
        harvest();
    EXPLORE_CHECK(!is_armed());
    /* And it can be armed again. */
    begin_to_run(&second);
    EXPLORE_CHECK(is_armed());
}

/* The other worker until it has a task; nobody else wakes it. */
static void find_or_sleep(void *arg)
{
    (void)arg;
    model_find_or_sleep(&model);
}

/* Goal: what waits in the LIFO slot of a worker that does not move is run by one
 * that sleeps, or is about to.
 * Method: two events without a poll between them. */
MODEL(monitor_rescues_for_a_sleeper, .preemptions = 2, .stale = 2,
      .frozen = true, .may_leak = true)
{
    struct pirn__worker *stuck;

    begin();
    stuck = model_worker(&model, 0);
    pirn__count(&stuck->counters.polls);
    say(0, PIRN__WORKER_RUNNING);
    model_push_here(&model, stuck, 0, PIRN__ORIGIN_WAKE);
    explore_thread(find_or_sleep, NULL);
    harvest();
    /* It has moved until then. */
    EXPLORE_CHECK(pirn__load(&stuck->lifo, relaxed) != NULL);
    harvest();
    explore_join();
}

static void move_on(void *arg)
{
    struct pirn__worker *self = model_worker(&model, 0);

    (void)arg;
    model_become(self);
    pirn__count(&self->counters.polls);
    (void)model_pop(&model, self);
}

/* Goal: two threads that harvest it at once, and a worker that moves on just
 * then: the task is run once. */
MODEL(monitor_rescue_against_its_worker, .preemptions = 2, .stale = 2,
      .may_leak = true)
{
    begin();
    say(0, PIRN__WORKER_RUNNING);
    model_push_here(&model, model_worker(&model, 0), 0, PIRN__ORIGIN_WAKE);
    explore_thread(move_on, NULL);
    explore_thread(harvest_once, NULL);
    harvest();
    explore_join();
    model_pool_end(&model, 1);
}
