/* SPDX-License-Identifier: MIT */
/* bench/peers/epoll_echo.c - the plain server that Pirn is held against.
 *
 * What a C programmer writes by hand when nothing else is asked: one process,
 * level-triggered epoll, epoll_wait() for 1024 events, one read and one write
 * for each, no timers, no state per connection but its descriptor, one buffer
 * for all.  A write that does not take everything ends the connection, which
 * does not happen with the 64-byte messages of the load.
 *
 *     epoll_echo        prints "port N" and serves until it is killed
 */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUF_SIZE = 4096, EVENT_COUNT = 1024 };

static void watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    peer_require(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0,
                 "epoll_ctl");
}

static void accept_all(int epoll_fd, int listener)
{
    int conn;

    while ((conn = accept4(listener, NULL, NULL,
                           SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        watch(epoll_fd, conn);
}

static void echo_once(int conn)
{
    static char buf[BUF_SIZE];
    ssize_t n = read(conn, buf, sizeof buf);

    if (n < 0 && errno == EAGAIN)
        return;
    /* Closing takes the descriptor out of the epoll set. */
    if (n <= 0 || write(conn, buf, (size_t)n) != n)
        close(conn);
}

int main(void)
{
    static struct epoll_event events[EVENT_COUNT];
    int listener = peer_listen();
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    peer_require(epoll_fd >= 0, "epoll_create1");
    watch(epoll_fd, listener);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENT_COUNT, -1);

        for (int i = 0; i < count; i++)
            if (events[i].data.fd == listener)
                accept_all(epoll_fd, listener);
            else
                echo_once(events[i].data.fd);
    }
}
