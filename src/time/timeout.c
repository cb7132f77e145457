/* SPDX-License-Identifier: MIT */
/* src/time/timeout.c - a deadline around another future. */
#include <pirn/time.h>

#include <errno.h>

#include "task/home.h"
#include "task/local.h"
#include "time/timers.h"

static enum pirn_poll timeout_end(pirn_timeout_op *op, int rc)
{
    pirn__timer_drop(&op->timer_);
    if (rc < 0)
        pirn_future_drop(op->inner_);
    op->rc = rc;
    return PIRN_READY;
}

static bool has_passed(const pirn_timeout_op *op)
{
    return pirn_deadline_expired((pirn_deadline){op->timer_.when_ns_});
}

/* The inner future has to wait: see to the clock.  No coop unit is spent, so
 * that a task without budget still meets its deadline. */
static enum pirn_poll wait_for_clock(pirn_timeout_op *op, pirn_cx *cx)
{
    struct pirn__home *home = pirn__cx_home(cx);
    int rc;

    if (op->timer_.when_ns_ == UINT64_MAX)
        return PIRN_PENDING;
    if (home == NULL)
        return timeout_end(op, has_passed(op) ? -ETIMEDOUT : PIRN_ENORUNTIME);
    rc = pirn__timer_start(&op->timer_, pirn__cx_timers(cx), cx);
    if (rc > 0)
        return timeout_end(op, -ETIMEDOUT);
    return rc < 0 ? timeout_end(op, rc) : PIRN_PENDING;
}

static enum pirn_poll timeout_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_timeout_op *op = PIRN_CONTAINER_OF(self, pirn_timeout_op, future);

    if (op->inner_->ops->poll(op->inner_, cx) == PIRN_READY)
        return timeout_end(op, 0);
    if (pirn__timer_state(&op->timer_) == PIRN__TIMER_FIRED)
        return timeout_end(op, -ETIMEDOUT);
    if (pirn__timer_state(&op->timer_) == PIRN__TIMER_DEAD)
        return timeout_end(op, PIRN_ESHUTDOWN);
    return wait_for_clock(op, cx);
}

static void timeout_drop(pirn_future *self)
{
    pirn_timeout_op *op = PIRN_CONTAINER_OF(self, pirn_timeout_op, future);

    pirn__timer_drop(&op->timer_);
    pirn_future_drop(op->inner_);
}

static void timeout_discard(pirn_future *self)
{
    pirn_timeout_op *op = PIRN_CONTAINER_OF(self, pirn_timeout_op, future);

    if (op->rc == 0)
        pirn_future_discard(op->inner_);
}

static void timeout_describe(const pirn_future *self, pirn_text *out)
{
    pirn_future_describe(
        PIRN_CONTAINER_OF(self, const pirn_timeout_op, future)->inner_, out);
    pirn_text_append(out, " until a deadline");
}

static int timeout_outcome(const pirn_future *self)
{
    const pirn_timeout_op *op =
        PIRN_CONTAINER_OF(self, const pirn_timeout_op, future);

    return op->rc < 0 ? op->rc : pirn_future_outcome(op->inner_);
}

static const pirn_future_ops timeout_ops = {
    .poll = timeout_poll,
    .drop = timeout_drop,
    .discard = timeout_discard,
    .describe = timeout_describe,
    .outcome = timeout_outcome,
};

void pirn_timeout_init(pirn_timeout_op *op, pirn_future *inner,
                       pirn_deadline deadline)
{
    op->future.ops = &timeout_ops;
    op->inner_ = inner;
    op->rc = 0;
    pirn__timer_init(&op->timer_, deadline);
}
