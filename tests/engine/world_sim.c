/* SPDX-License-Identifier: MIT */
/* tests/engine/world_sim.c - the stories of tests/conformance in the simulated
 * world.
 *
 * Each seed is a run of its own, with a way and a runtime of its own.  A story
 * says what must come out, so its weather is fair: no connection breaks and
 * nothing runs out.  But threads lose their processor anywhere, waits end for no
 * reason and late, timers too; segments are split and take their time.
 *
 * A run says in which way it is told if PIRN_SIM_SEEDS is 1, as in the command
 * that repeats it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "engine/sim.h"
#include "engine/world.h"
#include "sys/sys.h"

enum { SHUTDOWN_MS = 20 * 1000 };

/* A few bytes have room: the partner of a connection may be the same thread. */
static const struct sim_options fair = {.resets = SIM_NONE,
                                        .refusals = SIM_NONE,
                                        .weather_ms = SIM_NONE,
                                        .buffer = 256};

/* What is being told; set before the runs begin. */
static struct {
    world_tell_fn *tell;
    void *arg;
    size_t ways;
} tale;

static bool is_repeated(void)
{
    const char *seeds = getenv("PIRN_SIM_SEEDS");

    return seeds != NULL && strcmp(seeds, "1") == 0;
}

static void tell_one(void)
{
    size_t way = sim_below((uint32_t)tale.ways);
    int before = test_failures();

    sim_preempt_often();
    if (is_repeated())
        fprintf(stderr, "told in way %zu of %zu\n", way, tale.ways);
    tale.tell(tale.arg, way);
    sim_check(test_failures() == before, "the expectations of the story hold");
}

void world_tell(const char *test, size_t count, world_tell_fn *tell, void *arg)
{
    tale.tell = tell;
    tale.arg = arg;
    tale.ways = count;
    sim_expect_clean(test, tell_one, &fair, test_size(10, 400, 5000));
}

size_t world_size(size_t real, size_t simulated)
{
    (void)real;
    return simulated;
}

/* Runtimes. */

static struct sim_program program;

int world_run(const pirn_runtime_options *options, pirn_fiber_fn *fn, void *arg)
{
    int rc;

    (void)options;
    program = sim_program_begin();
    rc = sim_program_run(&program, fn, arg);
    sim_program_shutdown(&program, SHUTDOWN_MS);
    EXPECT(program.report.in_time);
    sim_program_end(&program);
    return rc;
}

pirn_runtime *world_runtime_new(const pirn_runtime_options *options)
{
    (void)options;
    program = sim_program_begin();
    (void)pirn_runtime_enter(NULL);
    return program.rt;
}

void world_runtime_end(pirn_runtime *rt)
{
    EXPECT_PTR_EQ(program.rt, rt);
    sim_program_shutdown(&program, SHUTDOWN_MS);
    EXPECT(program.report.in_time);
    sim_program_end(&program);
}

/* For as short a time as there is. */
void world_yield(void)
{
    uint32_t nothing = 0;

    (void)pirn__sys->futex_wait(&nothing, 0,
                                (pirn_deadline){sim_now_ns() + 1000});
}

void world_pause(void)
{
    sim_pause("story", 0);
}

void world_watch(pirn_future *future)
{
    sim_watch(future);
}

/* Threads. */

static void run(void *arg)
{
    struct world_thread *thread = arg;

    thread->fn(thread->arg);
    thread->ended = 1;
    pirn__sys->futex_wake(&thread->ended, 1);
}

void world_thread_start(struct world_thread *thread, void (*fn)(void *arg),
                        void *arg)
{
    *thread = (struct world_thread){.fn = fn, .arg = arg};
    sim_thread(run, thread);
    sim_pause("thread", 0);
}

void world_thread_join(struct world_thread *thread)
{
    /* Ends with the thread. */
    while (thread->ended == 0)
        (void)pirn__sys->futex_wait(&thread->ended, 0, PIRN_NEVER);
}

/* Sockets. */

static struct sockaddr_in address_of(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* A wait may end for no reason: whoever calls looks again. */
static void wait_for(int fd, short events)
{
    struct pollfd look = {.fd = fd, .events = events};

    (void)pirn__sys->poll(&look, 1, PIRN_NEVER);
}

int world_listen(void)
{
    struct sockaddr_in name = address_of(0);
    int fd = pirn__sys->socket(AF_INET);

    EXPECT_EQ(0, pirn__sys->bind(fd, (struct sockaddr *)&name, sizeof name));
    EXPECT_EQ(0, pirn__sys->listen(fd, 4));
    return fd;
}

uint16_t world_port(int fd)
{
    struct sockaddr_in name;
    unsigned len = sizeof name;

    EXPECT_EQ(0, pirn__sys->sockname(fd, (struct sockaddr *)&name, &len));
    return ntohs(name.sin_port);
}

int world_connect(uint16_t port)
{
    struct sockaddr_in name = address_of(port);
    int fd = pirn__sys->socket(AF_INET);
    int rc;

    /* Ends: the network is fair. */
    while ((rc = pirn__sys->connect(fd, (struct sockaddr *)&name,
                                    sizeof name)) == -EINPROGRESS ||
           rc == -EALREADY)
        wait_for(fd, POLLOUT);
    EXPECT_EQ(-EISCONN, rc);
    return fd;
}

int world_accept(int listener)
{
    int fd;

    /* Ends: somebody is coming. */
    while ((fd = pirn__sys->accept(listener, NULL, NULL)) == -EAGAIN)
        wait_for(listener, POLLIN);
    EXPECT_GE(fd, 0);
    return fd;
}

void world_pair(int fds[2])
{
    int listener = world_listen();

    fds[1] = world_connect(world_port(listener));
    fds[0] = world_accept(listener);
    world_close(listener);
}

/* There are none: a connection will do. */
void world_pipe(int fds[2])
{
    world_pair(fds);
}

void world_send(int fd, const void *data, size_t len)
{
    const char *at = data;

    /* Ends: there is room, or somebody reads. */
    while (len > 0) {
        ssize_t n = pirn__sys->send(fd, at, len);

        if (n == -EAGAIN) {
            wait_for(fd, POLLOUT);
            continue;
        }
        EXPECT_GE(n, 1);
        if (n < 1)
            return;
        at += n;
        len -= (size_t)n;
    }
}

size_t world_recv(int fd, void *buf, size_t len)
{
    ssize_t n;

    /* Ends: something is coming, or the end. */
    while ((n = pirn__sys->recv(fd, buf, len)) == -EAGAIN)
        wait_for(fd, POLLIN);
    EXPECT_GE(n, 0);
    return n < 0 ? 0 : (size_t)n;
}

void world_end_writing(int fd)
{
    EXPECT_EQ(0, pirn__sys->shutdown(fd, SHUT_WR));
}

void world_close(int fd)
{
    pirn__sys->close(fd);
}

/* What closes with unread bytes answers with a reset. */
void world_reset(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};

    /* Ends: something is coming. */
    while (pirn__sys->poll(&look, 1, PIRN_NEVER) == 0)
        continue;
    world_close(fd);
}
