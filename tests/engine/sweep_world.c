/* SPDX-License-Identifier: MIT */
/* tests/engine/sweep_world.c - a system table whose calls may fail.
 *
 * The wait set is edge-triggered.  A kernel that says EAGAIN, or transfers less
 * than it could, and has more an instant later, also reports that: so must we,
 * by arming the descriptor anew.  Therefore the world knows what is in which
 * set.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "base/atomic.h"
#include "engine/sweep_internal.h"
#include "sys/sys.h"

enum { FDS_MAX = 4096 };

static const struct pirn__sys *const real = &pirn__sys_linux;

/* In which set a descriptor is, and how. */
static struct entry {
    bool is_armed;
    int epoll_fd;
    struct epoll_event event;
} entries[FDS_MAX];
static pthread_mutex_t entries_mutex = PTHREAD_MUTEX_INITIALIZER;

static PIRN_ATOMIC(int64_t) mapped_bytes;

static int struck(enum sweep__call call)
{
    const struct sweep__fault *fault = sweep__strike(call);

    return fault == NULL ? 0 : fault->error;
}

/* Threads and memory. */

static int world_thread_start(const char *name, size_t stack_size,
                              void (*fn)(void *arg), void *arg)
{
    int error = struck(SWEEP__THREAD);

    return error < 0 ? error : real->thread_start(name, stack_size, fn, arg);
}

static int world_map(size_t size, void **out)
{
    int rc = struck(SWEEP__MAP);

    *out = NULL;
    if (rc == 0)
        rc = real->map(size, out);
    if (rc == 0) {
        /* relaxed: a count; the round joins its threads before it is read. */
        pirn__add(&mapped_bytes, (int64_t)size, relaxed);
    }
    return rc;
}

static int world_unmap(void *base, size_t size)
{
    int rc = struck(SWEEP__UNMAP);

    if (rc == 0)
        rc = real->unmap(base, size);
    if (rc == 0) {
        /* relaxed: as above. */
        pirn__sub(&mapped_bytes, (int64_t)size, relaxed);
    }
    return rc;
}

int64_t sweep__world_mapped_bytes(void)
{
    /* relaxed: as above. */
    return pirn__load(&mapped_bytes, relaxed);
}

static int world_guard_install(void *base, size_t size)
{
    int error = struck(SWEEP__GUARD);

    if (sweep__concerns(SWEEP__PROTECT))
        return -EINVAL;
    return error < 0 ? error : real->guard_install(base, size);
}

static int world_protect_none(void *base, size_t size)
{
    int error = struck(SWEEP__PROTECT);

    return error < 0 ? error : real->protect_none(base, size);
}

static int world_discard(void *base, size_t size)
{
    int error = struck(SWEEP__DISCARD);

    return error < 0 ? error : real->discard(base, size);
}

static int world_resident(void *base, size_t size, unsigned char *pages)
{
    int error = struck(SWEEP__RESIDENT);

    return error < 0 ? error : real->resident(base, size, pages);
}

static int world_mapping_limit(void)
{
    int error = struck(SWEEP__LIMIT);

    return error < 0 ? error : real->mapping_limit();
}

/* Descriptors. */

static int world_eventfd(void)
{
    int error = struck(SWEEP__EVENTFD);

    return error < 0 ? error : real->eventfd();
}

static int world_timerfd(void)
{
    int error = struck(SWEEP__TIMERFD);

    return error < 0 ? error : real->timerfd();
}

static int world_epoll_create(void)
{
    int error = struck(SWEEP__EPOLL);

    return error < 0 ? error : real->epoll_create();
}

static struct entry *entry_of(int fd)
{
    return fd >= 0 && fd < FDS_MAX ? &entries[fd] : NULL;
}

static void forget_entry(int fd)
{
    struct entry *entry = entry_of(fd);

    pthread_mutex_lock(&entries_mutex);
    if (entry != NULL)
        entry->is_armed = false;
    pthread_mutex_unlock(&entries_mutex);
}

