/* SPDX-License-Identifier: MIT */
/* src/channel/oneshot.c - a place for one message between two owners.
 *
 * Each end is one of two references, counted under the lock.  At most one of
 * each side waits: the receiver for the message, the sender for the receiver's
 * end; `kind_` says which a waiter is.
 */
#include <pirn/oneshot.h>

#include <errno.h>

#include "base/assert.h"
#include "channel/channel.h"
#include "task/await.h"
#include "task/home.h"
#include "task/local.h"

enum { WAITS_FOR_MESSAGE = 1, WAITS_FOR_CLOSE = 2 };

struct pirn__oneshot {
    pirn_lock lock;
    uint32_t message_size;  /* constant */
    uint8_t ends;           /* lock; that are not given up yet */
    bool has_message;       /* lock */
    bool sealed;            /* lock; no message will be accepted */
    pirn_waitlist waiters;  /* lock; two at most */
    struct pirn__home *home;  /* constant; or NULL */
    pirn_discard_fn *discard; /* constant; or NULL */
    void *discard_ctx;        /* constant */
    char message[];           /* lock, while has_message is not settled */
};

_Static_assert(sizeof(struct pirn__oneshot) <= 64, "a oneshot is small");

static struct pirn__oneshot *of_sender(const pirn_oneshot_sender *sender)
{
    return (struct pirn__oneshot *)(uintptr_t)sender;
}

static struct pirn__oneshot *of_receiver(const pirn_oneshot_receiver *receiver)
{
    return (struct pirn__oneshot *)(uintptr_t)receiver;
}

int pirn_oneshot_new(const pirn_channel_options *options,
                     pirn_oneshot_sender **sender,
                     pirn_oneshot_receiver **receiver)
{
    struct pirn__home *home = pirn__local_home();
    struct pirn__oneshot *oneshot;

    if (sender != NULL)
        *sender = NULL;
    if (receiver != NULL)
        *receiver = NULL;
    if (options == NULL || sender == NULL || receiver == NULL ||
        options->message_size == 0 ||
        options->message_size > PIRN__CHANNEL_MESSAGE_LIMIT)
        return -EINVAL;
    oneshot = pirn__home_take(home, sizeof *oneshot + options->message_size);
    if (oneshot == NULL)
        return -ENOMEM;
    *oneshot = (struct pirn__oneshot){
        .message_size = (uint32_t)options->message_size,
        .ends = 2,
        .home = home,
        .discard = options->discard,
        .discard_ctx = options->discard_ctx,
    };
    pirn__lock_init(&oneshot->lock);
    pirn__waitlist_init(&oneshot->waiters);
    if (home != NULL)
        pirn__home_ref(home);
    *sender = (pirn_oneshot_sender *)(void *)oneshot;
    *receiver = (pirn_oneshot_receiver *)(void *)oneshot;
    return 0;
}

static void oneshot_free(struct pirn__oneshot *oneshot)
{
    struct pirn__home *home = oneshot->home;

    pirn__home_give(home, oneshot, sizeof *oneshot + oneshot->message_size);
    if (home != NULL)
        pirn__home_unref(home);
}

/* End the wait of the one that waits for this; the empty waker if nobody does.
 * Wake it after unlock. */
static pirn_waker end_wait_locked(struct pirn__oneshot *oneshot, uint16_t kind)
{
    pirn_waiter *first = pirn__waitlist_first(&oneshot->waiters);
    pirn_waiter *last = pirn__waitlist_last(&oneshot->waiters);

    if (first == NULL)
        return (pirn_waker){0};
    if (first->kind_ == kind)
        return pirn__wait_end_locked(first, PIRN__WAIT_GRANTED);
    if (last->kind_ == kind)
        return pirn__wait_end_locked(last, PIRN__WAIT_GRANTED);
    return (pirn_waker){0};
}

/* Under the lock, which is released: one end is given up.  The other one's
 * waiter, if any, has been taken out and is woken. */
static void give_end_up(struct pirn__oneshot *oneshot, pirn_waker waker)
{
    bool is_last = --oneshot->ends == 0;

    /* Who is left is its own. */
    PIRN_REQUIRE(pirn__waitlist_empty(&oneshot->waiters),
                 "an end of a oneshot is not given up while it waits");
    pirn__unlock(&oneshot->lock);
    pirn_waker_wake(waker);
    if (is_last)
        oneshot_free(oneshot);
}

/* The sender. */

int pirn_oneshot_send(pirn_oneshot_sender *sender, const void *message)
{
    struct pirn__oneshot *oneshot = of_sender(sender);
    bool is_refused;

    pirn__lock(&oneshot->lock);
    is_refused = oneshot->sealed;
    if (!is_refused) {
        pirn__message_copy(oneshot->message, message, oneshot->message_size);
        oneshot->has_message = true;
        oneshot->sealed = true;
    }
    give_end_up(oneshot, end_wait_locked(oneshot, WAITS_FOR_MESSAGE));
    return is_refused ? PIRN_ECLOSED : 0;
}

void pirn_oneshot_sender_free(pirn_oneshot_sender *sender)
{
    struct pirn__oneshot *oneshot = of_sender(sender);

    if (oneshot == NULL)
        return;
    pirn__lock(&oneshot->lock);
    oneshot->sealed = true;
    give_end_up(oneshot, end_wait_locked(oneshot, WAITS_FOR_MESSAGE));
}

