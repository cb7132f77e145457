/* SPDX-License-Identifier: MIT */
/* tests/stress/timers.c - sleeping in real time: never early, and never held up
 * by a longer sleep that the driver is in. */
#include <stdio.h>

#include "sched/runtime_test.h"

/* Far from the ten seconds of the long sleep, and from what a loaded machine
 * keeps a thread waiting. */
enum { GAP_MAX_MS = 2000 };

struct ticks {
    size_t count;
    uint64_t longest_ns;
    pirn_task *sleeper;
};

static int tick(void *arg)
{
    struct ticks *ticks = arg;
    uint64_t last = pirn_now_ns();

    for (size_t i = 0; i < ticks->count; i++) {
        uint64_t now;

        EXPECT_EQ(0, pirn_sleep(pirn_after_ms(1)));
        now = pirn_now_ns();
        EXPECT_GE(now - last, 1000000);
        if (now - last > ticks->longest_ns)
            ticks->longest_ns = now - last;
        last = now;
    }
    pirn_task_cancel(ticks->sleeper);
    return 0;
}

static int sleep_long(void *arg)
{
    int rc = 0;

    (void)arg;
    while (rc == 0)
        rc = pirn_sleep(pirn_after_ms(10 * 1000));
    return rc;
}

/* Goal: a new earlier deadline interrupts the driver that waits for a later
 * one.
 * Method: one fiber sleeps ten seconds at a time, another a millisecond, fifty
 * thousand times; no gap of its is longer than two seconds. */
TEST(timers_short_sleeps_beside_long_ones_are_on_time)
{
    pirn_runtime *rt = runtime_new();
    struct ticks ticks = {.count = test_size(300, 2000, 50000)};
    pirn_join_op join;

    ticks.sleeper = go_task(rt, sleep_long, NULL);
    go(rt, tick, &ticks);
    pirn_join_init(&join, ticks.sleeper);
    EXPECT_EQ(0, pirn_block_on(rt, &join.future, PIRN_NEVER));
    EXPECT_EQ(-ECANCELED, join.outcome);
    EXPECT_LE(ticks.longest_ns, (uint64_t)GAP_MAX_MS * 1000000);
    pirn_task_unref(ticks.sleeper);
    runtime_end(rt);
    printf("longest gap of 1 ms sleeps: %.3f ms\n",
           (double)ticks.longest_ns / 1e6);
}

struct samples {
    size_t count;
    uint64_t *late_ns;
};

static int sleep_short(void *arg)
{
    struct samples *samples = arg;

    for (size_t i = 0; i < samples->count; i++) {
        pirn_deadline until = pirn_after_us(100);
        uint64_t now;

        EXPECT_EQ(0, pirn_sleep(until));
        now = pirn_now_ns();
        EXPECT_GE(now, until.ns);
        samples->late_ns[i] = now - until.ns;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* Goal: short sleeps never end early; how late they are is printed, for it is
 * the machine's affair.
 * Method: ten thousand of 100 us. */
TEST(timers_short_sleeps_are_never_early)
{
    struct samples samples = {.count = test_size(500, 10000, 50000)};
    pirn_runtime *rt = runtime_new();
    size_t count = samples.count;

    samples.late_ns = calloc(count, sizeof *samples.late_ns);
    REQUIRE(samples.late_ns != NULL);
    EXPECT_EQ(0, join_and_unref(go_task(rt, sleep_short, &samples)));
    runtime_end(rt);
    qsort(samples.late_ns, count, sizeof *samples.late_ns, compare);
    printf("100 us sleeps are late by: p50 %.1f us, p99 %.1f us, "
           "max %.1f us\n",
           (double)samples.late_ns[count / 2] / 1e3,
           (double)samples.late_ns[count * 99 / 100] / 1e3,
           (double)samples.late_ns[count - 1] / 1e3);
    free(samples.late_ns);
}

enum { SETTERS = 4 };

/* A wait that only its deadline ends. */
struct target {
    pirn_sleep_op sleep;
    tally woken;
    size_t rounds;
};

static int sleep_again(void *arg)
{
    struct target *target = arg;

    while (tally_of(&target->woken) < target->rounds) {
        pirn_sleep_init(&target->sleep, pirn_after_ms(3600 * 1000));
        EXPECT_EQ(-ETIMEDOUT,
                  pirn_await(&target->sleep.future, pirn_after_us(200)));
        tally_up(&target->woken);
    }
    return 0;
}

static void spawn_sleepers(void *arg, size_t index)
{
    pirn_runtime *rt = arg;
    struct target target = {.rounds = test_size(50, 500, 10000)};

    (void)index;
    EXPECT_EQ(0, join_and_unref(go_task(rt, sleep_again, &target)));
}

/* Goal: deadlines of waits that threads start from outside are kept while each
 * of them may be the driver.
 * Method: four plain threads join fibers whose waits end by their deadline. */
TEST(timers_deadlines_are_kept_whoever_drives)
{
    pirn_runtime *rt = runtime_new();
    struct crew crew;

    crew_start(&crew, SETTERS, spawn_sleepers, rt);
    crew_join(&crew);
    EXPECT_EQ(SETTERS, runtime_end(rt).completed);
}
