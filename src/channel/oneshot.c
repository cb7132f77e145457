/* SPDX-License-Identifier: MIT */
/* src/channel/oneshot.c - a place for one message between two owners.
 *
 * Each end is a bit in `ends_`, under the lock.  At most one of each side waits:
 * the receiver for the message or for the sender's end, the sender for the
 * receiver's; `kind_` says which a waiter is.
 *
 * Invariants
 *   - With the sender's end go, in the same section, its message and the seal.
 *   - Who gives an end up touches the oneshot no more once it has left the lock,
 *     unless both are gone and the memory is the library's: then the second one
 *     frees it.
 *   - So the owner of a placed one, who has seen under the lock that the sender
 *     is gone, may use the memory for something else.
 */
#include <pirn/oneshot.h>

#include <errno.h>

#include "base/assert.h"
#include "channel/channel.h"
#include "task/await.h"
#include "task/home.h"
#include "task/local.h"

/* Of waiters. */
enum { WAITS_FOR_MESSAGE = 1, WAITS_FOR_SENDER = 2, WAITS_FOR_CLOSE = 4 };

/* Of `ends_`: which are not given up yet. */
enum { SENDER_END = 1, RECEIVER_END = 2 };

/* What pirn_oneshot_new() makes. */
struct made {
    pirn_oneshot oneshot;
    struct pirn__home *home; /* constant; or NULL */
    char message[];
};

_Static_assert(sizeof(pirn_oneshot) <= 64 && sizeof(struct made) <= 64,
               "a oneshot is small");
_Static_assert(offsetof(struct made, message) % 16 == 0,
               "the message is aligned");

static pirn_oneshot *of_sender(const pirn_oneshot_sender *sender)
{
    return (pirn_oneshot *)(uintptr_t)sender;
}

static pirn_oneshot *of_receiver(const pirn_oneshot_receiver *receiver)
{
    return (pirn_oneshot *)(uintptr_t)receiver;
}

static pirn_oneshot_sender *sender_of(pirn_oneshot *oneshot)
{
    return (pirn_oneshot_sender *)(void *)oneshot;
}

static pirn_oneshot_receiver *receiver_of(pirn_oneshot *oneshot)
{
    return (pirn_oneshot_receiver *)(void *)oneshot;
}

/* False: no oneshot can be made of these; the ends are NULL. */
static bool is_good(const pirn_channel_options *options,
                    pirn_oneshot_sender **sender,
                    pirn_oneshot_receiver **receiver)
{
    if (sender != NULL)
        *sender = NULL;
    if (receiver != NULL)
        *receiver = NULL;
    return sender != NULL && receiver != NULL &&
           pirn__message_size_is_good(options);
}

static void prepare(pirn_oneshot *oneshot, const pirn_channel_options *options,
                    void *message, bool placed)
{
    *oneshot = (pirn_oneshot){
        .message_size_ = (uint32_t)options->message_size,
        .message_ = message,
        .discard_ = options->discard,
        .discard_arg_ = options->discard_arg,
        .ends_ = SENDER_END | RECEIVER_END,
        .placed_ = placed,
    };
    pirn__lock_init(&oneshot->lock_);
    pirn__waitlist_init(&oneshot->waiters_);
}

int pirn_oneshot_new(const pirn_channel_options *options,
                     pirn_oneshot_sender **sender,
                     pirn_oneshot_receiver **receiver)
{
    struct pirn__home *home = pirn__local_home();
    struct made *made;

    if (!is_good(options, sender, receiver))
        return -EINVAL;
    made = pirn__home_take_object(home, sizeof *made + options->message_size);
    if (made == NULL)
        return -ENOMEM;
    prepare(&made->oneshot, options, made->message, false);
    made->home = home;
    *sender = sender_of(&made->oneshot);
    *receiver = receiver_of(&made->oneshot);
    return 0;
}

static void made_free(struct made *made)
{
    pirn__home_give_object(made->home, made,
                           sizeof *made + made->oneshot.message_size_);
}

/* End the wait of the one that waits for one of these; the empty waker if nobody
 * does.  Wake it after unlock. */
static pirn_waker end_wait_locked(pirn_oneshot *oneshot, unsigned kinds)
{
    pirn_waiter *first = pirn__waitlist_first(&oneshot->waiters_);
    pirn_waiter *last = pirn__waitlist_last(&oneshot->waiters_);

    if (first == NULL)
        return (pirn_waker){0};
    if ((first->kind_ & kinds) != 0)
        return pirn__wait_end_locked(first, PIRN__WAIT_GRANTED);
    if ((last->kind_ & kinds) != 0)
        return pirn__wait_end_locked(last, PIRN__WAIT_GRANTED);
    return (pirn_waker){0};
}

