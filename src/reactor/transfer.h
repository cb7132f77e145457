/* SPDX-License-Identifier: MIT */
/* src/reactor/transfer.h - a straight-line call that makes one system call and
 * waits for as long as that would block.
 */
#ifndef PIRN_REACTOR_TRANSFER_H
#define PIRN_REACTOR_TRANSFER_H

#include "reactor/io.h"

/* The result of `call`, or why it was not made: what pirn_await() says, or the
 * io. */
ssize_t pirn__transfer_run(struct pirn__io *io, enum pirn_interest direction,
                           const struct pirn__io_call *call,
                           pirn_deadline deadline);

/* The first half alone, without waiting: -EAGAIN if the call would block or
 * may not be made before another poll; then build the future. */
ssize_t pirn__transfer_try(struct pirn__io *io, enum pirn_interest direction,
                           const struct pirn__io_call *call);

/* A transfer of no bytes: 0, unless the caller may not wait here or the
 * descriptor is closed. */
int pirn__transfer_nothing(struct pirn__io *io);

#endif /* PIRN_REACTOR_TRANSFER_H */
