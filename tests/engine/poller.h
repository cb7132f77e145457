/* SPDX-License-Identifier: MIT */
/* tests/engine/poller.h - poll a future by hand: no runtime, no clock, no
 * threads, so that every interleaving is the one written down.
 *
 *     poller b = {.fut = &b_op.future};
 *
 *     EXPECT_EQ(PIRN_PENDING, poller_poll(&b));
 *     ...
 *     EXPECT_EQ(1, b.wakes);
 *     poller_drop(&b);
 *
 * `wakes` counts how often the poller was told to poll again, `wakers` the
 * copies of its waker that are still held somewhere; poller_drop() checks that
 * none is left.  Where another thread wakes, read them by poller_wakes() and
 * poller_wakers().
 */
#ifndef PIRN_TESTS_ENGINE_POLLER_H
#define PIRN_TESTS_ENGINE_POLLER_H

#include <pirn/future.h>

#include "base/atomic.h"
#include "engine/test.h"
#include "task/local.h"

typedef struct poller {
    pirn_future *fut;        /* NULL once it has ended */
    struct pirn__turn *turn; /* the runtime's side of the polls; or NULL */
    union {
        int wakes;
        PIRN_ATOMIC(int) wakes_shared;
    };
    union {
        int wakers;
        PIRN_ATOMIC(int) wakers_shared;
    };
    PIRN_ATOMIC(int) clones; /* ever made */
    void (*on_clone)(struct poller *p); /* called in each; or NULL */
} poller;

static inline pirn_waker poller_waker_clone(const pirn_waker *self)
{
    poller *p = self->data;

    /* relaxed: a count. */
    (void)pirn__add(&p->wakers_shared, 1, relaxed);
    /* relaxed: a count. */
    (void)pirn__add(&p->clones, 1, relaxed);
    if (p->on_clone != NULL)
        p->on_clone(p);
    return *self;
}

static inline void poller_waker_wake_by_ref(const pirn_waker *self)
{
    poller *p = self->data;

    /* release [poller.wakes]: what was done before the wake is seen by whoever
     * sees the count. */
    (void)pirn__add(&p->wakes_shared, 1, release);
}

static inline void poller_waker_drop(pirn_waker self)
{
    poller *p = self.data;

    /* relaxed: a count. */
    (void)pirn__sub(&p->wakers_shared, 1, relaxed);
}

static inline void poller_waker_wake(pirn_waker self)
{
    poller_waker_wake_by_ref(&self);
    poller_waker_drop(self);
}

static inline int poller_wakes(poller *p)
{
    /* acquire [poller.wakes]: pairs with the wake. */
    return pirn__load(&p->wakes_shared, acquire);
}

static inline int poller_wakers(poller *p)
{
    /* relaxed: a count. */
    return pirn__load(&p->wakers_shared, relaxed);
}

static inline int poller_clones(poller *p)
{
    /* relaxed: a count. */
    return pirn__load(&p->clones, relaxed);
}

/* A waker of the poller that is not counted; clone it to keep it. */
static inline pirn_waker poller_waker(poller *p)
{
    static const pirn_waker_ops ops = {
        .clone = poller_waker_clone,
        .wake = poller_waker_wake,
        .wake_by_ref = poller_waker_wake_by_ref,
        .drop = poller_waker_drop,
    };

    return (pirn_waker){.data = p, .ops = &ops};
}

/* One poll, or the end of a live future, while another thread may have taken a
 * copy of the waker and be about to wake it. */
static inline enum pirn_poll poller_poll_raced(poller *p)
{
    pirn_waker waker = poller_waker(p);
    pirn_cx cx = pirn_cx_of_waker(&waker);
    enum pirn_poll result;

    cx.turn_ = p->turn;
    result = pirn_future_poll(p->fut, &cx);
    if (result == PIRN_READY)
        p->fut = NULL;
    return result;
}

static inline void poller_drop_raced(poller *p)
{
    if (p->fut != NULL)
        pirn_future_drop(p->fut);
    p->fut = NULL;
}

/* One poll.  After PIRN_READY no copy of the waker may be left. */
static inline enum pirn_poll poller_poll(poller *p)
{
    enum pirn_poll result = poller_poll_raced(p);

    if (result == PIRN_READY)
        EXPECT_EQ(0, poller_wakers(p));
    return result;
}

/* Give the future up, if it is still live. */
static inline void poller_drop(poller *p)
{
    poller_drop_raced(p);
    EXPECT_EQ(0, poller_wakers(p));
}

#endif /* PIRN_TESTS_ENGINE_POLLER_H */
