/* SPDX-License-Identifier: MIT */
/* src/net/listener.c - taking connections.
 *
 * accept(2) fails for reasons of three kinds.  The next connection had died
 * already, or the network had an error in store for it: go on with the one
 * after it.  The process is short of descriptors or memory: rest for a while,
 * see reactor/hold.h.  Anything else is the caller's.
 */
#include <errno.h>
#include <netinet/in.h>

#include <pirn/time.h>

#include "net/addr.h"
#include "net/tcp.h"
#include "reactor/hold.h"
#include "sys/sys.h"
#include "task/await.h"

enum { DEFAULT_BACKLOG = 1024 };

struct pirn_listener {
    struct pirn__io io; /* first */
    struct pirn__hold hold;
    pirn_addr address; /* constant */
};

static pirn_listener *listener_of(struct pirn__io *io)
{
    return PIRN_CONTAINER_OF(io, pirn_listener, io);
}

static void listener_name(struct pirn__io *io, pirn_text *out)
{
    pirn_text_append(out, "tcp ");
    pirn__addr_describe(&listener_of(io)->address, out);
}

static void listener_sealed(struct pirn__io *io)
{
    pirn__hold_end(&listener_of(io)->hold);
}

static const struct pirn__io_ops listener_ops = {
    .sealed = listener_sealed,
    .name = listener_name,
};

/* Opening. */

static int set_options(int fd, const pirn_addr *address,
                       const pirn_listen_options *options)
{
    int rc = 0;

    if (!options->no_reuse_addr)
        rc = pirn__socket_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (rc >= 0 && options->reuse_port)
        rc = pirn__socket_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    /* The system's default varies. */
    if (rc >= 0 && address->family_ == AF_INET6)
        rc = pirn__socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, options->v6_only);
    return rc;
}

static int start_listening(int fd, pirn_addr *address,
                           const pirn_listen_options *options)
{
    int backlog = options->backlog == 0 ? DEFAULT_BACKLOG : options->backlog;
    union pirn__sockaddr name;
    unsigned len = pirn__addr_to_sockaddr(address, &name);
    int rc = set_options(fd, address, options);

    if (rc >= 0)
        rc = pirn__sys->bind(fd, &name.any, len);
    if (rc >= 0)
        rc = pirn__sys->listen(fd, backlog);
    if (rc >= 0)
        rc = pirn__addr_local(fd, address);
    return rc;
}

/* A socket that listens, and the address that it got. */
static int open_socket(pirn_addr *address, const pirn_listen_options *options)
{
    int fd = pirn__sys->socket(address->family_);
    int rc;

    if (fd < 0)
        return fd;
    rc = start_listening(fd, address, options);
    if (rc < 0) {
        pirn__io_close_fd(fd);
        return rc;
    }
    return fd;
}

int pirn_listener_open(const char *address, const pirn_listen_options *options,
                       pirn_listener **out)
{
    const pirn_listen_options defaults = {0};
    const struct pirn__io_kind kind = {
        .kind = PIRN__FD_OTHER,
        .ready = PIRN__READY_READ,
        .ops = &listener_ops,
    };
    struct pirn__io *io;
    pirn_addr bound;
    int fd;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    if (options == NULL)
        options = &defaults;
    if (pirn_addr_parse(address, &bound) < 0 || options->backlog < 0)
        return -EINVAL;
    io = pirn__io_take(sizeof(pirn_listener));
    if (io == NULL)
        return -ENOMEM;
    fd = open_socket(&bound, options);
    if (fd < 0) {
        pirn__io_give(io);
        return fd;
    }
    listener_of(io)->address = bound;
    pirn__hold_init(&listener_of(io)->hold, io);
    pirn__io_open(io, fd, &kind);
    *out = listener_of(io);
    return 0;
}

/* Accepting. */

static ssize_t call_accept(int fd, void *arg)
{
    (void)arg;
    return pirn__sys->accept(fd, NULL, NULL);
}

