/* SPDX-License-Identifier: MIT */
/* src/sched/pool_test.c - runtimes with workers: made, asked, waited for, ended.
 */
#include "engine/pool_fixture.h"

#include "sys/cpu.h"

/* Goal: a pool has the workers that were asked for, and says so.
 * Method: none, one, a few, as many as the machine has; end each at once. */
TEST(pool_has_the_workers_asked_for)
{
    static const uint32_t asked[] = {0, 1, 2, 4, 33, PIRN_WORKERS_AUTO};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        uint32_t expected = asked[i] == PIRN_WORKERS_AUTO
                                ? pirn__cpu_workers().count
                                : asked[i];
        pirn_runtime *rt = pool_new(asked[i]);
        pirn_worker_info worker;
        pirn_runtime_info info;

        pirn_runtime_get_info(rt, &info);
        EXPECT_EQ(expected, info.workers);
        for (uint32_t w = 0; w < expected; w++)
            EXPECT_EQ(0, pirn_runtime_get_worker(rt, w, &worker));
        EXPECT_EQ(-EINVAL, pirn_runtime_get_worker(rt, expected, &worker));
        EXPECT_EQ(-EINVAL, pirn_runtime_get_worker(rt, UINT32_MAX, &worker));
        EXPECT_EQ(-EINVAL, pirn_runtime_get_worker(rt, 0, NULL));
        EXPECT_EQ(-EINVAL, pirn_runtime_get_worker(NULL, 0, &worker));
        runtime_end(rt);
    }
}

/* Goal: more workers than may be are refused.
 * Method: the first number beyond, and the last before "automatic". */
TEST(pool_too_many_workers_refused)
{
    static const uint32_t counts[] = {513, PIRN_WORKERS_AUTO - 1, UINT32_MAX};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const pirn_runtime_options options = {.workers = counts[i]};
        pirn_runtime *rt = (pirn_runtime *)(void *)&counts;

        EXPECT_EQ(-EINVAL, pirn_runtime_new(&options, &rt));
        EXPECT_PTR_EQ(NULL, rt);
    }
}

/* Goal: a pool drives itself: nobody can turn it, and it has no descriptor to
 * watch and no deadline to keep.
 * Method: the three calls; and the clock of tests, which it has not either. */
TEST(pool_cannot_be_driven_by_a_host)
{
    pirn_runtime *rt = pool_new(2);

    EXPECT_EQ(-EPERM, pirn_runtime_clock_pause(rt));
    EXPECT_EQ(-EPERM, pirn_runtime_clock_advance(rt, 1));
    EXPECT_EQ(-EPERM, pirn_runtime_clock_resume(rt));

    EXPECT_EQ(-EPERM, pirn_runtime_turn(rt, PIRN_NEVER));
    EXPECT_EQ(-EPERM, pirn_runtime_fd(rt));
    EXPECT_EQ(PIRN_NEVER.ns, pirn_runtime_next_deadline(rt).ns);
    runtime_end(rt);
}

/* What the hooks of a pool have seen. */
struct hooks {
    tally starts[8];
    tally stops[8];
};

static void note_start(void *arg, uint32_t worker)
{
    struct hooks *hooks = arg;

    tally_up(&hooks->starts[worker]);
}

static void note_stop(void *arg, uint32_t worker)
{
    struct hooks *hooks = arg;

    EXPECT_EQ(1, tally_of(&hooks->starts[worker]));
    tally_up(&hooks->stops[worker]);
}

/* Goal: each worker's thread calls the hooks first and last.
 * Method: count them; after shutdown all are over. */
TEST(pool_hooks_are_called_once_a_thread)
{
    struct hooks hooks = {.starts = {{0}}};
    pirn_runtime *rt =
        pool_with(&(pirn_runtime_options){.workers = 3,
                                          .on_thread_start = note_start,
                                          .on_thread_stop = note_stop,
                                          .hook_arg = &hooks});

    for (int i = 0; i < 3; i++) {
        wait_for_tally(&hooks.starts[i], 1);
        EXPECT_EQ(0, tally_of(&hooks.stops[i]));
    }
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));
    for (int i = 0; i < 8; i++) {
        EXPECT_EQ(i < 3, tally_of(&hooks.starts[i]));
        EXPECT_EQ(i < 3, tally_of(&hooks.stops[i]));
    }
    pirn_runtime_unref(rt);
}

