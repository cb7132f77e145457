/* SPDX-License-Identifier: MIT */
/* src/sync/mutex.c - the mutex.
 *
 *     FREE --lock--> LOCKED --somebody waits--> CONTENDED
 *       ^--unlock------'                            |
 *                        '-----the last was served--'
 *
 * Invariants
 *   - CONTENDED is entered and left under the inner lock, and at each unlock of
 *     that it says whether somebody is in line.  The short ways, which are one
 *     compare-and-swap each, keep out of it.
 *   - An unlock that finds somebody in line does not free the mutex: it hands
 *     it over, so that nobody passes.
 *   - An unlock touches the mutex no more once others can lock it.  On the long
 *     way the next holder is told under the inner lock; if nobody is left in
 *     line, the inner lock is left first and the short way taken.
 */
#include <pirn/mutex.h>

#include <errno.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "sched/worker.h"
#include "sync/giver.h"
#include "sync/waitlist.h"
#include "task/await.h"
#include "task/local.h"

_Static_assert(sizeof(pirn_mutex) <= 40, "a mutex is small");

enum { MUTEX_FREE, MUTEX_LOCKED, MUTEX_CONTENDED };

/* How often a newcomer looks again, some microseconds at most: longer than a
 * short section on another processor, and less than it takes to be woken from
 * there. */
#ifndef PIRN__MUTEX_SPINS
#define PIRN__MUTEX_SPINS 64
#endif

static inline bool try_lock(pirn_mutex *mutex)
{
    uint32_t word = MUTEX_FREE;

    /* acquire [mutex.word]: sees what the holders before wrote. */
    return pirn__cas(&mutex->word_, &word, MUTEX_LOCKED, acquire, relaxed);
}

static inline bool try_unlock(pirn_mutex *mutex)
{
    uint32_t word = MUTEX_LOCKED;

    /* release [mutex.word]: what was written under it is seen by the next. */
    if (pirn__cas(&mutex->word_, &word, MUTEX_FREE, release, relaxed))
        return true;
    PIRN_REQUIRE(word == MUTEX_CONTENDED, "only a locked mutex is unlocked");
    return false;
}

static uint32_t word_locked(const pirn_mutex *mutex)
{
    /* relaxed: ordered by the inner lock where it matters, else a guess. */
    return pirn__load(&mutex->word_, relaxed);
}

/* Somebody has left the line, by whatever door. */
static void note_line_locked(pirn_mutex *mutex)
{
    /* relaxed: the mutex stays locked, and CONTENDED is left only under the
     * inner lock. */
    if (pirn__waitlist_empty(&mutex->waiters_))
        pirn__store(&mutex->word_, MUTEX_LOCKED, relaxed);
}

/* Hand a CONTENDED mutex to the first in line.  False: nobody is. */
static bool hand_over(pirn_mutex *mutex)
{
    uint32_t giver = pirn__giver_here();
    pirn_waker waker = {0};
    pirn_waiter *first;

    pirn__lock(&mutex->lock_);
    first = pirn__waitlist_first(&mutex->waiters_);
    if (first != NULL) {
        waker = pirn__wait_end_locked(first, PIRN__WAIT_GRANTED);
        note_line_locked(mutex);
        pirn__giver_note_locked(&mutex->giver_, giver);
    }
    pirn__unlock(&mutex->lock_);
    if (first != NULL)
        pirn_waker_wake(waker);
    return first != NULL;
}

/* The operation. */

/* Say that somebody waits.  False: the mutex has become free. */
static bool announce_locked(pirn_mutex *mutex)
{
    uint32_t word = word_locked(mutex);

    if (word == MUTEX_CONTENDED)
        return true;
    word = MUTEX_LOCKED;
    /* relaxed: locks nothing; who unlocks finds us under the inner lock. */
    return pirn__cas(&mutex->word_, &word, MUTEX_CONTENDED, relaxed, relaxed);
}

static bool lock_may_end_locked(pirn_waiter *waiter)
{
    pirn_mutex *mutex =
        PIRN_CONTAINER_OF(waiter, pirn_mutex_lock_op, waiter_)->mutex_;

    if (waiter->state_ != PIRN__WAIT_NEW)
        return waiter->state_ == PIRN__WAIT_GRANTED;
    /* Ends: each turn fails because somebody else has locked or unlocked. */
    while (!announce_locked(mutex))
        if (try_lock(mutex))
            return true;
    return false;
}

/* Without standing in line: READY, or PENDING with a wake arranged; false if it
 * has to stand in line. */
static bool try_first(pirn_mutex_lock_op *op, pirn_cx *cx, enum pirn_poll *poll)
{
    *poll = PIRN_PENDING;
    if (!pirn__coop_spend(cx))
        return true;
    if (word_locked(op->mutex_) != MUTEX_FREE)
        return pirn__giver_gives_way(&op->mutex_->giver_, cx, &op->waiter_);
    *poll = PIRN_READY;
    if (!try_lock(op->mutex_))
        return false;
    pirn__giver_repay(&op->mutex_->giver_);
    return true;
}

static enum pirn_poll lock_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {lock_may_end_locked};
    pirn_mutex_lock_op *op =
        PIRN_CONTAINER_OF(self, pirn_mutex_lock_op, future);
    pirn_mutex *mutex = op->mutex_;
    enum pirn_poll poll;

    if (!pirn__wait_is_in(&op->waiter_) && try_first(op, cx, &poll))
        return poll;
    return pirn__wait_poll(&op->waiter_, cx, &mutex->waiters_, &mutex->lock_,
                           &rules);
}

