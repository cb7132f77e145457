/* SPDX-License-Identifier: MIT */
/* src/channel/broadcast.c - a ring of the latest messages, and receivers each of
 * which knows how far it has come.
 *
 * Messages are numbered from 0.  The ring keeps numbers tail - capacity to
 * tail - 1; number n lies at n modulo capacity.  A receiver whose `next` is
 * older has missed what lies between.
 *
 * All receivers that wait are woken by each message.  What one of them was woken
 * for and did not look at, because it was dropped, its next receive finds.
 */
#include <pirn/broadcast.h>

#include <errno.h>

#include "base/assert.h"
#include "channel/channel.h"
#include "task/await.h"
#include "task/home.h"
#include "task/local.h"

struct pirn_broadcast_sender {
    pirn_lock lock;
    uint32_t message_size;   /* constant */
    uint64_t tail;           /* lock; the number of the next message */
    uint64_t capacity;       /* constant */
    pirn_waitlist waiters;   /* lock; receivers */
    uint32_t sender_count;   /* lock */
    uint32_t receiver_count; /* lock */
    /* All senders together have one, each receiver too. */
    PIRN_ATOMIC(uint32_t) refs;
    struct pirn__home *home; /* constant; or NULL */
    char ring[];             /* lock */
};

struct pirn_broadcast_receiver {
    pirn_broadcast_sender *channel;
    uint64_t next;   /* its owner's: the number of the next message */
    uint64_t missed; /* its owner's: before the latest -EOVERFLOW */
};

static size_t ring_bytes(const pirn_broadcast_sender *ch)
{
    return (size_t)ch->capacity * ch->message_size;
}

static void channel_unref(pirn_broadcast_sender *ch)
{
    /* acq_rel [broadcast.refs]: release [broadcast.refs] ends our use; acquire
     * [broadcast.refs] is the half of the one that frees. */
    if (pirn__sub(&ch->refs, 1, acq_rel) != 1)
        return;
    pirn__home_give_object(ch->home, ch, sizeof *ch + ring_bytes(ch));
}

/* By somebody with a handle.  `from`: where it continues; NULL: from now on. */
static int receiver_new(pirn_broadcast_sender *ch,
                        const pirn_broadcast_receiver *from,
                        pirn_broadcast_receiver **out)
{
    pirn_broadcast_receiver *receiver =
        pirn__home_take(ch->home, sizeof *receiver);

    *out = receiver;
    if (receiver == NULL)
        return -ENOMEM;
    *receiver = (pirn_broadcast_receiver){.channel = ch};
    /* relaxed: the caller has a reference already. */
    (void)pirn__add(&ch->refs, 1, relaxed);
    pirn__lock(&ch->lock);
    ch->receiver_count++;
    receiver->next = from == NULL ? ch->tail : from->next;
    pirn__unlock(&ch->lock);
    return 0;
}

int pirn_broadcast_new(const pirn_channel_options *options,
                       pirn_broadcast_sender **sender,
                       pirn_broadcast_receiver **receiver)
{
    struct pirn__home *home = pirn__local_home();
    pirn_broadcast_sender *ch;
    size_t capacity, size;
    int rc = pirn__ring_measure(options, sizeof *ch, &capacity, &size);

    if (receiver != NULL)
        *receiver = NULL;
    if (sender == NULL)
        return -EINVAL;
    *sender = NULL;
    if (rc < 0)
        return rc;
    if (options->discard != NULL)
        return -EINVAL;
    ch = pirn__home_take_object(home, size);
    if (ch == NULL)
        return -ENOMEM;
    *ch = (pirn_broadcast_sender){
        .message_size = (uint32_t)options->message_size,
        .capacity = capacity,
        .sender_count = 1,
        .home = home,
    };
    pirn__lock_init(&ch->lock);
    pirn__waitlist_init(&ch->waiters);
    pirn__init(&ch->refs, 1);
    if (receiver != NULL)
        rc = receiver_new(ch, NULL, receiver);
    if (rc < 0)
        channel_unref(ch);
    else
        *sender = ch;
    return rc;
}

pirn_broadcast_sender *pirn_broadcast_sender_ref(pirn_broadcast_sender *sender)
{
    pirn__lock(&sender->lock);
    sender->sender_count++;
    pirn__unlock(&sender->lock);
    return sender;
}

void pirn_broadcast_sender_unref(pirn_broadcast_sender *sender)
{
    if (sender == NULL)
        return;
    pirn__lock(&sender->lock);
    PIRN_REQUIRE(sender->sender_count > 0, "a sender is given up once");
    if (--sender->sender_count > 0) {
        pirn__unlock(&sender->lock);
        return;
    }
    pirn__waitlist_end_all_and_unlock(&sender->waiters, &sender->lock,
                                      PIRN__WAIT_CLOSED);
    channel_unref(sender);
}

int pirn_broadcast_subscribe(pirn_broadcast_sender *sender,
                             pirn_broadcast_receiver **out)
{
    return receiver_new(sender, NULL, out);
}

int pirn_broadcast_receiver_dup(pirn_broadcast_receiver *receiver,
                                pirn_broadcast_receiver **out)
{
    return receiver_new(receiver->channel, receiver, out);
}

