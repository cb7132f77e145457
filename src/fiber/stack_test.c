/* SPDX-License-Identifier: MIT */
/* src/fiber/stack_test.c - pools of stacks, also on systems that refuse: the
 * system table is replaced where a test needs a poorer kernel. */
#include "fiber/stack.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "engine/test.h"
#include "sys/checker.h"
#include "sys/heap.h"
#include "sys/switch.h"
#include "sys/sys.h"

enum {
    STACK_SIZE = 64 * 1024,
    /* Of these a pool keeps 256 MiB warm; see stack.c. */
    BIG_STACK_SIZE = 4 * 1024 * 1024,
    WARM_BOUND = 64,
    HANDS = 2,
};

/* An allocator that counts and can fail. */
static size_t bytes_out;
static int takes_left = -1; /* negative: no limit */

static void *counted_take(void *ctx, size_t size, size_t align)
{
    void *memory;

    (void)ctx;
    if (takes_left == 0)
        return NULL;
    if (takes_left > 0)
        takes_left--;
    memory = pirn__alloc_malloc.take(NULL, size, align);
    if (memory != NULL)
        bytes_out += size;
    return memory;
}

static void counted_give(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    bytes_out -= size;
    pirn__alloc_malloc.give(NULL, memory, size, align);
}

static const pirn_alloc counted = {
    .take = counted_take,
    .give = counted_give,
};

/* A system that can be made poorer, call by call. */
static struct pirn__sys poor;
static int maps_left = -1, guards_left = -1, protects_left = -1;
static bool unmap_refuses, beside_refuses;
static int maps_out, guards_made;

/* The page tables that guards have been put into. */
enum { TABLES_MAX = 256 };
static uintptr_t tables[TABLES_MAX];

static uintptr_t table_of(const void *guard)
{
    return (uintptr_t)guard / pirn__guard_span(pirn__sys->page_size());
}

static bool has_table(const void *guard)
{
    for (int i = 0; i < guards_made && i < TABLES_MAX; i++) {
        if (tables[i] == table_of(guard))
            return true;
    }
    return false;
}

static bool spend(int *left)
{
    if (*left == 0)
        return false;
    if (*left > 0)
        (*left)--;
    return true;
}

static int poor_map(size_t size, void **out)
{
    int rc;

    *out = NULL;
    if (!spend(&maps_left))
        return -ENOMEM;
    rc = pirn__sys_linux.map(size, out);
    maps_out += rc == 0;
    return rc;
}

static int poor_unmap(void *base, size_t size)
{
    if (unmap_refuses)
        return -ENOMEM;
    maps_out--;
    return pirn__sys_linux.unmap(base, size);
}

static int poor_guard_install(void *base, size_t size)
{
    if (!spend(&guards_left))
        return -EINVAL;
    tables[guards_made++ % TABLES_MAX] = table_of(base);
    return pirn__sys_linux.guard_install(base, size);
}

static int poor_guard_beside(void *base, size_t size)
{
    EXPECT(has_table(base));
    return beside_refuses ? -EINVAL
                          : pirn__sys_linux.guard_beside(base, size);
}

static int poor_protect_none(void *base, size_t size)
{
    if (!spend(&protects_left))
        return -ENOMEM;
    return pirn__sys_linux.protect_none(base, size);
}

static int few_mappings(void)
{
    return 100; /* 45 stacks */
}

static void poor_begin(void)
{
    poor = pirn__sys_linux;
    poor.map = poor_map;
    poor.unmap = poor_unmap;
    poor.guard_install = poor_guard_install;
    poor.guard_beside = poor_guard_beside;
    poor.protect_none = poor_protect_none;
    maps_left = guards_left = protects_left = -1;
    unmap_refuses = beside_refuses = false;
    maps_out = guards_made = 0;
    pirn__sys = &poor;
}

/* A kernel without guard regions.  The table moves, so that it is probed anew
 * even though another test had it probed. */
static struct pirn__sys unguarded;

static void unguarded_begin(void)
{
    poor_begin();
    guards_left = 0;
    unguarded = poor;
    pirn__sys = &unguarded;
}

static void poor_end(void)
{
    pirn__sys = &pirn__sys_linux;
}

static size_t page_size(void)
{
    return pirn__sys->page_size();
}

/* What a large frame is sure to touch. */
static size_t guard_size(void)
{
    size_t page = page_size();

    return (PIRN__STACK_PROBE_BYTES + page - 1) / page * page;
}

static struct pirn__stack_pool *new_pool(size_t size)
{
    struct pirn__stack_pool *pool;

    EXPECT_EQ(0, pirn__stack_pool_new(&counted, size, HANDS, &pool));
    return pool;
}

static void free_pool(struct pirn__stack_pool *pool)
{
    struct pirn__stack_stats stats;

    pirn__stack_pool_validate(pool);
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(0, stats.in_use);
    pirn__stack_pool_free(pool);
    EXPECT_EQ(0, bytes_out);
}

