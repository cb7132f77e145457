/* SPDX-License-Identifier: MIT */
/* pirn/mpsc.h - a queue that many senders fill and one receiver empties.
 *
 * Messages arrive in the order in which they were sent.
 *
 * Fairness: a full channel makes senders wait, first come first served; one that
 * waits is never passed by one that comes later, also if it wants more places.
 *
 *     struct job job;
 *
 *     while ((rc = pirn_mpsc_recv(receiver, &job, PIRN_NEVER)) == 0)
 *         run(&job);
 *     // PIRN_ECLOSED: every sender is gone and the channel is empty
 *
 * Closing, from either end, ends sending.  What has been sent can still be
 * received; then the receiver is answered PIRN_ECLOSED.
 */
#ifndef PIRN_MPSC_H
#define PIRN_MPSC_H

#include <pirn/channel.h>

PIRN_BEGIN_DECLS

/* A counted handle of the sending side; any number of tasks and threads may use
 * the same one. */
typedef struct pirn_mpsc_sender pirn_mpsc_sender;

/* A counted handle that does not keep the channel open. */
typedef struct pirn_mpsc_weak_sender pirn_mpsc_weak_sender;

/* The receiving side.  One call at a time, from any task or thread; while an
 * operation waits, try_ calls may take what it waits for. */
typedef struct pirn_mpsc_receiver pirn_mpsc_receiver;

/* Make a channel with one sender.  Its memory comes from the current runtime, if
 * there is one.
 *
 * Thread    any
 * Owns      on success both handles are the caller's; on error both are NULL
 * Errors    -EINVAL  an argument is NULL, or an option is out of range
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpsc_new(const pirn_channel_options *options,
                                           pirn_mpsc_sender **sender,
                                           pirn_mpsc_receiver **receiver);

/* One more handle; give one up.  The last one closes the channel.
 * unref(NULL) does nothing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API pirn_mpsc_sender *pirn_mpsc_sender_ref(pirn_mpsc_sender *sender);
PIRN_API void pirn_mpsc_sender_unref(pirn_mpsc_sender *sender);

/* A weak handle to the same channel, to be given up by
 * pirn_mpsc_weak_sender_unref().
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API pirn_mpsc_weak_sender *
pirn_mpsc_sender_downgrade(pirn_mpsc_sender *sender);
PIRN_API pirn_mpsc_weak_sender *
pirn_mpsc_weak_sender_ref(pirn_mpsc_weak_sender *weak);
PIRN_API void pirn_mpsc_weak_sender_unref(pirn_mpsc_weak_sender *weak);

/* Become a sender again.
 *
 * Thread    any
 * Suspends  no
 * Owns      on success *out is a handle to unref; NULL on error
 * Errors    PIRN_ECLOSED  no sender is left, or the channel was closed
 */
PIRN_API PIRN_MUST_CHECK int
pirn_mpsc_weak_sender_upgrade(pirn_mpsc_weak_sender *weak,
                              pirn_mpsc_sender **out);

/* Give the receiver up: closes the channel and discards what is in it.  Permits
 * are answered PIRN_ECLOSED from then on.  NULL does nothing.
 *
 * Thread    any; no receive may be under way
 * Suspends  no
 */
PIRN_API void pirn_mpsc_receiver_free(pirn_mpsc_receiver *receiver);

/* Close the channel, from either side: senders that wait, and all later ones,
 * are answered PIRN_ECLOSED.  Permits stay good.  Repeatable; the handle stays
 * the caller's.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_mpsc_sender_close(pirn_mpsc_sender *sender);
PIRN_API void pirn_mpsc_receiver_close(pirn_mpsc_receiver *receiver);

/* Look at the channel, from either side.
 *
 * Thread    any
 */
PIRN_API pirn_channel_info
pirn_mpsc_sender_info(const pirn_mpsc_sender *sender);
PIRN_API pirn_channel_info
pirn_mpsc_receiver_info(const pirn_mpsc_receiver *receiver);

/* Sending. */

/* Send a message, waiting while the channel is full.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing was sent, but the place in line is lost; take a place by
 *           pirn_mpsc_reserve() first where that matters
 * Owns      on success what the message owns goes to the receiver; on error it
 *           is still the caller's
 * Errors    PIRN_ECLOSED  the channel is closed
 *           -ENOMEM       no memory for a message more (unbounded), or for a
 *                         plain thread's first call
 *           -ECANCELED    the caller was cancelled
 *           -ETIMEDOUT    the channel is still full at the deadline
 *           -EDEADLK      called inside a poll, a drop, a waker or a hook
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpsc_send(pirn_mpsc_sender *sender,
                                            const void *message,
                                            pirn_deadline deadline);

/* Send a message if there is room and nobody waits for it.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_mpsc_send()
 * Errors    -EAGAIN       the channel is full
 *           PIRN_ECLOSED  the channel is closed
 *           -ENOMEM       no memory for a message more (unbounded)
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpsc_try_send(pirn_mpsc_sender *sender,
                                                const void *message);

/* The same as a future: 0, PIRN_ECLOSED or -ENOMEM in op->rc.  It borrows the
 * handle and the message, which must stay until it has ended.
 *
 * Thread    any
 * Cancel    dropping it has sent nothing
 * Owns      as pirn_mpsc_send()
 */
