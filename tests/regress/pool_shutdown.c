/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_shutdown.c - the end of many workers, by one deadline.
 */
#include <pirn/blocking.h>
#include <pirn/io.h>

#include <unistd.h>

#include "engine/pool_fixture.h"
#include "engine/socket_peer.h"

enum { THREADS = 8 };

static int sleep_an_hour(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_ms(3600 * 1000));
}

static int read_for_ever(void *arg)
{
    pirn_tcp *conn = arg;
    char byte;
    ssize_t n = pirn_tcp_read(conn, &byte, 1, PIRN_NEVER);

    pirn_tcp_close(conn);
    return (int)n;
}

static int yield_for_ever(void *arg)
{
    int rc;

    (void)arg;
    while ((rc = pirn_yield()) == 0)
        continue;
    return rc;
}

/* Goal: everything that waits is cancelled and ends in time, and the report says
 * so.
 * Method: sleeps, reads, yields, bells, stackless tasks; pools of 1 to 4; the
 * memory is all back. */
TEST(pool_shutdown_ends_all_in_time)
{
    enum { EACH = 20, KINDS = 5 };

    for (uint32_t workers = 1; workers <= 4; workers++) {
        struct bell bells[EACH];
        int peers[EACH];
        struct meter meter;
        pirn_runtime *rt;
        pirn_report report;

        meter_init(&meter);
        rt = pool_on(&meter, workers);
        for (int i = 0; i < EACH; i++) {
            bell_init(&bells[i]);
            go(rt, sleep_an_hour, NULL);
            go(rt, read_for_ever, peer_adopted(&peers[i]));
            go(rt, yield_for_ever, NULL);
            go(rt, hear_bell, &bells[i]);
            spawn_probe(rt, step_never, NULL, NULL);
        }
        report = runtime_end(rt);
        EXPECT_EQ(KINDS * EACH, report.spawned);
        EXPECT_EQ(KINDS * EACH, report.cancelled);
        EXPECT_EQ(0, report.task_count);
        for (int i = 0; i < EACH; i++)
            close(peers[i]);
        wait_for_tally(&meter.dones, 1);
        EXPECT_EQ(0, tally_of(&meter.pieces));
    }
}

struct ignorer {
    tally begun;
    tally rounds;
};

/* A fiber that does not listen. */
static int ignore_cancel(void *arg)
{
    struct ignorer *ignorer = arg;
    int rc = 0;

    tally_up(&ignorer->begun);
    while (rc == 0 || rc == -ECANCELED) {
        rc = pirn_sleep(pirn_after_ms(1));
        tally_up(&ignorer->rounds);
    }
    return rc;
}

/* Goal: fibers that ignore cancellation are given up at the deadline: no longer
 * resumed, quarantined, counted and named.
 * Method: they wait again and again; a short deadline; others end in order. */
TEST(pool_shutdown_gives_up_who_ignores_it)
{
    enum { IGNORERS = 5 };
    /* On a busy machine a fiber may go on after the shutdown. */
    static struct ignorer ignorers[5];

    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        struct ignorer *ignorer = &ignorers[workers];
        pirn_runtime *rt = pool_new(workers);
        const pirn_spawn_options options = {.runtime = rt, .name = "deaf"};
        pirn_report report;
        uint64_t rounds;

        for (int i = 0; i < IGNORERS; i++)
            EXPECT_EQ(0, pirn_go_with(ignore_cancel, ignorer, &options, NULL));
        go(rt, sleep_an_hour, NULL);
        wait_for_tally(&ignorer->begun, IGNORERS);
        EXPECT_EQ(-ETIMEDOUT,
                  pirn_runtime_shutdown(rt, pirn_after_ms(100), &report));
        rounds = tally_of(&ignorer->rounds);
        EXPECT(!report.in_time);
        /* On a busy machine one may get no time to notice. */
        EXPECT_EQ(IGNORERS, report.aborted + report.still_running);
        EXPECT_EQ(report.aborted, report.quarantined);
        EXPECT_EQ(1, report.cancelled);
        EXPECT_EQ(IGNORERS, report.task_count);
        for (uint32_t i = 0; i < report.task_count; i++)
            EXPECT_STR_EQ("deaf", report.tasks[i].name);
        pirn_runtime_unref(rt);
        if (report.still_running == 0)
            EXPECT_EQ(rounds, tally_of(&ignorer->rounds));
    }
}

