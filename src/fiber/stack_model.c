/* SPDX-License-Identifier: MIT */
/* src/fiber/stack_model.c - a pool of stacks under every interleaving.
 *
 * Who has a stack has it alone, its guard is in, and no page of it is taken away;
 * a promise is kept; there are never more guards than the limit.  Stacks are so
 * large that a slab has room for one or for three, and the cache for one or for
 * four; nobody touches them but for one word.
 */
#include "fiber/stack.h"

#include <errno.h>

#include "engine/model_memory.h"

#define ALONE ((size_t)1 << 30)     /* one in a slab, one warm, 7 empty slabs */
#define IN_FIFTEENS ((size_t)16 << 20)
#define IN_THREES ((size_t)64 << 20) /* three in a slab, four warm */
#define IN_CROWDS ((size_t)64 << 10) /* 64 in a slab, all but a few bare at first */

static struct pirn__stack_pool *pool;
static struct pirn__stack stacks[4]; /* held by the body */
static int refusals;

static void begin(size_t size, uint32_t hands, int guard_limit)
{
    model_memory_begin(guard_limit);
    EXPLORE_CHECK(pirn__stack_pool_new(&explore_heap, size, hands, &pool) == 0);
}

static void end(void)
{
    pirn__stack_pool_validate(pool);
    EXPLORE_CHECK(pirn__stack_pool_free(pool));
    EXPLORE_CHECK(memory.mapped_count == 0);
    EXPLORE_CHECK(model_guard_count() == 0);
}

static void take(struct pirn__stack *stack)
{
    EXPLORE_CHECK(pirn__stack_take(pool, stack) == 0);
    model_stack_hold(stack);
}

static void give(struct pirn__stack *stack)
{
    model_stack_let_go(stack);
    pirn__stack_give(pool, stack);
}

static void take_and_give(void *arg)
{
    struct pirn__stack stack;

    (void)arg;
    take(&stack);
    give(&stack);
}

static void take_two_and_give(void *arg)
{
    struct pirn__stack pair[2];

    (void)arg;
    take(&pair[0]);
    take(&pair[1]);
    give(&pair[0]);
    give(&pair[1]);
}

static void give_one(void *arg)
{
    give(arg);
}

static void trim_all(void *arg)
{
    (void)arg;
    pirn__stack_trim(pool, 0);
}

/* Goal: threads that need the first stacks make slabs and guards side by side:
 * each gets one of its own, whose guard is in.  No slab is left that nobody needs. */
MODEL(stack_first_ones_of_two_threads, .preemptions = 4, .stale = -1)
{
    begin(explore_choose(2) == 0 ? ALONE : IN_THREES, 0, 0);
    explore_thread(take_and_give, NULL);
    explore_thread(take_two_and_give, NULL);
    explore_join();
    EXPLORE_CHECK(memory.mapped_count <= 3);
    end();
}

/* Goal: of stacks that share page tables each gets its guard from who takes it
 * first, before it is used, however many take; also while the slab is trimmed. */
MODEL(stack_bare_ones_of_three_threads, .preemptions = 2, .stale = -1)
{
    begin(IN_CROWDS, 0, 0);
    if (explore_choose(2) == 0)
        explore_thread(trim_all, NULL);
    else
        explore_thread(take_and_give, NULL);
    explore_thread(take_and_give, NULL);
    explore_thread(take_two_and_give, NULL);
    explore_join();
    EXPLORE_CHECK(memory.mapped_count <= 3);
    end();
}

/* Goal: a stack that falls out of the cache, and loses its pages, is nobody's
 * until it has lost them. */
MODEL(stack_crowded_out_against_a_taker, .preemptions = 4, .stale = -1)
{
    begin(ALONE, 0, 0);
    take(&stacks[0]);
    take(&stacks[1]);
    explore_thread(give_one, &stacks[0]);
    explore_thread(give_one, &stacks[1]);
    explore_thread(take_and_give, NULL);
    explore_join();
    end();
}

/* Goal: neither the pages of warm stacks nor empty slabs are taken away under who
 * has a promise. */
