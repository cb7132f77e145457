/* SPDX-License-Identifier: MIT */
/* src/sched/root_test.c - the root group in its shards. */
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

/* The tasks in all shards of a worker. */
static uint64_t live_of(const struct pirn__worker *worker)
{
    uint64_t live = 0;

    for (int i = 0; i < PIRN__WORKER_SHARDS; i++)
        live += pirn__group_read(&worker->groups[i]).live;
    return live;
}

/* Goal: a worker's tasks are accounted in its own shards, those from outside in
 * the first; the whole is the sum, and a visit meets each once.
 * Method: spawn from every place, read, run all, read again. */
TEST(root_counts_all_shards)
{
    struct pirn__group_counts counts;
    size_t visits = 0;
    struct rig rig;

    rig_init(&rig, WORKERS);
    spawn_as(&rig, -1, 4);
    for (int i = 0; i < WORKERS; i++)
        spawn_as(&rig, i, 1 + i);
    EXPECT_EQ(4, pirn__group_read(&rig.rt->group).live);
    EXPECT_EQ(1, live_of(rig_worker(&rig, 0)));
    EXPECT_EQ(2, live_of(rig_worker(&rig, 1)));
    EXPECT_EQ(3, live_of(rig_worker(&rig, 2)));
    counts = pirn__root_read(rig.rt);
    EXPECT_EQ(10, counts.live);
    EXPECT_EQ(10, counts.spawned);
    pirn__root_visit(rig.rt, count_visit, &visits);
    EXPECT_EQ(10, visits);
    run_all(&rig);
    counts = pirn__root_read(rig.rt);
    EXPECT_EQ(0, counts.live);
    EXPECT_EQ(10, counts.spawned);
    EXPECT_EQ(10, counts.completed);
    visits = 0;
    pirn__root_visit(rig.rt, count_visit, &visits);
    EXPECT_EQ(0, visits);
    rig_deinit(&rig);
}

/* Goal: a worker fills its shards by turns and in runs, so that those who end its
 * older tasks elsewhere do not meet it.
 * Method: more than one run; the last shard is followed by the first. */
TEST(root_fills_the_shards_of_a_worker_in_runs)
{
    enum { RUN = 64 };
    struct pirn__worker *worker;
    struct rig rig;

    rig_init(&rig, WORKERS);
    worker = rig_worker(&rig, 1);
    spawn_as(&rig, 1, RUN + 3);
    EXPECT_EQ(RUN, pirn__group_read(&worker->groups[0]).live);
    EXPECT_EQ(3, pirn__group_read(&worker->groups[1]).live);
    spawn_as(&rig, 1, RUN * PIRN__WORKER_SHARDS);
    EXPECT_EQ(2 * RUN, pirn__group_read(&worker->groups[0]).live);
    EXPECT_EQ(RUN + 3, pirn__group_read(&worker->groups[1]).live);
    EXPECT_EQ(RUN, pirn__group_read(&worker->groups[2]).live);
    run_all(&rig);
    rig_deinit(&rig);
}

/* Goal: a closed root admits nothing, wherever it comes from.
 * Method: try from every place. */
TEST(root_closed_admits_nothing)
{
    struct rig rig;

    rig_init(&rig, WORKERS);
    pirn__root_close(rig.rt);
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

/* Goal: without a pool there is one shard.
 * Method: a current-thread runtime. */
TEST(root_of_a_current_thread_runtime)
{
    pirn_runtime *rt = runtime_new();
    size_t visits = 0;

    EXPECT_PTR_EQ(&rt->group, pirn__root_here(rt));
    spawn_probe(rt, step_ready, NULL, NULL);
    pirn__root_visit(rt, count_visit, &visits);
    EXPECT_EQ(1, visits);
    EXPECT_EQ(1, pirn__root_read(rt).live);
    EXPECT_EQ(1, turn(rt));
    EXPECT_EQ(1, pirn__root_read(rt).completed);
    runtime_end(rt);
}