/* A fiber that waits for a bell and cannot be reached by a cancellation. */
static int hear_shielded(void *arg)
{
    struct bell *bell = arg;
    int rc;

    pirn_fiber_shield_begin();
    rc = hear_bell(bell);
    pirn_fiber_shield_end();
    return rc;
}

/* Goal: the report says what the tasks waited for that were given up.
 * Method: a shielded fiber, pools of 1 to 4; it is dropped by a worker. */
TEST(pool_shutdown_says_what_a_task_waited_for)
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        pirn_runtime *rt = pool_new(workers);
        pirn_report report;
        struct bell bell;

        bell_init(&bell);
        go(rt, hear_shielded, &bell);
        wait_for_tally(&bell.waiting, 1);
        EXPECT_EQ(-ETIMEDOUT,
                  pirn_runtime_shutdown(rt, pirn_after_ms(20), &report));
        EXPECT_EQ(1, report.task_count);
        EXPECT_STR_EQ("the bell", report.tasks[0].waits_for);
        EXPECT_EQ(1, tally_of(&bell.drops));
        pirn_runtime_unref(rt);
    }
}

/* A stackless task that holds its worker in its first poll. */
static enum pirn_poll step_hold(struct probe *probe, pirn_cx *cx)
{
    struct hog *hog = probe->arg;

    (void)cx;
    (void)hog_hold(hog);
    return probe->outcome == 1 ? PIRN_READY : PIRN_PENDING;
}

static void spawn_hog(pirn_runtime *rt, struct hog *hog, bool returns)
{
    const pirn_spawn_options options = {.runtime = rt, .name = "hog"};
    struct probe probe = probe_of(step_hold, hog, NULL);

    probe.outcome = returns;
    EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    wait_for_tally(&hog->holding, 1);
}

static void end_with_stuck(uint32_t workers, bool returns)
{
    enum { OTHERS = 30 };
    struct hog hog = {.holding = {0}};
    struct meter meter;
    tally drops = {0};
    pirn_report report;
    pirn_runtime *rt;
    int hogs = 0;

    meter_init(&meter);
    rt = pool_on(&meter, workers);
    spawn_hog(rt, &hog, returns);
    for (int i = 0; i < OTHERS; i++) {
        const pirn_spawn_options options = {.runtime = rt};
        struct probe probe = probe_of(step_never, NULL, &drops);

        EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    }
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, pirn_after_ms(20), &report));
    EXPECT(!report.in_time);
    EXPECT_EQ(1, report.still_running);
    EXPECT_EQ(OTHERS, report.cancelled + report.aborted);
    EXPECT_EQ(OTHERS, tally_of(&drops));
    EXPECT_EQ(OTHERS + 1, report.spawned);
    EXPECT_GE(report.task_count, 1);
    for (uint32_t i = 0; i < report.task_count; i++) {
        bool is_hog = strcmp(report.tasks[i].name, "hog") == 0;

        EXPECT_EQ(is_hog, report.tasks[i].running);
        hogs += is_hog;
    }
    EXPECT_EQ(1, hogs);
    pirn_runtime_unref(rt);
    EXPECT_EQ(0, tally_of(&meter.dones));
    tally_up(&hog.let_go);
    wait_for_tally(&meter.dones, 1);
    EXPECT_EQ(0, tally_of(&meter.pieces));
}

/* Goal: a worker that is stuck in a task is left behind at the deadline: the task
 * is named, the others are ended by the workers that are left or, if there are
 * none, by shutdown itself; when it comes back it gives the memory back, once.
 * Method: pools of 1 and 3; the task then ends, or waits. */
TEST(pool_shutdown_leaves_a_stuck_worker_behind)
{
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        end_with_stuck(workers, true);
        end_with_stuck(workers, false);
    }
}

struct family {
    struct hog hog;
    tally drops;
    uint32_t children;
};

