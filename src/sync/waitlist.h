/* SPDX-License-Identifier: MIT */
/* src/sync/waitlist.h - those who wait for a lock, a permit or a message.
 *
 *     NEW --poll--> QUEUED --end--> GRANTED --poll--> OUT
 *                     |   `-------> CLOSED  --poll--'
 *                     `--drop----------------------> OUT
 *
 * A list and its waiters belong to an object with a lock of four bytes, and
 * everything here whose name ends in _locked is called under it.  The object
 * decides who may go on; the list keeps their order, their wakers and their
 * states.
 *
 * Invariants
 *   - A waiter is in the list exactly while it is QUEUED.
 *   - A QUEUED waiter holds one waker, that of its latest poll; in every other
 *     state it holds none.
 *   - Whoever ends a wait takes the waker out under the lock, wakes it after
 *     unlock, and touches the waiter no more: its memory may be gone.
 *   - A waiter learns of its end only under the lock.  So when it does, whoever
 *     ended it has left the object, which may then be freed.  (The receiver of an
 *     mpsc channel is told otherwise, and frees only after it has had the lock.)
 *   - GRANTED means that something has left the object (a permit, a message)
 *     and the waiter has not seen it yet.  Who drops such a waiter passes it
 *     on.
 */
#ifndef PIRN_SYNC_WAITLIST_H
#define PIRN_SYNC_WAITLIST_H

#include <pirn/waiter.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"

enum pirn__wait_state {
    PIRN__WAIT_NEW,     /* has not been in line */
    PIRN__WAIT_QUEUED,  /* in line */
    PIRN__WAIT_GRANTED, /* has got what it waited for */
    PIRN__WAIT_CLOSED,  /* the object was closed */
    PIRN__WAIT_OUT,     /* has seen its end, or has left */
};

/* Lists. */

static inline void pirn__waitlist_init(pirn_waitlist *list)
{
    pirn__list_init(&list->waiters_);
}

/* Under the lock; also true for a list that is all zero. */
static inline bool pirn__waitlist_empty(const pirn_waitlist *list)
{
    return list->waiters_.next_ == NULL || pirn__list_empty(&list->waiters_);
}

static inline pirn_waiter *pirn__wait_of(pirn_link *link)
{
    return PIRN_CONTAINER_OF(link, pirn_waiter, link_);
}

/* The one that came first, or NULL. */
static inline pirn_waiter *pirn__waitlist_first(const pirn_waitlist *list)
{
    return pirn__waitlist_empty(list) ? NULL
                                      : pirn__wait_of(list->waiters_.next_);
}

/* The one that came last, or NULL. */
static inline pirn_waiter *pirn__waitlist_last(const pirn_waitlist *list)
{
    return pirn__waitlist_empty(list) ? NULL
                                      : pirn__wait_of(list->waiters_.prev_);
}

/* Wakers that are to be woken after unlock.  Lives on the stack.  When it is
 * full: unlock, wake, lock again; the object must then outlive the call. */
#ifndef PIRN__WAKE_BATCH
#define PIRN__WAKE_BATCH 16
#endif

struct pirn__wake_batch {
    unsigned count;
    pirn_waker wakers[PIRN__WAKE_BATCH];
};

static inline void pirn__wake_batch_init(struct pirn__wake_batch *batch)
{
    batch->count = 0;
}

static inline bool pirn__wake_batch_full(const struct pirn__wake_batch *batch)
{
    return batch->count == PIRN__WAKE_BATCH;
}

/* Into a batch that is not full. */
static inline void pirn__wake_batch_add(struct pirn__wake_batch *batch,
                                        pirn_waker waker)
{
    batch->wakers[batch->count++] = waker;
}

/* After unlock: wake them all, in order, and leave the batch empty. */
void pirn__wake_batch_wake(struct pirn__wake_batch *batch);

/* Waiters, from the side of the object. */

/* The wait of one that is QUEUED ends as `state` says, GRANTED or CLOSED.  Wake
 * the waker after unlock. */
static inline PIRN_MUST_CHECK pirn_waker
pirn__wait_end_locked(pirn_waiter *waiter, enum pirn__wait_state state)
{
    pirn_waker waker = waiter->waker_;

    pirn__list_remove(&waiter->link_);
    waiter->waker_ = (pirn_waker){0};
    waiter->state_ = (uint8_t)state;
    return waker;
}

/* End the wait of everybody who is in the list now, wake them, and return with
 * the lock released.  Who enters meanwhile is not concerned.  The object must
 * outlive the call if more than a batch are waiting. */