/* Under the lock, which is released: an end is given up.  The other one's
 * waiter, if any, has been taken out and is woken. */
static void give_up(pirn_oneshot *oneshot, unsigned end, pirn_waker waker)
{
    bool is_ours;

    PIRN_REQUIRE((oneshot->ends_ & end) != 0,
                 "an end of a oneshot is given up once");
    oneshot->ends_ &= (uint8_t)~end;
    is_ours = oneshot->ends_ == 0 && !oneshot->placed_;
    /* Who is left is its own. */
    PIRN_REQUIRE(pirn__waitlist_empty(&oneshot->waiters_),
                 "an end of a oneshot is not given up while it waits");
    pirn__unlock(&oneshot->lock_);
    pirn_waker_wake(waker);
    if (is_ours)
        made_free((struct made *)(void *)oneshot);
}

/* The sender. */

/* Under the lock, which is released. */
static void give_sender_up(pirn_oneshot *oneshot)
{
    oneshot->sealed_ = true;
    give_up(oneshot, SENDER_END,
            end_wait_locked(oneshot, WAITS_FOR_MESSAGE | WAITS_FOR_SENDER));
}

int pirn_oneshot_send(pirn_oneshot_sender *sender, const void *message)
{
    pirn_oneshot *oneshot = of_sender(sender);
    bool is_refused;

    pirn__lock(&oneshot->lock_);
    is_refused = oneshot->sealed_;
    if (!is_refused) {
        pirn__message_copy(oneshot->message_, message, oneshot->message_size_);
        oneshot->has_message_ = true;
    }
    give_sender_up(oneshot);
    return is_refused ? PIRN_ECLOSED : 0;
}

void pirn_oneshot_sender_free(pirn_oneshot_sender *sender)
{
    pirn_oneshot *oneshot = of_sender(sender);

    if (oneshot == NULL)
        return;
    pirn__lock(&oneshot->lock_);
    give_sender_up(oneshot);
}

bool pirn_oneshot_is_closed(const pirn_oneshot_sender *sender)
{
    pirn_oneshot *oneshot = of_sender(sender);
    bool sealed;

    pirn__lock(&oneshot->lock_);
    sealed = oneshot->sealed_;
    pirn__unlock(&oneshot->lock_);
    return sealed;
}

/* The receiver. */

static int take_locked(pirn_oneshot *oneshot, void *message)
{
    if (!oneshot->has_message_)
        return oneshot->sealed_ ? PIRN_ECLOSED : -EAGAIN;
    pirn__message_copy(message, oneshot->message_, oneshot->message_size_);
    oneshot->has_message_ = false;
    return 0;
}

int pirn_oneshot_try_recv(pirn_oneshot_receiver *receiver, void *message)
{
    pirn_oneshot *oneshot = of_receiver(receiver);
    int rc;

    pirn__lock(&oneshot->lock_);
    rc = take_locked(oneshot, message);
    pirn__unlock(&oneshot->lock_);
    return rc;
}

void pirn_oneshot_receiver_close(pirn_oneshot_receiver *receiver)
{
    pirn_oneshot *oneshot = of_receiver(receiver);
    pirn_waker sender, own;

    pirn__lock(&oneshot->lock_);
    oneshot->sealed_ = true;
    sender = end_wait_locked(oneshot, WAITS_FOR_CLOSE);
    own = end_wait_locked(oneshot, WAITS_FOR_MESSAGE);
    pirn__unlock(&oneshot->lock_);
    pirn_waker_wake(sender);
    pirn_waker_wake(own);
}

static void discard_message(const pirn_oneshot *oneshot, void *message)
{
    pirn__message_discard(oneshot->discard_, oneshot->discard_arg_, message);
}

void pirn_oneshot_receiver_free(pirn_oneshot_receiver *receiver)
{
    pirn_oneshot *oneshot = of_receiver(receiver);
    bool has_message;

    if (oneshot == NULL)
        return;
    pirn__lock(&oneshot->lock_);
    oneshot->sealed_ = true;
    has_message = oneshot->has_message_;
    oneshot->has_message_ = false;
    if (has_message) {
        /* The sender has gone with it, so we are alone. */
        pirn__unlock(&oneshot->lock_);
        discard_message(oneshot, oneshot->message_);
        pirn__lock(&oneshot->lock_);
    }
    give_up(oneshot, RECEIVER_END, end_wait_locked(oneshot, WAITS_FOR_CLOSE));
}

/* In the caller's memory. */

int pirn_oneshot_init(pirn_oneshot *oneshot,
                      const pirn_channel_options *options, void *message,
                      pirn_oneshot_sender **sender,
                      pirn_oneshot_receiver **receiver)
{
    if (!is_good(options, sender, receiver) || oneshot == NULL ||
        message == NULL)
        return -EINVAL;
    prepare(oneshot, options, message, true);
    *sender = sender_of(oneshot);
    *receiver = receiver_of(oneshot);
    return 0;
}

