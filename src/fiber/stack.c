/* SPDX-License-Identifier: MIT */
/* src/fiber/stack.c - memory for fiber stacks.
 *
 * A slab is one mapping of up to 64 stacks, each with its guard below:
 *
 *     | guard | stack 0 | guard | stack 1 | ...          (addresses grow ->)
 *                     ^ colour: up to 15 * 128 bytes off the top
 *
 * A stack of a slab is in one of four states:
 *
 *     in use     handed out
 *     warm       in the pool's ring: its pages are kept, hottest first out
 *     cold       its pages are given back, or were never touched; guarded
 *     fresh      without a guard: nobody gets it yet
 *
 *     fresh --guard--> cold --take--> in use --give--> warm --full, trim--> cold
 *                                       ^----take-------'
 *
 * A guard costs most of a microsecond, and of the stacks that are promised few may
 * ever be used.  What can fail about it is only the memory for its page table,
 * which thirty stacks of the usual size share.  So where guards are regions a new
 * slab gets one in each of its tables; its other stacks are cold, too, but `bare`,
 * and who takes one puts in its guard, which cannot fail any more.
 *
 * What is warm is memory.  It stays as long as as much of it is used: at times the
 * pool looks at how many there were at least, and these, but for a number that is
 * always kept, are cooled one by one as others are given.  Where none are given to
 * the pool, as by fibers that run one after the other at a worker's hand, all stay.
 *
 * A stack is promised before it is taken: only the number of promises is kept, and
 * who takes gets the hottest of all.  So of a thousand tasks that start and end one
 * after the other each finds the stack of the one before.  There are never more
 * promises than stacks that are warm or cold, so that each can be kept: it is the
 * promise that may fail.
 *
 * A worker has a stack at hand, the last that a task has left there, and promises
 * that it has got in one go or that it did not need.  For the pool that stack is in
 * use and these are promised.
 *
 * Invariants, all under pool->lock
 *   - `busy` has a bit for each stack that is in use, warm, or between two
 *     states; the others are cold, if they are `guarded`, or fresh.
 *   - A stack that is `bare` is `guarded`, as it can have its guard at any time, and
 *     not busy.
 *   - A slab without cold stacks is in `full`, one without busy ones in `empty`,
 *     the rest in `open`.
 *   - Fresh stacks get their guards in one slab, `guarding`, before there is
 *     another.
 *   - `ready_count` is how many are warm or cold, and never less than `promised`.
 *   - More than a few empty slabs are not kept, but for those that are promised.
 *
 * No system call is made under the lock: whoever needs one takes the stack out
 * of everybody's sight by its busy bit first.
 *
 * A guard is as large as the steps in which compilers probe large frames.  It
 * stays as long as its slab, so the count of guards by protection, over
 * all pools, falls only when a slab is unmapped.
 */
#include "fiber/stack.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/hint.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/poison.h"
#include "sys/checker.h"
#include "sys/fork.h"
#include "sys/switch.h"
#include "sys/sys.h"

enum {
    STACKS_PER_SLAB = 64, /* one bit each in a word */
    WARM_CAPACITY = 4096,
    WARM_KEPT = 1024, /* whether they are needed or not */
    WARM_LOOK = 16 * WARM_CAPACITY, /* gives between two looks at what is not */
    COLOUR_COUNT = 16,
    COLOUR_BYTES = 2 * PIRN__CACHE_LINE,
    PAGES_PER_LOOK = 64,
    GUARDS_AT_ONCE = 8,
    STACKS_PER_TABLE_MIN = 4 /* for it to be worth having in advance */
};

#define STACK_BYTES_MIN ((size_t)16 << 10)
#define STACK_BYTES_MAX ((size_t)1 << 30)
#define SLAB_BYTES_MAX ((size_t)256 << 20)

/* Empty slabs are addresses, and guards that another burst need not wait for. */
#define EMPTY_BYTES_MAX ((size_t)8 << 30)

/* Warm stacks are memory that nobody uses, at most this much even if all of it
 * was touched; usually it is a page or two of each. */
#define WARM_BYTES_MAX ((size_t)256 << 20)

struct pirn__stack_slab {
    pirn_link link; /* pool->lock: open, full or empty; or `abandoned` */
    char *base;
    size_t page_size;
    size_t guard_size; /* read by signal handlers */
    uint64_t busy;    /* pool->lock */
    uint64_t guarded; /* pool->lock; set before the guard is in */
    uint64_t bare;    /* pool->lock; cleared before the guard is in */
    uint64_t quarantined;     /* pool->lock */
    uint32_t next;            /* pool->lock: where the search goes on */
    uint32_t protected_count; /* pool->lock: guards that cost mappings */
};

