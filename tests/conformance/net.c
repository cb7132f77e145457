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
 *
 * In the simulated world (tests/sim) each seed chooses one of these ways, and the
 * network cuts what is sent into pieces: who wants so many bytes asks again.
 */
#include <errno.h>
#include <stdio.h>

#include <pirn/pirn.h>

#include "conformance/ways.h"

/* The calls of the stories. */

static ssize_t way_read(const struct way *way, pirn_tcp *conn, void *buf,
                        size_t len, pirn_deadline deadline)
{
    pirn_tcp_op op;
    int rc;

    if (is_straight(way))
        return pirn_tcp_read(conn, buf, len, deadline);
    pirn_tcp_read_init(&op, conn, buf, len);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.n;
}

static int way_read_exact(const struct way *way, pirn_tcp *conn, void *buf,
                          size_t len, pirn_deadline deadline)
{
    pirn_tcp_op op;
    int rc;

    if (is_straight(way))
        return pirn_tcp_read_exact(conn, buf, len, deadline);
    pirn_tcp_read_exact_init(&op, conn, buf, len);
    rc = way_await(way, &op.future, deadline);
    if (rc == 0 && op.n < 0)
        rc = (int)op.n;
    return rc;
}

static ssize_t way_write(const struct way *way, pirn_tcp *conn, const void *buf,
                         size_t len, pirn_deadline deadline)
{
    pirn_tcp_op op;
    int rc;

    if (is_straight(way))
        return pirn_tcp_write(conn, buf, len, deadline);
    pirn_tcp_write_init(&op, conn, buf, len);
    rc = way_await(way, &op.future, deadline);
    return rc < 0 ? rc : op.n;
}

static int way_write_all(const struct way *way, pirn_tcp *conn, const void *buf,
                         size_t len, pirn_deadline deadline)
{
    pirn_tcp_op op;
    int rc;

    if (is_straight(way))
        return pirn_tcp_write_all(conn, buf, len, deadline);
    pirn_tcp_write_all_init(&op, conn, buf, len);
    rc = way_await(way, &op.future, deadline);
    if (rc == 0 && op.n < 0)
        rc = (int)op.n;
    return rc;
}

static int way_accept(const struct way *way, pirn_listener *listener,
                      pirn_deadline deadline, pirn_tcp **out)
{
    pirn_accept_op op;
    int rc;

    if (is_straight(way))
        return pirn_listener_accept(listener, deadline, out);
    pirn_accept_init(&op, listener);
    rc = way_await(way, &op.future, deadline);
    *out = rc < 0 ? NULL : op.conn;
    return rc < 0 ? rc : op.rc;
}