void pirn_broadcast_receiver_free(pirn_broadcast_receiver *receiver)
{
    pirn_broadcast_sender *ch;

    if (receiver == NULL)
        return;
    ch = receiver->channel;
    pirn__lock(&ch->lock);
    ch->receiver_count--;
    pirn__unlock(&ch->lock);
    pirn__home_give(ch->home, receiver, sizeof *receiver);
    channel_unref(ch);
}

static char *place_of(pirn_broadcast_sender *ch, uint64_t number)
{
    return ch->ring + (number % ch->capacity) * ch->message_size;
}

size_t pirn_broadcast_send(pirn_broadcast_sender *sender, const void *message)
{
    size_t receivers;

    pirn__lock(&sender->lock);
    pirn__message_copy(place_of(sender, sender->tail), message,
                       sender->message_size);
    sender->tail++;
    receivers = sender->receiver_count;
    pirn__waitlist_end_all_and_unlock(&sender->waiters, &sender->lock,
                                      PIRN__WAIT_GRANTED);
    return receivers;
}

static pirn_channel_info info_of(const pirn_broadcast_sender *sender,
                                 uint64_t next)
{
    pirn_broadcast_sender *ch = (pirn_broadcast_sender *)(uintptr_t)sender;
    pirn_channel_info info = {.capacity = (size_t)ch->capacity};
    uint64_t length;

    pirn__lock(&ch->lock);
    length = ch->tail - next;
    info.length = (size_t)(length > ch->capacity ? ch->capacity : length);
    info.available = info.capacity - info.length;
    info.senders = ch->sender_count;
    info.receivers = ch->receiver_count;
    info.closed = ch->sender_count == 0;
    pirn__unlock(&ch->lock);
    return info;
}

pirn_channel_info
pirn_broadcast_sender_info(const pirn_broadcast_sender *sender)
{
    return info_of(sender, 0);
}

pirn_channel_info
pirn_broadcast_receiver_info(const pirn_broadcast_receiver *receiver)
{
    return info_of(receiver->channel, receiver->next);
}

/* Receiving. */

static int take_locked(pirn_broadcast_receiver *receiver, void *message)
{
    pirn_broadcast_sender *ch = receiver->channel;
    uint64_t waiting = ch->tail - receiver->next;

    if (waiting == 0)
        return ch->sender_count == 0 ? PIRN_ECLOSED : -EAGAIN;
    if (waiting > ch->capacity) {
        receiver->missed = waiting - ch->capacity;
        receiver->next += receiver->missed;
        return -EOVERFLOW;
    }
    pirn__message_copy(message, place_of(ch, receiver->next),
                       ch->message_size);
    receiver->next++;
    return 0;
}

int pirn_broadcast_try_recv(pirn_broadcast_receiver *receiver, void *message)
{
    pirn_broadcast_sender *ch = receiver->channel;
    int rc;

    pirn__lock(&ch->lock);
    rc = take_locked(receiver, message);
    pirn__unlock(&ch->lock);
    return rc;
}

uint64_t pirn_broadcast_receiver_missed(const pirn_broadcast_receiver *receiver)
{
    return receiver->missed;
}

static pirn_broadcast_recv_op *recv_op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_broadcast_recv_op, future);
}

static bool recv_may_end_locked(pirn_waiter *waiter)
{
    pirn_broadcast_recv_op *op =
        PIRN_CONTAINER_OF(waiter, pirn_broadcast_recv_op, waiter_);

    op->rc = take_locked(op->receiver_, op->message_);
    return op->rc != -EAGAIN || pirn__channel_wait_on_locked(waiter);
}

static enum pirn_poll recv_op_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {recv_may_end_locked};
    pirn_broadcast_recv_op *op = recv_op_of(self);
    pirn_broadcast_sender *ch = op->receiver_->channel;

    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    return pirn__wait_poll(&op->waiter_, cx, &ch->waiters, &ch->lock, &rules);
}

static void recv_op_drop(pirn_future *self)
{
    pirn_broadcast_recv_op *op = recv_op_of(self);

    pirn__wait_drop(&op->waiter_, &op->receiver_->channel->lock);
}

static void recv_op_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "receive a broadcast");
}

static int recv_op_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_broadcast_recv_op, future)->rc;
}

void pirn_broadcast_recv_init(pirn_broadcast_recv_op *op,
                              pirn_broadcast_receiver *receiver, void *message)
{
    static const pirn_future_ops ops = {
        .poll = recv_op_poll,
        .drop = recv_op_drop,
        .describe = recv_op_describe,
        .outcome = recv_op_outcome,
    };

    op->future.ops = &ops;
    pirn__wait_init(&op->waiter_);
    op->receiver_ = receiver;
    op->message_ = message;
    op->rc = 0;
}

int pirn_broadcast_recv(pirn_broadcast_receiver *receiver, void *message,
                        pirn_deadline deadline)
{
    int rc = pirn__fast_path(pirn__local());
    pirn_broadcast_recv_op op;

    if (rc < 0)
        return rc;
    if (rc == 0) {
        rc = pirn_broadcast_try_recv(receiver, message);
        if (rc != -EAGAIN)
            return rc;
    }
    pirn_broadcast_recv_init(&op, receiver, message);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}
