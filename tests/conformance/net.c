/* SPDX-License-Identifier: MIT */
/* tests/conformance/net.c - the same stories of TCP, told in every way in which
 * a program may write them:
 *
 *   fiber    straight-line calls in a fiber
 *   future   operations awaited one by one in a fiber
 *   host     operations driven by pirn_block_on() from the plain thread
 *   alone    straight-line calls on a plain thread without any runtime
 *   beside   straight-line calls on a plain thread, on objects that are bound
 *            to a runtime which nobody else drives
 *
 * All but "alone" are told on a current-thread runtime, on pools of two and four
 * workers, and on computational ones of three; a pool drives itself, and the
 * plain thread only waits.
 *
 * The other end is a plain socket on the same thread; the kernel's buffers hold
 * what is under way.
 */
#include <stdlib.h>

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "conformance/ways.h"
#include "engine/socket_peer.h"

/* The calls of the stories. */

static ssize_t way_read(const struct way *way, pirn_tcp *conn, void *buf,
                        size_t len, pirn_deadline deadline)
{
    pirn_tcp_op op;
    int rc;

    if (way->await == NULL)
        return pirn_tcp_read(conn, buf, len, deadline);
    pirn_tcp_read_init(&op, conn, buf, len);
    rc = way->await(&op.future, deadline);
    return rc < 0 ? rc : op.n;
}

static int way_read_exact(const struct way *way, pirn_tcp *conn, void *buf,
                          size_t len, pirn_deadline deadline)
{
    pirn_tcp_op op;
    int rc;

    if (way->await == NULL)
        return pirn_tcp_read_exact(conn, buf, len, deadline);
    pirn_tcp_read_exact_init(&op, conn, buf, len);
    rc = way->await(&op.future, deadline);
    if (rc == 0 && op.n < 0)
        rc = (int)op.n;
    return rc;
}

static ssize_t way_write(const struct way *way, pirn_tcp *conn, const void *buf,
                         size_t len, pirn_deadline deadline)
{
    pirn_tcp_op op;
    int rc;

    if (way->await == NULL)
        return pirn_tcp_write(conn, buf, len, deadline);
    pirn_tcp_write_init(&op, conn, buf, len);
    rc = way->await(&op.future, deadline);
    return rc < 0 ? rc : op.n;
}

static int way_write_all(const struct way *way, pirn_tcp *conn, const void *buf,
                         size_t len, pirn_deadline deadline)
{
    pirn_tcp_op op;
    int rc;

    if (way->await == NULL)
        return pirn_tcp_write_all(conn, buf, len, deadline);
    pirn_tcp_write_all_init(&op, conn, buf, len);
    rc = way->await(&op.future, deadline);
    if (rc == 0 && op.n < 0)
        rc = (int)op.n;
    return rc;
}

static int way_accept(const struct way *way, pirn_listener *listener,
                      pirn_deadline deadline, pirn_tcp **out)
{
    pirn_accept_op op;
    int rc;

    if (way->await == NULL)
        return pirn_listener_accept(listener, deadline, out);
    pirn_accept_init(&op, listener);
    rc = way->await(&op.future, deadline);
    *out = rc < 0 ? NULL : op.conn;
    return rc < 0 ? rc : op.rc;
}

static int way_connect(const struct way *way, const char *address,
                       pirn_deadline deadline, pirn_tcp **out)
{
    pirn_connect_op op;
    pirn_addr parsed;
    int rc;

    if (way->await == NULL)
        return pirn_tcp_connect(address, NULL, deadline, out);
    EXPECT_EQ(0, pirn_addr_parse(address, &parsed));
    pirn_connect_init(&op, &parsed, NULL);
    rc = way->await(&op.future, deadline);
    *out = rc < 0 ? NULL : op.conn;
    return rc < 0 ? rc : op.rc;
}

/* The ways. */