/* A stack by its place. */
struct place {
    struct pirn__stack_slab *slab;
    uint32_t index;
    bool bare; /* who has just claimed it puts in its guard */
};

struct pirn__stack_pool {
    struct pirn__stack_hands hands; /* first */
    uint32_t hands_made;
    const pirn_alloc *alloc;
    size_t page_size;
    size_t guard_size;
    size_t usable; /* bytes per stack, the colour included */
    size_t slab_bytes;
    size_t protected_limit; /* for the whole process */
    uint32_t slab_stacks;
    uint32_t warm_limit; /* 0: the cache is off */
    size_t empty_limit;  /* slabs kept that nobody uses */
    enum pirn__guard_kind guard;

    pirn_lock lock; /* guards what follows */
    uint32_t warm_first; /* the coldest */
    uint32_t warm_count;
    uint32_t warm_least; /* of these since the last look */
    uint32_t warm_idle;  /* that nobody needed before it, and are still warm */
    uint32_t gives;      /* since then */
    size_t slab_count;
    size_t empty_count;
    size_t in_use;
    size_t quarantined;
    size_t ready_count;
    size_t promised;
    struct pirn__stack_slab *guarding; /* has fresh stacks; or NULL */
    pirn_link open;
    pirn_link full;
    pirn_link empty;
    struct place warm[WARM_CAPACITY]; /* a ring */
};

/* Slabs that outlive their pool, so that they can be found: by a debugger, and
 * by leak checkers. */
static pirn_lock abandoned_lock;
static pirn_link abandoned = { &abandoned, &abandoned };

__attribute__((constructor)) static void guard_abandoned(void)
{
    pirn__fork_guard(&abandoned_lock);
}

static char *guard_of(const struct pirn__stack_pool *pool, struct place place)
{
    return place.slab->base + place.index * (pool->guard_size + pool->usable);
}

static uint64_t bit_of(uint32_t index)
{
    return UINT64_C(1) << index;
}

/* The stacks of a slab. */
static uint64_t all_stacks(const struct pirn__stack_pool *pool)
{
    return ~UINT64_C(0) >> (STACKS_PER_SLAB - pool->slab_stacks);
}

static uint64_t cold_stacks(const struct pirn__stack_slab *slab)
{
    return slab->guarded & ~slab->busy;
}

static struct pirn__stack_slab *slab_of_link(pirn_link *link)
{
    return PIRN_CONTAINER_OF(link, struct pirn__stack_slab, link);
}

static pirn_link *home_of(struct pirn__stack_pool *pool,
                          const struct pirn__stack_slab *slab)
{
    if (cold_stacks(slab) == 0)
        return &pool->full;
    return slab->busy == 0 ? &pool->empty : &pool->open;
}

static void set_stacks_locked(struct pirn__stack_pool *pool,
                              struct pirn__stack_slab *slab, uint64_t busy,
                              uint64_t guarded)
{
    pirn_link *before = home_of(pool, slab);
    pirn_link *after;

    slab->busy = busy;
    slab->guarded = guarded;
    after = home_of(pool, slab);
    if (after == before)
        return;
    pirn__list_remove(&slab->link);
    pirn__list_push_tail(after, &slab->link);
    pool->empty_count += after == &pool->empty;
    pool->empty_count -= before == &pool->empty;
}

static void set_busy_locked(struct pirn__stack_pool *pool,
                            struct pirn__stack_slab *slab, uint64_t busy)
{
    set_stacks_locked(pool, slab, busy, slab->guarded);
}

/* Unmap a slab that is in no list.  If the kernel refuses, because the cut
 * needs one more mapping than it grants, false and the slab is as it was. */
static bool destroy_slab(struct pirn__stack_pool *pool,
                         struct pirn__stack_slab *slab)
{
    if (pirn__sys->unmap(slab->base, pool->slab_bytes) < 0)
        return false;
    pirn__guard_forget(slab->protected_count);
    pool->alloc->give(pool->alloc->ctx, slab, sizeof *slab,
                      _Alignof(max_align_t));
    return true;
}

static size_t count_of(uint64_t stacks)
{
    return (size_t)__builtin_popcountll(stacks);
}

static void add_slab_locked(struct pirn__stack_pool *pool,
                            struct pirn__stack_slab *slab)
{
    pirn_link *home = home_of(pool, slab);

    pirn__list_push_tail(home, &slab->link);
    pool->slab_count++;
    pool->empty_count += home == &pool->empty;
    pool->ready_count += count_of(cold_stacks(slab));
    if (pool->guarding == NULL && slab->guarded != all_stacks(pool))
        pool->guarding = slab;
}

