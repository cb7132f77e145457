/* SPDX-License-Identifier: MIT */
/* src/channel/mpsc.c - a channel with one receiver.
 *
 * The receiver owns the messages between `head` and `span_end` and takes them
 * out without the lock.  What senders have put in since is added to the span
 * when it is used up.  A place is free for senders as soon as its message has
 * been taken out: `head` says so, and one who waits for it is told at once.
 */
#include <pirn/mpsc.h>

#include <errno.h>
#include <limits.h>

#include "base/assert.h"
#include "channel/channel.h"
#include "task/await.h"
#include "task/local.h"
#include "task/task.h"

static struct pirn__channel *channel_of_sender(const pirn_mpsc_sender *sender)
{
    return (struct pirn__channel *)(uintptr_t)sender;
}

static struct pirn__channel *channel_of_weak(const pirn_mpsc_weak_sender *weak)
{
    return (struct pirn__channel *)(uintptr_t)weak;
}

static struct pirn__channel *
channel_of_receiver(const pirn_mpsc_receiver *receiver)
{
    return (struct pirn__channel *)(uintptr_t)receiver;
}

/* Handles. */

int pirn_mpsc_new(const pirn_channel_options *options,
                  pirn_mpsc_sender **sender, pirn_mpsc_receiver **receiver)
{
    struct pirn__channel *ch = NULL;
    int rc = -EINVAL;

    if (sender != NULL && receiver != NULL)
        rc = pirn__channel_new(options, false, &ch);
    if (sender != NULL)
        *sender = (pirn_mpsc_sender *)(void *)ch;
    if (receiver != NULL)
        *receiver = (pirn_mpsc_receiver *)(void *)ch;
    return rc;
}

pirn_mpsc_sender *pirn_mpsc_sender_ref(pirn_mpsc_sender *sender)
{
    pirn__channel_sender_ref(channel_of_sender(sender));
    return sender;
}

void pirn_mpsc_sender_unref(pirn_mpsc_sender *sender)
{
    if (sender != NULL)
        pirn__channel_sender_unref(channel_of_sender(sender));
}

pirn_mpsc_weak_sender *pirn_mpsc_sender_downgrade(pirn_mpsc_sender *sender)
{
    return pirn_mpsc_weak_sender_ref((pirn_mpsc_weak_sender *)(void *)sender);
}

pirn_mpsc_weak_sender *pirn_mpsc_weak_sender_ref(pirn_mpsc_weak_sender *weak)
{
    /* relaxed: the caller has a handle of some kind already. */
    (void)pirn__add(&channel_of_weak(weak)->refs, 1, relaxed);
    return weak;
}

void pirn_mpsc_weak_sender_unref(pirn_mpsc_weak_sender *weak)
{
    if (weak != NULL)
        pirn__channel_unref(channel_of_weak(weak));
}

int pirn_mpsc_weak_sender_upgrade(pirn_mpsc_weak_sender *weak,
                                  pirn_mpsc_sender **out)
{
    struct pirn__channel *ch = channel_of_weak(weak);
    bool is_open;

    pirn__lock(&ch->lock);
    is_open = !ch->sealed;
    if (is_open)
        ch->sender_count++;
    pirn__unlock(&ch->lock);
    *out = is_open ? (pirn_mpsc_sender *)(void *)ch : NULL;
    return is_open ? 0 : PIRN_ECLOSED;
}

void pirn_mpsc_receiver_free(pirn_mpsc_receiver *receiver)
{
    if (receiver != NULL)
        pirn__channel_receiver_unref(channel_of_receiver(receiver));
}

void pirn_mpsc_sender_close(pirn_mpsc_sender *sender)
{
    pirn__channel_close(channel_of_sender(sender));
}

void pirn_mpsc_receiver_close(pirn_mpsc_receiver *receiver)
{
    pirn__channel_close(channel_of_receiver(receiver));
}

pirn_channel_info pirn_mpsc_sender_info(const pirn_mpsc_sender *sender)
{
    return pirn__channel_info(channel_of_sender(sender));
}

pirn_channel_info pirn_mpsc_receiver_info(const pirn_mpsc_receiver *receiver)
{
    return pirn__channel_info(channel_of_receiver(receiver));
}

