/* SPDX-License-Identifier: MIT */
/* src/sync/waker_set.c - the wait list for users' own futures.  Unlike the
 * locks it knows nothing of what is waited for: a waiter that is woken looks
 * itself, and enters again if it finds nothing.
 */
#include <pirn/waker_set.h>

#include "base/assert.h"
#include "sync/waitlist.h"

/* How a GRANTED waiter was reached; its kind_. */
enum { SET_WAKE_ALL, SET_WAKE_ONE };

static bool never_ends_locked(pirn_waiter *waiter)
{
    /* Whoever was woken and is here again has found nothing. */
    if (waiter->state_ == PIRN__WAIT_GRANTED)
        waiter->state_ = PIRN__WAIT_NEW;
    waiter->kind_ = SET_WAKE_ALL;
    return false;
}

void pirn_waker_set_prepare(pirn_waiter *waiter)
{
    pirn__wait_init(waiter);
}

void pirn_waker_set_enter(pirn_waker_set *set, pirn_waiter *waiter,
                          const pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {never_ends_locked};
    enum pirn_poll poll =
        pirn__wait_poll(waiter, cx, &set->waiters_, &set->lock_, &rules);

    PIRN_ASSERT(poll == PIRN_PENDING);
}

void pirn_waker_set_leave(pirn_waker_set *set, pirn_waiter *waiter)
{
    enum pirn__wait_state state;
    pirn_waker own;

    if (!pirn__wait_is_in(waiter))
        return;
    pirn__lock(&set->lock_);
    state = pirn__wait_leave_locked(waiter, &own);
    pirn__unlock(&set->lock_);
    /* It may wait again. */
    waiter->state_ = PIRN__WAIT_NEW;
    pirn_waker_drop(own);
    if (state == PIRN__WAIT_GRANTED && waiter->kind_ == SET_WAKE_ONE)
        pirn_waker_set_wake_one(set);
}

bool pirn_waker_set_wake_one(pirn_waker_set *set)
{
    pirn_waker waker = {0};
    pirn_waiter *first;

    pirn__lock(&set->lock_);
    first = pirn__waitlist_first(&set->waiters_);
    if (first != NULL) {
        first->kind_ = SET_WAKE_ONE;
        waker = pirn__wait_end_locked(first, PIRN__WAIT_GRANTED);
    }
    pirn__unlock(&set->lock_);
    pirn_waker_wake(waker);
    return first != NULL;
}

void pirn_waker_set_wake_all(pirn_waker_set *set)
{
    pirn__lock(&set->lock_);
    pirn__waitlist_end_all_and_unlock(&set->waiters_, &set->lock_,
                                      PIRN__WAIT_GRANTED);
}

void pirn_waker_set_init(pirn_waker_set *set)
{
    pirn__lock_init(&set->lock_);
    pirn__waitlist_init(&set->waiters_);
}

void pirn_waker_set_deinit(pirn_waker_set *set)
{
    PIRN_REQUIRE(pirn__waitlist_empty(&set->waiters_),
                 "nobody waits in a set that ends");
}
