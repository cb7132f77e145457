/* SPDX-License-Identifier: MIT */
/* src/sys/linux_fd.c - descriptors of any kind.
 *
 * A write to a pipe without readers, and sendfile to a dead connection, raise
 * SIGPIPE in the calling thread.  The disposition belongs to the program, so
 * the signal is blocked around the call and the one that the call raised is
 * taken out of the pending set again.  RWF_NOSIGNAL (Linux 6.18) would save
 * the two extra system calls, but only for files with a write_iter.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys/linux.h"

/* SIGPIPE as it stood before a call that may raise it. */
struct pipe_guard {
    bool was_blocked;
    bool was_pending;
};

static struct pipe_guard block_sigpipe(void)
{
    struct pipe_guard guard = { .was_blocked = false };
    sigset_t mask, before, pending;

    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &mask, &before);
    guard.was_blocked = sigismember(&before, SIGPIPE) == 1;
    /* Had it not been blocked, a pending one would have been delivered. */
    if (guard.was_blocked && sigpending(&pending) == 0)
        guard.was_pending = sigismember(&pending, SIGPIPE) == 1;
    return guard;
}

/* `result` is what the call answered: only EPIPE comes with a signal. */
static void restore_sigpipe(struct pipe_guard guard, ssize_t result)
{
    const struct timespec no_time = { 0 };
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    /* Pending signals do not add up, so one that was pending before is kept
     * and swallows ours. */
    if (result == -EPIPE && !guard.was_pending)
        (void)sigtimedwait(&mask, NULL, &no_time);
    if (!guard.was_blocked)
        pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
}

void pirn__linux_close(int fd)
{
    /* Linux frees the number even when close reports EINTR. */
    close(fd);
}

ssize_t pirn__linux_read(int fd, void *buf, size_t len)
{
    ssize_t n;

    do {
        n = read(fd, buf, len);
    } while (n < 0 && errno == EINTR);
    return pirn__linux_count(n);
}

ssize_t pirn__linux_pread(int fd, void *buf, size_t len, off_t offset)
{
    ssize_t n;

    do {
        n = pread(fd, buf, len, offset);
    } while (n < 0 && errno == EINTR);
    return pirn__linux_count(n);
}

ssize_t pirn__linux_write(int fd, const void *buf, size_t len)
{
    struct pipe_guard guard = block_sigpipe();
    ssize_t n;

    do {
        n = write(fd, buf, len);
    } while (n < 0 && errno == EINTR);
    n = pirn__linux_count(n);
    restore_sigpipe(guard, n);
    return n;
}

ssize_t pirn__linux_readv(int fd, const struct iovec *vec, int count)
{
    ssize_t n;

    do {
        n = readv(fd, vec, count);
    } while (n < 0 && errno == EINTR);
    return pirn__linux_count(n);
}

ssize_t pirn__linux_writev(int fd, const struct iovec *vec, int count)
{
    struct pipe_guard guard = block_sigpipe();
    ssize_t n;

    do {
        n = writev(fd, vec, count);
    } while (n < 0 && errno == EINTR);
    n = pirn__linux_count(n);
    restore_sigpipe(guard, n);
    return n;
}

ssize_t pirn__linux_sendfile(int socket, int file, off_t *offset, size_t count)
{
    struct pipe_guard guard = block_sigpipe();
    ssize_t n;

    do {
        n = sendfile(socket, file, offset, count);
    } while (n < 0 && errno == EINTR);
    n = pirn__linux_count(n);
    restore_sigpipe(guard, n);
    return n;
}

int pirn__linux_eventfd(void)
{
    return pirn__linux_code(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int pirn__linux_eventfd_signal(int fd)
{
    const uint64_t one = 1;
    ssize_t n;

    do {
        n = write(fd, &one, sizeof one);
    } while (n < 0 && errno == EINTR);
    /* EAGAIN means that the counter is at its end: it is readable already. */
    if (n < 0 && errno != EAGAIN)
        return -errno;
    return 0;
}

int pirn__linux_timerfd(void)
{
    return pirn__linux_code(
        timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}

int pirn__linux_timerfd_set(int fd, pirn_deadline deadline)
{
    struct itimerspec when = { 0 };

    if (deadline.ns != PIRN_NEVER.ns)
        when.it_value = pirn__linux_timespec(deadline.ns);
    /* All zero would disarm. */
    if (deadline.ns == 0)
        when.it_value.tv_nsec = 1;
    return pirn__linux_code(
        timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL));
}

/* One integer socket option; -1 when the kernel does not say. */
static int socket_number(int fd, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

static int socket_kind(int fd)
{
    int family = socket_number(fd, SO_DOMAIN);

    if (socket_number(fd, SO_TYPE) != SOCK_STREAM)
        return PIRN__FD_OTHER;
    if (family != AF_INET && family != AF_INET6)
        return PIRN__FD_STREAM_SOCKET;
    /* SCTP and MPTCP are streams too, but made no promise on short counts. */
    return socket_number(fd, SO_PROTOCOL) == IPPROTO_TCP
               ? PIRN__FD_TCP
               : PIRN__FD_STREAM_SOCKET;
}

static int pipe_kind(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    /* In packet mode a short count ends a packet and says nothing of the next
     * one.  The kernel shows the mode at the writing end only. */
    return flags >= 0 && (flags & O_DIRECT) == 0 ? PIRN__FD_PIPE
                                                 : PIRN__FD_OTHER;
}

int pirn__linux_fd_kind(int fd)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    switch (status.st_mode & S_IFMT) {
    case S_IFSOCK:
        return socket_kind(fd);
    case S_IFIFO:
        return pipe_kind(fd);
    case S_IFCHR:
        return PIRN__FD_CHARACTER;
    case S_IFREG:
    case S_IFDIR:
    case S_IFBLK:
        return PIRN__FD_REGULAR;
    default: /* eventfd, timerfd, epoll and their kind have no type */
        return PIRN__FD_OTHER;
    }
}

int pirn__linux_get_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    return (flags & O_NONBLOCK) != 0;
}

int pirn__linux_set_nonblock(int fd, bool nonblock)
{
    int flags = fcntl(fd, F_GETFL);
    bool before;

    if (flags < 0)
        return -errno;
    before = (flags & O_NONBLOCK) != 0;
    if (before == nonblock)
        return before;
    if (fcntl(fd, F_SETFL, flags ^ O_NONBLOCK) < 0)
        return -errno;
    return before;
}
