/* SPDX-License-Identifier: MIT */
/* src/sync/atomic_waker.c - one waker under a lock, for users' own futures. */
#include <pirn/atomic_waker.h>

#include "base/lock.h"

void pirn_atomic_waker_init(pirn_atomic_waker *slot)
{
    pirn__lock_init(&slot->lock_);
    slot->waker_ = (pirn_waker){0};
}

void pirn_atomic_waker_deinit(pirn_atomic_waker *slot)
{
    pirn_waker_drop(pirn_atomic_waker_take(slot));
}

/* Put `waker` in; the one that was there comes back. */
static pirn_waker swap_waker(pirn_atomic_waker *slot, pirn_waker waker)
{
    pirn_waker old;

    pirn__lock(&slot->lock_);
    old = slot->waker_;
    slot->waker_ = waker;
    pirn__unlock(&slot->lock_);
    return old;
}

void pirn_atomic_waker_register(pirn_atomic_waker *slot, const pirn_cx *cx)
{
    bool is_same;

    pirn__lock(&slot->lock_);
    is_same = pirn_waker_same(&slot->waker_, cx->waker);
    pirn__unlock(&slot->lock_);
    if (!is_same)
        pirn_waker_drop(swap_waker(slot, pirn_waker_clone(cx->waker)));
}

pirn_waker pirn_atomic_waker_take(pirn_atomic_waker *slot)
{
    return swap_waker(slot, (pirn_waker){0});
}

void pirn_atomic_waker_wake(pirn_atomic_waker *slot)
{
    pirn_waker_wake(pirn_atomic_waker_take(slot));
}
