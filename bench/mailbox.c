/* SPDX-License-Identifier: MIT */
/* bench/mailbox.c - see mailbox.h. */
#include "mailbox.h"

#include "sample.h"

enum mailbox_state {
    MAILBOX_EMPTY,
    MAILBOX_WAITING, /* empty, and the receiver waits */
    MAILBOX_FULL,
};

static enum pirn_poll mailbox_poll(pirn_future *self, pirn_cx *cx)
{
    struct mailbox *mailbox = PIRN_CONTAINER_OF(self, struct mailbox, future);
    uint32_t state = MAILBOX_EMPTY;

    if (mailbox->waker.ops == NULL)
        mailbox->waker = pirn_waker_clone(cx->waker);
    /* acq_rel [mailbox.state]: release hands the waker over; acquire sees what
     * the sender did before. */
    if (pirn__cas(&mailbox->state, &state, MAILBOX_WAITING, acq_rel, acquire) ||
        state == MAILBOX_WAITING)
        return PIRN_PENDING;
    /* relaxed: the sender learns from us in other ways that it may send. */
    pirn__store(&mailbox->state, MAILBOX_EMPTY, relaxed);
    return PIRN_READY;
}

static void mailbox_drop(pirn_future *self)
{
    (void)self;
    sample_require(-1, "a signal is awaited to its end");
}

static const pirn_future_ops mailbox_ops = {
    .poll = mailbox_poll,
    .drop = mailbox_drop,
};

void mailbox_init(struct mailbox *mailbox)
{
    mailbox->future.ops = &mailbox_ops;
    mailbox->waker = (pirn_waker){0};
    pirn__init(&mailbox->state, MAILBOX_EMPTY);
}

void mailbox_deinit(struct mailbox *mailbox)
{
    pirn_waker_drop(pirn_waker_take(&mailbox->waker));
}

void mailbox_send(struct mailbox *mailbox)
{
    /* acq_rel [mailbox.state]: release passes on what we did; acquire sees the
     * waker. */
    if (pirn__swap(&mailbox->state, MAILBOX_FULL, acq_rel) == MAILBOX_WAITING)
        pirn_waker_wake_by_ref(&mailbox->waker);
}