static int world_epoll_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    int rc = struck(SWEEP__EPOLL_ADD);
    struct entry *entry = entry_of(fd);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&entries_mutex);
    rc = real->epoll_add(epoll_fd, fd, events, data);
    if (rc == 0 && entry != NULL)
        *entry = (struct entry){true, epoll_fd, {events, {.ptr = data}}};
    pthread_mutex_unlock(&entries_mutex);
    return rc;
}

static int world_epoll_remove(int epoll_fd, int fd)
{
    forget_entry(fd);
    return real->epoll_remove(epoll_fd, fd);
}

static void world_close(int fd)
{
    forget_entry(fd);
    real->close(fd);
}

/* There is news of this descriptor from now on, if it is ready. */
static void report_again(int fd)
{
    struct entry *entry = entry_of(fd);

    pthread_mutex_lock(&entries_mutex);
    if (entry != NULL && entry->is_armed)
        (void)epoll_ctl(entry->epoll_fd, EPOLL_CTL_MOD, fd, &entry->event);
    pthread_mutex_unlock(&entries_mutex);
}

/* Sockets. */

static int world_socket(int family)
{
    int error = struck(SWEEP__SOCKET);

    return error < 0 ? error : real->socket(family);
}

static int world_bind(int fd, const struct sockaddr *address, unsigned len)
{
    int error = struck(SWEEP__BIND);

    return error < 0 ? error : real->bind(fd, address, len);
}

static int world_listen(int fd, int backlog)
{
    int error = struck(SWEEP__LISTEN);

    return error < 0 ? error : real->listen(fd, backlog);
}

static int world_connect(int fd, const struct sockaddr *address, unsigned len)
{
    int error = struck(SWEEP__CONNECT);

    return error < 0 ? error : real->connect(fd, address, len);
}

static int world_accept(int fd, struct sockaddr *address, unsigned *len)
{
    const struct sweep__fault *fault = sweep__strike(SWEEP__ACCEPT);

    if (fault == NULL)
        return real->accept(fd, address, len);
    report_again(fd);
    return fault->trick == SWEEP__AGAIN ? -EAGAIN : fault->error;
}

/* Transfers. */

/* What befalls one; eventfds and their kind have whole values only. */
static const struct sweep__fault *strike_transfer(enum sweep__call call, int fd)
{
    if (call != SWEEP__SENDFILE && real->fd_kind(fd) == PIRN__FD_OTHER)
        return NULL;
    return sweep__strike(call);
}

/* True if the call is over before it is made. */
static bool is_answered(const struct sweep__fault *fault, int fd, ssize_t *n)
{
    if (fault == NULL || fault->trick == SWEEP__SHORT)
        return false;
    *n = fault->trick == SWEEP__AGAIN ? -EAGAIN : fault->error;
    if (fault->trick == SWEEP__AGAIN)
        report_again(fd);
    return true;
}

static size_t cut(const struct sweep__fault *fault, size_t len)
{
    return fault != NULL && len > 1 ? 1 : len;
}

static ssize_t end_transfer(const struct sweep__fault *fault, int fd, ssize_t n)
{
    if (fault != NULL)
        report_again(fd);
    return n;
}

typedef ssize_t receive_fn(int fd, void *buf, size_t len);
typedef ssize_t send_fn(int fd, const void *buf, size_t len);
typedef ssize_t vector_fn(int fd, const struct iovec *vec, int count);

static ssize_t receive(receive_fn *fn, int fd, void *buf, size_t len)
{
    const struct sweep__fault *fault = strike_transfer(SWEEP__RECEIVE, fd);
    ssize_t n;

    if (is_answered(fault, fd, &n))
        return n;
    return end_transfer(fault, fd, fn(fd, buf, cut(fault, len)));
}

static ssize_t send_some(send_fn *fn, int fd, const void *buf, size_t len)
{
    const struct sweep__fault *fault = strike_transfer(SWEEP__SEND, fd);
    ssize_t n;

    if (is_answered(fault, fd, &n))
        return n;
    return end_transfer(fault, fd, fn(fd, buf, cut(fault, len)));
}

