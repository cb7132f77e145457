/* SPDX-License-Identifier: MIT */
/* pirn/mpmc.h - a queue that many senders fill and many receivers empty.
 *
 * Each message goes to one receiver.  Messages leave in the order in which they
 * were sent.
 *
 * Fairness: receivers that wait are served first come first served, and so are
 * senders that wait for room; nobody who waits is passed.
 *
 *     while ((rc = pirn_mpmc_recv(receiver, &job, PIRN_NEVER)) == 0)
 *         run(&job);
 *     pirn_mpmc_receiver_unref(receiver);
 *
 * Closing, from either end, ends sending.  What has been sent can still be
 * received; then receivers are answered PIRN_ECLOSED.
 */
#ifndef PIRN_MPMC_H
#define PIRN_MPMC_H

#include <pirn/channel.h>

PIRN_BEGIN_DECLS

/* Counted handles; any number of tasks and threads may use the same one. */
typedef struct pirn_mpmc_sender pirn_mpmc_sender;
typedef struct pirn_mpmc_receiver pirn_mpmc_receiver;

/* Make a channel with one handle on each side.  Its memory comes from the
 * current runtime, if there is one.
 *
 * Thread    any
 * Owns      on success both handles are the caller's; on error both are NULL
 * Errors    -EINVAL  an argument is NULL, or an option is out of range
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpmc_new(const pirn_channel_options *options,
                                           pirn_mpmc_sender **sender,
                                           pirn_mpmc_receiver **receiver);

/* One more handle; give one up.  The last sender closes the channel; the last
 * receiver closes it, too, and what is in it is discarded.  unref(NULL) does
 * nothing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API pirn_mpmc_sender *pirn_mpmc_sender_ref(pirn_mpmc_sender *sender);
PIRN_API void pirn_mpmc_sender_unref(pirn_mpmc_sender *sender);
PIRN_API pirn_mpmc_receiver *
pirn_mpmc_receiver_ref(pirn_mpmc_receiver *receiver);
PIRN_API void pirn_mpmc_receiver_unref(pirn_mpmc_receiver *receiver);

/* Close the channel, from either side: senders that wait, and all later ones,
 * are answered PIRN_ECLOSED.  Repeatable; the handle stays the caller's.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_mpmc_sender_close(pirn_mpmc_sender *sender);
PIRN_API void pirn_mpmc_receiver_close(pirn_mpmc_receiver *receiver);

/* Look at the channel, from either side.
 *
 * Thread    any
 */
PIRN_API pirn_channel_info
pirn_mpmc_sender_info(const pirn_mpmc_sender *sender);
PIRN_API pirn_channel_info
pirn_mpmc_receiver_info(const pirn_mpmc_receiver *receiver);

/* Send a message, waiting while the channel is full.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing was sent, but the place in line is lost
 * Owns      on success what the message owns goes to a receiver; on error it is
 *           still the caller's
 * Errors    PIRN_ECLOSED  the channel is closed
 *           -ECANCELED    the caller was cancelled
 *           -ETIMEDOUT    the channel is still full at the deadline
 *           -EDEADLK      called inside a poll, a drop, a waker or a hook
 *           -ENOMEM       a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpmc_send(pirn_mpmc_sender *sender,
                                            const void *message,
                                            pirn_deadline deadline);

/* Send a message if there is room and nobody waits for it.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_mpmc_send()
 * Errors    -EAGAIN       the channel is full
 *           PIRN_ECLOSED  the channel is closed
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpmc_try_send(pirn_mpmc_sender *sender,
                                                const void *message);

/* The same as a future: 0 or PIRN_ECLOSED in op->rc.  It borrows the handle and
 * the message, which must stay until it has ended.
 *
 * Thread    any
 * Cancel    dropping it has sent nothing
 * Owns      as pirn_mpmc_send()
 */
typedef pirn_channel_send_op pirn_mpmc_send_op;
PIRN_API void pirn_mpmc_send_init(pirn_mpmc_send_op *op,
                                  pirn_mpmc_sender *sender,
                                  const void *message);

/* Receive a message, waiting while there is none.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing was received; a message that was on its way here goes to the
 *           next receiver
 * Owns      on success what the message owns is the caller's
 * Errors    PIRN_ECLOSED  the channel is closed and empty
 *           -ECANCELED    the caller was cancelled
 *           -ETIMEDOUT    the channel is still empty at the deadline
 *           -EDEADLK      called inside a poll, a drop, a waker or a hook
 *           -ENOMEM       a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpmc_recv(pirn_mpmc_receiver *receiver,
                                            void *message,
                                            pirn_deadline deadline);

/* Receive a message if there is one that nobody waits for.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_mpmc_recv()
 * Errors    -EAGAIN       there is none
 *           PIRN_ECLOSED  the channel is closed and empty
 */
PIRN_API PIRN_MUST_CHECK int pirn_mpmc_try_recv(pirn_mpmc_receiver *receiver,
                                                void *message);

/* The same as a future: op->n is 1 or PIRN_ECLOSED.  The message is written by
 * the poll that ends it, and by no other.
 *
 * Thread    any
 * Cancel    dropping it has received nothing; a message that was on its way here
 *           goes to the next receiver
 * Owns      as pirn_mpmc_recv()
 */
typedef pirn_channel_recv_op pirn_mpmc_recv_op;
PIRN_API void pirn_mpmc_recv_init(pirn_mpmc_recv_op *op,
                                  pirn_mpmc_receiver *receiver, void *message);

PIRN_END_DECLS

#endif /* PIRN_MPMC_H */
