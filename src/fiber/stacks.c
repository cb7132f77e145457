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

static int pool_locked(struct pirn_runtime *rt, unsigned class_index,
                       struct pirn__stack_pool **out)
{
    struct pirn__stacks *stacks = rt->stacks;

    if (stacks == NULL) {
        stacks = pirn__home_take(&rt->home, sizeof *stacks);
        if (stacks == NULL)
            return -ENOMEM;
        *stacks = (struct pirn__stacks){0};
        rt->stacks = stacks;
    }
    if (stacks->pools[class_index] == NULL) {
        size_t size = (size_t)1 << (class_index + STACKS_MIN_SHIFT);
        int rc = pirn__stack_pool_new(&rt->alloc, size,
                                      &stacks->pools[class_index]);

        if (rc < 0)
            return rc;
    }
    *out = stacks->pools[class_index];
    return 0;
}

int pirn__stacks_pool(struct pirn_runtime *rt, size_t size_bytes,
                      struct pirn__stack_pool **out)
{
    int rc;

    if (size_bytes == 0)
        size_bytes = rt->stack_size_bytes;
    if (size_bytes < ((size_t)1 << STACKS_MIN_SHIFT) ||
        size_bytes > ((size_t)1 << STACKS_MAX_SHIFT))
        return -EINVAL;
    pirn__lock(&rt->stacks_lock);
    rc = pool_locked(rt, class_of(size_bytes), out);
    pirn__unlock(&rt->stacks_lock);
    return rc;
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
