/* SPDX-License-Identifier: MIT */
/* src/net/tcp_test.c - connections apart from their bytes: adopting, ends,
 * options, half-close.  On the plain main thread, without a runtime.
 */
#include "engine/socket_peer.h"

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    EXPECT_EQ(0, getsockopt(fd, level, name, &value, &len));
    return value;
}

/* Goal: an adopted socket becomes non-blocking, and release gives it back as it
 * was.
 * Method: one that was blocking, one that was not. */
TEST(tcp_release_restores_blocking_mode)
{
    for (int mode = 0; mode <= O_NONBLOCK; mode += O_NONBLOCK) {
        pirn_tcp *conn;
        int fds[2];

        peer_pair(fds);
        EXPECT_EQ(0, fcntl(fds[0], F_SETFL, mode));
        EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
        EXPECT_EQ(O_NONBLOCK, fcntl(fds[0], F_GETFL) & O_NONBLOCK);
        EXPECT_EQ(fds[0], pirn_tcp_release(conn));
        EXPECT_EQ(mode, fcntl(fds[0], F_GETFL) & O_NONBLOCK);
        close(fds[0]);
        close(fds[1]);
    }
}

/* Goal: what is no stream socket is refused and left as it was.
 * Method: a closed number, a pipe, a datagram socket, no place for the
 * result. */
TEST(tcp_adopt_of_other_descriptors_is_refused)
{
    pirn_tcp *conn = (pirn_tcp *)8;
    int fds[2];
    int datagram = socket(AF_INET, SOCK_DGRAM, 0);

    EXPECT_EQ(0, pipe(fds));
    EXPECT_EQ(-EBADF, pirn_tcp_adopt(-1, &conn));
    EXPECT_PTR_EQ(NULL, conn);
    EXPECT_EQ(-ENOTSOCK, pirn_tcp_adopt(fds[0], &conn));
    EXPECT_EQ(-EINVAL, pirn_tcp_adopt(datagram, &conn));
    EXPECT_EQ(0, fcntl(datagram, F_GETFL) & O_NONBLOCK);
    EXPECT_EQ(-EINVAL, pirn_tcp_adopt(datagram, NULL));
    close(datagram);
    close(fds[0]);
    close(fds[1]);
}

/* Goal: both ends are told.
 * Method: compare with what the peer is told. */
TEST(tcp_ends_match_the_peers_view)
{
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    pirn_addr local, remote;
    char text[PIRN_ADDR_SIZE];
    char expected[PIRN_ADDR_SIZE];

    EXPECT_EQ(0, pirn_tcp_local(conn, &local));
    EXPECT_EQ(0, pirn_tcp_peer(conn, &remote));
    EXPECT_STR_EQ(peer_text(expected, peer_port(peer)),
                  pirn_addr_format(&remote, text, sizeof text));
    EXPECT_EQ(-EINVAL, pirn_tcp_local(conn, NULL));
    EXPECT_EQ(-EINVAL, pirn_tcp_peer(NULL, &remote));
    pirn_tcp_close(conn);
    close(peer);
}

/* Goal: an adopted Unix socket works, but has no addresses of ours.
 * Method: a socketpair. */
TEST(tcp_adopted_unix_socket_has_no_address)
{
    pirn_addr addr;
    pirn_tcp *conn;
    char byte;
    int fds[2];

    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
    EXPECT_EQ(-EAFNOSUPPORT, pirn_tcp_local(conn, &addr));
    peer_send(fds[1], "x", 1);
    EXPECT_EQ(1, pirn_tcp_read(conn, &byte, 1, PIRN_EXPIRED));
    pirn_tcp_close(conn);
    close(fds[1]);
}

/* Goal: options reach the socket, and bad values leave the old ones.
 * Method: read them back from the descriptor. */
TEST(tcp_options_reach_the_socket)
{
    int fds[2];
    pirn_tcp *conn;
    const pirn_keepalive probe = {7, 3, 2};

    peer_pair(fds);
    EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
    EXPECT_EQ(0, pirn_tcp_set_nodelay(conn, true));
    EXPECT_NE(0, option_of(fds[0], IPPROTO_TCP, TCP_NODELAY));
    EXPECT_EQ(0, pirn_tcp_set_nodelay(conn, false));
    EXPECT_EQ(0, option_of(fds[0], IPPROTO_TCP, TCP_NODELAY));

    EXPECT_EQ(0, pirn_tcp_set_keepalive(conn, probe));
    EXPECT_EQ(1, option_of(fds[0], SOL_SOCKET, SO_KEEPALIVE));
    EXPECT_EQ(7, option_of(fds[0], IPPROTO_TCP, TCP_KEEPIDLE));
    EXPECT_EQ(3, option_of(fds[0], IPPROTO_TCP, TCP_KEEPINTVL));
    EXPECT_EQ(2, option_of(fds[0], IPPROTO_TCP, TCP_KEEPCNT));
    EXPECT_EQ(-EINVAL, pirn_tcp_set_keepalive(conn, (pirn_keepalive){0, 3, 2}));
    EXPECT_EQ(-EINVAL,
              pirn_tcp_set_keepalive(conn, (pirn_keepalive){7, 32768, 2}));
    EXPECT_EQ(-EINVAL,
              pirn_tcp_set_keepalive(conn, (pirn_keepalive){7, 3, 128}));
    EXPECT_EQ(1, option_of(fds[0], SOL_SOCKET, SO_KEEPALIVE));
    EXPECT_EQ(0, pirn_tcp_set_keepalive(conn, (pirn_keepalive){0}));
    EXPECT_EQ(0, option_of(fds[0], SOL_SOCKET, SO_KEEPALIVE));

    EXPECT_EQ(0, pirn_tcp_set_send_buffer(conn, 20000));
    EXPECT_EQ(40000, option_of(fds[0], SOL_SOCKET, SO_SNDBUF));
    EXPECT_EQ(0, pirn_tcp_set_receive_buffer(conn, 30000));
    EXPECT_EQ(60000, option_of(fds[0], SOL_SOCKET, SO_RCVBUF));
    EXPECT_EQ(-EINVAL, pirn_tcp_set_send_buffer(conn, 0));
    EXPECT_EQ(-EINVAL, pirn_tcp_set_receive_buffer(conn, UINT32_MAX));
    pirn_tcp_close(conn);
    close(fds[1]);
}

