/* SPDX-License-Identifier: MIT */
/* src/sched/root_test.c - the root group and its ledgers. */
#include "engine/pool_fixture.h"

enum { WORKERS = 3 };

/* Spawn as worker `index`, or from outside. */
static void spawn_as(struct rig *rig, int index, int count)
{
    if (index >= 0)
        rig_become(rig, (uint32_t)index);
    for (int i = 0; i < count; i++)
        spawn_probe(rig->rt, step_ready, NULL, NULL);
    rig_leave();
}

/* Run everything, each worker what it can reach. */
static void run_all(struct rig *rig)
{
    const struct pirn__taskpool_ops *ops = rig->pool->tasks;
    struct pirn__task *task;

    for (uint32_t i = 0; i < WORKERS; i++) {
        struct pirn__worker *worker = rig_worker(rig, i);

        rig_become(rig, i);
        while ((task = ops->pop(worker)) != NULL ||
               (task = ops->pop_shared(worker)) != NULL)
            rig_run(worker, task);
        rig_leave();
    }
}

static void count_visit(struct pirn__task *task, void *arg)
{
    size_t *visits = arg;

    EXPECT(task != NULL);
    ++*visits;
}

/* What probes spawn when they are polled. */
static enum pirn_poll step_spawn(struct probe *self, pirn_cx *cx)
{
    (void)cx;
    spawn_probe(self->arg, step_ready, NULL, NULL);
    return PIRN_READY;
}

static uint64_t spawned_outside(const struct rig *rig)
{
    uint64_t sum = 0;

    for (int i = 0; i < PIRN__OUTSIDES; i++)
        /* relaxed: this is the only thread. */
        sum += pirn__load(&rig->pool->outside[i].ledger.spawned, relaxed);
    return sum;
}

/* Goal: what a task spawns is accounted in the ledger of its worker, what comes from
 * outside in one of theirs, all else in the group's; the whole is the sum, and a
 * visit meets each once.
 * Method: spawn from every place, read, run all, read again. */
TEST(root_counts_all_ledgers)
{
    struct pirn__group_counts counts;
    size_t visits = 0;
    struct rig rig;

    rig_init(&rig, WORKERS);
    spawn_as(&rig, -1, 4);
    for (int i = 0; i < WORKERS; i++)
        spawn_as(&rig, i, 1 + i);
    spawn_probe(rig.rt, step_spawn, rig.rt, NULL);
    EXPECT_EQ(6, pirn__group_read(&rig.rt->group).spawned);
    EXPECT_EQ(5, spawned_outside(&rig));
    counts = pirn__root_read(rig.rt);
    EXPECT_EQ(11, counts.live);
    EXPECT_EQ(11, counts.spawned);
    pirn__root_visit(rig.rt, count_visit, &visits);
    EXPECT_EQ(11, visits);
    run_all(&rig);
    counts = pirn__root_read(rig.rt);
    EXPECT_EQ(0, counts.live);
    EXPECT_EQ(12, counts.spawned);
    EXPECT_EQ(12, counts.completed);
    EXPECT_EQ(6, pirn__group_read(&rig.rt->group).spawned);
    EXPECT_EQ(5, spawned_outside(&rig));
    visits = 0;
    pirn__root_visit(rig.rt, count_visit, &visits);
    EXPECT_EQ(0, visits);
    rig_deinit(&rig);
}

/* Goal: a closed root admits nothing, wherever it comes from.
 * Method: try from every place. */
TEST(root_closed_admits_nothing)
{
    struct rig rig;

    rig_init(&rig, WORKERS);
    pirn__root_close(rig.rt, PIRN__GROUP_CLOSED);
    for (int i = -1; i < WORKERS; i++) {
        const pirn_spawn_options options = {.runtime = rig.rt};
        struct probe probe = probe_of(step_ready, NULL, NULL);

        if (i >= 0)
            rig_become(&rig, (uint32_t)i);
        EXPECT_EQ(PIRN_ESHUTDOWN,
                  pirn_spawn(&probe.future, sizeof probe, &options, NULL));
        rig_leave();
    }
    EXPECT_EQ(0, pirn__root_read(rig.rt).spawned);
    rig_deinit(&rig);
}

/* Goal: without a pool there is the driver's ledger, for what tasks spawn.
 * Method: a current-thread runtime; a task that spawns one. */
TEST(root_of_a_current_thread_runtime)
{
    pirn_runtime *rt = runtime_new();
    size_t visits = 0;

    EXPECT_PTR_EQ(NULL, pirn__spawner_here(rt, pirn__local()).ledger);
    spawn_probe(rt, step_spawn, rt, NULL);
    pirn__root_visit(rt, count_visit, &visits);
    EXPECT_EQ(1, visits);
    EXPECT_EQ(1, pirn__root_read(rt).live);
    EXPECT_EQ(2, turn(rt));
    EXPECT_EQ(2, pirn__root_read(rt).completed);
    EXPECT_EQ(1, pirn__group_read(&rt->group).spawned);
    runtime_end(rt);
}
