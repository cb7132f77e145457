/* SPDX-License-Identifier: MIT */
/* src/sys/linux_wait.c - waiting for descriptors: poll and epoll.
 *
 * Deadlines are absolute and these calls take a length, so a wait with a real
 * deadline costs one clock read; the two ends of time cost none.  A signal
 * ends a wait early with 0, and the caller, who loops anyway, looks again.
 */
#define _GNU_SOURCE

#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "sys/linux.h"

/* The same number on every architecture, since Linux 5.11. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

enum { NS_PER_MS = 1000 * 1000 };

/* What the kernel takes, whatever time_t the C library was built with. */
struct kernel_timespec {
    int64_t seconds;
    int64_t nanoseconds;
};

static PIRN_ATOMIC(bool) pwait2_missing;

int pirn__linux_poll(struct pollfd *fds, int count, pirn_deadline deadline)
{
    struct timespec left = { 0 };
    bool endless = deadline.ns == PIRN_NEVER.ns;
    int rc;

    if (!endless && deadline.ns != 0)
        left = pirn__linux_timespec(pirn__linux_remaining_ns(deadline));
    rc = ppoll(fds, (nfds_t)count, endless ? NULL : &left, NULL);
    return rc < 0 && errno == EINTR ? 0 : pirn__linux_code(rc);
}

int pirn__linux_epoll_create(void)
{
    return pirn__linux_code(epoll_create1(EPOLL_CLOEXEC));
}

int pirn__linux_epoll_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    struct epoll_event event = { .events = events, .data.ptr = data };

    return pirn__linux_code(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
}

int pirn__linux_epoll_remove(int epoll_fd, int fd)
{
    struct epoll_event unused = { 0 };

    return pirn__linux_code(epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, &unused));
}

/* Rounded up: a wait that ends early makes the caller spin. */
static int milliseconds_of(uint64_t ns)
{
    uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);

    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static int wait_ms(int epoll_fd, struct epoll_event *events, int capacity,
                   int timeout_ms)
{
    int rc = epoll_wait(epoll_fd, events, capacity, timeout_ms);

    return rc < 0 && errno == EINTR ? 0 : pirn__linux_code(rc);
}

/* -ENOSYS where only milliseconds are to be had. */
static int wait_ns(int epoll_fd, struct epoll_event *events, int capacity,
                   uint64_t ns)
{
    struct kernel_timespec left = {
        .seconds = (int64_t)(ns / PIRN__NS_PER_S),
        .nanoseconds = (int64_t)(ns % PIRN__NS_PER_S),
    };
    int rc = (int)syscall(SYS_epoll_pwait2, epoll_fd, events, capacity, &left,
                          NULL, (size_t)0);

    if (rc >= 0)
        return rc;
    if (errno == EINTR)
        return 0;
    /* Sandboxes of that age answer EPERM to calls that they do not know. */
    return errno == EPERM ? -ENOSYS : -errno;
}

int pirn__linux_epoll_wait(int epoll_fd, struct epoll_event *events,
                           int capacity, pirn_deadline deadline)
{
    uint64_t ns;
    int rc;

    if (deadline.ns == 0)
        return wait_ms(epoll_fd, events, capacity, 0);
    if (deadline.ns == PIRN_NEVER.ns)
        return wait_ms(epoll_fd, events, capacity, -1);
    ns = pirn__linux_remaining_ns(deadline);
    /* relaxed: a hint that saves a system call; nothing is read through it. */
    if (pirn__load(&pwait2_missing, relaxed))
        return wait_ms(epoll_fd, events, capacity, milliseconds_of(ns));
    rc = wait_ns(epoll_fd, events, capacity, ns);
    if (rc != -ENOSYS)
        return rc;
    /* relaxed: as above. */
    pirn__store(&pwait2_missing, true, relaxed);
    return wait_ms(epoll_fd, events, capacity, milliseconds_of(ns));
}
