/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_bad_task.c - a task that does not give its worker back
 * freezes nothing but itself.
 *
 * Shipped elsewhere: the last searching worker went to sleep beside full queues;
 * a busy task kept the poller; a slot, a local queue, a list of yielded tasks
 * that nobody else could reach.
 *
 * In each test something holds one worker until the rest is done.
 */
#include <pirn/io.h>

#include <unistd.h>

#include "engine/pool_fixture.h"
#include "engine/socket_peer.h"

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

static void let_go(struct hog *hog, pirn_task *task)
{
    tally_up(&hog->let_go);
    EXPECT_EQ(0, join_and_unref(task));
}

/* Goal: what is spawned from outside runs, however much it is.
 * Method: pools of 2 to 4, a million trivial tasks in the long size. */
TEST(pool_bad_task_does_not_stop_spawns)
{
    NEEDS_STEALING();
    uint64_t count = test_size(2000, 60000, 1000000);

    for (uint32_t workers = 2; workers <= 4; workers++) {
        pirn_runtime *rt = pool_new(workers);
        struct hog hog = {.holding = {0}};
        pirn_task *task = hog_start(&hog, rt);
        tally runs = {0};

        for (uint64_t i = 0; i < count; i++)
            spawn_probe(rt, step_count_run, &runs, NULL);
        wait_for_tally(&runs, count);
        let_go(&hog, task);
        EXPECT_EQ(count + 1, runtime_end(rt).completed);
    }
}

/* Goal: nor spawns that come one by one, each into a pool that has just gone to
 * sleep.
 * Method: wait for each before the next. */
TEST(pool_bad_task_does_not_stop_single_spawns)
{
    NEEDS_STEALING();
    pirn_runtime *rt = pool_new(2);
    struct hog hog = {.holding = {0}};
    pirn_task *task = hog_start(&hog, rt);
    uint64_t count = test_size(200, 5000, 200000);
    tally runs = {0};

    for (uint64_t i = 0; i < count; i++) {
        go(rt, count_run, &runs);
        wait_for_tally(&runs, i + 1);
    }
    let_go(&hog, task);
    runtime_end(rt);
}

/* A fiber that wakes another, or spawns, and then holds the worker. */
struct selfish {
    struct hog hog;
    struct bell bell;
    tally runs;
};

static int hear_and_count(void *arg)
{
    struct selfish *selfish = arg;
    int rc = hear_bell(&selfish->bell);

    tally_up(&selfish->runs);
    return rc;
}

static int wake_and_hold(void *arg)
{
    struct selfish *selfish = arg;

    bell_ring(&selfish->bell);
    return hog_hold(&selfish->hog);
}

static int spawn_and_hold(void *arg)
{
    struct selfish *selfish = arg;

    for (int i = 0; i < 3; i++)
        EXPECT_EQ(0, pirn_go(count_run, &selfish->runs));
    return hog_hold(&selfish->hog);
}

/* Goal: a task that was woken by one that then computes does not wait for it.
 * Method: B waits, A wakes it and holds the worker. */
TEST(pool_bad_task_does_not_keep_what_it_woke)
{
    NEEDS_STEALING();
    size_t rounds = test_size(5, 30, 1000);
    pirn_runtime *rt = pool_new(2);

    for (size_t i = 0; i < rounds; i++) {
        struct selfish selfish = {.runs = {0}};
        pirn_task *waker;

        bell_init(&selfish.bell);
        go(rt, hear_and_count, &selfish);
        wait_for_tally(&selfish.bell.waiting, 1);
        waker = go_task(rt, wake_and_hold, &selfish);
        wait_for_tally(&selfish.runs, 1);
        let_go(&selfish.hog, waker);
    }
    /* It was in the slot of a worker that did not move. */
    EXPECT_GE(pool_counters(rt).rescues, 1);
    runtime_end(rt);
}

/* Goal: nor one that it has spawned.
 * Method: three children, then hold. */
TEST(pool_bad_task_does_not_keep_what_it_spawned)
{
    NEEDS_STEALING();
    size_t rounds = test_size(5, 100, 5000);
    pirn_runtime *rt = pool_new(2);

    for (size_t i = 0; i < rounds; i++) {
        struct selfish selfish = {.runs = {0}};
        pirn_task *parent = go_task(rt, spawn_and_hold, &selfish);

        wait_for_tally(&selfish.runs, 3);
        let_go(&selfish.hog, parent);
    }
    runtime_end(rt);
}