static int count_run(void *arg)
{
    tally_up(arg);
    return 0;
}

static enum pirn_poll step_count_run(struct probe *probe, pirn_cx *cx)
{
    (void)cx;
    tally_up(probe->arg);
    return PIRN_READY;
}

/* Spawn more, of both kinds. */
static int spawn_more(void *arg)
{
    struct probe probe = probe_of(step_count_run, arg, NULL);

    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(0, pirn_go(count_run, arg));
        EXPECT_EQ(0, pirn_spawn(&probe.future, sizeof probe, NULL, NULL));
    }
    tally_up(arg);
    return pirn_yield();
}

/* Goal: whatever is spawned, from outside and inside, of both kinds, runs once
 * and is accounted.
 * Method: some spawn more; count the runs and look at the report. */
TEST(pool_runs_everything_once)
{
    enum { PARENTS = 50, EACH = 21 };

    for (uint32_t workers = 1; workers <= 4; workers++) {
        pirn_runtime *rt = pool_new(workers);
        tally runs = {0};
        pirn_report report;

        for (int i = 0; i < PARENTS; i++) {
            go(rt, spawn_more, &runs);
            spawn_probe(rt, step_count_run, &runs, NULL);
        }
        wait_for_tally(&runs, PARENTS * (EACH + 1));
        report = runtime_end(rt);
        EXPECT_EQ(PARENTS * (EACH + 1), tally_of(&runs));
        EXPECT_EQ(PARENTS * (EACH + 1), report.spawned);
        /* A parent may have met the shutdown in its yield. */
        EXPECT_EQ(report.spawned, report.completed + report.cancelled);
    }
}

static int nap(void *arg)
{
    (void)arg;
    return pirn_sleep(pirn_after_us(50));
}

/* Goal: the counters tell what has happened.
 * Method: polls of tasks that are counted here; sleeps that park the workers and
 * wake them. */
TEST(pool_counters_move)
{
    enum { NAPS = 20 };
    pirn_runtime *rt = pool_new(2);
    pirn_worker_info sum;
    pirn_runtime_info info;

    for (int i = 0; i < NAPS; i++)
        EXPECT_EQ(0, join_and_unref(go_task(rt, nap, NULL)));
    sum = pool_counters(rt);
    EXPECT_GE(sum.polls, 2 * NAPS);
    EXPECT_LE(sum.polls, 3 * NAPS);
    EXPECT_GE(sum.parks, NAPS);
    EXPECT_EQ(0, sum.overflows);
    EXPECT_EQ(0, sum.yields);
    EXPECT_EQ(0, sum.queued);
    pirn_runtime_get_info(rt, &info);
    EXPECT_EQ(sum.polls, info.polls);
    EXPECT_EQ(NAPS, info.spawned);
    EXPECT_EQ(0, info.tasks);
    EXPECT_EQ(0, info.timers);
    runtime_end(rt);
}

struct meeting {
    tally arrived;
    uint64_t wanted;
};

static int meet(void *arg)
{
    struct meeting *meeting = arg;

    tally_up(&meeting->arrived);
    /* Only another worker can bring the others. */
    wait_for_tally(&meeting->arrived, meeting->wanted);
    return 0;
}

static int spawn_meeting(void *arg)
{
    struct meeting *meeting = arg;

    for (uint64_t i = 1; i < meeting->wanted; i++)
        EXPECT_EQ(0, pirn_go(meet, meeting));
    return meet(arg);
}

/* Goal: what a busy worker has spawned is fetched by the others, and that is
 * counted.
 * Method: tasks that wait for each other without giving their workers back. */
TEST(pool_idle_workers_come_to_help)
{
    NEEDS_STEALING();
    for (uint32_t workers = 2; workers <= 4; workers++) {
        struct meeting meeting = {.wanted = workers};
        pirn_runtime *rt = pool_new(workers);
        pirn_worker_info sum;

        EXPECT_EQ(0, join_and_unref(go_task(rt, spawn_meeting, &meeting)));
        EXPECT_EQ(workers, tally_of(&meeting.arrived));
        sum = pool_counters(rt);
        EXPECT_GE(sum.steals + sum.rescues, workers - 1);
        runtime_end(rt);
    }
}

