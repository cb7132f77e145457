/* SPDX-License-Identifier: MIT */
/* src/reactor/close.c - how a descriptor ends.
 *
 * Under the lock of the io, in this order: it stops being watched, the gate is
 * sealed, the lines are emptied.  Watching starts only under the same lock and
 * only before the seal, so it does not come back.  EPOLL_CTL_DEL is always made,
 * and always before close(2): a copy of the descriptor in another process would
 * keep the registration alive, and nobody could end its events any more.
 *
 * Then the descriptor is closed by whoever finds the sealed gate empty, and the
 * closers, who waited for that, are woken.
 */
#include <errno.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "reactor/hold.h"
#include "reactor/io.h"
#include "sys/sys.h"
#include "task/await.h"
#include "task/waker.h"

void pirn__io_close_fd(int fd)
{
    pirn__sys->close(fd);
    pirn__hold_end_all();
}

/* Everything but the descriptor itself. */
static void set_gone(struct pirn__io *io)
{
    pirn_link closers;

    pirn__list_init(&closers);
    pirn__lock(&io->lock);
    io->gone = true;
    pirn__list_splice_tail(&closers, &io->closers);
    pirn__unlock(&io->lock);
    /* From here the owner may be on its way to give the memory up; the closers
     * in the list hold references until they have been woken. */
    if (!pirn__list_empty(&closers))
        pirn__io_wake_list(io, &closers, PIRN__WAITER_OUT);
}

void pirn__io_finish(struct pirn__io *io)
{
    /* Ours: what is woken below may give up the caller's. */
    pirn__io_keep(io);
    pirn__sys->close(io->fd);
    set_gone(io);
    pirn__hold_end_all();
    pirn__io_drop(io);
}

static void tell_sealed(struct pirn__io *io, pirn_link *waiters)
{
    pirn__io_wake_list(io, waiters, PIRN__WAITER_OUT);
    if (io->ops->sealed != NULL)
        io->ops->sealed(io);
}

bool pirn__io_seal(struct pirn__io *io)
{
    enum pirn__gate_seal seal = PIRN__GATE_WAS_SEALED;
    pirn_waker fronts[2];
    pirn_link waiters;
    int count = 0;

    pirn__list_init(&waiters);
    pirn__lock(&io->lock);
    if (!pirn__gate_is_sealed(&io->gate)) {
        pirn__io_unbind_locked(io);
        seal = pirn__gate_seal(&io->gate);
        pirn__io_empty_locked(io, &waiters);
        count = pirn__io_tell_fronts_locked(io, PIRN__FRONT_CALLED, fronts);
    }
    pirn__unlock(&io->lock);
    if (seal == PIRN__GATE_WAS_SEALED)
        return false;
    while (count > 0)
        pirn_waker_wake(fronts[--count]);
    tell_sealed(io, &waiters);
    if (seal == PIRN__GATE_EMPTY)
        pirn__io_finish(io);
    return true;
}

static bool is_gone(struct pirn__io *io)
{
    bool gone;

    pirn__lock(&io->lock);
    gone = io->gone;
    pirn__unlock(&io->lock);
    return gone;
}

/* The operation. */

/* Stand among the closers unless it is *gone.  False, once at most: a clone of
 * the waker is wanted as a spare. */
static bool wait_or_see(struct pirn__io *io, pirn_io_waiter *waiter,
                        const pirn_cx *cx, pirn_waker *spare, bool *gone)
{
    bool placed;

    pirn__lock(&io->lock);
    *gone = io->gone;
    placed = *gone || pirn__waker_place(&waiter->waker_, cx, spare);
    if (placed && !*gone) {
        if (pirn__waiter_state(waiter) == PIRN__WAITER_OUT)
            pirn__list_push_tail(&io->closers, &waiter->link_);
        pirn__waiter_set_state(waiter, PIRN__WAITER_QUEUED);
    }
    pirn__unlock(&io->lock);
    return placed;
}

