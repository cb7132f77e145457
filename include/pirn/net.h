/* SPDX-License-Identifier: MIT */
/* pirn/net.h - TCP over IPv4 and IPv6.
 *
 *     pirn_tcp *conn;
 *     int rc = pirn_tcp_connect("127.0.0.1:7000", NULL, pirn_after_ms(500),
 *                               &conn);
 *
 *     if (rc < 0)
 *         return rc;
 *     rc = pirn_tcp_write_all(conn, "hello", 5, pirn_after_ms(500));
 *     pirn_tcp_close(conn);
 *
 * A connection may be used by several tasks and threads at once: one that
 * reads and one that writes never meet, and several on one side are served in
 * the order in which they came.  SIGPIPE is never raised.
 *
 * Connections and listeners belong to the runtime that is current when they are
 * made.  Made outside, they bind to the first runtime whose task has to wait on
 * them; until then plain threads wait on the descriptor itself.
 */
#ifndef PIRN_NET_H
#define PIRN_NET_H

#include <pirn/io.h>

PIRN_BEGIN_DECLS

struct iovec;

typedef struct pirn_tcp pirn_tcp;           /* counted */
typedef struct pirn_listener pirn_listener; /* counted */

/* An address and port, ready to use. */
typedef struct pirn_addr {
    uint16_t family_; /* AF_INET or AF_INET6 */
    uint16_t port_;   /* host byte order */
    uint32_t scope_;  /* of a link-local IPv6 address */
    uint8_t bytes_[16];
} pirn_addr;

enum { PIRN_ADDR_SIZE = 64 }; /* enough for pirn_addr_format() */

/* Read "127.0.0.1:80", "[::1]:80" or "[fe80::1%2]:80".  Names are not looked
 * up.
 *
 * Thread    any
 * Errors    -EINVAL  not a numeric address with a port of 0..65535
 */
PIRN_API PIRN_MUST_CHECK int pirn_addr_parse(const char *text, pirn_addr *out);

/* Write the form that pirn_addr_parse() reads; returns `buf`. */
PIRN_API char *pirn_addr_format(const pirn_addr *addr, char *buf, size_t size);
PIRN_API uint16_t pirn_addr_port(const pirn_addr *addr);
PIRN_API void pirn_addr_set_port(pirn_addr *addr, uint16_t port);
PIRN_API bool pirn_addr_equal(const pirn_addr *a, const pirn_addr *b);

/* Zero is the default. */
typedef struct pirn_listen_options {
    int backlog;          /* 0: 1024 */
    bool no_reuse_addr;   /* default: a restarted server gets its port back */
    bool reuse_port;      /* several processes share the port */
    bool v6_only;         /* an IPv6 socket does not take IPv4 */
} pirn_listen_options;

/* Listen on a numeric address; port 0 takes a free one.
 *
 * Thread    any
 * Owns      on success the caller owns one reference; on error *out is NULL
 * Errors    -EINVAL      address does not parse, backlog negative, out NULL
 *           -EADDRINUSE, -EADDRNOTAVAIL, -EACCES  as bind(2)
 *           -EAFNOSUPPORT  the system has no IPv6
 *           -EMFILE, -ENFILE, -ENOMEM  no descriptors or memory
 */
PIRN_API PIRN_MUST_CHECK int
pirn_listener_open(const char *address, const pirn_listen_options *options,
                   pirn_listener **out);

/* Wait for the next connection.  Connections that die before they are accepted
 * are passed over.  When descriptors run out it pauses, from 5 ms up to a
 * second, or until a descriptor of Pirn is closed, and goes on by itself.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    no connection is lost
 * Owns      on success *out is the caller's; NULL on error
 * Errors    -EINVAL       listener or out is NULL
 *           -ECANCELED, -ETIMEDOUT, -EDEADLK  as pirn_await()
 *           PIRN_ECLOSED  the listener was closed
 *           PIRN_ESHUTDOWN  its runtime ended
 *           -ENOMEM       no memory for the connection, which was closed
 *           -ENOMEM, -ENOSPC  it could not be registered with the runtime
 */
