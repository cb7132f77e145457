/* SPDX-License-Identifier: MIT */
/* src/channel/send.c - putting messages in, and the line of those who cannot yet.
 *
 * Places are given away strictly in order: who comes while others are in line
 * stands behind them, also if there is room for it, and a request for many
 * places at the head is not passed by one for few.
 *
 * A waiting sender is granted a place, not relieved of its message: it puts the
 * message in when it is polled.  So one that is dropped has sent nothing, at any
 * time, and its place goes to the next.
 */
#include "channel/channel.h"

#include <errno.h>

#include "task/await.h"
#include "task/local.h"
#include "task/waker.h"

static inline bool has_room_locked(struct pirn__channel *ch, uint64_t count)
{
    uint64_t given = ch->tail + ch->reserved;
    uint64_t limit = ch->capacity - count;

    if (given - ch->head_seen <= limit)
        return true;
    /* seq_cst [channel.head]: acquire, so that the receiver has left the places
     * that it has freed; against `waiting`, see channel.h. */
    ch->head_seen = pirn__load(&ch->head, seq_cst);
    return given - ch->head_seen <= limit;
}

bool pirn__channel_has_room_locked(struct pirn__channel *ch, uint64_t count)
{
    return has_room_locked(ch, count);
}

static inline bool may_take_locked(struct pirn__channel *ch, uint64_t count)
{
    return pirn__list_empty(&ch->senders.waiters_) &&
           has_room_locked(ch, count);
}

/* Under the lock, which is released. */
static void wake_receiver(struct pirn__channel *ch)
{
    if (pirn__waitlist_empty(&ch->receivers))
        pirn__unlock(&ch->lock);
    else
        pirn__channel_settle(ch);
}

/* The same after a message was put in.  One that waits alone for any is told of
 * it without more ado: nothing else has become possible.  `cx`: of the poll that
 * sends, or NULL. */
static inline void tell_receiver(struct pirn__channel *ch, const pirn_cx *cx)
{
    struct pirn__turn *turn;
    pirn_waker waker;

    if (pirn__list_empty(&ch->receivers.waiters_)) {
        pirn__unlock(&ch->lock);
        return;
    }
    if (ch->many) {
        pirn__channel_settle(ch);
        return;
    }
    waker = pirn__channel_tell_locked(ch, pirn__waitlist_first(&ch->receivers));
    pirn__unlock(&ch->lock);
    turn = cx == NULL ? NULL : pirn__turn_of_task(cx->turn_);
    if (turn != NULL)
        pirn__waker_wake_in_turn(waker, turn);
    else
        pirn_waker_wake(waker);
}

/* Unbounded: the last block is full.  Begin the next with `fresh` or with the
 * spare one; false if there is neither.  A block too many comes back. */
static bool begin_block_locked(struct pirn__channel *ch,
                               struct pirn__block **fresh)
{
    struct pirn__chain *chain = pirn__channel_chain(ch);
    struct pirn__block **source = chain->spare != NULL ? &chain->spare : fresh;
    struct pirn__block *block = *source;

    if (block == NULL)
        return false;
    *source = NULL;
    pirn__block_append_locked(ch, block);
    return true;
}

/* The same as below when memory may be needed, which is not taken or given back
 * under the lock. */
static int send_unbounded(struct pirn__channel *ch, const void *message)
{
    struct pirn__chain *chain = pirn__channel_chain(ch);
    struct pirn__block *fresh = NULL;
    int rc = 0;

    pirn__lock(&ch->lock);
    if (ch->tail_at == ch->tail_end && chain->spare == NULL) {
        pirn__unlock(&ch->lock);
        fresh = pirn__block_new(ch);
        pirn__lock(&ch->lock);
    }
    if (ch->sealed)
        rc = PIRN_ECLOSED;
    else if (ch->tail_at == ch->tail_end && !begin_block_locked(ch, &fresh))
        rc = -ENOMEM;
    if (rc == 0) {
        pirn__channel_put_locked(ch, message);
        wake_receiver(ch);
    } else {
        pirn__unlock(&ch->lock);
    }
    pirn__block_free(ch, fresh);
    return rc;
}

/* `cx`: of the poll that sends, or NULL. */
static inline int try_send(struct pirn__channel *ch, const void *message,
                           const pirn_cx *cx)
{
    int rc = -EAGAIN;

    if (ch->unbounded)
        return send_unbounded(ch, message);
    pirn__lock(&ch->lock);
    if (ch->sealed) {
        rc = PIRN_ECLOSED;
    } else if (may_take_locked(ch, 1)) {
        pirn__channel_put_locked(ch, message);
        tell_receiver(ch, cx);
        return 0;
    }
    pirn__unlock(&ch->lock);
    return rc;
}

int pirn__channel_try_send(struct pirn__channel *ch, const void *message)
{
    return try_send(ch, message, NULL);
}

/* Before the line is entered: from here on the receiver looks here whenever it
 * has taken a message.  It may have taken one before it could know that. */
static bool look_before_waiting_locked(struct pirn__channel *ch, uint64_t count)
{
    /* seq_cst [channel.waiting]: before the look at `head` that follows. */
    pirn__store(&ch->waiting, 1, seq_cst);
    return may_take_locked(ch, count);
}