/* Sending. */

int pirn_mpsc_try_send(pirn_mpsc_sender *sender, const void *message)
{
    return pirn__channel_try_send(channel_of_sender(sender), message);
}

int pirn_mpsc_send(pirn_mpsc_sender *sender, const void *message,
                   pirn_deadline deadline)
{
    return pirn__channel_send(channel_of_sender(sender), message, deadline);
}

void pirn_mpsc_send_init(pirn_mpsc_send_op *op, pirn_mpsc_sender *sender,
                         const void *message)
{
    pirn__channel_send_init(op, channel_of_sender(sender), message);
}

/* Receiving. */

/* How many messages are in the span. */
static uint64_t span_length(const struct pirn__channel *ch)
{
    /* relaxed: only the receiver writes it. */
    return ch->span_end - pirn__load(&ch->head, relaxed);
}

static void extend_span_locked(struct pirn__channel *ch)
{
    ch->span_end = ch->tail;
    if (ch->unbounded)
        pirn__block_recycle_locked(ch);
}

/* Apart, for it seldom comes to that. */
PIRN__COLD static void tell_senders(struct pirn__channel *ch)
{
    pirn__lock(&ch->lock);
    pirn__channel_settle(ch);
}

/* `count` messages have been copied out: their places are free. */
static inline void advance(struct pirn__channel *ch, uint64_t count)
{
    /* relaxed: only the receiver writes it. */
    uint64_t head = pirn__load(&ch->head, relaxed) + count;

    /* seq_cst [channel.head]: release, so that whoever fills the places comes
     * after our reads; and before the look at `waiting` below. */
    pirn__store(&ch->head, head, seq_cst);
    /* seq_cst [channel.waiting]: a sender that does not see the new head has
     * set this before. */
    if (pirn__load(&ch->waiting, seq_cst) != 0)
        tell_senders(ch);
}

/* A message of any size, and from the next block. */
static __attribute__((noinline)) void take_any(struct pirn__channel *ch,
                                               void *message)
{
    pirn__message_copy(message, pirn__channel_next(ch), ch->size);
    advance(ch, 1);
}

/* One of a word is copied without a call, for which registers would be saved. */
static inline void take_one(struct pirn__channel *ch, void *message)
{
    bool is_block_end = ch->head_at == ch->head_end && ch->chained;

    if (ch->size != sizeof(uint64_t) || is_block_end) {
        take_any(ch, message);
        return;
    }
    memcpy(message, pirn__channel_next(ch), sizeof(uint64_t));
    advance(ch, 1);
}

/* Take as many as fit; there is at least one. */
static ssize_t take(struct pirn__channel *ch, void *messages, size_t limit)
{
    uint64_t length = span_length(ch);
    uint64_t count = length < limit ? length : limit;
    char *at = messages;

    for (uint64_t i = 0; i < count; i++) {
        pirn__message_copy(at, pirn__channel_next(ch), ch->size);
        at += ch->size;
    }
    advance(ch, count);
    return (ssize_t)count;
}

/* Nothing is in the span: look for more. */
static int look_for_more(struct pirn__channel *ch)
{
    int rc = 0;

    pirn__lock(&ch->lock);
    extend_span_locked(ch);
    if (span_length(ch) == 0)
        rc = pirn__channel_has_ended_locked(ch) ? PIRN_ECLOSED : -EAGAIN;
    pirn__unlock(&ch->lock);
    return rc;
}

static ssize_t try_recv(struct pirn__channel *ch, void *messages, size_t limit)
{
    if (span_length(ch) == 0) {
        int rc = look_for_more(ch);

        if (rc < 0)
            return rc;
    }
    return take(ch, messages, limit);
}

ssize_t pirn_mpsc_try_recv_many(pirn_mpsc_receiver *receiver, void *messages,
                                size_t limit)
{
    return limit == 0
               ? -EINVAL
               : try_recv(channel_of_receiver(receiver), messages, limit);
}

static inline int try_recv_one(struct pirn__channel *ch, void *message)
{
    if (span_length(ch) == 0) {
        int rc = look_for_more(ch);

        if (rc < 0)
            return rc;
    }
    take_one(ch, message);
    return 0;
}

