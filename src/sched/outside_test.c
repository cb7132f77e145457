/* SPDX-License-Identifier: MIT */
/* src/sched/outside_test.c - what threads that are no workers spawn with. */
#include <pthread.h>

#include "engine/pool_fixture.h"

static int spawn_with(struct rig *rig, const pirn_spawn_options *options)
{
    pirn_spawn_options copy = *options;
    struct probe probe = probe_of(step_ready, NULL, NULL);

    copy.runtime = rig->rt;
    return pirn_spawn(&probe.future, sizeof probe, &copy, NULL);
}

static int spawn_plain(struct rig *rig)
{
    return spawn_with(rig, &(pirn_spawn_options){0});
}

static uint64_t spawned_by(const struct pirn__ledger *ledger)
{
    /* relaxed: this is the only thread that uses it now. */
    return pirn__load(&ledger->spawned, relaxed);
}

/* The one that this thread has. */
static struct pirn__outside *own_outside(struct rig *rig)
{
    return &rig->pool->outside[pirn__local()->outside - 1];
}

/* Cells of tasks like these in its cache. */
static uint32_t cells_in(struct pirn__outside *outside)
{
    size_t size = pirn__task_cell_size(sizeof(struct probe));

    return pirn__slab_bin_of(&outside->cache, size)->count;
}

static void run_all(struct rig *rig)
{
    struct pirn__worker *worker = rig_worker(rig, 0);
    struct pirn__task *task;

    rig_become(rig, 0);
    while ((task = rig->pool->tasks->pop(worker)) != NULL ||
           (task = rig->pool->tasks->pop_shared(worker)) != NULL)
        rig_run(worker, task);
    rig_leave();
}

/* Goal: a plain spawn is counted where its thread spawns, and its cell comes from a
 * cache there, which is filled at once with many.
 * Method: as many as it is filled with, and one more. */
TEST(outside_spawn_has_a_ledger_and_a_cache)
{
    struct pirn__outside *outside;
    struct rig rig;

    rig_init(&rig, 1);
    EXPECT_EQ(0, spawn_plain(&rig));
    outside = own_outside(&rig);
    EXPECT_EQ(PIRN__SLAB_REFILL - 1, cells_in(outside));
    for (int i = 1; i <= PIRN__SLAB_REFILL; i++)
        EXPECT_EQ(0, spawn_plain(&rig));
    EXPECT_EQ(PIRN__SLAB_REFILL + 1, spawned_by(&outside->ledger));
    EXPECT_EQ(PIRN__SLAB_REFILL - 1, cells_in(outside));
    EXPECT_EQ(0, spawned_by(&rig.rt->group.ledger));
    EXPECT_EQ(PIRN__SLAB_REFILL + 1,
              pirn__injection_len(&rig.pool->injection));
    run_all(&rig);
    EXPECT_EQ(0, pirn__root_read(rig.rt).live);
    rig_deinit(&rig);
}

/* Goal: what the task would have to keep takes the other way.
 * Method: each option, a handle, and a future that is too big. */
TEST(outside_spawn_of_what_is_not_plain)
{
    static struct {
        struct probe probe;
        char rest[PIRN__SLAB_SIZE_MAX];
    } big;
    const pirn_spawn_options all[] = {{.name = "name"},
                                      {.context = &big},
                                      {.priority = PIRN_PRIORITY_HIGH}};
    struct pirn__outside *outside;
    pirn_task *task = NULL;
    struct rig rig;

    rig_init(&rig, 1);
    EXPECT_EQ(0, spawn_plain(&rig));
    outside = own_outside(&rig);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        EXPECT_EQ(0, spawn_with(&rig, &all[i]));
    big.probe = probe_of(step_ready, NULL, NULL);
    EXPECT_EQ(0, pirn_spawn(&big.probe.future, sizeof big,
                            &(pirn_spawn_options){.runtime = rig.rt}, NULL));
    big.probe = probe_of(step_ready, NULL, NULL);
    EXPECT_EQ(0, pirn_spawn(&big.probe.future, sizeof big.probe,
                            &(pirn_spawn_options){.runtime = rig.rt}, &task));
    EXPECT_EQ(1, spawned_by(&outside->ledger));
    EXPECT_EQ(5, spawned_by(&rig.rt->group.ledger));
    run_all(&rig);
    pirn_task_unref(task);
    EXPECT_EQ(0, pirn__root_read(rig.rt).live);
    rig_deinit(&rig);
}

/* Goal: once the gate is closed nothing is admitted and no cell is brought.
 * Method: with cells in the cache, and after a flush without. */
TEST(outside_spawn_after_the_close_is_refused)
{
    struct pirn__outside *outside;
    struct rig rig;

    rig_init(&rig, 1);
    EXPECT_EQ(0, spawn_plain(&rig));
    outside = own_outside(&rig);
    run_all(&rig);
    pirn__root_close(rig.rt, PIRN__GROUP_CLOSED);
    EXPECT_EQ(PIRN_ESHUTDOWN, spawn_plain(&rig));
    EXPECT_EQ(PIRN__SLAB_REFILL - 1, cells_in(outside));
    pirn__outside_flush(rig.rt);
    EXPECT_EQ(0, cells_in(outside));
    EXPECT_EQ(PIRN_ESHUTDOWN, spawn_plain(&rig));
    EXPECT_EQ(0, cells_in(outside));
    EXPECT_EQ(1, spawned_by(&outside->ledger));
    rig_deinit(&rig);
}

static void *spawn_there(void *arg)
{
    EXPECT_EQ(0, spawn_plain(arg));
    return own_outside(arg);
}

/* Goal: threads that come one after the other do not share.
 * Method: as many as there are places, and one more, which has to. */
TEST(outside_threads_are_spread)
{
    void *of[PIRN__OUTSIDES + 1];
    struct rig rig;

    rig_init(&rig, 1);
    for (int i = 0; i <= PIRN__OUTSIDES; i++) {
        pthread_t thread;

        REQUIRE(pthread_create(&thread, NULL, spawn_there, &rig) == 0);
        REQUIRE(pthread_join(thread, &of[i]) == 0);
        for (int k = 0; k < i; k++)
            EXPECT_EQ(i == PIRN__OUTSIDES && k == 0, of[i] == of[k]);
    }
    run_all(&rig);
    rig_deinit(&rig);
}
