/* SPDX-License-Identifier: MIT */
/* tests/regress/pool_plain_threads.c - threads and runtimes of the host beside a
 * pool: they join its tasks and share its objects.
 */
#include <pirn/io.h>

#include <unistd.h>

#include "base/lock.h"
#include "engine/pool_fixture.h"
#include "engine/socket_peer.h"
#include "reactor/io.h"

enum { THREADS = 6 };

struct joiners {
    pirn_runtime *rt;
    size_t rounds;
};

static int nap_briefly(void *arg)
{
    int rc = pirn_sleep(pirn_after_us(100));

    return rc < 0 ? rc : (int)(intptr_t)arg;
}

static void spawn_and_join(void *arg, size_t index)
{
    struct joiners *joiners = arg;

    for (size_t i = 0; i < joiners->rounds; i++) {
        int number = (int)(index * 1000 + i % 1000);
        pirn_task *task =
            go_task(joiners->rt, nap_briefly, (void *)(intptr_t)number);
        int outcome = -1;

        if (i % 3 == 0) {
            int rc = pirn_task_join(task, PIRN_EXPIRED, &outcome);

            EXPECT(rc == 0 || rc == -ETIMEDOUT);
        }
        EXPECT_EQ(number, join_and_unref(task));
    }
}

/* Goal: many plain threads spawn tasks and join them, each its own.
 * Method: outcomes that tell whose task it was. */
TEST(pool_plain_threads_join)
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        struct joiners joiners = {pool_new(workers), test_size(10, 100, 5000)};
        struct crew crew;

        crew_start(&crew, THREADS, spawn_and_join, &joiners);
        crew_join(&crew);
        EXPECT_EQ(THREADS * joiners.rounds, runtime_end(joiners.rt).completed);
    }
}

struct blockers {
    pirn_runtime *rt;
    size_t rounds;
    struct bell bells[CREW_MAX];
};

static int ring(void *arg)
{
    bell_ring(arg);
    return 0;
}

static void block_again_and_again(void *arg, size_t index)
{
    struct blockers *blockers = arg;
    struct bell *bell = &blockers->bells[index];

    for (size_t i = 0; i < blockers->rounds; i++) {
        pirn_sleep_op nap;

        go(blockers->rt, ring, bell);
        EXPECT_EQ(0, bell_block_on(blockers->rt, bell, PIRN_NEVER));
        pirn_sleep_init(&nap, pirn_after_us(50));
        EXPECT_EQ(0, pirn_block_on(blockers->rt, &nap.future, PIRN_NEVER));
        EXPECT_EQ(0, pirn_sleep_rc(&nap));
        pirn_sleep_init(&nap, pirn_after_ms(3600 * 1000));
        EXPECT_EQ(-ETIMEDOUT, pirn_block_on(blockers->rt, &nap.future,
                                            pirn_after_us(50)));
    }
}

/* Goal: several threads are in block_on of one pool at the same time.
 * Method: each waits for tasks, for timers and for its deadline. */
TEST(pool_plain_threads_block_on)
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        struct blockers blockers = {pool_new(workers),
                                    test_size(5, 50, 5000),
                                    {{.rung = false}}};
        struct crew crew;

        for (int i = 0; i < THREADS; i++)
            bell_init(&blockers.bells[i]);
        crew_start(&crew, THREADS, block_again_and_again, &blockers);
        crew_join(&crew);
        runtime_end(blockers.rt);
    }
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

static void talk(int peer, size_t rounds)
{
    for (size_t i = 0; i < rounds; i++) {
        peer_send(peer, "ping", 4);
        peer_expect(peer, "ping");
    }
    close(peer);
}

/* Made under one runtime, used by a task of another. */
static void echo_across(pirn_runtime *made_under, pirn_runtime *used_by)
{
    pirn_runtime *outer = pirn_runtime_enter(made_under);
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    pirn_task *task;

    (void)pirn_runtime_enter(outer);
    task = go_task(used_by, echo, conn);
    talk(peer, test_size(10, 100, 5000));
    EXPECT_EQ(0, join_and_unref(task));
}

