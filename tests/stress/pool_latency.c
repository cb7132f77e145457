/* SPDX-License-Identifier: MIT */
/* tests/stress/pool_latency.c - how long things take beside tasks that compute.
 *
 * The times are those of a machine that does little else: each measurement is
 * repeated a few times, and the best one counts.  Where a time is short, what the
 * machine takes to wake a plain thread at that moment is not held against it.
 */
#include <pirn/io.h>

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "engine/pool_fixture.h"
#include "engine/socket_peer.h"

enum { TRIES = 12 };

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The best of a few tries, each of which returns its worst time. */
static void expect_once_within_ms(uint64_t (*measure)(void), uint64_t limit_ms)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < TRIES && best > limit_ms * 1000000; i++) {
        uint64_t worst = measure();

        best = worst < best ? worst : best;
    }
    EXPECT_LE(best, limit_ms * 1000000);
}

static void compute_ms(uint64_t ms)
{
    uint64_t end = now_ns() + ms * 1000000;

    while (now_ns() < end)
        continue;
}

struct plain_wake {
    int pipe[2];
    tally at_ns;
};

static void note_wake(void *arg, size_t index)
{
    struct plain_wake *wake = arg;
    char byte;

    (void)index;
    EXPECT_EQ(1, read(wake->pipe[0], &byte, 1));
    tally_set(&wake->at_ns, now_ns());
}

/* How long a plain thread takes to wake up while its waker computes. */
static uint64_t measure_plain_wake(void)
{
    struct plain_wake wake = {.at_ns = {0}};
    struct crew crew;
    uint64_t start;

    EXPECT_EQ(0, pipe(wake.pipe));
    crew_start(&crew, 1, note_wake, &wake);
    usleep(10 * 1000);
    start = now_ns();
    EXPECT_EQ(1, write(wake.pipe[1], "x", 1));
    while (tally_of(&wake.at_ns) == 0)
        continue;
    crew_join(&crew);
    close(wake.pipe[0]);
    close(wake.pipe[1]);
    return tally_of(&wake.at_ns) - start;
}

struct relay {
    struct bell bell;
    uint64_t woken_ns;
    tally started_ns;
};

static int note_start(void *arg)
{
    struct relay *relay = arg;
    int rc = hear_bell(&relay->bell);

    tally_set(&relay->started_ns, now_ns());
    return rc;
}

static int wake_and_compute(void *arg)
{
    struct relay *relay = arg;

    relay->woken_ns = now_ns();
    bell_ring(&relay->bell);
    compute_ms(500);
    return 0;
}

/* Goal: a task that is woken by one that then computes starts soon if there is an
 * idle worker: within 20 ms and two wakes of a thread, the monitor's and that of
 * the worker.
 * Method: A wakes B and computes for half a second. */
TEST(pool_latency_of_what_a_busy_task_woke)
{
    pirn_runtime *rt = pool_new(2);
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < TRIES && best > 20 * 1000000; i++) {
        struct relay relay = {.woken_ns = 0};
        uint64_t wakes_ns = 2 * measure_plain_wake();
        uint64_t time_ns;
        pirn_task *first, *second;

        bell_init(&relay.bell);
        second = go_task(rt, note_start, &relay);
        wait_for_tally(&relay.bell.waiting, 1);
        first = go_task(rt, wake_and_compute, &relay);
        EXPECT_EQ(0, join_and_unref(first));
        EXPECT_EQ(0, join_and_unref(second));
        time_ns = tally_of(&relay.started_ns) - relay.woken_ns;
        time_ns = time_ns > wakes_ns ? time_ns - wakes_ns : 0;
        best = time_ns < best ? time_ns : best;
    }
    printf("started after %.3f ms\n", (double)best / 1e6);
    EXPECT_LE(best, 20 * 1000000);
    runtime_end(rt);
}

/* Wakes another one and itself, so that the other comes first. */
struct parting {
    struct bell bell;
    uint64_t parted_ns;
    tally back_ns;
};

static enum pirn_poll step_part(struct probe *probe, pirn_cx *cx)
{
    struct parting *parting = probe->arg;

