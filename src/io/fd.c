/* SPDX-License-Identifier: MIT */
/* src/io/fd.c - foreign descriptors under the reactor. */
#include <pirn/io.h>

#include <errno.h>

#include "reactor/transfer.h"
#include "sys/sys.h"
#include "task/await.h"

struct pirn_fd {
    struct pirn__io io; /* first */
};

static void fd_name(struct pirn__io *io, pirn_text *out)
{
    pirn_text_append(out, "fd %d", io->fd);
}

static const struct pirn__io_ops fd_ops = {.name = fd_name};

static struct pirn__io *io_of(pirn_fd *file)
{
    return file == NULL ? NULL : &file->io;
}

/* Life. */

int pirn_fd_adopt(int fd, pirn_fd **out)
{
    struct pirn__io_kind kind = {.ops = &fd_ops};
    struct pirn__io *io;
    int rc;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    kind.kind = pirn__sys->fd_kind(fd);
    if (kind.kind < 0)
        return kind.kind;
    if (kind.kind == PIRN__FD_REGULAR)
        return -EPERM;
    rc = pirn__io_adopt(sizeof(pirn_fd), fd, kind, &io);
    if (rc == 0)
        *out = PIRN_CONTAINER_OF(io, pirn_fd, io);
    return rc;
}

int pirn_fd_release(pirn_fd *file)
{
    return file == NULL ? -EINVAL : pirn__io_release(&file->io);
}

pirn_fd *pirn_fd_ref(pirn_fd *file)
{
    if (file != NULL)
        pirn__io_ref(&file->io);
    return file;
}

void pirn_fd_unref(pirn_fd *file)
{
    if (file != NULL)
        pirn__io_unref(&file->io);
}

void pirn_fd_close(pirn_fd *file)
{
    if (file != NULL)
        pirn__io_close(&file->io);
}

void pirn_fd_close_init(pirn_close_op *op, pirn_fd *file)
{
    pirn__io_close_init(op, io_of(file));
}

int pirn_fd_get(const pirn_fd *file)
{
    return file == NULL ? -EINVAL : file->io.fd;
}

/* Readiness. */

static bool is_direction(unsigned direction)
{
    return direction == PIRN_READABLE || direction == PIRN_WRITABLE;
}

static enum pirn_poll ready_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_fd_ready_op *op = PIRN_CONTAINER_OF(self, pirn_fd_ready_op, future);
    struct pirn__io *io = op->waiter_.io_;
    uint64_t word;

    if (io == NULL) {
        op->rc = -EINVAL;
        return PIRN_READY;
    }
    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    /* What is assumed will do before a call that finds out by itself, but the
     * caller of this one asks for facts. */
    word = pirn__readiness_get(&io->readiness);
    if (pirn__readiness_is_assumed(word) &&
        pirn__readiness_has(word, op->waiter_.direction_))
        pirn__io_ask(io, op->waiter_.direction_);
    if (pirn__waiter_poll_ready(&op->waiter_, cx, &op->rc) == PIRN_PENDING)
        return PIRN_PENDING;
    pirn__waiter_leave(&op->waiter_);
    return PIRN_READY;
}

static void ready_drop(pirn_future *self)
{
    pirn_fd_ready_op *op = PIRN_CONTAINER_OF(self, pirn_fd_ready_op, future);

    pirn__waiter_leave(&op->waiter_);
}

static void ready_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_fd_ready_op *op =
        PIRN_CONTAINER_OF(self, pirn_fd_ready_op, future);
    bool reads = op->waiter_.direction_ == PIRN_READABLE;

    if (op->waiter_.io_ != NULL)
        pirn__io_describe(op->waiter_.io_, reads ? "readable" : "writable",
                          out);
}

static int ready_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_fd_ready_op, future)->rc;
}

static const pirn_future_ops ready_ops = {
    .poll = ready_poll,
    .drop = ready_drop,
    .describe = ready_describe,
    .outcome = ready_outcome,
};

void pirn_fd_ready_init(pirn_fd_ready_op *op, pirn_fd *file,
                        enum pirn_interest direction)
{
    bool good = file != NULL && is_direction(direction);

    op->future.ops = &ready_ops;
    op->rc = 0;
    pirn__waiter_init(&op->waiter_, good ? &file->io : NULL, direction);
}

int pirn_fd_ready(pirn_fd *file, enum pirn_interest direction,
                  pirn_deadline deadline)
{
    pirn_fd_ready_op op;
    int rc;

    if (file == NULL || !is_direction(direction))
        return -EINVAL;
    pirn_fd_ready_init(&op, file, direction);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

void pirn_fd_not_ready(pirn_fd *file, enum pirn_interest direction)
{
    /* The caller's EAGAIN may be older than the latest event, and nothing in it
     * says so.  The kernel knows. */
    if (file != NULL && is_direction(direction))
        pirn__io_ask(&file->io, direction);
}

/* Transfers. */

static ssize_t call_read(int fd, void *arg)
{
    const struct pirn__span *span = arg;

    return pirn__sys->read(fd, span->buf, span->len);
}

static ssize_t call_write(int fd, void *arg)
{
    const struct pirn__span *span = arg;

    return pirn__sys->write(fd, span->buf, span->len);
}

ssize_t pirn_fd_read(pirn_fd *file, void *buf, size_t len,
                     pirn_deadline deadline)
{
    return pirn__transfer_span(io_of(file), PIRN_READABLE, call_read,
                               pirn__span_of(buf, len), deadline);
}

ssize_t pirn_fd_write(pirn_fd *file, const void *buf, size_t len,
                      pirn_deadline deadline)
{
    return pirn__transfer_span(io_of(file), PIRN_WRITABLE, call_write,
                               pirn__span_of(buf, len), deadline);
}