static ssize_t transfer_vector(vector_fn *fn, enum sweep__call call, int fd,
                               const struct iovec *vec, int count)
{
    const struct sweep__fault *fault = strike_transfer(call, fd);
    struct iovec first = {NULL, 0};
    ssize_t n;

    if (is_answered(fault, fd, &n))
        return n;
    for (int i = 0; fault != NULL && i < count && first.iov_len == 0; i++)
        first = (struct iovec){vec[i].iov_base, cut(fault, vec[i].iov_len)};
    if (first.iov_len == 0)
        return fn(fd, vec, count);
    return end_transfer(fault, fd, fn(fd, &first, 1));
}

static ssize_t world_recv(int fd, void *buf, size_t len)
{
    return receive(real->recv, fd, buf, len);
}

static ssize_t world_read(int fd, void *buf, size_t len)
{
    return receive(real->read, fd, buf, len);
}

static ssize_t world_send(int fd, const void *buf, size_t len)
{
    return send_some(real->send, fd, buf, len);
}

static ssize_t world_write(int fd, const void *buf, size_t len)
{
    return send_some(real->write, fd, buf, len);
}

static ssize_t world_readv(int fd, const struct iovec *vec, int count)
{
    return transfer_vector(real->readv, SWEEP__RECEIVE, fd, vec, count);
}

static ssize_t world_writev(int fd, const struct iovec *vec, int count)
{
    return transfer_vector(real->writev, SWEEP__SEND, fd, vec, count);
}

static ssize_t world_sendv(int fd, const struct iovec *vec, int count)
{
    return transfer_vector(real->sendv, SWEEP__SEND, fd, vec, count);
}

static ssize_t world_sendfile(int fd, int file, off_t *offset, size_t count)
{
    const struct sweep__fault *fault = strike_transfer(SWEEP__SENDFILE, fd);
    ssize_t n;

    if (is_answered(fault, fd, &n))
        return n;
    return end_transfer(fault, fd,
                        real->sendfile(fd, file, offset, cut(fault, count)));
}

/* Waits, which may all end for no reason; a look without waiting is no wait. */

static int world_futex_wait(uint32_t *word, uint32_t expected,
                            pirn_deadline deadline)
{
    return sweep__strike(SWEEP__FUTEX_WAIT) != NULL
               ? 0
               : real->futex_wait(word, expected, deadline);
}

static int world_poll(struct pollfd *fds, int count, pirn_deadline deadline)
{
    bool ends = deadline.ns != 0 && sweep__strike(SWEEP__POLL) != NULL;

    return real->poll(fds, count, ends ? PIRN_EXPIRED : deadline);
}

static int world_epoll_wait(int epoll_fd, struct epoll_event *events,
                            int capacity, pirn_deadline deadline)
{
    bool ends = deadline.ns != 0 && sweep__strike(SWEEP__EPOLL_WAIT) != NULL;

    return real->epoll_wait(epoll_fd, events, capacity,
                            ends ? PIRN_EXPIRED : deadline);
}

void sweep__world_install(void)
{
    static struct pirn__sys world;

    if (pirn__sys == &world)
        return;
    world = *real;
    world.thread_start = world_thread_start;
    world.map = world_map;
    world.unmap = world_unmap;
    world.guard_install = world_guard_install;
    world.protect_none = world_protect_none;
    world.discard = world_discard;
    world.resident = world_resident;
    world.mapping_limit = world_mapping_limit;
    world.eventfd = world_eventfd;
    world.timerfd = world_timerfd;
    world.epoll_create = world_epoll_create;
    world.epoll_add = world_epoll_add;
    world.epoll_remove = world_epoll_remove;
    world.close = world_close;
    world.socket = world_socket;
    world.bind = world_bind;
    world.listen = world_listen;
    world.connect = world_connect;
    world.accept = world_accept;
    world.recv = world_recv;
    world.read = world_read;
    world.send = world_send;
    world.write = world_write;
    world.readv = world_readv;
    world.writev = world_writev;
    world.sendv = world_sendv;
    world.sendfile = world_sendfile;
    world.futex_wait = world_futex_wait;
    world.poll = world_poll;
    world.epoll_wait = world_epoll_wait;
    pirn__sys = &world;
}