static bool has_regions(struct pirn__stack_pool *pool)
{
    struct pirn__stack_stats stats;

    pirn__stack_stats(pool, &stats);
    return stats.guard == PIRN__GUARD_REGION;
}

/* A pool in a poor system; NULL, and the system is itself again, if its guards are
 * no regions. */
static struct pirn__stack_pool *poor_pool_of_regions(void)
{
    struct pirn__stack_pool *pool;

    poor_begin();
    pool = new_pool(STACK_SIZE);
    if (has_regions(pool))
        return pool;
    free_pool(pool);
    poor_end();
    return NULL;
}

static struct pirn__stack take(struct pirn__stack_pool *pool)
{
    struct pirn__stack stack;

    EXPECT_EQ(0, pirn__stack_take(pool, &stack));
    return stack;
}

/* Take `count` into an array that the caller frees. */
static struct pirn__stack *take_many(struct pirn__stack_pool *pool,
                                     size_t count)
{
    struct pirn__stack *stacks = calloc(count, sizeof *stacks);

    for (size_t i = 0; i < count; i++)
        stacks[i] = take(pool);
    return stacks;
}

static void give_many(struct pirn__stack_pool *pool,
                      struct pirn__stack *stacks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pirn__stack_give(pool, &stacks[i]);
}

static bool is_resident(void *address)
{
    unsigned char page = 0;
    uintptr_t into = (uintptr_t)address % page_size();

    return pirn__sys->resident((char *)address - into, page_size(), &page) ==
               0 &&
           (page & 1) != 0;
}

static char *top_byte(const struct pirn__stack *stack)
{
    return (char *)stack->base + stack->size - 1;
}

/* Goal: sizes outside 16 KiB to 1 GiB are refused and leave nothing.
 * Method: the edges, and nonsense. */
TEST(stack_pool_bad_sizes_are_refused)
{
    const size_t bad[] = { 0, 1, 16 * 1024 - 1, (1u << 30) + 1, SIZE_MAX };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pirn__stack_pool *pool = (void *)&bad;

        EXPECT_EQ(-EINVAL, pirn__stack_pool_new(&counted, bad[i], HANDS, &pool));
        EXPECT_PTR_EQ(NULL, pool);
    }
    EXPECT_EQ(0, bytes_out);
    pirn__stack_pool_free(NULL);
}

/* Goal: at least the wanted size, all of it usable, whatever the colour.
 * Method: one and a half slabs of each size; lowest and highest byte written;
 * no two overlap. */
TEST(stack_take_gives_at_least_the_size)
{
    const size_t sizes[] = { 16 * 1024, 20000, STACK_SIZE, 1 << 20 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct pirn__stack_pool *pool = new_pool(sizes[i]);
        struct pirn__stack *stacks = take_many(pool, 96);

        for (size_t k = 0; k < 96; k++) {
            EXPECT_LE(sizes[i], stacks[k].size);
            EXPECT_EQ(0, (uintptr_t)stacks[k].base % page_size());
            EXPECT_EQ(0, stacks[k].size % 16);
            *(char *)stacks[k].base = (char)k;
            *top_byte(&stacks[k]) = (char)k;
        }
        for (size_t k = 0; k < 96; k++) {
            EXPECT_EQ((char)k, *(char *)stacks[k].base);
            EXPECT_EQ((char)k, *top_byte(&stacks[k]));
        }
        give_many(pool, stacks, 96);
        free(stacks);
        free_pool(pool);
    }
}

/* Goal: the largest stacks work too, one slab holding few of them.
 * Method: 1 GiB; only its ends are touched. */
TEST(stack_of_one_gigabyte_works)
{
    struct pirn__stack_pool *pool = new_pool((size_t)1 << 30);
    struct pirn__stack stack = take(pool);
    struct pirn__stack_stats stats;

    *(char *)stack.base = 1;
    *top_byte(&stack) = 1;
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(1, stats.in_use);
    EXPECT_EQ(0, stats.cached);
    pirn__stack_give(pool, &stack);
    free_pool(pool);
}

/* Goal: tops do not all lie on the same cache sets.
 * Method: 16 neighbours have 16 offsets, all within half a page. */
TEST(stack_tops_are_coloured)
{
    struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
    struct pirn__stack *stacks = take_many(pool, 16);
    uint32_t seen = 0;

    for (size_t i = 0; i < 16; i++) {
        size_t top = (size_t)(uintptr_t)(top_byte(&stacks[i]) + 1);
        size_t offset = (page_size() - top % page_size()) % page_size();

        EXPECT_LE(offset, 2048);
        seen |= 1u << offset / 128;
    }
    EXPECT_EQ(0xffff, seen);
    give_many(pool, stacks, 16);
    free(stacks);
    free_pool(pool);
}

