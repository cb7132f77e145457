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

/* Cells of tasks like these in a cache. */
static uint32_t cells_of(struct pirn__slab_cache *cache)
{
    size_t size = pirn__task_cell_size(sizeof(struct probe));

    return pirn__slab_bin_of(cache, size)->count;
}

static uint32_t cells_in(struct pirn__outside *outside)
{
    return cells_of(&outside->cache);
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
              pirn__outside_len(rig.pool));
    run_all(&rig);
    EXPECT_EQ(0, pirn__root_read(rig.rt).live);
    rig_deinit(&rig);
}

/* Goal: a worker that ends tasks and starts none gives their cells back in batches.
 * Method: its cache holds them. */
TEST(outside_cells_wait_in_the_cache_of_the_worker)
{
    struct rig rig;

    rig_init(&rig, 1);
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(0, spawn_plain(&rig));
    run_all(&rig);
    EXPECT_EQ(10, cells_of(&rig_worker(&rig, 0)->cache));
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

/* Spawn one with a handle, which is dropped; it goes another way than a plain one,
 * to the same place. */
static struct pirn__task *spawn_known(struct rig *rig)
{
    const pirn_spawn_options options = {.runtime = rig->rt};
    struct probe probe = probe_of(step_ready, NULL, NULL);
    pirn_task *task = NULL;

    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, &task));
    pirn_task_unref(task);
    return (struct pirn__task *)task;
}

/* Goal: what one thread spawns keeps its order, by whichever way it goes.
 * Method: one with a handle between two plain ones. */
TEST(outside_spawns_keep_their_order)
{
    struct pirn__task *known;
    struct rig rig;

    rig_init(&rig, 1);
    EXPECT_EQ(0, spawn_plain(&rig));
    known = spawn_known(&rig);
    EXPECT_EQ(0, spawn_plain(&rig));
    rig_become(&rig, 0);
    for (int i = 0; i < 3; i++) {
        struct pirn__worker *worker = rig_worker(&rig, 0);
        struct pirn__task *task = i == 0 ? rig.pool->tasks->pop_shared(worker)
                                         : rig.pool->tasks->pop(worker);

        REQUIRE(task != NULL);
        EXPECT_EQ(i == 1, task == known);
        rig_run(worker, task);
    }
    rig_leave();
    rig_deinit(&rig);
}

/* Whether somebody is woken for a plain spawn, who then finds nothing. */
static bool spawn_wakes(struct rig *rig)
{
    struct pirn__idle *idle = &rig->pool->idle;
    bool woken;

    EXPECT_EQ(0, spawn_plain(rig));
    /* relaxed: this is the only thread. */
    woken = pirn__load(&idle->word, relaxed) % PIRN__IDLE_NAPPER != 0;
    if (woken)
        (void)pirn__idle_stop_search(idle);
    return woken;
}

/* Goal: a spawn at an empty place wakes, also one that only naps; further ones do
 * not, until all has been taken.
 * Method: the word says that one sleeps or naps. */
TEST(outside_first_spawn_wakes)
{
    struct rig rig;

    rig_init(&rig, 2);
    EXPECT(!spawn_wakes(&rig));
    run_all(&rig);
    pirn__idle_enter_sleep(&rig.pool->idle, false);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(i == 0, spawn_wakes(&rig));
    (void)pirn__idle_leave_sleep(&rig.pool->idle);
    run_all(&rig);
    EXPECT(pirn__idle_enter_nap(&rig.pool->idle, 2, false));
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(i == 0, spawn_wakes(&rig));
    pirn__idle_leave_nap(&rig.pool->idle);
    run_all(&rig);
    rig_deinit(&rig);
}

/* Goal: a task knows the one that stands some way behind it, unless it has been
 * taken before that came.
 * Method: two more than that; take one, and spawn more. */