static enum pirn_poll close_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_close_op *op = PIRN_CONTAINER_OF(self, pirn_close_op, future);
    pirn_io_waiter *waiter = &op->waiter_;
    struct pirn__io *io = waiter->io_;
    pirn_waker spare = {0};
    bool gone;

    if (io == NULL)
        return PIRN_READY;
    while (!wait_or_see(io, waiter, cx, &spare, &gone))
        spare = pirn_waker_clone(cx->waker);
    pirn_waker_drop(spare);
    if (!gone)
        return PIRN_PENDING;
    pirn_future_drop(self);
    return PIRN_READY;
}

static void close_drop(pirn_future *self)
{
    pirn_close_op *op = PIRN_CONTAINER_OF(self, pirn_close_op, future);
    pirn_io_waiter *waiter = &op->waiter_;
    struct pirn__io *io = waiter->io_;
    pirn_waker own;

    if (io == NULL)
        return;
    pirn__lock(&io->lock);
    if (pirn__waiter_state(waiter) == PIRN__WAITER_QUEUED)
        pirn__list_remove(&waiter->link_);
    pirn__waiter_set_state(waiter, PIRN__WAITER_OUT);
    own = pirn_waker_take(&waiter->waker_);
    pirn__unlock(&io->lock);
    waiter->io_ = NULL;
    pirn_waker_drop(own);
    pirn__io_drop(io);
}

static void close_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_close_op *op = PIRN_CONTAINER_OF(self, pirn_close_op, future);

    if (op->waiter_.io_ != NULL)
        pirn__io_describe(op->waiter_.io_, "close", out);
}

static const pirn_future_ops close_ops = {
    .poll = close_poll,
    .drop = close_drop,
    .describe = close_describe,
};

/* Wait for `io`, of which it holds a reference, to be gone. */
static void prepare_wait(pirn_close_op *op, struct pirn__io *io)
{
    op->future.ops = &close_ops;
    pirn__waiter_init(&op->waiter_, io, PIRN_READABLE);
    if (io != NULL)
        pirn__io_keep(io);
}

static void require_open(bool sealed_by_us)
{
    PIRN_REQUIRE(sealed_by_us, "a descriptor is closed only once");
}

void pirn__io_close_init(pirn_close_op *op, struct pirn__io *io)
{
    prepare_wait(op, io);
    if (io == NULL)
        return;
    require_open(pirn__io_seal(io));
    pirn__io_unref(io);
}

static void wait_until_gone(struct pirn__io *io)
{
    pirn_close_op op;
    int rc;

    pirn_fiber_shield_begin();
    /* Ends: whoever is inside makes one call that does not block. */
    do {
        prepare_wait(&op, io);
        rc = pirn__await(&op.future, PIRN_NEVER);
    } while (rc == -ECANCELED);
    pirn_fiber_shield_end();
}

void pirn__io_close(struct pirn__io *io)
{
    require_open(pirn__io_seal(io));
    if (!is_gone(io) && pirn__may_suspend() == 0)
        wait_until_gone(io);
    pirn__io_unref(io);
}

void pirn__io_abandon(struct pirn__io *io)
{
    (void)pirn__io_seal(io);
    pirn__io_unref(io);
}

int pirn__io_release(struct pirn__io *io)
{
    enum pirn__gate_seal seal;
    pirn_waker fronts[2];
    pirn_link waiters;
    int count = 0;
    int fd = io->fd;

    pirn__list_init(&waiters);
    pirn__lock(&io->lock);
    seal = pirn__gate_try_seal(&io->gate);
    if (seal == PIRN__GATE_EMPTY) {
        pirn__io_unbind_locked(io);
        pirn__io_empty_locked(io, &waiters);
        count = pirn__io_tell_fronts_locked(io, PIRN__FRONT_CALLED, fronts);
    }
    pirn__unlock(&io->lock);
    if (seal == PIRN__GATE_WAS_SEALED)
        return PIRN_ECLOSED;
    if (seal == PIRN__GATE_BUSY)
        return -EBUSY;
    while (count > 0)
        pirn_waker_wake(fronts[--count]);
    tell_sealed(io, &waiters);
    set_gone(io);
    if (io->was_blocking)
        (void)pirn__sys->set_nonblock(fd, false);
    pirn__io_unref(io);
    return fd;
}
