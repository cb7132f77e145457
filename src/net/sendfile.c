/* SPDX-License-Identifier: MIT */
/* src/net/sendfile.c - a file to a connection without a copy in between.
 *
 * sendfile(2) reads the disk, which blocks whatever the socket's mode is, so it
 * is called on the blocking pool, piece by piece, and only once the socket has
 * room.  Between two pieces the caller can be cancelled.
 */
#include <pirn/blocking.h>

#include <errno.h>

#include "net/tcp.h"
#include "sys/sys.h"
#include "task/await.h"

static const size_t piece_size = 1024 * 1024;

/* One piece: until it is done, the socket is full, or something fails. */
struct piece {
    pirn_tcp *conn;
    int file_fd;
    int64_t *offset;
    size_t left;
};

static ssize_t call_sendfile(int fd, void *arg)
{
    struct piece *piece = arg;
    off_t offset = (off_t)*piece->offset;
    ssize_t n = pirn__sys->sendfile(fd, piece->file_fd, &offset, piece->left);

    if (n > 0) {
        *piece->offset += n;
        piece->left -= (size_t)n;
    }
    return n;
}

/* On a thread of the pool.  Ends: each round sends something. */
static int send_piece(void *arg)
{
    struct piece *piece = arg;
    const struct pirn__io_call call = {call_sendfile, piece, 0};
    ssize_t n = 1;

    while (piece->left > 0 && n > 0)
        n = pirn__io_call(&piece->conn->io, PIRN_WRITABLE, &call);
    if (piece->left == 0 || n == -EAGAIN)
        return 0;
    return n == 0 ? PIRN_EEOF : (int)n;
}

/* Waiting for room. */

struct room_op {
    pirn_future future;
    pirn_io_waiter waiter;
    int rc;
};

static enum pirn_poll room_poll(pirn_future *self, pirn_cx *cx)
{
    struct room_op *op = PIRN_CONTAINER_OF(self, struct room_op, future);

    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    if (pirn__waiter_poll_ready(&op->waiter, cx, &op->rc) == PIRN_PENDING)
        return PIRN_PENDING;
    pirn__waiter_leave(&op->waiter);
    return PIRN_READY;
}

static void room_drop(pirn_future *self)
{
    struct room_op *op = PIRN_CONTAINER_OF(self, struct room_op, future);

    pirn__waiter_leave(&op->waiter);
}

static void room_describe(const pirn_future *self, pirn_text *out)
{
    const struct room_op *op = PIRN_CONTAINER_OF(self, struct room_op, future);

    pirn__io_describe(op->waiter.io_, "sendfile", out);
}

static const pirn_future_ops room_ops = {
    .poll = room_poll,
    .drop = room_drop,
    .describe = room_describe,
};

static int wait_for_room(pirn_tcp *conn, pirn_deadline deadline)
{
    struct room_op op = {.future = {&room_ops}};
    int rc;

    pirn__waiter_init(&op.waiter, &conn->io, PIRN_WRITABLE);
    rc = pirn__await(&op.future, deadline);
    return rc < 0 ? rc : op.rc;
}

int pirn_tcp_sendfile(pirn_tcp *conn, int file_fd, int64_t *offset,
                      size_t count, pirn_deadline deadline)
{
    if (conn == NULL || offset == NULL || *offset < 0)
        return -EINVAL;
    /* Ends: each round sends something or waits for room. */
    while (count > 0) {
        size_t size = count < piece_size ? count : piece_size;
        struct piece piece = {conn, file_fd, offset, size};
        int rc = wait_for_room(conn, deadline);

        if (rc == 0)
            rc = pirn_blocking_run(send_piece, &piece);
        count -= size - piece.left;
        if (rc < 0)
            return rc;
    }
    return 0;
}