/* How a child ends that writes to `address`. */
static int status_of_write(volatile char *address)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        *address = 1;
        _exit(0);
    }
    EXPECT_EQ(child, waitpid(child, &status, 0));
    return status;
}

static void expect_guard(const struct pirn__stack *stack)
{
    char *base = stack->base;
    uint64_t one = 1;
    int status, fd;

    status = status_of_write(base - 1);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = status_of_write(base - guard_size());
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    EXPECT_EQ(0, status_of_write(base));

    fd = pirn__sys->eventfd();
    EXPECT_EQ(0, pirn__sys->eventfd_signal(fd));
    EXPECT_EQ(-EFAULT, pirn__sys->read(fd, base - guard_size(), sizeof one));
    pirn__sys->close(fd);
}

static void expect_guards_of_pool(struct pirn__stack_pool *pool)
{
    struct pirn__stack *stacks = take_many(pool, 3);

    for (size_t i = 0; i < 3; i++)
        expect_guard(&stacks[i]);
    /* Also after a round through the cache. */
    give_many(pool, stacks, 3);
    pirn__stack_trim(pool, 1);
    stacks[0] = take(pool);
    expect_guard(&stacks[0]);
    pirn__stack_give(pool, &stacks[0]);
    free(stacks);
}

/* Goal: an overflow faults, in the program and in the kernel.
 * Method: child processes write to the edges of the guard; read(2) into it. */
TEST(stack_guard_faults)
{
    struct pirn__stack_pool *pool = new_pool(STACK_SIZE);

    expect_guards_of_pool(pool);
    free_pool(pool);
}

/* Goal: the same where the kernel has no guard regions.
 * Method: a table whose guard_install fails. */
TEST(stack_guard_falls_back_to_protection)
{
    struct pirn__stack_pool *pool;
    struct pirn__stack_stats stats;

    unguarded_begin();
    pool = new_pool(STACK_SIZE);
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(PIRN__GUARD_PROTECT, stats.guard);
    EXPECT_LE(1000, stats.limit);
    EXPECT_LE(stats.limit, INT32_MAX);
    expect_guards_of_pool(pool);
    free_pool(pool);
    EXPECT_EQ(0, maps_out);
    poor_end();
}

/* Goal: a program that locks its memory later still gets guards.
 * Method: guard_install works for the probe and one stack, then never. */
TEST(stack_guard_falls_back_stack_by_stack)
{
    struct pirn__stack_pool *pool = poor_pool_of_regions();
    struct pirn__stack_stats stats;
    struct pirn__stack first, second;

    if (pool == NULL)
        SKIP("no guard regions here");
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(SIZE_MAX, stats.limit);
    guards_left = 1;
    first = take(pool);
    second = take(pool);
    EXPECT_EQ(0, guards_left);
    expect_guard(&first);
    expect_guard(&second);
    pirn__stack_give(pool, &first);
    pirn__stack_give(pool, &second);
    free_pool(pool);
    poor_end();
}

/* Goal: at the limit of mappings take says -ENOMEM, and works again later; the
 * limit counts over all pools.
 * Method: a system with 100 mappings, so 45 stacks. */
TEST(stack_limit_of_mappings_is_reported)
{
    struct pirn__stack_pool *pool, *other;
    struct pirn__stack_stats stats;
    struct pirn__stack *stacks;
    struct pirn__stack extra;

    unguarded_begin();
    unguarded.mapping_limit = few_mappings;
    pool = new_pool(STACK_SIZE);
    other = new_pool(2 * STACK_SIZE);
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(45, stats.limit);
    stacks = take_many(pool, 45);
    EXPECT_EQ(-ENOMEM, pirn__stack_take(pool, &extra));
    EXPECT_PTR_EQ(NULL, extra.base);
    EXPECT_EQ(-ENOMEM, pirn__stack_take(other, &extra));
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(45, stats.in_use);
    pirn__stack_pool_validate(pool);
    pirn__stack_pool_validate(other);

    /* A stack that came back has its guard already. */
    pirn__stack_give(pool, &stacks[7]);
    stacks[7] = take(pool);
    EXPECT_EQ(-ENOMEM, pirn__stack_take(pool, &extra));

    /* Unmapping returns the mappings to everybody. */
    give_many(pool, stacks, 45);
    pirn__stack_trim(pool, 0);
    extra = take(other);
    pirn__stack_give(other, &extra);
    free(stacks);
    pirn__stack_pool_free(other);
    free_pool(pool);
    EXPECT_EQ(0, maps_out);
    poor_end();
}

/* Goal: a guard that cannot be made loses nothing.
 * Method: protect_none fails at the k-th call, for several k. */
