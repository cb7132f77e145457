/* SPDX-License-Identifier: MIT */
/* src/sched/histogram_test.c - buckets and quantiles by arithmetic; what a
 * runtime measures under a clock that stands still unless a task moves it.
 */
#include "sched/histogram.h"

#include <errno.h>

#include "sched/runtime_test.h"
#include "sys/sys.h"

/* The only bucket that counts anything. */
static uint32_t bucket_of_one(uint64_t ns)
{
    static struct pirn__histogram histogram;
    static pirn_histogram read;
    uint32_t index = 0;

    memset(&histogram, 0, sizeof histogram);
    memset(&read, 0, sizeof read);
    pirn__histogram_add(&histogram, ns);
    pirn__histogram_read(&histogram, &read);
    EXPECT_EQ(1, read.count);
    EXPECT_EQ(ns, read.sum_ns);
    EXPECT_EQ(ns, read.max_ns);
    while (index < PIRN_HISTOGRAM_BUCKETS - 1 && read.buckets[index] == 0)
        index++;
    EXPECT_EQ(1, read.buckets[index]);
    return index;
}

/* Goal: each bucket begins where the one before ends, at most an eighth of its
 * values wide, up to the largest number there is.
 * Method: both ends of every bucket are counted there. */
TEST(histogram_buckets_have_no_gap_and_are_narrow)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < PIRN_HISTOGRAM_BUCKETS; i++) {
        uint64_t end = pirn_histogram_bucket_end(i);

        EXPECT_GE(end, first);
        EXPECT_LE(end - first, first / 8);
        EXPECT_EQ(i, bucket_of_one(first));
        EXPECT_EQ(i, bucket_of_one(end));
        first = end + 1;
    }
    EXPECT_EQ(0, first);
    EXPECT(pirn_histogram_bucket_end(PIRN_HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
    EXPECT(pirn_histogram_bucket_end(UINT32_MAX) == UINT64_MAX);
}

/* Goal: a quantile is not below the true one and at most an eighth above.
 * Method: 1 to 1000, whose quantiles are known. */
TEST(histogram_quantiles_of_known_times)
{
    static const struct {
        double share;
        uint64_t rank;
    } cases[] = {{0.001, 1},  {0.5, 500},  {0.9, 900},
                 {0.99, 990}, {0.999, 999}, {1, 1000}};
    static struct pirn__histogram histogram;
    static pirn_histogram read;

    for (uint64_t ns = 1; ns <= 1000; ns++)
        pirn__histogram_add(&histogram, ns);
    pirn__histogram_read(&histogram, &read);
    EXPECT_EQ(1000, read.count);
    EXPECT_EQ(500500, read.sum_ns);
    EXPECT_EQ(1000, read.max_ns);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t found = pirn_histogram_quantile(&read, cases[i].share);

        EXPECT_GE(found, cases[i].rank);
        EXPECT_LE(found, cases[i].rank + cases[i].rank / 8);
    }
    EXPECT_EQ(1000, pirn_histogram_quantile(&read, 1));
}

/* Goal: shares beside 0 to 1 and an empty histogram make no trouble.
 * Method: each, one time counted. */
TEST(histogram_quantile_at_the_edges)
{
    static struct pirn__histogram histogram;
    static pirn_histogram read;

    EXPECT_EQ(0, pirn_histogram_quantile(&read, 0.5));
    pirn__histogram_add(&histogram, 1000000);
    pirn__histogram_read(&histogram, &read);
    EXPECT_EQ(1000000, pirn_histogram_quantile(&read, 0));
    EXPECT_EQ(1000000, pirn_histogram_quantile(&read, -1));
    EXPECT_EQ(1000000, pirn_histogram_quantile(&read, 2));
    EXPECT_EQ(1000000, pirn_histogram_quantile(&read, 1.0 / 3));
}

/* Goal: readings of several workers add up, and their longest time is kept.
 * Method: two into one. */
TEST(histogram_readings_add_up)
{
    static struct pirn__histogram histograms[2];
    static pirn_histogram read;

    pirn__histogram_add(&histograms[0], 5);
    pirn__histogram_add(&histograms[0], 700);
    pirn__histogram_add(&histograms[1], 5);
    pirn__histogram_read(&histograms[0], &read);
    pirn__histogram_read(&histograms[1], &read);
    EXPECT_EQ(3, read.count);
    EXPECT_EQ(710, read.sum_ns);
    EXPECT_EQ(700, read.max_ns);
    EXPECT_EQ(2, read.buckets[5]);
}

