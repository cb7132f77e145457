/* SPDX-License-Identifier: MIT */
/* src/sched/outside.c - see outside.h. */
#include "sched/outside.h"

#include "base/checked.h"
#include "base/lock.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "task/task.h"

/* The one that this thread keeps to. */
static struct pirn__outside *outside_of(struct pirn__pool *pool,
                                        struct pirn__local *local)
{
    if (local->outside == 0)
        /* relaxed: which one it is matters to nobody. */
        local->outside = 1 + pirn__add(&pool->next_outside, 1, relaxed) %
                                 PIRN__OUTSIDES;
    return &pool->outside[local->outside - 1];
}

/* Bring cells of a size; false without memory.  Not under the lock, for it may ask
 * the allocator. */
static bool refill(struct pirn_runtime *rt, struct pirn__outside *outside,
                   size_t size)
{
    struct pirn__queue cells = {0};
    uint32_t count = pirn__slabs_take_some(&rt->slabs, size, &cells);

    if (count == 0)
        return false;
    pirn__lock(&outside->lock);
    if (pirn__group_gate(&rt->group) == PIRN__GROUP_OPEN) {
        pirn__slab_cache_add(&rt->slabs, &outside->cache, size, &cells, count);
        cells.head = NULL;
    }
    pirn__unlock(&outside->lock);
    if (cells.head != NULL)
        pirn__slabs_give_back(&rt->slabs, &cells);
    return true;
}

/* A new task, counted and QUEUED, in *out; or none, for want of a cell. */
static int admit(struct pirn_runtime *rt, struct pirn__outside *outside,
                 const struct pirn__task_plan *plan, struct pirn__task **out)
{
    pirn__tally *spawned = &outside->ledger.spawned;
    int rc = PIRN_ESHUTDOWN;

    *out = NULL;
    pirn__lock(&outside->lock);
    if (pirn__group_gate(&rt->group) == PIRN__GROUP_OPEN) {
        *out = pirn__task_from_cache(&outside->cache, plan->ops, plan->future,
                                     plan->size, plan->site);
        rc = 0;
    }
    if (*out != NULL) {
        (*out)->group = &rt->group;
        pirn__state_open(pirn__task_state(*out), 0, false);
        /* relaxed: the lock publishes it. */
        pirn__store(spawned, pirn__tally_next(spawned), relaxed);
    }
    pirn__unlock(&outside->lock);
    return rc;
}

int pirn__outside_spawn(struct pirn_runtime *rt, struct pirn__local *local,
                        const struct pirn__task_ops *ops,
                        const pirn_future *future, size_t size,
                        const char *site)
{
    struct pirn__task_plan plan = {
        .ops = ops, .future = future, .size = size, .site = site};
    size_t cell_size = pirn__task_cell_size(size);
    struct pirn__outside *outside;
    struct pirn__task *task;
    int rc;

    if (rt->pool == NULL || local == NULL || rt->home.stamps ||
        rt->hooks.on_task_spawn != NULL || cell_size > PIRN__SLAB_SIZE_MAX)
        return 1;
    outside = outside_of(rt->pool, local);
    rc = admit(rt, outside, &plan, &task);
    if (rc == 0 && task == NULL) {
        if (!refill(rt, outside, cell_size))
            return 1;
        rc = admit(rt, outside, &plan, &task);
    }
    if (rc < 0 || task == NULL)
        return rc < 0 ? rc : 1;
    rt->home.ops->submit(&rt->home, task, PIRN__ORIGIN_SPAWN);
    return 0;
}

void pirn__outside_close(struct pirn_runtime *rt)
{
    for (int i = 0; rt->pool != NULL && i < PIRN__OUTSIDES; i++) {
        pirn__lock(&rt->pool->outside[i].lock);
        pirn__unlock(&rt->pool->outside[i].lock);
    }
}

void pirn__outside_flush(struct pirn_runtime *rt)
{
    for (int i = 0; rt->pool != NULL && i < PIRN__OUTSIDES; i++)
        pirn__slabs_flush(&rt->slabs, &rt->pool->outside[i].cache);
}