void pirn__waitlist_end_all_and_unlock(pirn_waitlist *list, pirn_lock *lock,
                                       enum pirn__wait_state state);

/* Waiters, from the side of an operation. */

static inline void pirn__wait_init(pirn_waiter *waiter)
{
    waiter->waker_ = (pirn_waker){0};
    waiter->state_ = PIRN__WAIT_NEW;
    waiter->entered_ = false;
}

/* One whose wait has ended, and whose operation knows it, may enter anew. */
static inline void pirn__wait_renew(pirn_waiter *waiter)
{
    waiter->state_ = PIRN__WAIT_NEW;
    waiter->entered_ = false;
}

/* How the object answers a poll. */
struct pirn__wait_rules {
    /* Under the lock: may the operation of this waiter end now?  It may be NEW,
     * QUEUED, GRANTED or CLOSED.  True: what it asked for, or the reason why it
     * cannot have it, has been stored in the operation.  False: it has to wait,
     * which is never said to one that is GRANTED or CLOSED.  One that is NEW is
     * asked once and enters the line before the lock is released; one that is
     * QUEUED may be asked twice in a poll. */
    bool (*may_end_locked)(pirn_waiter *waiter);
};

/* One poll: PIRN_READY when may_end_locked() has said so, and the waiter is
 * then OUT; else it is in line, at the end if it comes for the first time, and
 * its waker is that of `cx`.  No waker is cloned or dropped under the lock
 * unless it is a task's own; a foreign one is cloned before the first question,
 * so try without waiting before you call this.  Spends no budget. */
enum pirn_poll pirn__wait_poll(pirn_waiter *waiter, const pirn_cx *cx,
                               pirn_waitlist *list, pirn_lock *lock,
                               const struct pirn__wait_rules *rules);

/* Into the line, at the end, for the first time; the list is not all zero. */
static inline void pirn__wait_enter_new_locked(pirn_waiter *waiter,
                                               pirn_waitlist *list,
                                               pirn_waker waker)
{
    PIRN_DASSERT(waiter->state_ == PIRN__WAIT_NEW);
    waiter->waker_ = waker;
    pirn__list_push_tail(&list->waiters_, &waiter->link_);
    waiter->state_ = PIRN__WAIT_QUEUED;
    waiter->entered_ = true;
}

/* Into the line, at the end, or stay there if it is QUEUED, with this waker,
 * which may be the empty one; drop the one that it replaces after unlock.  For
 * those who do without pirn__wait_poll(). */
static inline PIRN_MUST_CHECK pirn_waker pirn__wait_enter_locked(
    pirn_waiter *waiter, pirn_waitlist *list, pirn_waker waker)
{
    pirn_waker old = {0};

    if (waiter->state_ == PIRN__WAIT_QUEUED) {
        old = waiter->waker_;
        waiter->waker_ = waker;
        return old;
    }
    if (list->waiters_.next_ == NULL)
        pirn__waitlist_init(list);
    pirn__wait_enter_new_locked(waiter, list, waker);
    return old;
}

/* One that is NEW has got what it would wait for, and is to be polled for it.
 */
static inline void pirn__wait_grant_new_locked(pirn_waiter *waiter)
{
    waiter->state_ = PIRN__WAIT_GRANTED;
    waiter->entered_ = true;
}

/* Leave, whatever the state, and tell what it was: what has been GRANTED is the
 * caller's to pass on.  Drop *own after unlock. */
static inline enum pirn__wait_state pirn__wait_leave_locked(pirn_waiter *waiter,
                                                            pirn_waker *own)
{
    enum pirn__wait_state state = (enum pirn__wait_state)waiter->state_;

    *own = waiter->waker_;
    waiter->waker_ = (pirn_waker){0};
    if (state == PIRN__WAIT_QUEUED)
        pirn__list_remove(&waiter->link_);
    waiter->state_ = PIRN__WAIT_OUT;
    waiter->entered_ = false;
    return state;
}

/* Without the lock, for the drop of an operation: false if it has never been in
 * line or has seen its end, so that there is nothing to leave. */
static inline bool pirn__wait_is_in(const pirn_waiter *waiter)
{
    return waiter->entered_;
}

/* The drop of an operation that owes nothing to anybody, whatever it was
 * GRANTED: what it has not seen is still in the object. */
void pirn__wait_drop(pirn_waiter *waiter, pirn_lock *lock);

#endif /* PIRN_SYNC_WAITLIST_H */