/* Goal: every call on a closed connection says so.
 * Method: a second handle after the close. */
TEST(tcp_calls_after_close_answer_eclosed)
{
    int peer;
    pirn_tcp *conn = pirn_tcp_ref(peer_adopted(&peer));
    pirn_addr addr;
    char byte;

    pirn_tcp_close(conn);
    EXPECT_EQ(PIRN_ECLOSED, pirn_tcp_read(conn, &byte, 1, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, pirn_tcp_read(conn, &byte, 0, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, pirn_tcp_write(conn, "x", 1, PIRN_NEVER));
    EXPECT_EQ(PIRN_ECLOSED, pirn_tcp_shutdown(conn, PIRN_HALF_WRITE));
    EXPECT_EQ(PIRN_ECLOSED, pirn_tcp_local(conn, &addr));
    EXPECT_EQ(PIRN_ECLOSED, pirn_tcp_peer(conn, &addr));
    EXPECT_EQ(PIRN_ECLOSED, pirn_tcp_set_nodelay(conn, true));
    EXPECT_EQ(PIRN_ECLOSED, pirn_tcp_release(conn));
    pirn_tcp_unref(conn);
    close(peer);
}

/* Goal: half-close ends one direction and keeps the other.
 * Method: the peer reads the end and still answers; bad halves are refused. */
TEST(tcp_shutdown_ends_one_half)
{
    int peer;
    pirn_tcp *conn = peer_adopted(&peer);
    char buf[8] = "";

    EXPECT_EQ(-EINVAL, pirn_tcp_shutdown(conn, (enum pirn_half)3));
    EXPECT_EQ(-EINVAL, pirn_tcp_shutdown(NULL, PIRN_HALF_READ));
    EXPECT_EQ(0, pirn_tcp_shutdown(conn, PIRN_HALF_WRITE));
    EXPECT_EQ(0, recv(peer, buf, sizeof buf, 0));
    EXPECT_EQ(-EPIPE, pirn_tcp_write(conn, "x", 1, PIRN_EXPIRED));
    peer_send(peer, "yes", 3);
    EXPECT_EQ(0, pirn_tcp_read_exact(conn, buf, 3, PIRN_NEVER));
    EXPECT_STR_EQ("yes", buf);
    EXPECT_EQ(0, pirn_tcp_shutdown(conn, PIRN_HALF_READ));
    EXPECT_EQ(0, pirn_tcp_read(conn, buf, 1, PIRN_EXPIRED));
    peer_reset(peer);
    peer_await(pirn_tcp_release(conn), POLLHUP);
}

/* Goal: a dead connection has no ends any more.
 * Method: reset by the peer. */
TEST(tcp_ends_of_a_dead_connection_answer_enotconn)
{
    int fds[2];
    pirn_tcp *conn;
    pirn_addr addr;

    peer_pair(fds);
    EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
    peer_reset(fds[1]);
    peer_await(fds[0], POLLIN);
    EXPECT_EQ(-ENOTCONN, pirn_tcp_peer(conn, &addr));
    EXPECT_EQ(-ENOTCONN, pirn_tcp_shutdown(conn, PIRN_HALF_BOTH));
    pirn_tcp_close(conn);
}

/* Goal: NULL is nobody.
 * Method: every call that takes it. */
TEST(tcp_null_is_no_connection)
{
    char byte;

    pirn_tcp_close(NULL);
    pirn_tcp_unref(NULL);
    EXPECT_PTR_EQ(NULL, pirn_tcp_ref(NULL));
    EXPECT_EQ(-EINVAL, pirn_tcp_release(NULL));
    EXPECT_EQ(-EINVAL, pirn_tcp_read(NULL, &byte, 1, PIRN_EXPIRED));
    EXPECT_EQ(-EINVAL, pirn_tcp_write(NULL, &byte, 1, PIRN_EXPIRED));
    EXPECT_EQ(-EINVAL, pirn_tcp_set_nodelay(NULL, true));
}
