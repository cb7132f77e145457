/* SPDX-License-Identifier: MIT */
/* src/fiber/stacks.c - the stack pools of a runtime, one for each power of two.
 */
#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "fiber/fiber.h"
#include "fiber/stack.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "task/home.h"

enum {
    STACKS_MIN_SHIFT = 14, /* 16 KiB */
    STACKS_MAX_SHIFT = 30, /* 1 GiB */
    STACKS_CLASSES = STACKS_MAX_SHIFT - STACKS_MIN_SHIFT + 1,
};

/* What is in a table stays until the runtime goes. */
struct pirn__stacks {
    struct pirn__stacks_head head; /* first */
    PIRN_ATOMIC(struct pirn__stack_pool *) pools[STACKS_CLASSES];
};

/* The class of a size in range. */
static unsigned class_of(size_t size_bytes)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(size_bytes - 1);

    return bits < STACKS_MIN_SHIFT ? 0 : bits - STACKS_MIN_SHIFT;
}

static struct pirn__stacks *table_of(const struct pirn_runtime *rt)
{
    /* acquire [stacks.table]: sees it empty, as it was made. */
    return pirn__load(&rt->stacks, acquire);
}

static struct pirn__stack_pool *pool_at(const struct pirn__stacks *table,
                                        unsigned class_index)
{
    /* acquire [stacks.pool]: sees the pool as it was made. */
    return pirn__load(&table->pools[class_index], acquire);
}

/* The pool of a class, or NULL. */
static struct pirn__stack_pool *find_pool(const struct pirn_runtime *rt,
                                          unsigned class_index)
{
    const struct pirn__stacks *table = table_of(rt);

    return table == NULL ? NULL : pool_at(table, class_index);
}

/* Make the table of pools, unless another thread was quicker. */
static int make_table(struct pirn_runtime *rt)
{
    struct pirn__stacks *table = pirn__home_take(&rt->home, sizeof *table);
    bool taken;

    if (table == NULL)
        return -ENOMEM;
    memset(table, 0, sizeof *table);
    pirn__lock(&rt->stacks_lock);
    taken = table_of(rt) == NULL;
    if (taken) {
        /* release [stacks.table]: publishes it. */
        pirn__store(&rt->stacks, table, release);
    }
    pirn__unlock(&rt->stacks_lock);
    if (!taken)
        pirn__home_give(&rt->home, table, sizeof *table);
    return 0;
}

static uint32_t worker_count(const struct pirn_runtime *rt)
{
    return rt->pool != NULL ? rt->pool->count : 1;
}

/* Make the pool of a class, unless another thread was quicker. */
static int make_pool(struct pirn_runtime *rt, unsigned class_index)
{
    size_t size = (size_t)1 << (class_index + STACKS_MIN_SHIFT);
    struct pirn__stack_pool *pool;
    bool taken;
    int rc = pirn__stack_pool_new(&rt->alloc, size, worker_count(rt), &pool);

    if (rc < 0)
        return rc;
    pirn__lock(&rt->stacks_lock);
    taken = find_pool(rt, class_index) == NULL;
    if (taken) {
        /* release [stacks.pool]: publishes it. */
        pirn__store(&table_of(rt)->pools[class_index], pool, release);
    }
    if (taken && class_index == class_of(rt->stack_size_bytes)) {
        /* release [stacks.pool]: as above. */
        pirn__store(&table_of(rt)->head.usual, pool, release);
    }
    pirn__unlock(&rt->stacks_lock);
    if (!taken)
        (void)pirn__stack_pool_free(pool);
    return 0;
}

/* The allocator and the probe of guards are called without the lock: of threads
 * that need the first stack of a size at the same time one gets its pool in. */
int pirn__stacks_pool(struct pirn_runtime *rt, size_t size_bytes,
                      struct pirn__stack_pool **out)
{
    unsigned class_index;
    int rc = 0;

    if (size_bytes == 0)
        size_bytes = rt->stack_size_bytes;
    if (size_bytes < ((size_t)1 << STACKS_MIN_SHIFT) ||
        size_bytes > ((size_t)1 << STACKS_MAX_SHIFT))
        return -EINVAL;
    class_index = class_of(size_bytes);
    *out = find_pool(rt, class_index);
    if (*out != NULL)
        return 0;
    if (table_of(rt) == NULL)
        rc = make_table(rt);
    if (rc == 0)
        rc = make_pool(rt, class_index);
    /* Ours or another's; another's also if ours could not be made. */
    *out = find_pool(rt, class_index);
    return *out != NULL ? 0 : rc;
}

static bool stacks_free(struct pirn_runtime *rt)
{
    struct pirn__stacks *stacks = table_of(rt);
    bool all = true;

    if (stacks == NULL)
        return true;
    for (int i = 0; i < STACKS_CLASSES; i++)
        all &= pirn__stack_pool_free(pool_at(stacks, (unsigned)i));
    pirn__home_give(&rt->home, stacks, sizeof *stacks);
    return all;
}

static void add_pool(struct pirn__stack_pool *pool, pirn_runtime_info *out)
{
    struct pirn__stack_stats stats;

    pirn__stack_stats(pool, &stats);
    out->stacks += stats.in_use;
    out->stack_limit = stats.limit;
    out->guards =
        stats.guard == PIRN__GUARD_REGION ? "region" : "protect";
}

static void stacks_info(struct pirn_runtime *rt, pirn_runtime_info *out)
{
    for (unsigned i = 0; i < STACKS_CLASSES; i++) {
        struct pirn__stack_pool *pool = find_pool(rt, i);

        if (pool != NULL)
            add_pool(pool, out);
    }
}

static void stacks_begin(struct pirn_runtime *rt)
{
    if (rt->overflow_report)
        pirn__overflow_watch();
}

static void stacks_end(struct pirn_runtime *rt)
{
    if (rt->overflow_report)
        pirn__overflow_unwatch();
}

static const struct pirn__stacks_ops stacks_ops = {
    .begin = stacks_begin,
    .end = stacks_end,
    .free = stacks_free,
    .info = stacks_info,
};

__attribute__((constructor)) static void register_with_runtime(void)
{
    pirn__runtime_set_stacks_ops(&stacks_ops);
}