/* Drop a slab that is in no list; NULL is fine. */
static void drop_slab(struct pirn__stack_pool *pool,
                      struct pirn__stack_slab *slab)
{
    if (slab == NULL || destroy_slab(pool, slab))
        return;
    pirn__lock(&pool->lock);
    add_slab_locked(pool, slab);
    pirn__unlock(&pool->lock);
}

/* Have a page table for each guard of a new slab, so that all its stacks can be
 * promised.  Not where each guard needs one of its own. */
static void reserve_guards(const struct pirn__stack_pool *pool,
                           struct pirn__stack_slab *slab)
{
    size_t span = pirn__guard_span(pool->page_size);
    size_t have = 0; /* the table of the guard before */
    uint64_t done = 0;

    if (pool->guard != PIRN__GUARD_REGION ||
        pool->guard_size + pool->usable > span / STACKS_PER_TABLE_MIN)
        return;
    for (uint32_t i = 0; i < pool->slab_stacks; i++) {
        char *guard = guard_of(pool, (struct place){ slab, i, false });
        size_t last = ((size_t)(uintptr_t)guard + pool->guard_size - 1) / span;
        int rc;

        if ((size_t)(uintptr_t)guard / span == have && last == have)
            continue;
        rc = pirn__guard_install(pool->guard, pool->protected_limit, guard,
                                 pool->guard_size);
        if (rc >= 0)
            done |= bit_of(i);
        slab->guarded = done;
        if (rc != PIRN__GUARD_REGION) {
            slab->protected_count += rc == PIRN__GUARD_PROTECT;
            return;
        }
        have = last;
    }
    slab->guarded = all_stacks(pool);
    slab->bare = slab->guarded & ~done;
}

/* Make a slab, unless another thread was quicker. */
static int make_slab(struct pirn__stack_pool *pool)
{
    struct pirn__stack_slab *slab;
    bool is_wanted;
    void *base;
    int rc;

    slab = pool->alloc->take(pool->alloc->ctx, sizeof *slab,
                             _Alignof(max_align_t));
    if (slab == NULL)
        return -ENOMEM;
    rc = pirn__sys->map(pool->slab_bytes, &base);
    if (rc < 0)
        goto fail_slab;
    *slab = (struct pirn__stack_slab){
        .base = base,
        .page_size = pool->page_size,
        .guard_size = pool->guard_size,
    };
    pirn__list_init(&slab->link);
    reserve_guards(pool, slab);
    pirn__lock(&pool->lock);
    is_wanted =
        pool->guarding == NULL && pool->ready_count == pool->promised;
    if (is_wanted)
        add_slab_locked(pool, slab);
    pirn__unlock(&pool->lock);
    if (!is_wanted)
        drop_slab(pool, slab);
    return 0;

fail_slab:
    pool->alloc->give(pool->alloc->ctx, slab, sizeof *slab,
                      _Alignof(max_align_t));
    return rc;
}

/* Unlink an empty slab beyond `keep` of them that no promise needs, or NULL. */
static struct pirn__stack_slab *
pop_surplus_locked(struct pirn__stack_pool *pool, size_t keep)
{
    struct pirn__stack_slab *slab;

    if (pool->empty_count <= keep)
        return NULL;
    slab = slab_of_link(pirn__list_first(&pool->empty));
    if (pool->ready_count - pool->promised < count_of(slab->guarded))
        return NULL;
    pirn__list_remove(&slab->link);
    pool->empty_count--;
    pool->slab_count--;
    pool->ready_count -= count_of(slab->guarded);
    if (pool->guarding == slab)
        pool->guarding = NULL;
    return slab;
}

/* Make a busy stack free for everybody.  Returns a slab for drop_slab(), or
 * NULL. */
static struct pirn__stack_slab *release_locked(struct pirn__stack_pool *pool,
                                               struct place place)
{
    set_busy_locked(pool, place.slab,
                    place.slab->busy & ~bit_of(place.index));
    pool->ready_count++;
    return pop_surplus_locked(pool, pool->empty_limit);
}

/* Guards. */

/* How many guards are made at once.  Where there may be only so many of them nobody
 * makes one for later: another thread would be refused meanwhile. */
static int guards_at_once(const struct pirn__stack_pool *pool)
{
    return pool->guard == PIRN__GUARD_REGION ? GUARDS_AT_ONCE : 1;
}

