/* SPDX-License-Identifier: MIT */
/* bench/peers/peer_st.c - the State Threads side of the comparison: fibers on
 * one thread, on its epoll back end.
 *
 * It has no channels; a box with room for one word is made from its condition
 * variable, as its users do.
 */
#define _GNU_SOURCE
#include "peer.h"

#include <st.h>
#include <stdlib.h>
#include <unistd.h>

enum { STACK_SIZE = 64 * 1024, CROWD = 16, BATCH = 1000 };

/* Whoever has started `left` threads waits until all have ended. */
static struct {
    uint64_t left;
    st_cond_t none_left;
} tally;

static void hit(void)
{
    if (--tally.left == 0)
        st_cond_signal(tally.none_left);
}

static void wait_for_all(void)
{
    while (tally.left > 0)
        st_cond_wait(tally.none_left);
}

static void start(void *(*fn)(void *arg), void *arg)
{
    peer_require(st_thread_create(fn, arg, 0, STACK_SIZE) != NULL,
                 "st_thread_create");
}

/* Spawn. */

static void *brief(void *arg)
{
    (void)arg;
    hit();
    return NULL;
}

static void run_batches(void)
{
    uint64_t batches = peer_scale(10000, 100000) / BATCH;

    for (uint64_t i = 0; i < batches; i++) {
        tally.left = BATCH;
        for (int k = 0; k < BATCH; k++)
            start(brief, NULL);
        wait_for_all();
    }
}

static void measure_batches(void)
{
    peer_measure("spawn_batch", peer_scale(10000, 100000), run_batches);
}

/* Yield. */

static uint64_t yields_each;

static void *yield_often(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < yields_each; i++)
        st_usleep(0);
    hit();
    return NULL;
}

static void run_yields(uint64_t threads)
{
    tally.left = threads;
    for (uint64_t i = 0; i < threads; i++)
        start(yield_often, NULL);
    wait_for_all();
}

static void run_many_yields(void)
{
    run_yields(PEER_THOUSAND);
}

static void run_two_yields(void)
{
    run_yields(2);
}

static void measure_yields(void)
{
    uint64_t count = peer_scale(500000, 2000000);

    yields_each = count / PEER_THOUSAND;
    peer_measure("yield_1000", count, run_many_yields);
}

static void measure_switch(void)
{
    uint64_t count = peer_scale(1000000, 5000000);

    yields_each = count / 2;
    peer_measure("switch", count, run_two_yields);
}

/* Ping-pong. */

struct box {
    bool full;
    uint64_t word;
    st_cond_t changed;
};

static void put(struct box *box, uint64_t word)
{
    while (box->full)
        st_cond_wait(box->changed);
    box->full = true;
    box->word = word;
    st_cond_signal(box->changed);
}

static uint64_t take(struct box *box)
{
    while (!box->full)
        st_cond_wait(box->changed);
    box->full = false;
    st_cond_signal(box->changed);
    return box->word;
}

static struct pair {
    struct box ping;
    struct box pong;
} pairs[PEER_THOUSAND];
static uint64_t rounds_each;

static void *play_first(void *arg)
{
    struct pair *pair = arg;

    for (uint64_t i = 0; i < rounds_each; i++) {
        put(&pair->ping, i);
        (void)take(&pair->pong);
    }
    hit();
    return NULL;
}

static void *play_second(void *arg)
{
    struct pair *pair = arg;

    for (uint64_t i = 0; i < rounds_each; i++)
        put(&pair->pong, take(&pair->ping));
    hit();
    return NULL;
}

static void run_pairs(void)
{
    tally.left = 2 * PEER_THOUSAND;
    for (int i = 0; i < PEER_THOUSAND; i++) {
        start(play_first, &pairs[i]);
        start(play_second, &pairs[i]);
    }
    wait_for_all();
}

static void measure_pairs(void)
{
    uint64_t count = peer_scale(100000, 500000);

    rounds_each = count / PEER_THOUSAND;
    for (int i = 0; i < PEER_THOUSAND; i++) {
        pairs[i].ping.changed = st_cond_new();
        pairs[i].pong.changed = st_cond_new();
    }
    peer_measure("ping_pong", count, run_pairs);
}

/* Mutex. */

