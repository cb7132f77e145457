/* SPDX-License-Identifier: MIT */
/* src/fiber/stacks_test.c - the stack pools of a runtime: which size a fiber
 * gets, and what the runtime says about them. */
#include "fiber/rig_test.h"

#include "fiber/fiber.h"
#include "sched/runtime.h"
#include "sys/sys.h"

static int tell_size(void *arg)
{
    *(size_t *)arg = pirn_fiber_stack_usage().size_bytes;
    return 0;
}

/* The size of the stack that a fiber with these options gets. */
static size_t size_given(const pirn_spawn_options *options)
{
    size_t size = 0;

    EXPECT_EQ(0, pirn_go_with(tell_size, &size, options, NULL));
    EXPECT_LE(1, pirn_runtime_turn(options->runtime, PIRN_NEVER));
    return size;
}

/* Goal: a fiber gets at least the size it asked for, else its runtime's, else
 * 64 KiB, and not much more than the next power of two.
 * Method: each of them. */
TEST(stacks_have_at_least_the_size_asked_for)
{
    static const size_t sizes[] = {16 << 10, 17 << 10, 64 << 10, 100 << 10,
                                   1 << 20};
    static const size_t defaults[] = {0, 128 << 10};

    for (int i = 0; i < 2; i++) {
        const pirn_runtime_options options = {.stack_size_bytes = defaults[i]};
        size_t usual = defaults[i] != 0 ? defaults[i] : 64 << 10;
        pirn_spawn_options spawn = {0};

        EXPECT_EQ(0, pirn_runtime_new(&options, &spawn.runtime));
        EXPECT_GE(size_given(&spawn), usual);
        EXPECT_LE(size_given(&spawn), 2 * usual);
        for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
            spawn.stack_size_bytes = sizes[n];
            EXPECT_GE(size_given(&spawn), sizes[n]);
            EXPECT_LE(size_given(&spawn), 2 * sizes[n] + (64 << 10));
        }
        EXPECT_EQ(0, pirn_runtime_shutdown(spawn.runtime, PIRN_EXPIRED, NULL));
        pirn_runtime_unref(spawn.runtime);
    }
}

/* Goal: stacks of one size class share a pool, others have their own.
 * Method: the pools of a runtime by size. */
TEST(stacks_of_like_sizes_share_a_pool)
{
    struct pirn__stack_pool *usual, *same, *larger;
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn__stacks_pool(rig.rt, 0, &usual));
    EXPECT_EQ(0, pirn__stacks_pool(rig.rt, 64 << 10, &same));
    EXPECT_PTR_EQ(usual, same);
    EXPECT_EQ(0, pirn__stacks_pool(rig.rt, 50 << 10, &same));
    EXPECT_PTR_EQ(usual, same);
    EXPECT_EQ(0, pirn__stacks_pool(rig.rt, 65 << 10, &larger));
    EXPECT(larger != usual);
    EXPECT_EQ(-EINVAL, pirn__stacks_pool(rig.rt, (16 << 10) - 1, &same));
    EXPECT_EQ(-EINVAL, pirn__stacks_pool(rig.rt, ((size_t)1 << 30) + 1, &same));
    rig_end(&rig);
}

static int yield_twice(void *arg)
{
    (void)arg;
    EXPECT_EQ(0, pirn_yield());
    return pirn_yield();
}

/* Goal: the runtime says how many stacks are in use, over all sizes, and how
 * they are guarded.
 * Method: ask before, during and after. */
TEST(stacks_in_use_are_told_by_the_runtime)
{
    const pirn_spawn_options large = {.stack_size_bytes = 1 << 20};
    struct rig rig;

    rig_begin(&rig);
    EXPECT_EQ(0, rig_info(&rig).stacks);
    EXPECT_EQ(0, pirn_go(yield_twice, NULL));
    EXPECT_EQ(0, pirn_go_with(yield_twice, NULL, &large, NULL));
    EXPECT_EQ(2, rig_info(&rig).stacks);
    EXPECT(strcmp(rig_info(&rig).guards, "region") == 0 ||
           strcmp(rig_info(&rig).guards, "protect") == 0);
    EXPECT_LE(2, rig_info(&rig).stack_limit);
    rig_turn(&rig);
    EXPECT_EQ(0, rig_info(&rig).stacks);
    rig_end(&rig);
}

static int refused_unmap(void *base, size_t size)
{
    (void)base;
    (void)size;
    return -ENOMEM;
}

/* Goal: the allocator is not told that all is back while the kernel keeps a
 * slab of stacks, whose record stays.
 * Method: a runtime that had a fiber ends in a world where nothing is
 * unmapped. */
TEST(stacks_that_stay_mapped_keep_the_allocator)
{
    static struct rig rig; /* the record is found from it, by leak checkers */
    struct pirn__sys table = pirn__sys_linux;
    size_t size;

    rig_begin(&rig);
    EXPECT_EQ(0, pirn_go(tell_size, &size));
    rig_turn(&rig);
    table.unmap = refused_unmap;
    pirn__sys = &table;
    EXPECT_EQ(0, pirn_runtime_shutdown(rig.rt, PIRN_NEVER, NULL));
    pirn_runtime_enter(NULL);
    pirn_runtime_unref(rig.rt);
    pirn__sys = &pirn__sys_linux;
    EXPECT_EQ(1, rig_pieces(&rig));
    EXPECT_EQ(0, rig_dones(&rig));
}