static const struct way ways[] = {
    {"alone", 0, tell_alone, NULL, 0, false},
    {"fiber", 0, tell_by_run, NULL, 0, false},
    {"fiber on 2 workers", 2, tell_by_run, NULL, 0, false},
    {"fiber on 4 workers", 4, tell_by_run, NULL, 0, false},
    {"future", 0, tell_by_run, pirn_await, 0, false},
    {"future on 2 workers", 2, tell_by_run, pirn_await, 0, false},
    {"future on 4 workers", 4, tell_by_run, pirn_await, 0, false},
    {"host", 0, tell_entered, await_on_host, 0, false},
    {"host of 2 workers", 2, tell_entered, await_on_host, 0, false},
    {"host of 4 workers", 4, tell_entered, await_on_host, 0, false},
    {"beside", 0, tell_entered, NULL, 0, false},
    {"beside 2 workers", 2, tell_entered, NULL, 0, false},
    {"beside 4 workers", 4, tell_entered, NULL, 0, false},
    {"fiber on 3 slots", 3, tell_by_run, NULL,
     PIRN_POOL_COMPUTATIONAL, false},
    {"future on 3 slots", 3, tell_by_run, pirn_await,
     PIRN_POOL_COMPUTATIONAL, false},
    {"host of 3 slots", 3, tell_entered, await_on_host,
     PIRN_POOL_COMPUTATIONAL, false},
    {"beside 3 slots", 3, tell_entered, NULL,
     PIRN_POOL_COMPUTATIONAL, false},
};

static void tell(void (*story)(const struct way *way))
{
    tell_by_all(ways, sizeof ways / sizeof ways[0], story);
}

/* The stories. */

static void serve_one(const struct way *way)
{
    pirn_listener *listener = NULL;
    pirn_tcp *conn = NULL;
    pirn_addr address;
    char buf[16] = "";
    int peer;

    EXPECT_EQ(0, pirn_listener_open("127.0.0.1:0", NULL, &listener));
    pirn_listener_address(listener, &address);
    EXPECT_EQ(-ETIMEDOUT, way_accept(way, listener, PIRN_EXPIRED, &conn));
    EXPECT_PTR_EQ(NULL, conn);
    peer = peer_connect(pirn_addr_port(&address));
    EXPECT_EQ(0, way_accept(way, listener, PIRN_NEVER, &conn));
    EXPECT_EQ(-ETIMEDOUT, way_read(way, conn, buf, sizeof buf, PIRN_EXPIRED));
    for (int i = 0; i < 3; i++) {
        peer_send(peer, "ping", 4);
        EXPECT_EQ(4, way_read(way, conn, buf, sizeof buf, PIRN_NEVER));
        EXPECT_STR_EQ("ping", buf);
        EXPECT_EQ(0, way_write_all(way, conn, "pong", 4, PIRN_NEVER));
        peer_expect(peer, "pong");
    }
    close(peer);
    EXPECT_EQ(0, way_read(way, conn, buf, sizeof buf, PIRN_NEVER));
    pirn_tcp_close(conn);
    pirn_listener_close(listener);
}

/* Goal: accept, read, write, end of stream, and expired deadlines before each.
 * Method: one client. */
TEST(net_one_connection_served)
{
    tell(serve_one);
}

static void dial(const struct way *way)
{
    int listener = peer_listen(4);
    char text[PIRN_ADDR_SIZE];
    char dead[PIRN_ADDR_SIZE];
    pirn_tcp *conn = NULL;
    char buf[8] = "";
    int peer;

    EXPECT_EQ(-ECONNREFUSED, way_connect(way, peer_text(dead, peer_dead_port()),
                                         PIRN_NEVER, &conn));
    EXPECT_PTR_EQ(NULL, conn);
    EXPECT_EQ(0, way_connect(way, peer_text(text, peer_port(listener)),
                             PIRN_NEVER, &conn));
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(3, way_write(way, conn, "abc", 3, PIRN_NEVER));
    peer_expect(peer, "abc");
    peer_send(peer, "de", 2);
    peer_send(peer, "f", 1);
    EXPECT_EQ(0, way_read_exact(way, conn, buf, 3, PIRN_NEVER));
    EXPECT_STR_EQ("def", buf);
    pirn_tcp_close(conn);
    close(peer);
    close(listener);
}

