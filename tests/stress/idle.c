/* SPDX-License-Identifier: MIT */
/* tests/stress/idle.c - a runtime that has nothing to do does nothing. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "sched/runtime_test.h"

/* Those of a thread that waits; a busy machine adds others. */
static long voluntary_switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct nap {
    pirn_runtime *rt;
    struct bell bell;
    int seconds;
    long waits;
    uint64_t cpu_ns;
};

/* The driver measures itself from its going to sleep until it is rung. */
static void drive_idle(void *arg, size_t index)
{
    struct nap *nap = arg;
    struct bell_wait wait = bell_wait_of(&nap->bell);
    long before = voluntary_switches();
    uint64_t cpu_before = cpu_ns();

    (void)index;
    EXPECT_EQ(0, pirn_block_on(nap->rt, &wait.future, PIRN_NEVER));
    nap->waits = voluntary_switches() - before;
    nap->cpu_ns = cpu_ns() - cpu_before;
}

static void sleep_s(int seconds)
{
    struct timespec time = {.tv_sec = seconds};

    while (nanosleep(&time, &time) != 0)
        continue;
}

/* Goal: an idle runtime makes no timed wait: its driver goes to sleep once and
 * wakes up once.
 * Method: tasks wait for a bell and for an hour; count the waits of the driver's
 * thread while nothing happens. */
TEST(idle_driver_does_not_wake_up)
{
    struct nap nap = {.rt = runtime_new(), .seconds = (int)test_size(1, 1, 10)};
    struct bell other;
    pirn_sleep_op hour;
    struct crew crew;

    bell_init(&nap.bell);
    bell_init(&other);
    pirn_sleep_init(&hour, pirn_after_ms(3600 * 1000));
    go(nap.rt, hear_bell, &other);
    EXPECT_EQ(0, pirn_spawn(&hour.future, sizeof hour,
                            &(pirn_spawn_options){.runtime = nap.rt}, NULL));
    crew_start(&crew, 1, drive_idle, &nap);
    sleep_s(nap.seconds);
    bell_ring(&nap.bell);
    crew_join(&crew);
    printf("idle for %d s: %ld waits, %.3f ms of CPU\n", nap.seconds,
           nap.waits, (double)nap.cpu_ns / 1e6);
    /* One, and what a lock may cost at the start or the end. */
    EXPECT_LE(nap.waits, 5);
    EXPECT_LE(nap.cpu_ns, 50000000);
    EXPECT_EQ(2, runtime_end(nap.rt).cancelled);
}