MODEL(stack_trim_against_takers, .preemptions = 4, .stale = -1)
{
    begin(ALONE, 0, 0);
    for (int i = 0; i < 3; i++)
        take(&stacks[i]);
    for (int i = 0; i < 3; i++)
        give(&stacks[i]);
    explore_thread(trim_all, NULL);
    explore_thread(take_two_and_give, NULL);
    explore_join();
    end();
}

/* Goal: the same where a slab loses its last stack while others of it are guarded,
 * and two trim. */
MODEL(stack_trim_against_guards, .preemptions = 3, .stale = -1)
{
    begin(IN_THREES, 0, 0);
    take(&stacks[0]);
    explore_thread(trim_all, NULL);
    explore_thread(give_one, &stacks[0]);
    explore_thread(take_two_and_give, NULL);
    explore_join();
    end();
}

/* Goal: a slab that goes while some of its stacks are still fresh is not the one in
 * which others look for such. */
MODEL(stack_trim_of_fresh_ones, .preemptions = 4, .stale = -1)
{
    begin(IN_FIFTEENS, 0, 0);
    take(&stacks[0]);
    give(&stacks[0]);
    explore_thread(trim_all, NULL);
    explore_thread(take_and_give, NULL);
    explore_thread(take_and_give, NULL);
    explore_join();
    end();
}

/* Goal: a stack in quarantine is never handed out, nor changed. */
MODEL(stack_quarantine_against_trim, .preemptions = 4, .stale = -1)
{
    begin(IN_THREES, 0, 0);
    take(&stacks[0]);
    take(&stacks[1]);
    pirn__stack_quarantine(pool, &stacks[0]);
    explore_thread(trim_all, NULL);
    explore_thread(take_and_give, NULL);
    explore_thread(give_one, &stacks[1]);
    explore_join();
    pirn__stack_pool_validate(pool);
    EXPLORE_CHECK(!pirn__stack_pool_free(pool));
    EXPLORE_CHECK(memory.mapped_count == 1);
    model_stack_let_go(&stacks[0]);
    /* A slab that outlives its pool. */
    explore_heap.give(explore_heap.ctx, stacks[0].slab, 0, 1);
}

static struct pirn__stack_pool *pools[2];

/* A pool whose stack is never given back goes. */
static void abandon(void *arg)
{
    struct pirn__stack stack;

    EXPLORE_CHECK(pirn__stack_take(arg, &stack) == 0);
    model_stack_hold(&stack);
    pirn__stack_quarantine(arg, &stack);
    EXPLORE_CHECK(!pirn__stack_pool_free(arg));
}

/* Goal: two pools that go at the same time leave their slabs in the same list. */
MODEL(stack_two_pools_that_leave_something, .preemptions = 4, .stale = -1,
      .may_leak = true)
{
    model_memory_begin(0);
    for (int i = 0; i < 2; i++)
        EXPLORE_CHECK(pirn__stack_pool_new(&explore_heap, ALONE, 0,
                                           &pools[i]) == 0);
    explore_thread(abandon, pools[0]);
    explore_thread(abandon, pools[1]);
    explore_join();
    EXPLORE_CHECK(memory.mapped_count == 2);
}

/* Promises and what is at hand. */

/* A worker: a promise, a stack for it, and back; twice. */
static void work(void *arg)
{
    struct pirn__stack_hand *hand = arg;
    struct pirn__stack stack;

    for (int i = 0; i < 2; i++) {
        EXPLORE_CHECK(pirn__stack_promise(pool, hand, &stack) == 0);
        pirn__stack_redeem(pool, hand, &stack);
        model_stack_hold(&stack);
        model_stack_let_go(&stack);
        pirn__stack_give_back(pool, hand, &stack);
    }
}

/* One that is spawned and never runs. */
static void promise_in_vain(void *arg)
{
    struct pirn__stack stack;

    (void)arg;
    EXPLORE_CHECK(pirn__stack_promise(pool, NULL, &stack) == 0);
    pirn__stack_give_back(pool, NULL, &stack);
}

static void ask(void *arg)
{
    struct pirn__stack_stats stats;

    (void)arg;
    pirn__stack_stats(pool, &stats);
    EXPLORE_CHECK(stats.in_use <= 3 * memory.mapped_count);
}

/* Goal: promises are kept whatever others do: those at hand, and one of a thread
 * that has none.  Afterwards nothing is in use. */