/* A clock that stands still and counts who looks. */
static uint64_t clock_now;
static tally clock_reads;
static struct pirn__sys still_world;

static uint64_t still_clock_ns(void)
{
    tally_up(&clock_reads);
    return clock_now;
}

static void stop_clock(void)
{
    still_world = pirn__sys_linux;
    still_world.clock_ns = still_clock_ns;
    clock_now = 1000;
    pirn__sys = &still_world;
}

static void start_clock(void)
{
    pirn__sys = &pirn__sys_linux;
}

static pirn_runtime *measuring(uint32_t workers, struct meter *meter)
{
    const pirn_runtime_options options = {.workers = workers,
                                          .histograms = true,
                                          .alloc = &meter->alloc};
    pirn_runtime *rt = NULL;

    meter_init(meter);
    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    return rt;
}

static void read_one(pirn_runtime *rt, enum pirn_histogram_kind kind,
                     pirn_histogram *out)
{
    EXPECT_EQ(0, pirn_runtime_get_histogram(rt, kind, out));
}

/* A poll that takes 500 ns. */
static enum pirn_poll step_take_time(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    (void)cx;
    clock_now += 500;
    return PIRN_READY;
}

/* 500 ns, twice, with a yield between. */
static enum pirn_poll step_take_time_twice(struct probe *probe, pirn_cx *cx)
{
    clock_now += 500;
    if (probe->polls > 0)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: each poll is measured, and each wait for one from the moment when the
 * task was queued: by a spawn, with a handle or without, and by a wake.
 * Method: three tasks in line, one of which wakes itself; time passes in polls
 * only. */
TEST(histogram_of_a_current_thread_runtime)
{
    static pirn_histogram read;
    struct meter meter;
    pirn_runtime *rt = measuring(0, &meter);
    pirn_task *task = NULL;

    stop_clock();
    spawn_probe(rt, step_take_time_twice, NULL, NULL);
    spawn_probe(rt, step_take_time, NULL, &task);
    spawn_probe(rt, step_take_time, NULL, NULL);
    EXPECT_EQ(4, turn(rt));
    start_clock();
    read_one(rt, PIRN_HISTOGRAM_POLL_TIME, &read);
    EXPECT_EQ(4, read.count);
    EXPECT_EQ(2000, read.sum_ns);
    EXPECT_EQ(500, read.max_ns);
    /* 0, 500 and 1000 since the spawns, 1000 since the wake. */
    read_one(rt, PIRN_HISTOGRAM_SCHEDULE_LATENCY, &read);
    EXPECT_EQ(4, read.count);
    EXPECT_EQ(2500, read.sum_ns);
    EXPECT_EQ(1000, read.max_ns);
    EXPECT_EQ(1, read.buckets[0]);
    pirn_task_unref(task);
    runtime_end(rt);
}

static enum pirn_poll step_answer(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    probe->outcome = 42;
    return PIRN_READY;
}

/* Goal: the stamp in the cell is in nobody's way: join slot, output, future.
 * Method: futures of many sizes, filled to the end, with a handle; their output
 * must come back whole, and only in its own size. */
TEST(histogram_stamps_leave_the_cell_alone)
{
    struct padded {
        struct probe probe;
        unsigned char bytes[200];
    } padded, output;
    struct meter meter;
    pirn_runtime *rt = measuring(0, &meter);
    const pirn_spawn_options options = {.runtime = rt};

    memset(&padded, 0xa5, sizeof padded);
    for (size_t size = sizeof padded.probe; size <= sizeof padded; size += 8) {
        pirn_task *task = NULL;

        padded.probe = probe_of(step_answer, NULL, NULL);
        EXPECT_EQ(0, pirn_spawn(&padded.probe.future, size, &options, &task));
        turn(rt);
        memset(&output, 0, sizeof output);
        EXPECT_EQ(-EINVAL, pirn_task_take_output(task, &output, size + 64));
        EXPECT_EQ(0, pirn_task_take_output(task, &output, size));
        EXPECT_EQ(42, output.probe.outcome);
        EXPECT_EQ(0, memcmp(output.bytes, padded.bytes,
                            size - sizeof padded.probe));
        EXPECT_EQ(42, join_and_unref(task));
    }
    runtime_end(rt);
}

static int yield_often(void *arg)
{
    int rc = 0;

    for (int i = 0; i < 9 && rc == 0; i++)
        rc = pirn_yield();
    tally_up(arg);
    return rc;
}

/* Goal: on a pool, every poll of every worker is counted, and every wait.
 * Method: fibers that yield; read while they run and when all have ended. */
TEST(histogram_of_a_pool_counts_every_poll)
{
    enum { FIBERS = 200 };
    static pirn_histogram times;
    static pirn_histogram waits;
    struct meter meter;
    pirn_runtime *rt = measuring(3, &meter);
    pirn_runtime_info info;
    tally ended = {0};

    for (int i = 0; i < FIBERS; i++) {
        go(rt, yield_often, &ended);
        read_one(rt, PIRN_HISTOGRAM_POLL_TIME, &times);
        EXPECT_GE(times.max_ns, pirn_histogram_quantile(&times, 0.5));
    }
    wait_for_tally(&ended, FIBERS);
    pirn_runtime_ref(rt);
    runtime_end(rt);
    pirn_runtime_get_info(rt, &info);
    read_one(rt, PIRN_HISTOGRAM_POLL_TIME, &times);
    read_one(rt, PIRN_HISTOGRAM_SCHEDULE_LATENCY, &waits);
    EXPECT_EQ(10 * FIBERS, info.polls);
    EXPECT_EQ(info.polls, times.count);
    EXPECT_EQ(info.polls, waits.count);
    EXPECT_GE(times.sum_ns, times.max_ns);
    pirn_runtime_unref(rt);
    /* A worker's thread may be the last to let go. */
    wait_for_tally(&meter.dones, 1);
}

/* Goal: a runtime that was not asked to measure reads no clock for a poll, and
 * says that it has nothing.
 * Method: count the reads of a thousand polls; the errors. */
TEST(histogram_not_asked_for_costs_no_clock)
{
    static pirn_histogram read;
    pirn_runtime *rt = runtime_new();

    stop_clock();
    for (int i = 0; i < 500; i++)
        spawn_probe(rt, step_take_time_twice, NULL, NULL);
    tally_set(&clock_reads, 0);
    while (pirn_runtime_turn(rt, PIRN_EXPIRED) > 0)
        continue;
    EXPECT_EQ(0, tally_of(&clock_reads));
    start_clock();
    read.count = 7;
    EXPECT_EQ(-ENODATA,
              pirn_runtime_get_histogram(rt, PIRN_HISTOGRAM_POLL_TIME, &read));
    EXPECT_EQ(0, read.count);
    EXPECT_EQ(-EINVAL,
              pirn_runtime_get_histogram(NULL, PIRN_HISTOGRAM_POLL_TIME, &read));
    EXPECT_EQ(-EINVAL,
              pirn_runtime_get_histogram(rt, PIRN_HISTOGRAM_POLL_TIME, NULL));
    EXPECT_EQ(-EINVAL,
              pirn_runtime_get_histogram(rt, PIRN_HISTOGRAM_KINDS, &read));
    runtime_end(rt);
}

/* Goal: where there is no memory for the records there is no runtime, and
 * nothing is left.
 * Method: refuse each request in turn, without workers and with some. */
TEST(histogram_without_memory_is_no_runtime)
{
    static const uint32_t workers[] = {0, 2};

    for (size_t i = 0; i < 2; i++) {
        int rc = -ENOMEM;

        for (uint64_t k = 1; rc == -ENOMEM && k < 100; k++) {
            struct meter meter;
            pirn_runtime *rt;

            meter_init(&meter);
            meter_fail(&meter, k, false);
            rc = pirn_runtime_new(
                &(pirn_runtime_options){.alloc = &meter.alloc,
                                        .workers = workers[i],
                                        .histograms = true},
                &rt);
            if (rc == 0) {
                runtime_end(rt);
                /* A worker's thread may be the last to let go. */
                wait_for_tally(&meter.dones, 1);
            }
            EXPECT_EQ(0, tally_of(&meter.pieces));
        }
        EXPECT_EQ(0, rc);
    }
}