PIRN_API PIRN_MUST_CHECK int pirn_listener_accept(pirn_listener *listener,
                                                  pirn_deadline deadline,
                                                  pirn_tcp **out);

/* The same as a future. */
typedef struct pirn_accept_op {
    pirn_future future;
    pirn_io_waiter waiter_;
    pirn_tcp *conn;            /* the result, when rc is 0 */
    int rc;
} pirn_accept_op;

/* Prepare an accept; it borrows the listener.  discard closes the connection.
 * Where no runtime keeps the time (awaited on a plain thread, and the listener
 * is not bound) it does not pause but answers -EMFILE, -ENFILE or -ENOBUFS.
 *
 * Thread    any
 * Cancel    dropping it loses no connection
 */
PIRN_API void pirn_accept_init(pirn_accept_op *op, pirn_listener *listener);

/* Where it listens: with the port that the system chose.
 *
 * Thread    any
 */
PIRN_API void pirn_listener_address(const pirn_listener *listener,
                                    pirn_addr *out);

/* How often descriptors ran out in accept. */
PIRN_API uint64_t pirn_listener_pauses(const pirn_listener *listener);

/* As pirn_fd_ref() and pirn_fd_unref(). */
PIRN_API pirn_listener *pirn_listener_ref(pirn_listener *listener);
PIRN_API void pirn_listener_unref(pirn_listener *listener);

/* As pirn_fd_close(). */
PIRN_API void pirn_listener_close(pirn_listener *listener);

/* Zero is the default. */
typedef struct pirn_connect_options {
    const pirn_addr *local; /* bind here first; NULL: any */
} pirn_connect_options;

/* Connect to a numeric address.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    the attempt is given up
 * Owns      on success *out is the caller's; NULL on error
 * Errors    -EINVAL  address does not parse, or out is NULL
 *           -ECONNREFUSED, -ENETUNREACH, -EHOSTUNREACH, -ECONNRESET,
 *           -EADDRNOTAVAIL, -EADDRINUSE, -EACCES  as connect(2)
 *           -ETIMEDOUT  the deadline passed, or the system gave up
 *           -EAFNOSUPPORT  the system has no IPv6
 *           -EMFILE, -ENFILE, -ENOMEM  no descriptors or memory
 *           -ENOSPC  it could not be registered with the runtime
 *           -ECANCELED, -EDEADLK  as pirn_await()
 *           PIRN_ESHUTDOWN  the runtime ended
 */
PIRN_API PIRN_MUST_CHECK int
pirn_tcp_connect(const char *address, const pirn_connect_options *options,
                 pirn_deadline deadline, pirn_tcp **out);

/* The same as a future. */
typedef struct pirn_connect_op {
    pirn_future future;
    pirn_io_waiter waiter_;
    pirn_addr address_;
    pirn_addr local_;
    uint8_t state_;
    pirn_tcp *conn; /* the result, when rc is 0 */
    int rc;
} pirn_connect_op;

/* Prepare a connect; discard closes the connection.
 *
 * Thread    any
 * Cancel    dropping it gives the attempt up
 */
PIRN_API void pirn_connect_init(pirn_connect_op *op, const pirn_addr *address,
                                const pirn_connect_options *options);

/* Read what is there, up to `len` bytes; 0 is the end of the stream (or len
 * was 0).  readv fills several buffers, at most 1024.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing has been read
 * Errors    -EINVAL  a NULL argument, or more than 1024 or a negative count of
 *                    buffers
 *           -ECONNRESET, -ETIMEDOUT, -EHOSTUNREACH  what the network said
 *           -ECANCELED, -ETIMEDOUT, -EDEADLK  as pirn_await()
 *           PIRN_ECLOSED    closed on this side
 *           PIRN_ESHUTDOWN  its runtime ended
 *           PIRN_ENORUNTIME  polled by hand, and no runtime watches it
 *           PIRN_EFORKED  the runtime it is bound to is the parent process's
 *           -ENOMEM, -ENOSPC  it could not be registered with the runtime
 *           -EEXIST  the same, for its descriptor was adopted twice
 */
