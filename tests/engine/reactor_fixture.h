/* SPDX-License-Identifier: MIT */
/* tests/engine/reactor_fixture.h - a reactor without a runtime around it, and
 * futures polled by hand: every interleaving is the one written down.
 */
#ifndef PIRN_TESTS_ENGINE_REACTOR_FIXTURE_H
#define PIRN_TESTS_ENGINE_REACTOR_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pirn/io.h>

#include "base/list.h"
#include "base/lock.h"
#include "engine/test.h"
#include "reactor/reactor.h"
#include "sys/fork.h"
#include "sys/heap.h"
#include "sys/sys.h"
#include "task/home.h"
#include "task/local.h"

/* A home that only has a reactor, and is current while the fixture is open. */
struct reactor_fixture {
    struct pirn__home home;
    struct pirn__reactor *reactor;
    int freed;
};

static inline void fixture_home_wake(struct pirn__home *home)
{
    pirn__reactor_wake(home->reactor);
}

static inline void fixture_home_free(struct pirn__home *home)
{
    PIRN_CONTAINER_OF(home, struct reactor_fixture, home)->freed++;
}

static const struct pirn__home_ops fixture_home_ops = {
    .wake = fixture_home_wake,
    .free = fixture_home_free,
};

static inline void fixture_open(struct reactor_fixture *fixture)
{
    *fixture = (struct reactor_fixture){
        .home =
            {
                .ops = &fixture_home_ops,
                .alloc = &pirn__alloc_malloc,
                .fork_generation = pirn__fork_generation(),
            },
    };
    pirn__init(&fixture->home.refs, 1);
    EXPECT_EQ(0, pirn__reactor_new(&pirn__alloc_malloc, &fixture->home,
                                   &fixture->reactor));
    fixture->home.reactor = fixture->reactor;
    pirn__local()->entered = &fixture->home;
}

static inline void fixture_leave(void)
{
    pirn__local()->entered = NULL;
}

/* Also checks that nothing holds the home any more. */
static inline void fixture_close(struct reactor_fixture *fixture)
{
    fixture_leave();
    pirn__reactor_shutdown(fixture->reactor);
    pirn__reactor_free(fixture->reactor);
    EXPECT_EQ(0, fixture->freed);
    pirn__home_unref(&fixture->home);
    EXPECT_EQ(1, fixture->freed);
}

static inline int fixture_turn(struct reactor_fixture *fixture)
{
    return pirn__reactor_poll(fixture->reactor, PIRN_EXPIRED);
}

/* A future and its counted wakes. */
struct poller {
    pirn_future *future;
    PIRN_ATOMIC(int) wakes;
    PIRN_ATOMIC(int) clones; /* not given up yet */
};

static inline pirn_waker poller_waker_clone(const pirn_waker *self)
{
    struct poller *poller = self->data;

    /* relaxed: a count. */
    pirn__add(&poller->clones, 1, relaxed);
    return *self;
}

static inline void poller_waker_wake_by_ref(const pirn_waker *self)
{
    struct poller *poller = self->data;

    /* relaxed: a count. */
    pirn__add(&poller->wakes, 1, relaxed);
}

static inline void poller_waker_drop(pirn_waker self)
{
    struct poller *poller = self.data;

    /* relaxed: a count. */
    pirn__sub(&poller->clones, 1, relaxed);
}

static inline void poller_waker_wake(pirn_waker self)
{
    poller_waker_wake_by_ref(&self);
    poller_waker_drop(self);
}

static const pirn_waker_ops poller_waker_ops = {
    .clone = poller_waker_clone,
    .wake = poller_waker_wake,
    .wake_by_ref = poller_waker_wake_by_ref,
    .drop = poller_waker_drop,
};

static inline enum pirn_poll poller_poll(struct poller *poller)
{
    const pirn_waker waker = {poller, &poller_waker_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);

    return pirn_future_poll(poller->future, &cx);
}

static inline int poller_wakes(const struct poller *poller)
{
    /* relaxed: a count. */
    return pirn__load(&poller->wakes, relaxed);
}

static inline int poller_clones(const struct poller *poller)
{
    /* relaxed: a count. */
    return pirn__load(&poller->clones, relaxed);
}

/* A pipe whose reading end is non-blocking and whose writing end is ours. */
static inline void open_pipe(int fds[2])
{
    EXPECT_EQ(0, pipe(fds));
    EXPECT_EQ(0, fcntl(fds[0], F_SETFL, O_NONBLOCK));
}

static inline void put_byte(int fd)
{
    EXPECT_EQ(1, write(fd, "x", 1));
}

static inline bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

#endif /* PIRN_TESTS_ENGINE_REACTOR_FIXTURE_H */
