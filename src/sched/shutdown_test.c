/* SPDX-License-Identifier: MIT */
/* src/sched/shutdown_test.c - the end of a runtime: in order, by force, and
 * with a driver that does not come back.
 *
 * "By force" is an expired deadline throughout, so that nothing here waits.
 * Deadlines that pass are in tests/stress/shutdown_deadline.c, blocking jobs in
 * tests/regress/shutdown_blocked_thread.c.
 */
#include <pirn/runtime.h>

#include <semaphore.h>

#include "sched/runtime_test.h"

static void expect_same_report(const pirn_report *a, const pirn_report *b)
{
    EXPECT_EQ(a->spawned, b->spawned);
    EXPECT_EQ(a->completed, b->completed);
    EXPECT_EQ(a->failed, b->failed);
    EXPECT_EQ(a->cancelled, b->cancelled);
    EXPECT_EQ(a->aborted, b->aborted);
    EXPECT_EQ(a->quarantined, b->quarantined);
    EXPECT_EQ(a->still_running, b->still_running);
    EXPECT_EQ(a->in_time, b->in_time);
    EXPECT_EQ(a->task_count, b->task_count);
    EXPECT(memcmp(a->tasks, b->tasks, sizeof a->tasks) == 0);
}

/* Shut down by force; nothing was in time. */
static pirn_report force_end(pirn_runtime *rt)
{
    pirn_report report;
    pirn_report again;

    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT(!report.in_time);
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_NEVER, &again));
    expect_same_report(&report, &again);
    return report;
}

static void name_fiber(pirn_runtime *rt, pirn_fiber_fn *fn, void *arg,
                       const char *name, pirn_task **out)
{
    const pirn_spawn_options options = {.runtime = rt, .name = name};

    EXPECT_EQ(0, pirn_go_with(fn, arg, &options, out));
}

static void spawn_named(pirn_runtime *rt, struct probe *probe, const char *name,
                        pirn_task **out)
{
    const pirn_spawn_options options = {.runtime = rt, .name = name};

    EXPECT_EQ(0, pirn_spawn(&probe->future, sizeof *probe, &options, out));
}

/* Goal: a runtime that did nothing ends at once, with an empty report.
 * Method: an expired deadline is enough. */
TEST(shutdown_of_an_idle_runtime_is_in_time)
{
    pirn_runtime *rt = runtime_new();
    pirn_report report;

    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT(report.in_time);
    EXPECT_EQ(0, report.spawned);
    EXPECT_EQ(0, report.task_count);
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL));
    pirn_runtime_unref(rt);
}

static int return_arg(void *arg)
{
    return *(int *)arg;
}

/* Goal: the report tells apart how tasks ended.
 * Method: known numbers of each kind; what waits is cancelled. */
TEST(shutdown_report_counts_outcomes)
{
    pirn_runtime *rt = runtime_new();
    int outcomes[2] = {3, -EIO};
    tally drops = {0};
    struct probe probe = probe_of(step_never, NULL, &drops);
    struct bell bell;
    pirn_task *failing;
    pirn_task *waiting;
    pirn_report report;

    bell_init(&bell);
    for (int i = 0; i < 5; i++)
        go(rt, return_arg, &outcomes[0]);
    failing = go_task(rt, return_arg, &outcomes[1]);
    EXPECT_EQ(-EIO, join_and_unref(failing));
    waiting = go_task(rt, hear_bell, &bell);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe,
                                &(pirn_spawn_options){.runtime = rt}, NULL));
    turn(rt);
    report = runtime_end(rt);
    EXPECT_EQ(10, report.spawned);
    EXPECT_EQ(5, report.completed);
    EXPECT_EQ(1, report.failed);
    EXPECT_EQ(4, report.cancelled);
    EXPECT_EQ(3, tally_of(&drops));
    EXPECT_EQ(1, tally_of(&bell.drops));
    EXPECT_EQ(-ECANCELED, join_and_unref(waiting));
}

struct cleanup {
    struct bell bell;
    tally steps;
    int spawn_rc;
    int sleep_rc;
};

/* Leave by the error path, which takes a while and still works. */
static int clean_up(void *arg)
{
    struct cleanup *cleanup = arg;
    struct bell_wait wait = bell_wait_of(&cleanup->bell);
    int rc = pirn_await(&wait.future, PIRN_NEVER);

    cleanup->spawn_rc = pirn_go(return_arg, &cleanup->spawn_rc);
    cleanup->sleep_rc = pirn_sleep(PIRN_NEVER);
    pirn_fiber_shield_begin();
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(0, pirn_yield());
        tally_up(&cleanup->steps);
    }
    pirn_fiber_shield_end();
    return rc;
}