int pirn_mpsc_try_recv(pirn_mpsc_receiver *receiver, void *message)
{
    return try_recv_one(channel_of_receiver(receiver), message);
}

/* The operation. */

static pirn_mpsc_recv_op *recv_op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_mpsc_recv_op, future);
}

static bool recv_may_end_locked(pirn_waiter *waiter)
{
    pirn_mpsc_recv_op *op =
        PIRN_CONTAINER_OF(waiter, pirn_mpsc_recv_op, waiter_);
    struct pirn__channel *ch = op->channel_;
    pirn_waiter *first = pirn__waitlist_first(&ch->receivers);

    op->n = 0;
    if (first != NULL && first != waiter) {
        op->n = -EBUSY;
        return true;
    }
    extend_span_locked(ch);
    if (span_length(ch) > 0)
        return true;
    op->n = PIRN_ECLOSED;
    return pirn__channel_has_ended_locked(ch) ||
           pirn__channel_wait_on_locked(waiter);
}

/* One that has not found anything in the span.  What it may take is left to be
 * taken after the lock. */
static enum pirn_poll wait_in_line(pirn_mpsc_recv_op *op, const pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {recv_may_end_locked};
    struct pirn__channel *ch = op->channel_;

    if (pirn__wait_poll(&op->waiter_, cx, &ch->receivers, &ch->lock, &rules) ==
        PIRN_PENDING)
        return PIRN_PENDING;
    if (op->n == 0)
        op->n = take(ch, op->messages_, op->limit_);
    return PIRN_READY;
}

static __attribute__((noinline)) enum pirn_poll
poll_for_many(pirn_mpsc_recv_op *op, pirn_cx *cx)
{
    if (op->limit_ == 0) /* init has said -EINVAL */
        return PIRN_READY;
    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    if (pirn__wait_is_in(&op->waiter_) || span_length(op->channel_) == 0)
        return wait_in_line(op, cx);
    op->n = take(op->channel_, op->messages_, op->limit_);
    return PIRN_READY;
}

/* One that has been in line for one message has been told of it: then it stands
 * there no more, and the message is in the span.  If a try_ call has taken it, the
 * operation begins anew.  False: it stands there still.  (One that wants many
 * looks under the lock: others may have come.) */
static inline bool see_told(pirn_mpsc_recv_op *op)
{
    struct pirn__channel *ch = op->channel_;

    /* acquire [channel.told]: the messages; and whoever told us is done with the
     * operation. */
    if (pirn__load(&op->told_, acquire) == 0)
        return false;
    /* relaxed: the operation is ours alone. */
    pirn__store(&op->told_, 0, relaxed);
    pirn__wait_renew(&op->waiter_);
    if ((uint64_t)op->n > ch->span_end)
        ch->span_end = (uint64_t)op->n;
    return true;
}

/* The usual case of a task: nothing is there, and nobody else waits.  False:
 * look at the span, and else ask anew. */
static inline bool enter_alone(pirn_mpsc_recv_op *op, const pirn_cx *cx)
{
    struct pirn__channel *ch = op->channel_;
    bool waits;

    pirn__lock(&ch->lock);
    extend_span_locked(ch);
    waits = span_length(ch) == 0 && !ch->sealed &&
            pirn__list_empty(&ch->receivers.waiters_);
    if (waits) {
        pirn__cx_ref_task(cx);
        pirn__wait_enter_new_locked(&op->waiter_, &ch->receivers, *cx->waker);
    }
    pirn__unlock(&ch->lock);
    return waits;
}

static inline enum pirn_poll end_with_one(pirn_mpsc_recv_op *op)
{
    op->n = 1;
    take_one(op->channel_, op->messages_);
    return PIRN_READY;
}

/* The span was empty. */
PIRN__COLD static enum pirn_poll look_again(pirn_mpsc_recv_op *op,
                                            const pirn_cx *cx)
{
    return span_length(op->channel_) == 0 ? wait_in_line(op, cx)
                                          : end_with_one(op);
}