typedef pirn_channel_send_op pirn_mpsc_send_op;
PIRN_API void pirn_mpsc_send_init(pirn_mpsc_send_op *op,
                                  pirn_mpsc_sender *sender,
                                  const void *message);

/* Places in the channel that are kept for its owner.  While there are any, a
 * closed channel does not end for its receiver. */
typedef struct pirn_mpsc_permit {
    struct pirn__channel *channel_;
    size_t count; /* messages that may still be sent */
} pirn_mpsc_permit;

/* Reserve `count` places, waiting until there are that many at once.  Later
 * senders wait behind it.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing is reserved
 * Owns      on success *permit is to be used up or released; on error it is
 *           empty
 * Errors    -EINVAL       count is 0 or above the capacity
 *           -ENOTSUP      the channel is unbounded
 *           as pirn_mpsc_send(); -ENOMEM only on a plain thread's first call
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpsc_reserve(pirn_mpsc_sender *sender,
                                               size_t count,
                                               pirn_deadline deadline,
                                               pirn_mpsc_permit *permit);

/* Reserve `count` places if they are free and nobody waits for them.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_mpsc_reserve()
 * Errors    -EINVAL, -ENOTSUP, PIRN_ECLOSED  as pirn_mpsc_reserve()
 *           -EAGAIN  there are not so many
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpsc_try_reserve(pirn_mpsc_sender *sender,
                                                   size_t count,
                                                   pirn_mpsc_permit *permit);

/* The same as a future.  On success op->permit is the caller's. */
typedef struct pirn_mpsc_reserve_op {
    pirn_future future;
    pirn_waiter waiter_;
    struct pirn__channel *channel_;
    pirn_mpsc_permit permit;
    int rc; /* 0, PIRN_ECLOSED, -EINVAL or -ENOTSUP */
} pirn_mpsc_reserve_op;

/* Prepare a reservation of `count` places.
 *
 * Thread    any
 * Cancel    dropping it reserves nothing
 * Owns      as pirn_mpsc_reserve()
 */
PIRN_API void pirn_mpsc_reserve_init(pirn_mpsc_reserve_op *op,
                                     pirn_mpsc_sender *sender, size_t count);

/* Send a message into a reserved place; never waits.
 *
 * Thread    any; one call at a time for a permit
 * Suspends  no
 * Owns      as pirn_mpsc_send(); the place is used up only on success
 * Errors    PIRN_ECLOSED  the receiver is gone
 *           -EINVAL       the permit is empty
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpsc_permit_send(pirn_mpsc_permit *permit,
                                                   const void *message);

/* Give back what is left of a permit; nothing for an empty one.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_mpsc_permit_release(pirn_mpsc_permit *permit);

/* Receiving. */

/* Receive a message, waiting while the channel is empty.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing was received
 * Owns      on success what the message owns is the caller's
 * Errors    PIRN_ECLOSED  the channel is closed and empty
 *           -EBUSY        another receive is waiting
 *           -ECANCELED    the caller was cancelled
 *           -ETIMEDOUT    the channel is still empty at the deadline
 *           -EDEADLK      called inside a poll, a drop, a waker or a hook
 *           -ENOMEM       a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpsc_recv(pirn_mpsc_receiver *receiver,
                                            void *message,
                                            pirn_deadline deadline);

/* Receive up to `limit` messages into an array: wait for the first, take what
 * else is there.  Returns how many.  Cheaper than one by one.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing was received
 * Owns      as pirn_mpsc_recv()
 * Errors    -EINVAL  limit is 0
 *           as pirn_mpsc_recv()
 */
PIRN_API PIRN_MUST_CHECK ssize_t
pirn_mpsc_recv_many(pirn_mpsc_receiver *receiver, void *messages, size_t limit,
                    pirn_deadline deadline);

/* Receive a message, or up to `limit`, if there is one.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_mpsc_recv()
 * Errors    -EAGAIN       the channel is empty
 *           PIRN_ECLOSED  it is closed, too
 *           -EINVAL       limit is 0
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpsc_try_recv(pirn_mpsc_receiver *receiver,
                                                void *message);
PIRN_API PIRN_MUST_CHECK ssize_t pirn_mpsc_try_recv_many(
    pirn_mpsc_receiver *receiver, void *messages, size_t limit);

/* The same as futures: op->n is how many, or PIRN_ECLOSED, -EBUSY or -EINVAL.
 * The messages are written by the poll that ends it, and by no other.
 *
 * Thread    any
 * Cancel    dropping it has received nothing
 * Owns      as pirn_mpsc_recv()
 */
typedef pirn_channel_recv_op pirn_mpsc_recv_op;
PIRN_API void pirn_mpsc_recv_init(pirn_mpsc_recv_op *op,
                                  pirn_mpsc_receiver *receiver, void *message);
PIRN_API void pirn_mpsc_recv_many_init(pirn_mpsc_recv_op *op,
                                       pirn_mpsc_receiver *receiver,
                                       void *messages, size_t limit);

PIRN_END_DECLS

#endif /* PIRN_MPSC_H */
