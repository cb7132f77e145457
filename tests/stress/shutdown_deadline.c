/* SPDX-License-Identifier: MIT */
/* tests/stress/shutdown_deadline.c - shutdowns whose deadline passes: they
 * return at it, not much later, whatever holds them up. */
#include <pirn/blocking.h>

#include <semaphore.h>
#include <stdio.h>

#include "sched/runtime_test.h"

enum {
    DEADLINE_MS = 100,
    SLACK_MS = 400, /* of a loaded machine; the promise is 100 */
};

static void wait_for_sem(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

struct stop {
    pirn_runtime *rt;
    tally begun;
    pirn_deadline deadline;
    pirn_report report;
    int rc;
    uint64_t end_ns;
};

static void stop(void *arg, size_t index)
{
    struct stop *stop = arg;

    (void)index;
    stop->rc = pirn_runtime_shutdown(stop->rt, stop->deadline, &stop->report);
    stop->end_ns = pirn_now_ns();
}

static void expect_on_time(const struct stop *stop, pirn_deadline deadline)
{
    EXPECT_EQ(-ETIMEDOUT, stop->rc);
    EXPECT(!stop->report.in_time);
    EXPECT_GE(stop->end_ns, deadline.ns);
    EXPECT_LE(stop->end_ns - deadline.ns, (uint64_t)SLACK_MS * 1000000);
}

static int wait_in_shield(void *arg)
{
    pirn_fiber_shield_begin();
    return hear_bell(arg);
}

/* Goal: the first deadline stands: a second request with a later one does not
 * extend it and gets the same report.
 * Method: a shielded fiber lasts for ever; the second request comes while the
 * first one waits. */
TEST(shutdown_second_request_does_not_extend_the_first)
{
    pirn_runtime *rt = runtime_new();
    pirn_deadline deadline = pirn_after_ms(DEADLINE_MS);
    struct stop first = {.rt = rt, .deadline = deadline};
    struct stop second = {.rt = rt, .deadline = PIRN_NEVER};
    struct bell bell;
    struct crew crew;

    bell_init(&bell);
    go(rt, wait_in_shield, &bell);
    crew_start(&crew, 1, stop, &first);
    wait_for_tally(&bell.waiting, 1);
    stop(&second, 0);
    crew_join(&crew);
    expect_on_time(&first, deadline);
    expect_on_time(&second, deadline);
    EXPECT_EQ(1, first.report.aborted);
    EXPECT_EQ(1, second.report.aborted);
    pirn_runtime_unref(rt);
}

struct obstacles {
    sem_t job_begun;
    sem_t job_may_end;
    sem_t job_ended;
    sem_t poll_begun;
    sem_t poll_may_end;
};

static int block(void *arg)
{
    struct obstacles *obstacles = arg;

    sem_post(&obstacles->job_begun);
    wait_for_sem(&obstacles->job_may_end);
    sem_post(&obstacles->job_ended);
    return 0;
}

static int ignore_cancellation(void *arg)
{
    (void)arg;
    for (;;) {
        int rc = pirn_sleep(PIRN_NEVER);

        (void)rc;
    }
    return 0;
}

static enum pirn_poll step_stick(struct probe *probe, pirn_cx *cx)
{
    struct obstacles *obstacles = probe->arg;

    (void)cx;
    sem_post(&obstacles->poll_begun);
    wait_for_sem(&obstacles->poll_may_end);
    return PIRN_READY;
}

static void quiet(void *arg, const pirn_failure *failure)
{
    (void)arg;
    EXPECT_EQ(PIRN_EABORTED, failure->outcome);
}

static pirn_runtime *obstructed_runtime(struct obstacles *obstacles,
                                        size_t stubborn)
{
    const pirn_runtime_options options = {.on_failure = quiet};
    pirn_spawn_options spawn = {.name = "stubborn"};
    pirn_runtime *rt;

    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    spawn.runtime = rt;
    sem_init(&obstacles->job_begun, 0, 0);
    sem_init(&obstacles->job_may_end, 0, 0);
    sem_init(&obstacles->job_ended, 0, 0);
    sem_init(&obstacles->poll_begun, 0, 0);
    sem_init(&obstacles->poll_may_end, 0, 0);
    for (size_t i = 0; i < stubborn; i++)
        EXPECT_EQ(0, pirn_go_with(ignore_cancellation, NULL, &spawn, NULL));
    EXPECT_EQ(0, pirn_spawn_blocking(block, obstacles, &spawn, NULL));
    wait_for_sem(&obstacles->job_begun);
    return rt;
}

static void release_job(struct obstacles *obstacles)
{
    sem_post(&obstacles->job_may_end);
    wait_for_sem(&obstacles->job_ended);
}

/* Goal: tasks that ignore cancellation and a job that blocks do not hold
 * shutdown up beyond its deadline; the report has both kinds.
 * Method: a thousand of the one, one of the other. */
TEST(shutdown_returns_by_its_deadline_despite_everything)
{
    size_t count = test_size(50, 1000, 1000);
    struct obstacles obstacles;
    pirn_runtime *rt = obstructed_runtime(&obstacles, count);
    struct stop request = {.rt = rt, .deadline = pirn_after_ms(DEADLINE_MS)};

    stop(&request, 0);
    expect_on_time(&request, request.deadline);
    EXPECT_EQ(count, request.report.aborted);
    EXPECT_EQ(count, request.report.quarantined);
    EXPECT_EQ(1, request.report.jobs_still_running);
    EXPECT_EQ(PIRN_REPORT_TASKS, request.report.task_count);
    EXPECT_STR_EQ("stubborn", request.report.tasks[0].name);
    printf("returned %.3f ms after its deadline\n",
           (double)(request.end_ns - request.deadline.ns) / 1e6);
    pirn_runtime_unref(rt);
    release_job(&obstacles);
}

static void turn_stuck(void *arg, size_t index)
{
    (void)index;
    EXPECT_GE(pirn_runtime_turn(arg, PIRN_NEVER), 1);
}

/* Goal: the same when the thread that drives is stuck in a task: that task is
 * named as still running, the job is counted, and when the thread comes back it
 * ends in order.
 * Method: let go only when the report is in. */
TEST(shutdown_returns_by_its_deadline_despite_a_stuck_driver)
{
    struct obstacles obstacles;
    pirn_runtime *rt = obstructed_runtime(&obstacles, 3);
    const pirn_spawn_options spawn = {.runtime = rt, .name = "stuck"};
    struct probe probe = probe_of(step_stick, &obstacles, NULL);
    struct stop request = {.rt = rt};
    struct crew crew;
    uint32_t running = 0;

    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &spawn, NULL));
    crew_start(&crew, 1, turn_stuck, rt);
    wait_for_sem(&obstacles.poll_begun);
    request.deadline = pirn_after_ms(DEADLINE_MS);
    stop(&request, 0);
    expect_on_time(&request, request.deadline);
    EXPECT_EQ(1, request.report.still_running);
    EXPECT_EQ(3, request.report.aborted);
    EXPECT_EQ(1, request.report.jobs_still_running);
    EXPECT_EQ(4, request.report.task_count);
    for (uint32_t i = 0; i < request.report.task_count; i++) {
        const pirn_report_task *task = &request.report.tasks[i];

        if (task->running) {
            EXPECT_STR_EQ("stuck", task->name);
            running++;
        }
    }
    EXPECT_EQ(1, running);
    sem_post(&obstacles.poll_may_end);
    crew_join(&crew);
    pirn_runtime_unref(rt);
    release_job(&obstacles);
}

static void sleep_in_runtime(void *arg, size_t index)
{
    struct stop *stop = arg;

    (void)index;
    pirn_runtime_enter(stop->rt);
    tally_up(&stop->begun);
    stop->rc = pirn_sleep(pirn_after_ms(20 * 1000));
    pirn_runtime_enter(NULL);
}

/* Goal: a plain thread that sleeps on a runtime's clock is told when that
 * runtime ends before the time.
 * Method: it sleeps for twenty seconds; it must come back much earlier. */
TEST(shutdown_ends_the_sleep_of_a_plain_thread)
{
    struct stop sleeper = {.rt = runtime_new()};
    uint64_t begin = pirn_now_ns();
    struct crew crew;

    crew_start(&crew, 1, sleep_in_runtime, &sleeper);
    wait_for_tally(&sleeper.begun, 1);
    EXPECT_EQ(0, pirn_runtime_shutdown(sleeper.rt, PIRN_NEVER, NULL));
    crew_join(&crew);
    EXPECT_EQ(PIRN_ESHUTDOWN, sleeper.rc);
    EXPECT_LE(pirn_now_ns() - begin, UINT64_C(10) * 1000 * 1000 * 1000);
    pirn_runtime_unref(sleeper.rt);
}
