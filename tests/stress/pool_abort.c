/* SPDX-License-Identifier: MIT */
/* tests/stress/pool_abort.c - pools that are ended by force, at any moment, while
 * some of their workers do not come back for about as long as that takes.
 *
 * Whatever happens, each task is dropped once, each thread ends, and the memory
 * goes back when the last of them has.
 */
#include <unistd.h>

#include "base/prng.h"
#include "engine/pool_fixture.h"

enum { TASKS = 16, OUTSIDERS = 2 };

struct scene {
    pirn_runtime *rt;
    struct bell bells[TASKS];
    unsigned hang_us; /* how long a worker sometimes does not come back */
    tally stop;
    tally starts;
    tally stops;
    tally ended; /* shutdown has returned: no hook may be called */
    tally drops;
};

/* A task that waits for its bell and for a moment, and does this and that. */
struct actor {
    pirn_future future;
    struct scene *scene;
    struct bell_wait hears;
    pirn_sleep_op sleep;
    bool sleeps;
    size_t index;
    struct pirn__prng prng;
};

static void rest(struct actor *actor, uint32_t units)
{
    if (actor->sleeps)
        return;
    pirn_sleep_init(&actor->sleep, pirn_after_us(units * 100));
    actor->sleeps = true;
}

/* Wait for both; true if one of them has come. */
static bool listen(struct actor *actor, pirn_cx *cx)
{
    bool come = false;

    if (pirn_future_poll(&actor->sleep.future, cx) == PIRN_READY) {
        actor->sleeps = false;
        come = true;
    }
    if (pirn_future_poll(&actor->hears.future, cx) == PIRN_READY) {
        actor->hears = bell_wait_of(actor->hears.bell);
        come = true;
    }
    return come;
}

static enum pirn_poll actor_poll(pirn_future *self, pirn_cx *cx)
{
    struct actor *actor = PIRN_CONTAINER_OF(self, struct actor, future);
    struct scene *scene = actor->scene;
    uint32_t chance = pirn__prng_below(&actor->prng, 16);

    if (chance == 0 && scene->hang_us > 0)
        usleep(scene->hang_us);
    if (chance == 1)
        bell_ring(&scene->bells[(actor->index + 1) % TASKS]);
    if (chance == 2) {
        while (pirn_coop_spend(cx))
            continue;
        return PIRN_PENDING;
    }
    rest(actor, chance);
    if (listen(actor, cx))
        pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

static void actor_drop(pirn_future *self)
{
    struct actor *actor = PIRN_CONTAINER_OF(self, struct actor, future);

    if (actor->sleeps)
        pirn_future_drop(&actor->sleep.future);
    pirn_future_drop(&actor->hears.future);
    tally_up(&actor->scene->drops);
}

static void spawn_actor(struct scene *scene, size_t index, uint64_t seed)
{
    static const pirn_future_ops ops = {.poll = actor_poll,
                                        .drop = actor_drop};
    struct actor actor = {
        .future = {&ops},
        .scene = scene,
        .hears = bell_wait_of(&scene->bells[index]),
        .index = index,
    };

    pirn__prng_seed(&actor.prng, seed);
    EXPECT_EQ(0, pirn_spawn(&actor.future, sizeof actor,
                            &(pirn_spawn_options){.runtime = scene->rt}, NULL));
}

/* Ring and spawn, before, during and after the end. */
static void disturb(void *arg, size_t index)
{
    struct scene *scene = arg;
    struct pirn__prng prng;

    pirn__prng_seed(&prng, index);
    while (tally_of(&scene->stop) == 0) {
        struct probe probe = probe_of(step_ready, NULL, NULL);
        int rc;

        bell_ring(&scene->bells[pirn__prng_below(&prng, TASKS)]);
        rc = pirn_spawn(&probe.future, sizeof probe,
                        &(pirn_spawn_options){.runtime = scene->rt}, NULL);
        EXPECT(rc == 0 || rc == PIRN_ESHUTDOWN);
        if (pirn__prng_below(&prng, 4) == 0)
            usleep(100);
    }
}

static void note_start(void *arg, uint32_t worker)
{
    (void)worker;
    tally_up(&((struct scene *)arg)->starts);
}

static void note_stop(void *arg, uint32_t worker)
{
    struct scene *scene = arg;

    (void)worker;
    EXPECT_EQ(0, tally_of(&scene->ended));
    tally_up(&scene->stops);
}

static void end_by_force(struct scene *scene)
{
    pirn_report report;
    int rc = pirn_runtime_shutdown(scene->rt, PIRN_EXPIRED, &report);

    tally_up(&scene->ended);
    EXPECT(rc == 0 || rc == -ETIMEDOUT);
    EXPECT_EQ(report.spawned, report.completed + report.cancelled +
                                  report.failed + report.aborted +
                                  report.still_running);
}

static void play(uint64_t seed, unsigned hang_us)
{
    struct scene scene = {.hang_us = hang_us};
    struct meter meter;
    struct crew crew;

    meter_init(&meter);
    scene.rt = pool_with(&(pirn_runtime_options){
        .workers = 1 + (uint32_t)(seed % 4),
        .seed = seed + 1,
        .alloc = &meter.alloc,
        .on_thread_start = note_start,
        .on_thread_stop = note_stop,
        .hook_arg = &scene,
    });
    for (size_t i = 0; i < TASKS; i++)
        bell_init(&scene.bells[i]);
    for (size_t i = 0; i < TASKS; i++)
        spawn_actor(&scene, i, seed * TASKS + i);
    crew_start(&crew, OUTSIDERS, disturb, &scene);
    usleep((unsigned)(seed % 20) * 1000);
    end_by_force(&scene);
    usleep((unsigned)(seed % 3) * 1000);
    tally_set(&scene.stop, 1);
    crew_join(&crew);
    pirn_runtime_unref(scene.rt);
    /* Those that have hung come back. */
    wait_for_tally(&meter.dones, 1);
    EXPECT_EQ(TASKS, tally_of(&scene.drops));
    /* A thread that came too late is not told of. */
    EXPECT_LE(tally_of(&scene.stops), tally_of(&scene.starts));
}

/* Goal: workers that hang far longer than the shutdown waits are left behind,
 * their tasks dropped by others, and they clean up after themselves. */
TEST(pool_abort_with_workers_that_hang)
{
    size_t rounds = test_size(5, 10, 500);

    for (size_t i = 0; i < rounds; i++)
        play(i, 200000);
}

/* Goal: the same for those that come back just when they are given up. */
TEST(pool_abort_with_workers_that_come_back_meanwhile)
{
    size_t rounds = test_size(10, 20, 2000);

    for (size_t i = 0; i < rounds; i++)
        play(i, 50000 + 2000 * (unsigned)(i % 26));
}

/* Goal: and for pools that have hardly begun. */
TEST(pool_abort_at_once)
{
    size_t rounds = test_size(20, 60, 5000);

    for (size_t i = 0; i < rounds; i++)
        play(i * 20, 0);
}
