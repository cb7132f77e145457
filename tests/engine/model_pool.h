/* SPDX-License-Identifier: MIT */
/* tests/engine/model_pool.h - a pool without threads in model tests: each thread
 * of the model is whichever worker it says it is, and calls what a worker calls.
 *
 * Its tasks are never run.  Each brings news, written before it is put and read
 * when it is taken, so that a hand-over that orders nothing is a race.
 */
#ifndef PIRN_TESTS_ENGINE_MODEL_POOL_H
#define PIRN_TESTS_ENGINE_MODEL_POOL_H

#include <pirn/runtime.h>

#include "engine/explore.h"
#include "sched/nap.h"
#include "sched/pinned.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "task/local.h"
#include "task/task.h"

enum { MODEL_TASKS = 8 };

struct model_task {
    struct pirn__task task; /* first */
    PIRN_SHARED(int) news;
    PIRN_ATOMIC(int) taken; /* how often */
};

struct model_pool {
    pirn_runtime *rt;
    struct pirn__pool *pool;
    struct model_task tasks[MODEL_TASKS];
};

static inline struct pirn__worker *model_worker(struct model_pool *model,
                                                uint32_t index)
{
    return model->pool->workers[index];
}

/* The tasks ran last on the first worker. */
static inline void model_pool_begin_with(struct model_pool *model,
                                         uint32_t workers)
{
    const pirn_runtime_options options = {.alloc = &explore_heap, .seed = 1};

    EXPLORE_CHECK(pirn_runtime_new(&options, &model->rt) == 0);
    EXPLORE_CHECK(pirn__pool_new(model->rt, workers, &model->pool) == 0);
    for (int i = 0; i < MODEL_TASKS; i++)
        pirn__init(&model->tasks[i].task.cell.word, PIRN__QUEUED);
    /* Away from the ticks at which a worker looks elsewhere first. */
    for (uint32_t i = 0; i < workers; i++)
        pirn__init(&model_worker(model, i)->counters.polls, 1);
}

static inline void model_pool_begin(struct model_pool *model)
{
    model_pool_begin_with(model, 2);
}

static inline void model_become(struct pirn__worker *worker)
{
    struct pirn__local *local = pirn__local();

    EXPLORE_CHECK(local != NULL);
    local->worker = worker;
    local->driving = &worker->pool->rt->home;
}

static inline struct pirn__task *model_news(struct model_pool *model, int index)
{
    pirn_cell_write(&model->tasks[index].news, index + 1);
    return &model->tasks[index].task;
}

/* A thread outside wakes or spawns it, as pirn__pool_submit() does. */
static inline void model_push_outside(struct model_pool *model, int index,
                                      enum pirn__origin origin)
{
    struct pirn__pool *pool = model->pool;

    if (pool->tasks->push(pool, NULL, model_news(model, index), origin))
        pirn__pool_wake_any(pool);
}

/* A running task of `worker` does. */
static inline void model_push_here(struct model_pool *model,
                                   struct pirn__worker *worker, int index,
                                   enum pirn__origin origin)
{
    struct pirn__pool *pool = model->pool;
    struct pirn__task running;
    bool visible;

    worker->turn.task = &running;
    visible = pool->tasks->push(pool, worker, model_news(model, index), origin);
    worker->turn.task = NULL;
    if (visible)
        pirn__pool_wake_one(pool);
}

/* Count it as taken; its number, -1 without one. */
static inline int model_take(struct model_pool *model, struct pirn__task *task)
{
    struct model_task *taken = (struct model_task *)(void *)task;
    int index;

    if (task == NULL)
        return -1;
    index = (int)(taken - model->tasks);
    EXPLORE_CHECK(pirn_cell_read(&taken->news) == index + 1);
    pirn__add(&taken->taken, 1, relaxed);
    return index;
}

static inline int model_pop(struct model_pool *model,
                            struct pirn__worker *worker)
{
    return model_take(model, model->pool->tasks->pop(worker));
}

static inline int model_pop_shared(struct model_pool *model,
                                   struct pirn__worker *worker)
{
    return model_take(model, model->pool->tasks->pop_shared(worker));
}

static inline int model_steal(struct model_pool *model,
                              struct pirn__worker *worker)
{
    return model_take(model, model->pool->tasks->steal(worker));
}

/* As a worker looks for a task, except for events. */
static inline int model_find(struct model_pool *model,
                             struct pirn__worker *worker)
{
    int index = model_pop(model, worker);

    if (index < 0)
        index = model_pop_shared(model, worker);
    if (index < 0)
        index = model_steal(model, worker);
    return index;
}

/* The second worker on its way to sleep, as in worker.c, until it has a task. */
static inline void model_find_or_sleep(struct model_pool *model)
{
    struct pirn__worker *self = model_worker(model, 1);
    struct pirn__idle *idle = &model->pool->idle;

    model_become(self);
    while (model_find(model, self) < 0) {
        pirn__idle_enter_sleep(idle, false);
        self->harvest.woken = false;
        if (!model->pool->tasks->has_some(self))
            (void)pirn__reactor_harvest(model->rt->home.reactor,
                                        &self->harvest, PIRN_NEVER);
        (void)pirn__idle_leave_sleep(idle);
        if (self->harvest.woken)
            (void)pirn__idle_stop_search(idle);
    }
}

/* After the join: the first `count` tasks were taken once, or are where a worker
 * finds them. */
static inline void model_pool_end(struct model_pool *model, int count)
{
    bool found = true;

    while (found) {
        found = false;
        for (uint32_t i = 0; i < model->pool->count; i++)
            found |= model_find(model, model_worker(model, i)) >= 0;
    }
    for (int i = 0; i < count; i++)
        EXPLORE_CHECK(pirn__load(&model->tasks[i].taken, relaxed) == 1);
    for (uint32_t i = 0; i < model->pool->count; i++)
        /* relaxed: the threads were joined. */
        EXPLORE_CHECK(pirn__load(&model_worker(model, i)->inbox_len,
                                 relaxed) == 0);
}

#endif /* PIRN_TESTS_ENGINE_MODEL_POOL_H */
