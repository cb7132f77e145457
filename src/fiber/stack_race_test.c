/* SPDX-License-Identifier: MIT */
/* src/fiber/stack_race_test.c - threads that take stacks at the limit of guards. */
#include "fiber/stack.h"

#include <errno.h>
#include <sched.h>

#include "sched/runtime_test.h"
#include "sys/heap.h"
#include "sys/sys.h"

enum { THREADS = 4, LIMIT = 45, STACKS = LIMIT / THREADS, TRIES = 64 };

/* Large, so that few fit into a slab, and slabs are made all the time. */
#define STACK_SIZE ((size_t)64 << 20)

static struct pirn__sys few; /* mappings, and no guard regions */
static tally maps;

static int few_map(size_t size, void **out)
{
    int rc = pirn__sys_linux.map(size, out);

    if (rc == 0)
        tally_up(&maps);
    return rc;
}

static int few_unmap(void *base, size_t size)
{
    tally_down(&maps);
    return pirn__sys_linux.unmap(base, size);
}

static int few_guard_install(void *base, size_t size)
{
    (void)base;
    (void)size;
    return -EINVAL;
}

static int few_mappings(void)
{
    return 100; /* 45 stacks */
}

static struct pirn__stack_pool *begin(void)
{
    struct pirn__stack_pool *pool = NULL;

    few = pirn__sys_linux;
    few.map = few_map;
    few.unmap = few_unmap;
    few.guard_install = few_guard_install;
    few.mapping_limit = few_mappings;
    pirn__sys = &few;
    tally_set(&maps, 0);
    EXPECT_EQ(0, pirn__stack_pool_new(&pirn__alloc_malloc, STACK_SIZE, 0,
                                      &pool));
    return pool;
}

static void end(struct pirn__stack_pool *pool)
{
    pirn__stack_pool_validate(pool);
    EXPECT(pirn__stack_pool_free(pool));
    EXPECT_EQ(0, tally_of(&maps));
    pirn__sys = &pirn__sys_linux;
}

/* Threads that begin each round together. */
struct round {
    struct pirn__stack_pool *pool;
    tally ready;
    tally refusals;
};

static void begin_together(struct round *round)
{
    tally_up(&round->ready);
    wait_for_tally(&round->ready, THREADS);
}

static void take_share(void *arg, size_t index)
{
    struct pirn__stack stacks[STACKS];
    struct round *round = arg;

    (void)index;
    begin_together(round);
    for (int i = 0; i < STACKS; i++) {
        if (pirn__stack_take(round->pool, &stacks[i]) == 0)
            continue;
        tally_up(&round->refusals);
    }
    for (int i = 0; i < STACKS; i++) {
        if (stacks[i].base != NULL)
            pirn__stack_give(round->pool, &stacks[i]);
    }
}

/* Goal: threads that take as many stacks as there may be, together, are never
 * refused one.
 * Method: a system with 100 mappings, so 45 stacks, of which each of four threads
 * wants eleven; each round begins without any. */
TEST(stack_limit_refuses_nobody_before_it)
{
    size_t rounds = test_size(20, 100, 2000);
    struct pirn__stack_pool *pool = begin();

    for (size_t i = 0; i < rounds; i++) {
        struct round round = {.pool = pool};
        struct crew crew;

        crew_start(&crew, THREADS, take_share, &round);
        crew_join(&crew);
        EXPECT_EQ(0, tally_of(&round.refusals));
        pirn__stack_trim(pool, 0);
        /* One in which no guard has been tried yet. */
        EXPECT_LE(tally_of(&maps), 1);
    }
    end(pool);
}

static void be_refused(void *arg, size_t index)
{
    struct round *round = arg;
    struct pirn__stack stack;

    (void)index;
    begin_together(round);
    for (int i = 0; i < TRIES; i++) {
        if (pirn__stack_take(round->pool, &stack) == -ENOMEM)
            tally_up(&round->refusals);
        sched_yield();
    }
}

/* Goal: however often several threads are refused at the limit, nothing is left
 * mapped for it. */
TEST(stack_limit_reached_by_threads_leaves_nothing)
{
    size_t rounds = test_size(5, 50, 1000);
    struct pirn__stack_pool *pool = begin();
    struct pirn__stack stacks[LIMIT];
    uint64_t before;

    for (int i = 0; i < LIMIT; i++)
        REQUIRE(pirn__stack_take(pool, &stacks[i]) == 0);
    before = tally_of(&maps);
    for (size_t i = 0; i < rounds; i++) {
        struct round round = {.pool = pool};
        struct crew crew;

        crew_start(&crew, THREADS, be_refused, &round);
        crew_join(&crew);
        EXPECT_EQ(THREADS * TRIES, tally_of(&round.refusals));
    }
    /* One in which guards can be tried. */
    EXPECT_LE(tally_of(&maps), before + 1);
    for (int i = 0; i < LIMIT; i++)
        pirn__stack_give(pool, &stacks[i]);
    end(pool);
}