/* Goal: admission ends before tasks are told; a told fiber cannot suspend, but
 * in a shield it can, and shutdown drives it to its end.
 * Method: the fiber writes down what its calls say. */
TEST(shutdown_drives_the_clean_up_of_fibers)
{
    pirn_runtime *rt = runtime_new();
    struct cleanup cleanup = {.spawn_rc = 1};

    bell_init(&cleanup.bell);
    go(rt, clean_up, &cleanup);
    turn(rt);
    EXPECT_EQ(1, runtime_end(rt).cancelled);
    EXPECT_EQ(PIRN_ESHUTDOWN, cleanup.spawn_rc);
    EXPECT_EQ(-ECANCELED, cleanup.sleep_rc);
    EXPECT_EQ(10, tally_of(&cleanup.steps));
}

static int first_run(void *arg)
{
    tally_up(arg);
    return pirn_sleep(PIRN_NEVER);
}

/* Goal: a fiber that was never run runs once, also by force, for it owns its
 * argument.
 * Method: shut down right after the spawn. */
TEST(shutdown_runs_a_new_fiber_once)
{
    tally runs = {0};
    pirn_runtime *rt = runtime_new();
    pirn_report report;

    go(rt, first_run, &runs);
    EXPECT_EQ(1, runtime_end(rt).cancelled);
    EXPECT_EQ(1, tally_of(&runs));

    rt = runtime_new();
    for (int i = 0; i < 1000; i++)
        go(rt, first_run, &runs);
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT_EQ(1000, report.cancelled);
    EXPECT_EQ(1001, tally_of(&runs));
    pirn_runtime_unref(rt);
}

struct pair {
    pirn_task *other;
    int rc;
    int outcome;
};

static int join_in_shield(void *arg)
{
    struct pair *pair = arg;
    int rc = pirn_sleep(PIRN_NEVER);

    pirn_fiber_shield_begin();
    pair->rc = pirn_task_join(pair->other, PIRN_NEVER, &pair->outcome);
    pirn_fiber_shield_end();
    return rc;
}

/* Goal: clean-up may wait for other tasks that end.
 * Method: a shielded fiber joins one that is only then cancelled. */
TEST(shutdown_lets_clean_up_join_other_tasks)
{
    pirn_runtime *rt = runtime_new();
    struct pair pair = {.rc = 1};
    struct bell bell;

    bell_init(&bell);
    go(rt, join_in_shield, &pair);
    pair.other = go_task(rt, hear_bell, &bell);
    turn(rt);
    EXPECT_EQ(2, runtime_end(rt).cancelled);
    EXPECT_EQ(0, pair.rc);
    EXPECT_EQ(-ECANCELED, pair.outcome);
    pirn_task_unref(pair.other);
}

/* Goal: shutdown overrides a suspension.
 * Method: suspend a task by its id. */
TEST(shutdown_ends_suspended_tasks)
{
    pirn_runtime *rt = runtime_new();
    pirn_task *task;

    spawn_probe(rt, step_never, NULL, &task);
    turn(rt);
    EXPECT_EQ(0, pirn_id_suspend(pirn_task_get_id(task)));
    EXPECT_EQ(1, runtime_end(rt).cancelled);
    EXPECT_EQ(-ECANCELED, join_and_unref(task));
}

static int ignore_cancellation(void *arg)
{
    for (;;) {
        int rc = pirn_sleep(pirn_after_ms(3600 * 1000));

        if (rc == -ECANCELED)
            tally_up(arg);
    }
    return 0;
}

static void count_abort(void *arg, const pirn_failure *failure)
{
    EXPECT_EQ(PIRN_EABORTED, failure->outcome);
    tally_up(arg);
}

/* Goal: fibers that ignore cancellation cannot keep a runtime: they are
 * aborted, quarantined, counted and reported to the hook, sixteen of them are
 * named, and none runs again.
 * Method: more than sixteen of them; `done` must not be called, for their
 * stacks stay. */
