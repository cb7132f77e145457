/* SPDX-License-Identifier: MIT */
/* tests/engine/sweep_libc.c - the C library under a sweep: a heap that counts and
 * can refuse, and system calls that a signal interrupts.
 *
 * The linker sends every call of these functions in the program here (--wrap),
 * so that the library is the one that is installed, to the last instruction.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "engine/sweep_internal.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* The heap. */

static PIRN_ATOMIC(int64_t) pieces;
static PIRN_ATOMIC(const char *) complaint;

void *__real_malloc(size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *memory);

static void *counted(void *memory)
{
    if (memory != NULL) {
        /* relaxed: a count; the round joins its threads before it is read. */
        pirn__add(&pieces, 1, relaxed);
    }
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return sweep__strike(SWEEP__TAKE) ? NULL : counted(__real_malloc(size));
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return sweep__strike(SWEEP__TAKE)
               ? NULL
               : counted(__real_aligned_alloc(align, size));
}

void __wrap_free(void *memory)
{
    if (memory != NULL) {
        /* relaxed: a count. */
        pirn__sub(&pieces, 1, relaxed);
    }
    __real_free(memory);
}

int64_t sweep__heap_pieces(void)
{
    /* relaxed: as above. */
    return pirn__load(&pieces, relaxed);
}

const char *sweep__heap_complaint(void)
{
    /* relaxed: a constant text. */
    return pirn__swap(&complaint, NULL, relaxed);
}

/* The allocator for runtimes: what it was asked for stands before each piece. */
struct piece {
    size_t size;
    size_t align;
};

static void complain(const char *text)
{
    /* relaxed: a constant text. */
    pirn__store(&complaint, text, relaxed);
}

static size_t lead_of(size_t align)
{
    return align < sizeof(struct piece) ? sizeof(struct piece) : align;
}

static void *piece_take(void *ctx, size_t size, size_t align)
{
    size_t lead = lead_of(align);
    char *base;

    (void)ctx;
    if (size == 0 || align == 0 || align > 4096 || (align & (align - 1)) != 0)
        complain("take: a size or an alignment that pirn/alloc.h rules out");
    base = __wrap_aligned_alloc(lead, (lead + size + lead - 1) / lead * lead);
    if (base == NULL)
        return NULL;
    memset(base, 0xa5, lead + size);
    *(struct piece *)(void *)(base + lead - sizeof(struct piece)) =
        (struct piece){size, align};
    return base + lead;
}

static void piece_give(void *ctx, void *memory, size_t size, size_t align)
{
    char *base = (char *)memory - lead_of(align);
    struct piece *piece = (struct piece *)(void *)memory - 1;

    (void)ctx;
    if (piece->size != size || piece->align != align)
        complain("give: not the size or the alignment that was asked for");
    memset(base, 0xdb, lead_of(align) + size);
    __wrap_free(base);
}

const pirn_alloc *sweep_alloc(void)
{
    static const pirn_alloc alloc = {.take = piece_take, .give = piece_give};

    return &alloc;
}

/* Signals. */

/* True if this call is interrupted: errno says so. */
static bool is_interrupted(void)
{
    if (sweep__strike(SWEEP__LIBC) == NULL)
        return false;
    errno = EINTR;
    return true;
}

ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len)
{
    return is_interrupted() ? -1 : __real_read(fd, buf, len);
}

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
    return is_interrupted() ? -1 : __real_write(fd, buf, len);
}

ssize_t __real_readv(int fd, const struct iovec *vec, int count);
ssize_t __wrap_readv(int fd, const struct iovec *vec, int count);
ssize_t __wrap_readv(int fd, const struct iovec *vec, int count)
{
    return is_interrupted() ? -1 : __real_readv(fd, vec, count);
}

ssize_t __real_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
    return is_interrupted() ? -1 : __real_recv(fd, buf, len, flags);
}

ssize_t __real_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags)
{
    return is_interrupted() ? -1 : __real_send(fd, buf, len, flags);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return is_interrupted() ? -1 : __real_sendmsg(fd, message, flags);
}

ssize_t __real_sendfile(int out, int in, off_t *offset, size_t count);
ssize_t __wrap_sendfile(int out, int in, off_t *offset, size_t count);
ssize_t __wrap_sendfile(int out, int in, off_t *offset, size_t count)
{
    return is_interrupted() ? -1 : __real_sendfile(out, in, offset, count);
}

int __real_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags)
{
    return is_interrupted() ? -1 : __real_accept4(fd, name, len, flags);
}

/* It goes on all the same. */
int __real_connect(int fd, const struct sockaddr *name, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *name, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *name, socklen_t len)
{
    int rc = __real_connect(fd, name, len);

    return is_interrupted() ? -1 : rc;
}

/* The number is free whatever close() says. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int rc = __real_close(fd);

    return is_interrupted() ? -1 : rc;
}

/* A wait is interrupted only if there is nothing to report. */

int __real_epoll_wait(int fd, struct epoll_event *events, int count, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int ms)
{
    int rc = __real_epoll_wait(fd, events, count, 0);

    if (rc != 0 || ms == 0)
        return rc;
    return is_interrupted() ? -1 : __real_epoll_wait(fd, events, count, ms);
}

int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *left,
                 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *left,
                 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *left,
                 const sigset_t *mask)
{
    const struct timespec none = {0};
    int rc = __real_ppoll(fds, count, &none, mask);

    if (rc != 0)
        return rc;
    return is_interrupted() ? -1 : __real_ppoll(fds, count, left, mask);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
__attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list args;

    /* More than were given are rubbish, which the kernel does not look at. */
    va_start(args, number);
    for (size_t i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_epoll_pwait2) {
        static const int64_t none[2];
        long rc = __real_syscall(number, a[0], a[1], a[2], none, a[4], a[5]);

        if (rc != 0)
            return rc;
    }
    if ((number == SYS_epoll_pwait2 ||
         (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) != FUTEX_WAKE)) &&
        is_interrupted())
        return -1;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