/* Of the connection, not of the listener; accept(2) lists them. */
static bool is_of_connection(int rc)
{
    switch (-rc) {
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

static bool is_shortage(int rc)
{
    return rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS || rc == -ENOMEM;
}

/* Make a connection of the socket. */
static void take_connection(pirn_accept_op *op, pirn_listener *listener, int fd)
{
    pirn__hold_succeeded(&listener->hold);
    op->rc = pirn__tcp_new(fd, PIRN__READY_READ | PIRN__READY_WRITE, &op->conn);
    if (op->rc < 0)
        pirn__io_close_fd(fd);
}

static enum pirn_poll accept_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_accept_op *op = PIRN_CONTAINER_OF(self, pirn_accept_op, future);
    const struct pirn__io_call call = {.fn = call_accept};
    pirn_listener *listener;
    ssize_t n;
    int rc;

    if (op->waiter_.io_ == NULL) {
        op->rc = -EINVAL;
        return PIRN_READY;
    }
    listener = listener_of(op->waiter_.io_);
    /* Ends: the budget is finite. */
    do {
        if (!pirn_coop_spend(cx))
            return PIRN_PENDING;
        if (pirn__waiter_poll_call(&op->waiter_, cx, &call, &n) == PIRN_PENDING)
            return PIRN_PENDING;
        rc = n < 0 ? (int)n : 0;
    } while (is_of_connection(rc) ||
             (is_shortage(rc) && pirn__hold_begin(&listener->hold, cx)));
    /* -ENOMEM says that a connection was lost; the system's comes before. */
    if (rc < 0)
        op->rc = rc == -ENOMEM ? -ENOBUFS : rc;
    else
        take_connection(op, listener, (int)n);
    pirn__waiter_leave(&op->waiter_);
    return PIRN_READY;
}

static void accept_drop(pirn_future *self)
{
    pirn_accept_op *op = PIRN_CONTAINER_OF(self, pirn_accept_op, future);

    pirn__waiter_leave(&op->waiter_);
}

static void accept_discard(pirn_future *self)
{
    pirn_accept_op *op = PIRN_CONTAINER_OF(self, pirn_accept_op, future);

    if (op->conn != NULL)
        pirn__io_abandon(&op->conn->io);
    op->conn = NULL;
}

static void accept_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_accept_op *op = PIRN_CONTAINER_OF(self, pirn_accept_op, future);

    if (op->waiter_.io_ != NULL)
        pirn__io_describe(op->waiter_.io_, "accept", out);
}

static int accept_outcome(const pirn_future *self)
{
    return PIRN_CONTAINER_OF(self, pirn_accept_op, future)->rc;
}

static const pirn_future_ops accept_ops = {
    .poll = accept_poll,
    .drop = accept_drop,
    .discard = accept_discard,
    .describe = accept_describe,
    .outcome = accept_outcome,
};

void pirn_accept_init(pirn_accept_op *op, pirn_listener *listener)
{
    *op = (pirn_accept_op){.future = {&accept_ops}};
    pirn__waiter_init(&op->waiter_, listener == NULL ? NULL : &listener->io,
                      PIRN_READABLE);
}

/* One accept that ends at `deadline`. */
static int accept_until(pirn_listener *listener, pirn_deadline deadline,
                        pirn_tcp **out)
{
    pirn_accept_op op;
    int rc;

    pirn_accept_init(&op, listener);
    rc = pirn__await(&op.future, deadline);
    if (rc < 0)
        return rc;
    *out = op.conn;
    return op.rc;
}

int pirn_listener_accept(pirn_listener *listener, pirn_deadline deadline,
                         pirn_tcp **out)
{
    pirn_deadline until;
    bool again;
    int rc;

    if (out == NULL)
        return -EINVAL;
    *out = NULL;
    if (listener == NULL)
        return -EINVAL;
    /* Once, unless there is a shortage and no runtime to keep the time: a plain
     * thread that waits alone counts the pauses itself. */
    do {
        until = pirn__hold_until(&listener->hold);
        rc = accept_until(listener, pirn_deadline_min(deadline, until), out);
        again = rc == -ETIMEDOUT && until.ns < deadline.ns;
        if (until.ns != PIRN_NEVER.ns)
            pirn__hold_end(&listener->hold);
        if (rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS) {
            pirn__hold_begin_untimed(&listener->hold);
            again = true;
        }
    } while (again);
    return rc;
}

/* The rest. */

void pirn_listener_address(const pirn_listener *listener, pirn_addr *out)
{
    *out = listener->address;
}

uint64_t pirn_listener_pauses(const pirn_listener *listener)
{
    return pirn__hold_count(&listener->hold);
}

pirn_listener *pirn_listener_ref(pirn_listener *listener)
{
    if (listener != NULL)
        pirn__io_ref(&listener->io);
    return listener;
}

void pirn_listener_unref(pirn_listener *listener)
{
    if (listener != NULL)
        pirn__io_unref(&listener->io);
}

void pirn_listener_close(pirn_listener *listener)
{
    if (listener != NULL)
        pirn__io_close(&listener->io);
}