bool pirn_oneshot_is_closed(const pirn_oneshot_sender *sender)
{
    struct pirn__oneshot *oneshot = of_sender(sender);
    bool sealed;

    pirn__lock(&oneshot->lock);
    sealed = oneshot->sealed;
    pirn__unlock(&oneshot->lock);
    return sealed;
}

/* The receiver. */

static int take_locked(struct pirn__oneshot *oneshot, void *message)
{
    if (!oneshot->has_message)
        return oneshot->sealed ? PIRN_ECLOSED : -EAGAIN;
    pirn__message_copy(message, oneshot->message, oneshot->message_size);
    oneshot->has_message = false;
    return 0;
}

int pirn_oneshot_try_recv(pirn_oneshot_receiver *receiver, void *message)
{
    struct pirn__oneshot *oneshot = of_receiver(receiver);
    int rc;

    pirn__lock(&oneshot->lock);
    rc = take_locked(oneshot, message);
    pirn__unlock(&oneshot->lock);
    return rc;
}

void pirn_oneshot_receiver_close(pirn_oneshot_receiver *receiver)
{
    struct pirn__oneshot *oneshot = of_receiver(receiver);
    pirn_waker sender, own;

    pirn__lock(&oneshot->lock);
    oneshot->sealed = true;
    sender = end_wait_locked(oneshot, WAITS_FOR_CLOSE);
    own = end_wait_locked(oneshot, WAITS_FOR_MESSAGE);
    pirn__unlock(&oneshot->lock);
    pirn_waker_wake(sender);
    pirn_waker_wake(own);
}

static void discard_message(const struct pirn__oneshot *oneshot, void *message)
{
    pirn__message_discard(oneshot->discard, message, oneshot->discard_ctx);
}

void pirn_oneshot_receiver_free(pirn_oneshot_receiver *receiver)
{
    struct pirn__oneshot *oneshot = of_receiver(receiver);
    bool has_message;

    if (oneshot == NULL)
        return;
    pirn__lock(&oneshot->lock);
    oneshot->sealed = true;
    has_message = oneshot->has_message;
    oneshot->has_message = false;
    if (has_message) {
        /* The sender has gone with it, so we are alone. */
        pirn__unlock(&oneshot->lock);
        discard_message(oneshot, oneshot->message);
        pirn__lock(&oneshot->lock);
    }
    give_end_up(oneshot, end_wait_locked(oneshot, WAITS_FOR_CLOSE));
}

/* The operations. */

static pirn_oneshot_op *op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_oneshot_op, future);
}

static bool may_end_locked(pirn_waiter *waiter)
{
    pirn_oneshot_op *op = PIRN_CONTAINER_OF(waiter, pirn_oneshot_op, waiter_);

    op->rc = 0;
    if (op->message_ == NULL)
        return op->oneshot_->sealed;
    op->rc = take_locked(op->oneshot_, op->message_);
    return op->rc != -EAGAIN;
}

static enum pirn_poll op_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {may_end_locked};
    pirn_oneshot_op *op = op_of(self);
    struct pirn__oneshot *oneshot = op->oneshot_;

    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    return pirn__wait_poll(&op->waiter_, cx, &oneshot->waiters, &oneshot->lock,
                           &rules);
}

/* A message that it was told of stays where it is, for the next receive. */
static void op_drop(pirn_future *self)
{
    pirn_oneshot_op *op = op_of(self);
    pirn_waker own;

    if (!pirn__wait_is_in(&op->waiter_))
        return;
    pirn__lock(&op->oneshot_->lock);
    (void)pirn__wait_leave_locked(&op->waiter_, &own);
    pirn__unlock(&op->oneshot_->lock);
    pirn_waker_drop(own);
}

static void op_discard(pirn_future *self)
{
    pirn_oneshot_op *op = op_of(self);

    if (op->rc == 0 && op->message_ != NULL)
        discard_message(op->oneshot_, op->message_);
}

static void op_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_oneshot_op *op =
        PIRN_CONTAINER_OF(self, const pirn_oneshot_op, future);

    pirn_text_append(out, op->message_ == NULL
                              ? "the end of a oneshot's receiver"
                              : "the message of a oneshot");
}

static int op_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_oneshot_op, future)->rc;
}

static void op_init(pirn_oneshot_op *op, struct pirn__oneshot *oneshot,
                    void *message)
{
    static const pirn_future_ops ops = {
        .poll = op_poll,
        .drop = op_drop,
        .discard = op_discard,
        .describe = op_describe,
        .outcome = op_outcome,
    };

    op->future.ops = &ops;
    pirn__wait_init(&op->waiter_);
    op->waiter_.kind_ =
        message == NULL ? WAITS_FOR_CLOSE : WAITS_FOR_MESSAGE;
    op->oneshot_ = oneshot;
    op->message_ = message;
    op->rc = 0;
}

void pirn_oneshot_recv_init(pirn_oneshot_op *op,
                            pirn_oneshot_receiver *receiver, void *message)
{
    op_init(op, of_receiver(receiver), message);
}

void pirn_oneshot_closed_init(pirn_oneshot_op *op, pirn_oneshot_sender *sender)
{
    op_init(op, of_sender(sender), NULL);
}

int pirn_oneshot_recv(pirn_oneshot_receiver *receiver, void *message,
                      pirn_deadline deadline)
{
    pirn_oneshot_op op;
    int rc;

    pirn_oneshot_recv_init(&op, receiver, message);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

int pirn_oneshot_closed(pirn_oneshot_sender *sender, pirn_deadline deadline)
{
    pirn_oneshot_op op;
    int rc;

    pirn_oneshot_closed_init(&op, sender);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}
