/* SPDX-License-Identifier: MIT */
/* src/channel/watch.c - one value, numbered by its changes, and receivers each of
 * which knows the number of the last one it has seen.
 *
 * Every change wakes all that wait.  What one of them was woken for and did not
 * look at, because it was dropped, its next call finds.
 */
#include <pirn/watch.h>

#include <errno.h>

#include "base/assert.h"
#include "channel/channel.h"
#include "task/await.h"
#include "task/home.h"
#include "task/local.h"

struct pirn_watch_sender {
    pirn_lock lock;
    uint32_t value_size;     /* constant */
    uint64_t version;        /* lock */
    pirn_waitlist waiters;   /* lock; receivers */
    uint32_t sender_count;   /* lock */
    uint32_t receiver_count; /* lock */
    /* All senders together have one, each receiver too. */
    PIRN_ATOMIC(uint32_t) refs;
    struct pirn__home *home; /* constant; or NULL */
    char value[];            /* lock */
};

struct pirn_watch_receiver {
    pirn_watch_sender *watch;
    uint64_t seen; /* its owner's: a version */
};

/* The only things that change when somebody looks are the lock and, later, what
 * the reader remembers. */
static pirn_watch_sender *writable(const pirn_watch_sender *watch)
{
    return (pirn_watch_sender *)(uintptr_t)watch;
}

static void watch_unref(pirn_watch_sender *watch)
{
    /* acq_rel [watch.refs]: release [watch.refs] ends our use; acquire
     * [watch.refs] is the half of the one that frees. */
    if (pirn__sub(&watch->refs, 1, acq_rel) != 1)
        return;
    pirn__home_give_object(watch->home, watch,
                           sizeof *watch + watch->value_size);
}

/* By somebody with a handle.  `from`: whose memory it shares; or NULL. */
static int receiver_new(pirn_watch_sender *watch,
                        const pirn_watch_receiver *from,
                        pirn_watch_receiver **out)
{
    pirn_watch_receiver *receiver =
        pirn__home_take(watch->home, sizeof *receiver);

    *out = receiver;
    if (receiver == NULL)
        return -ENOMEM;
    receiver->watch = watch;
    /* relaxed: the caller has a reference already. */
    (void)pirn__add(&watch->refs, 1, relaxed);
    pirn__lock(&watch->lock);
    watch->receiver_count++;
    receiver->seen = from == NULL ? watch->version : from->seen;
    pirn__unlock(&watch->lock);
    return 0;
}

int pirn_watch_new(const pirn_channel_options *options, const void *value,
                   pirn_watch_sender **sender, pirn_watch_receiver **receiver)
{
    struct pirn__home *home = pirn__local_home();
    pirn_watch_sender *watch;
    int rc = 0;

    if (receiver != NULL)
        *receiver = NULL;
    if (sender == NULL)
        return -EINVAL;
    *sender = NULL;
    if (!pirn__message_size_is_good(options) || options->discard != NULL ||
        value == NULL)
        return -EINVAL;
    watch = pirn__home_take_object(home, sizeof *watch + options->message_size);
    if (watch == NULL)
        return -ENOMEM;
    *watch = (pirn_watch_sender){
        .value_size = (uint32_t)options->message_size,
        .sender_count = 1,
        .home = home,
    };
    pirn__lock_init(&watch->lock);
    pirn__waitlist_init(&watch->waiters);
    pirn__init(&watch->refs, 1);
    pirn__message_copy(watch->value, value, watch->value_size);
    if (receiver != NULL)
        rc = receiver_new(watch, NULL, receiver);
    if (rc < 0)
        watch_unref(watch);
    else
        *sender = watch;
    return rc;
}

pirn_watch_sender *pirn_watch_sender_ref(pirn_watch_sender *sender)
{
    pirn__lock(&sender->lock);
    sender->sender_count++;
    pirn__unlock(&sender->lock);
    return sender;
}

void pirn_watch_sender_unref(pirn_watch_sender *sender)
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
    watch_unref(sender);
}

int pirn_watch_subscribe(pirn_watch_sender *sender, pirn_watch_receiver **out)
{
    return receiver_new(sender, NULL, out);
}

int pirn_watch_receiver_dup(pirn_watch_receiver *receiver,
                            pirn_watch_receiver **out)
{
    return receiver_new(receiver->watch, receiver, out);
}

void pirn_watch_receiver_free(pirn_watch_receiver *receiver)
{
    pirn_watch_sender *watch;

    if (receiver == NULL)
        return;
    watch = receiver->watch;
    pirn__lock(&watch->lock);
    watch->receiver_count--;
    pirn__unlock(&watch->lock);
    pirn__home_give(watch->home, receiver, sizeof *receiver);
    watch_unref(watch);
}

