/* SPDX-License-Identifier: MIT */
/* tests/engine/socket_peer.h - the other end of a connection: plain blocking
 * sockets on the loopback, which know nothing of the library.
 */
#ifndef PIRN_TESTS_ENGINE_SOCKET_PEER_H
#define PIRN_TESTS_ENGINE_SOCKET_PEER_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pirn/net.h>

#include "engine/test.h"

static inline struct sockaddr_in peer_address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

static inline uint16_t peer_port(int fd)
{
    struct sockaddr_in name;
    socklen_t len = sizeof name;

    EXPECT_EQ(0, getsockname(fd, (struct sockaddr *)&name, &len));
    return ntohs(name.sin_port);
}

/* A listening socket on a free port. */
static inline int peer_listen(int backlog)
{
    struct sockaddr_in name = peer_address(0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    EXPECT_EQ(0, bind(fd, (struct sockaddr *)&name, sizeof name));
    EXPECT_EQ(0, listen(fd, backlog));
    return fd;
}

static inline int peer_connect(uint16_t port)
{
    struct sockaddr_in name = peer_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    EXPECT_EQ(0, connect(fd, (struct sockaddr *)&name, sizeof name));
    return fd;
}

/* A port where nobody listens. */
static inline uint16_t peer_dead_port(void)
{
    int fd = peer_listen(1);
    uint16_t port = peer_port(fd);

    close(fd);
    return port;
}

static inline char *peer_text(char text[PIRN_ADDR_SIZE], uint16_t port)
{
    (void)snprintf(text, PIRN_ADDR_SIZE, "127.0.0.1:%u", port);
    return text;
}

/* Two ends of one TCP connection. */
static inline void peer_pair(int fds[2])
{
    int listener = peer_listen(1);

    fds[1] = peer_connect(peer_port(listener));
    fds[0] = accept(listener, NULL, NULL);
    EXPECT_GE(fds[0], 0);
    close(listener);
}

/* A connection of the library and its peer. */
static inline pirn_tcp *peer_adopted(int *peer)
{
    pirn_tcp *conn = NULL;
    int fds[2];

    peer_pair(fds);
    *peer = fds[1];
    EXPECT_EQ(0, pirn_tcp_adopt(fds[0], &conn));
    return conn;
}

static inline void peer_send(int fd, const void *data, size_t len)
{
    EXPECT_EQ((ssize_t)len, send(fd, data, len, MSG_NOSIGNAL));
}

static inline void peer_expect(int fd, const char *text)
{
    char buf[256] = "";
    size_t len = strlen(text);

    EXPECT_EQ((ssize_t)len, recv(fd, buf, len, MSG_WAITALL));
    EXPECT_STR_EQ(text, buf);
}

/* Close so that the other end sees a reset. */
static inline void peer_reset(int fd)
{
    const struct linger now = {.l_onoff = 1};

    EXPECT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
    close(fd);
}

/* Wait until `fd` shows one of `events`; the loopback needs a moment now and
 * then. */
static inline void peer_await(int fd, short events)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};

    EXPECT_EQ(1, poll(&poll_fd, 1, 10000));
}

#endif /* PIRN_TESTS_ENGINE_SOCKET_PEER_H */
