/* SPDX-License-Identifier: MIT */
/* src/net/connect_test.c - making connections, and failing to. */
#include <stdlib.h>

#include <pirn/runtime.h>
#include <pirn/time.h>

#include "engine/one_thread.h"
#include "engine/socket_peer.h"
#include "sys/sys.h"

static int lowest_free_fd(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

/* Fibers check and return 0. */
static void run(pirn_fiber_fn *fn, void *arg)
{
    EXPECT_EQ(0, run_on_one_thread(fn, arg));
}

static int connect_and_talk(void *arg)
{
    int listener = peer_listen(4);
    char text[PIRN_ADDR_SIZE];
    char local_text[PIRN_ADDR_SIZE];
    char buf[8] = "";
    pirn_tcp *conn = NULL;
    pirn_addr local;
    int peer;

    (void)arg;
    EXPECT_EQ(0, pirn_tcp_connect(peer_text(text, peer_port(listener)), NULL,
                                  PIRN_NEVER, &conn));
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(5, pirn_tcp_write(conn, "hello", 5, PIRN_NEVER));
    peer_expect(peer, "hello");
    peer_send(peer, "you", 3);
    EXPECT_EQ(3, pirn_tcp_read(conn, buf, sizeof buf, PIRN_NEVER));
    EXPECT_STR_EQ("you", buf);
    EXPECT_EQ(0, pirn_tcp_local(conn, &local));
    EXPECT_EQ(0,
              strncmp("127.0.0.1:",
                      pirn_addr_format(&local, local_text, sizeof local_text),
                      10));
    pirn_tcp_close(conn);
    close(peer);
    close(listener);
    return 0;
}

/* Goal: a connection is made and carries bytes both ways.
 * Method: a peer on the loopback. */
TEST(connect_to_listener_carries_bytes)
{
    run(connect_and_talk, NULL);
}

static int connect_to_nobody(void *arg)
{
    char text[PIRN_ADDR_SIZE];
    pirn_tcp *conn = (pirn_tcp *)8;
    int before = lowest_free_fd();

    (void)arg;
    EXPECT_EQ(-ECONNREFUSED, pirn_tcp_connect(peer_text(text, peer_dead_port()),
                                              NULL, PIRN_NEVER, &conn));
    EXPECT_PTR_EQ(NULL, conn);
    EXPECT_EQ(before, lowest_free_fd());
    return 0;
}

/* Goal: a refusal is told as such, and leaves no descriptor.
 * Method: a port where nobody listens; then the same without a runtime. */
TEST(connect_refused_is_an_error_of_its_own)
{
    run(connect_to_nobody, NULL);
    EXPECT_EQ(0, connect_to_nobody(NULL));
}

/* A listener whose queue is full drops the first packet of a connection, which
 * then waits. */
struct full {
    int listener;
    int fillers[3];
};

static void full_open(struct full *full)
{
    struct sockaddr_in name;

    full->listener = peer_listen(0);
    name = peer_address(peer_port(full->listener));
    for (int i = 0; i < 3; i++) {
        full->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(full->fillers[i], (struct sockaddr *)&name, sizeof name);
    }
}

static void full_close(struct full *full)
{
    for (int i = 0; i < 3; i++)
        close(full->fillers[i]);
    close(full->listener);
}

static int connect_to_full(void *arg)
{
    struct full *full = arg;
    char text[PIRN_ADDR_SIZE];
    pirn_tcp *conn;
    int before = lowest_free_fd();

    EXPECT_EQ(-ETIMEDOUT,
              pirn_tcp_connect(peer_text(text, peer_port(full->listener)), NULL,
                               PIRN_EXPIRED, &conn));
    EXPECT_PTR_EQ(NULL, conn);
    EXPECT_EQ(before, lowest_free_fd());
    return 0;
}

/* Goal: an attempt that gets no answer ends at the deadline and is withdrawn.
 * Method: a full queue, an expired deadline; in a fiber and on a thread. */
TEST(connect_without_answer_ends_at_deadline)
{
    struct full full;

    full_open(&full);
    run(connect_to_full, &full);
    EXPECT_EQ(0, connect_to_full(&full));
    full_close(&full);
}

static pirn_task *connecting;

static int be_connecting(void *arg)
{
    struct full *full = arg;
    char text[PIRN_ADDR_SIZE];
    pirn_tcp *conn;

    return pirn_tcp_connect(peer_text(text, peer_port(full->listener)), NULL,
                            PIRN_NEVER, &conn);
}

static int cancel_connecting(void *arg)
{
    int before = lowest_free_fd();
    int outcome;

    EXPECT_EQ(0, pirn_go_with(be_connecting, arg, NULL, &connecting));
    EXPECT_EQ(0, pirn_yield());
    EXPECT_EQ(0, pirn_yield());
    EXPECT_NE(before, lowest_free_fd());
    pirn_task_cancel(connecting);
    EXPECT_EQ(0, pirn_task_join(connecting, PIRN_NEVER, &outcome));
    EXPECT_EQ(-ECANCELED, outcome);
    pirn_task_unref(connecting);
    EXPECT_EQ(before, lowest_free_fd());
    return 0;
}

/* Goal: cancelling gives the attempt up.
 * Method: cancel a fiber that waits for an answer. */
TEST(connect_cancelled_is_withdrawn)
{
    struct full full;

    full_open(&full);
    run(cancel_connecting, &full);
    full_close(&full);
}

/* Goal: the local end can be chosen.
 * Method: another address of the loopback. */
static int connect_from(void *arg)
{
    int listener = peer_listen(4);
    char text[PIRN_ADDR_SIZE];
    pirn_addr from, local;
    const pirn_connect_options options = {.local = &from};
    pirn_tcp *conn = NULL;

    (void)arg;
    EXPECT_EQ(0, pirn_addr_parse("127.0.0.2:0", &from));
    EXPECT_EQ(0, pirn_tcp_connect(peer_text(text, peer_port(listener)),
                                  &options, PIRN_NEVER, &conn));
    EXPECT_EQ(0, pirn_tcp_local(conn, &local));
    pirn_addr_set_port(&from, pirn_addr_port(&local));
    EXPECT(pirn_addr_equal(&from, &local));
    pirn_tcp_close(conn);
    EXPECT_EQ(0, pirn_addr_parse("192.0.2.1:0", &from));
    EXPECT_EQ(-EADDRNOTAVAIL,
              pirn_tcp_connect(text, &options, PIRN_NEVER, &conn));
    close(listener);
    return 0;
}

TEST(connect_from_chosen_local_address)
{
    run(connect_from, NULL);
}

/* Goal: nonsense is refused before anything is opened.
 * Method: no result, bad addresses, a zero address in the future. */
TEST(connect_to_nonsense_answers_einval)
{
    pirn_tcp *conn;
    pirn_connect_op op;

    EXPECT_EQ(-EINVAL, pirn_tcp_connect("1.2.3.4:5", NULL, PIRN_NEVER, NULL));
    EXPECT_EQ(-EINVAL, pirn_tcp_connect(NULL, NULL, PIRN_NEVER, &conn));
    EXPECT_EQ(-EINVAL, pirn_tcp_connect("host:5", NULL, PIRN_NEVER, &conn));
    pirn_connect_init(&op, NULL, NULL);
    EXPECT_EQ(0, pirn_await(&op.future, PIRN_NEVER));
    EXPECT_EQ(-EINVAL, op.rc);
}

/* Goal: a result without a taker is closed.
 * Method: connect by hand, then discard. */
TEST(connect_discarded_closes_the_connection)
{
    int listener = peer_listen(4);
    char text[PIRN_ADDR_SIZE];
    pirn_connect_op op;
    pirn_addr address;
    int before = lowest_free_fd();

    EXPECT_EQ(0,
              pirn_addr_parse(peer_text(text, peer_port(listener)), &address));
    pirn_connect_init(&op, &address, NULL);
    EXPECT_EQ(0, pirn_await(&op.future, PIRN_NEVER));
    EXPECT_EQ(0, op.rc);
    EXPECT_EQ(0, pirn_future_outcome(&op.future));
    EXPECT_NE(before, lowest_free_fd());
    pirn_future_discard(&op.future);
    EXPECT_EQ(before, lowest_free_fd());
    close(listener);
}

/* A kernel that calls a socket writable before it is connected. */

static int false_alarms;

static int late_peername(int fd, struct sockaddr *address, unsigned *len)
{
    if (false_alarms-- > 0)
        return -ENOTCONN;
    return pirn__sys_linux.peername(fd, address, len);
}

static int slow_connect(int fd, const struct sockaddr *address, unsigned len)
{
    (void)pirn__sys_linux.connect(fd, address, len);
    return -EINPROGRESS;
}

static int connect_with_false_alarm(void *arg)
{
    struct pirn__sys table = pirn__sys_linux;
    int listener = peer_listen(4);
    char text[PIRN_ADDR_SIZE];
    pirn_tcp *conn = NULL;

    (void)arg;
    table.peername = late_peername;
    table.connect = slow_connect;
    false_alarms = 1;
    pirn__sys = &table;
    /* The event that would come is the false one here, so nothing else does. */
    EXPECT_EQ(-ETIMEDOUT, pirn_tcp_connect(peer_text(text, peer_port(listener)),
                                           NULL, pirn_after_ms(1), &conn));
    false_alarms = 0;
    EXPECT_EQ(0, pirn_tcp_connect(text, NULL, PIRN_NEVER, &conn));
    pirn__sys = &pirn__sys_linux;
    pirn_tcp_close(conn);
    close(listener);
    return 0;
}

/* Goal: writable without an error is not taken for connected.
 * Method: the first look finds no peer; the attempt goes on waiting. */
TEST(connect_woken_before_it_is_connected_waits_on)
{
    run(connect_with_false_alarm, NULL);
}

static int connect_v6(void *arg)
{
    pirn_listener *listener;
    pirn_tcp *client = NULL;
    pirn_tcp *server = NULL;
    pirn_addr address;
    char text[PIRN_ADDR_SIZE];
    char buf[4] = "";

    (void)arg;
    EXPECT_EQ(0, pirn_listener_open("[::1]:0", NULL, &listener));
    pirn_listener_address(listener, &address);
    EXPECT_EQ(0, pirn_tcp_connect(pirn_addr_format(&address, text, sizeof text),
                                  NULL, PIRN_NEVER, &client));
    EXPECT_EQ(0, pirn_listener_accept(listener, PIRN_NEVER, &server));
    EXPECT_EQ(2, pirn_tcp_write(client, "v6", 2, PIRN_NEVER));
    EXPECT_EQ(2, pirn_tcp_read(server, buf, sizeof buf, PIRN_NEVER));
    EXPECT_STR_EQ("v6", buf);
    pirn_tcp_close(client);
    pirn_tcp_close(server);
    pirn_listener_close(listener);
    return 0;
}

/* Goal: IPv6 works like IPv4.
 * Method: both ends are the library's, on [::1]. */
TEST(connect_and_accept_over_ipv6)
{
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 name = {.sin6_family = AF_INET6,
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool has_v6 =
        probe >= 0 && bind(probe, (struct sockaddr *)&name, sizeof name) == 0;

    close(probe);
    if (!has_v6)
        SKIP("no IPv6 loopback");
    run(connect_v6, NULL);
}
