/* SPDX-License-Identifier: MIT */
/* src/reactor/transfer.h - a straight-line call that makes one system call and
 * waits for as long as that would block.
 */
#ifndef PIRN_REACTOR_TRANSFER_H
#define PIRN_REACTOR_TRANSFER_H

#include <errno.h>

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

#endif /* PIRN_REACTOR_TRANSFER_H */
