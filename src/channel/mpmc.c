/* SPDX-License-Identifier: MIT */
/* src/channel/mpmc.c - a channel with many receivers, which work under the lock
 * as senders do.
 *
 * A waiting receiver is promised a message, not handed one: it takes the first
 * one out when it is polled.  So one that is dropped has taken nothing, and the
 * promise goes to the next.
 */
#include <pirn/mpmc.h>

#include <errno.h>

#include "channel/channel.h"
#include "task/await.h"
#include "task/local.h"

static struct pirn__channel *channel_of_sender(const pirn_mpmc_sender *sender)
{
    return (struct pirn__channel *)(uintptr_t)sender;
}

static struct pirn__channel *
channel_of_receiver(const pirn_mpmc_receiver *receiver)
{
    return (struct pirn__channel *)(uintptr_t)receiver;
}

/* Handles. */

int pirn_mpmc_new(const pirn_channel_options *options,
                  pirn_mpmc_sender **sender, pirn_mpmc_receiver **receiver)
{
    struct pirn__channel *ch = NULL;
    int rc = -EINVAL;

    if (sender != NULL && receiver != NULL)
        rc = pirn__channel_new(options, true, &ch);
    if (sender != NULL)
        *sender = (pirn_mpmc_sender *)(void *)ch;
    if (receiver != NULL)
        *receiver = (pirn_mpmc_receiver *)(void *)ch;
    return rc;
}

pirn_mpmc_sender *pirn_mpmc_sender_ref(pirn_mpmc_sender *sender)
{
    pirn__channel_sender_ref(channel_of_sender(sender));
    return sender;
}

void pirn_mpmc_sender_unref(pirn_mpmc_sender *sender)
{
    if (sender != NULL)
        pirn__channel_sender_unref(channel_of_sender(sender));
}

pirn_mpmc_receiver *pirn_mpmc_receiver_ref(pirn_mpmc_receiver *receiver)
{
    pirn__channel_receiver_ref(channel_of_receiver(receiver));
    return receiver;
}

void pirn_mpmc_receiver_unref(pirn_mpmc_receiver *receiver)
{
    if (receiver != NULL)
        pirn__channel_receiver_unref(channel_of_receiver(receiver));
}

void pirn_mpmc_sender_close(pirn_mpmc_sender *sender)
{
    pirn__channel_close(channel_of_sender(sender));
}

void pirn_mpmc_receiver_close(pirn_mpmc_receiver *receiver)
{
    pirn__channel_close(channel_of_receiver(receiver));
}

pirn_channel_info pirn_mpmc_sender_info(const pirn_mpmc_sender *sender)
{
    return pirn__channel_info(channel_of_sender(sender));
}

pirn_channel_info pirn_mpmc_receiver_info(const pirn_mpmc_receiver *receiver)
{
    return pirn__channel_info(channel_of_receiver(receiver));
}

/* Sending. */

int pirn_mpmc_try_send(pirn_mpmc_sender *sender, const void *message)
{
    return pirn__channel_try_send(channel_of_sender(sender), message);
}

int pirn_mpmc_send(pirn_mpmc_sender *sender, const void *message,
                   pirn_deadline deadline)
{
    return pirn__channel_send(channel_of_sender(sender), message, deadline);
}

void pirn_mpmc_send_init(pirn_mpmc_send_op *op, pirn_mpmc_sender *sender,
                         const void *message)
{
    pirn__channel_send_init(op, channel_of_sender(sender), message);
}

/* Receiving. */

static void take_locked(struct pirn__channel *ch, void *message)
{
    uint64_t head;

    pirn__message_copy(message, pirn__channel_next(ch), ch->size);
    /* relaxed: written and read under the lock. */
    head = pirn__load(&ch->head, relaxed);
    /* relaxed: as above. */
    pirn__store(&ch->head, head + 1, relaxed);
}

/* Under the lock, which is released: a message has left.  Who waits for its
 * place, or for the end of the channel, is told. */
static void tell_others(struct pirn__channel *ch)
{
    if (pirn__waitlist_empty(&ch->senders) && !ch->sealed)
        pirn__unlock(&ch->lock);
    else
        pirn__channel_settle(ch);
}

/* For one that is not in line.  While others are, a message that nobody has been
 * promised has just come, and whoever has put it in is about to promise it. */
static bool may_take_locked(struct pirn__channel *ch)
{
    return pirn__waitlist_empty(&ch->receivers) &&
           pirn__channel_has_message_locked(ch);
}

