/* SPDX-License-Identifier: MIT */
/* tests/engine/world_real.c - threads, time and sockets as the system has
 * them.
 */
#include <sched.h>

#include "engine/socket_peer.h"
#include "engine/world.h"

enum { RESCUE_MS = 30 * 1000 }; /* longer than any shutdown that passes */

void world_tell(const char *test, size_t count, world_tell_fn *tell, void *arg)
{
    (void)test;
    for (size_t i = 0; i < count; i++)
        tell(arg, i);
}

size_t world_size(size_t real, size_t simulated)
{
    (void)simulated;
    return real;
}

/* Runtimes. */

int world_run(const pirn_runtime_options *options, pirn_fiber_fn *fn, void *arg)
{
    return pirn_run_with(fn, arg, options, NULL);
}

pirn_runtime *world_runtime_new(const pirn_runtime_options *options)
{
    pirn_runtime *rt = NULL;

    EXPECT_EQ(0, pirn_runtime_new(options, &rt));
    return rt;
}

void world_runtime_end(pirn_runtime *rt)
{
    pirn_report report;

    EXPECT_EQ(0, pirn_runtime_shutdown(rt, pirn_after_ms(RESCUE_MS), &report));
    EXPECT(report.in_time);
    EXPECT_EQ(0, report.aborted);
    EXPECT_EQ(0, report.quarantined);
    EXPECT_EQ(0, report.still_running);
    pirn_runtime_unref(rt);
}

void world_yield(void)
{
    sched_yield();
}

/* The kernel does that by itself. */
void world_pause(void)
{
}

void world_watch(pirn_future *future)
{
    (void)future;
}

/* Threads. */

static void *run(void *arg)
{
    const struct world_thread *thread = arg;

    thread->fn(thread->arg);
    return NULL;
}

void world_thread_start(struct world_thread *thread, void (*fn)(void *arg),
                        void *arg)
{
    *thread = (struct world_thread){.fn = fn, .arg = arg};
    REQUIRE(pthread_create(&thread->thread, NULL, run, thread) == 0);
}

void world_thread_join(struct world_thread *thread)
{
    EXPECT_EQ(0, pthread_join(thread->thread, NULL));
}

/* Sockets. */

int world_listen(void)
{
    return peer_listen(4);
}

uint16_t world_port(int fd)
{
    return peer_port(fd);
}

int world_connect(uint16_t port)
{
    return peer_connect(port);
}

int world_accept(int listener)
{
    int fd = accept(listener, NULL, NULL);

    EXPECT_GE(fd, 0);
    return fd;
}

void world_pair(int fds[2])
{
    peer_pair(fds);
}

void world_pipe(int fds[2])
{
    EXPECT_EQ(0, pipe(fds));
}

void world_send(int fd, const void *data, size_t len)
{
    EXPECT_EQ((ssize_t)len, write(fd, data, len));
}

size_t world_recv(int fd, void *buf, size_t len)
{
    ssize_t n = recv(fd, buf, len, 0);

    EXPECT_GE(n, 0);
    return n < 0 ? 0 : (size_t)n;
}

void world_end_writing(int fd)
{
    EXPECT_EQ(0, shutdown(fd, SHUT_WR));
}

void world_close(int fd)
{
    close(fd);
}

void world_reset(int fd)
{
    peer_await(fd, POLLIN);
    peer_reset(fd);
}