/* Goal: connect, also to nobody.
 * Method: one server. */
TEST(net_connections_made_and_refused)
{
    tell(dial);
}

static void hang_up(const struct way *way)
{
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    char buf[8];

    EXPECT_EQ(0, pirn_tcp_shutdown(conn, PIRN_HALF_WRITE));
    EXPECT_EQ(-EPIPE, way_write(way, conn, "x", 1, PIRN_NEVER));
    peer_send(peer, "on", 2);
    EXPECT_EQ(2, way_read(way, conn, buf, sizeof buf, PIRN_NEVER));
    EXPECT_EQ(0, shutdown(peer, SHUT_WR));
    EXPECT_EQ(0, way_read(way, conn, buf, sizeof buf, PIRN_NEVER));
    EXPECT_EQ(PIRN_EEOF, way_read_exact(way, conn, buf, 1, PIRN_NEVER));
    pirn_tcp_close(conn);
    close(peer);

    conn = peer_adopted(&peer);
    EXPECT_EQ(-ETIMEDOUT, way_read(way, conn, buf, sizeof buf, PIRN_EXPIRED));
    peer_reset(peer);
    EXPECT_EQ(-ECONNRESET, way_read(way, conn, buf, sizeof buf, PIRN_NEVER));
    pirn_tcp_close(conn);
}

/* Goal: half-close, end of stream and reset look alike everywhere.
 * Method: each once. */
TEST(net_ends_of_connections)
{
    tell(hang_up);
}

static void fill_up(const struct way *way)
{
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    static char data[64 * 1024], sink[64 * 1024];
    size_t sent = 0;
    ssize_t n;

    EXPECT_EQ(0, pirn_tcp_set_send_buffer(conn, 16 * 1024));
    while ((n = way_write(way, conn, data, sizeof data, PIRN_EXPIRED)) > 0)
        sent += (size_t)n;
    EXPECT_EQ(-ETIMEDOUT, n);
    while (sent > 0) {
        n = recv(peer, sink, sizeof sink, 0);
        EXPECT_GE(n, 1);
        sent -= (size_t)n;
    }
    EXPECT_GE(way_write(way, conn, data, sizeof data, PIRN_NEVER), 1);
    pirn_tcp_close(conn);
    close(peer);
}

/* Goal: a full connection waits, and goes on when there is room.
 * Method: write until the deadline says so, empty it, write again. */
TEST(net_full_connection_waits_for_room)
{
    tell(fill_up);
}

static void wait_until(const struct way *way)
{
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    uint64_t start = pirn_now_ns();
    char byte;

    EXPECT_EQ(-ETIMEDOUT, way_read(way, conn, &byte, 1, pirn_after_us(500)));
    EXPECT_GE(pirn_now_ns(), start + 500000);
    peer_send(peer, "x", 1);
    EXPECT_EQ(1, way_read(way, conn, &byte, 1, PIRN_NEVER));
    pirn_tcp_close(conn);
    close(peer);
}

/* Goal: a deadline ends the wait, not before its time, and loses no data.
 * Method: half a millisecond without data, then data. */
TEST(net_deadline_ends_the_wait)
{
    tell(wait_until);
}

static void use_after_close(const struct way *way)
{
    int peer;
    pirn_tcp *conn = pirn_tcp_ref(peer_adopted(&peer));
    char byte;

    pirn_tcp_close(conn);
    EXPECT_EQ(PIRN_ECLOSED, way_read(way, conn, &byte, 1, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, way_read(way, conn, &byte, 0, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, way_write(way, conn, &byte, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, way_read(way, NULL, &byte, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, way_write(way, conn, NULL, 1, PIRN_NEVER));
    pirn_tcp_unref(conn);
    EXPECT_EQ(0, recv(peer, &byte, 1, 0));
    close(peer);
}

/* Goal: a closed connection says so to who still holds it.
 * Method: a second handle. */
TEST(net_closed_connection_answers_eclosed)
{
    tell(use_after_close);
}
