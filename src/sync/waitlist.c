/* SPDX-License-Identifier: MIT */
/* src/sync/waitlist.c - see waitlist.h. */
#include "sync/waitlist.h"

#include "task/local.h"
#include "task/task.h"

void pirn__wake_batch_wake(struct pirn__wake_batch *batch)
{
    unsigned count = batch->count;

    batch->count = 0;
    for (unsigned i = 0; i < count; i++)
        pirn_waker_wake(batch->wakers[i]);
}

/* End as many as fit into the batch. */
static void end_some_locked(pirn_waitlist *list, enum pirn__wait_state state,
                            struct pirn__wake_batch *batch)
{
    while (!pirn__waitlist_empty(list) && !pirn__wake_batch_full(batch)) {
        pirn_waiter *first = pirn__waitlist_first(list);

        pirn__wake_batch_add(batch, pirn__wait_end_locked(first, state));
    }
}

void pirn__waitlist_end_all_and_unlock(pirn_waitlist *list, pirn_lock *lock,
                                       enum pirn__wait_state state)
{
    struct pirn__wake_batch batch;
    pirn_waitlist leaving;

    if (pirn__waitlist_empty(list)) {
        pirn__unlock(lock);
        return;
    }
    /* A list of their own, so that those who come meanwhile are told apart. */
    pirn__waitlist_init(&leaving);
    pirn__list_splice_tail(&leaving.waiters_, &list->waiters_);
    pirn__wake_batch_init(&batch);
    /* Ends: nobody enters `leaving`. */
    for (;;) {
        bool is_last;

        end_some_locked(&leaving, state, &batch);
        is_last = pirn__waitlist_empty(&leaving);
        pirn__unlock(lock);
        pirn__wake_batch_wake(&batch);
        if (is_last)
            return;
        pirn__lock(lock);
    }
}

static bool is_told_already(const pirn_waiter *waiter, const pirn_cx *cx)
{
    return waiter->state_ == PIRN__WAIT_QUEUED &&
           pirn_waker_same(&waiter->waker_, cx->waker);
}

/* The operation may not end yet.  Returns with the lock held; false if the
 * waiter is in line now, true if it must be asked again, because the lock was
 * released to clone a waker into *spare. */
static bool wait_locked(pirn_waiter *waiter, const pirn_cx *cx,
                        pirn_waitlist *list, pirn_lock *lock, pirn_waker *spare)
{
    if (is_told_already(waiter, cx))
        return false;
    if (spare->ops != NULL || cx->waker->ops == NULL) {
        *spare = pirn__wait_enter_locked(waiter, list, *spare);
        return false;
    }
    pirn__unlock(lock);
    *spare = pirn_waker_clone(cx->waker);
    pirn__lock(lock);
    return true;
}

/* The poll of a task: its waker needs no spare, and it is asked once. */
static enum pirn_poll poll_of_task(pirn_waiter *waiter, const pirn_cx *cx,
                                   pirn_waitlist *list, pirn_lock *lock,
                                   const struct pirn__wait_rules *rules)
{
    pirn_waker old = {0};
    bool ended;

    pirn__lock(lock);
    ended = rules->may_end_locked(waiter);
    if (ended)
        pirn__wait_leave_locked(waiter, &old);
    else if (!is_told_already(waiter, cx)) {
        pirn__cx_ref_task(cx);
        old = pirn__wait_enter_locked(waiter, list, *cx->waker);
    }
    pirn__unlock(lock);
    if (old.ops != NULL)
        pirn_waker_drop(old);
    return ended ? PIRN_READY : PIRN_PENDING;
}

enum pirn_poll pirn__wait_poll(pirn_waiter *waiter, const pirn_cx *cx,
                               pirn_waitlist *list, pirn_lock *lock,
                               const struct pirn__wait_rules *rules)
{
    pirn_waker spare = {0}, own = {0};
    bool ended;

    if (pirn__cx_task(cx) != NULL)
        return poll_of_task(waiter, cx, list, lock, rules);
    if (!pirn__wait_is_in(waiter))
        spare = pirn_waker_clone(cx->waker);
    pirn__lock(lock);
    /* Ends: it is asked again once at most. */
    do {
        ended = rules->may_end_locked(waiter);
    } while (!ended && wait_locked(waiter, cx, list, lock, &spare));
    if (ended)
        pirn__wait_leave_locked(waiter, &own);
    pirn__unlock(lock);
    if (spare.ops != NULL)
        pirn_waker_drop(spare);
    if (own.ops != NULL)
        pirn_waker_drop(own);
    return ended ? PIRN_READY : PIRN_PENDING;
}

void pirn__wait_drop(pirn_waiter *waiter, pirn_lock *lock)
{
    pirn_waker own;

    if (!pirn__wait_is_in(waiter))
        return;
    pirn__lock(lock);
    (void)pirn__wait_leave_locked(waiter, &own);
    pirn__unlock(lock);
    pirn_waker_drop(own);
}
