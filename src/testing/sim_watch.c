/* SPDX-License-Identifier: MIT */
/* src/testing/sim_watch.c - futures that are watched.
 *
 * A watched future has a table of operations in front of its own, which tells
 * the checkers of each poll and puts a counted waker in front of the poller's.
 * Its own table comes back when it is ready or dropped; the watches of a run are
 * freed at its end.
 */
#include "testing/sim.h"

#include <errno.h>

#include <pirn/async.h>
#include <pirn/time.h>

struct watch;

/* A waker that is counted. */
struct proxy {
    pirn_waker inner; /* empty without refs */
    uint32_t refs;
    struct watch *watch;
    struct proxy *next;
};

struct watch {
    pirn_async_ops table; /* the first part of it, unless it is a frame's */
    const pirn_future_ops *own;
    uint64_t number;
    bool gone;            /* ready, or dropped */
    struct proxy *polled; /* of the last poll */
    struct proxy *proxies;
    struct watch *next;
};

static struct watch *watches;
static uint64_t watch_count;

/* Wakers. */

static pirn_waker proxy_clone(const pirn_waker *self)
{
    struct proxy *proxy = self->data;

    proxy->refs++;
    pirn__sim_see(PIRN_SIM_WAKER_CLONED, proxy->watch->number);
    return *self;
}

static void give_proxy(struct proxy *proxy)
{
    pirn_waker inner = proxy->inner;

    if (--proxy->refs > 0)
        return;
    /* Before anything is called that another thread may run in. */
    proxy->inner = (pirn_waker){0};
    pirn_waker_drop(inner);
}

static void proxy_drop(pirn_waker self)
{
    struct proxy *proxy = self.data;

    pirn__sim_see(PIRN_SIM_WAKER_GONE, proxy->watch->number);
    give_proxy(proxy);
}

static void proxy_wake_by_ref(const pirn_waker *self)
{
    const struct proxy *proxy = self->data;
    const struct watch *watch = proxy->watch;

    /* An older waker may be of somebody who gave the future away. */
    if (!watch->gone && watch->polled == proxy)
        pirn__sim_see(PIRN_SIM_WOKEN, watch->number);
    pirn_sim_pause("wake", watch->number);
    pirn_waker_wake_by_ref(&proxy->inner);
}

static void proxy_wake(pirn_waker self)
{
    proxy_wake_by_ref(&self);
    proxy_drop(self);
}

static const pirn_waker_ops proxy_ops = {
    .clone = proxy_clone,
    .wake = proxy_wake,
    .wake_by_ref = proxy_wake_by_ref,
    .drop = proxy_drop,
};

/* The proxy that somebody keeps already for this waker, or a new one; to be
 * given back after the poll. */
static struct proxy *take_proxy(struct watch *watch, const pirn_waker *waker)
{
    struct proxy *proxy = watch->proxies;

    if (proxy != NULL && proxy->refs > 0) {
        proxy->refs++;
        if (pirn_waker_same(&proxy->inner, waker))
            return proxy;
        give_proxy(proxy);
    }
    if (proxy == NULL || proxy->refs > 0) {
        proxy = pirn__sim_take(sizeof *proxy);
        proxy->watch = watch;
        proxy->next = watch->proxies;
        watch->proxies = proxy;
    }
    proxy->inner = pirn_waker_clone(waker);
    proxy->refs = 1;
    return proxy;
}

/* Futures. */

static struct watch *watch_of(const pirn_future *future)
{
    return PIRN_CONTAINER_OF(future->ops, struct watch, table.future);
}

/* Its number is told for the last time, and its table is its own. */
static void end_watch(struct watch *watch, pirn_future *future)
{
    watch->gone = true;
    future->ops = watch->own;
    pirn__sim_see(PIRN_SIM_FUTURE_GONE, watch->number);
}

static enum pirn_poll watch_poll(pirn_future *self, pirn_cx *cx)
{
    struct watch *watch = watch_of(self);
    struct proxy *proxy = take_proxy(watch, cx->waker);
    const pirn_waker waker = {proxy, &proxy_ops};
    pirn_cx inner = *cx;
    enum pirn_poll poll;

