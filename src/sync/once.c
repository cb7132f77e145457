/* SPDX-License-Identifier: MIT */
/* src/sync/once.c - the once cell.
 *
 *     EMPTY --begin--> MAKING --finish--> DONE
 *       ^--abandon-------'
 *
 * Invariants
 *   - The state changes only under the lock; DONE may be seen without it.
 *   - Somebody is in line only in MAKING.  An abandon with somebody in line
 *     stays in MAKING: the duty goes to the first.
 *   - A waiter that is GRANTED has the duty, one that is CLOSED need do
 *     nothing.
 */
#include <pirn/once.h>

#include <errno.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "sync/waitlist.h"
#include "task/await.h"
#include "task/local.h"

enum { ONCE_EMPTY, ONCE_MAKING, ONCE_DONE };

bool pirn_once_is_done(const pirn_once *once)
{
    /* acquire [once.state]: sees what was made. */
    return pirn__load(&once->state_, acquire) == ONCE_DONE;
}

static uint32_t state_locked(const pirn_once *once)
{
    /* relaxed: ordered by the lock. */
    return pirn__load(&once->state_, relaxed);
}

static void set_state_locked(pirn_once *once, uint32_t state)
{
    /* release [once.state]: what was made is seen by who finds DONE. */
    pirn__store(&once->state_, state, release);
}

/* 0: made.  1: the caller makes it.  -EAGAIN: somebody else does. */
static int begin_locked(pirn_once *once)
{
    switch (state_locked(once)) {
    case ONCE_EMPTY:
        set_state_locked(once, ONCE_MAKING);
        return 1;
    case ONCE_MAKING:
        return -EAGAIN;
    default:
        return 0;
    }
}

int pirn_once_try_begin(pirn_once *once)
{
    int rc;

    if (pirn_once_is_done(once))
        return 0;
    pirn__lock(&once->lock_);
    rc = begin_locked(once);
    pirn__unlock(&once->lock_);
    return rc;
}

static void require_making_locked(const pirn_once *once)
{
    PIRN_REQUIRE(state_locked(once) == ONCE_MAKING,
                 "only who has begun finishes or abandons");
}

void pirn_once_finish(pirn_once *once)
{
    pirn__lock(&once->lock_);
    require_making_locked(once);
    set_state_locked(once, ONCE_DONE);
    pirn__waitlist_end_all_and_unlock(&once->waiters_, &once->lock_,
                                      PIRN__WAIT_CLOSED);
}

void pirn_once_abandon(pirn_once *once)
{
    pirn_waker waker = {0};
    pirn_waiter *first;

    pirn__lock(&once->lock_);
    require_making_locked(once);
    first = pirn__waitlist_first(&once->waiters_);
    if (first == NULL)
        set_state_locked(once, ONCE_EMPTY);
    else
        waker = pirn__wait_end_locked(first, PIRN__WAIT_GRANTED);
    pirn__unlock(&once->lock_);
    pirn_waker_wake(waker);
}

/* To begin, as an operation. */

static bool begin_may_end_locked(pirn_waiter *waiter)
{
    pirn_once_begin_op *op =
        PIRN_CONTAINER_OF(waiter, pirn_once_begin_op, waiter_);
    int rc;

    switch ((enum pirn__wait_state)waiter->state_) {
    case PIRN__WAIT_NEW:
        rc = begin_locked(op->once_);
        op->must_make = rc == 1;
        return rc != -EAGAIN;
    case PIRN__WAIT_QUEUED:
        return false;
    case PIRN__WAIT_GRANTED:
        op->must_make = true;
        return true;
    case PIRN__WAIT_CLOSED:
    case PIRN__WAIT_OUT:
        break;
    }
    op->must_make = false;
    return true;
}

static enum pirn_poll begin_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {begin_may_end_locked};
    pirn_once_begin_op *op =
        PIRN_CONTAINER_OF(self, pirn_once_begin_op, future);
    pirn_once *once = op->once_;

    if (!pirn__wait_is_in(&op->waiter_)) {
        if (!pirn__coop_spend(cx))
            return PIRN_PENDING;
        if (pirn_once_is_done(once))
            return PIRN_READY;
    }
    return pirn__wait_poll(&op->waiter_, cx, &once->waiters_, &once->lock_,
                           &rules);
}

