/* SPDX-License-Identifier: MIT */
/* src/fiber/stack.h - memory for fiber stacks.
 *
 * Stacks of one size are carved from large mappings: reserved large, committed
 * by first touch, never huge pages.  Below each lies a guard: a lightweight
 * guard region where a probe has shown that it works, else mprotect up to a
 * share of the process's mapping limit.  Tops are coloured, so that stacks at a
 * power-of-two stride do not fight for the same cache sets.  Freed stacks are
 * cached, and trimmed beyond a bound.
 */
#ifndef PIRN_FIBER_STACK_H
#define PIRN_FIBER_STACK_H

#include <pirn/alloc.h>
#include <pirn/link.h>

#include "base/atomic.h"
#include "base/poison.h"
#include "fiber/guard.h"

struct pirn__stack_slab;

struct pirn__stack {
    void *base;  /* lowest usable byte, above the guard */
    size_t size; /* usable bytes, the colour already taken off the top */
    struct pirn__stack_slab *slab;
    uint32_t index;       /* within the slab */
    uint32_t valgrind_id; /* 0 outside Valgrind */
};

struct pirn__stack_stats {
    size_t in_use;      /* handed out or promised, quarantined ones included */
    size_t quarantined; /* never to be used or unmapped again */
    size_t cached;      /* free, not promised, and still mapped */
    size_t mapped_bytes;
    size_t limit; /* how many can exist under the mapping limit; SIZE_MAX: no
                     limit from guards */
    enum pirn__guard_kind guard;
};

struct pirn__stack_pool; /* any thread may use it */

/* What one worker has at hand of a pool, without its lock: one stack and some
 * promises.  It belongs to whoever runs that worker. */
struct pirn__stack_hand {
    struct pirn__stack hot; /* `base` NULL: none */
    uint32_t promises;
    PIRN_ATOMIC(uint32_t) spare; /* both together; who asks may read it */
} PIRN_CACHE_ALIGNED;

/* How a pool begins. */
struct pirn__stack_hands {
    struct pirn__stack_hand *all;
    uint32_t count; /* of use: none where reuse is put off */
};

enum {
    /* Above the usable bytes, for who keeps something at the top. */
    PIRN__STACK_TOP_BYTES = 128,
    PIRN__STACK_BATCH = 32, /* promises got, or given back, at once */
    PIRN__STACK_PROMISES = 2 * PIRN__STACK_BATCH
};

/* A pool of stacks with at least `size_bytes` usable each besides their tops
 * (rounded up to pages; at least 16 KiB and at most 1 GiB, else -EINVAL), for so
 * many workers.  -ENOMEM without memory. */
int pirn__stack_pool_new(const pirn_alloc *alloc, size_t size_bytes,
                         uint32_t hands, struct pirn__stack_pool **out);

/* The hand of a worker; NULL, which is one that is always empty, where there is
 * none, or memory is watched. */
static inline struct pirn__stack_hand *
pirn__stack_hand(struct pirn__stack_pool *pool, uint32_t index)
{
    const struct pirn__stack_hands *hands = (const void *)pool;

    return index < hands->count ? &hands->all[index] : NULL;
}

/* Unmap everything that is not in use; slabs with quarantined stacks stay, and
 * those that the kernel refuses to unmap.  True if no memory of the allocator's
 * stayed with them.  NULL is fine. */
bool pirn__stack_pool_free(struct pirn__stack_pool *pool);

/* -ENOMEM when memory, or the number of mappings, runs out; *out is then all
 * zero.  What an earlier user left on a stack is still there. */
int pirn__stack_take(struct pirn__stack_pool *pool, struct pirn__stack *out);
void pirn__stack_give(struct pirn__stack_pool *pool, struct pirn__stack *stack);

/* The same in two steps, for who needs it later: what has been promised, which may
 * fail, is all zero; it is given back as a stack is, or redeemed, which cannot
 * fail, and then is one. */