static int ring_bell(void *arg)
{
    bell_ring(arg);
    return 0;
}

/* Goal: a plain thread waits for a future while the workers run the rest.
 * Method: ready, woken by a task, and past its deadline. */
TEST(pool_block_on_waits)
{
    pirn_runtime *rt = pool_new(2);
    struct bell bell;
    uint64_t start;

    bell_init(&bell);
    bell_ring(&bell);
    EXPECT_EQ(0, bell_block_on(rt, &bell, PIRN_EXPIRED));
    EXPECT_EQ(-ETIMEDOUT, bell_block_on(rt, &bell, PIRN_EXPIRED));
    EXPECT_EQ(1, tally_of(&bell.drops));
    start = pirn_now_ns();
    EXPECT_EQ(-ETIMEDOUT, bell_block_on(rt, &bell, pirn_after_us(500)));
    EXPECT_GE(pirn_now_ns(), start + 500000);
    EXPECT_EQ(2, tally_of(&bell.drops));
    for (int i = 0; i < 20; i++) {
        go(rt, ring_bell, &bell);
        EXPECT_EQ(0, bell_block_on(rt, &bell, pirn_after_ms(RESCUE_MS)));
    }
    runtime_end(rt);
}

static int block_inside(void *arg)
{
    struct bell bell;
    pirn_runtime *rt = arg;

    bell_init(&bell);
    EXPECT_EQ(-EDEADLK, bell_block_on(rt, &bell, PIRN_EXPIRED));
    EXPECT_EQ(1, tally_of(&bell.drops));
    EXPECT_EQ(-EDEADLK, pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL));
    EXPECT_EQ(-EDEADLK, pirn_runtime_turn(rt, PIRN_EXPIRED));
    return 0;
}

/* Goal: a task cannot wait for its own runtime, nor end it.
 * Method: try on a worker. */
TEST(pool_block_on_inside_a_task_refused)
{
    pirn_runtime *rt = pool_new(1);
    struct bell bell;

    EXPECT_EQ(0, join_and_unref(go_task(rt, block_inside, rt)));
    bell_init(&bell);
    EXPECT_EQ(-EINVAL, bell_block_on(NULL, &bell, PIRN_EXPIRED));
    EXPECT_EQ(1, tally_of(&bell.drops));
    EXPECT_EQ(-EINVAL, pirn_block_on(rt, NULL, PIRN_EXPIRED));
    runtime_end(rt);
}

struct blocked {
    pirn_runtime *rt;
    struct bell bells[CREW_MAX];
    tally answers; /* PIRN_ESHUTDOWN */
};

static void block_until_shutdown(void *arg, size_t index)
{
    struct blocked *blocked = arg;

    EXPECT_EQ(PIRN_ESHUTDOWN,
              bell_block_on(blocked->rt, &blocked->bells[index], PIRN_NEVER));
    EXPECT_EQ(1, tally_of(&blocked->bells[index].drops));
    tally_up(&blocked->answers);
}

/* Goal: threads that are in block_on when the runtime ends are told so, and so is
 * who comes later.
 * Method: several wait for ever. */
TEST(pool_block_on_ends_with_the_runtime)
{
    enum { THREADS = 4 };
    struct blocked blocked = {.rt = pool_new(2)};
    struct crew crew;

    for (int i = 0; i <= THREADS; i++)
        bell_init(&blocked.bells[i]);
    crew_start(&crew, THREADS, block_until_shutdown, &blocked);
    for (int i = 0; i < THREADS; i++)
        wait_for_tally(&blocked.bells[i].waiting, 1);
    EXPECT_EQ(0, pirn_runtime_shutdown(blocked.rt, PIRN_NEVER, NULL));
    crew_join(&crew);
    EXPECT_EQ(THREADS, tally_of(&blocked.answers));
    EXPECT_EQ(PIRN_ESHUTDOWN, bell_block_on(blocked.rt, &blocked.bells[THREADS],
                                            PIRN_NEVER));
    pirn_runtime_unref(blocked.rt);
}

