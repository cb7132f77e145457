/* SPDX-License-Identifier: MIT */
/* tests/stress/shutdown_in_time.c - shutdown keeps its deadline, whatever the
 * tasks and threads of the runtime do. */
#include <errno.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include <pirn/blocking.h>
#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/test.h"

enum { DEADLINE_MS = 500, GRACE_MS = 100, JOBS = 2 };

static int pipe_fds[2];
static sem_t begun;

static int read_pipe(void *arg)
{
    char byte;

    (void)arg;
    sem_post(&begun);
    return (int)read(pipe_fds[0], &byte, 1);
}

static int sleep_for_an_hour(void *arg)
{
    const struct timespec hour = {.tv_sec = 3600};

    (void)arg;
    sem_post(&begun);
    nanosleep(&hour, NULL);
    return 0;
}

static void ignore_failure(void *arg, const pirn_failure *failure)
{
    (void)arg;
    (void)failure;
}

/* Ignores every request to stop. */
static int ignore_everything(void *arg)
{
    int rc;

    (void)arg;
    do {
        rc = pirn_sleep(pirn_after_ms(1000));
    } while (rc <= 0);
    return rc;
}

static void start_all(pirn_runtime *rt, size_t tasks)
{
    const pirn_spawn_options options = {.runtime = rt, .name = "stubborn"};

    sem_init(&begun, 0, 0);
    REQUIRE(pipe(pipe_fds) == 0);
    REQUIRE(pirn_spawn_blocking(read_pipe, NULL, &options, NULL) == 0);
    REQUIRE(pirn_spawn_blocking(sleep_for_an_hour, NULL, &options, NULL) == 0);
    for (size_t i = 0; i < tasks; i++)
        REQUIRE(pirn_go_with(ignore_everything, NULL, &options, NULL) == 0);
    EXPECT_GE(pirn_runtime_turn(rt, PIRN_NEVER), tasks);
    for (int i = 0; i < JOBS; i++) {
        while (sem_wait(&begun) != 0)
            continue;
    }
}

/* Goal: shutdown returns by its deadline and says who was left.
 * Method: a reader of a pipe that nobody writes, a job that sleeps for an hour,
 * and a thousand fibers that ignore cancellation; measure. */
TEST(shutdown_among_the_stubborn_returns_by_its_deadline)
{
    /* Instrumented code needs more time to quarantine so many. */
    size_t tasks = test_size(200, 1000, 1000);
    uint64_t grace_ms = test_size(10 * GRACE_MS, GRACE_MS, GRACE_MS);
    const pirn_runtime_options options = {.on_failure = ignore_failure};
    pirn_runtime *rt;
    pirn_report report;
    uint64_t start, elapsed_ms;

    REQUIRE(pirn_runtime_new(&options, &rt) == 0);
    start_all(rt, tasks);
    start = pirn_now_ns();
    EXPECT_EQ(-ETIMEDOUT,
              pirn_runtime_shutdown(rt, pirn_after_ms(DEADLINE_MS), &report));
    elapsed_ms = (pirn_now_ns() - start) / 1000000;
    EXPECT_GE(elapsed_ms, DEADLINE_MS);
    EXPECT_LE(elapsed_ms, DEADLINE_MS + grace_ms);

    EXPECT_EQ(JOBS, report.jobs_still_running);
    EXPECT_EQ(tasks, report.aborted);
    EXPECT_EQ(tasks, report.quarantined);
    EXPECT_EQ(PIRN_REPORT_TASKS, report.task_count);
    EXPECT_STR_EQ("stubborn", report.tasks[0].name);
    EXPECT(strstr(report.tasks[0].site, "shutdown_in_time.c:") != NULL);
    pirn_runtime_unref(rt);
    close(pipe_fds[1]);
}
