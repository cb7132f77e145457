/* SPDX-License-Identifier: MIT */
/* src/sync/notify.c - notifications: for one, for the last, for all.
 *
 * Everything is under the lock.
 *
 * Invariants
 *   - A notification is stored only while nobody is in line.
 *   - Who has been reached by a notification for one and does not take it,
 *     passes it on in the same manner (the first, or the last).
 *   - An operation knows by the count of calls for all, as it was when it was
 *     prepared, whether there has been one since.  The count may wrap: only an
 *     operation that was not polled during exactly 2^32 such calls is deceived.
 */
#include <pirn/notify.h>

#include <errno.h>

#include "base/assert.h"
#include "sync/waitlist.h"
#include "task/await.h"
#include "task/local.h"

_Static_assert(sizeof(pirn_notify) <= 32, "a notify is small");

/* How a GRANTED waiter was reached; its kind_. */
enum { NOTIFY_FIRST, NOTIFY_LAST, NOTIFY_ALL };

/* Reach the first or the last in line, or store; wake the waker after unlock.
 */
static PIRN_MUST_CHECK pirn_waker notify_locked(pirn_notify *notify,
                                                uint16_t kind)
{
    pirn_waiter *waiter = kind == NOTIFY_LAST
                              ? pirn__waitlist_last(&notify->waiters_)
                              : pirn__waitlist_first(&notify->waiters_);

    if (waiter == NULL) {
        notify->stored_ = true;
        return (pirn_waker){0};
    }
    waiter->kind_ = kind;
    return pirn__wait_end_locked(waiter, PIRN__WAIT_GRANTED);
}

static void notify_how(pirn_notify *notify, uint16_t kind)
{
    pirn_waker waker;

    pirn__lock(&notify->lock_);
    waker = notify_locked(notify, kind);
    pirn__unlock(&notify->lock_);
    if (waker.ops != NULL)
        pirn_waker_wake(waker);
}

void pirn_notify_one(pirn_notify *notify)
{
    notify_how(notify, NOTIFY_FIRST);
}

void pirn_notify_last(pirn_notify *notify)
{
    notify_how(notify, NOTIFY_LAST);
}

void pirn_notify_all(pirn_notify *notify)
{
    pirn__lock(&notify->lock_);
    notify->all_count_++;
    pirn__waitlist_end_all_and_unlock(&notify->waiters_, &notify->lock_,
                                      PIRN__WAIT_GRANTED);
}

/* The operation. */

static bool take_stored_locked(pirn_notify *notify)
{
    bool stored = notify->stored_;

    notify->stored_ = false;
    return stored;
}

static bool wait_may_end_locked(pirn_waiter *waiter)
{
    pirn_notify_op *op = PIRN_CONTAINER_OF(waiter, pirn_notify_op, waiter_);
    pirn_notify *notify = op->notify_;

    if (waiter->state_ != PIRN__WAIT_NEW)
        return waiter->state_ == PIRN__WAIT_GRANTED;
    if (op->all_count_ != notify->all_count_) {
        waiter->kind_ = NOTIFY_ALL;
        return true;
    }
    waiter->kind_ = NOTIFY_FIRST;
    if (take_stored_locked(notify))
        return true;
    /* What it is reached by, unless somebody says otherwise. */
    waiter->kind_ = NOTIFY_ALL;
    return false;
}

static enum pirn_poll wait_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {wait_may_end_locked};
    pirn_notify_op *op = PIRN_CONTAINER_OF(self, pirn_notify_op, future);
    pirn_notify *notify = op->notify_;

    if (!pirn__wait_is_in(&op->waiter_) && !pirn__coop_spend(cx))
        return PIRN_PENDING;
    return pirn__wait_poll(&op->waiter_, cx, &notify->waiters_, &notify->lock_,
                           &rules);
}

static void wait_drop(pirn_future *self)
{
    pirn_notify_op *op = PIRN_CONTAINER_OF(self, pirn_notify_op, future);
    pirn_notify *notify = op->notify_;
    pirn_waker own, next = {0};

    if (!pirn__wait_is_in(&op->waiter_))
        return;
    pirn__lock(&notify->lock_);
    if (pirn__wait_leave_locked(&op->waiter_, &own) == PIRN__WAIT_GRANTED &&
        op->waiter_.kind_ != NOTIFY_ALL)
        next = notify_locked(notify, op->waiter_.kind_);
    pirn__unlock(&notify->lock_);
    if (own.ops != NULL)
        pirn_waker_drop(own);
    if (next.ops != NULL)
        pirn_waker_wake(next);
}

static void wait_discard(pirn_future *self)
{
    pirn_notify_op *op = PIRN_CONTAINER_OF(self, pirn_notify_op, future);

    if (op->waiter_.kind_ != NOTIFY_ALL)
        notify_how(op->notify_, op->waiter_.kind_);
}

static void wait_describe(const pirn_future *self, pirn_text *out)
{
    pirn_text_append(
        out, "wait for notify %p",
        (void *)PIRN_CONTAINER_OF(self, const pirn_notify_op, future)->notify_);
}

static const pirn_future_ops wait_ops = {
    .poll = wait_poll,
    .drop = wait_drop,
    .discard = wait_discard,
    .describe = wait_describe,
};

void pirn_notify_wait_init(pirn_notify_op *op, pirn_notify *notify)
{
    op->future.ops = &wait_ops;
    op->notify_ = notify;
    pirn__wait_init(&op->waiter_);
    pirn__lock(&notify->lock_);
    op->all_count_ = notify->all_count_;
    pirn__unlock(&notify->lock_);
}

bool pirn_notify_enable(pirn_notify_op *op)
{
    pirn_notify *notify = op->notify_;
    pirn_waker none = {0};
    bool notified;

    pirn__lock(&notify->lock_);
    notified = wait_may_end_locked(&op->waiter_);
    if (op->waiter_.state_ == PIRN__WAIT_NEW && notified)
        pirn__wait_grant_new_locked(&op->waiter_);
    else if (op->waiter_.state_ == PIRN__WAIT_NEW)
        none = pirn__wait_enter_locked(&op->waiter_, &notify->waiters_, none);
    pirn__unlock(&notify->lock_);
    PIRN_DASSERT(none.ops == NULL);
    return notified;
}

/* Straight-line calls. */

int pirn_notify_try_wait(pirn_notify *notify)
{
    bool stored;

    pirn__lock(&notify->lock_);
    stored = take_stored_locked(notify);
    pirn__unlock(&notify->lock_);
    return stored ? 0 : -EAGAIN;
}

int pirn_notify_wait(pirn_notify *notify, pirn_deadline deadline)
{
    struct pirn__local *local = pirn__local();
    int rc = pirn__fast_path(local);
    pirn_notify_op op;

    if (rc < 0)
        return rc;
    if (rc == 0 && pirn_notify_try_wait(notify) == 0)
        return 0;
    pirn_notify_wait_init(&op, notify);
    return pirn__await_here(local, &op.future, deadline);
}

/* The object. */

void pirn_notify_init(pirn_notify *notify)
{
    pirn__lock_init(&notify->lock_);
    notify->stored_ = false;
    notify->all_count_ = 0;
    pirn__waitlist_init(&notify->waiters_);
}

void pirn_notify_deinit(pirn_notify *notify)
{
    PIRN_REQUIRE(pirn__waitlist_empty(&notify->waiters_),
                 "nobody waits for a notify that ends");
}
