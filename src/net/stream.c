/* SPDX-License-Identifier: MIT */
/* src/net/stream.c - the bytes of a connection: read and write in all forms.
 *
 * One request and its answer cost one read and one write: a short read says
 * that the next one would block, so that it goes straight to waiting; see
 * pirn__readiness_trusts_short().
 */
#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

#include "base/checked.h"
#include "net/tcp.h"
#include "reactor/transfer.h"
#include "sys/sys.h"
#include "task/await.h"
#include "task/local.h"

enum { VECTOR_LIMIT = 1024 };

/* System calls. */

static ssize_t call_recv(int fd, void *arg)
{
    const struct pirn__span *span = arg;

    return pirn__sys->recv(fd, span->buf, span->len);
}

static ssize_t call_send(int fd, void *arg)
{
    const struct pirn__span *span = arg;

    return pirn__sys->send(fd, span->buf, span->len);
}

static ssize_t call_send_more(int fd, void *arg)
{
    const struct pirn__span *span = arg;

    return pirn__sys->send_more(fd, span->buf, span->len);
}

struct vector {
    const struct iovec *vec;
    int count;
};

static ssize_t call_readv(int fd, void *arg)
{
    const struct vector *vector = arg;

    return pirn__sys->readv(fd, vector->vec, vector->count);
}

static ssize_t call_sendv(int fd, void *arg)
{
    const struct vector *vector = arg;

    return pirn__sys->sendv(fd, vector->vec, vector->count);
}

/* The operation. */

static bool is_reading(const pirn_tcp_op *op)
{
    return op->waiter_.direction_ == PIRN_READABLE;
}

/* What is left, as a call; `span` must outlive it. */
static struct pirn__io_call rest_of(const pirn_tcp_op *op,
                                    struct pirn__span *span)
{
    *span = (struct pirn__span){op->buf_ + op->done_, op->len_ - op->done_};
    return (struct pirn__io_call){is_reading(op) ? call_recv : call_send, span,
                                  span->len};
}

/* Count a transfer in; true if it was the last. */
static bool advance(pirn_tcp_op *op, ssize_t n)
{
    if (n < 0) {
        op->n = n;
        return true;
    }
    op->done_ += (size_t)n;
    op->n = (ssize_t)op->done_;
    if (!op->exact_ || op->done_ == op->len_)
        return true;
    if (n == 0)
        op->n = PIRN_EEOF;
    return n == 0;
}

static enum pirn_poll tcp_op_end(pirn_tcp_op *op)
{
    pirn__waiter_leave(&op->waiter_);
    return PIRN_READY;
}

/* The poll of one that has nothing to do. */
PIRN__COLD static enum pirn_poll tcp_op_poll_nothing(pirn_tcp_op *op)
{
    if (op->n < 0) /* said by init */
        return PIRN_READY;
    if (pirn__gate_is_sealed(&op->waiter_.io_->gate))
        op->n = PIRN_ECLOSED;
    return tcp_op_end(op);
}

/* Go on with an exact transfer of which only a part could be done. */
PIRN__COLD static enum pirn_poll tcp_op_poll_rest(pirn_tcp_op *op, pirn_cx *cx)
{
    struct pirn__span span;
    ssize_t n;

    /* Ends: each round transfers something, and the budget is finite. */
    do {
        struct pirn__io_call call = rest_of(op, &span);

        if (!pirn__coop_spend(cx))
            return PIRN_PENDING;
        if (pirn__waiter_poll_call(&op->waiter_, cx, &call, &n) == PIRN_PENDING)
            return PIRN_PENDING;
    } while (!advance(op, n));
    return tcp_op_end(op);
}

static enum pirn_poll tcp_op_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_tcp_op *op = PIRN_CONTAINER_OF(self, pirn_tcp_op, future);
    struct pirn__span span;
    struct pirn__io_call call;
    ssize_t n;

    if (op->n < 0 || op->len_ == 0)
        return tcp_op_poll_nothing(op);
    if (!pirn__coop_spend(cx))
        return PIRN_PENDING;
    call = rest_of(op, &span);
    if (pirn__waiter_poll_call_here(&op->waiter_, cx, &call, &n) ==
        PIRN_PENDING)
        return PIRN_PENDING;
    return advance(op, n) ? tcp_op_end(op) : tcp_op_poll_rest(op, cx);
}