void pirn_oneshot_deinit(pirn_oneshot *oneshot)
{
    uint8_t ends;

    /* Whoever gives an end up leaves it under the lock, so that is over now. */
    pirn__lock(&oneshot->lock_);
    ends = oneshot->ends_;
    pirn__unlock(&oneshot->lock_);
    PIRN_REQUIRE((ends & SENDER_END) == 0,
                 "a oneshot ends after its sender is gone");
    if ((ends & RECEIVER_END) != 0)
        pirn_oneshot_receiver_free(receiver_of(oneshot));
}

/* The operations. */

static pirn_oneshot_op *op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_oneshot_op, future);
}

static bool may_end_locked(pirn_waiter *waiter)
{
    pirn_oneshot_op *op = PIRN_CONTAINER_OF(waiter, pirn_oneshot_op, waiter_);
    pirn_oneshot *oneshot = op->oneshot_;

    op->rc = 0;
    if (waiter->kind_ == WAITS_FOR_CLOSE)
        return oneshot->sealed_;
    if (waiter->kind_ == WAITS_FOR_SENDER)
        return (oneshot->ends_ & SENDER_END) == 0;
    op->rc = take_locked(oneshot, op->message_);
    return op->rc != -EAGAIN;
}

static enum pirn_poll op_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {may_end_locked};
    pirn_oneshot_op *op = op_of(self);
    pirn_oneshot *oneshot = op->oneshot_;

    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    return pirn__wait_poll(&op->waiter_, cx, &oneshot->waiters_, &oneshot->lock_,
                           &rules);
}

/* A message that it was told of stays where it is, for the next receive. */
static void op_drop(pirn_future *self)
{
    pirn_oneshot_op *op = op_of(self);

    pirn__wait_drop(&op->waiter_, &op->oneshot_->lock_);
}

static void op_discard(pirn_future *self)
{
    pirn_oneshot_op *op = op_of(self);

    if (op->rc == 0 && op->waiter_.kind_ == WAITS_FOR_MESSAGE)
        discard_message(op->oneshot_, op->message_);
}

static void op_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_oneshot_op *op =
        PIRN_CONTAINER_OF(self, const pirn_oneshot_op, future);

    if (op->waiter_.kind_ == WAITS_FOR_MESSAGE)
        pirn_text_append(out, "the message of a oneshot");
    else
        pirn_text_append(out, "the end of a oneshot's %s",
                         op->waiter_.kind_ == WAITS_FOR_CLOSE ? "receiver"
                                                              : "sender");
}

static int op_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, const pirn_oneshot_op, future)->rc;
}

static void op_init(pirn_oneshot_op *op, pirn_oneshot *oneshot, unsigned kind,
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
    op->waiter_.kind_ = (uint16_t)kind;
    op->oneshot_ = oneshot;
    op->message_ = message;
    op->rc = 0;
}

void pirn_oneshot_recv_init(pirn_oneshot_op *op,
                            pirn_oneshot_receiver *receiver, void *message)
{
    op_init(op, of_receiver(receiver), WAITS_FOR_MESSAGE, message);
}

void pirn_oneshot_finished_init(pirn_oneshot_op *op,
                                pirn_oneshot_receiver *receiver)
{
    op_init(op, of_receiver(receiver), WAITS_FOR_SENDER, NULL);
}

void pirn_oneshot_closed_init(pirn_oneshot_op *op, pirn_oneshot_sender *sender)
{
    op_init(op, of_sender(sender), WAITS_FOR_CLOSE, NULL);
}

int pirn_oneshot_recv(pirn_oneshot_receiver *receiver, void *message,
                      pirn_deadline deadline)
{
    int rc = pirn__fast_path(pirn__local());
    pirn_oneshot_op op;

    if (rc < 0)
        return rc;
    if (rc == 0) {
        rc = pirn_oneshot_try_recv(receiver, message);
        if (rc != -EAGAIN)
            return rc;
    }
    pirn_oneshot_recv_init(&op, receiver, message);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

int pirn_oneshot_finished(pirn_oneshot_receiver *receiver,
                          pirn_deadline deadline)
{
    pirn_oneshot_op op;

    pirn_oneshot_finished_init(&op, receiver);
    return pirn__await(&op.future, deadline);
}

int pirn_oneshot_closed(pirn_oneshot_sender *sender, pirn_deadline deadline)
{
    pirn_oneshot_op op;

    pirn_oneshot_closed_init(&op, sender);
    return pirn__await(&op.future, deadline);
}