TEST(stack_guard_failure_loses_nothing)
{
    for (int k = 0; k < 4; k++) {
        struct pirn__stack_pool *pool;
        struct pirn__stack *stacks;
        struct pirn__stack extra;
        size_t count = (size_t)k;

        unguarded_begin();
        pool = new_pool(STACK_SIZE);
        protects_left = k;
        stacks = take_many(pool, count);
        EXPECT_EQ(-ENOMEM, pirn__stack_take(pool, &extra));
        pirn__stack_pool_validate(pool);
        protects_left = -1;
        extra = take(pool);
        expect_guard(&extra);
        pirn__stack_give(pool, &extra);
        give_many(pool, stacks, count);
        free(stacks);
        free_pool(pool);
        EXPECT_EQ(0, maps_out);
        poor_end();
    }
}

/* Goal: when no guard can be made, a guarded stack of another slab serves.
 * Method: guards for one more than a slab; one of the first slab comes back. */
TEST(stack_guard_failure_uses_guarded_stack_elsewhere)
{
    struct pirn__stack_pool *pool;
    struct pirn__stack *stacks;
    struct pirn__stack extra;

    unguarded_begin();
    pool = new_pool(STACK_SIZE);
    protects_left = 65; /* 64 in the first slab, 1 in the second */
    stacks = take_many(pool, 65);
    pirn__stack_give(pool, &stacks[3]);
    pirn__stack_trim(pool, 0);
    extra = take(pool);
    EXPECT_EQ(-ENOMEM, pirn__stack_take(pool, &stacks[3]));
    pirn__stack_pool_validate(pool);
    pirn__stack_give(pool, &extra);
    stacks[3] = take(pool);
    give_many(pool, stacks, 65);
    free(stacks);
    free_pool(pool);
    poor_end();
}

/* Goal: no memory for records or mappings is -ENOMEM and leaks nothing.
 * Method: the k-th allocation, and the k-th mapping, fails. */
TEST(stack_every_failing_allocation_leaks_nothing)
{
    struct pirn__stack_pool *pool;
    struct pirn__stack stack;

    takes_left = 0;
    EXPECT_EQ(-ENOMEM, pirn__stack_pool_new(&counted, STACK_SIZE, HANDS, &pool));
    EXPECT_PTR_EQ(NULL, pool);
    takes_left = 1;
    EXPECT_EQ(0, pirn__stack_pool_new(&counted, STACK_SIZE, HANDS, &pool));
    EXPECT_EQ(-ENOMEM, pirn__stack_take(pool, &stack));
    EXPECT_PTR_EQ(NULL, stack.base);
    takes_left = -1;
    stack = take(pool);
    pirn__stack_give(pool, &stack);
    free_pool(pool);

    poor_begin();
    pool = new_pool(STACK_SIZE);
    maps_left = 0;
    EXPECT_EQ(-ENOMEM, pirn__stack_take(pool, &stack));
    maps_left = -1;
    stack = take(pool);
    pirn__stack_give(pool, &stack);
    free_pool(pool);
    EXPECT_EQ(0, maps_out);
    poor_end();
}

/* Goal: an unmap that the kernel refuses keeps the slab usable.
 * Method: refuse while a slab is dropped, then use it again. */
TEST(stack_refused_unmap_keeps_the_slab)
{
    struct pirn__stack_pool *pool;
    struct pirn__stack_stats stats;
    struct pirn__stack stack;

    poor_begin();
    pool = new_pool(STACK_SIZE);
    stack = take(pool);
    pirn__stack_give(pool, &stack);
    unmap_refuses = true;
    pirn__stack_trim(pool, 0);
    pirn__stack_pool_validate(pool);
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(64, stats.cached);
    stack = take(pool);
    pirn__stack_give(pool, &stack);
    unmap_refuses = false;
    free_pool(pool);
    EXPECT_EQ(0, maps_out);
    poor_end();
}

static bool cache_is_on(void)
{
#ifdef PIRN_DEBUG
    return false;
#else
    return !pirn__checker_active();
#endif
}

/* Goal: the stack that was given last comes first, with its pages, unless
 * something watches memory: then reuse is put off.
 * Method: give two, take two. */
TEST(stack_cache_is_last_in_first_out)
{
    struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
    struct pirn__stack first = take(pool), second = take(pool);
    void *first_base = first.base, *second_base = second.base;
    struct pirn__stack again;

    *top_byte(&second) = 1;
    pirn__stack_give(pool, &first);
    pirn__stack_give(pool, &second);
    EXPECT_PTR_EQ(NULL, second.base);
    again = take(pool);
    if (cache_is_on()) {
        EXPECT_PTR_EQ(second_base, again.base);
        EXPECT_EQ(1, *top_byte(&again));
    } else {
        EXPECT(again.base != second_base && again.base != first_base);
    }
    pirn__stack_give(pool, &again);
    free_pool(pool);
}

/* Goal: the cache is bounded, and trim gives the rest back.
 * Method: touch 100 big stacks, give them all, count the pages in memory. */