struct yielder {
    tally turns;
    tally stop;
};

static int keep_yielding(void *arg)
{
    struct yielder *yielder = arg;

    while (tally_of(&yielder->stop) == 0) {
        EXPECT_EQ(0, pirn_yield());
        tally_up(&yielder->turns);
    }
    return 0;
}

/* Goal: tasks that had just yielded on the worker go on.
 * Method: several that do nothing else; each must get on while a worker is
 * held. */
TEST(pool_bad_task_does_not_keep_who_yielded)
{
    NEEDS_STEALING();
    enum { YIELDERS = 8 };
    size_t rounds = test_size(2, 10, 300);
    struct yielder yielders[YIELDERS] = {{.turns = {0}}};
    pirn_runtime *rt = pool_new(2);
    pirn_task *tasks[YIELDERS];

    for (int i = 0; i < YIELDERS; i++)
        tasks[i] = go_task(rt, keep_yielding, &yielders[i]);
    for (size_t round = 0; round < rounds; round++) {
        struct hog hog = {.holding = {0}};
        pirn_task *task = hog_start(&hog, rt);

        for (int i = 0; i < YIELDERS; i++)
            wait_for_tally(&yielders[i].turns,
                           tally_of(&yielders[i].turns) + 50);
        let_go(&hog, task);
    }
    for (int i = 0; i < YIELDERS; i++) {
        tally_up(&yielders[i].stop);
        EXPECT_EQ(0, join_and_unref(tasks[i]));
    }
    runtime_end(rt);
}

static int sleep_and_count(void *arg)
{
    EXPECT_EQ(0, pirn_sleep(pirn_after_ms(2)));
    tally_up(arg);
    return 0;
}

/* Goal: timers that were armed on the worker fire.
 * Method: many sleep when the worker is taken. */
TEST(pool_bad_task_does_not_stop_timers)
{
    NEEDS_STEALING();
    enum { SLEEPERS = 40 };
    pirn_runtime *rt = pool_new(2);

    for (size_t round = 0; round < test_size(2, 20, 500); round++) {
        struct hog hog = {.holding = {0}};
        tally ends = {0};
        pirn_task *task;

        for (int i = 0; i < SLEEPERS; i++)
            go(rt, sleep_and_count, &ends);
        task = hog_start(&hog, rt);
        wait_for_tally(&ends, SLEEPERS);
        let_go(&hog, task);
    }
    runtime_end(rt);
}

/* Holds its worker after it was woken by a descriptor. */
struct trap {
    struct hog hog;
    pirn_tcp *conn;
};

static int read_and_hold(void *arg)
{
    struct trap *trap = arg;
    char byte;

    EXPECT_EQ(1, pirn_tcp_read(trap->conn, &byte, 1, PIRN_NEVER));
    return hog_hold(&trap->hog);
}

static int echo(void *arg)
{
    pirn_tcp *conn = arg;
    char buf[64];
    ssize_t n;

    while ((n = pirn_tcp_read(conn, buf, sizeof buf, PIRN_NEVER)) > 0)
        EXPECT_EQ(0, pirn_tcp_write_all(conn, buf, (size_t)n, PIRN_NEVER));
    pirn_tcp_close(conn);
    return (int)n;
}

static int tick(void *arg)
{
    tally *ticks = arg;

    while (pirn_sleep(pirn_after_ms(1)) == 0)
        tally_up(ticks);
    return 0;
}

/* Goal: a task that holds its worker after an event from the wait set takes the
 * set with it from nobody: a ticker and an echo keep working.
 * Method: a byte wakes the one, then many exchanges with the other. */
