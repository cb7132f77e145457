/* SPDX-License-Identifier: MIT */
/* tests/regress/net_plain_threads.c - straight-line calls on plain threads:
 * without a runtime, on objects of one, and when the two change places.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* gettid() */
#endif

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "base/atomic.h"
#include "engine/socket_peer.h"

static void *serve_alone(void *arg)
{
    pirn_listener *listener = arg;
    pirn_tcp *conn;
    char buf[64];
    ssize_t n;

    while (pirn_listener_accept(listener, PIRN_NEVER, &conn) == 0) {
        while ((n = pirn_tcp_read(conn, buf, sizeof buf, PIRN_NEVER)) > 0)
            EXPECT_EQ(0, pirn_tcp_write_all(conn, buf, (size_t)n, PIRN_NEVER));
        pirn_tcp_close(conn);
    }
    EXPECT_EQ(PIRN_ECLOSED, pirn_listener_accept(listener, PIRN_NEVER, &conn));
    pirn_listener_unref(listener);
    return NULL;
}

/* Goal: threads serve and connect without any runtime, and a close from another
 * thread ends the server.
 * Method: an echo server on a thread, clients on this one. */
TEST(threads_without_runtime_talk_to_each_other)
{
    pirn_listener *listener;
    pirn_addr address;
    char text[PIRN_ADDR_SIZE];
    pthread_t thread;

    EXPECT_EQ(0, pirn_listener_open("127.0.0.1:0", NULL, &listener));
    pirn_listener_address(listener, &address);
    pirn_addr_format(&address, text, sizeof text);
    REQUIRE(pthread_create(&thread, NULL, serve_alone,
                           pirn_listener_ref(listener)) == 0);
    for (int i = 0; i < 20; i++) {
        pirn_tcp *conn;
        char buf[5] = "";

        EXPECT_EQ(0, pirn_tcp_connect(text, NULL, PIRN_NEVER, &conn));
        EXPECT_EQ(0, pirn_tcp_write_all(conn, "echo", 4, PIRN_NEVER));
        EXPECT_EQ(0, pirn_tcp_read_exact(conn, buf, 4, PIRN_NEVER));
        EXPECT_STR_EQ("echo", buf);
        EXPECT_EQ(-ETIMEDOUT, pirn_tcp_read(conn, buf, 1, pirn_after_us(200)));
        pirn_tcp_close(conn);
    }
    pirn_listener_close(listener);
    pthread_join(thread, NULL);
}

/* A thread that waits for one byte. */
struct waiter {
    pirn_fd *file;
    PIRN_ATOMIC(int) thread; /* its number, once it is about to wait; or 0 */
    ssize_t n;
    char byte;
};

static void *wait_for_byte(void *arg)
{
    struct waiter *waiter = arg;

    /* release: the thread is about to wait. */
    pirn__store(&waiter->thread, gettid(), release);
    waiter->n = pirn_fd_read(waiter->file, &waiter->byte, 1, PIRN_NEVER);
    return NULL;
}

static bool sleeps(int thread)
{
    char path[64], text[512] = "";
    const char *state;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    file = fopen(path, "re");
    EXPECT(file != NULL && fread(text, 1, sizeof text - 1, file) > 0);
    if (file != NULL)
        (void)fclose(file);
    state = strrchr(text, ')');
    return state != NULL && strncmp(state, ") S", 3) == 0;
}

/* Start one, and wait until it sleeps. */
static void start_waiter(struct waiter *waiter, pthread_t *thread)
{
    int number;

    EXPECT_EQ(0, pthread_create(thread, NULL, wait_for_byte, waiter));
    /* acquire: pairs with the thread. */
    while ((number = pirn__load(&waiter->thread, acquire)) == 0)
        sched_yield();
    while (!sleeps(number))
        sched_yield();
}

struct change {
    struct waiter waiter;
    int writer;
};

static int bind_by_waiting(void *arg)
{
    struct change *change = arg;

    EXPECT_EQ(-ETIMEDOUT, pirn_fd_ready(change->waiter.file, PIRN_READABLE,
                                        pirn_after_us(500)));
    EXPECT_EQ(1, write(change->writer, "x", 1));
    return 0;
}

/* Goal: a thread that waits on an unbound descriptor gets its event also when a
 * task has bound it meanwhile.
 * Method: the thread waits; a fiber waits on the same descriptor, which binds
 * it, and gives up; then the byte comes. */
