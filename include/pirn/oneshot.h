/* SPDX-License-Identifier: MIT */
/* pirn/oneshot.h - one message, once: the answer to a request.
 *
 *     struct request request = {.name = name};
 *     pirn_oneshot_receiver *answer;
 *     struct page page;
 *
 *     rc = pirn_oneshot_new(&page_options, &request.reply, &answer);
 *     if (rc == 0)
 *         rc = pirn_mpsc_send(server, &request, deadline);
 *     if (rc == 0)
 *         rc = pirn_oneshot_recv(answer, &page, deadline);
 *
 * Either side may give up at any time: the sender then is answered PIRN_ECLOSED
 * and keeps its message, the receiver is answered PIRN_ECLOSED.
 *
 * The library has the memory of this pair, so that each end may go when it
 * likes.  Where the receiver's owner stays until the sender has gone, a oneshot
 * can lie in the owner's own struct or on its stack, and nothing is allocated:
 * pirn_oneshot_init().
 */
#ifndef PIRN_ONESHOT_H
#define PIRN_ONESHOT_H

#include <pirn/channel.h>

PIRN_BEGIN_DECLS

/* Both ends have one owner each, and each end waits for one thing at a time. */
typedef struct pirn_oneshot_sender pirn_oneshot_sender;
typedef struct pirn_oneshot_receiver pirn_oneshot_receiver;

/* Caller-placed.  It does not move, and it outlives its sender. */
typedef struct pirn_oneshot {
    pirn_lock lock_;
    uint32_t message_size_;
    pirn_waitlist waiters_;
    void *message_;
    pirn_discard_fn *discard_;
    void *discard_arg_;
    uint8_t ends_;
    bool has_message_;
    bool sealed_;
    bool placed_;
} pirn_oneshot;

/* Make both ends.  Of the options message_size and discard are used.
 *
 * Thread    any
 * Owns      on success both ends are the caller's; on error both are NULL
 * Errors    -EINVAL  an argument is NULL, or an option is out of range
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int
pirn_oneshot_new(const pirn_channel_options *options,
                 pirn_oneshot_sender **sender,
                 pirn_oneshot_receiver **receiver);

/* Make both ends in the caller's memory; `message` is room for one.  The ends are
 * used like those of pirn_oneshot_new().
 *
 * The memory is the receiver's owner's, who has to know that the sender is gone
 * before pirn_oneshot_deinit().  It is gone once a receive has answered 0, or
 * PIRN_ECLOSED without a close before; or once pirn_oneshot_finished() has said
 * so, which is the way after a receive that was cancelled or whose time was up.
 *
 *     pirn_oneshot_receiver_close(answer);
 *     pirn_fiber_shield_begin();
 *     rc = pirn_oneshot_finished(answer, PIRN_NEVER);
 *     pirn_fiber_shield_end();
 *     pirn_oneshot_deinit(&oneshot);
 *
 * Thread    any
 * Owns      on success both ends are the caller's, and `oneshot` and `message`
 *           are borrowed until the deinit; on error both ends are NULL
 * Errors    -EINVAL  an argument is NULL, or an option is out of range
 */
PIRN_API PIRN_MUST_CHECK int
pirn_oneshot_init(pirn_oneshot *oneshot, const pirn_channel_options *options,
                  void *message, pirn_oneshot_sender **sender,
                  pirn_oneshot_receiver **receiver);

/* Give the receiver up, if that has not been done, as pirn_oneshot_receiver_free()
 * does, and end a oneshot whose sender is gone.  Of a send or a give-up that is
 * still on its way out it waits for the few instructions that are left.  One that
 * has not begun stops the program: the sender would be left without memory.
 *
 * Thread    any; no wait of the receiver may be under way
 * Suspends  no
 * Owns      the memory is the caller's again
 */
PIRN_API void pirn_oneshot_deinit(pirn_oneshot *oneshot);

/* Send the message and give the sender up.
 *
 * Thread    any
 * Suspends  no
 * Owns      the sender is gone, whatever the answer; on error what the message
 *           owns is still the caller's
 * Errors    PIRN_ECLOSED  the receiver is gone or was closed
 */
PIRN_API PIRN_MUST_CHECK int pirn_oneshot_send(pirn_oneshot_sender *sender,
                                               const void *message);

/* Give the sender up without a message.  NULL does nothing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_oneshot_sender_free(pirn_oneshot_sender *sender);

/* True once nobody will receive the message, so that making it is in vain.
 *
 * Thread    any
 */
PIRN_API bool pirn_oneshot_is_closed(const pirn_oneshot_sender *sender);

/* Wait until that is so.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing is lost
 * Errors    -ECANCELED  the caller was cancelled
 *           -ETIMEDOUT  the receiver is still there at the deadline
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_oneshot_closed(pirn_oneshot_sender *sender,
                                                 pirn_deadline deadline);

/* Receive the message, waiting for it.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing was received
 * Owns      on success what the message owns is the caller's; the receiver still
 *           is to be freed, whatever the answer
 * Errors    PIRN_ECLOSED  the sender is gone without a message, or the message
 *                         has been received
 *           -ECANCELED    the caller was cancelled
 *           -ETIMEDOUT    there is no message at the deadline
 *           -EDEADLK      called inside a poll, a drop, a waker or a hook
 *           -ENOMEM       a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_oneshot_recv(pirn_oneshot_receiver *receiver,
                                               void *message,
                                               pirn_deadline deadline);

/* Receive the message if it is there.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_oneshot_recv()
 * Errors    -EAGAIN       it has not come yet
 *           PIRN_ECLOSED  it will not come
 */
PIRN_API PIRN_MUST_CHECK int
pirn_oneshot_try_recv(pirn_oneshot_receiver *receiver, void *message);

/* Wait until the sender is gone: it has sent, or was given up.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing is lost
 * Errors    -ECANCELED  the caller was cancelled
 *           -ETIMEDOUT  the sender is still there at the deadline
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int
pirn_oneshot_finished(pirn_oneshot_receiver *receiver, pirn_deadline deadline);

/* Refuse a message that has not been sent yet; one that has been can still be
 * received.  The receiver stays the caller's.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_oneshot_receiver_close(pirn_oneshot_receiver *receiver);

/* Give the receiver up; a message that is there is discarded.  NULL does
 * nothing.
 *
 * Thread    any; no wait of the receiver may be under way
 * Suspends  no
 */
PIRN_API void pirn_oneshot_receiver_free(pirn_oneshot_receiver *receiver);

/* The waits as futures.  They borrow their end, which must stay until they have
 * ended. */
typedef struct pirn_oneshot_op {
    pirn_future future;
    pirn_waiter waiter_;
    pirn_oneshot *oneshot_;
    void *message_;
    int rc;         /* 0 or PIRN_ECLOSED */
} pirn_oneshot_op;

/* Prepare one.  The message is written by the poll that ends it, and by no
 * other.
 *
 * Thread    any
 * Cancel    dropping it loses nothing
 * Owns      as pirn_oneshot_recv()
 */
PIRN_API void pirn_oneshot_recv_init(pirn_oneshot_op *op,
                                     pirn_oneshot_receiver *receiver,
                                     void *message);
PIRN_API void pirn_oneshot_finished_init(pirn_oneshot_op *op,
                                         pirn_oneshot_receiver *receiver);
PIRN_API void pirn_oneshot_closed_init(pirn_oneshot_op *op,
                                       pirn_oneshot_sender *sender);

PIRN_END_DECLS

#endif /* PIRN_ONESHOT_H */