    if (probe->polls > 0) {
        tally_set(&parting->back_ns, now_ns());
        return PIRN_READY;
    }
    bell_ring(&parting->bell);
    pirn_waker_wake_by_ref(cx->waker);
    parting->parted_ns = now_ns();
    return PIRN_PENDING;
}

static int hear_and_compute(void *arg)
{
    struct parting *parting = arg;
    int rc = hear_bell(&parting->bell);

    compute_ms(50);
    return rc;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* Goal: a task that is alone in its worker's line, behind one that was woken by
 * it and now computes, does not wait for the monitor when another worker sleeps:
 * less than 4 ms.
 * Method: A wakes B, which computes, and itself. */
TEST(pool_latency_of_one_behind_what_it_woke)
{
    NEEDS_STEALING();
    pirn_runtime *rt = pool_new(2);
    uint64_t times[TRIES];

    for (int i = 0; i < TRIES; i++) {
        struct parting parting = {.parted_ns = 0};
        pirn_task *other, *task;

        bell_init(&parting.bell);
        other = go_task(rt, hear_and_compute, &parting);
        wait_for_tally(&parting.bell.waiting, 1);
        while (pool_sleepers(rt) < 2)
            sched_yield();
        spawn_probe(rt, step_part, &parting, &task);
        EXPECT_EQ(0, join_and_unref(task));
        EXPECT_EQ(0, join_and_unref(other));
        times[i] = tally_of(&parting.back_ns) - parting.parted_ns;
    }
    qsort(times, TRIES, sizeof times[0], compare);
    printf("back after %.3f ms, half of the times after %.3f ms\n",
           (double)times[0] / 1e6, (double)times[TRIES / 2] / 1e6);
    EXPECT_LE(times[0], 4 * 1000000);
    runtime_end(rt);
}

struct ticker {
    tally stop;
    tally ticks;
    uint64_t worst_ns;
};

static int tick(void *arg)
{
    struct ticker *ticker = arg;
    uint64_t last = now_ns();

    while (tally_of(&ticker->stop) == 0) {
        uint64_t now;

        EXPECT_EQ(0, pirn_sleep(pirn_after_ms(10)));
        now = now_ns();
        if (now - last > ticker->worst_ns)
            ticker->worst_ns = now - last;
        last = now;
        tally_up(&ticker->ticks);
    }
    return 0;
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

/* The worst of some exchanges. */
static uint64_t exchange(int peer, int count)
{
    uint64_t worst = 0;

    for (int i = 0; i < count; i++) {
        uint64_t start = now_ns();

        peer_send(peer, "ping", 4);
        peer_expect(peer, "ping");
        if (now_ns() - start > worst)
            worst = now_ns() - start;
    }
    return worst;
}

/* Goal: while a task that was woken by an event holds its worker for ever, a
 * ticker of 10 ms and an echo keep their pace.
 * Method: the largest gap and the slowest exchange. */
TEST(pool_latency_beside_a_task_that_holds_its_worker)
{
    size_t rounds = test_size(1, 3, 50);
    pirn_runtime *rt = pool_new(2);
    uint64_t gap = UINT64_MAX;
    uint64_t slowest = UINT64_MAX;

    for (size_t i = 0; i < rounds; i++) {
        struct ticker ticker = {.stop = {0}};
        struct trap trap = {.conn = NULL};
        pirn_task *trapped, *ticking, *echoing;
        uint64_t worst;
        int poker, peer;

        trap.conn = peer_adopted(&poker);
        echoing = go_task(rt, echo, peer_adopted(&peer));
        trapped = go_task(rt, read_and_hold, &trap);
        peer_send(poker, "x", 1);
        wait_for_tally(&trap.hog.holding, 1);
        ticking = go_task(rt, tick, &ticker);
        worst = exchange(peer, 200);
        slowest = worst < slowest ? worst : slowest;
        wait_for_tally(&ticker.ticks, 20);
        tally_up(&ticker.stop);
        close(peer);
        EXPECT_EQ(0, join_and_unref(ticking));
        EXPECT_EQ(0, join_and_unref(echoing));
        gap = ticker.worst_ns < gap ? ticker.worst_ns : gap;
        tally_up(&trap.hog.let_go);
        EXPECT_EQ(0, join_and_unref(trapped));
        pirn_tcp_close(trap.conn);
        close(poker);
    }
    printf("gap %.3f ms, exchange %.3f ms\n", (double)gap / 1e6,
           (double)slowest / 1e6);
    EXPECT_LE(gap, 100 * 1000000);
    EXPECT_LE(slowest, 100 * 1000000);
    runtime_end(rt);
}

/* Yields after a few microseconds of work each. */
static int compute_and_yield(void *arg)
{
    tally *stop = arg;

    while (tally_of(stop) == 0) {
        uint64_t end = now_ns() + 20 * 1000;

        while (now_ns() < end)
            continue;
        EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

/* Owns a reference to the listener. */
static int serve(void *arg)
{
    pirn_listener *listener = arg;
    pirn_tcp *conn;

    while (pirn_listener_accept(listener, PIRN_NEVER, &conn) == 0) {
        char byte;

        EXPECT_EQ(1, pirn_tcp_read(conn, &byte, 1, PIRN_NEVER));
        EXPECT_EQ(0, pirn_tcp_write_all(conn, &byte, 1, PIRN_NEVER));
        pirn_tcp_close(conn);
    }
    pirn_listener_unref(listener);
    return 0;
}

static uint64_t measure_beside_yields(void)
{
    enum { CONNECTIONS = 200, BUSY = 4 };
    static uint64_t times[CONNECTIONS];
    pirn_runtime *rt = pool_new(2);
    struct ticker ticker = {.stop = {0}};
    pirn_listener *listener = NULL;
    pirn_task *tasks[BUSY + 2];
    pirn_addr address;
    tally stop = {0};

    EXPECT_EQ(0, pirn_listener_open("127.0.0.1:0", NULL, &listener));
    pirn_listener_address(listener, &address);
    for (int i = 0; i < BUSY; i++)
        tasks[i] = go_task(rt, compute_and_yield, &stop);
    tasks[BUSY] = go_task(rt, tick, &ticker);
    tasks[BUSY + 1] = go_task(rt, serve, pirn_listener_ref(listener));
    for (int i = 0; i < CONNECTIONS; i++) {
        uint64_t start = now_ns();
        int peer = peer_connect(pirn_addr_port(&address));

        peer_send(peer, "x", 1);
        peer_expect(peer, "x");
        times[i] = now_ns() - start;
        close(peer);
    }
    wait_for_tally(&ticker.ticks, 20);
    tally_up(&stop);
    tally_up(&ticker.stop);
    pirn_listener_close(listener);
    for (int i = 0; i < BUSY + 2; i++)
        EXPECT_EQ(0, join_and_unref(tasks[i]));
    qsort(times, CONNECTIONS, sizeof times[0], compare);
    printf("p50 %.3f ms, p99 %.3f ms, gap %.3f ms\n",
           (double)times[CONNECTIONS / 2] / 1e6,
           (double)times[CONNECTIONS * 99 / 100] / 1e6,
           (double)ticker.worst_ns / 1e6);
    runtime_end(rt);
    /* The client shares the processors with the workers. */
    if (times[CONNECTIONS / 2] > 30 * 1000000)
        return UINT64_MAX;
    return ticker.worst_ns;
}

/* Goal: connections are accepted and timers fire although every worker has
 * yielding tasks that compute: the driver is served.
 * Method: time from connect to the first byte back; a ticker beside it. */
TEST(pool_latency_beside_tasks_that_yield)
{
    expect_once_within_ms(measure_beside_yields, 200);
}

static int sleep_briefly_often(void *arg)
{
    tally *rounds = arg;

    for (;;) {
        int rc = pirn_sleep(pirn_after_us(100));

        if (rc < 0)
            return rc;
        tally_up(rounds);
    }
}

static uint64_t measure_beside_timers(void)
{
    size_t sleepers = test_size(200, 4000, 4000);
    pirn_runtime *rt = pool_new(2);
    struct ticker ticker = {.stop = {0}};
    pirn_task *ticking;
    tally rounds = {0};

    for (size_t i = 0; i < sleepers; i++)
        go(rt, sleep_briefly_often, &rounds);
    ticking = go_task(rt, tick, &ticker);
    wait_for_tally(&ticker.ticks, test_size(10, 50, 1000));
    tally_up(&ticker.stop);
    EXPECT_EQ(0, join_and_unref(ticking));
    printf("gap %.3f ms, %llu naps\n", (double)ticker.worst_ns / 1e6,
           (unsigned long long)tally_of(&rounds));
    EXPECT_GE(tally_of(&rounds), sleepers);
    runtime_end(rt);
    return ticker.worst_ns;
}

/* Goal: thousands of short timers do not hold up a ticker.
 * Method: 4000 tasks that sleep for 100 us each time, and a 10 ms ticker. */
TEST(pool_latency_beside_many_short_timers)
{
    expect_once_within_ms(measure_beside_timers, 200);
}

struct rally {
    struct bell bells[2];
    tally stop;
    tally turns;
};

static int play(struct rally *rally, int side)
{
    while (tally_of(&rally->stop) == 0) {
        bell_ring(&rally->bells[1 - side]);
        EXPECT_EQ(0, hear_bell(&rally->bells[side]));
    }
    bell_ring(&rally->bells[1 - side]);
    return 0;
}

static int play_left(void *arg)
{
    return play(arg, 0);
}

static int play_right(void *arg)
{
    return play(arg, 1);
}

static int count_turns(void *arg)
{
    struct rally *rally = arg;

    while (tally_of(&rally->stop) == 0) {
        tally_up(&rally->turns);
        EXPECT_EQ(0, pirn_yield());
    }
    return 0;
}

/* Goal: on one worker two tasks that wake each other leave room for a third: at
 * least a thousand turns a second.
 * Method: count them for a quarter of a second. */
TEST(pool_latency_beside_two_that_wake_each_other)
{
    pirn_runtime *rt = pool_new(1);
    struct rally rally = {.stop = {0}};
    const struct timespec pause = {.tv_nsec = 250 * 1000 * 1000};
    pirn_task *tasks[3];

    bell_init(&rally.bells[0]);
    bell_init(&rally.bells[1]);
    tasks[0] = go_task(rt, play_left, &rally);
    tasks[1] = go_task(rt, play_right, &rally);
    tasks[2] = go_task(rt, count_turns, &rally);
    nanosleep(&pause, NULL);
    tally_up(&rally.stop);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(0, join_and_unref(tasks[i]));
    printf("%llu turns\n", (unsigned long long)tally_of(&rally.turns));
    EXPECT_GE(tally_of(&rally.turns), test_size(20, 250, 250));
    runtime_end(rt);
}

static int sleep_long(void *arg)
{
    (void)arg;
    while (pirn_sleep(pirn_after_ms(10 * 1000)) == 0)
        continue;
    return 0;
}

struct napper {
    size_t rounds;
    uint64_t worst_ns;
};

static int nap_often(void *arg)
{
    struct napper *napper = arg;

    for (size_t i = 0; i < napper->rounds; i++) {
        uint64_t start = now_ns();

        EXPECT_EQ(0, pirn_sleep(pirn_after_ms(1)));
        if (now_ns() - start > napper->worst_ns)
            napper->worst_ns = now_ns() - start;
    }
    return 0;
}

static uint64_t measure_short_sleeps(void)
{
    pirn_runtime *rt = pool_new(4);
    struct napper nappers[3];
    pirn_task *tasks[3];
    uint64_t worst = 0;

    for (int i = 0; i < 8; i++)
        go(rt, sleep_long, NULL);
    for (int i = 0; i < 3; i++) {
        nappers[i] = (struct napper){.rounds = test_size(50, 500, 5000)};
        tasks[i] = go_task(rt, nap_often, &nappers[i]);
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(0, join_and_unref(tasks[i]));
        worst = nappers[i].worst_ns > worst ? nappers[i].worst_ns : worst;
    }
    printf("gap %.3f ms\n", (double)worst / 1e6);
    runtime_end(rt);
    return worst;
}

/* Goal: a short sleep does not wait for a long one, on whatever worker's wheel
 * either is: no gap above 200 ms.
 * Method: a task sleeps for a millisecond, often, beside some that sleep for ten
 * seconds. */
TEST(pool_latency_of_short_sleeps_beside_long_ones)
{
    expect_once_within_ms(measure_short_sleeps, 200);
}
