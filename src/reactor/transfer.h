/* SPDX-License-Identifier: MIT */
/* src/reactor/transfer.h - a straight-line call that makes one system call and
 * waits for as long as that would block.
 */
#ifndef PIRN_REACTOR_TRANSFER_H
#define PIRN_REACTOR_TRANSFER_H

#include <errno.h>
#include <limits.h>

#include "reactor/io.h"
#include "task/await.h"

/* The first half of a transfer, without waiting: -EAGAIN if the call would block
 * or may not be made before another poll; then build the future. */
ssize_t pirn__transfer_try(struct pirn__io *io, enum pirn_interest direction,
                           const struct pirn__io_call *call);

/* The same in place; `local` is this thread's. */
static inline ssize_t pirn__transfer_try_here(struct pirn__local *local,
                                              struct pirn__io *io,
                                              enum pirn_interest direction,
                                              const struct pirn__io_call *call)
{
    int rc = pirn__fast_path(local);

    if (rc != 0)
        return rc < 0 ? rc : -EAGAIN;
    return pirn__io_try(io, direction, call);
}

/* The second half. */
ssize_t pirn__transfer_wait(struct pirn__local *local, struct pirn__io *io,
                            enum pirn_interest direction,
                            const struct pirn__io_call *call,
                            pirn_deadline deadline);

/* The result of `call`, or why it was not made: what pirn_await() says, or the
 * io. */
static inline ssize_t pirn__transfer_run(struct pirn__io *io,
                                         enum pirn_interest direction,
                                         const struct pirn__io_call *call,
                                         pirn_deadline deadline)
{
    struct pirn__local *local = pirn__local();
    ssize_t n = pirn__transfer_try_here(local, io, direction, call);

    return n == -EAGAIN
               ? pirn__transfer_wait(local, io, direction, call, deadline)
               : n;
}

/* A transfer of no bytes: 0, unless the caller may not wait here or the
 * descriptor is closed. */
int pirn__transfer_nothing(struct pirn__io *io);

/* The bytes of a call; one that writes them out does not write to them. */
struct pirn__span {
    char *buf;
    size_t len;
};

/* Without a const, for such a call. */
static inline struct pirn__span pirn__span_of(const void *buf, size_t len)
{
    return (struct pirn__span){(char *)(uintptr_t)buf, len};
}

static inline bool pirn__span_is_good(struct pirn__span span)
{
    return span.buf != NULL && span.len <= SSIZE_MAX;
}

/* pirn__transfer_run() of these bytes by `fn`, whose argument is the span;
 * -EINVAL without an io, or without such bytes.  Always in place, so that `fn` is,
 * too. */
__attribute__((always_inline)) static inline ssize_t
pirn__transfer_span(struct pirn__io *io, enum pirn_interest direction,
                    ssize_t (*fn)(int fd, void *arg), struct pirn__span span,
                    pirn_deadline deadline)
{
    const struct pirn__io_call call = {fn, &span, span.len};

    if (io == NULL || !pirn__span_is_good(span))
        return -EINVAL;
    if (span.len == 0)
        return pirn__transfer_nothing(io);
    return pirn__transfer_run(io, direction, &call, deadline);
}

#endif /* PIRN_REACTOR_TRANSFER_H */