static int try_recv(struct pirn__channel *ch, void *message)
{
    int rc = -EAGAIN;

    pirn__lock(&ch->lock);
    if (may_take_locked(ch)) {
        take_locked(ch, message);
        tell_others(ch);
        return 0;
    }
    if (pirn__channel_has_ended_locked(ch))
        rc = PIRN_ECLOSED;
    pirn__unlock(&ch->lock);
    return rc;
}

int pirn_mpmc_try_recv(pirn_mpmc_receiver *receiver, void *message)
{
    return try_recv(channel_of_receiver(receiver), message);
}

static pirn_mpmc_recv_op *recv_op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_mpmc_recv_op, future);
}

/* Whoever is in line takes nothing that it has not been promised, so that nobody
 * passes. */
static bool recv_may_end_locked(pirn_waiter *waiter)
{
    pirn_mpmc_recv_op *op =
        PIRN_CONTAINER_OF(waiter, pirn_mpmc_recv_op, waiter_);
    struct pirn__channel *ch = op->channel_;

    if (waiter->state_ == PIRN__WAIT_GRANTED) {
        ch->promised--;
    } else if (!may_take_locked(ch)) {
        op->n = PIRN_ECLOSED;
        return pirn__channel_has_ended_locked(ch);
    }
    take_locked(ch, op->messages_);
    op->n = 1;
    return true;
}

static enum pirn_poll recv_op_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {recv_may_end_locked};
    pirn_mpmc_recv_op *op = recv_op_of(self);
    struct pirn__channel *ch = op->channel_;

    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    if (pirn__wait_poll(&op->waiter_, cx, &ch->receivers, &ch->lock, &rules) ==
        PIRN_PENDING)
        return PIRN_PENDING;
    if (op->n == 1) {
        pirn__lock(&ch->lock);
        tell_others(ch);
    }
    return PIRN_READY;
}

static void recv_op_drop(pirn_future *self)
{
    pirn_mpmc_recv_op *op = recv_op_of(self);
    struct pirn__channel *ch = op->channel_;
    pirn_waker own;

    if (!pirn__wait_is_in(&op->waiter_))
        return;
    pirn__lock(&ch->lock);
    if (pirn__wait_leave_locked(&op->waiter_, &own) == PIRN__WAIT_GRANTED)
        ch->promised--;
    pirn__channel_settle(ch);
    pirn_waker_drop(own);
}

static void recv_op_discard(pirn_future *self)
{
    pirn_mpmc_recv_op *op = recv_op_of(self);

    if (op->n == 1)
        pirn__channel_discard(op->channel_, op->messages_);
}

static void recv_op_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "receive from a channel");
}

static int recv_op_outcome(const pirn_future *self)
{
    return (int)PIRN_CONTAINER_OF(self, const pirn_mpmc_recv_op, future)->n;
}

void pirn_mpmc_recv_init(pirn_mpmc_recv_op *op, pirn_mpmc_receiver *receiver,
                         void *message)
{
    static const pirn_future_ops ops = {
        .poll = recv_op_poll,
        .drop = recv_op_drop,
        .discard = recv_op_discard,
        .describe = recv_op_describe,
        .outcome = recv_op_outcome,
    };

    op->future.ops = &ops;
    pirn__wait_init(&op->waiter_);
    op->channel_ = channel_of_receiver(receiver);
    op->messages_ = message;
    op->limit_ = 1;
    op->n = 0;
}

/* Kept apart, so that the quick way needs no room for the operation. */
static __attribute__((noinline)) int recv_slowly(pirn_mpmc_receiver *receiver,
                                                 void *message,
                                                 pirn_deadline deadline)
{
    pirn_mpmc_recv_op op;
    int rc;

    pirn_mpmc_recv_init(&op, receiver, message);
    rc = pirn__await(&op.future, deadline);
    if (rc < 0)
        return rc;
    return op.n < 0 ? (int)op.n : 0;
}

int pirn_mpmc_recv(pirn_mpmc_receiver *receiver, void *message,
                   pirn_deadline deadline)
{
    int rc = pirn__fast_path(pirn__local());

    if (rc < 0)
        return rc;
    if (rc == 0) {
        rc = try_recv(channel_of_receiver(receiver), message);
        if (rc != -EAGAIN)
            return rc;
    }
    return recv_slowly(receiver, message, deadline);
}