TEST(shutdown_aborts_fibers_that_ignore_it)
{
    size_t count = test_size(50, 1000, 1000);
    struct meter meter;
    tally failures = {0};
    tally refusals = {0};
    const pirn_runtime_options options = {.alloc = &meter.alloc,
                                          .on_failure = count_abort,
                                          .on_failure_arg = &failures};
    pirn_runtime *rt;
    pirn_report report;
    uint64_t seen;

    meter_init(&meter);
    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    for (size_t i = 0; i < count; i++)
        name_fiber(rt, ignore_cancellation, &refusals, "stubborn", NULL);
    turn(rt);
    report = force_end(rt);
    EXPECT_EQ(count, report.aborted);
    EXPECT_EQ(count, report.quarantined);
    EXPECT_EQ(count, report.spawned);
    EXPECT_EQ(count, tally_of(&failures));
    EXPECT_EQ(PIRN_REPORT_TASKS, report.task_count);
    EXPECT_STR_EQ("stubborn", report.tasks[PIRN_REPORT_TASKS - 1].name);
    seen = tally_of(&refusals);
    EXPECT_GE(seen, count);
    pirn_runtime_unref(rt);
    EXPECT_EQ(seen, tally_of(&refusals));
    EXPECT_EQ(0, tally_of(&meter.dones));
}

static int wait_in_shield(void *arg)
{
    int rc;

    pirn_fiber_shield_begin();
    rc = hear_bell(arg);
    pirn_fiber_shield_end();
    return rc;
}

/* Goal: at the deadline a shielded fiber is not resumed: its wait is withdrawn,
 * it is counted, and the report names it, its spawn and its wait.
 * Method: it waits for a bell; its joiner learns that it was aborted; ringing
 * later does nothing. */
TEST(shutdown_names_a_shielded_fiber_and_its_wait)
{
    pirn_runtime *rt = runtime_new();
    struct bell bell;
    pirn_task *task;
    pirn_report report;
    uint64_t polls;

    bell_init(&bell);
    name_fiber(rt, wait_in_shield, &bell, "talker", &task);
    turn(rt);
    report = force_end(rt);
    EXPECT_EQ(1, report.aborted);
    EXPECT_EQ(1, report.quarantined);
    EXPECT_EQ(0, report.still_running);
    EXPECT_EQ(1, report.task_count);
    EXPECT_EQ(pirn_task_get_id(task).value, report.tasks[0].id.value);
    EXPECT_STR_EQ("talker", report.tasks[0].name);
    EXPECT(strstr(report.tasks[0].site, "shutdown_test.c:") != NULL);
    EXPECT_STR_EQ("the bell", report.tasks[0].waits_for);
    EXPECT(!report.tasks[0].running);
    EXPECT_EQ(1, tally_of(&bell.drops));
    polls = tally_of(&bell.waiting);
    bell_ring(&bell);
    EXPECT_EQ(polls, tally_of(&bell.waiting));
    EXPECT_EQ(PIRN_EABORTED, join_and_unref(task));
    pirn_runtime_unref(rt);
}

static int panic(void *arg)
{
    (void)arg;
    pirn_panic("on purpose");
}

static void ignore_failure(void *arg, const pirn_failure *failure)
{
    EXPECT_EQ(PIRN_EPANIC, failure->outcome);
    EXPECT_STR_EQ("on purpose", failure->message);
    tally_up(arg);
}

/* Goal: a panic is a failure, is counted as quarantined, and does not make the
 * shutdown late.
 * Method: one. */
TEST(shutdown_report_counts_panics)
{
    tally failures = {0};
    const pirn_runtime_options options = {.on_failure = ignore_failure,
                                          .on_failure_arg = &failures};
    pirn_runtime *rt;
    pirn_report report;

    EXPECT_EQ(0, pirn_runtime_new(&options, &rt));
    go(rt, panic, NULL);
    turn(rt);
    EXPECT_EQ(1, tally_of(&failures));
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, &report));
    EXPECT_EQ(1, report.failed);
    EXPECT_EQ(1, report.quarantined);
    EXPECT_EQ(0, report.aborted);
    pirn_runtime_unref(rt);
}

/* Drivers that do not come back. */

struct jam {
    pirn_runtime *rt;
    sem_t begun;
    sem_t may_end;
    tally ends;
    int rc;
};

