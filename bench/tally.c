/* SPDX-License-Identifier: MIT */
/* bench/tally.c - see tally.h. */
#include "tally.h"

#include <pirn/fiber.h>

#include "sample.h"

enum tally_state {
    TALLY_OPEN,    /* nobody waits yet */
    TALLY_WAITING, /* `waker` is whose who gets to DONE */
    TALLY_DONE,
};

static enum pirn_poll tally_poll(pirn_future *self, pirn_cx *cx)
{
    struct tally *tally = PIRN_CONTAINER_OF(self, struct tally, future);
    /* acquire [tally.state]: sees what all that are done have done. */
    uint32_t state = pirn__load(&tally->state, acquire);

    if (state == TALLY_DONE)
        return PIRN_READY;
    if (state == TALLY_WAITING)
        return PIRN_PENDING;
    tally->waker = pirn_waker_clone(cx->waker);
    /* acq_rel [tally.state]: release hands the waker over. */
    if (pirn__cas(&tally->state, &state, TALLY_WAITING, acq_rel, acquire))
        return PIRN_PENDING;
    pirn_waker_drop(pirn_waker_take(&tally->waker));
    return PIRN_READY;
}

static void tally_drop(pirn_future *self)
{
    (void)self;
    sample_require(-1, "a tally is awaited to its end");
}

static const pirn_future_ops tally_ops = {
    .poll = tally_poll,
    .drop = tally_drop,
};

void tally_init(struct tally *tally, uint64_t count)
{
    tally->future.ops = &tally_ops;
    tally->waker = (pirn_waker){0};
    pirn__init(&tally->left, count);
    pirn__init(&tally->state, TALLY_OPEN);
}

void tally_hit(struct tally *tally)
{
    /* acq_rel [tally.left]: the last one passes on what all have done. */
    if (pirn__sub(&tally->left, 1, acq_rel) != 1)
        return;
    /* acq_rel [tally.state]: acquire gives the waker to us. */
    if (pirn__swap(&tally->state, TALLY_DONE, acq_rel) == TALLY_WAITING)
        pirn_waker_wake(pirn_waker_take(&tally->waker));
}

void tally_await(struct tally *tally)
{
    sample_require(pirn_await(&tally->future, PIRN_NEVER), "pirn_await");
}