/* Claim a few fresh stacks of a slab. */
static uint64_t claim_fresh_locked(struct pirn__stack_pool *pool,
                                   struct pirn__stack_slab *slab)
{
    uint64_t fresh = all_stacks(pool) & ~slab->guarded;
    uint64_t few = 0;

    for (int i = guards_at_once(pool); i > 0 && fresh != 0; i--) {
        few |= fresh & (~fresh + 1);
        fresh &= fresh - 1;
    }
    set_stacks_locked(pool, slab, slab->busy | few, slab->guarded | few);
    if (fresh == 0)
        pool->guarding = NULL;
    return few;
}

/* Guard those of `few` that can be: these are left in *done, and of them those that
 * cost mappings are counted.  The error of the first that cannot. */
static int guard_each(const struct pirn__stack_pool *pool,
                      struct pirn__stack_slab *slab, uint64_t few,
                      uint64_t *done, uint32_t *protected_count)
{
    *done = 0;
    *protected_count = 0;
    for (; few != 0; few &= few - 1) {
        struct place place = { slab, (uint32_t)__builtin_ctzll(few), false };
        int rc = pirn__guard_install(pool->guard, pool->protected_limit,
                                     guard_of(pool, place), pool->guard_size);

        if (rc < 0)
            return rc;
        *done |= bit_of(place.index);
        *protected_count += rc == PIRN__GUARD_PROTECT;
    }
    return 0;
}

/* Some stacks of a slab could not be guarded.  It may try again, unless another slab
 * has taken its place meanwhile: then, if none of it is guarded, it goes.  Returns it
 * for drop_slab(), or NULL. */
static struct pirn__stack_slab *
keep_fresh_locked(struct pirn__stack_pool *pool, struct pirn__stack_slab *slab)
{
    if (pool->guarding == NULL)
        pool->guarding = slab;
    if (pool->guarding == slab || (slab->guarded | slab->busy) != 0)
        return NULL;
    pirn__list_remove(&slab->link);
    pool->slab_count--;
    return slab;
}

/* Have a few more stacks that can be promised, or a slab for them. */
static int make_ready(struct pirn__stack_pool *pool)
{
    struct pirn__stack_slab *slab, *surplus = NULL;
    uint64_t few = 0, done;
    uint32_t protected_count;
    int rc;

    pirn__lock(&pool->lock);
    slab = pool->guarding;
    if (slab != NULL)
        few = claim_fresh_locked(pool, slab);
    pirn__unlock(&pool->lock);
    if (slab == NULL)
        return make_slab(pool);

    rc = guard_each(pool, slab, few, &done, &protected_count);
    pirn__lock(&pool->lock);
    slab->protected_count += protected_count;
    set_stacks_locked(pool, slab, slab->busy & ~few,
                      slab->guarded & ~(few & ~done));
    pool->ready_count += count_of(done);
    if (done != few)
        surplus = keep_fresh_locked(pool, slab);
    if (surplus == NULL)
        surplus = pop_surplus_locked(pool, pool->empty_limit);
    pirn__unlock(&pool->lock);
    drop_slab(pool, surplus);
    return done != 0 ? 0 : rc;
}

/* Promises. */

/* True if there is one to be promised; where memory is checked reuse is put off
 * as long as possible. */
static bool has_enough_locked(const struct pirn__stack_pool *pool)
{
    return pool->ready_count > pool->promised &&
           (pool->warm_limit > 0 || pool->guarding == NULL);
}

/* Lock the pool with a stack that can be promised. */
static int lock_with_ready(struct pirn__stack_pool *pool)
{
    int rc = 0;

    pirn__lock(&pool->lock);
    /* Ends: each round finds a slab or adds guards, and others can be promised all
     * of them before us only by getting what they want. */
    while (rc == 0 && !has_enough_locked(pool)) {
        pirn__unlock(&pool->lock);
        rc = make_ready(pool);
        pirn__lock(&pool->lock);
    }
    if (pool->ready_count > pool->promised)
        return 0;
    pirn__unlock(&pool->lock);
    return rc;
}

/* Claim a cold stack of this slab, from where the last search ended, so that all
 * have their turn. */
static struct place claim_locked(struct pirn__stack_pool *pool,
                                 struct pirn__stack_slab *slab)
{
    uint64_t cold = cold_stacks(slab);
    uint64_t later = cold & (~UINT64_C(0) << slab->next);
    uint32_t index = (uint32_t)__builtin_ctzll(later != 0 ? later : cold);
    bool bare = (slab->bare & bit_of(index)) != 0;

    set_busy_locked(pool, slab, slab->busy | bit_of(index));
    slab->bare &= ~bit_of(index);
    slab->next = (index + 1) % STACKS_PER_SLAB;
    return (struct place){ slab, index, bare };
}