size_t pirn_watch_send(pirn_watch_sender *sender, const void *value)
{
    size_t receivers;

    pirn__lock(&sender->lock);
    pirn__message_copy(sender->value, value, sender->value_size);
    sender->version++;
    receivers = sender->receiver_count;
    pirn__waitlist_end_all_and_unlock(&sender->waiters, &sender->lock,
                                      PIRN__WAIT_GRANTED);
    return receivers;
}

/* Copy the value out; returns its version. */
static uint64_t copy_value(const pirn_watch_sender *sender, void *value)
{
    pirn_watch_sender *watch = writable(sender);
    uint64_t version;

    pirn__lock(&watch->lock);
    version = watch->version;
    pirn__message_copy(value, watch->value, watch->value_size);
    pirn__unlock(&watch->lock);
    return version;
}

void pirn_watch_sender_get(const pirn_watch_sender *sender, void *value)
{
    (void)copy_value(sender, value);
}

void pirn_watch_get(pirn_watch_receiver *receiver, void *value)
{
    receiver->seen = copy_value(receiver->watch, value);
}

void pirn_watch_peek(const pirn_watch_receiver *receiver, void *value)
{
    (void)copy_value(receiver->watch, value);
}

bool pirn_watch_has_changed(const pirn_watch_receiver *receiver)
{
    pirn_watch_sender *watch = receiver->watch;
    uint64_t version;

    pirn__lock(&watch->lock);
    version = watch->version;
    pirn__unlock(&watch->lock);
    return version != receiver->seen;
}

/* The operations. */

static pirn_watch_op *op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_watch_op, future);
}

static bool may_end_locked(pirn_waiter *waiter)
{
    pirn_watch_op *op = PIRN_CONTAINER_OF(waiter, pirn_watch_op, waiter_);
    pirn_watch_receiver *receiver = op->receiver_;
    pirn_watch_sender *watch = receiver->watch;

    if (watch->version == receiver->seen && !op->any_) {
        op->rc = PIRN_ECLOSED;
        return watch->sender_count == 0 ||
               pirn__channel_wait_on_locked(waiter);
    }
    op->any_ = false;
    op->rc = 0;
    receiver->seen = watch->version;
    if (op->value_ != NULL)
        pirn__message_copy(op->value_, watch->value, watch->value_size);
    return true;
}

/* Is what has been copied out the value that is waited for? */
static bool is_wanted(const pirn_watch_op *op)
{
    return op->rc < 0 || op->fn_ == NULL || op->fn_(op->arg_, op->value_);
}

static enum pirn_poll op_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {may_end_locked};
    pirn_watch_op *op = op_of(self);
    pirn_watch_sender *watch = op->receiver_->watch;

    /* Ends: each round costs budget. */
    for (;;) {
        if (!pirn__coop_spend(cx))
            return PIRN_PENDING;
        if (pirn__wait_poll(&op->waiter_, cx, &watch->waiters, &watch->lock,
                            &rules) == PIRN_PENDING)
            return PIRN_PENDING;
        if (is_wanted(op))
            return PIRN_READY;
        pirn__wait_init(&op->waiter_);
    }
}

static void op_drop(pirn_future *self)
{
    pirn_watch_op *op = op_of(self);

    pirn__wait_drop(&op->waiter_, &op->receiver_->watch->lock);
}

static void op_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "a change of a watched value");
}

static int op_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_watch_op, future)->rc;
}

static void op_init(pirn_watch_op *op, pirn_watch_receiver *receiver,
                    void *value)
{
    static const pirn_future_ops ops = {
        .poll = op_poll,
        .drop = op_drop,
        .describe = op_describe,
        .outcome = op_outcome,
    };

    *op = (pirn_watch_op){
        .future.ops = &ops,
        .receiver_ = receiver,
        .value_ = value,
    };
    pirn__wait_init(&op->waiter_);
}

void pirn_watch_changed_init(pirn_watch_op *op, pirn_watch_receiver *receiver,
                             void *value)
{
    op_init(op, receiver, value);
}

void pirn_watch_wait_for_init(pirn_watch_op *op, pirn_watch_receiver *receiver,
                              pirn_watch_fn *fn, void *arg, void *value)
{
    op_init(op, receiver, value);
    op->fn_ = fn;
    op->arg_ = arg;
    op->any_ = true;
}

int pirn_watch_changed(pirn_watch_receiver *receiver, void *value,
                       pirn_deadline deadline)
{
    pirn_watch_op op;
    int rc;

    pirn_watch_changed_init(&op, receiver, value);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

int pirn_watch_wait_for(pirn_watch_receiver *receiver, pirn_watch_fn *fn,
                        void *arg, void *value, pirn_deadline deadline)
{
    pirn_watch_op op;
    int rc;

    pirn_watch_wait_for_init(&op, receiver, fn, arg, value);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}