static int way_connect(const struct way *way, const char *address,
                       pirn_deadline deadline, pirn_tcp **out)
{
    pirn_connect_op op;
    pirn_addr parsed;
    int rc;

    if (is_straight(way))
        return pirn_tcp_connect(address, NULL, deadline, out);
    EXPECT_EQ(0, pirn_addr_parse(address, &parsed));
    pirn_connect_init(&op, &parsed, NULL);
    rc = way_await(way, &op.future, deadline);
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

static void tell(const char *test, story_fn *story)
{
    tell_by_all(test, ways, sizeof ways / sizeof ways[0], story);
}

/* The other end. */

static char *address_of(char text[PIRN_ADDR_SIZE], uint16_t port)
{
    (void)snprintf(text, PIRN_ADDR_SIZE, "127.0.0.1:%u", port);
    return text;
}

/* A port where nobody listens. */
static uint16_t dead_port(void)
{
    int fd = world_listen();
    uint16_t port = world_port(fd);

    world_close(fd);
    return port;
}

/* A connection of the library and its peer. */
static pirn_tcp *adopted(int *peer)
{
    pirn_tcp *conn = NULL;
    int fds[2];

    world_pair(fds);
    *peer = fds[1];
    EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
    return conn;
}

/* The peer gets this text. */
static void expect_at(int peer, const char *text)
{
    char buf[16] = "";
    size_t len = strlen(text);
    size_t n = 1;

    for (size_t got = 0; got < len && n > 0; got += n)
        n = world_recv(peer, buf + got, len - got);
    EXPECT_STR_EQ(text, buf);
}

/* We get this text, by reads that take what is there. */
static void expect_read(const struct way *way, pirn_tcp *conn,
                        const char *text)
{
    char buf[16] = "";
    size_t len = strlen(text);
    ssize_t n = 1;

    for (size_t got = 0; got < len && n > 0; got += (size_t)n) {
        n = way_read(way, conn, buf + got, len - got, PIRN_NEVER);
        EXPECT_GE(n, 1);
    }
    EXPECT_STR_EQ(text, buf);
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
    peer = world_connect(pirn_addr_port(&address));
    EXPECT_EQ(0, way_accept(way, listener, PIRN_NEVER, &conn));
    EXPECT_EQ(-ETIMEDOUT, way_read(way, conn, buf, sizeof buf, PIRN_EXPIRED));
    for (int i = 0; i < 3; i++) {
        world_send(peer, "ping", 4);
        expect_read(way, conn, "ping");
        EXPECT_EQ(0, way_write_all(way, conn, "pong", 4, PIRN_NEVER));
        expect_at(peer, "pong");
    }
    world_close(peer);
    EXPECT_EQ(0, way_read(way, conn, buf, sizeof buf, PIRN_NEVER));
    pirn_tcp_close(conn);
    pirn_listener_close(listener);
}

/* Goal: accept, read, write, end of stream, and expired deadlines before each.
 * Method: one client. */
TEST(net_one_connection_served)
{
    tell(__func__, serve_one);
}

static void dial(const struct way *way)
{
    int listener = world_listen();
    char text[PIRN_ADDR_SIZE];
    char dead[PIRN_ADDR_SIZE];
    pirn_tcp *conn = NULL;
    char buf[8] = "";
    int peer;

    EXPECT_EQ(-ECONNREFUSED, way_connect(way, address_of(dead, dead_port()),
                                         PIRN_NEVER, &conn));
    EXPECT_PTR_EQ(NULL, conn);
    EXPECT_EQ(0, way_connect(way, address_of(text, world_port(listener)),
                             PIRN_NEVER, &conn));
    peer = world_accept(listener);
    EXPECT_EQ(3, way_write(way, conn, "abc", 3, PIRN_NEVER));
    expect_at(peer, "abc");
    world_send(peer, "de", 2);
    world_send(peer, "f", 1);
    EXPECT_EQ(0, way_read_exact(way, conn, buf, 3, PIRN_NEVER));
    EXPECT_STR_EQ("def", buf);
    pirn_tcp_close(conn);
    world_close(peer);
    world_close(listener);
}

/* Goal: connect, also to nobody.
 * Method: one server. */
TEST(net_connections_made_and_refused)
{
    tell(__func__, dial);
}

static void hang_up(const struct way *way)
{
    int peer;
    pirn_tcp *conn = adopted(&peer);
    char buf[8];

    EXPECT_EQ(0, pirn_tcp_shutdown(conn, PIRN_HALF_WRITE));
    EXPECT_EQ(-EPIPE, way_write(way, conn, "x", 1, PIRN_NEVER));
    world_send(peer, "on", 2);
    expect_read(way, conn, "on");
    world_end_writing(peer);
    EXPECT_EQ(0, way_read(way, conn, buf, sizeof buf, PIRN_NEVER));
    EXPECT_EQ(PIRN_EEOF, way_read_exact(way, conn, buf, 1, PIRN_NEVER));
    pirn_tcp_close(conn);
    world_close(peer);

    conn = adopted(&peer);
    EXPECT_EQ(-ETIMEDOUT, way_read(way, conn, buf, sizeof buf, PIRN_EXPIRED));
    EXPECT_EQ(1, way_write(way, conn, "x", 1, PIRN_NEVER));
    world_reset(peer);
    EXPECT_EQ(-ECONNRESET, way_read(way, conn, buf, sizeof buf, PIRN_NEVER));
    pirn_tcp_close(conn);
}

/* Goal: half-close, end of stream and reset look alike everywhere.
 * Method: each once; the peer resets by closing with a byte unread. */
TEST(net_ends_of_connections)
{
    tell(__func__, hang_up);
}

static void fill_up(const struct way *way)
{
    int peer;
    pirn_tcp *conn = adopted(&peer);
    static char data[64 * 1024], sink[64 * 1024];
    size_t sent = 0;
    ssize_t n;

    EXPECT_EQ(0, pirn_tcp_set_send_buffer(conn, 16 * 1024));
    while ((n = way_write(way, conn, data, sizeof data, PIRN_EXPIRED)) > 0)
        sent += (size_t)n;
    EXPECT_EQ(-ETIMEDOUT, n);
    while (sent > 0) {
        size_t got = world_recv(peer, sink, sizeof sink);

        EXPECT_GE(got, 1);
        sent -= got;
    }
    EXPECT_GE(way_write(way, conn, data, sizeof data, PIRN_NEVER), 1);
    pirn_tcp_close(conn);
    world_close(peer);
}

/* Goal: a full connection waits, and goes on when there is room.
 * Method: write until the deadline says so, empty it, write again. */
TEST(net_full_connection_waits_for_room)
{
    tell(__func__, fill_up);
}

static void wait_until(const struct way *way)
{
    int peer;
    pirn_tcp *conn = adopted(&peer);
    uint64_t start = pirn_now_ns();
    char byte;

    EXPECT_EQ(-ETIMEDOUT, way_read(way, conn, &byte, 1, pirn_after_us(500)));
    EXPECT_GE(pirn_now_ns(), start + 500000);
    world_send(peer, "x", 1);
    EXPECT_EQ(1, way_read(way, conn, &byte, 1, PIRN_NEVER));
    pirn_tcp_close(conn);
    world_close(peer);
}

/* Goal: a deadline ends the wait, not before its time, and loses no data.
 * Method: half a millisecond without data, then data. */
TEST(net_deadline_ends_the_wait)
{
    tell(__func__, wait_until);
}

static void use_after_close(const struct way *way)
{
    int peer;
    pirn_tcp *conn = pirn_tcp_ref(adopted(&peer));
    char byte;

    pirn_tcp_close(conn);
    EXPECT_EQ(PIRN_ECLOSED, way_read(way, conn, &byte, 1, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, way_read(way, conn, &byte, 0, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, way_write(way, conn, &byte, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, way_read(way, NULL, &byte, 1, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, way_write(way, conn, NULL, 1, PIRN_NEVER));
    pirn_tcp_unref(conn);
    EXPECT_EQ(0, world_recv(peer, &byte, 1));
    world_close(peer);
}

/* Goal: a closed connection says so to who still holds it.
 * Method: a second handle. */
TEST(net_closed_connection_answers_eclosed)
{
    tell(__func__, use_after_close);
}