/* Goal: after the end every call says so.
 * Method: spawn, enter and spawn, shut down again. */
TEST(pool_ended_refuses)
{
    pirn_runtime *rt = pool_new(2);
    const pirn_spawn_options options = {.runtime = rt};
    struct probe probe = probe_of(step_ready, NULL, NULL);
    pirn_report first, second;
    tally runs = {0};

    go(rt, count_run, &runs);
    wait_for_tally(&runs, 1);
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, &first));
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_go_with(count_run, &runs, &options, NULL));
    EXPECT_EQ(PIRN_ESHUTDOWN,
              pirn_spawn(&probe.future, sizeof probe, &options, NULL));
    EXPECT_EQ(PIRN_ESHUTDOWN, pirn_runtime_turn(rt, PIRN_NEVER));
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_EXPIRED, &second));
    EXPECT_EQ(0, memcmp(&first, &second, sizeof first));
    EXPECT_EQ(1, tally_of(&runs));
    pirn_runtime_unref(rt);
}

static int spawn_on_other(void *arg)
{
    tally runs = {0};
    pirn_runtime *other = arg;
    pirn_task *task = go_task(other, count_run, &runs);
    int outcome = -1;

    EXPECT_EQ(0, pirn_task_join(task, PIRN_NEVER, &outcome));
    pirn_task_unref(task);
    EXPECT_EQ(1, tally_of(&runs));
    return outcome;
}

/* Goal: a task of one pool may spawn on another runtime and wait for it.
 * Method: two pools, each way. */
TEST(pool_spawns_on_another_pool)
{
    pirn_runtime *a = pool_new(2);
    pirn_runtime *b = pool_new(2);

    for (int i = 0; i < 50; i++) {
        pirn_task *there = go_task(a, spawn_on_other, b);
        pirn_task *back = go_task(b, spawn_on_other, a);

        EXPECT_EQ(0, join_and_unref(there));
        EXPECT_EQ(0, join_and_unref(back));
    }
    runtime_end(a);
    runtime_end(b);
}

static int end_other(void *arg)
{
    pirn_runtime *rt = arg;

    /* It blocks the worker, which is not of that runtime. */
    EXPECT_EQ(-EDEADLK, pirn_runtime_shutdown(rt, PIRN_EXPIRED, NULL));
    return 0;
}

/* Goal: a task may not block its worker to end another runtime either.
 * Method: try. */
TEST(pool_task_cannot_end_another_runtime)
{
    pirn_runtime *a = pool_new(1);
    pirn_runtime *b = pool_new(1);

    EXPECT_EQ(0, join_and_unref(go_task(a, end_other, b)));
    runtime_end(b);
    runtime_end(a);
}

/* Goal: what a task wakes in a child process of its worker is in nobody's way: no
 * lock is taken for it, which a thread of the parent may have held at the fork.
 * Method: a home of another process, a full ring, and two that are woken: the one
 * that leaves the slot is not spilled. */
TEST(pool_woken_in_a_child_process_spills_nothing)
{
    struct pirn__task *lost, *last;
    struct pirn__worker *worker;
    pirn_slink *link;
    struct rig rig;

    rig_init(&rig, 1);
    worker = rig_worker(&rig, 0);
    for (int i = 0; i < PIRN__RING_SIZE; i++)
        REQUIRE(pirn__ring_push(&worker->ring, &rig_task(&rig)->cell.link));
    lost = rig_task(&rig);
    last = rig_task(&rig);

    rig.rt->home.fork_generation++;
    pirn__pool_queue_woken(&worker->turn, lost);
    pirn__pool_queue_woken(&worker->turn, last);
    rig.rt->home.fork_generation--;

    EXPECT_EQ(0, pirn__injection_len(&worker->spill));
    EXPECT_EQ(PIRN__RING_SIZE, pirn__ring_len(&worker->ring));
    EXPECT_PTR_EQ(&last->cell.link, pirn__worker_swap_lifo(worker, NULL));
    rig_run(worker, last);
    rig_run(worker, lost);
    while ((link = pirn__ring_pop(&worker->ring)) != NULL)
        rig_run(worker, pirn__task_of_link(link));
    rig_deinit(&rig);
}