/* One less is warm. */
static void lose_warm_locked(struct pirn__stack_pool *pool)
{
    pool->warm_count--;
    if (pool->warm_count < pool->warm_least)
        pool->warm_least = pool->warm_count;
}

/* The best there is: the hottest, or a cold one from a slab in use if possible. */
static struct place claim_best_locked(struct pirn__stack_pool *pool)
{
    pirn_link *link;

    PIRN_ASSERT(pool->ready_count > 0);
    pool->ready_count--;
    pool->in_use++;
    if (pool->warm_count > 0) {
        lose_warm_locked(pool);
        return pool->warm[(pool->warm_first + pool->warm_count) %
                          WARM_CAPACITY];
    }
    link = pirn__list_first(&pool->open);
    if (link == NULL)
        link = pirn__list_first(&pool->empty);
    return claim_locked(pool, slab_of_link(link));
}

static struct place pop_coldest_locked(struct pirn__stack_pool *pool)
{
    struct place place = pool->warm[pool->warm_first];

    pool->warm_first = (pool->warm_first + 1) % WARM_CAPACITY;
    lose_warm_locked(pool);
    pool->ready_count--;
    return place;
}

/* True if the coldest stack must go for one that comes: there is no room, or for
 * long nobody has needed so many. */
static bool is_crowded_locked(struct pirn__stack_pool *pool)
{
    if (++pool->gives >= WARM_LOOK) {
        pool->gives = 0;
        pool->warm_idle = pool->warm_least;
        pool->warm_least = pool->warm_count;
    }
    if (pool->warm_count == pool->warm_limit)
        return true;
    if (pool->warm_count < WARM_KEPT || pool->warm_idle == 0)
        return false;
    pool->warm_idle--;
    return true;
}

/* Keep a stack warm.  True if *place is now another one, which must be cooled
 * for it. */
static bool push_warm_locked(struct pirn__stack_pool *pool,
                             struct place *place)
{
    struct place hottest = *place;
    bool crowded;

    if (pool->warm_limit == 0)
        return true;
    crowded = is_crowded_locked(pool);
    if (crowded)
        *place = pop_coldest_locked(pool);
    pool->warm[(pool->warm_first + pool->warm_count) % WARM_CAPACITY] = hottest;
    pool->warm_count++;
    pool->ready_count++;
    return crowded;
}

/* Give the pages of a busy stack back and make it free for everybody. */
static void cool(struct pirn__stack_pool *pool, struct place place)
{
    struct pirn__stack_slab *surplus;

    /* Locked memory refuses, and then simply stays. */
    (void)pirn__sys->discard(guard_of(pool, place) + pool->guard_size,
                             pool->usable);
    pirn__lock(&pool->lock);
    surplus = release_locked(pool, place);
    pirn__unlock(&pool->lock);
    drop_slab(pool, surplus);
}

/* Enough for a batch of short fibers: to cool a stack and to touch it again
 * costs twenty times what starting a fiber does. */
static uint32_t warm_limit(size_t size_bytes)
{
    size_t fitting = WARM_BYTES_MAX / size_bytes;

    if (fitting == 0)
        return 1;
    return fitting < WARM_CAPACITY ? (uint32_t)fitting : WARM_CAPACITY;
}

static size_t pool_size(uint32_t hands)
{
    return pirn__round_up(sizeof(struct pirn__stack_pool), PIRN__CACHE_LINE) +
           hands * sizeof(struct pirn__stack_hand);
}

