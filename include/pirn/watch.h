/* SPDX-License-Identifier: MIT */
/* pirn/watch.h - the latest value of something, for many readers.
 *
 * A configuration, a state, a progress count: readers want to know what it is now
 * and when it changes, and do not mind to miss what lay between.
 *
 *     struct config config;
 *
 *     while ((rc = pirn_watch_changed(receiver, &config, PIRN_NEVER)) == 0)
 *         apply(&config);
 *
 * Values are copied to each reader, so they cannot own anything.
 *
 * Fairness: a change wakes everybody who waits, in the order of coming.
 */
#ifndef PIRN_WATCH_H
#define PIRN_WATCH_H

#include <pirn/channel.h>

PIRN_BEGIN_DECLS

/* A counted handle; any number of tasks and threads may use the same one. */
typedef struct pirn_watch_sender pirn_watch_sender;

/* A reader, which remembers what it has seen, with one owner.  One call at a
 * time. */
typedef struct pirn_watch_receiver pirn_watch_receiver;

/* Is this the value that is waited for?  It may not suspend. */
typedef bool pirn_watch_fn(void *arg, const void *value);

/* Make one with a first value, which the receiver counts as seen; `receiver` may
 * be NULL.  Of the options message_size is used.  Its memory comes from the
 * current runtime, if there is one.
 *
 * Thread    any
 * Owns      on success the handles are the caller's; on error they are NULL
 * Errors    -EINVAL  options, value or sender is NULL, an option is out of
 *                    range, or discard is given
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_watch_new(const pirn_channel_options *options,
                                            const void *value,
                                            pirn_watch_sender **sender,
                                            pirn_watch_receiver **receiver);

/* One more handle; give one up.  When the last one is gone the value stays what
 * it is.  unref(NULL) does nothing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API pirn_watch_sender *pirn_watch_sender_ref(pirn_watch_sender *sender);
PIRN_API void pirn_watch_sender_unref(pirn_watch_sender *sender);

/* A receiver that has seen the value of this moment.
 *
 * Thread    any
 * Owns      on success *out is to be freed; on error it is NULL
 * Errors    -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_watch_subscribe(pirn_watch_sender *sender,
                                                  pirn_watch_receiver **out);

/* A receiver that has seen what `receiver` has seen.
 *
 * Thread    any
 * Owns      as pirn_watch_subscribe()
 * Errors    -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int
pirn_watch_receiver_dup(pirn_watch_receiver *receiver,
                        pirn_watch_receiver **out);

/* Give a receiver up.  NULL does nothing.
 *
 * Thread    any; no wait may be under way
 * Suspends  no
 */
PIRN_API void pirn_watch_receiver_free(pirn_watch_receiver *receiver);

/* Replace the value and wake everybody who waits; returns how many receivers
 * there are.  It cannot fail: without one the value is kept for the next.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API size_t pirn_watch_send(pirn_watch_sender *sender, const void *value);

/* Copy the value of this moment out.  pirn_watch_get() counts it as seen.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_watch_sender_get(const pirn_watch_sender *sender,
                                    void *value);
PIRN_API void pirn_watch_get(pirn_watch_receiver *receiver, void *value);
PIRN_API void pirn_watch_peek(const pirn_watch_receiver *receiver, void *value);

/* True if there is a value that the receiver has not seen.
 *
 * Thread    any
 */
PIRN_API bool pirn_watch_has_changed(const pirn_watch_receiver *receiver);

/* Wait for a value that the receiver has not seen, copy it out and count it as
 * seen.  `value` may be NULL.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing counts as seen
 * Errors    PIRN_ECLOSED  every sender is gone and the last value was seen
 *           -ECANCELED    the caller was cancelled
 *           -ETIMEDOUT    it has not changed at the deadline
 *           -EDEADLK      called inside a poll, a drop, a waker or a hook
 *           -ENOMEM       a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_watch_changed(pirn_watch_receiver *receiver,
                                                void *value,
                                                pirn_deadline deadline);

/* Wait for a value of which fn(arg, value) says so, beginning with that of this
 * moment, and copy it out.  fn is called with copies, in *value, one after the
 * other and without a lock.  What it has been shown counts as seen.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    what fn has refused counts as seen
 * Errors    PIRN_ECLOSED  every sender is gone and the last value is not it
 *           as pirn_watch_changed()
 */
PIRN_API PIRN_MUST_CHECK int pirn_watch_wait_for(pirn_watch_receiver *receiver,
                                                 pirn_watch_fn *fn, void *arg,
                                                 void *value,
                                                 pirn_deadline deadline);

/* Both as futures.  They borrow the receiver. */
typedef struct pirn_watch_op {
    pirn_future future;
    pirn_waiter waiter_;
    pirn_watch_receiver *receiver_;
    pirn_watch_fn *fn_; /* NULL: any that is new */
    void *arg_;
    void *value_;
    bool any_; /* also one that has been seen */
    int rc;    /* 0 or PIRN_ECLOSED */
} pirn_watch_op;

/* Prepare one.
 *
 * Thread    any
 * Cancel    as the calls above
 */
PIRN_API void pirn_watch_changed_init(pirn_watch_op *op,
                                      pirn_watch_receiver *receiver,
                                      void *value);
PIRN_API void pirn_watch_wait_for_init(pirn_watch_op *op,
                                       pirn_watch_receiver *receiver,
                                       pirn_watch_fn *fn, void *arg,
                                       void *value);

PIRN_END_DECLS

#endif /* PIRN_WATCH_H */
