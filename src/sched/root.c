/* SPDX-License-Identifier: MIT */
/* src/sched/root.c - the root group of a runtime: the owner of every task that
 * has no other.  It is sharded by worker, so that spawning on one does not wait
 * for another; whatever concerns the whole goes through all shards.
 */
#include "sched/runtime.h"
#include "sched/worker.h"

enum { ROOT_RUN = 64 }; /* tasks that a shard admits in a row */

/* The first shard is for those that no worker spawns. */
static struct pirn__group *shard(struct pirn_runtime *rt, uint32_t index)
{
    if (index == 0)
        return &rt->group;
    index--;
    return &rt->pool->workers[index / PIRN__WORKER_SHARDS]
                ->groups[index % PIRN__WORKER_SHARDS];
}

static uint32_t shard_count(const struct pirn_runtime *rt)
{
    return rt->pool == NULL ? 1 : 1 + rt->pool->count * PIRN__WORKER_SHARDS;
}

struct pirn__group *pirn__root_here(struct pirn_runtime *rt)
{
    struct pirn__worker *worker =
        rt->pool == NULL ? NULL : pirn__worker_here(rt->pool);

    if (worker == NULL)
        return &rt->group;
    return &worker->groups[worker->admitted++ / ROOT_RUN % PIRN__WORKER_SHARDS];
}

void pirn__root_close(struct pirn_runtime *rt)
{
    for (uint32_t i = 0; i < shard_count(rt); i++)
        pirn__group_close(shard(rt, i));
}

void pirn__root_visit(struct pirn_runtime *rt,
                      void (*fn)(struct pirn__task *task, void *arg), void *arg)
{
    for (uint32_t i = 0; i < shard_count(rt); i++)
        pirn__group_visit(shard(rt, i), fn, arg);
}

struct pirn__group_counts pirn__root_read(struct pirn_runtime *rt)
{
    struct pirn__group_counts sum = {0};

    for (uint32_t i = 0; i < shard_count(rt); i++) {
        struct pirn__group_counts counts = pirn__group_read(shard(rt, i));

        sum.live += counts.live;
        sum.spawned += counts.spawned;
        sum.completed += counts.completed;
        sum.failed += counts.failed;
        sum.cancelled += counts.cancelled;
        sum.aborted += counts.aborted;
    }
    return sum;
}