int pirn__stack_pool_new(const pirn_alloc *alloc, size_t size_bytes,
                         uint32_t hands, struct pirn__stack_pool **out)
{
    size_t page_size = pirn__sys->page_size();
    struct pirn__stack_pool *pool;
    size_t stride, fitting;

    *out = NULL;
    if (size_bytes < STACK_BYTES_MIN || size_bytes > STACK_BYTES_MAX)
        return -EINVAL;
    pool = alloc->take(alloc->ctx, pool_size(hands), PIRN__CACHE_LINE);
    if (pool == NULL)
        return -ENOMEM;
    memset(pool, 0, pool_size(hands));
    /* One by one: as a whole it would lie on our stack, a fiber's, too. */
    pool->alloc = alloc;
    pool->hands.all = (void *)((char *)pool + pool_size(0));
    pool->hands_made = hands;
    pool->page_size = page_size;
    pool->guard_size = pirn__round_up(PIRN__STACK_PROBE_BYTES, page_size);
    pool->usable = pirn__round_up(size_bytes + PIRN__STACK_TOP_BYTES +
                                      (COLOUR_COUNT - 1) * COLOUR_BYTES,
                                  page_size);
    pool->protected_limit = pirn__guard_limit();
    pool->guard = pirn__guard_probe(page_size);
    pool->warm_limit = pirn__checker_active() ? 0 : warm_limit(size_bytes);
#if defined(PIRN_DEBUG) && !defined(PIRN_MODEL)
    pool->warm_limit = 0; /* the high-water mark is then exact */
#endif
    /* A stack at hand is one that others cannot have; where there are few in all
     * nobody keeps any. */
    if (pool->warm_limit > 0 && pool->guard == PIRN__GUARD_REGION)
        pool->hands.count = hands;
    stride = pool->guard_size + pool->usable;
    fitting = SLAB_BYTES_MAX / stride;
    pool->slab_stacks = fitting > STACKS_PER_SLAB ? STACKS_PER_SLAB
                        : fitting == 0            ? 1
                                                  : (uint32_t)fitting;
    pool->slab_bytes = pool->slab_stacks * stride;
    pool->empty_limit =
        pool->slab_bytes < EMPTY_BYTES_MAX ? EMPTY_BYTES_MAX / pool->slab_bytes
                                           : 1;
    pirn__lock_init(&pool->lock);
    pirn__list_init(&pool->open);
    pirn__list_init(&pool->full);
    pirn__list_init(&pool->empty);
    *out = pool;
    return 0;
}

static void empty_hand(struct pirn__stack_pool *pool,
                       struct pirn__stack_hand *hand);

static void abandon_slab(struct pirn__stack_slab *slab)
{
    pirn__lock(&abandoned_lock);
    pirn__list_push_tail(&abandoned, &slab->link);
    pirn__unlock(&abandoned_lock);
}

/* True if none stays. */
static bool free_slabs(struct pirn__stack_pool *pool, pirn_link *list)
{
    bool all = true;
    pirn_link *link;

    while ((link = pirn__list_pop_head(list)) != NULL) {
        struct pirn__stack_slab *slab = slab_of_link(link);

        if (slab->busy == 0 && destroy_slab(pool, slab))
            continue;
        abandon_slab(slab);
        all = false;
    }
    return all;
}

bool pirn__stack_pool_free(struct pirn__stack_pool *pool)
{
    bool all;

    if (pool == NULL)
        return true;
    for (uint32_t i = 0; i < pool->hands.count; i++)
        empty_hand(pool, &pool->hands.all[i]);
    pirn__stack_trim(pool, 0);
    all = free_slabs(pool, &pool->open);
    all &= free_slabs(pool, &pool->full);
    all &= free_slabs(pool, &pool->empty);
    pool->alloc->give(pool->alloc->ctx, pool, pool_size(pool->hands_made),
                      PIRN__CACHE_LINE);
    return all;
}

static void describe_stack(const struct pirn__stack_pool *pool,
                           struct place place, struct pirn__stack *out)
{
    out->slab = place.slab;
    out->index = place.index;
    out->base = guard_of(pool, place) + pool->guard_size;
    out->size = pool->usable - place.index % COLOUR_COUNT * COLOUR_BYTES;
    out->valgrind_id = pirn__checker_stack_begin(out->base, out->size);
}

int pirn__stack_take(struct pirn__stack_pool *pool, struct pirn__stack *out)
{
    int rc = pirn__stack_promise(pool, NULL, out);

    if (rc == 0)
        pirn__stack_redeem(pool, NULL, out);
    return rc;
}

/* `count` promises that nobody wants any more. */
static void give_promises(struct pirn__stack_pool *pool, uint32_t count)
{
    struct pirn__stack_slab *surplus;

    pirn__lock(&pool->lock);
    pool->promised -= count;
    surplus = pop_surplus_locked(pool, pool->empty_limit);
    pirn__unlock(&pool->lock);
    drop_slab(pool, surplus);
}

void pirn__stack_shed(struct pirn__stack_pool *pool,
                      struct pirn__stack_hand *hand)
{
    hand->promises -= PIRN__STACK_BATCH;
    pirn__stack_tell_spare(hand);
    give_promises(pool, PIRN__STACK_BATCH);
}

int pirn__stack_promise_slowly(struct pirn__stack_pool *pool,
                               struct pirn__stack_hand *hand)
{
    size_t unpromised;
    uint32_t count = 1;
    int rc = lock_with_ready(pool);