static void tcp_op_drop(pirn_future *self)
{
    pirn_tcp_op *op = PIRN_CONTAINER_OF(self, pirn_tcp_op, future);

    pirn__waiter_leave(&op->waiter_);
}

static void tcp_op_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_tcp_op *op = PIRN_CONTAINER_OF(self, pirn_tcp_op, future);

    if (op->waiter_.io_ != NULL)
        pirn__io_describe(op->waiter_.io_, is_reading(op) ? "read" : "write",
                          out);
}

static int tcp_op_outcome(const pirn_future *self)
{
    const pirn_tcp_op *op = PIRN_CONTAINER_OF(self, pirn_tcp_op, future);

    return op->n > INT_MAX ? INT_MAX : (int)op->n;
}

static const pirn_future_ops tcp_op_ops = {
    .poll = tcp_op_poll,
    .drop = tcp_op_drop,
    .describe = tcp_op_describe,
    .outcome = tcp_op_outcome,
};

static void op_init(pirn_tcp_op *op, pirn_tcp *conn,
                    enum pirn_interest direction, struct pirn__span span)
{
    bool good = conn != NULL && pirn__span_is_good(span);

    op->future.ops = &tcp_op_ops;
    op->buf_ = span.buf;
    op->len_ = span.len;
    op->done_ = 0;
    op->exact_ = false;
    op->n = good ? 0 : -EINVAL;
    pirn__waiter_init(&op->waiter_, conn == NULL ? NULL : &conn->io, direction);
}

void pirn_tcp_read_init(pirn_tcp_op *op, pirn_tcp *conn, void *buf, size_t len)
{
    op_init(op, conn, PIRN_READABLE, pirn__span_of(buf, len));
}

void pirn_tcp_read_exact_init(pirn_tcp_op *op, pirn_tcp *conn, void *buf,
                              size_t len)
{
    op_init(op, conn, PIRN_READABLE, pirn__span_of(buf, len));
    op->exact_ = true;
}

void pirn_tcp_write_init(pirn_tcp_op *op, pirn_tcp *conn, const void *buf,
                         size_t len)
{
    op_init(op, conn, PIRN_WRITABLE, pirn__span_of(buf, len));
}

void pirn_tcp_write_all_init(pirn_tcp_op *op, pirn_tcp *conn, const void *buf,
                             size_t len)
{
    op_init(op, conn, PIRN_WRITABLE, pirn__span_of(buf, len));
    op->exact_ = true;
}

/* Straight-line calls. */

static struct pirn__io *io_of(pirn_tcp *conn)
{
    return conn == NULL ? NULL : &conn->io;
}

ssize_t pirn_tcp_read(pirn_tcp *conn, void *buf, size_t len,
                      pirn_deadline deadline)
{
    return pirn__transfer_span(io_of(conn), PIRN_READABLE, call_recv,
                               pirn__span_of(buf, len), deadline);
}

ssize_t pirn_tcp_write(pirn_tcp *conn, const void *buf, size_t len,
                       pirn_deadline deadline)
{
    return pirn__transfer_span(io_of(conn), PIRN_WRITABLE, call_send,
                               pirn__span_of(buf, len), deadline);
}

ssize_t pirn_tcp_write_more(pirn_tcp *conn, const void *buf, size_t len,
                            pirn_deadline deadline)
{
    return pirn__transfer_span(io_of(conn), PIRN_WRITABLE, call_send_more,
                               pirn__span_of(buf, len), deadline);
}

/* The bytes of a vector; SIZE_MAX if they cannot be counted, which the kernel
 * refuses. */
static size_t vector_size(const struct iovec *vec, int count)
{
    size_t size = 0;

    for (int i = 0; i < count; i++) {
        if (!pirn__checked_add(size, vec[i].iov_len, &size))
            return SIZE_MAX;
    }
    return size;
}

