/* SPDX-License-Identifier: MIT */
/* tests/stress/pool_shutdown.c - shutdown keeps its deadline, and workers that
 * are slow are no less ended than those that are quick.
 */
#include <pirn/blocking.h>

#include <stdio.h>
#include <time.h>

#include "engine/pool_fixture.h"
#include "sys/sys.h"

static void sleep_ms(int ms)
{
    struct timespec time = {.tv_sec = ms / 1000,
                            .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&time, &time) != 0)
        continue;
}

/* A world in which a thread takes its time to come back from the wait set.  It
 * stays, for threads that have just ended may still look at it. */
static struct pirn__sys world;
static tally slow;

static int wait_slowly(int epoll_fd, struct epoll_event *events, int capacity,
                       pirn_deadline deadline)
{
    int rc =
        pirn__sys_linux.epoll_wait(epoll_fd, events, capacity, deadline);

    if (tally_of(&slow) > 0)
        sleep_ms(200);
    return rc;
}

static int hold(void *arg)
{
    return hog_hold(arg);
}

/* Goal: workers that take longer to wake up than shutdown waits for them end all
 * the same, one after the other, and then the memory is back.
 * Method: one worker is held; each of the others takes a fifth of a second to
 * come back from the wait set. */
TEST(pool_shutdown_slow_workers_end)
{
    struct hog hog = {.holding = {0}};
    struct meter meter;
    pirn_report report;
    pirn_runtime *rt;

    world = pirn__sys_linux;
    world.epoll_wait = wait_slowly;
    pirn__sys = &world;
    meter_init(&meter);
    rt = pool_on(&meter, 5);
    go(rt, hold, &hog);
    wait_for_tally(&hog.holding, 1);
    sleep_ms(50);
    tally_set(&slow, 1);
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT_EQ(1, report.still_running);
    pirn_runtime_unref(rt);
    tally_up(&hog.let_go);
    wait_for_tally(&meter.dones, 1);
    EXPECT_EQ(0, tally_of(&meter.pieces));
    tally_set(&slow, 0);
}

/* A fiber that ignores being cancelled. */
static int ignore_cancel(void *arg)
{
    int rc = 0;

    tally_up(arg);
    while (rc == 0 || rc == -ECANCELED)
        rc = pirn_sleep(pirn_after_ms(50));
    return rc;
}

static void no_failure(void *arg, const pirn_failure *failure)
{
    (void)arg;
    (void)failure;
}

/* Goal: with a worker that does not come back, a blocking job that does not end
 * and a thousand fibers that ignore cancellation, shutdown returns within the
 * deadline and 100 ms, and names each kind.
 * Method: measure, a few times; the best counts. */
TEST(pool_shutdown_keeps_its_deadline)
{
    NEEDS_STEALING();
    enum { DEADLINE_MS = 100, TRIES = 3 };
    size_t deaf = test_size(50, 1000, 1000);
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < TRIES && best > (DEADLINE_MS + 100) * 1000000; i++) {
        pirn_runtime *rt = pool_with(&(pirn_runtime_options){
            .workers = 3, .on_failure = no_failure});
        const pirn_spawn_options options = {.runtime = rt};
        struct hog hog = {.holding = {0}}, job = {.holding = {0}};
        pirn_task *task = hog_start(&hog, rt);
        pirn_job *handle = NULL;
        pirn_report report;
        tally begun = {0};
        int outcome = -1;
        uint64_t start;

        EXPECT_EQ(0, pirn_spawn_blocking(hog_hold, &job, &options, &handle));
        wait_for_tally(&job.holding, 1);
        for (size_t n = 0; n < deaf; n++)
            go(rt, ignore_cancel, &begun);
        wait_for_tally(&begun, deaf);
        start = pirn_now_ns();
        EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(
                                  rt, pirn_after_ms(DEADLINE_MS), &report));
        if (pirn_now_ns() - start < best)
            best = pirn_now_ns() - start;
        EXPECT(!report.in_time);
        /* On a busy machine another may get no time to notice. */
        EXPECT_EQ(deaf + 1, report.aborted + report.still_running);
        EXPECT_EQ(report.aborted, report.quarantined);
        EXPECT_GE(report.still_running, 1);
        EXPECT_EQ(1, report.jobs_still_running);
        tally_up(&hog.let_go);
        tally_up(&job.let_go);
        EXPECT_EQ(0, join_and_unref(task));
        EXPECT_EQ(0, pirn_job_join(handle, PIRN_NEVER, &outcome));
        pirn_job_unref(handle);
        pirn_runtime_unref(rt);
    }
    printf("returned after %.3f ms\n", (double)best / 1e6);
    EXPECT_LE(best, (DEADLINE_MS + 100) * 1000000);
}