TEST(stack_cache_is_bounded_and_trimmed)
{
    enum { COUNT = 100 };
    struct pirn__stack_pool *pool = new_pool(BIG_STACK_SIZE);
    struct pirn__stack *stacks = take_many(pool, COUNT);
    char *tops[COUNT];
    struct pirn__stack_stats stats;
    size_t resident = 0;

    for (size_t i = 0; i < COUNT; i++) {
        tops[i] = top_byte(&stacks[i]);
        *tops[i] = 1;
        EXPECT(is_resident(tops[i]));
    }
    give_many(pool, stacks, COUNT);
    pirn__stack_pool_validate(pool);
    for (size_t i = 0; i < COUNT; i++)
        resident += is_resident(tops[i]);
    EXPECT_EQ(cache_is_on() ? WARM_BOUND : 0, resident);
    /* The hottest are the ones that stayed. */
    EXPECT_EQ(cache_is_on(), is_resident(tops[COUNT - 1]));
    EXPECT(!is_resident(tops[0]));

    pirn__stack_trim(pool, 10);
    pirn__stack_pool_validate(pool);
    resident = 0;
    for (size_t i = 0; i < COUNT; i++)
        resident += is_resident(tops[i]);
    EXPECT_EQ(cache_is_on() ? 10 : 0, resident);

    pirn__stack_trim(pool, 0);
    pirn__stack_pool_validate(pool);
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(0, stats.cached);
    EXPECT_EQ(0, stats.mapped_bytes);
    free(stacks);
    free_pool(pool);
}

enum { TOPS = 2000 };

/* Use so many stacks at once, and then one many times, so often that the pool has
 * looked twice at what is needed.  `tops` are where they were touched. */
static void use_again_and_again(struct pirn__stack_pool *pool, char **tops,
                                size_t count)
{
    for (int round = 0; round < 5; round++) {
        struct pirn__stack *stacks = take_many(pool, count);

        for (size_t i = 0; i < count; i++) {
            tops[i] = top_byte(&stacks[i]);
            *top_byte(&stacks[i]) = 1;
        }
        give_many(pool, stacks, count);
        free(stacks);
        for (int i = 0; i < 40000; i++) {
            struct pirn__stack one = take(pool);

            pirn__stack_give(pool, &one);
        }
    }
}

/* How many of the stacks have a page of their top in memory. */
static size_t count_resident(char *const *tops)
{
    size_t resident = 0;

    for (size_t i = 0; i < TOPS; i++)
        resident += tops[i] != NULL && is_resident(tops[i]);
    return resident;
}

/* Goal: stacks stay warm as long as so many are needed now and then, and no longer,
 * but for some.
 * Method: fewer and fewer are used. */
TEST(stack_cache_shrinks_when_few_are_used)
{
    struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
    char *all[TOPS] = {NULL}, *some[TOPS];

    if (!cache_is_on() || !has_regions(pool)) {
        free_pool(pool);
        SKIP("nothing is kept here");
    }
    use_again_and_again(pool, all, TOPS);
    EXPECT_EQ(TOPS, count_resident(all));
    use_again_and_again(pool, some, 1800);
    EXPECT_EQ(1800, count_resident(all));
    use_again_and_again(pool, some, 1);
    EXPECT_EQ(1024, count_resident(all));
    pirn__stack_pool_validate(pool);
    free_pool(pool);
}

/* Goal: a quarantined stack is never handed out nor unmapped.
 * Method: quarantine one of a slab, take more than a slab, free the pool, and
 * still write to it. */
TEST(stack_quarantined_is_never_reused)
{
    struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
    struct pirn__stack prisoner = take(pool);
    struct pirn__stack_stats stats;
    struct pirn__stack *stacks;

    *(char *)prisoner.base = 1;
    pirn__stack_quarantine(pool, &prisoner);
    for (int round = 0; round < 3; round++) {
        stacks = take_many(pool, 100);
        for (size_t i = 0; i < 100; i++)
            EXPECT(stacks[i].base != prisoner.base);
        give_many(pool, stacks, 100);
        pirn__stack_trim(pool, 0);
        pirn__stack_pool_validate(pool);
        free(stacks);
    }
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(1, stats.in_use);
    EXPECT_EQ(1, stats.quarantined);
    pirn__stack_pool_free(pool);
    EXPECT_EQ(1, *(char *)prisoner.base);
    EXPECT(pirn__stack_guards(&prisoner, (char *)prisoner.base - 1));
    EXPECT_LE(1, bytes_out); /* its slab's record stays with it */
    bytes_out = 0;
}

struct reach {
    struct pirn__stack_pool *pool;
    struct pirn__stack stack;
};

static void give_twice(void *arg)
{
    struct reach *reach = arg;
    struct pirn__stack copy = reach->stack;

    pirn__stack_quarantine(reach->pool, &reach->stack);
    pirn__stack_give(reach->pool, &copy);
}

/* Goal: giving back what is quarantined is caught.
 * Method: a child does it and must abort. */
