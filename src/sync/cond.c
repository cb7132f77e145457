/* SPDX-License-Identifier: MIT */
/* src/sync/cond.c - the condition variable.
 *
 *     HOLDING --poll--> WAITING --signal, poll--> LOCKING --poll--> LOCKED
 *
 * A wait stands in line before it unlocks the mutex, so that who signals under
 * the mutex cannot miss it.  The inner locks of both are never held together.
 *
 * A straight-line call does only the first half as an operation, which its
 * deadline and cancellation may end; it locks the mutex itself, shielded.
 */
#include <pirn/cond.h>

#include "base/assert.h"
#include "sync/waitlist.h"
#include "task/await.h"
#include "task/local.h"

enum cond_stage {
    COND_HOLDING, /* not polled yet: the mutex is the caller's */
    COND_WAITING, /* for a signal */
    COND_LOCKING, /* signalled; waits for the mutex */
    COND_LOCKED,  /* the mutex is the caller's again */
};

/* How a GRANTED waiter was reached; its kind_. */
enum { COND_BROADCAST, COND_SIGNAL };

void pirn_cond_signal(pirn_cond *cond)
{
    pirn_waker waker = {0};
    pirn_waiter *first;

    pirn__lock(&cond->lock_);
    first = pirn__waitlist_first(&cond->waiters_);
    if (first != NULL) {
        first->kind_ = COND_SIGNAL;
        waker = pirn__wait_end_locked(first, PIRN__WAIT_GRANTED);
    }
    pirn__unlock(&cond->lock_);
    pirn_waker_wake(waker);
}

void pirn_cond_broadcast(pirn_cond *cond)
{
    pirn__lock(&cond->lock_);
    pirn__waitlist_end_all_and_unlock(&cond->waiters_, &cond->lock_,
                                      PIRN__WAIT_GRANTED);
}

/* The operation. */

static pirn_cond_wait_op *op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_cond_wait_op, future);
}

static void start_waiting(pirn_cond_wait_op *op, pirn_cx *cx)
{
    pirn_cond *cond = op->cond_;
    pirn_waker spare = pirn_waker_clone(cx->waker);

    op->waiter_.kind_ = COND_BROADCAST;
    pirn__lock(&cond->lock_);
    spare = pirn__wait_enter_locked(&op->waiter_, &cond->waiters_, spare);
    pirn__unlock(&cond->lock_);
    PIRN_DASSERT(spare.ops == NULL);
    op->stage_ = COND_WAITING;
    op->locked = false;
    pirn_mutex_unlock(op->mutex_);
}

static bool wait_may_end_locked(pirn_waiter *waiter)
{
    return waiter->state_ == PIRN__WAIT_GRANTED;
}

/* Until the signal has come. */
static enum pirn_poll poll_signal(pirn_cond_wait_op *op, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {wait_may_end_locked};
    pirn_cond *cond = op->cond_;

    if (op->stage_ == COND_HOLDING) {
        start_waiting(op, cx);
        return PIRN_PENDING;
    }
    return pirn__wait_poll(&op->waiter_, cx, &cond->waiters_, &cond->lock_,
                           &rules);
}

static enum pirn_poll cond_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_cond_wait_op *op = op_of(self);
    pirn_future *lock = &op->lock_op_.future;

    if (op->stage_ < COND_LOCKING) {
        if (poll_signal(op, cx) == PIRN_PENDING)
            return PIRN_PENDING;
        op->stage_ = COND_LOCKING;
        pirn_mutex_lock_init(&op->lock_op_, op->mutex_);
    }
    if (lock->ops->poll(lock, cx) == PIRN_PENDING)
        return PIRN_PENDING;
    op->stage_ = COND_LOCKED;
    op->locked = true;
    return PIRN_READY;
}

/* Out of the line; true if a signal for one had come, which is to be passed on.
 */
static bool stop_waiting(pirn_cond_wait_op *op)
{
    pirn_cond *cond = op->cond_;
    enum pirn__wait_state state;
    pirn_waker own;

    pirn__lock(&cond->lock_);
    state = pirn__wait_leave_locked(&op->waiter_, &own);
    pirn__unlock(&cond->lock_);
    pirn_waker_drop(own);
    return state == PIRN__WAIT_GRANTED && op->waiter_.kind_ == COND_SIGNAL;
}

static void cond_drop(pirn_future *self)
{
    pirn_cond_wait_op *op = op_of(self);
    bool is_owed = false;

    switch ((enum cond_stage)op->stage_) {
    case COND_WAITING:
        is_owed = stop_waiting(op);
        break;
    case COND_LOCKING:
        is_owed = op->waiter_.kind_ == COND_SIGNAL;
        pirn_future_drop(&op->lock_op_.future);
        break;
    case COND_HOLDING:
    case COND_LOCKED:
        break;
    }
    if (is_owed)
        pirn_cond_signal(op->cond_);
}

static void cond_discard(pirn_future *self)
{
    pirn_mutex_unlock(op_of(self)->mutex_);
}

static void cond_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_cond_wait_op *op =
        PIRN_CONTAINER_OF(self, const pirn_cond_wait_op, future);

    if (op->stage_ == COND_LOCKING)
        pirn_future_describe(&op->lock_op_.future, out);
    else
        pirn_text_append(out, "wait for condition %p", (void *)op->cond_);
}

static const pirn_future_ops cond_ops = {
    .poll = cond_poll,
    .drop = cond_drop,
    .discard = cond_discard,
    .describe = cond_describe,
};

void pirn_cond_wait_init(pirn_cond_wait_op *op, pirn_cond *cond,
                         pirn_mutex *mutex)
{
    op->future.ops = &cond_ops;
    op->cond_ = cond;
    op->mutex_ = mutex;
    op->stage_ = COND_HOLDING;
    op->locked = true;
    pirn__wait_init(&op->waiter_);
}

/* The straight-line call. */

static enum pirn_poll half_poll(pirn_future *self, pirn_cx *cx)
{
    return poll_signal(op_of(self), cx);
}

static const pirn_future_ops half_ops = {
    .poll = half_poll,
    .drop = cond_drop,
    .describe = cond_describe,
};

int pirn_cond_wait(pirn_cond *cond, pirn_mutex *mutex, pirn_deadline deadline)
{
    pirn_cond_wait_op op;
    int rc, lock_rc;

    pirn_cond_wait_init(&op, cond, mutex);
    op.future.ops = &half_ops;
    rc = pirn__await(&op.future, deadline);
    if (op.locked) /* it was refused before it began */
        return rc;
    pirn_fiber_shield_begin();
    lock_rc = pirn_mutex_lock(mutex, PIRN_NEVER);
    pirn_fiber_shield_end();
    PIRN_ASSERT(lock_rc == 0);
    return rc;
}

/* The object. */

void pirn_cond_init(pirn_cond *cond)
{
    pirn__lock_init(&cond->lock_);
    pirn__waitlist_init(&cond->waiters_);
}

void pirn_cond_deinit(pirn_cond *cond)
{
    PIRN_REQUIRE(pirn__waitlist_empty(&cond->waiters_),
                 "nobody waits for a condition that ends");
}