enum pirn__room pirn__channel_ask_room_locked(struct pirn__channel *ch,
                                              const pirn_waiter *waiter)
{
    if (waiter->state_ == PIRN__WAIT_GRANTED)
        return PIRN__ROOM_TAKEN;
    if (ch->sealed)
        return PIRN__ROOM_CLOSED;
    /* In line: served in its turn. */
    if (waiter->state_ == PIRN__WAIT_QUEUED)
        return PIRN__ROOM_NONE;
    if (!may_take_locked(ch, waiter->count_) &&
        !look_before_waiting_locked(ch, waiter->count_))
        return PIRN__ROOM_NONE;
    ch->reserved += waiter->count_;
    return PIRN__ROOM_TAKEN;
}

void pirn__channel_drop_sender(struct pirn__channel *ch, pirn_waiter *waiter)
{
    pirn_waker own;

    if (!pirn__wait_is_in(waiter))
        return;
    pirn__lock(&ch->lock);
    if (pirn__wait_leave_locked(waiter, &own) == PIRN__WAIT_GRANTED)
        ch->reserved -= waiter->count_;
    /* It may have stood in the way of those behind it. */
    pirn__channel_settle(ch);
    pirn_waker_drop(own);
}

/* The operation. */

/* Whether a receiver waited when it ended; kind_ of its waiter. */
enum { SEND_UNHEARD, SEND_AWAITED };

static pirn_channel_send_op *send_op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_channel_send_op, future);
}

static bool send_may_end_locked(pirn_waiter *waiter)
{
    pirn_channel_send_op *op =
        PIRN_CONTAINER_OF(waiter, pirn_channel_send_op, waiter_);
    struct pirn__channel *ch = op->channel_;

    switch (pirn__channel_ask_room_locked(ch, waiter)) {
    case PIRN__ROOM_NONE:
        return false;
    case PIRN__ROOM_TAKEN:
        ch->reserved--;
        op->rc = ch->deaf ? PIRN_ECLOSED : 0;
        if (!ch->deaf)
            pirn__channel_put_locked(ch, op->message_);
        break;
    case PIRN__ROOM_CLOSED:
        op->rc = PIRN_ECLOSED;
        break;
    }
    waiter->kind_ = pirn__list_empty(&ch->receivers.waiters_) ? SEND_UNHEARD
                                                              : SEND_AWAITED;
    return true;
}

/* One that has found no room. */
static __attribute__((noinline)) enum pirn_poll
send_in_line(pirn_channel_send_op *op, const pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {send_may_end_locked};
    struct pirn__channel *ch = op->channel_;

    if (pirn__wait_poll(&op->waiter_, cx, &ch->senders, &ch->lock, &rules) ==
        PIRN_PENDING)
        return PIRN_PENDING;
    /* A receiver that waits has to hear of the message, or of the place that
     * nobody needs any more.  One that comes later looks itself. */
    if (op->waiter_.kind_ == SEND_AWAITED) {
        pirn__lock(&ch->lock);
        wake_receiver(ch);
    }
    return PIRN_READY;
}

/* Its budget is paid. */
static inline enum pirn_poll poll_send(pirn_channel_send_op *op,
                                       const pirn_cx *cx)
{
    int rc = op->rc;

    if (!pirn__wait_is_in(&op->waiter_) && rc != -EAGAIN)
        rc = try_send(op->channel_, op->message_, cx);
    if (rc == 0) /* as init has said */
        return PIRN_READY;
    op->rc = rc;
    return rc == -EAGAIN ? send_in_line(op, cx) : PIRN_READY;
}

PIRN__COLD static enum pirn_poll poll_uncounted(pirn_channel_send_op *op,
                                                pirn_cx *cx)
{
    return pirn__coop_spend_last(cx) ? poll_send(op, cx) : PIRN_PENDING;
}

static enum pirn_poll send_op_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_channel_send_op *op = send_op_of(self);

    if (!pirn__coop_spend_counted(cx))
        return poll_uncounted(op, cx);
    return poll_send(op, cx);
}

static void send_op_drop(pirn_future *self)
{
    pirn_channel_send_op *op = send_op_of(self);

    pirn__channel_drop_sender(op->channel_, &op->waiter_);
}

static void send_op_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "send to a channel");
}

static int send_op_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_channel_send_op, future)->rc;
}

void pirn__channel_send_init(pirn_channel_send_op *op, struct pirn__channel *ch,
                             const void *message)
{
    static const pirn_future_ops ops = {
        .poll = send_op_poll,
        .drop = send_op_drop,
        .describe = send_op_describe,
        .outcome = send_op_outcome,
    };

    op->future.ops = &ops;
    pirn__wait_init(&op->waiter_);
    op->waiter_.count_ = 1;
    op->channel_ = ch;
    op->message_ = message;
    op->rc = 0;
}

/* Kept apart, so that the quick way needs no room for the operation.  `tried`:
 * -EAGAIN if there was no room just now, which then need not be tried again. */
static __attribute__((noinline)) int send_slowly(struct pirn__channel *ch,
                                                 const void *message,
                                                 pirn_deadline deadline,
                                                 int tried)
{
    pirn_channel_send_op op;
    int rc;

    pirn__channel_send_init(&op, ch, message);
    if (tried == -EAGAIN)
        op.rc = -EAGAIN;
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

int pirn__channel_send(struct pirn__channel *ch, const void *message,
                       pirn_deadline deadline)
{
    int rc = pirn__fast_path(pirn__local());

    if (rc < 0)
        return rc;
    if (rc == 0) {
        rc = try_send(ch, message, NULL);
        if (rc != -EAGAIN)
            return rc;
    }
    return send_slowly(ch, message, deadline, rc);
}
