/* SPDX-License-Identifier: MIT */
/* src/fiber/stacks_model.c - the pools of a runtime, made by whoever needs one
 * first.
 */
#include "fiber/fiber.h"

#include "engine/model_memory.h"
#include "sched/runtime.h"

static pirn_runtime *rt;
static struct pirn__stack_pool *found[3];

static void begin(void)
{
    const pirn_runtime_options options = {.alloc = &explore_heap, .seed = 1};

    model_memory_begin(0);
    EXPLORE_CHECK(pirn_runtime_new(&options, &rt) == 0);
}

/* The pools go with it, and their memory. */
static void end(void)
{
    pirn_runtime_unref(rt);
    EXPLORE_CHECK(memory.mapped_count == 0);
}

/* Find the pool of a size and use it. */
static void use(size_t size, struct pirn__stack_pool **pool)
{
    struct pirn__stack stack;

    EXPLORE_CHECK(pirn__stacks_pool(rt, size, pool) == 0);
    EXPLORE_CHECK(pirn__stack_take(*pool, &stack) == 0);
    EXPLORE_CHECK(stack.size >= size);
    pirn__stack_give(*pool, &stack);
}

static void use_small(void *arg)
{
    use(16 << 10, arg);
}

static void use_large(void *arg)
{
    use(17 << 10, arg);
}

static void ask(void *arg)
{
    pirn_runtime_info info;

    (void)arg;
    pirn_runtime_get_info(rt, &info);
    EXPLORE_CHECK(info.stacks <= 2);
}

/* Goal: threads that need the first stack of a size get the same pool, whole; what
 * the slower one has made is given back. */
MODEL(stacks_first_of_a_size, .preemptions = 2, .stale = 2)
{
    begin();
    explore_thread(use_small, &found[0]);
    explore_thread(use_small, &found[1]);
    explore_join();
    EXPLORE_CHECK(found[0] == found[1]);
    end();
}

static void find_small(void *arg)
{
    EXPLORE_CHECK(pirn__stacks_pool(rt, 16 << 10, arg) == 0);
}

/* Goal: threads that need the first stacks of two sizes put their pools in the same
 * table. */
MODEL(stacks_first_of_two_sizes, .preemptions = 2, .stale = 1)
{
    begin();
    explore_thread(find_small, &found[0]);
    explore_thread(use_large, &found[1]);
    explore_join();
    EXPLORE_CHECK(found[0] != found[1]);
    find_small(&found[2]);
    EXPLORE_CHECK(found[0] == found[2]);
    end();
}

/* Goal: who counts sees a pool whole, or not at all. */
MODEL(stacks_counted_while_they_are_made, .preemptions = 2, .stale = 2)
{
    begin();
    explore_thread(use_small, &found[0]);
    explore_thread(ask, NULL);
    explore_join();
    end();
}