static inline int pirn__stack_promise(struct pirn__stack_pool *pool,
                                      struct pirn__stack_hand *hand,
                                      struct pirn__stack *out);
static inline void pirn__stack_redeem(struct pirn__stack_pool *pool,
                                      struct pirn__stack_hand *hand,
                                      struct pirn__stack *out);
static inline void pirn__stack_give_back(struct pirn__stack_pool *pool,
                                         struct pirn__stack_hand *hand,
                                         struct pirn__stack *stack);

/* Never reuse nor unmap this one. */
void pirn__stack_quarantine(struct pirn__stack_pool *pool,
                            struct pirn__stack *stack);

/* Give the pages of cached stacks back beyond `keep` stacks; with 0 also the
 * mappings that nobody uses. */
void pirn__stack_trim(struct pirn__stack_pool *pool, size_t keep);

void pirn__stack_stats(struct pirn__stack_pool *pool,
                       struct pirn__stack_stats *out);

/* Bytes ever touched from the top, to within a page, as far as the kernel still
 * holds the pages in memory.  "Ever" begins where the pages were last given
 * back: at each give in debug builds and under memory checkers, else when the
 * stack fell out of the cache, so a reused stack may show an earlier user.  The
 * stack is suspended or the caller's own. */
size_t pirn__stack_high_water(const struct pirn__stack *stack);

/* Abort unless the pool's lists, maps and counts agree. */
void pirn__stack_pool_validate(struct pirn__stack_pool *pool);

/* True if `address` lies in the guard of this stack: an overflow.  Safe in a
 * signal handler. */
bool pirn__stack_guards(const struct pirn__stack *stack, const void *address);

/* The usual ways, by what is at hand; behind them those of the pool. */

int pirn__stack_promise_slowly(struct pirn__stack_pool *pool,
                               struct pirn__stack_hand *hand);
void pirn__stack_redeem_slowly(struct pirn__stack_pool *pool,
                               struct pirn__stack *out);
void pirn__stack_give_back_slowly(struct pirn__stack_pool *pool,
                                  struct pirn__stack_hand *hand,
                                  struct pirn__stack *stack);
/* There are as many promises at hand as may be: some go back. */
void pirn__stack_shed(struct pirn__stack_pool *pool,
                      struct pirn__stack_hand *hand);

/* What is spare has changed. */
static inline void pirn__stack_tell_spare(struct pirn__stack_hand *hand)
{
    /* relaxed: a statistic. */
    pirn__store(&hand->spare, hand->promises + (hand->hot.base != NULL),
                relaxed);
}

static inline int pirn__stack_promise(struct pirn__stack_pool *pool,
                                      struct pirn__stack_hand *hand,
                                      struct pirn__stack *out)
{
    *out = (struct pirn__stack){ .base = NULL };
    if (hand == NULL || hand->promises == 0)
        return pirn__stack_promise_slowly(pool, hand);
    hand->promises--;
    pirn__stack_tell_spare(hand);
    return 0;
}

static inline void pirn__stack_redeem(struct pirn__stack_pool *pool,
                                      struct pirn__stack_hand *hand,
                                      struct pirn__stack *out)
{
    if (hand == NULL || hand->hot.base == NULL) {
        pirn__stack_redeem_slowly(pool, out);
        return;
    }
    *out = hand->hot;
    hand->hot.base = NULL;
    /* As much is spare as was. */
    hand->promises++;
    if (hand->promises == PIRN__STACK_PROMISES)
        pirn__stack_shed(pool, hand);
}

static inline void pirn__stack_give_back(struct pirn__stack_pool *pool,
                                         struct pirn__stack_hand *hand,
                                         struct pirn__stack *stack)
{
    if (PIRN__IS_HOSTILE || hand == NULL || stack->base == NULL ||
        hand->hot.base != NULL) {
        pirn__stack_give_back_slowly(pool, hand, stack);
        return;
    }
    hand->hot = *stack;
    stack->base = NULL;
    pirn__stack_tell_spare(hand);
}

#endif /* PIRN_FIBER_STACK_H */
