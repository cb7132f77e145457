/* SPDX-License-Identifier: MIT */
/* src/sys/hostile.c - a system that does everything it may do, for the hostile
 * build.
 *
 * Waits end for no reason, wakes reach more than were asked for, transfers move
 * less than they could or would block although there is data, a thread that is
 * started or woken runs before the caller goes on.  All of it is allowed, most of
 * it is rare, and code that cannot bear it is wrong.
 *
 * The wait set is edge-triggered.  A kernel that says EAGAIN, or moves less than
 * it could, and has more an instant later, also reports that; so do we, by arming
 * the descriptor anew.  Therefore it is remembered what is in which set.
 *
 * In the environment
 *     PIRN_HOSTILE_SEED=N       make other choices; which call meets which is up to
 *                               the threads all the same
 *     PIRN_HOSTILE=waits        leave transfers and accept alone
 *     PIRN_HOSTILE=memory       leave all calls alone
 * for tests that count what the system does.
 */
#define _GNU_SOURCE

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/lock.h"
#include "sys/fork.h"
#include "sys/linux.h"

enum { FDS_MAX = 4096, TURNS_MAX = 50 };

/* Filled before anybody can use it. */
struct pirn__sys pirn__sys_hostile;

static PIRN_ATOMIC(uint64_t) choices;

/* What was added to a wait set, by descriptor. */
static struct entry {
    bool armed;
    int epoll_fd;
    struct epoll_event event;
} entries[FDS_MAX];
static pirn_lock entries_lock;

/* One time of so many. */
static bool chance(uint64_t of)
{
    /* relaxed: any number will do. */
    uint64_t x = pirn__add(&choices, UINT64_C(0x9e3779b97f4a7c15), relaxed);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((x ^ (x >> 31)) >> 32) % of == 0;
}

/* Let others go first. */
static void dawdle(void)
{
    int turns = chance(8) ? TURNS_MAX : chance(2);

    for (int i = 0; i < turns; i++)
        sched_yield();
}

/* Waits and wakes. */

static int hostile_futex_wait(uint32_t *word, uint32_t expected,
                              pirn_deadline deadline)
{
    return chance(4) ? 0
                     : pirn__linux_futex_wait(word, expected, deadline);
}

static void hostile_futex_wake(uint32_t *word, int count)
{
    pirn__linux_futex_wake(word, chance(4) ? INT_MAX : count);
    dawdle();
}

static int hostile_thread_start(const char *name, size_t stack_size,
                                void (*fn)(void *arg), void *arg)
{
    int rc = pirn__linux_thread_start(name, stack_size, fn, arg);

    dawdle();
    return rc;
}

static int hostile_eventfd_signal(int fd)
{
    int rc = pirn__linux_eventfd_signal(fd);

    dawdle();
    return rc;
}

static int hostile_poll(struct pollfd *fds, int count, pirn_deadline deadline)
{
    return pirn__linux_poll(fds, count, chance(4) ? PIRN_EXPIRED : deadline);
}

static int hostile_epoll_wait(int epoll_fd, struct epoll_event *events,
                              int capacity, pirn_deadline deadline)
{
    return pirn__linux_epoll_wait(epoll_fd, events, chance(4) ? 1 : capacity,
                                  chance(4) ? PIRN_EXPIRED : deadline);
}

/* The wait set. */

static struct entry *entry_of(int fd)
{
    return fd >= 0 && fd < FDS_MAX ? &entries[fd] : NULL;
}

static void forget(int fd)
{
    struct entry *entry = entry_of(fd);

    pirn__lock(&entries_lock);
    if (entry != NULL)
        entry->armed = false;
    pirn__unlock(&entries_lock);
}

static int hostile_epoll_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    struct entry *entry = entry_of(fd);
    int rc;

    pirn__lock(&entries_lock);
    rc = pirn__linux_epoll_add(epoll_fd, fd, events, data);
    if (rc == 0 && entry != NULL)
        *entry = (struct entry){true, epoll_fd, {events, {.ptr = data}}};
    pirn__unlock(&entries_lock);
    dawdle();
    return rc;
}

static int hostile_epoll_remove(int epoll_fd, int fd)
{
    forget(fd);
    return pirn__linux_epoll_remove(epoll_fd, fd);
}

static void hostile_close(int fd)
{
    forget(fd);
    pirn__linux_close(fd);
}

/* From now on there is news of this descriptor, if it is ready. */
static void report_again(int fd)
{
    struct entry *entry = entry_of(fd);

    pirn__lock(&entries_lock);
    if (entry != NULL && entry->armed)
        (void)epoll_ctl(entry->epoll_fd, EPOLL_CTL_MOD, fd, &entry->event);
    pirn__unlock(&entries_lock);
}

/* Transfers. */

/* Only what is not blocking may answer that it would block; what has whole
 * values only is left alone, and so is a message to the user. */
static bool may_tamper(int fd)
{
    switch ((enum pirn__fd_kind)pirn__linux_fd_kind(fd)) {
    case PIRN__FD_STREAM_SOCKET:
    case PIRN__FD_TCP:
    case PIRN__FD_PIPE:
        return fd > STDERR_FILENO && pirn__linux_get_nonblock(fd) == 1;
    case PIRN__FD_OTHER:
    case PIRN__FD_CHARACTER:
    case PIRN__FD_REGULAR:
        break;
    }
    return false;
}