PIRN_API PIRN_MUST_CHECK ssize_t pirn_tcp_read(pirn_tcp *conn, void *buf,
                                               size_t len,
                                               pirn_deadline deadline);
PIRN_API PIRN_MUST_CHECK ssize_t pirn_tcp_readv(pirn_tcp *conn,
                                                const struct iovec *vec,
                                                int count,
                                                pirn_deadline deadline);

/* Read into the free space of `buf` and add to its length.  Errors and the rest
 * as pirn_tcp_read(); -ENOBUFS when the buffer is full. */
PIRN_API PIRN_MUST_CHECK ssize_t pirn_tcp_read_buf(pirn_tcp *conn,
                                                   pirn_buf *buf,
                                                   pirn_deadline deadline);

/* Read exactly `len` bytes.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    not safe: bytes already read into `buf` are lost to the stream.
 *           Use pirn_tcp_read() in a loop and keep the count
 * Errors    those of pirn_tcp_read(); PIRN_EEOF when the stream ends before
 */
PIRN_API PIRN_MUST_CHECK int pirn_tcp_read_exact(pirn_tcp *conn, void *buf,
                                                 size_t len,
                                                 pirn_deadline deadline);

/* Write what fits, at least one byte unless len is 0; returns how much.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing has been written
 * Errors    as pirn_tcp_read(); -EPIPE or -ECONNRESET when the peer is gone
 */
PIRN_API PIRN_MUST_CHECK ssize_t pirn_tcp_write(pirn_tcp *conn, const void *buf,
                                                size_t len,
                                                pirn_deadline deadline);
PIRN_API PIRN_MUST_CHECK ssize_t pirn_tcp_writev(pirn_tcp *conn,
                                                 const struct iovec *vec,
                                                 int count,
                                                 pirn_deadline deadline);

/* The same, and say that more follows at once, by another write or by
 * pirn_tcp_sendfile(): a head then need not leave in a packet of its own.  The
 * system keeps less than a packet back until then, up to 200 ms.
 *
 * Thread    as pirn_tcp_write()
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing has been written
 * Errors    those of pirn_tcp_write()
 */
PIRN_API PIRN_MUST_CHECK ssize_t pirn_tcp_write_more(pirn_tcp *conn,
                                                     const void *buf,
                                                     size_t len,
                                                     pirn_deadline deadline);

/* Write all of it.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    not safe: an unknown part has been written.  Use pirn_tcp_write()
 *           in a loop and keep the count
 * Errors    those of pirn_tcp_write()
 */
PIRN_API PIRN_MUST_CHECK int pirn_tcp_write_all(pirn_tcp *conn, const void *buf,
                                                size_t len,
                                                pirn_deadline deadline);

/* Send `count` bytes of an open regular file from *offset on, and move *offset
 * by what was sent, also on error.  The disk is read on the blocking pool.
 * Returns 0 when all was sent.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short between two pieces
 * Cancel    *offset says what was sent
 * Errors    those of pirn_tcp_write() and pirn_blocking_run(); PIRN_EEOF when
 *           the file is shorter, and what the system says of it (-EIO, -EBADF,
 *           -EINVAL, ...)
 */
PIRN_API PIRN_MUST_CHECK int pirn_tcp_sendfile(pirn_tcp *conn, int file_fd,
                                               int64_t *offset, size_t count,
                                               pirn_deadline deadline);

/* One read or write of one buffer as a future; `n` is its result: a count, or
 * a negative code as above.  They borrow `conn` and the buffer.  In exact mode
 * (write_all, read_exact) they end when `len` bytes are done, with n = len. */
typedef struct pirn_tcp_op {
    pirn_future future;
    pirn_io_waiter waiter_;
    char *buf_;
    size_t len_;
    size_t done_;
    bool exact_;
    ssize_t n;
} pirn_tcp_op;

/* Prepare one; the names say which.
 *
 * Thread    any
 * Cancel    dropping read or write loses nothing; dropping read_exact or
 *           write_all loses track of a part
 */
