/* SPDX-License-Identifier: MIT */
/* bench/countdown.c - see countdown.h. */
#include "countdown.h"

static enum pirn_poll countdown_poll(pirn_future *self, pirn_cx *cx)
{
    struct countdown *countdown =
        PIRN_CONTAINER_OF(self, struct countdown, future);

    if (countdown->left == 0)
        return PIRN_READY;
    pirn_waker_drop(pirn_waker_store(&countdown->waker, cx));
    return PIRN_PENDING;
}

static void countdown_drop(pirn_future *self)
{
    struct countdown *countdown =
        PIRN_CONTAINER_OF(self, struct countdown, future);

    pirn_waker_drop(pirn_waker_take(&countdown->waker));
}

static const pirn_future_ops countdown_ops = {
    .poll = countdown_poll,
    .drop = countdown_drop,
};

void countdown_init(struct countdown *countdown, size_t count)
{
    *countdown = (struct countdown){
        .future.ops = &countdown_ops,
        .left = count,
    };
}

void countdown_hit(struct countdown *countdown)
{
    if (--countdown->left == 0)
        pirn_waker_wake(pirn_waker_take(&countdown->waker));
}