TEST(outside_tasks_know_who_comes_later)
{
    enum { COUNT = PIRN__OUTSIDE_AHEAD + 2 };
    struct pirn__task *tasks[COUNT + 1];
    struct rig rig;

    rig_init(&rig, 1);
    for (int i = 0; i < COUNT; i++)
        tasks[i] = spawn_known(&rig);
    for (int i = 0; i < COUNT; i++)
        EXPECT_PTR_EQ(i < 2 ? tasks[i + PIRN__OUTSIDE_AHEAD] : NULL,
                      tasks[i]->ahead);
    EXPECT_PTR_EQ(tasks[0], pirn__task_of_link(rig_take_spawned(&rig)));
    tasks[COUNT] = spawn_known(&rig);
    EXPECT_PTR_EQ(NULL, tasks[2]->ahead);
    rig_become(&rig, 0);
    rig_run(rig_worker(&rig, 0), tasks[0]);
    rig_leave();
    run_all(&rig);
    rig_deinit(&rig);
}

static void *spawn_many_there(void *arg)
{
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(0, spawn_plain(arg));
    return own_outside(arg);
}

struct numbered {
    pirn_future future;
    int number;
    int *next;
};

static enum pirn_poll numbered_poll(pirn_future *self, pirn_cx *cx)
{
    struct numbered *here = PIRN_CONTAINER_OF(self, struct numbered, future);

    (void)cx;
    EXPECT_EQ(*here->next, here->number);
    (*here->next)++;
    return PIRN_READY;
}

static void numbered_drop(pirn_future *self)
{
    (void)self;
}

static const pirn_future_ops numbered_ops = {
    .poll = numbered_poll,
    .drop = numbered_drop,
};

static void spawn_numbered(struct rig *rig, int first, int count, int *next)
{
    for (int i = 0; i < count; i++) {
        struct numbered task = {{&numbered_ops}, first + i, next};

        EXPECT_EQ(0, pirn_spawn(&task.future, sizeof task,
                                &(pirn_spawn_options){.runtime = rig->rt},
                                NULL));
    }
}

/* Goal: what one thread spawns runs in its order, also what it spawns after a worker
 * has taken a part.
 * Method: more than a worker takes at once, a part taken, and some more. */
TEST(outside_order_outlasts_a_part_that_is_taken)
{
    struct pirn__worker *worker;
    struct pirn__task *task;
    int next = 0;
    struct rig rig;

    rig_init(&rig, 1);
    worker = rig_worker(&rig, 0);
    spawn_numbered(&rig, 0, 100, &next);
    rig_become(&rig, 0);
    task = rig.pool->tasks->pop_shared(worker);
    REQUIRE(task != NULL);
    rig_run(worker, task);
    rig_leave();
    spawn_numbered(&rig, 100, 100, &next);
    EXPECT_EQ(136, pirn__outside_len(rig.pool));
    run_all(&rig);
    EXPECT_EQ(200, next);
    rig_deinit(&rig);
}

/* Goal: a worker takes from one place after the other.
 * Method: 100 tasks at two, of which it takes 64 at a time. */
TEST(outside_places_are_taken_in_turn)
{
    struct pirn__worker *worker;
    struct pirn__task *task;
    void *of[2];
    struct rig rig;

    rig_init(&rig, 1);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;

        REQUIRE(pthread_create(&thread, NULL, spawn_many_there, &rig) == 0);
        REQUIRE(pthread_join(thread, &of[i]) == 0);
    }
    worker = rig_worker(&rig, 0);
    rig_become(&rig, 0);
    for (int i = 0; i < 2; i++) {
        task = rig.pool->tasks->pop_shared(worker);
        REQUIRE(task != NULL);
        rig_run(worker, task);
    }
    for (int i = 0; i < 2; i++) {
        struct pirn__outside *outside = of[i];

        EXPECT_EQ(0, pirn__injection_len(&outside->queue));
        EXPECT_EQ(36, pirn__injection_len(&outside->front));
    }
    rig_leave();
    run_all(&rig);
    rig_deinit(&rig);
}