TEST(stack_give_of_quarantined_aborts)
{
    struct reach reach = { .pool = new_pool(STACK_SIZE) };

    reach.stack = take(reach.pool);
    EXPECT_DEATH(give_twice, &reach, "internal error");
    pirn__stack_give(reach.pool, &reach.stack);
    free_pool(reach.pool);
}

/* Goal: the high-water mark is right to within a page.
 * Method: touch one byte at known depths, on a stack that is new. */
TEST(stack_high_water_is_within_a_page)
{
    struct pirn__stack_pool *pool = new_pool(1 << 20);
    struct pirn__stack stack = take(pool);
    size_t depth;

    EXPECT_EQ(0, pirn__stack_high_water(&stack));
    for (depth = 1; depth <= stack.size; depth = depth * 3 + 1000) {
        *((char *)stack.base + stack.size - depth) = 0;
        EXPECT_LE(depth, pirn__stack_high_water(&stack));
        EXPECT_LE(pirn__stack_high_water(&stack), depth + page_size());
    }
    *(char *)stack.base = 0;
    EXPECT_EQ(stack.size, pirn__stack_high_water(&stack));
    pirn__stack_give(pool, &stack);
    pirn__stack_trim(pool, 0);
    stack = take(pool);
    EXPECT_EQ(0, pirn__stack_high_water(&stack));
    pirn__stack_give(pool, &stack);
    free_pool(pool);
}

/* Goal: the guard is known by address, to the byte.
 * Method: both of its edges. */
TEST(stack_guards_knows_its_range)
{
    struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
    struct pirn__stack stack = take(pool);
    char *base = stack.base;

    EXPECT(pirn__stack_guards(&stack, base - 1));
    EXPECT(pirn__stack_guards(&stack, base - guard_size()));
    EXPECT(!pirn__stack_guards(&stack, base - guard_size() - 1));
    EXPECT(!pirn__stack_guards(&stack, base));
    EXPECT(!pirn__stack_guards(&stack, NULL));
    pirn__stack_give(pool, &stack);
    free_pool(pool);
}

static size_t count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    int c;

    if (maps == NULL)
        return 0;
    while ((c = fgetc(maps)) != EOF)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

/* Goal: twenty thousand stacks cost few mappings where guard regions work, and
 * everything comes back.
 * Method: take them all, touch each top, look, give them all. */
TEST(stack_twenty_thousand_taken_and_given)
{
    size_t count = test_size(2000, 20 * 1000, 200 * 1000);
    struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
    size_t mappings = count_mappings();
    struct pirn__stack_stats stats;
    struct pirn__stack *stacks;

    pirn__stack_stats(pool, &stats);
    if (stats.limit < count)
        count = stats.limit;
    stacks = take_many(pool, count);
    for (size_t i = 0; i < count; i++)
        *top_byte(&stacks[i]) = 1;
    pirn__stack_pool_validate(pool);
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(count, stats.in_use);
    /* By protection it would be two each; TSan's shadow takes some itself. */
    if (stats.guard == PIRN__GUARD_REGION)
        EXPECT_LE(count_mappings(), mappings + 100 + count / 20);
    give_many(pool, stacks, count);
    pirn__stack_pool_validate(pool);
    pirn__stack_trim(pool, 0);
    pirn__stack_stats(pool, &stats);
    EXPECT_EQ(0, stats.in_use);
    EXPECT_EQ(0, stats.mapped_bytes);
    free(stacks);
    free_pool(pool);
}

enum { THREAD_ROUNDS = 300, THREAD_STACKS = 40 };

/* Each stack is written by its holder only: TSan and the check below tell. */
static void *take_and_give(void *arg)
{
    struct pirn__stack_pool *pool = arg;
    struct pirn__stack held[THREAD_STACKS];

    for (int round = 0; round < THREAD_ROUNDS; round++) {
        int count = 1 + round % THREAD_STACKS;

        for (int i = 0; i < count; i++) {
            held[i] = take(pool);
            memcpy(held[i].base, &held[i], sizeof held[i]);
        }
        for (int i = 0; i < count; i++) {
            EXPECT_EQ(0, memcmp(held[i].base, &held[i], sizeof held[i]));
            pirn__stack_give(pool, &held[i]);
        }
        if (round % 16 == 0)
            pirn__stack_trim(pool, (size_t)round % 3);
    }
    return NULL;
}

/* Goal: any thread may use a pool.
 * Method: three threads take, fill, compare, give and trim. */
TEST(stack_pool_serves_threads)
{
    struct pirn__stack_pool *pool;
    pthread_t threads[3];

    /* The counting allocator is not for threads. */
    EXPECT_EQ(0, pirn__stack_pool_new(&pirn__alloc_malloc, STACK_SIZE, HANDS, &pool));
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(0, pthread_create(&threads[i], NULL, take_and_give, pool));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    free_pool(pool);
}

static size_t in_use(struct pirn__stack_pool *pool)
{
    struct pirn__stack_stats stats;

    pirn__stack_pool_validate(pool);
    pirn__stack_stats(pool, &stats);
    return stats.in_use;
}