/* Pin tasks to this worker, and hold it. */
static int pin_and_hold(void *arg)
{
    struct family *family = arg;
    const pirn_spawn_options options = {.name = "pinned", .pinned = true};

    for (uint32_t i = 0; i < family->children; i++) {
        struct probe probe = probe_of(step_never, NULL, &family->drops);

        EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    }
    return hog_hold(&family->hog);
}

/* Goal: pinned tasks of a worker that does not come back are counted; only that
 * thread may drop them, and it does.
 * Method: a fiber pins a few and holds the worker; pools of 1 and 3. */
TEST(pool_shutdown_counts_the_pinned_of_a_stuck_worker)
{
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        struct family family = {.children = 5};
        struct meter meter;
        pirn_report report;
        pirn_runtime *rt;
        uint32_t pinned = 0;

        meter_init(&meter);
        rt = pool_on(&meter, workers);
        go(rt, pin_and_hold, &family);
        wait_for_tally(&family.hog.holding, 1);
        EXPECT_EQ(-ETIMEDOUT,
                  pirn_runtime_shutdown(rt, pirn_after_ms(1), &report));
        EXPECT_EQ(6, report.spawned);
        EXPECT_EQ(1, report.still_running);
        EXPECT_EQ(5, report.aborted);
        EXPECT_EQ(0, report.cancelled);
        EXPECT_EQ(6, report.task_count);
        for (uint32_t i = 0; i < report.task_count; i++) {
            bool is_pinned = strcmp(report.tasks[i].name, "pinned") == 0;

            EXPECT_EQ(!is_pinned, report.tasks[i].running);
            pinned += is_pinned;
        }
        EXPECT_EQ(5, pinned);
        pirn_runtime_unref(rt);
        EXPECT_EQ(0, tally_of(&family.drops));
        tally_up(&family.hog.let_go);
        wait_for_tally(&meter.dones, 1);
        EXPECT_EQ(5, tally_of(&family.drops));
        EXPECT_EQ(0, tally_of(&meter.pieces));
    }
}

/* A stuck fiber that comes back to a runtime that has ended. */
static int hold_and_go_on(void *arg)
{
    struct hog *hog = arg;
    struct bell bell;
    int rc = hog_hold(hog);

    bell_init(&bell);
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_go(sleep_an_hour, NULL));
    EXPECT(pirn_sleep(pirn_after_ms(3600 * 1000)) < 0);
    EXPECT(hear_bell(&bell) < 0);
    tally_up(&hog->holding);
    return rc;
}

/* Goal: a fiber that comes back to a runtime that has ended may end; what it asks
 * of it is refused.
 * Method: it was stuck; then it tries to spawn, to sleep and to wait. */
TEST(pool_shutdown_stuck_fiber_may_end)
{
    struct hog hog = {.holding = {0}};
    struct meter meter;
    pirn_report report;
    pirn_runtime *rt;

    meter_init(&meter);
    rt = pool_on(&meter, 2);
    go(rt, hold_and_go_on, &hog);
    wait_for_tally(&hog.holding, 1);
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT_EQ(1, report.still_running);
    pirn_runtime_unref(rt);
    tally_up(&hog.let_go);
    wait_for_tally(&hog.holding, 2);
    wait_for_tally(&meter.dones, 1);
    EXPECT_EQ(0, tally_of(&meter.pieces));
}

struct recluse {
    struct hog hog;
    tally drops;
};

/* Without a worker, and deaf, it waits for what never comes. */
static int block_and_wait(void *arg)
{
    struct recluse *recluse = arg;
    struct probe probe = probe_of(step_never, NULL, &recluse->drops);

    pirn_fiber_shield_begin();
    EXPECT_EQ(0, pirn_block_in_place(hog_hold, &recluse->hog));
    return pirn_await(&probe.future, PIRN_NEVER);
}

/* Goal: what a fiber waits for that comes back from blocking in place after the
 * end is given up, as for every other that is left at the deadline.
 * Method: it blocks beyond the deadline and then waits; the drop of what it waits
 * for is counted. */
