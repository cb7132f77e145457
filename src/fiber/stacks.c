/* SPDX-License-Identifier: MIT */
/* src/fiber/stacks.c - the stack pools of a runtime, one for each power of two.
 */
#include <errno.h>

#include "base/lock.h"
#include "fiber/fiber.h"
#include "fiber/stack.h"
#include "sched/runtime.h"
#include "task/home.h"

enum {
    STACKS_MIN_SHIFT = 14, /* 16 KiB */
    STACKS_MAX_SHIFT = 30, /* 1 GiB */
    STACKS_CLASSES = STACKS_MAX_SHIFT - STACKS_MIN_SHIFT + 1,
};

struct pirn__stacks {
    struct pirn__stack_pool *pools[STACKS_CLASSES];
};

/* The class of a size in range. */
static unsigned class_of(size_t size_bytes)
{
    unsigned shift = STACKS_MIN_SHIFT;

    while (((size_t)1 << shift) < size_bytes)
        shift++;
    return shift - STACKS_MIN_SHIFT;
}

/* The pool of a class, or NULL. */
static struct pirn__stack_pool *find_pool(struct pirn_runtime *rt,
                                          unsigned class_index)
{
    struct pirn__stack_pool *pool = NULL;

    pirn__lock(&rt->stacks_lock);
    if (rt->stacks != NULL)
        pool = rt->stacks->pools[class_index];
    pirn__unlock(&rt->stacks_lock);
    return pool;
}

/* Make the table of pools, unless another thread was quicker. */
static int make_table(struct pirn_runtime *rt)
{
    struct pirn__stacks *table = pirn__home_take(&rt->home, sizeof *table);
    bool taken;

    if (table == NULL)
        return -ENOMEM;
    *table = (struct pirn__stacks){0};
    pirn__lock(&rt->stacks_lock);
    taken = rt->stacks == NULL;
    if (taken)
        rt->stacks = table;
    pirn__unlock(&rt->stacks_lock);
    if (!taken)
        pirn__home_give(&rt->home, table, sizeof *table);
    return 0;
}

/* Make the pool of a class, unless another thread was quicker. */
static int make_pool(struct pirn_runtime *rt, unsigned class_index)
{
    size_t size = (size_t)1 << (class_index + STACKS_MIN_SHIFT);
    struct pirn__stack_pool *pool;
    bool taken;
    int rc = pirn__stack_pool_new(&rt->alloc, size, &pool);

    if (rc < 0)
        return rc;
    pirn__lock(&rt->stacks_lock);
    taken = rt->stacks->pools[class_index] == NULL;
    if (taken)
        rt->stacks->pools[class_index] = pool;
    pirn__unlock(&rt->stacks_lock);
    if (!taken)
        (void)pirn__stack_pool_free(pool);
    return 0;
}

/* The table stays once it is there. */
static bool has_table(struct pirn_runtime *rt)
{
    bool has;

    pirn__lock(&rt->stacks_lock);
    has = rt->stacks != NULL;
    pirn__unlock(&rt->stacks_lock);
    return has;
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
    if (!has_table(rt))
        rc = make_table(rt);
    if (rc == 0)
        rc = make_pool(rt, class_index);
    /* Ours or another's; another's also if ours could not be made. */
    *out = find_pool(rt, class_index);
    return *out != NULL ? 0 : rc;
}

static bool stacks_free(struct pirn_runtime *rt)
{
    struct pirn__stacks *stacks = rt->stacks;
    bool all = true;

    if (stacks == NULL)
        return true;
    for (int i = 0; i < STACKS_CLASSES; i++)
        all &= pirn__stack_pool_free(stacks->pools[i]);
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
    pirn__lock(&rt->stacks_lock);
    for (int i = 0; rt->stacks != NULL && i < STACKS_CLASSES; i++) {
        if (rt->stacks->pools[i] != NULL)
            add_pool(rt->stacks->pools[i], out);
    }
    pirn__unlock(&rt->stacks_lock);
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
