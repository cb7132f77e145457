/* SPDX-License-Identifier: MIT */
/* src/sys/linux_socket.c - stream sockets. */
#define _GNU_SOURCE

#include <sys/socket.h>
#include <sys/uio.h>

#include "sys/linux.h"

int pirn__linux_socket(int family)
{
    return pirn__linux_code(
        socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int pirn__linux_bind(int fd, const struct sockaddr *address, unsigned len)
{
    return pirn__linux_code(bind(fd, address, len));
}

int pirn__linux_listen(int fd, int backlog)
{
    return pirn__linux_code(listen(fd, backlog));
}

int pirn__linux_accept(int fd, struct sockaddr *address, unsigned *len)
{
    int rc;

    do {
        rc = accept4(fd, address, len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (rc < 0 && errno == EINTR);
    return pirn__linux_code(rc);
}

int pirn__linux_connect(int fd, const struct sockaddr *address, unsigned len)
{
    int rc = pirn__linux_code(connect(fd, address, len));

    /* An interrupted connect goes on; calling again would say EALREADY. */
    return rc == -EINTR ? -EINPROGRESS : rc;
}

static ssize_t send_with(int fd, const void *buf, size_t len, int flags)
{
    ssize_t n;

    do {
        n = send(fd, buf, len, MSG_NOSIGNAL | flags);
    } while (n < 0 && errno == EINTR);
    return pirn__linux_count(n);
}

ssize_t pirn__linux_send(int fd, const void *buf, size_t len)
{
    return send_with(fd, buf, len, 0);
}

ssize_t pirn__linux_send_more(int fd, const void *buf, size_t len)
{
    return send_with(fd, buf, len, MSG_MORE);
}

ssize_t pirn__linux_recv(int fd, void *buf, size_t len)
{
    ssize_t n;

    do {
        n = recv(fd, buf, len, 0);
    } while (n < 0 && errno == EINTR);
    return pirn__linux_count(n);
}

ssize_t pirn__linux_sendv(int fd, const struct iovec *vec, int count)
{
    /* The kernel does not write to the vector of a send. */
    struct msghdr message = {
        .msg_iov = (struct iovec *)(uintptr_t)vec,
        .msg_iovlen = (size_t)count,
    };
    ssize_t n;

    do {
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return pirn__linux_count(n);
}

int pirn__linux_shutdown(int fd, int how)
{
    return pirn__linux_code(shutdown(fd, how));
}

int pirn__linux_getsockopt(int fd, int level, int name, void *value,
                           unsigned *len)
{
    return pirn__linux_code(getsockopt(fd, level, name, value, len));
}

int pirn__linux_setsockopt(int fd, int level, int name, const void *value,
                           unsigned len)
{
    return pirn__linux_code(setsockopt(fd, level, name, value, len));
}

int pirn__linux_sockname(int fd, struct sockaddr *address, unsigned *len)
{
    return pirn__linux_code(getsockname(fd, address, len));
}

int pirn__linux_peername(int fd, struct sockaddr *address, unsigned *len)
{
    return pirn__linux_code(getpeername(fd, address, len));
}