MODEL(stack_promises_are_kept, .preemptions = 3, .stale = -1)
{
    struct pirn__stack_stats stats;

    begin(ALONE, 2, 0);
    take(&stacks[0]);
    give(&stacks[0]);
    explore_thread(work, pirn__stack_hand(pool, 0));
    explore_thread(promise_in_vain, NULL);
    explore_thread(trim_all, NULL);
    explore_join();
    pirn__stack_stats(pool, &stats);
    EXPLORE_CHECK(stats.in_use == 0);
    end();
}

/* Goal: two workers with a hand each. */
MODEL(stack_two_hands, .preemptions = 3, .stale = -1)
{
    begin(IN_THREES, 2, 0);
    explore_thread(work, pirn__stack_hand(pool, 0));
    explore_thread(work, pirn__stack_hand(pool, 1));
    explore_thread(ask, NULL);
    explore_join();
    end();
}

/* Goal: the same with stacks that are bare when they are promised. */
MODEL(stack_two_hands_of_bare_ones, .preemptions = 2, .stale = -1)
{
    begin(IN_CROWDS, 2, 0);
    explore_thread(work, pirn__stack_hand(pool, 0));
    explore_thread(work, pirn__stack_hand(pool, 1));
    explore_join();
    end();
}

/* The limit. */

static void try_to_take(void *arg)
{
    struct pirn__stack *stack = arg;
    int rc = pirn__stack_take(pool, stack);

    if (rc == 0) {
        model_stack_hold(stack);
        return;
    }
    EXPLORE_CHECK(rc == -ENOMEM);
    refusals++;
}

/* Goal: of three that want one of two guards, two get one; and when these have gone
 * there are two again. */
MODEL(stack_limit_of_guards, .preemptions = 3, .stale = -1)
{
    begin(ALONE, 0, 2);
    for (int i = 0; i < 3; i++)
        explore_thread(try_to_take, &stacks[i]);
    explore_join();
    EXPLORE_CHECK(refusals == 1);
    EXPLORE_CHECK(memory.guards_most == 2);
    for (int i = 0; i < 3; i++) {
        if (stacks[i].base != NULL)
            give(&stacks[i]);
    }
    trim_all(NULL);
    EXPLORE_CHECK(model_guard_count() == 0);
    for (int i = 0; i < 2; i++)
        take(&stacks[i]);
    for (int i = 0; i < 2; i++)
        give(&stacks[i]);
    end();
}

/* Goal: nobody is refused a stack while there are guards for all, though another thread
 * is just about to guard some. */
MODEL(stack_limit_that_is_not_reached, .preemptions = 3, .stale = -1)
{
    begin(IN_THREES, 0, 3);
    for (int i = 0; i < 3; i++)
        explore_thread(try_to_take, &stacks[i]);
    explore_join();
    EXPLORE_CHECK(refusals == 0);
    for (int i = 0; i < 3; i++)
        give(&stacks[i]);
    end();
}

/* Goal: the limit is for all, whoever comes first; and who is refused again and
 * again does not fill the address space. */
MODEL(stack_limit_that_is_reached_again_and_again, .preemptions = 3,
      .stale = -1)
{
    begin(ALONE, 0, 1);
    take(&stacks[0]);
    for (int round = 0; round < 2; round++) {
        explore_thread(try_to_take, &stacks[1]);
        explore_thread(try_to_take, &stacks[2]);
        explore_join();
    }
    EXPLORE_CHECK(refusals == 4);
    EXPLORE_CHECK(memory.guards_most == 1);
    EXPLORE_CHECK(memory.mapped_count <= 2);
    give(&stacks[0]);
    end();
}

/* Goal: the same where the slab of which some stacks cannot be guarded has others in
 * use: it stays. */
MODEL(stack_limit_in_a_slab_in_use, .preemptions = 3, .stale = -1)
{
    begin(IN_THREES, 0, 1);
    take(&stacks[0]);
    for (int i = 1; i < 4; i++)
        explore_thread(try_to_take, &stacks[i]);
    explore_join();
    EXPLORE_CHECK(refusals == 3);
    EXPLORE_CHECK(memory.mapped_count <= 2);
    give(&stacks[0]);
    end();
}
