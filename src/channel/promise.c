/* SPDX-License-Identifier: MIT */
/* src/channel/promise.c - a value that is set once.
 *
 * Once `is_set` says so the value does not change any more and is read without
 * the lock.
 */
#include <pirn/promise.h>

#include <errno.h>

#include "base/assert.h"
#include "channel/channel.h"
#include "task/await.h"
#include "task/home.h"
#include "task/local.h"

struct pirn_promise {
    pirn_lock lock;
    PIRN_ATOMIC(bool) is_set; /* written under the lock */
    PIRN_ATOMIC(uint32_t) refs;
    uint32_t value_size;      /* constant */
    pirn_waitlist waiters;    /* lock */
    struct pirn__home *home;  /* constant; or NULL */
    pirn_discard_fn *discard; /* constant; or NULL */
    void *discard_arg;        /* constant */
    char value[];             /* constant once is_set */
};

int pirn_promise_new(const pirn_channel_options *options, pirn_promise **out)
{
    struct pirn__home *home = pirn__local_home();
    pirn_promise *promise;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    if (!pirn__message_size_is_good(options))
        return -EINVAL;
    promise =
        pirn__home_take_object(home, sizeof *promise + options->message_size);
    if (promise == NULL)
        return -ENOMEM;
    *promise = (pirn_promise){
        .value_size = (uint32_t)options->message_size,
        .home = home,
        .discard = options->discard,
        .discard_arg = options->discard_arg,
    };
    pirn__lock_init(&promise->lock);
    pirn__init(&promise->is_set, false);
    pirn__init(&promise->refs, 1);
    pirn__waitlist_init(&promise->waiters);
    *out = promise;
    return 0;
}

pirn_promise *pirn_promise_ref(pirn_promise *promise)
{
    /* relaxed: the caller has a reference already. */
    (void)pirn__add(&promise->refs, 1, relaxed);
    return promise;
}

bool pirn_promise_is_set(const pirn_promise *promise)
{
    /* acquire [promise.is_set]: who sees it reads the value. */
    return pirn__load(&promise->is_set, acquire);
}

void pirn_promise_unref(pirn_promise *promise)
{
    if (promise == NULL)
        return;
    /* acq_rel [promise.refs]: release [promise.refs] ends our use; acquire
     * [promise.refs] is the half of the one that frees. */
    if (pirn__sub(&promise->refs, 1, acq_rel) != 1)
        return;
    PIRN_REQUIRE(pirn__waitlist_empty(&promise->waiters),
                 "a promise is not given up while a get waits on it");
    if (pirn_promise_is_set(promise))
        pirn__message_discard(promise->discard, promise->discard_arg,
                              promise->value);
    pirn__home_give_object(promise->home, promise,
                           sizeof *promise + promise->value_size);
}

int pirn_promise_set(pirn_promise *promise, const void *value)
{
    pirn__lock(&promise->lock);
    if (pirn_promise_is_set(promise)) {
        pirn__unlock(&promise->lock);
        return -EALREADY;
    }
    pirn__message_copy(promise->value, value, promise->value_size);
    /* release [promise.is_set]: publishes the value. */
    pirn__store(&promise->is_set, true, release);
    pirn__waitlist_end_all_and_unlock(&promise->waiters, &promise->lock,
                                      PIRN__WAIT_GRANTED);
    return 0;
}

int pirn_promise_try_get(const pirn_promise *promise, void *value)
{
    if (!pirn_promise_is_set(promise))
        return -EAGAIN;
    pirn__message_copy(value, promise->value, promise->value_size);
    return 0;
}

/* The operation. */

static pirn_promise_get_op *get_op_of(pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_promise_get_op, future);
}

static bool get_may_end_locked(pirn_waiter *waiter)
{
    return pirn_promise_is_set(
        PIRN_CONTAINER_OF(waiter, pirn_promise_get_op, waiter_)->promise_);
}

static enum pirn_poll get_op_poll(pirn_future *self, pirn_cx *cx)
{
    static const struct pirn__wait_rules rules = {get_may_end_locked};
    pirn_promise_get_op *op = get_op_of(self);
    pirn_promise *promise = op->promise_;

    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    if (pirn__wait_poll(&op->waiter_, cx, &promise->waiters, &promise->lock,
                        &rules) == PIRN_PENDING)
        return PIRN_PENDING;
    pirn__message_copy(op->value_, promise->value, promise->value_size);
    return PIRN_READY;
}

static void get_op_drop(pirn_future *self)
{
    pirn_promise_get_op *op = get_op_of(self);

    pirn__wait_drop(&op->waiter_, &op->promise_->lock);
}

static void get_op_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "the value of a promise");
}

void pirn_promise_get_init(pirn_promise_get_op *op, pirn_promise *promise,
                           void *value)
{
    static const pirn_future_ops ops = {
        .poll = get_op_poll,
        .drop = get_op_drop,
        .describe = get_op_describe,
    };

    op->future.ops = &ops;
    pirn__wait_init(&op->waiter_);
    op->promise_ = promise;
    op->value_ = value;
}

int pirn_promise_get(pirn_promise *promise, void *value, pirn_deadline deadline)
{
    int rc = pirn__fast_path(pirn__local());
    pirn_promise_get_op op;

    if (rc < 0)
        return rc;
    if (rc == 0 && pirn_promise_try_get(promise, value) == 0)
        return 0;
    pirn_promise_get_init(&op, promise, value);
    return pirn__await(&op.future, deadline);
}
