/* SPDX-License-Identifier: MIT */
/* src/sched/outside.c - see outside.h. */
#include "sched/outside.h"

#include <errno.h>

#include "base/checked.h"
#include "base/lock.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "task/task.h"

void pirn__outside_choose(struct pirn__pool *pool, struct pirn__local *local)
{
    /* relaxed: which one it is matters to nobody. */
    uint32_t turn = pirn__add(&pool->next_outside, 1, relaxed);

    local->outside = 1 + turn % PIRN__OUTSIDES;
}

/* Bring cells of a size; false without memory.  Not under the lock, for it may ask
 * the allocator. */
PIRN__COLD static bool refill(struct pirn_runtime *rt,
                              struct pirn__outside *outside, size_t size)
{
    struct pirn__queue cells = {0};
    uint32_t count = pirn__slabs_take_some(&rt->slabs, size, &cells);

    if (count == 0)
        return false;
    pirn__lock(&outside->queue.lock);
    if (pirn__group_gate(&rt->group) == PIRN__GROUP_OPEN) {
        pirn__slab_cache_add(&rt->slabs, &outside->cache, size, &cells, count);
        cells.head = NULL;
    }
    pirn__unlock(&outside->queue.lock);
    if (cells.head != NULL)
        pirn__slabs_give_back(&rt->slabs, &cells);
    return true;
}

/* Whoever takes the task has not touched it yet, and in a chain each is waited for
 * before the next is known.  So the one that stands some way before it learns of
 * it, if it is still in the queue: of those pushed since all was taken out it
 * certainly is.  True if the queue was empty. */
static inline bool push_locked(struct pirn__outside *outside,
                               struct pirn__task *task)
{
    struct pirn__injection *queue = &outside->queue;
    pirn_slink *link = &task->cell.link;
    bool was_empty = pirn__injection_push_locked(queue, link);

    task->ahead = NULL;
    queue->pushed++;
    if (queue->pushed == 1)
        outside->behind = link;
    if (queue->pushed <= PIRN__OUTSIDE_AHEAD)
        return was_empty;
    pirn__task_of_link(outside->behind)->ahead = task;
    outside->behind = outside->behind->next_;
    return was_empty;
}

/* A new task is counted, QUEUED and, if such wait here, in the queue.  True if it
 * has to be announced. */
static inline bool start_locked(struct pirn_runtime *rt,
                                struct pirn__outside *outside,
                                struct pirn__task *task)
{
    pirn__tally *spawned = &outside->ledger.spawned;

    task->group = &rt->group;
    pirn__state_open(pirn__task_state(task), 0, false);
    /* relaxed: the lock publishes it. */
    pirn__store(spawned, pirn__tally_next(spawned), relaxed);
    return !outside->keeps_tasks || push_locked(outside, task);
}

/* To who sleeps or naps, or to the worker that has to run it. */
static inline void announce(struct pirn_runtime *rt,
                            const struct pirn__outside *outside,
                            struct pirn__task *task)
{
    if (!outside->keeps_tasks)
        rt->home.ops->submit(&rt->home, task, PIRN__ORIGIN_SPAWN);
    else if (pirn__idle_is_away(&rt->pool->idle))
        pirn__pool_wake_any(rt->pool);
}

int pirn__outside_spawn(struct pirn_runtime *rt, struct pirn__outside *outside,
                        const struct pirn__task_ops *ops,
                        const pirn_future *future, size_t size,
                        const char *site)
{
    struct pirn__task *task = NULL;
    bool is_news = false;

    /* Ends: who brings cells and finds none has met others who have spawned. */
    for (;;) {
        bool is_open;

        pirn__lock(&outside->queue.lock);
        is_open = pirn__group_gate(&rt->group) == PIRN__GROUP_OPEN;
        if (is_open)
            task = pirn__task_from_cache(&outside->cache, ops, future, size,
                                         site);
        if (task != NULL)
            is_news = start_locked(rt, outside, task);
        pirn__unlock(&outside->queue.lock);
        if (task != NULL)
            break;
        if (!is_open)
            return PIRN_ESHUTDOWN;
        if (!refill(rt, outside, pirn__task_cell_size(size)))
            return pirn__runtime_phase(rt) == PIRN__PHASE_OPEN ? -ENOMEM
                                                            : PIRN_ESHUTDOWN;
    }
    if (is_news)
        announce(rt, outside, task);
    return 0;
}

bool pirn__outside_push(struct pirn__pool *pool, struct pirn__local *local,
                        struct pirn__task *task)
{
    struct pirn__outside *outside;
    bool is_news;

    if (local == NULL) {
        pirn__injection_push(&pool->injection, &task->cell.link);
        return true;
    }
    outside = pirn__outside_of(pool, local);
    pirn__lock(&outside->queue.lock);
    is_news = push_locked(outside, task);
    pirn__unlock(&outside->queue.lock);
    return is_news;
}

uint64_t pirn__outside_len(const struct pirn__pool *pool)
{
    uint64_t length = 0;

    for (int i = 0; i < PIRN__OUTSIDES; i++)
        length += pirn__injection_len(&pool->outside[i].front) +
                  pirn__injection_len(&pool->outside[i].queue);
    return length;
}

void pirn__outside_close(struct pirn_runtime *rt)
{
    for (int i = 0; rt->pool != NULL && i < PIRN__OUTSIDES; i++) {
        pirn__lock(&rt->pool->outside[i].queue.lock);
        pirn__unlock(&rt->pool->outside[i].queue.lock);
    }
}

void pirn__outside_flush(struct pirn_runtime *rt)
{
    for (int i = 0; rt->pool != NULL && i < PIRN__OUTSIDES; i++)
        pirn__slabs_flush(&rt->slabs, &rt->pool->outside[i].cache);
}
