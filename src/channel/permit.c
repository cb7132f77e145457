/* SPDX-License-Identifier: MIT */
/* src/channel/permit.c - places that are reserved first and filled later.
 *
 * A permit counts as a sender as long as it has places, so that its owner needs
 * no handle beside it.
 */
#include <errno.h>

#include <pirn/mpsc.h>

#include "channel/channel.h"
#include "task/await.h"
#include "task/local.h"

static struct pirn__channel *channel_of(pirn_mpsc_sender *sender)
{
    return (struct pirn__channel *)(void *)sender;
}

static int check_request(const struct pirn__channel *ch, size_t count)
{
    if (ch->unbounded)
        return -ENOTSUP;
    return count == 0 || count > ch->capacity ? -EINVAL : 0;
}

/* Under the lock: `count` places have been reserved. */
static pirn_mpsc_permit permit_of_locked(struct pirn__channel *ch, size_t count)
{
    ch->sender_count++;
    return (pirn_mpsc_permit){.channel_ = ch, .count = count};
}

int pirn_mpsc_try_reserve(pirn_mpsc_sender *sender, size_t count,
                          pirn_mpsc_permit *permit)
{
    struct pirn__channel *ch = channel_of(sender);
    int rc = check_request(ch, count);

    *permit = (pirn_mpsc_permit){0};
    if (rc < 0)
        return rc;
    pirn__lock(&ch->lock);
    if (ch->sealed) {
        rc = PIRN_ECLOSED;
    } else if (!pirn__waitlist_empty(&ch->senders) ||
               !pirn__channel_has_room_locked(ch, count)) {
        rc = -EAGAIN;
    } else {
        ch->reserved += (uint32_t)count; /* at most the capacity */
        *permit = permit_of_locked(ch, count);
    }
    pirn__unlock(&ch->lock);
    return rc;
}

/* The operation. */

static pirn_mpsc_reserve_op *reserve_op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_mpsc_reserve_op, future);
}

static bool reserve_may_end_locked(pirn_waiter *waiter)
{
    pirn_mpsc_reserve_op *op =
        PIRN_CONTAINER_OF(waiter, pirn_mpsc_reserve_op, waiter_);
    struct pirn__channel *ch = op->channel_;

    switch (pirn__channel_ask_room_locked(ch, waiter)) {
    case PIRN__ROOM_NONE:
        return false;
    case PIRN__ROOM_TAKEN:
        op->rc = 0;
        op->permit = permit_of_locked(ch, waiter->count_);
        break;
    case PIRN__ROOM_CLOSED:
        op->rc = PIRN_ECLOSED;
        break;
    }
    return true;
}

static enum pirn_poll reserve_op_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {reserve_may_end_locked};
    pirn_mpsc_reserve_op *op = reserve_op_of(self);
    struct pirn__channel *ch = op->channel_;

    if (op->rc < 0) /* said by init */
        return PIRN_READY;
    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    return pirn__wait_poll(&op->waiter_, cx, &ch->senders, &ch->lock, &rules);
}

static void reserve_op_drop(pirn_future *self)
{
    pirn_mpsc_reserve_op *op = reserve_op_of(self);

    pirn__channel_drop_sender(op->channel_, &op->waiter_);
}

static void reserve_op_discard(pirn_future *self)
{
    pirn_mpsc_permit_release(&reserve_op_of(self)->permit);
}

static void reserve_op_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_mpsc_reserve_op *op =
        PIRN_CONTAINER_OF(self, const pirn_mpsc_reserve_op, future);

    pirn_text_append(out, "reserve %u places in a channel",
                     (unsigned)op->waiter_.count_);
}

static int reserve_op_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_mpsc_reserve_op, future)->rc;
}

void pirn_mpsc_reserve_init(pirn_mpsc_reserve_op *op, pirn_mpsc_sender *sender,
                            size_t count)
{
    static const pirn_future_ops ops = {
        .poll = reserve_op_poll,
        .drop = reserve_op_drop,
        .discard = reserve_op_discard,
        .describe = reserve_op_describe,
        .outcome = reserve_op_outcome,
    };

    op->future.ops = &ops;
    pirn__wait_init(&op->waiter_);
    op->waiter_.count_ = (uint32_t)count; /* at most the capacity */
    op->channel_ = channel_of(sender);
    op->permit = (pirn_mpsc_permit){0};
    op->rc = check_request(op->channel_, count);
}

int pirn_mpsc_reserve(pirn_mpsc_sender *sender, size_t count,
                      pirn_deadline deadline, pirn_mpsc_permit *permit)
{
    pirn_mpsc_reserve_op op;
    int rc;

    pirn_mpsc_reserve_init(&op, sender, count);
    rc = pirn__await(&op.future, deadline);
    if (rc == 0)
        rc = op.rc;
    *permit = rc == 0 ? op.permit : (pirn_mpsc_permit){0};
    return rc;
}

/* Permits. */

/* Under the lock, which is released: `count` places are free or filled now.
 * The last one ends the permit, and with it perhaps the channel. */
static void use_up(pirn_mpsc_permit *permit, size_t count)
{
    struct pirn__channel *ch = permit->channel_;
    bool is_last = false;

    ch->reserved -= (uint32_t)count;
    permit->count -= count;
    if (permit->count == 0) {
        is_last = pirn__channel_sender_leave_locked(ch);
        permit->channel_ = NULL;
    }
    pirn__channel_settle(ch);
    if (is_last)
        pirn__channel_unref(ch);
}

int pirn_mpsc_permit_send(pirn_mpsc_permit *permit, const void *message)
{
    struct pirn__channel *ch = permit->channel_;

    if (permit->count == 0)
        return -EINVAL;
    pirn__lock(&ch->lock);
    if (ch->deaf) {
        pirn__unlock(&ch->lock);
        return PIRN_ECLOSED;
    }
    pirn__channel_put_locked(ch, message);
    use_up(permit, 1);
    return 0;
}

void pirn_mpsc_permit_release(pirn_mpsc_permit *permit)
{
    if (permit->count == 0)
        return;
    pirn__lock(&permit->channel_->lock);
    use_up(permit, permit->count);
}