TEST(pool_shutdown_gives_up_who_blocks_in_place)
{
    static struct recluse recluse;
    pirn_report report;
    pirn_runtime *rt = pool_new(2);

    go(rt, block_and_wait, &recluse);
    wait_for_tally(&recluse.hog.holding, 1);
    EXPECT_EQ(-ETIMEDOUT, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &report));
    EXPECT_EQ(1, report.still_running);
    EXPECT_EQ(0, tally_of(&recluse.drops));
    tally_up(&recluse.hog.let_go);
    wait_for_tally(&recluse.drops, 1);
    pirn_runtime_unref(rt);
}

/* Threads that do everything at once while the runtime ends. */
struct unrest {
    pirn_runtime *rt;
    struct bell bells[THREADS];
    tally running;
    tally stop;
    tally spawned;
    tally ended; /* runs, or drops before the first */
};

static int count_end(void *arg)
{
    struct unrest *unrest = arg;

    tally_up(&unrest->ended);
    return 0;
}

/* A task each: spawned, cancelled or not, joined. */
static int disturb_once(struct unrest *unrest, uint64_t round)
{
    const pirn_spawn_options options = {.runtime = unrest->rt, .name = "brief"};
    struct probe probe = probe_of(step_never, NULL, &unrest->ended);
    pirn_task *task = NULL;
    int outcome;
    int rc;

    if (round % 3 == 0)
        rc = pirn_go_with(count_end, unrest, &options, &task);
    else
        rc = pirn_spawn(&probe.future, sizeof probe, &options, &task);
    if (rc < 0) {
        EXPECT_EQ(PIRN_ESHUTDOWN, rc);
        EXPECT_PTR_EQ(NULL, task);
        return rc;
    }
    tally_up(&unrest->spawned);
    if (round % 3 == 1)
        pirn_task_cancel(task);
    if (round % 3 != 2) {
        EXPECT_EQ(0, pirn_task_join(task, pirn_after_ms(RESCUE_MS), &outcome));
        EXPECT(outcome == 0 || outcome == -ECANCELED ||
               outcome == PIRN_EABORTED);
    }
    pirn_task_unref(task);
    return 0;
}

static void disturb(void *arg, size_t index)
{
    struct unrest *unrest = arg;

    tally_up(&unrest->running);
    for (uint64_t round = index;; round++) {
        bell_ring(&unrest->bells[index]);
        if (disturb_once(unrest, round) < 0)
            break;
    }
    while (tally_of(&unrest->stop) == 0) {
        bell_ring(&unrest->bells[index]);
        sched_yield();
    }
}

/* Goal: spawn, wake, join and cancel from many threads meet the end of the
 * runtime: each call works or says that it has ended; every task that was
 * spawned ends once, or is counted as aborted; the memory is back.
 * Method: eight threads; deadlines with room and expired ones. */
TEST(pool_shutdown_against_everything)
{
    size_t rounds = test_size(6, 60, 2000);

    for (size_t i = 0; i < rounds; i++) {
        struct unrest unrest = {.stop = {0}};
        struct meter meter;
        struct crew crew;
        pirn_report report;
        int rc;

        meter_init(&meter);
        unrest.rt = pool_on(&meter, (uint32_t)(1 + i % 4));
        for (int t = 0; t < THREADS; t++) {
            bell_init(&unrest.bells[t]);
            go(unrest.rt, hear_bell, &unrest.bells[t]);
        }
        crew_start(&crew, THREADS, disturb, &unrest);
        wait_for_tally(&unrest.running, THREADS);
        rc = pirn_runtime_shutdown(
            unrest.rt, i % 2 == 0 ? PIRN_NEVER : PIRN_EXPIRED, &report);
        EXPECT(rc == 0 || (i % 2 == 1 && rc == -ETIMEDOUT));
        tally_up(&unrest.stop);
        crew_join(&crew);
        EXPECT_EQ(tally_of(&unrest.spawned) + THREADS, report.spawned);
        /* An aborted fiber may not even have begun. */
        EXPECT_LE(tally_of(&unrest.ended), tally_of(&unrest.spawned));
        EXPECT_GE(tally_of(&unrest.ended) + report.aborted +
                      report.still_running,
                  tally_of(&unrest.spawned));
        /* With so many threads a worker may get no time until then. */
        EXPECT_EQ(report.spawned, report.completed + report.cancelled +
                                      report.aborted + report.still_running);
        pirn_runtime_unref(unrest.rt);
        if (report.quarantined > 0)
            continue;
        wait_for_tally(&meter.dones, 1);
        EXPECT_EQ(0, tally_of(&meter.pieces));
    }
}

