/* SPDX-License-Identifier: MIT */
/* pirn/broadcast.h - every message to every receiver.
 *
 * A receiver gets all messages that are sent after it subscribed, in order.
 * Sending never waits: the channel keeps the latest `capacity` messages, and a
 * receiver that falls behind further is told how many it has missed.
 *
 *     for (;;) {
 *         rc = pirn_broadcast_recv(receiver, &event, PIRN_NEVER);
 *         if (rc == -EOVERFLOW)
 *             printf("missed %llu\n", (unsigned long long)
 *                    pirn_broadcast_receiver_missed(receiver));
 *         else if (rc < 0)
 *             break;
 *     }
 *
 * Messages are copied to each receiver, so they cannot own anything.
 *
 * Fairness: a message wakes everybody who waits, in the order of coming.
 */
#ifndef PIRN_BROADCAST_H
#define PIRN_BROADCAST_H

#include <pirn/channel.h>

PIRN_BEGIN_DECLS

/* A counted handle; any number of tasks and threads may use the same one. */
typedef struct pirn_broadcast_sender pirn_broadcast_sender;

/* A place in the sequence of messages, with one owner.  One call at a time. */
typedef struct pirn_broadcast_receiver pirn_broadcast_receiver;

/* Make a channel with one sender; `receiver` may be NULL.  Its memory comes from
 * the current runtime, if there is one.
 *
 * Thread    any
 * Owns      on success the handles are the caller's; on error they are NULL
 * Errors    -EINVAL  options or sender is NULL, an option is out of range, or
 *                    discard is given
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int
pirn_broadcast_new(const pirn_channel_options *options,
                   pirn_broadcast_sender **sender,
                   pirn_broadcast_receiver **receiver);

/* One more handle; give one up.  The last one closes the channel.  unref(NULL)
 * does nothing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API pirn_broadcast_sender *
pirn_broadcast_sender_ref(pirn_broadcast_sender *sender);
PIRN_API void pirn_broadcast_sender_unref(pirn_broadcast_sender *sender);

/* A receiver of all messages from now on.
 *
 * Thread    any
 * Owns      on success *out is to be freed; on error it is NULL
 * Errors    -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int
pirn_broadcast_subscribe(pirn_broadcast_sender *sender,
                         pirn_broadcast_receiver **out);

/* A receiver of all messages that `receiver` has not received yet.
 *
 * Thread    any
 * Owns      as pirn_broadcast_subscribe()
 * Errors    -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int
pirn_broadcast_receiver_dup(pirn_broadcast_receiver *receiver,
                            pirn_broadcast_receiver **out);

/* Give a receiver up.  NULL does nothing.
 *
 * Thread    any; no receive may be under way
 * Suspends  no
 */
PIRN_API void pirn_broadcast_receiver_free(pirn_broadcast_receiver *receiver);

/* Send a message; returns how many receivers there are.  It cannot fail: without
 * a receiver the message is lost.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API size_t pirn_broadcast_send(pirn_broadcast_sender *sender,
                                    const void *message);

/* Look at the channel: its length is how many messages this receiver has not
 * received yet, or how many the sender's channel keeps.
 *
 * Thread    any
 */
PIRN_API pirn_channel_info
pirn_broadcast_sender_info(const pirn_broadcast_sender *sender);
PIRN_API pirn_channel_info
pirn_broadcast_receiver_info(const pirn_broadcast_receiver *receiver);

/* Receive the next message, waiting for it.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing was received
 * Errors    -EOVERFLOW    messages were overwritten before they were received;
 *                         the next receive gives the oldest that is kept
 *           PIRN_ECLOSED  every sender is gone and all was received
 *           -ECANCELED    the caller was cancelled
 *           -ETIMEDOUT    there is no message at the deadline
 *           -EDEADLK      called inside a poll, a drop, a waker or a hook
 *           -ENOMEM       a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int
pirn_broadcast_recv(pirn_broadcast_receiver *receiver, void *message,
                    pirn_deadline deadline);

/* Receive the next message if it is there.
 *
 * Thread    any
 * Suspends  no
 * Errors    -EAGAIN  it is not
 *           -EOVERFLOW, PIRN_ECLOSED  as pirn_broadcast_recv()
 */
PIRN_API PIRN_MUST_CHECK int
pirn_broadcast_try_recv(pirn_broadcast_receiver *receiver, void *message);

/* How many messages the latest -EOVERFLOW stands for.
 *
 * Thread    the one that receives
 */
PIRN_API uint64_t
pirn_broadcast_receiver_missed(const pirn_broadcast_receiver *receiver);

/* The same as a future.  It borrows the receiver. */
typedef struct pirn_broadcast_recv_op {
    pirn_future future;
    pirn_waiter waiter_;
    pirn_broadcast_receiver *receiver_;
    void *message_;
    int rc; /* 0, -EOVERFLOW or PIRN_ECLOSED */
} pirn_broadcast_recv_op;

/* Prepare one.  The message is written by the poll that ends it, and by no
 * other.
 *
 * Thread    any
 * Cancel    dropping it has received nothing
 */
PIRN_API void pirn_broadcast_recv_init(pirn_broadcast_recv_op *op,
                                       pirn_broadcast_receiver *receiver,
                                       void *message);

PIRN_END_DECLS

#endif /* PIRN_BROADCAST_H */
