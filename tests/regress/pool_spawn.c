/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_spawn.c - more tasks than any queue holds.
 *
 * Shipped elsewhere: a worker waited for room in its own full queue, for ever;
 * an internal task was dropped when a queue was full.
 */
#include "engine/pool_fixture.h"

struct brood {
    uint64_t each;
    tally runs;
    tally spawners;
};

static enum pirn_poll step_count(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    tally_up(probe->arg);
    return PIRN_READY;
}

static int spawn_children(void *arg)
{
    struct brood *brood = arg;
    struct probe child = probe_of(step_count, &brood->runs, NULL);

    for (uint64_t i = 0; i < brood->each; i++)
        EXPECT_EQ(0, pirn_spawn(&child.future, sizeof child, NULL, NULL));
    tally_up(&brood->spawners);
    return 0;
}

static void raise_brood(uint32_t workers)
{
    enum { SPAWNERS = 10 };
    /* One spawner alone fills a ring: the worker may be done with it before there
     * is another. */
    struct brood brood = {.each = test_size(1500, 10000, 100000)};
    pirn_runtime *rt = pool_new(workers);
    pirn_worker_info sum;

    for (int i = 0; i < SPAWNERS; i++)
        go(rt, spawn_children, &brood);
    wait_for_tally(&brood.spawners, SPAWNERS);
    wait_for_tally(&brood.runs, SPAWNERS * brood.each);
    sum = pool_counters(rt);
    EXPECT_GE(sum.polls, SPAWNERS * (brood.each + 1));
    if (workers == 1 && pool_steals())
        EXPECT_GE(sum.overflows, 1);
    EXPECT_EQ(SPAWNERS * (brood.each + 1), runtime_end(rt).completed);
    EXPECT_EQ(SPAWNERS * brood.each, tally_of(&brood.runs));
}

/* Goal: everything that tasks spawn runs, from many workers at once.
 * Method: ten tasks spawn many each, on ten workers. */
TEST(pool_spawn_from_ten_workers)
{
    raise_brood(10);
}

/* Goal: and on one, whose own queue they fill.
 * Method: the same. */
TEST(pool_spawn_from_one_worker)
{
    raise_brood(1);
}

struct crowd {
    pirn_runtime *rt;
    uint64_t each;
    tally runs;
};

static void spawn_from_thread(void *arg, size_t index)
{
    struct crowd *crowd = arg;

    (void)index;
    for (uint64_t i = 0; i < crowd->each; i++)
        spawn_probe(crowd->rt, step_count, &crowd->runs, NULL);
}

/* Goal: and what many plain threads spawn at once.
 * Method: eight threads, on one worker and on several. */
TEST(pool_spawn_from_plain_threads)
{
    static const uint32_t workers[] = {1, 2, 4};

    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        struct crowd crowd = {.rt = pool_new(workers[i]),
                              .each = test_size(500, 10000, 500000)};
        struct crew crew;

        crew_start(&crew, 8, spawn_from_thread, &crowd);
        crew_join(&crew);
        wait_for_tally(&crowd.runs, 8 * crowd.each);
        EXPECT_EQ(8 * crowd.each, runtime_end(crowd.rt).completed);
    }
}

/* A task that spawns two until the tree is so high. */
struct tree {
    tally leaves;
};

struct branch {
    pirn_future future;
    struct tree *tree;
    int height;
};

static enum pirn_poll branch_poll(pirn_future *self, pirn_cx *cx);

static void branch_drop(pirn_future *self)
{
    (void)self;
}

static struct branch branch_of(struct tree *tree, int height)
{
    static const pirn_future_ops ops = {.poll = branch_poll,
                                        .drop = branch_drop};

    return (struct branch){{&ops}, tree, height};
}

static enum pirn_poll branch_poll(pirn_future *self, pirn_cx *cx)
{
    struct branch *branch = PIRN_CONTAINER_OF(self, struct branch, future);

    (void)cx;
    if (branch->height == 0) {
        tally_up(&branch->tree->leaves);
        return PIRN_READY;
    }
    for (int i = 0; i < 2; i++) {
        struct branch twig = branch_of(branch->tree, branch->height - 1);

        EXPECT_EQ(0, pirn_spawn(&twig.future, sizeof twig, NULL, NULL));
    }
    return PIRN_READY;
}

/* Goal: a tree of tasks spreads over the workers and is complete.
 * Method: count its leaves. */
TEST(pool_spawn_of_a_tree)
{
    int height = (int)test_size(10, 15, 20);

    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        struct tree tree = {.leaves = {0}};
        pirn_runtime *rt = pool_new(workers);
        const pirn_spawn_options options = {.runtime = rt};
        struct branch root = branch_of(&tree, height);

        EXPECT_EQ(0, pirn_spawn(&root.future, sizeof root, &options, NULL));
        wait_for_tally(&tree.leaves, (uint64_t)1 << height);
        EXPECT_EQ(((uint64_t)2 << height) - 1, runtime_end(rt).completed);
    }
}

/* Spawns in its only poll, in block_on. */
static enum pirn_poll step_spawn_all(struct probe *probe, pirn_cx *cx)
{
    struct brood *brood = probe->arg;

    (void)cx;
    for (uint64_t i = 0; i < brood->each; i++) {
        struct probe child = probe_of(step_count, &brood->runs, NULL);

        EXPECT_EQ(0, pirn_spawn(&child.future, sizeof child, NULL, NULL));
    }
    return PIRN_READY;
}

struct visitor {
    pirn_runtime *rt;
    struct brood brood;
};

static void visit(void *arg, size_t index)
{
    struct visitor *visitor = arg;
    struct probe probe = probe_of(step_spawn_all, &visitor->brood, NULL);

    (void)index;
    EXPECT_EQ(0, pirn_block_on(visitor->rt, &probe.future, PIRN_NEVER));
}

/* Goal: what a thread has spawned in block_on does not depend on its coming
 * back.
 * Method: a thread spawns a thousand there, and ends. */
TEST(pool_spawn_in_block_on)
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        struct visitor visitor = {.rt = pool_new(workers),
                                  .brood = {.each = 1000}};

        on_another_thread(visit, &visitor);
        wait_for_tally(&visitor.brood.runs, 1000);
        EXPECT_EQ(1000, runtime_end(visitor.rt).completed);
    }
}
