/* SPDX-License-Identifier: MIT */
/* src/sync/barrier.c - the barrier.
 *
 * Everything is under the lock.  `arrived_` counts those in line, and is less
 * than `count_` at each unlock.  Whoever would make it equal does not stand in
 * line but ends the round; those whom it wakes are of an earlier round then,
 * and no longer counted, although some may still be in a line.
 */
#include <pirn/barrier.h>

#include <errno.h>

#include "base/assert.h"
#include "sync/waitlist.h"
#include "task/await.h"
#include "task/local.h"

static bool wait_may_end_locked(pirn_waiter *waiter)
{
    return waiter->state_ == PIRN__WAIT_GRANTED;
}

/* The last one ends the round, every other one stands in line. */
static enum pirn_poll arrive(pirn_barrier_op *op, pirn_cx *cx)
{
    pirn_barrier *barrier = op->barrier_;
    pirn_waker spare = pirn_waker_clone(cx->waker);

    pirn__lock(&barrier->lock_);
    op->is_leader = barrier->arrived_ + 1 == barrier->count_;
    if (op->is_leader) {
        barrier->arrived_ = 0;
        barrier->round_++;
        pirn__waitlist_end_all_and_unlock(&barrier->waiters_, &barrier->lock_,
                                          PIRN__WAIT_GRANTED);
    } else {
        barrier->arrived_++;
        op->round_ = barrier->round_;
        spare =
            pirn__wait_enter_locked(&op->waiter_, &barrier->waiters_, spare);
        pirn__unlock(&barrier->lock_);
    }
    pirn_waker_drop(spare);
    return op->is_leader ? PIRN_READY : PIRN_PENDING;
}

static enum pirn_poll barrier_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {wait_may_end_locked};
    pirn_barrier_op *op = PIRN_CONTAINER_OF(self, pirn_barrier_op, future);
    pirn_barrier *barrier = op->barrier_;

    if (pirn__wait_is_in(&op->waiter_))
        return pirn__wait_poll(&op->waiter_, cx, &barrier->waiters_,
                               &barrier->lock_, &rules);
    return pirn__coop_spend(cx) ? arrive(op, cx) : PIRN_PENDING;
}

static void barrier_drop(pirn_future *self)
{
    pirn_barrier_op *op = PIRN_CONTAINER_OF(self, pirn_barrier_op, future);
    pirn_barrier *barrier = op->barrier_;
    enum pirn__wait_state state;
    pirn_waker own;

    if (!pirn__wait_is_in(&op->waiter_))
        return;
    pirn__lock(&barrier->lock_);
    state = pirn__wait_leave_locked(&op->waiter_, &own);
    if (state == PIRN__WAIT_QUEUED && op->round_ == barrier->round_)
        barrier->arrived_--;
    pirn__unlock(&barrier->lock_);
    pirn_waker_drop(own);
}

static void barrier_describe(const pirn_future *self, pirn_text *out)
{
    pirn_text_append(
        out, "wait at barrier %p",
        (void *)PIRN_CONTAINER_OF(self, const pirn_barrier_op, future)
            ->barrier_);
}

static int barrier_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_barrier_op, future)->is_leader;
}

static const pirn_future_ops barrier_ops = {
    .poll = barrier_poll,
    .drop = barrier_drop,
    .describe = barrier_describe,
    .outcome = barrier_outcome,
};

void pirn_barrier_wait_init(pirn_barrier_op *op, pirn_barrier *barrier)
{
    op->future.ops = &barrier_ops;
    op->barrier_ = barrier;
    op->is_leader = false;
    pirn__wait_init(&op->waiter_);
}

int pirn_barrier_wait(pirn_barrier *barrier, pirn_deadline deadline)
{
    pirn_barrier_op op;
    int rc;

    pirn_barrier_wait_init(&op, barrier);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.is_leader;
}

/* The object. */

int pirn_barrier_init(pirn_barrier *barrier, uint32_t count)
{
    if (count == 0)
        return -EINVAL;
    pirn__lock_init(&barrier->lock_);
    barrier->count_ = count;
    barrier->arrived_ = 0;
    barrier->round_ = 0;
    pirn__waitlist_init(&barrier->waiters_);
    return 0;
}

void pirn_barrier_deinit(pirn_barrier *barrier)
{
    PIRN_REQUIRE(pirn__waitlist_empty(&barrier->waiters_),
                 "nobody waits at a barrier that ends");
}
