/* SPDX-License-Identifier: MIT */
/* src/net/tcp.c - connections: life, ends, options.  Their transfers are in
 * stream.c, how they come about in listener.c and connect.c.
 */
#include "net/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>

#include "net/addr.h"
#include "sys/sys.h"

/* What the kernel takes; see tcp(7). */
enum {
    KEEPALIVE_LIMIT_S = 32767,
    KEEPALIVE_LIMIT_COUNT = 127,
};

static void tcp_name(struct pirn__io *io, pirn_text *out)
{
    pirn_tcp *conn = PIRN_CONTAINER_OF(io, pirn_tcp, io);
    pirn_addr peer;

    pirn_text_append(out, "tcp ");
    if (pirn_tcp_peer(conn, &peer) == 0)
        pirn__addr_describe(&peer, out);
    else
        pirn_text_append(out, "fd %d", io->fd);
}

static const struct pirn__io_ops tcp_ops = {.name = tcp_name};

/* Life. */

int pirn__tcp_new(int fd, unsigned ready, pirn_tcp **out)
{
    const struct pirn__io_kind kind = {
        .kind = PIRN__FD_TCP,
        .ready = ready,
        .ops = &tcp_ops,
    };
    struct pirn__io *io = pirn__io_take(sizeof(pirn_tcp));

    *out = NULL;
    if (io == NULL)
        return -ENOMEM;
    pirn__io_open(io, fd, &kind);
    *out = PIRN_CONTAINER_OF(io, pirn_tcp, io);
    return 0;
}

/* 0 for a stream socket. */
static int check_socket(int fd)
{
    int type = 0;
    unsigned len = sizeof type;
    int rc = pirn__sys->getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);

    if (rc < 0)
        return rc;
    return type == SOCK_STREAM ? 0 : -EINVAL;
}

int pirn_tcp_adopt(int fd, pirn_tcp **out)
{
    struct pirn__io_kind kind = {.ops = &tcp_ops};
    struct pirn__io *io;
    int rc;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    rc = check_socket(fd);
    if (rc < 0)
        return rc;
    kind.kind = pirn__sys->fd_kind(fd);
    rc = pirn__io_adopt(sizeof(pirn_tcp), fd, kind, &io);
    if (rc == 0)
        *out = PIRN_CONTAINER_OF(io, pirn_tcp, io);
    return rc;
}

int pirn_tcp_release(pirn_tcp *conn)
{
    return conn == NULL ? -EINVAL : pirn__io_release(&conn->io);
}

pirn_tcp *pirn_tcp_ref(pirn_tcp *conn)
{
    if (conn != NULL)
        pirn__io_ref(&conn->io);
    return conn;
}

void pirn_tcp_unref(pirn_tcp *conn)
{
    if (conn != NULL)
        pirn__io_unref(&conn->io);
}

void pirn_tcp_close(pirn_tcp *conn)
{
    if (conn != NULL)
        pirn__io_close(&conn->io);
}

void pirn_tcp_close_init(pirn_close_op *op, pirn_tcp *conn)
{
    pirn__io_close_init(op, conn == NULL ? NULL : &conn->io);
}

/* Calls that never block. */

/* One such call through the gate. */
static int call_inside(pirn_tcp *conn, int (*fn)(int fd, const void *arg),
                       const void *arg)
{
    int rc;

    if (conn == NULL)
        return -EINVAL;
    if (!pirn__gate_enter(&conn->io.gate))
        return PIRN_ECLOSED;
    rc = fn(conn->io.fd, arg);
    if (pirn__gate_leave(&conn->io.gate))
        pirn__io_finish(&conn->io);
    return rc;
}

static int shut_down(int fd, const void *arg)
{
    return pirn__sys->shutdown(fd, *(const int *)arg);
}

int pirn_tcp_shutdown(pirn_tcp *conn, enum pirn_half half)
{
    int how;

    switch (half) {
    case PIRN_HALF_READ:
        how = SHUT_RD;
        break;
    case PIRN_HALF_WRITE:
        how = SHUT_WR;
        break;
    case PIRN_HALF_BOTH:
        how = SHUT_RDWR;
        break;
    default:
        return -EINVAL;
    }
    return call_inside(conn, shut_down, &how);
}

/* The result goes out beside the argument. */
struct end_query {
    int (*fn)(int fd, pirn_addr *out);
    pirn_addr *out;
};

static int query_end(int fd, const void *arg)
{
    const struct end_query *query = arg;

    return query->fn(fd, query->out);
}

int pirn_tcp_local(pirn_tcp *conn, pirn_addr *out)
{
    const struct end_query query = {pirn__addr_local, out};

    return out == NULL ? -EINVAL : call_inside(conn, query_end, &query);
}

int pirn_tcp_peer(pirn_tcp *conn, pirn_addr *out)
{
    const struct end_query query = {pirn__addr_peer, out};

    return out == NULL ? -EINVAL : call_inside(conn, query_end, &query);
}

/* Options. */

struct option {
    int level;
    int name;
    int value;
};

int pirn__socket_set(int fd, int level, int name, int value)
{
    return pirn__sys->setsockopt(fd, level, name, &value, sizeof value);
}

static int set_option(int fd, const void *arg)
{
    const struct option *option = arg;

    return pirn__socket_set(fd, option->level, option->name, option->value);
}

int pirn_tcp_set_nodelay(pirn_tcp *conn, bool on)
{
    const struct option option = {IPPROTO_TCP, TCP_NODELAY, on};

    return call_inside(conn, set_option, &option);
}

/* The values have been checked, so that only the first call can fail, and then
 * nothing has changed. */
static int set_keepalive(int fd, const void *arg)
{
    const pirn_keepalive *probe = arg;
    const struct option options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, probe->count > 0},
        {IPPROTO_TCP, TCP_KEEPIDLE, (int)probe->idle_s},
        {IPPROTO_TCP, TCP_KEEPINTVL, (int)probe->interval_s},
        {IPPROTO_TCP, TCP_KEEPCNT, (int)probe->count},
    };
    size_t count = probe->count > 0 ? sizeof options / sizeof options[0] : 1;
    int rc = 0;

    for (size_t i = 0; i < count && rc >= 0; i++)
        rc = set_option(fd, &options[i]);
    return rc;
}

static bool is_within(uint32_t value, uint32_t limit)
{
    return value > 0 && value <= limit;
}

int pirn_tcp_set_keepalive(pirn_tcp *conn, pirn_keepalive probe)
{
    bool off = probe.idle_s == 0 && probe.interval_s == 0 && probe.count == 0;

    if (!off && (!is_within(probe.idle_s, KEEPALIVE_LIMIT_S) ||
                 !is_within(probe.interval_s, KEEPALIVE_LIMIT_S) ||
                 !is_within(probe.count, KEEPALIVE_LIMIT_COUNT)))
        return -EINVAL;
    return call_inside(conn, set_keepalive, &probe);
}

static int set_buffer(pirn_tcp *conn, int name, uint32_t bytes)
{
    const struct option option = {SOL_SOCKET, name, (int)bytes};

    if (bytes == 0 || bytes > INT32_MAX)
        return -EINVAL;
    return call_inside(conn, set_option, &option);
}

int pirn_tcp_set_send_buffer(pirn_tcp *conn, uint32_t bytes)
{
    return set_buffer(conn, SO_SNDBUF, bytes);
}

int pirn_tcp_set_receive_buffer(pirn_tcp *conn, uint32_t bytes)
{
    return set_buffer(conn, SO_RCVBUF, bytes);
}