struct enders {
    pirn_runtime *rt;
    pirn_report reports[THREADS];
    int results[THREADS];
};

static void end_it(void *arg, size_t index)
{
    struct enders *enders = arg;

    enders->results[index] = pirn_runtime_shutdown(
        enders->rt, index % 2 == 0 ? PIRN_NEVER : PIRN_EXPIRED,
        &enders->reports[index]);
}

/* Goal: several threads that end a runtime get one answer.
 * Method: all at once; tasks that end when cancelled. */
TEST(pool_shutdown_by_many_at_once)
{
    for (size_t i = 0; i < test_size(3, 20, 1000); i++) {
        struct enders enders = {.rt = pool_new(2)};
        struct crew crew;

        for (int t = 0; t < 20; t++)
            go(enders.rt, sleep_an_hour, NULL);
        crew_start(&crew, THREADS, end_it, &enders);
        crew_join(&crew);
        for (int t = 0; t < THREADS; t++) {
            EXPECT_EQ(enders.results[0], enders.results[t]);
            EXPECT_EQ(0, memcmp(&enders.reports[0], &enders.reports[t],
                                sizeof enders.reports[0]));
        }
        EXPECT_EQ(20, enders.reports[0].spawned);
        pirn_runtime_unref(enders.rt);
    }
}

/* Sixteen threads that wake without pause. */
struct ruin {
    pirn_waker wakers[CREW_MAX];
    tally running;
    tally stop;
    pirn_task_id id;
};

static enum pirn_poll step_give_wakers(struct probe *probe, pirn_cx *cx)
{
    struct ruin *ruin = probe->arg;

    if (probe->polls > 0)
        return PIRN_PENDING;
    for (int i = 0; i < CREW_MAX; i++)
        ruin->wakers[i] = pirn_waker_clone(cx->waker);
    tally_up(&ruin->running);
    return PIRN_PENDING;
}

static void wake_always(void *arg, size_t index)
{
    struct ruin *ruin = arg;
    int rc = 0;

    tally_up(&ruin->running);
    while (tally_of(&ruin->stop) == 0) {
        pirn_waker_wake_by_ref(&ruin->wakers[index]);
        if (index % 4 == 0)
            rc = pirn_id_wake(ruin->id);
        EXPECT(rc == 0 || rc == -ESRCH);
        sched_yield();
    }
    pirn_waker_wake(ruin->wakers[index]);
}

/* Goal: waking while a pool is destroyed touches nothing that is gone.
 * Method: sixteen threads wake; the last reference goes with and without a
 * shutdown before; the counting allocator says that all is back, once. */
TEST(pool_destroyed_while_sixteen_threads_wake)
{
    size_t rounds = test_size(6, 50, 1000);

    for (size_t i = 0; i < rounds; i++) {
        struct ruin ruin = {.stop = {0}};
        pirn_task *task = NULL;
        struct meter meter;
        struct crew crew;
        pirn_runtime *rt;

        meter_init(&meter);
        rt = pool_on(&meter, (uint32_t)(1 + i % 3));
        spawn_probe(rt, step_give_wakers, &ruin, &task);
        ruin.id = pirn_task_get_id(task);
        pirn_task_unref(task);
        wait_for_tally(&ruin.running, 1);
        crew_start(&crew, CREW_MAX, wake_always, &ruin);
        wait_for_tally(&ruin.running, 1 + CREW_MAX);
        if (i % 2 == 0)
            EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));
        pirn_runtime_unref(rt);
        tally_up(&ruin.stop);
        crew_join(&crew);
        wait_for_tally(&meter.dones, 1);
        EXPECT_EQ(0, tally_of(&meter.pieces));
    }
}
