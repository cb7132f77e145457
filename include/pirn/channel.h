/* SPDX-License-Identifier: MIT */
/* pirn/channel.h - what all channels have in common, and which one to take.
 *
 *  - pirn/oneshot.h    one message, once: the answer to a request
 *  - pirn/mpsc.h       many senders, one receiver: work for one task
 *  - pirn/mpmc.h       many senders and receivers: each message to one of them
 *  - pirn/broadcast.h  many senders and receivers: each message to all of them
 *  - pirn/watch.h      the latest value of something, for many readers
 *  - pirn/promise.h    a value that is set once, for many readers
 *
 * A message is any number of bytes, the same for all messages of a channel, and
 * is moved by copying them.  A pointer is a message, too: what it points to then
 * goes to the receiver.
 *
 *     const pirn_channel_options options = {
 *         .message_size = sizeof(struct job),
 *         .capacity = 64,
 *     };
 *     pirn_mpsc_sender *sender;
 *     pirn_mpsc_receiver *receiver;
 *
 *     rc = pirn_mpsc_new(&options, &sender, &receiver);
 *
 * Handles are counted: another one for each owner, given up when the owner is
 * done.  A channel closes by itself when the last handle of one side is gone.
 *
 * The calls work in fibers and on plain threads, the operations in stackless
 * tasks; every one of them can be mixed with every other on the same channel.  A
 * send that is not answered with success leaves the message with the caller, and
 * a receive that is cancelled, or whose deadline passes, has taken nothing.  Each
 * of them costs coop budget, also one that does not wait; what cannot wait, as
 * the try_ calls, costs none.
 */
#ifndef PIRN_CHANNEL_H
#define PIRN_CHANNEL_H

#include <pirn/waiter.h>

PIRN_BEGIN_DECLS

/* As capacity: as many messages as there is memory for. */
#define PIRN_UNBOUNDED SIZE_MAX

/* What to do with a message that nobody will receive.  It may not suspend. */
typedef void pirn_discard_fn(void *arg, void *message);

/* Zero is always the default. */
typedef struct pirn_channel_options {
    size_t message_size; /* bytes, 1 to 1 MiB; has no default */
    size_t capacity;     /* messages; 0: 64.  PIRN_UNBOUNDED: mpsc only */
    /* Called with each message that was sent and will not be received, because
     * the receivers are gone: to free what it owns.  Never under a lock; any
     * thread.  NULL: messages own nothing. */
    pirn_discard_fn *discard;
    void *discard_arg;
} pirn_channel_options;

/* What a channel holds at this moment; stale as soon as it is known. */
typedef struct pirn_channel_info {
    size_t capacity;  /* constant; PIRN_UNBOUNDED without a limit */
    size_t length;    /* messages that nobody has received yet */
    size_t available; /* places that are neither filled nor reserved */
    size_t senders;   /* handles, permits included */
    size_t receivers;
    bool closed; /* no further message will be accepted */
} pirn_channel_info;

struct pirn__channel;

/* A send as a future; prepared by pirn_mpsc_send_init() or
 * pirn_mpmc_send_init(). */
typedef struct pirn_channel_send_op {
    pirn_future future;
    pirn_waiter waiter_;
    struct pirn__channel *channel_;
    const void *message_;
    int rc; /* 0: sent; PIRN_ECLOSED; -ENOMEM (unbounded) */
} pirn_channel_send_op;

/* A receive as a future; prepared by pirn_mpsc_recv_init() and its kin. */
typedef struct pirn_channel_recv_op {
    pirn_future future;
    pirn_waiter waiter_;
    struct pirn__channel *channel_;
    void *messages_;
    uint32_t limit_;
    PIRN_ATOMIC(uint32_t) told_; /* mpsc: 1: there is something for it */
    ssize_t n; /* how many were received, or a negative code */
} pirn_channel_recv_op;

PIRN_END_DECLS

#endif /* PIRN_CHANNEL_H */