TEST(thread_waits_on_while_a_task_binds_the_descriptor)
{
    for (int i = 0; i < 20; i++) {
        struct change change = {.writer = -1};
        pthread_t thread;
        int fds[2];

        EXPECT_EQ(0, pipe(fds));
        change.writer = fds[1];
        EXPECT_EQ(0, pirn_fd_adopt(fds[0], &change.waiter.file));
        start_waiter(&change.waiter, &thread);
        EXPECT_EQ(0, pirn_run(bind_by_waiting, &change));
        pthread_join(thread, NULL);
        /* The runtime may have ended before the thread looked. */
        EXPECT(change.waiter.n == 1 || change.waiter.n == PIRN_ESHUTDOWN);
        pirn_fd_close(change.waiter.file);
        close(fds[1]);
    }
}

/* Goal: a thread that waits on a descriptor of a runtime hears of its end, and
 * the descriptor still works afterwards.
 * Method: shut the runtime down under the waiter; then read on this thread. */
TEST(thread_waiting_on_a_runtimes_descriptor_hears_of_its_end)
{
    struct waiter waiter = {.n = 0};
    pirn_runtime *rt, *outer;
    pthread_t thread;
    char byte;
    int fds[2];

    EXPECT_EQ(0, pirn_runtime_new(NULL, &rt));
    EXPECT_EQ(0, pipe(fds));
    outer = pirn_runtime_enter(rt);
    EXPECT_EQ(0, pirn_fd_adopt(fds[0], &waiter.file));
    (void)pirn_runtime_enter(outer);
    start_waiter(&waiter, &thread);
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));
    pirn_runtime_unref(rt);
    pthread_join(thread, NULL);
    EXPECT_EQ(PIRN_ESHUTDOWN, waiter.n);
    EXPECT_EQ(-ETIMEDOUT, pirn_fd_read(waiter.file, &byte, 1, PIRN_EXPIRED));
    EXPECT_EQ(1, write(fds[1], "x", 1));
    EXPECT_EQ(1, pirn_fd_read(waiter.file, &byte, 1, PIRN_NEVER));
    pirn_fd_close(waiter.file);
    close(fds[1]);
}

/* Goal: threads that wait on descriptors of a runtime that nobody drives drive
 * it themselves, one at a time.
 * Method: two threads wait on two pipes of an idle runtime; each gets its
 * byte. */
TEST(threads_drive_an_idle_runtime_for_their_descriptors)
{
    struct waiter waiters[2] = {{.n = 0}, {.n = 0}};
    pthread_t threads[2];
    pirn_runtime *rt, *outer;
    int fds[2][2];

    EXPECT_EQ(0, pirn_runtime_new(NULL, &rt));
    outer = pirn_runtime_enter(rt);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(0, pipe(fds[i]));
        EXPECT_EQ(0, pirn_fd_adopt(fds[i][0], &waiters[i].file));
    }
    (void)pirn_runtime_enter(outer);
    for (int i = 0; i < 2; i++)
        start_waiter(&waiters[i], &threads[i]);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(1, write(fds[i][1], "x", 1));
        pthread_join(threads[i], NULL);
        EXPECT_EQ(1, waiters[i].n);
        pirn_fd_close(waiters[i].file);
        close(fds[i][1]);
    }
    EXPECT_EQ(0, pirn_runtime_shutdown(rt, PIRN_NEVER, NULL));
    pirn_runtime_unref(rt);
}

/* Goal: close inside a poll does not wait, and anything else answers -EDEADLK.
 * Method: a waker that closes and then reads. */
static pirn_tcp *victim;
static ssize_t read_in_waker;

static enum pirn_poll close_poll(pirn_future *self, pirn_cx *cx)
{
    char byte;

    (void)self;
    (void)cx;
    read_in_waker = pirn_tcp_read(victim, &byte, 1, PIRN_NEVER);
    pirn_tcp_close(victim);
    return PIRN_READY;
}

static void no_drop(pirn_future *self)
{
    (void)self;
}

TEST(close_inside_a_poll_returns_and_read_refuses)
{
    const pirn_future_ops ops = {.poll = close_poll, .drop = no_drop};
    pirn_future future = {&ops};
    char byte;
    int peer;

    victim = peer_adopted(&peer);
    EXPECT_EQ(0, pirn_await(&future, PIRN_NEVER));
    EXPECT_EQ(-EDEADLK, read_in_waker);
    EXPECT_EQ(0, recv(peer, &byte, 1, 0));
    close(peer);
}