static void lock_drop(pirn_future *self)
{
    pirn_mutex_lock_op *op =
        PIRN_CONTAINER_OF(self, pirn_mutex_lock_op, future);
    pirn_mutex *mutex = op->mutex_;
    enum pirn__wait_state state;
    pirn_waker own;

    if (!pirn__wait_is_in(&op->waiter_))
        return;
    pirn__lock(&mutex->lock_);
    state = pirn__wait_leave_locked(&op->waiter_, &own);
    if (state == PIRN__WAIT_QUEUED)
        note_line_locked(mutex);
    pirn__unlock(&mutex->lock_);
    if (own.ops != NULL)
        pirn_waker_drop(own);
    if (state == PIRN__WAIT_GRANTED)
        pirn_mutex_unlock(mutex);
}

static void lock_discard(pirn_future *self)
{
    pirn_mutex_unlock(
        PIRN_CONTAINER_OF(self, pirn_mutex_lock_op, future)->mutex_);
}

static void lock_describe(const pirn_future *self, pirn_text *out)
{
    pirn_text_append(
        out, "lock mutex %p",
        (void *)PIRN_CONTAINER_OF(self, const pirn_mutex_lock_op, future)
            ->mutex_);
}

static const pirn_future_ops lock_ops = {
    .poll = lock_poll,
    .drop = lock_drop,
    .discard = lock_discard,
    .describe = lock_describe,
};

void pirn_mutex_lock_init(pirn_mutex_lock_op *op, pirn_mutex *mutex)
{
    op->future.ops = &lock_ops;
    op->mutex_ = mutex;
    pirn__wait_init(&op->waiter_);
    op->waiter_.kind_ = PIRN__GIVER_PATIENT;
}

/* Straight-line calls. */

int pirn_mutex_try_lock(pirn_mutex *mutex)
{
    return try_lock(mutex) ? 0 : -EAGAIN;
}

/* Could the holder be running now?  Not if this worker is the only one, nor if
 * it has the mutex from us and waits to be run. */
static bool is_worth_a_spin(const struct pirn__local *local,
                            const pirn_mutex *mutex)
{
    if (local->driving == NULL)
        return true;
    return local->worker != NULL && local->worker->pool->count > 1 &&
           !pirn__giver_is(&mutex->giver_, local->turn);
}

/* Try again for a moment, unless somebody is in line. */
static bool spin_and_lock(pirn_mutex *mutex)
{
    for (int i = 0; i < PIRN__MUTEX_SPINS; i++) {
        uint32_t word = word_locked(mutex);

        if (word == MUTEX_CONTENDED)
            return false;
        if (word == MUTEX_FREE && try_lock(mutex))
            return true;
        pirn__spin_hint();
    }
    return false;
}

/* Apart, so that the short way does not pay for the long one's frame.  `rc` is
 * what pirn__fast_path() said: 0, and the mutex was locked; or go no further on
 * that way. */
__attribute__((noinline)) static int
lock_slowly(pirn_mutex *mutex, pirn_deadline deadline, int rc)
{
    struct pirn__local *local = pirn__local();
    pirn_mutex_lock_op op;

    if (rc < 0)
        return rc;
    if (rc == 0 && deadline.ns != 0 && is_worth_a_spin(local, mutex) &&
        spin_and_lock(mutex))
        return 0;
    pirn_mutex_lock_init(&op, mutex);
    if (deadline.ns == 0) /* it is to try, not to wait for a turn */
        op.waiter_.kind_ = PIRN__GIVER_AT_ONCE;
    return pirn__await_here(local, &op.future, deadline);
}

int pirn_mutex_lock(pirn_mutex *mutex, pirn_deadline deadline)
{
    int rc = pirn__fast_path(pirn__local());

    if (rc == 0 && try_lock(mutex)) {
        pirn__giver_repay(&mutex->giver_);
        return 0;
    }
    return lock_slowly(mutex, deadline, rc);
}

void pirn_mutex_unlock(pirn_mutex *mutex)
{
    /* Ends: it is turned only by others who come and go. */
    while (!try_unlock(mutex) && !hand_over(mutex))
        continue;
}

/* The object. */

void pirn_mutex_init(pirn_mutex *mutex)
{
    pirn__init(&mutex->word_, MUTEX_FREE);
    pirn__lock_init(&mutex->lock_);
    pirn__waitlist_init(&mutex->waiters_);
    pirn__giver_init(&mutex->giver_);
}

void pirn_mutex_deinit(pirn_mutex *mutex)
{
    PIRN_REQUIRE(word_locked(mutex) == MUTEX_FREE,
                 "a mutex that ends is unlocked");
}

/* The duty to unlock as a value. */

pirn_mutex_guard pirn_mutex_guard_of(pirn_mutex *mutex)
{
    return (pirn_mutex_guard){mutex};
}

pirn_mutex_guard pirn_mutex_guard_take(pirn_mutex_guard *guard)
{
    pirn_mutex_guard taken = *guard;

    guard->mutex_ = NULL;
    return taken;
}

void pirn_mutex_guard_unlock(pirn_mutex_guard *guard)
{
    pirn_mutex_guard taken = pirn_mutex_guard_take(guard);

    if (taken.mutex_ != NULL)
        pirn_mutex_unlock(taken.mutex_);
}
