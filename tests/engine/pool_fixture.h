/* SPDX-License-Identifier: MIT */
/* tests/engine/pool_fixture.h - pools for tests: runtimes with workers, tasks
 * that hold a worker up, and a pool without threads whose workers the test runs
 * by hand.
 */
#ifndef PIRN_TESTS_ENGINE_POOL_FIXTURE_H
#define PIRN_TESTS_ENGINE_POOL_FIXTURE_H

#include "sched/runtime.h"
#include "sched/runtime_test.h"
#include "sched/worker.h"

/* Runtimes with threads.  The variable PIRN_POOL says of which kind. */

static inline bool pool_steals(void)
{
    const char *kind = getenv("PIRN_POOL");

    return kind == NULL || strcmp(kind, "computational") != 0;
}

/* Leave the test where workers do not run each other's tasks. */
#define NEEDS_STEALING() \
    do { \
        if (!pool_steals()) \
            SKIP("it needs a pool whose workers help each other"); \
    } while (0)

static inline pirn_runtime *pool_with(const pirn_runtime_options *options)
{
    pirn_runtime *rt = NULL;

    EXPECT_EQ(0, pirn_runtime_new(options, &rt));
    return rt;
}

static inline pirn_runtime *pool_new(uint32_t workers)
{
    return pool_with(&(pirn_runtime_options){.workers = workers, .seed = 1});
}

static inline pirn_runtime *pool_on(struct meter *meter, uint32_t workers)
{
    return pool_with(&(pirn_runtime_options){
        .workers = workers, .seed = 1, .alloc = &meter->alloc});
}

/* How often something was counted by all workers together. */
static inline pirn_worker_info pool_counters(pirn_runtime *rt)
{
    pirn_worker_info sum = {0};
    pirn_worker_info one;

    for (uint32_t i = 0; pirn_runtime_get_worker(rt, i, &one) == 0; i++) {
        sum.polls += one.polls;
        sum.steals += one.steals;
        sum.overflows += one.overflows;
        sum.parks += one.parks;
        sum.wakes += one.wakes;
        sum.lifo_runs += one.lifo_runs;
        sum.yields += one.yields;
        sum.rescues += one.rescues;
        sum.queued += one.queued;
    }
    return sum;
}

/* Workers that sleep, wherever. */
static inline uint32_t pool_sleepers(pirn_runtime *rt)
{
    /* seq_cst [pool.pinned_apart]: as in pirn__pinned_nudge(). */
    return pirn__idle_sleepers(&rt->pool->idle) +
           pirn__load(&rt->pool->pinned_apart, seq_cst);
}

/* A task that does not give its worker back until it is let go. */
struct hog {
    tally holding; /* workers that are held */
    tally let_go;
};

static inline int hog_hold(void *arg)
{
    struct hog *hog = arg;

    tally_up(&hog->holding);
    wait_for_tally(&hog->let_go, 1);
    return 0;
}

/* Spawn one and wait until it holds a worker. */
static inline pirn_task *hog_start(struct hog *hog, pirn_runtime *rt)
{
    uint64_t before = tally_of(&hog->holding);
    pirn_task *task = go_task(rt, hog_hold, hog);

    wait_for_tally(&hog->holding, before + 1);
    return task;
}

/* A pool without threads: the test is whichever worker it wants to be. */

struct rig {
    pirn_runtime *rt;
    struct pirn__pool *pool;
    struct pirn__home_ops ops;
};

static inline void rig_init_kind(struct rig *rig, uint32_t workers,
                                 enum pirn_pool_kind kind)
{
    *rig = (struct rig){.rt = runtime_new()};
    REQUIRE(rig->rt != NULL);
    rig->rt->pool_kind = kind;
    rig->rt->seed = 1;
    rig->rt->shared_interval = 61;
    REQUIRE(pirn__pool_new(rig->rt, workers, &rig->pool) == 0);
    rig->ops = *rig->rt->home.ops;
    rig->ops.submit = pirn__pool_submit;
    rig->ops.wake = pirn__pool_wake;
    rig->ops.drive_or_park = pirn__pool_park;
    rig->rt->home.ops = &rig->ops;
    rig->rt->home.timers = &rig->pool->workers[0]->timers;
    rig->rt->pool = rig->pool;
    /* Away from the ticks at which a worker looks elsewhere first. */
    for (uint32_t i = 0; i < workers; i++)
        pirn__init(&rig->pool->workers[i]->counters.polls, 1);
}

static inline void rig_init(struct rig *rig, uint32_t workers)
{
    rig_init_kind(rig, workers, PIRN_POOL_STEALABLE);
}

/* All tasks must have ended. */
static inline void rig_deinit(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->pool->count; i++)
        pirn__slabs_flush(&rig->rt->slabs, &rig->pool->workers[i]->cache);
    runtime_end(rig->rt);
}

static inline struct pirn__worker *rig_worker(struct rig *rig, uint32_t index)
{
    return rig->pool->workers[index];
}

/* From here on this thread is the worker of that index. */
static inline void rig_become(struct rig *rig, uint32_t index)
{
    struct pirn__local *local = pirn__local();

    local->worker = rig_worker(rig, index);
    local->driving = &rig->rt->home;
}

/* And from here on again a thread outside. */
static inline void rig_leave(void)
{
    struct pirn__local *local = pirn__local();

    local->worker = NULL;
    local->driving = NULL;
}

/* What this thread has spawned from outside, one by one. */
static inline pirn_slink *rig_take_spawned(struct rig *rig)
{
    struct pirn__outside *outside =
        &rig->pool->outside[pirn__local()->outside - 1];
    struct pirn__queue queue = {0};

    EXPECT_EQ(1, pirn__injection_take(&outside->queue, &queue, 1));
    return pirn__queue_pop(&queue);
}

/* A queued task that is in no queue; its handle is dropped.  Run it in the
 * end. */
static inline struct pirn__task *rig_task(struct rig *rig)
{
    spawn_probe(rig->rt, step_ready, NULL, NULL);
    return pirn__task_of_link(rig_take_spawned(rig));
}

/* Run a task that was popped, as `worker`. */
static inline void rig_run(struct pirn__worker *worker, struct pirn__task *task)
{
    struct pirn__local *local = pirn__local();

    worker->turn.budget = PIRN__COOP_BUDGET;
    local->turn = &worker->turn;
    EXPECT_EQ(PIRN__WAKE_NONE,
              pirn__task_run(task, &worker->turn, &worker->cache));
    local->turn = NULL;
    worker->turn.task = NULL;
}

#endif /* PIRN_TESTS_ENGINE_POOL_FIXTURE_H */