static st_mutex_t mutex;
static uint64_t locks_each;
static uint64_t counter;

static void *lock_often(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < locks_each; i++) {
        st_mutex_lock(mutex);
        counter++;
        st_mutex_unlock(mutex);
    }
    hit();
    return NULL;
}

static void run_alone(void)
{
    tally.left = 1;
    (void)lock_often(NULL);
}

static void run_crowd(void)
{
    counter = 0;
    tally.left = CROWD;
    for (int i = 0; i < CROWD; i++)
        start(lock_often, NULL);
    wait_for_all();
    peer_require(counter == CROWD * locks_each, "a lock that let two in");
}

static void measure_mutex(void)
{
    locks_each = peer_scale(100000, 2000000);
    peer_measure("mutex_lock", locks_each, run_alone);
}

static void measure_crowd(void)
{
    locks_each = peer_scale(5000, 60000);
    peer_measure("mutex_lock_16", CROWD * locks_each, run_crowd);
}

/* Memory: each stack has two guard pages, which cost mappings, so there are
 * only so many. */

static void *sleep_long(void *arg)
{
    (void)arg;
    hit();
    st_sleep(3600);
    return NULL;
}

static void measure_memory(void)
{
    uint64_t count = peer_scale(5000, 20000);
    double before = peer_footprint();
    uint64_t begin_ns = peer_now_ns();
    uint64_t cpu_ns = peer_cpu_ns();

    tally.left = count;
    for (uint64_t i = 0; i < count; i++)
        start(sleep_long, NULL);
    wait_for_all();
    cpu_ns = peer_cpu_ns() - cpu_ns;
    peer_print("memory_start", "ns",
               (double)(peer_now_ns() - begin_ns) / (double)count);
    peer_print("memory_start.cpu", "ns", (double)cpu_ns / (double)count);
    peer_print("memory_task", "bytes",
               (peer_footprint() - before) / (double)count);
    _exit(0);
}

/* Servers. */

static void *echo(void *arg)
{
    st_netfd_t conn = arg;
    char buf[4096];
    ssize_t n;

    while ((n = st_read(conn, buf, sizeof buf, ST_UTIME_NO_TIMEOUT)) > 0)
        if (st_write(conn, buf, (size_t)n, ST_UTIME_NO_TIMEOUT) != n)
            break;
    st_netfd_close(conn);
    return NULL;
}

static void *hello(void *arg)
{
    st_netfd_t conn = arg;
    char buf[4096];
    size_t filled = 0;
    ssize_t n;

    while ((n = st_read(conn, buf + filled, sizeof buf - filled,
                        ST_UTIME_NO_TIMEOUT)) > 0) {
        filled += (size_t)n;
        if (!peer_request_ends(buf, filled))
            continue;
        filled = 0;
        if (st_write(conn, peer_response, peer_response_size,
                     ST_UTIME_NO_TIMEOUT) < 0)
            break;
    }
    st_netfd_close(conn);
    return NULL;
}

static void serve(void *(*session)(void *conn))
{
    st_netfd_t listener = st_netfd_open_socket(peer_listen());

    peer_require(listener != NULL, "st_netfd_open_socket");
    for (;;) {
        st_netfd_t conn =
            st_accept(listener, NULL, NULL, ST_UTIME_NO_TIMEOUT);

        peer_require(conn != NULL, "st_accept");
        start(session, conn);
    }
}

static void serve_echo(void)
{
    serve(echo);
}

static void serve_hello(void)
{
    serve(hello);
}

int main(int argc, char **argv)
{
    static const struct peer_row rows[] = {
        {"spawn_batch", measure_batches},
        {"yield_1000", measure_yields},
        {"switch", measure_switch},
        {"ping_pong", measure_pairs},
        {"mutex_lock", measure_mutex},
        {"mutex_lock_16", measure_crowd},
        {"memory", measure_memory},
        {"echo", serve_echo},
        {"hello", serve_hello},
        {NULL, NULL},
    };

    peer_require(st_set_eventsys(ST_EVENTSYS_ALT) == 0, "st_set_eventsys");
    peer_require(st_init() == 0, "st_init");
    tally.none_left = st_cond_new();
    mutex = st_mutex_new();
    return peer_main(argc, argv, rows);
}