    if (rc < 0)
        return rc;
    unpromised = pool->ready_count - pool->promised;
    if (hand != NULL)
        count = unpromised < PIRN__STACK_BATCH ? (uint32_t)unpromised
                                               : PIRN__STACK_BATCH;
    pool->promised += count;
    pirn__unlock(&pool->lock);
    if (hand != NULL) {
        hand->promises = count - 1;
        pirn__stack_tell_spare(hand);
    }
    return 0;
}

/* The guard of a stack that was bare. */
static PIRN__COLD void guard_at_last(struct pirn__stack_pool *pool,
                                     struct place place)
{
    if (pirn__guard_beside(guard_of(pool, place), pool->guard_size) ==
        PIRN__GUARD_REGION)
        return;
    pirn__lock(&pool->lock);
    place.slab->protected_count++;
    pirn__unlock(&pool->lock);
}

void pirn__stack_redeem_slowly(struct pirn__stack_pool *pool,
                               struct pirn__stack *out)
{
    struct place place;

    pirn__lock(&pool->lock);
    pool->promised--;
    place = claim_best_locked(pool);
    pirn__unlock(&pool->lock);
    if (place.bare)
        guard_at_last(pool, place);
    describe_stack(pool, place, out);
}

/* Overwrite what was used of a stack that nobody stands on. */
static void paint(const struct pirn__stack *stack)
{
    size_t used = pirn__stack_high_water(stack);

    memset((char *)stack->base + stack->size - used, PIRN__HIDDEN_BYTE, used);
}

/* The stack, which nobody stands on any more, as a place. */
static struct place end_use(struct pirn__stack *stack)
{
    struct place place = { stack->slab, stack->index, false };

    if (PIRN__IS_HOSTILE)
        paint(stack);
    pirn__checker_stack_end(stack->valgrind_id, stack->base, stack->size);
    *stack = (struct pirn__stack){ .base = NULL };
    return place;
}

static void give_place(struct pirn__stack_pool *pool, struct place place)
{
    struct pirn__stack_slab *surplus;
    bool must_cool;

    pirn__lock(&pool->lock);
    PIRN_ASSERT(place.slab->busy & ~place.slab->quarantined &
                bit_of(place.index));
    pool->in_use--;
    must_cool = push_warm_locked(pool, &place);
    surplus = pop_surplus_locked(pool, pool->empty_limit);
    pirn__unlock(&pool->lock);
    drop_slab(pool, surplus);
    if (must_cool)
        cool(pool, place);
}

void pirn__stack_give(struct pirn__stack_pool *pool, struct pirn__stack *stack)
{
    give_place(pool, end_use(stack));
}

void pirn__stack_give_back_slowly(struct pirn__stack_pool *pool,
                                  struct pirn__stack_hand *hand,
                                  struct pirn__stack *stack)
{
    if (stack->base != NULL) {
        pirn__stack_give(pool, stack);
        return;
    }
    if (hand == NULL) {
        give_promises(pool, 1);
        return;
    }
    hand->promises++;
    pirn__stack_tell_spare(hand);
    if (hand->promises == PIRN__STACK_PROMISES)
        pirn__stack_shed(pool, hand);
}

static void empty_hand(struct pirn__stack_pool *pool,
                       struct pirn__stack_hand *hand)
{
    if (hand->hot.base != NULL)
        pirn__stack_give(pool, &hand->hot);
    give_promises(pool, hand->promises);
}

void pirn__stack_quarantine(struct pirn__stack_pool *pool,
                            struct pirn__stack *stack)
{
    pirn__lock(&pool->lock);
    PIRN_ASSERT(stack->slab->busy & ~stack->slab->quarantined &
                bit_of(stack->index));
    stack->slab->quarantined |= bit_of(stack->index);
    pool->quarantined++;
    pirn__unlock(&pool->lock);
    pirn__checker_stack_keep(stack->base, stack->size);
}

static bool cool_coldest(struct pirn__stack_pool *pool, size_t keep)
{
    struct place place = { NULL, 0, false };

    pirn__lock(&pool->lock);
    if (pool->warm_count > keep && pool->ready_count > pool->promised)
        place = pop_coldest_locked(pool);
    pirn__unlock(&pool->lock);
    if (place.slab == NULL)
        return false;
    cool(pool, place);
    return true;
}

void pirn__stack_trim(struct pirn__stack_pool *pool, size_t keep)
{
    struct pirn__stack_slab *slab;

    /* At most what a full ring holds, however fast others give. */
    for (int i = 0; i < WARM_CAPACITY && cool_coldest(pool, keep); i++)
        continue;
    if (keep > 0)
        return;
    /* At most as many as are kept, or one that cannot be unmapped would come
     * again and again. */
    for (size_t i = 0; i <= pool->empty_limit; i++) {
        pirn__lock(&pool->lock);
        slab = pop_surplus_locked(pool, 0);
        pirn__unlock(&pool->lock);
        if (slab == NULL)
            return;
        drop_slab(pool, slab);
    }
}