/* Goal: what is promised counts as in use, and is a stack once it is wanted, or
 * goes back without having been one.
 * Method: promises for more than a slab; every other one redeemed; with a hand and
 * without. */
TEST(stack_promises_are_redeemed_or_given_back)
{
    enum { COUNT = 200 };

    for (int turn = 0; turn < 2; turn++) {
        struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
        struct pirn__stack_hand *hand =
            turn == 0 ? NULL : pirn__stack_hand(pool, 0);
        struct pirn__stack stacks[COUNT];

        for (int i = 0; i < COUNT; i++)
            EXPECT_EQ(0, pirn__stack_promise(pool, hand, &stacks[i]));
        EXPECT_EQ(COUNT, in_use(pool));
        for (int i = 0; i < COUNT; i += 2) {
            pirn__stack_redeem(pool, hand, &stacks[i]);
            *top_byte(&stacks[i]) = 1;
        }
        EXPECT_EQ(COUNT, in_use(pool));
        for (int i = 0; i < COUNT; i++)
            pirn__stack_give_back(pool, hand, &stacks[i]);
        EXPECT_EQ(0, in_use(pool));
        free_pool(pool);
    }
}

/* Goal: tasks that start and end one after the other use one stack, however many
 * are promised one.
 * Method: a thousand promises, redeemed and given back in turn. */
TEST(stack_promises_in_turn_use_one_stack)
{
    enum { COUNT = 1000 };

    for (int turn = 0; turn < 2; turn++) {
        struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
        struct pirn__stack_hand *hand =
            turn == 0 ? NULL : pirn__stack_hand(pool, 1);
        struct pirn__stack *stacks = calloc(COUNT, sizeof *stacks);
        size_t changes = 0;
        void *base = NULL;

        for (int i = 0; i < COUNT; i++)
            EXPECT_EQ(0, pirn__stack_promise(pool, hand, &stacks[i]));
        for (int i = 0; i < COUNT; i++) {
            pirn__stack_redeem(pool, hand, &stacks[i]);
            changes += stacks[i].base != base;
            base = stacks[i].base;
            pirn__stack_give_back(pool, hand, &stacks[i]);
            EXPECT_EQ(COUNT - 1 - i, in_use(pool));
        }
        if (cache_is_on() && has_regions(pool))
            EXPECT_EQ(1, changes);
        free(stacks);
        free_pool(pool);
    }
}

/* Goal: no more is promised than can be mapped, and who takes a stack does not
 * get one that is promised.
 * Method: one slab, no more mappings. */
TEST(stack_promises_are_kept_apart)
{
    struct pirn__stack_pool *pool;
    struct pirn__stack stacks[64], extra;

    poor_begin();
    pool = new_pool(STACK_SIZE);
    maps_left = 1;
    for (int i = 0; i < 64; i++)
        EXPECT_EQ(0, pirn__stack_promise(pool, NULL, &stacks[i]));
    EXPECT_EQ(-ENOMEM, pirn__stack_promise(pool, NULL, &extra));
    EXPECT_EQ(-ENOMEM, pirn__stack_take(pool, &extra));
    pirn__stack_redeem(pool, NULL, &stacks[0]);
    EXPECT_EQ(-ENOMEM, pirn__stack_take(pool, &extra));
    pirn__stack_give_back(pool, NULL, &stacks[0]);
    EXPECT_EQ(0, pirn__stack_take(pool, &extra));
    EXPECT_EQ(-ENOMEM, pirn__stack_promise(pool, NULL, &stacks[0]));
    pirn__stack_give(pool, &extra);
    for (int i = 1; i < 64; i++)
        pirn__stack_redeem(pool, NULL, &stacks[i]);
    for (int i = 1; i < 64; i++)
        pirn__stack_give_back(pool, NULL, &stacks[i]);
    free_pool(pool);
    EXPECT_EQ(0, maps_out);
    poor_end();
}

/* Goal: what has been promised is there, whatever the kernel says later; only a
 * promise can fail.
 * Method: after some promises no guard and no mapping can be made. */
TEST(stack_promises_are_kept)
{
    enum { PROMISED = 100, MOST = 200 };
    struct pirn__stack_pool *pool;
    struct pirn__stack stacks[MOST];
    int count = 0;

    poor_begin();
    pool = new_pool(STACK_SIZE);
    while (count < PROMISED)
        EXPECT_EQ(0, pirn__stack_promise(pool, NULL, &stacks[count++]));
    guards_left = protects_left = maps_left = 0;
    while (count < MOST &&
           pirn__stack_promise(pool, NULL, &stacks[count]) == 0)
        count++;
    EXPECT_LE(count, MOST - 1);
    EXPECT_EQ(count, in_use(pool));
    for (int i = 0; i < count; i++) {
        EXPECT_PTR_EQ(NULL, stacks[i].base);
        pirn__stack_redeem(pool, NULL, &stacks[i]);
        if (i % 32 == 0)
            expect_guard(&stacks[i]);
        *top_byte(&stacks[i]) = 1;
    }
    pirn__stack_pool_validate(pool);
    guards_left = protects_left = maps_left = -1;
    for (int i = 0; i < count; i++)
        pirn__stack_give_back(pool, NULL, &stacks[i]);
    free_pool(pool);
    EXPECT_EQ(0, maps_out);
    poor_end();
}