static void wait_for_sem(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

static void jam_init(struct jam *jam, struct meter *meter)
{
    meter_init(meter);
    *jam = (struct jam){.rt = runtime_on(meter)};
    sem_init(&jam->begun, 0, 0);
    sem_init(&jam->may_end, 0, 0);
}

static enum pirn_poll step_stick(struct probe *probe, pirn_cx *cx)
{
    struct jam *jam = probe->arg;

    (void)cx;
    sem_post(&jam->begun);
    wait_for_sem(&jam->may_end);
    tally_up(&jam->ends);
    probe->outcome = 42;
    return PIRN_READY;
}

static void turn_stuck(void *arg, size_t index)
{
    struct jam *jam = arg;

    (void)index;
    jam->rc = pirn_runtime_turn(jam->rt, PIRN_NEVER);
}

/* Goal: when another thread drives and is stuck in a task, shutdown returns at
 * its deadline and says so, with the task's name; the report then stays as it
 * is; the stuck driver, when it comes back, finishes cleanly and all memory
 * goes.
 * Method: the task waits until the report is in; five others wait for ever. */
TEST(shutdown_with_a_stuck_driver_returns_by_its_deadline)
{
    struct meter meter;
    struct jam jam;
    struct crew crew;
    tally drops = {0};
    struct probe waiting = probe_of(step_never, NULL, &drops);
    struct probe stuck = probe_of(step_stick, &jam, NULL);
    pirn_task *stuck_task;
    pirn_task *waiting_task;
    pirn_report report;
    pirn_report later;

    jam_init(&jam, &meter);
    for (int i = 0; i < 5; i++)
        spawn_named(jam.rt, &waiting, "idler", i == 0 ? &waiting_task : NULL);
    spawn_named(jam.rt, &stuck, "stuck", &stuck_task);
    crew_start(&crew, 1, turn_stuck, &jam);
    wait_for_sem(&jam.begun);
    report = force_end(jam.rt);
    EXPECT_EQ(6, report.spawned);
    EXPECT_EQ(1, report.still_running);
    EXPECT_EQ(5, report.aborted);
    EXPECT_EQ(6, report.task_count);
    for (uint32_t i = 0; i < report.task_count; i++) {
        bool is_stuck = strcmp(report.tasks[i].name, "stuck") == 0;

        EXPECT_EQ(is_stuck, report.tasks[i].running);
    }
    sem_post(&jam.may_end);
    crew_join(&crew);
    EXPECT_EQ(1, tally_of(&jam.ends));
    EXPECT_GE(jam.rc, 0);
    EXPECT_EQ(5, tally_of(&drops));
    EXPECT_EQ(42, join_and_unref(stuck_task));
    EXPECT_EQ(PIRN_EABORTED, join_and_unref(waiting_task));
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(jam.rt, PIRN_NEVER, &later));
    expect_same_report(&report, &later);
    pirn_runtime_unref(jam.rt);
    EXPECT_EQ(1, tally_of(&meter.dones));
}

/* Goal: the same when the last reference is gone before the driver is back: it
 * keeps the memory.
 * Method: unref while it is stuck. */
TEST(shutdown_with_a_stuck_driver_that_outlives_the_references)
{
    struct meter meter;
    struct jam jam;
    struct crew crew;

    jam_init(&jam, &meter);
    spawn_probe(jam.rt, step_stick, &jam, NULL);
    crew_start(&crew, 1, turn_stuck, &jam);
    wait_for_sem(&jam.begun);
    pirn_runtime_unref(jam.rt);
    EXPECT_EQ(0, tally_of(&meter.dones));
    sem_post(&jam.may_end);
    crew_join(&crew);
    EXPECT_EQ(1, tally_of(&jam.ends));
    EXPECT_EQ(1, tally_of(&meter.dones));
}

static void block_on_stuck(void *arg, size_t index)
{
    struct jam *jam = arg;
    struct probe probe = probe_of(step_stick, jam, NULL);

    (void)index;
    jam->rc = pirn_block_on(jam->rt, &probe.future, PIRN_NEVER);
}

/* Goal: a driver may be stuck without any task; the report invents none.
 * Method: the future of a block_on does not come back. */
TEST(shutdown_with_a_driver_stuck_outside_tasks)
{
    struct meter meter;
    struct jam jam;
    struct crew crew;
    pirn_report report;

    jam_init(&jam, &meter);
    crew_start(&crew, 1, block_on_stuck, &jam);
    wait_for_sem(&jam.begun);
    report = force_end(jam.rt);
    EXPECT_EQ(0, report.spawned);
    EXPECT_EQ(0, report.aborted);
    EXPECT_EQ(0, report.task_count);
    sem_post(&jam.may_end);
    crew_join(&crew);
    EXPECT_EQ(0, jam.rc);
    pirn_runtime_unref(jam.rt);
    EXPECT_EQ(1, tally_of(&meter.dones));
}