/* What is at hand; with workers that run a glance, stale at once. */
static size_t spare_of(const struct pirn__stack_pool *pool)
{
    size_t spare = 0;

    for (uint32_t i = 0; i < pool->hands.count; i++) {
        /* relaxed: a statistic. */
        spare += pirn__load(&pool->hands.all[i].spare, relaxed);
    }
    return spare;
}

void pirn__stack_stats(struct pirn__stack_pool *pool,
                       struct pirn__stack_stats *out)
{
    size_t spare = spare_of(pool);
    size_t in_use;

    pirn__lock(&pool->lock);
    in_use = pool->in_use + pool->promised;
    /* Workers that run may have given back meanwhile. */
    in_use = in_use > spare ? in_use - spare : 0;
    *out = (struct pirn__stack_stats){
        .in_use = in_use,
        .quarantined = pool->quarantined,
        .cached = pool->slab_count * pool->slab_stacks - in_use,
        .mapped_bytes = pool->slab_count * pool->slab_bytes,
        .limit = pool->guard == PIRN__GUARD_REGION ? SIZE_MAX
                                                   : pool->protected_limit,
        .guard = pool->guard,
    };
    pirn__unlock(&pool->lock);
}

size_t pirn__stack_high_water(const struct pirn__stack *stack)
{
    const size_t page_size = stack->slab->page_size;
    char *base = stack->base;
    char *top = base + stack->size;
    /* The colour may take the last bytes of the top page. */
    size_t page_count = (stack->size + page_size - 1) / page_size;
    unsigned char pages[PAGES_PER_LOOK];

    for (size_t first = 0; first < page_count; first += PAGES_PER_LOOK) {
        size_t left = page_count - first;
        size_t count = left < PAGES_PER_LOOK ? left : PAGES_PER_LOOK;
        char *low = base + first * page_size;

        /* Where the kernel does not say, nothing better than "all" is safe. */
        if (pirn__sys->resident(low, count * page_size, pages) < 0)
            return stack->size;
        for (size_t i = 0; i < count; i++) {
            if (pages[i] & 1)
                return (size_t)(top - (low + i * page_size));
        }
    }
    return 0;
}

bool pirn__stack_guards(const struct pirn__stack *stack, const void *address)
{
    uintptr_t base = (uintptr_t)stack->base;
    uintptr_t at = (uintptr_t)address;

    return at < base && at >= base - stack->slab->guard_size;
}

static void validate_slabs_locked(struct pirn__stack_pool *pool,
                                  const pirn_link *list,
                                  struct pirn__stack_stats *sum)
{
    for (pirn_link *link = list->next_; link != list; link = link->next_) {
        struct pirn__stack_slab *slab = slab_of_link(link);

        PIRN_ASSERT(home_of(pool, slab) == list);
        PIRN_ASSERT((slab->quarantined & ~slab->busy) == 0);
        PIRN_ASSERT((slab->busy & ~slab->guarded) == 0);
        /* It would never be used. */
        PIRN_ASSERT(slab->guarded != 0 || slab == pool->guarding);
        PIRN_ASSERT((slab->bare & (slab->busy | ~slab->guarded)) == 0);
        sum->in_use += count_of(slab->busy);
        sum->quarantined += count_of(slab->quarantined);
        sum->cached += count_of(cold_stacks(slab));
        sum->mapped_bytes += pool->slab_bytes;
    }
}

void pirn__stack_pool_validate(struct pirn__stack_pool *pool)
{
    struct pirn__stack_stats sum = { 0 };

    pirn__lock(&pool->lock);
    validate_slabs_locked(pool, &pool->open, &sum);
    validate_slabs_locked(pool, &pool->full, &sum);
    validate_slabs_locked(pool, &pool->empty, &sum);
    PIRN_ASSERT(sum.mapped_bytes == pool->slab_count * pool->slab_bytes);
    PIRN_ASSERT(sum.quarantined == pool->quarantined);
    /* More than that are busy while another thread cools one. */
    PIRN_ASSERT(sum.in_use >= pool->in_use + pool->warm_count);
    PIRN_ASSERT(sum.cached + pool->warm_count == pool->ready_count);
    PIRN_ASSERT(pool->ready_count >= pool->promised);
    PIRN_ASSERT(pool->warm_count <= pool->warm_limit);
    pirn__unlock(&pool->lock);
}
