/* SPDX-License-Identifier: MIT */
/* tests/regress/shutdown_blocked_thread.c - shutdown while threads block.
 *
 * Shipped elsewhere: a thread in read() on standard input, or in a name
 * look-up, held shutdown up for ever.  How long it takes here is measured in
 * tests/stress/shutdown_in_time.c.
 */
#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

#include <pirn/blocking.h>
#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/test.h"

/* A job that reads what nobody writes. */
struct reader {
    int pipe[2];
    sem_t begun;
    sem_t ended;
};

static int read_pipe(void *arg)
{
    struct reader *reader = arg;
    char byte;
    ssize_t n;

    sem_post(&reader->begun);
    n = read(reader->pipe[0], &byte, 1);
    sem_post(&reader->ended);
    return n == 0 ? 0 : -EIO;
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

static void ignore_failure(void *arg, const pirn_failure *failure)
{
    (void)arg;
    (void)failure;
}

static int fail(void *arg)
{
    (void)arg;
    return -EIO;
}

static void start_reader(struct reader *reader, pirn_runtime *rt,
                         pirn_job **job)
{
    const pirn_spawn_options options = {.runtime = rt};

    sem_init(&reader->begun, 0, 0);
    sem_init(&reader->ended, 0, 0);
    REQUIRE(pipe(reader->pipe) == 0);
    REQUIRE(pirn_spawn_blocking(read_pipe, reader, &options, job) == 0);
    wait_for(&reader->begun);
}

static void stop_reader(struct reader *reader)
{
    close(reader->pipe[1]);
    wait_for(&reader->ended);
    close(reader->pipe[0]);
}

/* Goal: a thread that does not come back is left behind and counted; it keeps
 * alive what it needs, and its job can still be joined.
 * Method: one thread in read(), two jobs behind it, an expired deadline; the
 * runtime is given up, then the read ends. */
TEST(shutdown_leaves_a_blocked_thread_behind_and_reports_it)
{
    const pirn_runtime_options options = {.blocking_threads = 1};
    struct reader reader;
    pirn_runtime *rt;
    pirn_report report, again;
    pirn_job *job = NULL, *queued;
    int outcome = -1;

    REQUIRE(pirn_runtime_new(&options, &rt) == 0);
    const pirn_spawn_options spawn = {.runtime = rt};

    start_reader(&reader, rt, &job);
    REQUIRE(job != NULL);
    EXPECT_EQ(0, pirn_spawn_blocking(fail, NULL, &spawn, &queued));
    EXPECT_EQ(0, pirn_spawn_blocking(fail, NULL, &spawn, NULL));

    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT_EQ(1, report.jobs_still_running);
    EXPECT_EQ(2, report.jobs_refused);
    EXPECT_EQ(0, report.jobs_completed);
    EXPECT(!report.in_time);
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_NEVER, &again));
    EXPECT_EQ(1, again.jobs_still_running);
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_spawn_blocking(fail, NULL, &spawn, NULL));

    EXPECT_EQ(0, pirn_job_join(queued, PIRN_NEVER, &outcome));
    EXPECT_EQ(PIRN_ESHUTDOWN, outcome);
    pirn_job_unref(queued);
    pirn_runtime_unref(rt);
    EXPECT_EQ(-ETIMEDOUT, pirn_job_join(job, PIRN_EXPIRED, &outcome));
    stop_reader(&reader);
    EXPECT_EQ(0, pirn_job_join(job, PIRN_NEVER, &outcome));
    EXPECT_EQ(0, outcome);
    pirn_job_unref(job);
}

static int close_pipe(void *arg)
{
    struct reader *reader = arg;

    stop_reader(reader);
    return 0;
}

/* Goal: shutdown waits for a job that does come back, and then is clean.
 * Method: the read ends while shutdown waits, by a job of another runtime that
 * lets it. */
TEST(shutdown_waits_for_a_job_that_comes_back)
{
    struct reader reader;
    pirn_runtime *rt, *other;
    pirn_report report;
    pirn_job *job = NULL;

    REQUIRE(pirn_runtime_new(NULL, &rt) == 0);
    REQUIRE(pirn_runtime_new(NULL, &other) == 0);
    const pirn_spawn_options helper = {.runtime = other};

    start_reader(&reader, rt, &job);
    EXPECT_EQ(0, pirn_spawn_blocking(close_pipe, &reader, &helper, NULL));
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, &report));
    EXPECT_EQ(1, report.jobs_completed);
    EXPECT_EQ(0, report.jobs_still_running);
    EXPECT(report.in_time);
    pirn_job_unref(job);
    pirn_runtime_unref(rt);
    EXPECT_EQ(0, pirn_runtime_shutdown(other, PIRN_NEVER, NULL));
    pirn_runtime_unref(other);
}

/* A fiber in the middle of a blocking call when its runtime ends. */
static int block_in_fiber(void *arg)
{
    int rc = pirn_blocking_run(read_pipe, arg);

    /* Never reached: the fiber is not resumed after its abort. */
    EXPECT(rc != rc);
    return rc;
}

/* Goal: a fiber whose job does not come back is quarantined with its stack, on
 * which the job's argument may live.
 * Method: an expired deadline while both wait. */
TEST(shutdown_quarantines_a_fiber_in_a_blocking_call)
{
    struct reader reader;
    pirn_runtime *rt;
    pirn_report report;
    const pirn_runtime_options options = {.on_failure = ignore_failure};

    REQUIRE(pirn_runtime_new(&options, &rt) == 0);
    const pirn_spawn_options spawn = {.runtime = rt, .name = "blocked"};

    sem_init(&reader.begun, 0, 0);
    sem_init(&reader.ended, 0, 0);
    REQUIRE(pipe(reader.pipe) == 0);
    EXPECT_EQ(0, pirn_go_with(block_in_fiber, &reader, &spawn, NULL));
    EXPECT_GE(pirn_runtime_turn(rt, PIRN_NEVER), 1);
    wait_for(&reader.begun);

    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT_EQ(1, report.aborted);
    EXPECT_EQ(1, report.quarantined);
    EXPECT_EQ(1, report.jobs_still_running);
    EXPECT_EQ(1, report.task_count);
    EXPECT_STR_EQ("blocked", report.tasks[0].name);
    EXPECT(strstr(report.tasks[0].waits_for, "blocking job") != NULL);
    stop_reader(&reader);
    pirn_runtime_unref(rt);
}
