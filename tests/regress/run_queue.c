/* SPDX-License-Identifier: MIT */
/* tests/regress/run_queue.c - the run queue has no end that a task could run
 * against: spawning never blocks the one driver there is. */
#include "sched/runtime_test.h"

struct family {
    size_t children;
    tally runs;
};

static enum pirn_poll step_child(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    tally_up(probe->arg);
    return PIRN_READY;
}

static int spawn_children(void *arg)
{
    struct family *family = arg;

    for (size_t i = 0; i < family->children; i++) {
        struct probe probe = probe_of(step_child, &family->runs, NULL);

        EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, NULL, NULL));
    }
    return 0;
}

/* Goal: ten tasks may each spawn any number of children in one go.
 * Method: a hundred thousand each, on the one driver. */
TEST(run_queue_takes_a_flood_of_children)
{
    struct family family = {.children = test_size(1000, 20000, 100000)};
    pirn_runtime *rt = runtime_new();

    for (int i = 0; i < 10; i++)
        go(rt, spawn_children, &family);
    turn(rt);
    EXPECT_EQ(10 * family.children, tally_of(&family.runs));
    EXPECT_EQ(10 * family.children + 10, runtime_end(rt).completed);
}

/* A task that spawns the next one, deep down. */
static int spawn_next(void *arg)
{
    struct family *family = arg;

    if (tally_up(&family->runs) + 1 == family->children)
        return 0;
    return pirn_go(spawn_next, family);
}

/* Goal: the same one after the other: cells and stacks are used again.
 * Method: a chain of fibers; the memory of the cells stays at one chunk. */
TEST(run_queue_takes_an_endless_chain)
{
    struct family family = {.children = test_size(1000, 100000, 1000000)};
    pirn_runtime *rt = runtime_new();
    pirn_runtime_info info;

    go(rt, spawn_next, &family);
    turn(rt);
    EXPECT_EQ(family.children, tally_of(&family.runs));
    pirn_runtime_get_info(rt, &info);
    EXPECT_LE(info.task_bytes, 256 * 1024);
    EXPECT_EQ(family.children, runtime_end(rt).completed);
}