/* The span is empty. */
static __attribute__((noinline)) enum pirn_poll
wait_for_one(pirn_mpsc_recv_op *op, const pirn_cx *cx)
{
    if (pirn__cx_task(cx) != NULL && enter_alone(op, cx))
        return PIRN_PENDING;
    return look_again(op, cx);
}

/* Its budget is paid. */
static inline enum pirn_poll poll_for_one(pirn_mpsc_recv_op *op,
                                          const pirn_cx *cx)
{
    if (pirn__wait_is_in(&op->waiter_) && !see_told(op))
        return wait_in_line(op, cx);
    return span_length(op->channel_) == 0 ? wait_for_one(op, cx)
                                          : end_with_one(op);
}

PIRN__COLD static enum pirn_poll poll_uncounted(pirn_mpsc_recv_op *op,
                                                pirn_cx *cx)
{
    return pirn__coop_spend_last(cx) ? poll_for_one(op, cx) : PIRN_PENDING;
}

/* The usual way makes no call but a last one, and so saves no registers. */
static enum pirn_poll recv_op_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_mpsc_recv_op *op = recv_op_of(self);

    if (op->limit_ != 1)
        return poll_for_many(op, cx);
    if (!pirn__coop_spend_counted(cx))
        return poll_uncounted(op, cx);
    return poll_for_one(op, cx);
}

/* What it was told of stays where it is, for the next receive. */
static void recv_op_drop(pirn_future *self)
{
    pirn_mpsc_recv_op *op = recv_op_of(self);

    pirn__wait_drop(&op->waiter_, &op->channel_->lock);
}

static void recv_op_discard(pirn_future *self)
{
    pirn_mpsc_recv_op *op = recv_op_of(self);
    char *at = op->messages_;

    for (ssize_t i = 0; i < op->n; i++) {
        pirn__channel_discard(op->channel_, at);
        at += op->channel_->size;
    }
}

static void recv_op_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "receive from a channel");
}

static int recv_op_outcome(const pirn_future *self)
{
    ssize_t n = PIRN_CONTAINER_OF(self, const pirn_mpsc_recv_op, future)->n;

    return n > INT_MAX ? INT_MAX : (int)n;
}

static inline void init_op(pirn_mpsc_recv_op *op, pirn_mpsc_receiver *receiver,
                           void *messages, size_t limit)
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
    op->messages_ = messages;
    op->limit_ = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
    pirn__init(&op->told_, 0);
    op->n = limit == 0 ? -EINVAL : 0;
}

void pirn_mpsc_recv_many_init(pirn_mpsc_recv_op *op,
                              pirn_mpsc_receiver *receiver, void *messages,
                              size_t limit)
{
    init_op(op, receiver, messages, limit);
}

void pirn_mpsc_recv_init(pirn_mpsc_recv_op *op, pirn_mpsc_receiver *receiver,
                         void *message)
{
    init_op(op, receiver, message, 1);
}

/* Kept apart, so that the quick way needs no room for the operation. */
static __attribute__((noinline)) ssize_t
recv_slowly(pirn_mpsc_receiver *receiver, void *messages, size_t limit,
            pirn_deadline deadline)
{
    pirn_mpsc_recv_op op;
    int rc;

    init_op(&op, receiver, messages, limit);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.n;
}

ssize_t pirn_mpsc_recv_many(pirn_mpsc_receiver *receiver, void *messages,
                            size_t limit, pirn_deadline deadline)
{
    int rc = pirn__fast_path(pirn__local());

    if (rc < 0)
        return rc;
    if (limit == 0)
        return -EINVAL;
    if (rc == 0) {
        ssize_t n =
            try_recv(channel_of_receiver(receiver), messages, limit);

        if (n != -EAGAIN)
            return n;
    }
    return recv_slowly(receiver, messages, limit, deadline);
}

int pirn_mpsc_recv(pirn_mpsc_receiver *receiver, void *message,
                   pirn_deadline deadline)
{
    int rc = pirn__fast_path(pirn__local());
    ssize_t n;

    if (rc < 0)
        return rc;
    if (rc == 0) {
        rc = try_recv_one(channel_of_receiver(receiver), message);
        if (rc != -EAGAIN)
            return rc;
    }
    n = recv_slowly(receiver, message, 1, deadline);
    return n < 0 ? (int)n : 0;
}
