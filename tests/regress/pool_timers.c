/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_timers.c - timers of many workers: armed on one, cancelled
 * on another, due while all sleep.
 *
 * Shipped elsewhere: a new earlier timer did not interrupt the poller's wait for
 * a later one.
 */
#include "engine/pool_fixture.h"

enum { HOUR_MS = 3600 * 1000 };

static int sleep_an_hour(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ms(HOUR_MS));
}

/* Sleep a random while, again and again, never too short. */
struct sleeper {
    uint64_t seed;
    size_t rounds;
};

static int sleep_at_random(void *arg)
{
    struct sleeper *sleeper = arg;
    struct pirn__prng prng;

    pirn__prng_seed(&prng, sleeper->seed);
    for (size_t i = 0; i < sleeper->rounds; i++) {
        pirn_deadline until =
            pirn_after_us(pirn__prng_below(&prng, 2000));

        EXPECT_EQ(0, pirn_sleep(until));
        EXPECT_GE(pirn_now_ns(), until.ns);
        if (pirn__prng_below(&prng, 4) == 0)
            EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

/* Goal: sleeps on many workers all end, and none early.
 * Method: tasks that sleep at random and change workers by yielding. */
TEST(pool_timers_end_and_never_early)
{
    enum { SLEEPERS = 50 };

    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        struct sleeper sleepers[SLEEPERS];
        pirn_runtime *rt = pool_new(workers);
        pirn_task *tasks[SLEEPERS];

        for (size_t i = 0; i < SLEEPERS; i++) {
            sleepers[i] = (struct sleeper){i, test_size(10, 50, 2000)};
            tasks[i] = go_task(rt, sleep_at_random, &sleepers[i]);
        }
        for (size_t i = 0; i < SLEEPERS; i++)
            EXPECT_EQ(0, join_and_unref(tasks[i]));
        runtime_end(rt);
    }
}

static int nap(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_us(100));
}

/* Goal: an earlier deadline reaches workers that sleep until a much later one.
 * Method: every worker's wheel has an hour to wait; then short naps, from tasks
 * and from the plain thread, whose timers are on a sleeping worker's wheel. */
TEST(pool_timers_earlier_deadline_reaches_sleepers)
{
    size_t rounds = test_size(20, 300, 50000);

    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        pirn_runtime *rt = pool_new(workers);

        for (int i = 0; i < 16; i++)
            go(rt, sleep_an_hour, NULL);
        for (size_t i = 0; i < rounds; i++) {
            pirn_sleep_op op;

            EXPECT_EQ(0, join_and_unref(go_task(rt, nap, NULL)));
            pirn_sleep_init(&op, pirn_after_us(100));
            EXPECT_EQ(0, pirn_block_on(rt, &op.future, PIRN_NEVER));
            EXPECT_EQ(0, pirn_sleep_rc(&op));
        }
        EXPECT_EQ(16, runtime_end(rt).cancelled);
    }
}

/* A task that sleeps on an op which others reach. */
struct remote {
    pirn_sleep_op op;
    tally polls;
    int rc;
};

static enum pirn_poll step_remote(struct probe *probe, pirn_cx *cx)
{
    struct remote *remote = probe->arg;
    enum pirn_poll poll = pirn_future_poll(&remote->op.future, cx);

    if (poll == PIRN_READY)
        remote->rc = pirn_sleep_rc(&remote->op);
    tally_up(&remote->polls);
    return poll;
}

static pirn_task *remote_start(struct remote *remote, pirn_runtime *rt)
{
    pirn_task *task = NULL;

    *remote = (struct remote){.rc = -1};
    pirn_sleep_init(&remote->op, pirn_after_ms(HOUR_MS));
    spawn_probe(rt, step_remote, remote, &task);
    wait_for_tally(&remote->polls, 1);
    return task;
}

/* Goal: a sleep that another thread moves to an earlier time ends then, though
 * its worker sleeps.
 * Method: an hour becomes a moment; also back and forth before that. */
TEST(pool_timers_reset_from_another_thread)
{
    size_t rounds = test_size(20, 300, 50000);
    pirn_runtime *rt = pool_new(2);

    for (size_t i = 0; i < rounds; i++) {
        struct remote remote;
        pirn_task *task = remote_start(&remote, rt);
        pirn_deadline until = pirn_after_us(i % 3 * 100);

        if (i % 2 == 0)
            pirn_sleep_reset(&remote.op, pirn_after_ms(HOUR_MS / 2));
        pirn_sleep_reset(&remote.op, until);
        EXPECT_EQ(0, join_and_unref(task));
        EXPECT_GE(pirn_now_ns(), until.ns);
        EXPECT_EQ(0, remote.rc);
    }
    runtime_end(rt);
}

/* Goal: and one that another thread cancels ends at once.
 * Method: the same. */
TEST(pool_timers_cancelled_from_another_thread)
{
    size_t rounds = test_size(20, 300, 50000);
    pirn_runtime *rt = pool_new(2);

    for (size_t i = 0; i < rounds; i++) {
        struct remote remote;
        pirn_task *task = remote_start(&remote, rt);

        pirn_sleep_cancel(&remote.op);
        EXPECT_EQ(0, join_and_unref(task));
        EXPECT_EQ(-ECANCELED, remote.rc);
    }
    runtime_end(rt);
}

/* Fibers that wait with short deadlines for bells that ring or not. */
struct race {
    struct bell bells[8];
    tally stop;
    tally waiters;
    tally heard;
    tally missed;
};

static int wait_briefly(void *arg)
{
    struct race *race = arg;
    struct bell *bell = &race->bells[tally_up(&race->waiters)];

    while (tally_of(&race->stop) == 0) {
        struct bell_wait wait = bell_wait_of(bell);
        pirn_deadline until = pirn_after_us(200);
        int rc = pirn_await(&wait.future, until);

        EXPECT(rc == 0 || rc == -ETIMEDOUT);
        if (rc != 0)
            EXPECT_GE(pirn_now_ns(), until.ns);
        tally_up(rc == 0 ? &race->heard : &race->missed);
        EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

static int ring_all(void *arg)
{
    struct race *race = arg;
    struct pirn__prng prng;

    pirn__prng_seed(&prng, 3);
    while (tally_of(&race->stop) == 0) {
        bell_ring(&race->bells[pirn__prng_below(&prng, 8)]);
        EXPECT_EQ(0, pirn_sleep(pirn_after_us(pirn__prng_below(&prng, 100))));
    }
    return 0;
}

/* Goal: deadlines of waits are armed and withdrawn on whatever worker the fiber
 * runs, and each wait ends one way or the other.
 * Method: rings at about the time of the deadlines, until there were enough of
 * both. */
TEST(pool_timers_deadlines_against_wakes)
{
    uint64_t enough = test_size(50, 1000, 100000);
    struct race race = {.stop = {0}};
    pirn_runtime *rt = pool_new(3);
    pirn_task *tasks[10];

    for (int i = 0; i < 8; i++)
        bell_init(&race.bells[i]);
    for (int i = 0; i < 10; i++)
        tasks[i] = go_task(rt, i < 8 ? wait_briefly : ring_all, &race);
    wait_for_tally(&race.heard, enough);
    wait_for_tally(&race.missed, enough);
    tally_up(&race.stop);
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(0, join_and_unref(tasks[i]));
    runtime_end(rt);
}
