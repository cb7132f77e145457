/* SPDX-License-Identifier: MIT */
/* bench/mailbox.h - room for one signal from one sender to one receiver, on
 * whatever threads: the least that two tasks need to wait for each other.
 *
 * The receiver's waker stays in the box from its first wait to
 * mailbox_deinit(), so a signal costs no clone.  The receiver is always the same
 * task, and sender and receiver have both ended before deinit.
 */
#ifndef BENCH_MAILBOX_H
#define BENCH_MAILBOX_H

#include <pirn/future.h>

#include "base/atomic.h"

struct mailbox {
    pirn_future future; /* ready when there is a signal, which it takes */
    PIRN_ATOMIC(uint32_t) state; /* enum mailbox_state in mailbox.c */
    pirn_waker waker;
};

void mailbox_init(struct mailbox *mailbox);
void mailbox_deinit(struct mailbox *mailbox);

/* Leave a signal; there is none in the box. */
void mailbox_send(struct mailbox *mailbox);

#endif /* BENCH_MAILBOX_H */
