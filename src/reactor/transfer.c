/* SPDX-License-Identifier: MIT */
/* src/reactor/transfer.c - see transfer.h.
 *
 * A busy connection goes the short way: one coop unit, one look at the
 * readiness, one system call, no future.
 */
#include "reactor/transfer.h"

#include <errno.h>

#include "task/await.h"
#include "task/local.h"

struct transfer {
    pirn_future future;
    pirn_io_waiter waiter;
    const struct pirn__io_call *call;
    ssize_t n;
};

static enum pirn_poll transfer_poll(pirn_future *self, pirn_cx *cx)
{
    struct transfer *op = PIRN_CONTAINER_OF(self, struct transfer, future);
    pirn_io_waiter *waiter = &op->waiter;
    uint64_t seen = pirn__readiness_get(&waiter->io_->readiness);

    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    op->n = -EAGAIN;
    if (pirn__waiter_may_try(waiter, seen))
        op->n = pirn__io_call_after(waiter->io_, waiter->direction_, op->call,
                                    seen);
    if (op->n == -EAGAIN &&
        pirn__waiter_wait(waiter, cx, op->call, &op->n) == PIRN_PENDING)
        return PIRN_PENDING;
    pirn__waiter_leave(waiter);
    return PIRN_READY;
}

static void transfer_drop(pirn_future *self)
{
    struct transfer *op = PIRN_CONTAINER_OF(self, struct transfer, future);

    pirn__waiter_leave(&op->waiter);
}

static void transfer_describe(const pirn_future *self, pirn_text *out)
{
    const struct transfer *op =
        PIRN_CONTAINER_OF(self, struct transfer, future);
    bool reads = op->waiter.direction_ == PIRN_READABLE;

    pirn__io_describe(op->waiter.io_, reads ? "read" : "write", out);
}

static const pirn_future_ops transfer_ops = {
    .poll = transfer_poll,
    .drop = transfer_drop,
    .describe = transfer_describe,
};

ssize_t pirn__transfer_try(struct pirn__io *io, enum pirn_interest direction,
                           const struct pirn__io_call *call)
{
    return pirn__transfer_try_here(pirn__local(), io, direction, call);
}

ssize_t pirn__transfer_wait(struct pirn__local *local, struct pirn__io *io,
                            enum pirn_interest direction,
                            const struct pirn__io_call *call,
                            pirn_deadline deadline)
{
    struct transfer op;
    int rc;

    op.future.ops = &transfer_ops;
    op.call = call;
    pirn__waiter_init(&op.waiter, io, direction);
    rc = pirn__await_here(local, &op.future, deadline);
    return rc < 0 ? rc : op.n;
}

int pirn__transfer_nothing(struct pirn__io *io)
{
    int rc = pirn__fast_path(pirn__local());

    if (rc < 0)
        return rc;
    return pirn__gate_is_sealed(&io->gate) ? PIRN_ECLOSED : 0;
}