static ssize_t run_vector(pirn_tcp *conn, struct vector vector,
                          enum pirn_interest direction, pirn_deadline deadline)
{
    struct pirn__io_call call = {
        .fn = direction == PIRN_READABLE ? call_readv : call_sendv,
        .arg = &vector,
    };

    if (conn == NULL || vector.vec == NULL || vector.count < 0 ||
        vector.count > VECTOR_LIMIT)
        return -EINVAL;
    call.wanted = vector_size(vector.vec, vector.count);
    if (call.wanted > SSIZE_MAX)
        return -EINVAL;
    if (call.wanted == 0)
        return pirn__transfer_nothing(&conn->io);
    return pirn__transfer_run(&conn->io, direction, &call, deadline);
}

ssize_t pirn_tcp_readv(pirn_tcp *conn, const struct iovec *vec, int count,
                       pirn_deadline deadline)
{
    return run_vector(conn, (struct vector){vec, count}, PIRN_READABLE,
                      deadline);
}

ssize_t pirn_tcp_writev(pirn_tcp *conn, const struct iovec *vec, int count,
                        pirn_deadline deadline)
{
    return run_vector(conn, (struct vector){vec, count}, PIRN_WRITABLE,
                      deadline);
}

ssize_t pirn_tcp_read_buf(pirn_tcp *conn, pirn_buf *buf, pirn_deadline deadline)
{
    size_t len;
    ssize_t n;

    if (conn == NULL || buf == NULL)
        return -EINVAL;
    len = pirn_buf_len(buf);
    if (len == pirn_buf_size(buf))
        return -ENOBUFS;
    n = pirn_tcp_read(conn, pirn_buf_data(buf) + len, pirn_buf_size(buf) - len,
                      deadline);
    if (n > 0)
        pirn_buf_set_len(buf, len + (size_t)n);
    return n;
}

/* Wait for an exact transfer whose first `done` bytes are done.  Apart, so that
 * the usual case does not pay for it. */
__attribute__((noinline)) static int await_rest(pirn_tcp_op *op, size_t done,
                                                pirn_deadline deadline)
{
    int rc;

    op->done_ = done;
    rc = pirn__await(&op->future, deadline);
    if (rc < 0)
        return rc;
    return op->n < 0 ? (int)op->n : 0;
}

int pirn_tcp_read_exact(pirn_tcp *conn, void *buf, size_t len,
                        pirn_deadline deadline)
{
    struct pirn__span span = pirn__span_of(buf, len);
    const struct pirn__io_call call = {call_recv, &span, len};
    pirn_tcp_op op;
    ssize_t n;

    if (conn == NULL || !pirn__span_is_good(span))
        return -EINVAL;
    if (len == 0)
        return pirn__transfer_nothing(&conn->io);
    n = pirn__transfer_try(&conn->io, PIRN_READABLE, &call);
    if (n == (ssize_t)len)
        return 0;
    if (n == 0)
        return PIRN_EEOF;
    if (n < 0 && n != -EAGAIN)
        return (int)n;
    pirn_tcp_read_exact_init(&op, conn, buf, len);
    return await_rest(&op, n < 0 ? 0 : (size_t)n, deadline);
}

int pirn_tcp_write_all(pirn_tcp *conn, const void *buf, size_t len,
                       pirn_deadline deadline)
{
    struct pirn__span span = pirn__span_of(buf, len);
    const struct pirn__io_call call = {call_send, &span, len};
    pirn_tcp_op op;
    ssize_t n;

    if (conn == NULL || !pirn__span_is_good(span))
        return -EINVAL;
    if (len == 0)
        return pirn__transfer_nothing(&conn->io);
    n = pirn__transfer_try_here(pirn__local(), &conn->io, PIRN_WRITABLE,
                                &call);
    if (n == (ssize_t)len)
        return 0;
    if (n < 0 && n != -EAGAIN)
        return (int)n;
    pirn_tcp_write_all_init(&op, conn, buf, len);
    return await_rest(&op, n < 0 ? 0 : (size_t)n, deadline);
}