/* Drive a current-thread runtime until its task has ended. */
struct driver {
    pirn_runtime *rt;
    struct bell over;
};

static void drive(void *arg, size_t index)
{
    struct driver *driver = arg;

    (void)index;
    EXPECT_EQ(0, bell_block_on(driver->rt, &driver->over, PIRN_NEVER));
}

/* Goal: an object of one runtime serves the tasks of another.
 * Method: echo over connections of a pool, of another pool and of a
 * current-thread runtime, used by each of the others. */
TEST(pool_objects_serve_tasks_of_any_runtime)
{
    struct driver driver = {.rt = runtime_new()};
    pirn_runtime *runtimes[3] = {pool_new(2), pool_new(1), driver.rt};
    struct crew crew;

    bell_init(&driver.over);
    crew_start(&crew, 1, drive, &driver);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            echo_across(runtimes[i], runtimes[j]);
    bell_ring(&driver.over);
    crew_join(&crew);
    for (int i = 0; i < 3; i++)
        runtime_end(runtimes[i]);
}

static void echo_on_thread(void *arg, size_t index)
{
    (void)index;
    EXPECT_EQ(0, echo(arg));
}

/* Goal: and plain threads, which only park.
 * Method: the same on threads. */
TEST(pool_objects_serve_plain_threads)
{
    pirn_runtime *rt = pool_new(2);
    pirn_runtime *outer = pirn_runtime_enter(rt);
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    struct crew crew;

    (void)pirn_runtime_enter(outer);
    crew_start(&crew, 1, echo_on_thread, conn);
    talk(peer, test_size(10, 100, 5000));
    crew_join(&crew);
    runtime_end(rt);
}

struct pair {
    pirn_tcp *conn;
    tally ends;
};

static int read_until_end(void *arg)
{
    struct pair *pair = arg;
    char byte;
    ssize_t n = pirn_tcp_read(pair->conn, &byte, 1, PIRN_NEVER);

    EXPECT(n == PIRN_ESHUTDOWN || n == -ECANCELED || n == PIRN_ECLOSED);
    tally_up(&pair->ends);
    return 0;
}

static void read_on_thread(void *arg, size_t index)
{
    (void)index;
    EXPECT_EQ(0, read_until_end(arg));
}

/* Both readers stand in line: after the end of the runtime a newcomer would not
 * be told, but wait on an object that nobody has bound. */
static int count_readers(struct pirn__io *io)
{
    const pirn_link *line = &pirn__io_line(io, PIRN_READABLE)->waiters;
    int count = 0;

    pirn__lock(&io->lock);
    for (pirn_link *link = line->next_; link != line; link = link->next_)
        count++;
    pirn__unlock(&io->lock);
    return count;
}

static void wait_for_readers(pirn_tcp *conn, int count)
{
    while (count_readers((struct pirn__io *)(void *)conn) < count)
        sched_yield();
}

/* Goal: when the runtime of an object ends, those of others who wait on it are
 * told, and it can still be closed.
 * Method: a task of another pool and a plain thread read without end. */
TEST(pool_objects_outlive_their_runtime)
{
    pirn_runtime *owner = pool_new(2);
    pirn_runtime *other = pool_new(1);
    pirn_runtime *outer = pirn_runtime_enter(owner);
    int peer;
    struct pair pair = {.conn = peer_adopted(&peer)};
    struct crew crew;
    pirn_task *task;

    (void)pirn_runtime_enter(outer);
    task = go_task(other, read_until_end, &pair);
    crew_start(&crew, 1, read_on_thread, &pair);
    wait_for_readers(pair.conn, 2);
    runtime_end(owner);
    EXPECT_EQ(0, join_and_unref(task));
    crew_join(&crew);
    EXPECT_EQ(2, tally_of(&pair.ends));
    pirn_tcp_close(pair.conn);
    close(peer);
    runtime_end(other);
}
