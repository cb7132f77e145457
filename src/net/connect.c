/* SPDX-License-Identifier: MIT */
/* src/net/connect.c - making connections.
 *
 *     START --connect(2) goes on--> CONNECTING --writable--> DONE
 *       '------at once, or failed--------------------------^
 *
 * While CONNECTING the op owns the connection, which nobody else knows yet.
 */
#include <errno.h>
#include <netinet/in.h>

#include "net/addr.h"
#include "net/tcp.h"
#include "sys/sys.h"
#include "task/await.h"

enum { CONNECT_START, CONNECT_CONNECTING, CONNECT_DONE };

static int bind_local(int fd, const pirn_addr *local)
{
    union pirn__sockaddr name;
    unsigned len = pirn__addr_to_sockaddr(local, &name);

    /* Zero is no address and no wish. */
    return len == 0 ? 0 : pirn__sys->bind(fd, &name.any, len);
}

/* The result of connect(2) on a new socket, and the socket. */
static int begin_on_socket(pirn_connect_op *op, int *fd_out)
{
    union pirn__sockaddr name;
    unsigned len = pirn__addr_to_sockaddr(&op->address_, &name);
    int fd = len == 0 ? -EINVAL : pirn__sys->socket(op->address_.family_);
    int rc;

    if (fd < 0)
        return fd;
    rc = bind_local(fd, &op->local_);
    if (rc >= 0)
        rc = pirn__sys->connect(fd, &name.any, len);
    if (rc < 0 && rc != -EINPROGRESS) {
        pirn__io_close_fd(fd);
        return rc;
    }
    *fd_out = fd;
    return rc;
}

/* 0: connected.  -EINPROGRESS: conn waits.  Another code: failed. */
static int begin(pirn_connect_op *op)
{
    unsigned ready = 0;
    int fd = -1;
    int rc = begin_on_socket(op, &fd);
    int made;

    if (fd < 0)
        return rc;
    /* A client writes first as a rule; nothing can have come to be read. */
    if (rc == 0)
        ready = PIRN__READY_WRITE;
    made = pirn__tcp_new(fd, ready, &op->conn);
    if (made < 0) {
        pirn__io_close_fd(fd);
        return made;
    }
    pirn__waiter_init(&op->waiter_, &op->conn->io, PIRN_WRITABLE);
    return rc;
}

/* Writable may also mean that it failed, or nothing at all: a socket that is
 * neither broken nor connected is waited for further. */
static ssize_t call_check(int fd, void *arg)
{
    int error = 0;
    unsigned len = sizeof error;
    pirn_addr peer;
    int rc = pirn__sys->getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);

    (void)arg;
    if (rc < 0)
        return rc;
    if (error != 0)
        return -error;
    rc = pirn__addr_peer(fd, &peer);
    return rc == -ENOTCONN ? -EAGAIN : rc;
}

static void give_up(pirn_connect_op *op)
{
    if (op->conn != NULL)
        pirn__io_abandon(&op->conn->io);
    op->conn = NULL;
}

static enum pirn_poll end(pirn_connect_op *op, int rc)
{
    op->state_ = CONNECT_DONE;
    op->rc = rc;
    if (rc < 0)
        give_up(op);
    return PIRN_READY;
}

static enum pirn_poll connect_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_connect_op *op = PIRN_CONTAINER_OF(self, pirn_connect_op, future);
    const struct pirn__io_call call = {.fn = call_check};
    ssize_t n;
    int rc;

    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    if (op->state_ == CONNECT_START) {
        rc = begin(op);
        if (rc != -EINPROGRESS)
            return end(op, rc);
        op->state_ = CONNECT_CONNECTING;
    }
    if (pirn__waiter_poll_call(&op->waiter_, cx, &call, &n) == PIRN_PENDING)
        return PIRN_PENDING;
    pirn__waiter_leave(&op->waiter_);
    return end(op, (int)n);
}

static void connect_drop(pirn_future *self)
{
    pirn_connect_op *op = PIRN_CONTAINER_OF(self, pirn_connect_op, future);

    if (op->conn != NULL)
        pirn__waiter_leave(&op->waiter_);
    give_up(op);
}

static void connect_discard(pirn_future *self)
{
    give_up(PIRN_CONTAINER_OF(self, pirn_connect_op, future));
}

static void connect_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_connect_op *op =
        PIRN_CONTAINER_OF(self, pirn_connect_op, future);

    pirn_text_append(out, "connect tcp ");
    pirn__addr_describe(&op->address_, out);
}

static int connect_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_connect_op, future)->rc;
}

static const pirn_future_ops connect_ops = {
    .poll = connect_poll,
    .drop = connect_drop,
    .discard = connect_discard,
    .describe = connect_describe,
    .outcome = connect_outcome,
};

void pirn_connect_init(pirn_connect_op *op, const pirn_addr *address,
                       const pirn_connect_options *options)
{
    *op = (pirn_connect_op){.future = {&connect_ops}};
    if (address != NULL)
        op->address_ = *address;
    if (options != NULL && options->local != NULL)
        op->local_ = *options->local;
}

int pirn_tcp_connect(const char *address, const pirn_connect_options *options,
                     pirn_deadline deadline, pirn_tcp **out)
{
    pirn_connect_op op;
    pirn_addr parsed;
    int rc;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    rc = pirn_addr_parse(address, &parsed);
    if (rc < 0)
        return rc;
    pirn_connect_init(&op, &parsed, options);
    rc = pirn__await(&op.future, deadline);
    if (rc < 0)
        return rc;
    *out = op.conn;
    return op.rc;
}