    inner.waker = &waker;
    watch->polled = proxy;
    pirn__sim_see(PIRN_SIM_POLL_BEGUN, watch->number);
    pirn_sim_pause("poll begins", watch->number);
    poll = watch->own->poll(self, &inner);
    pirn_sim_pause("poll ends", watch->number);
    pirn__sim_see(PIRN_SIM_POLL_ENDED, watch->number);
    if (poll == PIRN_READY)
        end_watch(watch, self);
    give_proxy(proxy);
    return poll;
}

static void watch_drop(pirn_future *self)
{
    struct watch *watch = watch_of(self);

    end_watch(watch, self);
    watch->own->drop(self);
}

static void watch_discard(pirn_future *self)
{
    watch_of(self)->own->discard(self);
}

static void watch_describe(const pirn_future *self, pirn_text *out)
{
    watch_of(self)->own->describe(self, out);
}

static int watch_outcome(const pirn_future *self)
{
    return watch_of(self)->own->outcome(self);
}

/* A frame looks for its clean-up behind the operations. */
static pirn_cleanup_fn *cleanup_of(const pirn_future_ops *own)
{
    return own->drop == pirn_frame_drop
               ? PIRN_CONTAINER_OF(own, const pirn_async_ops, future)->cleanup
               : NULL;
}

void pirn_sim_watch(pirn_future *future)
{
    struct watch *watch;
    const pirn_future_ops *own;

    if (future == NULL || future->ops == NULL || !pirn__sim_is_on())
        return;
    own = future->ops;
    watch = pirn__sim_take(sizeof *watch);
    watch->own = own;
    watch->number = watch_count++;
    watch->table.future = (pirn_future_ops){
        .poll = watch_poll,
        .drop = watch_drop,
        .discard = own->discard == NULL ? NULL : watch_discard,
        .describe = own->describe == NULL ? NULL : watch_describe,
        .outcome = own->outcome == NULL ? NULL : watch_outcome,
    };
    watch->table.cleanup = cleanup_of(own);
    watch->next = watches;
    watches = watch;
    future->ops = &watch->table.future;
}

static bool has_wakers_out(const struct watch *watch)
{
    for (const struct proxy *proxy = watch->proxies; proxy != NULL;
         proxy = proxy->next) {
        if (proxy->refs > 0)
            return true;
    }
    return false;
}

static void free_proxies(struct watch *watch)
{
    while (watch->proxies != NULL) {
        struct proxy *proxy = watch->proxies;

        watch->proxies = proxy->next;
        pirn__sim_give(proxy, sizeof *proxy);
    }
}

void pirn__sim_watches_end(void)
{
    while (watches != NULL) {
        struct watch *watch = watches;

        watches = watch->next;
        /* Whoever has kept a waker may still use it. */
        if (has_wakers_out(watch))
            continue;
        free_proxies(watch);
        pirn__sim_give(watch, sizeof *watch);
    }
    watch_count = 0;
}

/* Waiting. */

int pirn_sim_await(pirn_future *future, pirn_deadline deadline)
{
    int rc;

    pirn_sim_watch(future);
    rc = pirn_await(future, deadline);
    if (rc == -ETIMEDOUT && deadline.ns != 0)
        pirn__sim_see(PIRN_SIM_TIME_CAME, deadline.ns);
    return rc;
}

/* The straight call, or its operation. */
int pirn_sim_sleep(pirn_deadline until)
{
    pirn_sleep_op op;
    int rc;

    if (!pirn__sim_is_on() || pirn_sim_chance(500)) {
        rc = pirn_sleep(until);
    } else {
        pirn_sleep_init(&op, until);
        rc = pirn_sim_await(&op.future, PIRN_NEVER);
        if (rc == 0)
            rc = pirn_sleep_rc(&op);
    }
    if (rc == 0)
        pirn__sim_see(PIRN_SIM_TIME_CAME, until.ns);
    return rc;
}