/* Goal: to promise stacks costs few guards; who takes one gets it with its guard,
 * which shares the table of one that has been there.
 * Method: four slabs promised, all taken; guards counted. */
TEST(stack_promises_put_guards_off)
{
    enum { COUNT = 256 };
    struct pirn__stack_pool *pool;
    struct pirn__stack stacks[COUNT];

    pool = poor_pool_of_regions();
    if (pool == NULL)
        SKIP("no guard regions here");
    for (int i = 0; i < COUNT; i++)
        EXPECT_EQ(0, pirn__stack_promise(pool, NULL, &stacks[i]));
    EXPECT_LE(guards_made, COUNT / 4);
    EXPECT_EQ(COUNT, in_use(pool));
    for (int i = 0; i < COUNT; i++) {
        pirn__stack_redeem(pool, NULL, &stacks[i]);
        if (i % 16 == 5)
            expect_guard(&stacks[i]);
    }
    for (int i = 0; i < COUNT; i++)
        pirn__stack_give(pool, &stacks[i]);
    free_pool(pool);
    EXPECT_EQ(0, maps_out);
    poor_end();
}

/* Goal: guards that fail while a slab is made leave what there is, and the rest
 * get theirs later.
 * Method: after k guards none can be made any more, by region or protection. */
TEST(stack_guard_failure_in_a_new_slab_loses_nothing)
{
    for (int k = 0; k < 6; k++) {
        struct pirn__stack_pool *pool = poor_pool_of_regions();
        struct pirn__stack stacks[64];
        int count = 0;

        if (pool == NULL)
            SKIP("no guard regions here");
        guards_left = k;
        protects_left = 0;
        maps_left = 1;
        while (count < 64 && pirn__stack_take(pool, &stacks[count]) == 0)
            count++;
        EXPECT_LE(k, count);
        for (int i = 0; i < count; i += 21)
            expect_guard(&stacks[i]);
        pirn__stack_pool_validate(pool);
        guards_left = protects_left = -1;
        for (; count < 64; count++)
            stacks[count] = take(pool);
        expect_guard(&stacks[63]);
        give_many(pool, stacks, 64);
        free_pool(pool);
        EXPECT_EQ(0, maps_out);
        poor_end();
    }
}

/* Goal: a program that locks its memory between spawn and first run has its guards
 * all the same, by protection, and these are counted as long as they are there.
 * Method: a system that refuses regions once stacks are promised. */
TEST(stack_promises_get_guards_in_locked_memory)
{
    const size_t size = page_size();
    struct pirn__stack_pool *pool = poor_pool_of_regions();
    struct pirn__stack stacks[8];
    void *page;

    if (pool == NULL)
        SKIP("no guard regions here");
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(0, pirn__stack_promise(pool, NULL, &stacks[i]));
    beside_refuses = true;
    for (int i = 0; i < 8; i++) {
        pirn__stack_redeem(pool, NULL, &stacks[i]);
        expect_guard(&stacks[i]);
    }
    give_many(pool, stacks, 8);
    free_pool(pool);
    REQUIRE(pirn__sys->map(size, &page) == 0);
    EXPECT_EQ(PIRN__GUARD_PROTECT,
              pirn__guard_install(PIRN__GUARD_PROTECT, 1, page, size));
    pirn__guard_forget(1);
    EXPECT_EQ(0, pirn__sys->unmap(page, size));
    poor_end();
}

static void redeem_what_has_no_guard(void *arg)
{
    struct pirn__stack_pool *pool;
    struct pirn__stack stacks[8]; /* of which a few have one */

    (void)arg;
    poor_begin();
    pool = new_pool(STACK_SIZE);
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(0, pirn__stack_promise(pool, NULL, &stacks[i]));
    beside_refuses = true;
    protects_left = 0;
    for (int i = 0; i < 8; i++)
        pirn__stack_redeem(pool, NULL, &stacks[i]);
}

/* Goal: a stack that can have no guard is not used without.
 * Method: a child in which neither region nor protection is to be had. */
TEST(stack_without_its_guard_aborts)
{
    struct pirn__stack_pool *pool = new_pool(STACK_SIZE);
    bool skip = !has_regions(pool);

    free_pool(pool);
    if (skip)
        SKIP("no guard regions here");
    EXPECT_DEATH(redeem_what_has_no_guard, NULL, "memory is locked before");
}