struct idle_driver {
    pirn_runtime *rt;
    struct bell bell;
    int rc;
};

static void block_on_bell(void *arg, size_t index)
{
    struct idle_driver *driver = arg;

    (void)index;
    driver->rc = bell_block_on(driver->rt, &driver->bell, PIRN_NEVER);
}

/* Goal: a driver that only sleeps is not taken for a stuck one with tasks: the
 * numbers add up even when the deadline has passed already.
 * Method: an expired deadline while another thread sleeps in block_on. */
TEST(shutdown_by_force_of_a_sleeping_driver_adds_up)
{
    struct idle_driver driver = {.rt = runtime_new()};
    struct crew crew;
    pirn_report report;
    int rc;

    bell_init(&driver.bell);
    crew_start(&crew, 1, block_on_bell, &driver);
    wait_for_tally(&driver.bell.waiting, 1);
    rc = pirn_runtime_shutdown(driver.rt, PIRN_EXPIRED, &report);
    crew_join(&crew);
    EXPECT_EQ(rc == 0, report.in_time);
    EXPECT_EQ(0, report.aborted);
    EXPECT_EQ(0, report.task_count);
    EXPECT_EQ(PIRN_ESHUTDOWN, driver.rc);
    EXPECT_EQ(1, tally_of(&driver.bell.drops));
    pirn_runtime_unref(driver.rt);
}

static void end_elsewhere(void *arg, size_t index)
{
    pirn_report report;

    (void)index;
    EXPECT_EQ(0, pirn_runtime_shutdown(arg, PIRN_NEVER, &report));
    EXPECT_EQ(2, report.cancelled);
}

/* Goal: a bound runtime may be shut down by another thread between two turns.
 * Method: tasks of both kinds wait. */
TEST(shutdown_of_a_bound_runtime_by_another_thread)
{
    pirn_runtime *rt = runtime_new();
    struct bell bell;

    bell_init(&bell);
    go(rt, hear_bell, &bell);
    spawn_probe(rt, step_never, NULL, NULL);
    turn(rt);
    on_another_thread(end_elsewhere, rt);
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_runtime_turn(rt, PIRN_EXPIRED));
    pirn_runtime_unref(rt);
}

static void join_before_end(void *arg, size_t index)
{
    pirn_task *task = arg;
    int outcome = 0;

    (void)index;
    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    EXPECT_EQ(-ECANCELED, outcome);
}

/* Goal: a plain thread that drives while it waits for a task gives the seat to
 * a shutdown and gets its answer.
 * Method: it joins a task that waits for a bell. */
TEST(shutdown_takes_over_from_a_waiting_thread)
{
    pirn_runtime *rt = runtime_new();
    struct bell bell;
    struct crew crew;
    pirn_task *task;

    bell_init(&bell);
    task = go_task(rt, hear_bell, &bell);
    crew_start(&crew, 1, join_before_end, task);
    wait_for_tally(&bell.waiting, 1);
    EXPECT_EQ(1, runtime_end(rt).cancelled);
    crew_join(&crew);
    pirn_task_unref(task);
}

static void end_too(void *arg, size_t index)
{
    pirn_report *report = arg;

    (void)index;
    EXPECT_EQ(0, pirn_runtime_shutdown(
                     (pirn_runtime *)(void *)(uintptr_t)report->spawned,
                     PIRN_NEVER, report));
}

/* Goal: several threads may shut down at once; all get the same report.
 * Method: four of them, with a hundred tasks to cancel. */
TEST(shutdown_by_several_threads_at_once)
{
    pirn_runtime *rt = runtime_new();
    pirn_report reports[4] = {{0}};
    struct crew crews[4];

    for (int i = 0; i < 100; i++)
        spawn_probe(rt, step_never, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        reports[i].spawned = (uintptr_t)rt;
        crew_start(&crews[i], 1, end_too, &reports[i]);
    }
    for (int i = 0; i < 4; i++)
        crew_join(&crews[i]);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(100, reports[i].cancelled);
        expect_same_report(&reports[0], &reports[i]);
    }
    pirn_runtime_unref(rt);
}