static void begin_drop(pirn_future *self)
{
    pirn_once_begin_op *op =
        PIRN_CONTAINER_OF(self, pirn_once_begin_op, future);
    pirn_once *once = op->once_;
    enum pirn__wait_state state;
    pirn_waker own;

    if (!pirn__wait_is_in(&op->waiter_))
        return;
    pirn__lock(&once->lock_);
    state = pirn__wait_leave_locked(&op->waiter_, &own);
    pirn__unlock(&once->lock_);
    pirn_waker_drop(own);
    if (state == PIRN__WAIT_GRANTED)
        pirn_once_abandon(once);
}

static void begin_discard(pirn_future *self)
{
    pirn_once_begin_op *op =
        PIRN_CONTAINER_OF(self, pirn_once_begin_op, future);

    if (op->must_make)
        pirn_once_abandon(op->once_);
}

static void begin_describe(const pirn_future *self, pirn_text *out)
{
    pirn_text_append(
        out, "wait for once %p",
        (void *)PIRN_CONTAINER_OF(self, const pirn_once_begin_op, future)
            ->once_);
}

static int begin_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_once_begin_op, future)->must_make;
}

static const pirn_future_ops begin_ops = {
    .poll = begin_poll,
    .drop = begin_drop,
    .discard = begin_discard,
    .describe = begin_describe,
    .outcome = begin_outcome,
};

void pirn_once_begin_init(pirn_once_begin_op *op, pirn_once *once)
{
    op->future.ops = &begin_ops;
    op->once_ = once;
    op->must_make = false;
    pirn__wait_init(&op->waiter_);
}

int pirn_once_begin(pirn_once *once, pirn_deadline deadline)
{
    struct pirn__local *local = pirn__local();
    int rc = pirn__fast_path(local);
    pirn_once_begin_op op;

    if (rc < 0)
        return rc;
    if (rc == 0 && pirn_once_is_done(once))
        return 0;
    pirn_once_begin_init(&op, once);
    rc = pirn__await_here(local, &op.future, deadline);
    return rc < 0 ? rc : op.must_make;
}

int pirn_once_call(pirn_once *once, pirn_once_fn *fn, void *arg,
                   pirn_deadline deadline)
{
    int rc = pirn_once_begin(once, deadline);

    if (rc <= 0)
        return rc;
    rc = fn(arg);
    if (rc < 0) {
        pirn_once_abandon(once);
        return rc;
    }
    pirn_once_finish(once);
    return 0;
}

/* To begin and to make, as an operation. */

static enum pirn_poll once_end(pirn_once_op *op)
{
    op->rc = pirn_future_outcome(op->make_);
    if (op->rc < 0) {
        pirn_once_abandon(op->begin_.once_);
        return PIRN_READY;
    }
    op->rc = 0;
    pirn_once_finish(op->begin_.once_);
    return PIRN_READY;
}

static enum pirn_poll once_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_once_op *op = PIRN_CONTAINER_OF(self, pirn_once_op, future);

    if (!op->making_) {
        if (begin_poll(&op->begin_.future, cx) == PIRN_PENDING)
            return PIRN_PENDING;
        if (!op->begin_.must_make) {
            pirn_future_drop(op->make_);
            return PIRN_READY;
        }
        op->making_ = true;
    }
    if (op->make_->ops->poll(op->make_, cx) == PIRN_PENDING)
        return PIRN_PENDING;
    return once_end(op);
}

static void once_drop(pirn_future *self)
{
    pirn_once_op *op = PIRN_CONTAINER_OF(self, pirn_once_op, future);

    pirn_future_drop(op->make_);
    if (op->making_)
        pirn_once_abandon(op->begin_.once_);
    else
        begin_drop(&op->begin_.future);
}

static void once_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_once_op *op =
        PIRN_CONTAINER_OF(self, const pirn_once_op, future);

    if (op->making_)
        pirn_future_describe(op->make_, out);
    else
        begin_describe(&op->begin_.future, out);
}

static int once_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_once_op, future)->rc;
}

static const pirn_future_ops once_ops = {
    .poll = once_poll,
    .drop = once_drop,
    .describe = once_describe,
    .outcome = once_outcome,
};

void pirn_once_call_init(pirn_once_op *op, pirn_once *once, pirn_future *make)
{
    op->future.ops = &once_ops;
    op->make_ = make;
    op->making_ = false;
    op->rc = 0;
    pirn_once_begin_init(&op->begin_, once);
}

/* The object. */

void pirn_once_init(pirn_once *once)
{
    pirn__init(&once->state_, ONCE_EMPTY);
    pirn__lock_init(&once->lock_);
    pirn__waitlist_init(&once->waiters_);
}

void pirn_once_deinit(pirn_once *once)
{
    PIRN_REQUIRE(pirn__waitlist_empty(&once->waiters_),
                 "nobody waits for a once that ends");
}
