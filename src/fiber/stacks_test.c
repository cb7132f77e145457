/* SPDX-License-Identifier: MIT */
/* src/fiber/stacks_test.c - the stack pools of a runtime: which size a fiber
 * gets, and what the runtime says about them. */
#include "fiber/rig_test.h"

#include "base/lock.h"
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

/* An allocator that looks at the lock of the stacks with each call, and in one
 * of them lets another be quicker, or fails. */
struct watched {
    pirn_runtime *rt; /* NULL: does not look yet */
    int calls;
    int under_lock;
    int quicker_at; /* this call comes second; 0: none does */
    int fail_at;    /* this call has no memory; 0: none does */
    int pieces;
    struct pirn__stack_pool *quicker;
};

static void look(struct watched *watched)
{
    /* relaxed: a lock that is held here was taken by this thread. */
    if (watched->rt != NULL &&
        pirn__load(&watched->rt->stacks_lock.word_, relaxed) != 0)
        watched->under_lock++;
}

static void *watched_take(void *ctx, size_t size, size_t align)
{
    struct watched *watched = ctx;
    int call = ++watched->calls;

    look(watched);
    if (call == watched->quicker_at)
        EXPECT_EQ(0, pirn__stacks_pool(watched->rt, 0, &watched->quicker));
    if (call == watched->fail_at)
        return NULL;
    watched->pieces++;
    size = (size + align - 1) / align * align;
    return align <= 16 ? malloc(size) : aligned_alloc(align, size);
}

static void watched_give(void *ctx, void *memory, size_t size, size_t align)
{
    struct watched *watched = ctx;

    (void)size;
    (void)align;
    look(watched);
    watched->pieces--;
    free(memory);
}

static struct watched *watched_now; /* for the probe, which has no context */

static int watched_guard(void *base, size_t size)
{
    look(watched_now);
    return pirn__sys_linux.guard_install(base, size);
}

/* Goal: the first stack of a size is made ready without a lock held in the
 * allocator and in the probe of guards; of two threads that do it at the same
 * time both get the same pool, also if one has no memory.
 * Method: plainly; then the nth allocation finds, when it returns, that another
 * call was quicker, with and without memory of its own. */
TEST(stacks_pool_is_made_without_a_lock)
{
    for (int turn = 0; turn < 5; turn++) {
        struct watched watched = {0};
        const pirn_alloc alloc = {
            .take = watched_take, .give = watched_give, .ctx = &watched};
        const pirn_runtime_options options = {.alloc = &alloc};
        struct pirn__sys table = pirn__sys_linux;
        struct pirn__stack_pool *pool = NULL;
        int first;

        watched_now = &watched;
        table.guard_install = watched_guard;
        pirn__sys = &table;
        EXPECT_EQ(0, pirn_runtime_new(&options, &watched.rt));
        first = watched.calls + 1;
        watched.quicker_at = turn == 0 ? 0 : first + (turn - 1) / 2;
        watched.fail_at = turn % 2 == 0 ? watched.quicker_at : 0;
        EXPECT_EQ(0, pirn__stacks_pool(watched.rt, 0, &pool));
        EXPECT(pool != NULL);
        if (turn > 0)
            EXPECT_PTR_EQ(watched.quicker, pool);
        EXPECT_EQ(0, watched.under_lock);
        EXPECT_EQ(0, pirn_runtime_shutdown(watched.rt, PIRN_EXPIRED, NULL));
        pirn_runtime_unref(watched.rt);
        EXPECT_EQ(0, watched.pieces);
        pirn__sys = &pirn__sys_linux;
    }
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