/* How much to move; 0: it would block. */
static size_t tamper(int fd, size_t len)
{
    if (len == 0 || !may_tamper(fd))
        return SIZE_MAX;
    if (chance(16))
        return 0;
    if (!chance(4))
        return SIZE_MAX;
    return chance(2) ? 1 : len / 2 + 1;
}

static size_t at_most(size_t len, size_t limit)
{
    return len < limit ? len : limit;
}

/* Call `fn` for a part, or not at all. */
#define TRANSFER(fd, len, ...) \
    const size_t limit = tamper((fd), (len)); \
    ssize_t n = limit == 0 ? -EAGAIN : (__VA_ARGS__); \
    if (limit != SIZE_MAX) \
        report_again(fd); \
    return n

static ssize_t hostile_read(int fd, void *buf, size_t len)
{
    TRANSFER(fd, len, pirn__linux_read(fd, buf, at_most(len, limit)));
}

static ssize_t hostile_write(int fd, const void *buf, size_t len)
{
    TRANSFER(fd, len, pirn__linux_write(fd, buf, at_most(len, limit)));
}

static ssize_t hostile_recv(int fd, void *buf, size_t len)
{
    TRANSFER(fd, len, pirn__linux_recv(fd, buf, at_most(len, limit)));
}

static ssize_t hostile_send(int fd, const void *buf, size_t len)
{
    TRANSFER(fd, len, pirn__linux_send(fd, buf, at_most(len, limit)));
}

/* The first part that is not empty. */
static struct iovec first_of(const struct iovec *vec, int count)
{
    struct iovec first = {NULL, 0};

    for (int i = 0; i < count && first.iov_len == 0; i++)
        first = vec[i];
    return first;
}

static ssize_t
transfer_vector(ssize_t (*fn)(int fd, const struct iovec *vec, int count),
                int fd, const struct iovec *vec, int count)
{
    struct iovec first = first_of(vec, count);
    const size_t limit = tamper(fd, first.iov_len);
    ssize_t n;

    if (limit == SIZE_MAX)
        return fn(fd, vec, count);
    first.iov_len = at_most(first.iov_len, limit);
    n = limit == 0 ? -EAGAIN : fn(fd, &first, 1);
    report_again(fd);
    return n;
}

static ssize_t hostile_readv(int fd, const struct iovec *vec, int count)
{
    return transfer_vector(pirn__linux_readv, fd, vec, count);
}

static ssize_t hostile_writev(int fd, const struct iovec *vec, int count)
{
    return transfer_vector(pirn__linux_writev, fd, vec, count);
}

static ssize_t hostile_sendv(int fd, const struct iovec *vec, int count)
{
    return transfer_vector(pirn__linux_sendv, fd, vec, count);
}

static ssize_t hostile_sendfile(int fd, int file, off_t *offset, size_t count)
{
    TRANSFER(fd, count,
             pirn__linux_sendfile(fd, file, offset, at_most(count, limit)));
}

static int hostile_accept(int fd, struct sockaddr *address, unsigned *len)
{
    bool aborted = chance(16);

    if (!aborted && !chance(8))
        return pirn__linux_accept(fd, address, len);
    report_again(fd);
    return aborted ? -ECONNABORTED : -EAGAIN;
}

static void take_seed(void)
{
    const char *text = getenv("PIRN_HOSTILE_SEED");

    if (text != NULL) {
        /* relaxed: any number will do. */
        pirn__store(&choices, strtoull(text, NULL, 0), relaxed);
    }
}

static void make_waits_hostile(struct pirn__sys *sys)
{
    sys->futex_wait = hostile_futex_wait;
    sys->futex_wake = hostile_futex_wake;
    sys->thread_start = hostile_thread_start;
    sys->eventfd_signal = hostile_eventfd_signal;
    sys->poll = hostile_poll;
    sys->epoll_wait = hostile_epoll_wait;
}

static void make_transfers_hostile(struct pirn__sys *sys)
{
    sys->epoll_add = hostile_epoll_add;
    sys->epoll_remove = hostile_epoll_remove;
    sys->close = hostile_close;
    sys->read = hostile_read;
    sys->write = hostile_write;
    sys->recv = hostile_recv;
    sys->send = hostile_send;
    sys->readv = hostile_readv;
    sys->writev = hostile_writev;
    sys->sendv = hostile_sendv;
    sys->sendfile = hostile_sendfile;
    sys->accept = hostile_accept;
}

/* The earliest priority that is not reserved: other constructors may already use
 * the library. */
__attribute__((constructor(101))) static void turn_hostile(void)
{
    const char *what = getenv("PIRN_HOSTILE");

    take_seed();
    pirn__fork_guard(&entries_lock);
    pirn__sys_hostile = pirn__sys_linux;
    if (what != NULL && strcmp(what, "memory") == 0)
        return;
    make_waits_hostile(&pirn__sys_hostile);
    if (what == NULL || strcmp(what, "waits") != 0)
        make_transfers_hostile(&pirn__sys_hostile);
}
