/* SPDX-License-Identifier: MIT */
/* src/sched/root.c - the root group of a runtime: the owner of every task that
 * has no other.  It is sharded by worker, so that spawning on one does not wait
 * for another; whatever concerns the whole goes through all shards.
 */
#include "sched/runtime.h"
#include "sched/worker.h"

static struct pirn__group *shard(struct pirn_runtime *rt, uint32_t index)
{
    return index == 0 ? &rt->group : rt->pool->workers[index]->group;
}

static uint32_t shard_count(const struct pirn_runtime *rt)
{
    return rt->pool == NULL ? 1 : rt->pool->count;
}

struct pirn__group *pirn__root_here(struct pirn_runtime *rt)
{
    struct pirn__worker *worker =
        rt->pool == NULL ? NULL : pirn__worker_here(rt->pool);

    return worker == NULL ? &rt->group : worker->group;
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