PIRN_API void pirn_tcp_read_init(pirn_tcp_op *op, pirn_tcp *conn, void *buf,
                                 size_t len);
PIRN_API void pirn_tcp_read_exact_init(pirn_tcp_op *op, pirn_tcp *conn,
                                       void *buf, size_t len);
PIRN_API void pirn_tcp_write_init(pirn_tcp_op *op, pirn_tcp *conn,
                                  const void *buf, size_t len);
PIRN_API void pirn_tcp_write_all_init(pirn_tcp_op *op, pirn_tcp *conn,
                                      const void *buf, size_t len);

/* Which half to end; as SHUT_RD, SHUT_WR and SHUT_RDWR. */
enum pirn_half {
    PIRN_HALF_READ,
    PIRN_HALF_WRITE,
    PIRN_HALF_BOTH
};

/* Half-close: the peer reads the end of the stream, this side reads on.
 *
 * Thread    any
 * Suspends  no
 * Errors    -EINVAL       conn is NULL, or not one of enum pirn_half
 *           -ENOTCONN     the connection is gone already
 *           PIRN_ECLOSED  closed on this side
 */
PIRN_API PIRN_MUST_CHECK int pirn_tcp_shutdown(pirn_tcp *conn,
                                               enum pirn_half half);

/* As pirn_fd_close(): unread data of the peer resets the connection, as TCP
 * does. */
PIRN_API void pirn_tcp_close(pirn_tcp *conn);

/* As pirn_fd_close_init(). */
PIRN_API void pirn_tcp_close_init(pirn_close_op *op, pirn_tcp *conn);

/* As pirn_fd_ref() and pirn_fd_unref(). */
PIRN_API pirn_tcp *pirn_tcp_ref(pirn_tcp *conn);
PIRN_API void pirn_tcp_unref(pirn_tcp *conn);

/* Take over a connected, or connecting, stream socket and make it non-blocking.
 *
 * Thread    any
 * Owns      on success the pirn_tcp owns it; on error it is the caller's with
 *           its flags unchanged, and *out is NULL
 * Errors    -EBADF, -ENOTSOCK  not a socket
 *           -EINVAL  out is NULL, or not a stream socket
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_tcp_adopt(int fd, pirn_tcp **out);

/* As pirn_fd_release(). */
PIRN_API PIRN_MUST_CHECK int pirn_tcp_release(pirn_tcp *conn);

/* Both ends.
 *
 * Thread    any
 * Errors    -EINVAL       a NULL argument
 *           -ENOTCONN     not connected any more
 *           -EAFNOSUPPORT an adopted socket of another family
 *           PIRN_ECLOSED  closed on this side
 */
PIRN_API PIRN_MUST_CHECK int pirn_tcp_local(pirn_tcp *conn,
                                            pirn_addr *out);
PIRN_API PIRN_MUST_CHECK int pirn_tcp_peer(pirn_tcp *conn,
                                           pirn_addr *out);

/* Keep-alive probing: seconds of silence before the first probe and between
 * probes, and how many may stay unanswered; all 0 switches it off. */
typedef struct pirn_keepalive {
    uint32_t idle_s;
    uint32_t interval_s;
    uint32_t count;
} pirn_keepalive;

/* Set an option; on error the previous value stands.
 *
 * Thread    any
 * Errors    -EINVAL       conn is NULL, or a value out of the system's range
 *           PIRN_ECLOSED  closed on this side
 */
PIRN_API PIRN_MUST_CHECK int pirn_tcp_set_nodelay(pirn_tcp *conn, bool on);
PIRN_API PIRN_MUST_CHECK int pirn_tcp_set_keepalive(pirn_tcp *conn,
                                                    pirn_keepalive probe);
PIRN_API PIRN_MUST_CHECK int pirn_tcp_set_send_buffer(pirn_tcp *conn,
                                                      uint32_t bytes);
PIRN_API PIRN_MUST_CHECK int pirn_tcp_set_receive_buffer(pirn_tcp *conn,
                                                         uint32_t bytes);

PIRN_END_DECLS

#endif /* PIRN_NET_H */