TEST(pool_bad_task_does_not_keep_the_driver)
{
    NEEDS_STEALING();
    pirn_runtime *rt = pool_new(2);
    size_t rounds = test_size(20, 300, 20000);
    struct trap trap = {.conn = NULL};
    pirn_task *trapped, *echoing;
    tally ticks = {0};
    int poker, peer;

    trap.conn = peer_adopted(&poker);
    go(rt, tick, &ticks);
    echoing = go_task(rt, echo, peer_adopted(&peer));
    trapped = go_task(rt, read_and_hold, &trap);
    peer_send(poker, "x", 1);
    wait_for_tally(&trap.hog.holding, 1);
    for (size_t i = 0; i < rounds; i++) {
        peer_send(peer, "ping", 4);
        peer_expect(peer, "ping");
    }
    wait_for_tally(&ticks, tally_of(&ticks) + 5);
    close(peer);
    EXPECT_EQ(0, join_and_unref(echoing));
    let_go(&trap.hog, trapped);
    pirn_tcp_close(trap.conn);
    close(poker);
    runtime_end(rt);
}

/* Ready again at once, for as long as it lasts. */
static enum pirn_poll step_wake_self(struct probe *probe, pirn_cx *cx)
{
    if (tally_of(probe->arg) > 0)
        return PIRN_READY;
    pirn_waker_wake_by_ref(cx->waker);
    return PIRN_PENDING;
}

/* Goal: tasks that are always ready keep nobody from what other threads wake and
 * spawn, from timers and from descriptors, even on a single worker.
 * Method: wait for one of each while such tasks run. */
TEST(pool_busy_tasks_do_not_starve_others)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        pirn_runtime *rt = pool_new(workers);
        struct bell bell;
        pirn_task *woken, *echoing;
        tally stop = {0}, runs = {0};
        int peer;

        bell_init(&bell);
        woken = go_task(rt, hear_bell, &bell);
        echoing = go_task(rt, echo, peer_adopted(&peer));
        wait_for_tally(&bell.waiting, 1);
        for (int i = 0; i < 3; i++)
            spawn_probe(rt, step_wake_self, &stop, NULL);
        bell_ring(&bell);
        EXPECT_EQ(0, join_and_unref(woken));
        go(rt, count_run, &runs);
        go(rt, sleep_and_count, &runs);
        wait_for_tally(&runs, 2);
        peer_send(peer, "ping", 4);
        peer_expect(peer, "ping");
        close(peer);
        EXPECT_EQ(0, join_and_unref(echoing));
        tally_up(&stop);
        runtime_end(rt);
    }
}

/* Always ready, as far as the budget lets it. */
static enum pirn_poll step_spend(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    while (pirn_coop_spend(cx))
        continue;
    return PIRN_PENDING;
}

static enum pirn_poll step_ready_if_paid(struct probe *probe, pirn_cx *cx)
{
    (void)probe;
    return pirn_coop_spend(cx) ? PIRN_READY : PIRN_PENDING;
}

/* The deadline around a future, and around a loop of waits. */
static int meet_deadlines(void *arg)
{
    pirn_deadline until = pirn_after_ms(5);
    struct probe spender = probe_of(step_spend, NULL, NULL);
    pirn_timeout_op timeout;
    int rc = 0;

    (void)arg;
    pirn_timeout_init(&timeout, &spender.future, until);
    EXPECT_EQ(0, pirn_await(&timeout.future, PIRN_NEVER));
    EXPECT_EQ(-ETIMEDOUT, timeout.rc);
    EXPECT_GE(pirn_now_ns(), until.ns);

    until = pirn_after_ms(5);
    while (rc == 0 && !pirn_deadline_expired(until)) {
        struct probe ready = probe_of(step_ready_if_paid, NULL, NULL);

        rc = pirn_await(&ready.future, until);
    }
    EXPECT(rc == 0 || rc == -ETIMEDOUT);
    return 0;
}

/* Goal: something that is always ready does not defeat a deadline around it, nor
 * keep others of the same kind from theirs.
 * Method: a timeout around a future that spends all it gets, and a loop of waits
 * that are ready; several of them on one worker. */
TEST(pool_budget_does_not_defeat_deadlines)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        pirn_runtime *rt = pool_new(workers);
        pirn_task *tasks[6];

        for (int i = 0; i < 6; i++)
            tasks[i] = go_task(rt, meet_deadlines, NULL);
        for (int i = 0; i < 6; i++)
            EXPECT_EQ(0, join_and_unref(tasks[i]));
        EXPECT_GE(pool_counters(rt).yields, 6);
        runtime_end(rt);
    }
}
