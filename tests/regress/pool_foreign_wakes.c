/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_foreign_wakes.c - tasks that only other threads wake.
 *
 * Shipped elsewhere: a stale "scheduled" bit stranded a task for ever; a wake got
 * lost between a worker's last look and its sleep.
 */
#include "engine/pool_fixture.h"

enum { WAKERS = 8 };

/* A task that counts what the threads have posted. */
struct counter {
    pthread_mutex_t mutex;
    pirn_waker waker; /* mutex */
    tally posted;
    tally seen;
    tally drops;
};

static void counter_init(struct counter *counter)
{
    *counter = (struct counter){.waker = {0}};
    pthread_mutex_init(&counter->mutex, NULL);
}

static enum pirn_poll step_count(struct probe *probe, pirn_cx *cx)
{
    struct counter *counter = probe->arg;
    pirn_waker old;

    pthread_mutex_lock(&counter->mutex);
    old = pirn_waker_store(&counter->waker, cx);
    pthread_mutex_unlock(&counter->mutex);
    pirn_waker_drop(old);
    tally_set(&counter->seen, tally_of(&counter->posted));
    return PIRN_PENDING;
}

static void wake_counter(struct counter *counter)
{
    pirn_waker waker;

    pthread_mutex_lock(&counter->mutex);
    waker = pirn_waker_clone(&counter->waker);
    pthread_mutex_unlock(&counter->mutex);
    pirn_waker_wake(waker);
}

static pirn_task *counter_start(struct counter *counter, pirn_runtime *rt)
{
    const pirn_spawn_options options = {.runtime = rt};
    struct probe probe = probe_of(step_count, counter, &counter->drops);
    pirn_task *task = NULL;

    counter_init(counter);
    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, &task));
    return task;
}

/* It still reacts, and a cancel ends it. */
static void counter_end(struct counter *counter, pirn_task *task)
{
    wait_for_tally(&counter->seen, tally_of(&counter->posted));
    pirn_task_cancel(task);
    EXPECT_EQ(-ECANCELED, join_and_unref(task));
    EXPECT_EQ(1, tally_of(&counter->drops));
    pirn_waker_drop(pirn_waker_take(&counter->waker));
}

struct noise {
    struct counter counter;
    size_t rounds;
};

static void wake_at_random(void *arg, size_t index)
{
    struct noise *noise = arg;
    struct pirn__prng prng;

    pirn__prng_seed(&prng, index);
    for (size_t i = 0; i < noise->rounds; i++) {
        tally_up(&noise->counter.posted);
        wake_counter(&noise->counter);
        switch (pirn__prng_below(&prng, 64)) {
        case 0:
            sched_yield();
            break;
        case 1:
            /* From here on nobody wakes but us. */
            wait_for_tally(&noise->counter.seen, 1);
            break;
        default:
            break;
        }
    }
}

/* Goal: a task that eight threads wake sees everything that was posted, and a
 * cancel ends it.
 * Method: random pauses; the last state must be seen. */
TEST(pool_foreign_wakes_are_never_lost)
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        pirn_runtime *rt = pool_new(workers);
        struct noise noise = {.rounds = test_size(500, 10000, 1250000)};
        pirn_task *task = counter_start(&noise.counter, rt);
        struct crew crew;

        crew_start(&crew, WAKERS, wake_at_random, &noise);
        crew_join(&crew);
        counter_end(&noise.counter, task);
        runtime_end(rt);
    }
}

/* Goal: a single wake into a pool that is going to sleep or sleeps arrives.
 * Method: post, wait until it is seen, after a pause of random length again. */
TEST(pool_foreign_wake_into_sleep)
{
    static const uint32_t workers[] = {1, 2, 4};
    size_t rounds = test_size(200, 5000, 500000);
    struct pirn__prng prng;

    pirn__prng_seed(&prng, test_seed());
    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++) {
        pirn_runtime *rt = pool_new(workers[w]);
        struct counter counter;
        pirn_task *task = counter_start(&counter, rt);

        for (uint64_t i = 1; i <= rounds; i++) {
            uint32_t pause = pirn__prng_below(&prng, 400);

            /* To pass the time. */
            for (uint32_t j = 0; j < pause; j++)
                (void)tally_of(&counter.seen);
            tally_up(&counter.posted);
            wake_counter(&counter);
            wait_for_tally(&counter.seen, i);
        }
        counter_end(&counter, task);
        runtime_end(rt);
    }
}

/* Fibers that pass a token around a ring of bells, across runtimes. */
struct relay {
    struct bell bells[16];
    size_t count;
    uint64_t laps;
};

struct runner {
    struct relay *relay;
    size_t index;
};

static int run_laps(void *arg)
{
    struct runner *runner = arg;
    struct relay *relay = runner->relay;

    for (uint64_t i = 0; i < relay->laps; i++) {
        int rc = hear_bell(&relay->bells[runner->index]);

        REQUIRE_OR_RETURN(rc == 0, rc);
        bell_ring(&relay->bells[(runner->index + 1) % relay->count]);
    }
    return 0;
}

/* Goal: wakes from workers of another runtime arrive like any other.
 * Method: a token goes round through tasks of two pools in turn. */
TEST(pool_wakes_across_pools)
{
    struct relay relay = {.count = 16, .laps = test_size(50, 1000, 50000)};
    struct runner runners[16];
    pirn_task *tasks[16];
    pirn_runtime *pools[2] = {pool_new(2), pool_new(1)};

    for (size_t i = 0; i < relay.count; i++)
        bell_init(&relay.bells[i]);
    for (size_t i = 0; i < relay.count; i++) {
        runners[i] = (struct runner){&relay, i};
        tasks[i] = go_task(pools[i % 2], run_laps, &runners[i]);
    }
    bell_ring(&relay.bells[0]);
    for (size_t i = 0; i < relay.count; i++)
        EXPECT_EQ(0, join_and_unref(tasks[i]));
    runtime_end(pools[0]);
    runtime_end(pools[1]);
}
