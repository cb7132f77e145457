/* SPDX-License-Identifier: MIT */
/* tests/regress/net_stale_events.c - events that meet what is gone.
 *
 * Shipped elsewhere: an event that had been harvested before its descriptor was
 * closed reached freed memory, or whoever got the number next; withdrawing one
 * operation took another one's registration along.
 */
#include <pthread.h>

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "base/atomic.h"
#include "engine/one_thread.h"
#include "engine/socket_peer.h"

/* One connection of many: it is read, written, half withdrawn and closed. */
static int churn_once(void *arg)
{
    int peer;
    pirn_tcp *conn;
    char byte;

    (void)arg;
    conn = peer_adopted(&peer);
    EXPECT_EQ(-ETIMEDOUT, pirn_tcp_read(conn, &byte, 1, PIRN_EXPIRED));
    peer_send(peer, "x", 1);
    EXPECT_EQ(1, pirn_tcp_read(conn, &byte, 1, PIRN_NEVER));
    /* An event under way at the close. */
    peer_send(peer, "y", 1);
    pirn_tcp_close(conn);
    close(peer);
    return 0;
}

struct churn {
    pirn_runtime *rt;
    PIRN_ATOMIC(int) left; /* threads that still work */
    size_t rounds;
};

/* Open, wait and close from a thread of its own: half of the objects belong to
 * the runtime, whose driver harvests meanwhile. */
static void *churn_on_thread(void *arg)
{
    struct churn *churn = arg;

    for (size_t i = 0; i < churn->rounds; i++) {
        pirn_runtime *outer = pirn_runtime_enter(i % 2 == 0 ? churn->rt : NULL);

        (void)churn_once(NULL);
        (void)pirn_runtime_enter(outer);
    }
    /* release: the driver stops once all have finished. */
    pirn__sub(&churn->left, 1, release);
    return NULL;
}

static int churn_in_fibers(void *arg)
{
    struct churn *churn = arg;

    for (;;) {
        /* acquire: pairs with the threads' end. */
        if (pirn__load(&churn->left, acquire) == 0)
            return 0;
        (void)churn_once(NULL);
        EXPECT_EQ(0, pirn_yield());
    }
}

static int churn_all(void *arg)
{
    struct churn *churn = arg;
    pirn_task *tasks[4];
    pthread_t threads[2];
    int outcome;

    churn->rt = pirn_runtime_current();
    /* relaxed: before the threads start. */
    pirn__store(&churn->left, 2, relaxed);
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(0, pthread_create(&threads[i], NULL, churn_on_thread, churn));
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(0, pirn_go_with(churn_in_fibers, churn, NULL, &tasks[i]));
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(0, pirn_task_join(tasks[i], PIRN_NEVER, &outcome));
        pirn_task_unref(tasks[i]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* Goal: connections that come and go at full speed on several threads harm
 * nobody; the sanitizers watch.
 * Method: two threads and four fibers open, wait, and close while an event is
 * under way. */
TEST(descriptors_come_and_go_at_full_speed)
{
    struct churn churn = {.rounds = test_size(100, 400, 100000)};

    EXPECT_EQ(0, pirn_run(churn_all, &churn));
}

/* Withdrawing one of two. */

struct two {
    pirn_tcp *conn;
    int peer;
    ssize_t n;
    char byte;
};

static int read_one(void *arg)
{
    struct two *two = arg;

    two->n = pirn_tcp_read(two->conn, &two->byte, 1, PIRN_NEVER);
    return 0;
}

static int read_in_vain(void *arg)
{
    struct two *two = arg;
    char byte;

    return (int)pirn_tcp_read(two->conn, &byte, 1, PIRN_NEVER);
}

static int cancel_first(void *arg)
{
    struct two *two = arg;
    pirn_task *first, *second;
    int outcome;

    two->conn = peer_adopted(&two->peer);
    EXPECT_EQ(0, pirn_go_with(read_in_vain, two, NULL, &first));
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(0, pirn_go_with(read_one, two, NULL, &second));
    EXPECT_EQ(0, pirn_yield());
    pirn_task_cancel(first);
    EXPECT_EQ(0, pirn_task_join(first, PIRN_NEVER, &outcome));
    EXPECT_EQ(-ECANCELED, outcome);
    peer_send(two->peer, "2", 1);
    EXPECT_EQ(0, pirn_task_join(second, PIRN_NEVER, &outcome));
    EXPECT_EQ(1, two->n);
    EXPECT_EQ('2', two->byte);
    pirn_task_unref(first);
    pirn_task_unref(second);
    pirn_tcp_close(two->conn);
    close(two->peer);
    return 0;
}

/* Goal: cancelling one reader leaves the other one's wait alone.
 * Method: two readers of one connection; the first is cancelled. */
TEST(second_reader_survives_the_first_ones_cancel)
{
    struct two two;

    EXPECT_EQ(0, run_on_one_thread(cancel_first, &two));
}

/* Closing under readers on other threads. */

struct race {
    pirn_tcp *conn;
    int results[2];
};

static void *read_until_closed(void *arg)
{
    pirn_tcp *conn = arg;
    char byte;
    ssize_t n;

    while ((n = pirn_tcp_read(conn, &byte, 1, PIRN_NEVER)) > 0)
        continue;
    EXPECT_EQ(PIRN_ECLOSED, n);
    pirn_tcp_unref(conn);
    return NULL;
}

/* Goal: a close while other threads read ends them with PIRN_ECLOSED, whatever
 * they are just doing, and the descriptor is gone when close returns.
 * Method: two readers, data in flight, close; many rounds. */
TEST(close_ends_readers_on_other_threads)
{
    size_t rounds = test_size(50, 300, 20000);

    for (size_t i = 0; i < rounds; i++) {
        pthread_t threads[2];
        pirn_tcp *conn;
        int fds[2];

        peer_pair(fds);
        EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
        for (int k = 0; k < 2; k++)
            REQUIRE(pthread_create(&threads[k], NULL, read_until_closed,
                                   pirn_tcp_ref(conn)) == 0);
        peer_send(fds[1], "abcdefgh", i % 9);
        pirn_tcp_close(conn);
        EXPECT_EQ(-1, fcntl(fds[0], F_GETFD));
        for (int k = 0; k < 2; k++)
            pthread_join(threads[k], NULL);
        close(fds[1]);
    }
}
