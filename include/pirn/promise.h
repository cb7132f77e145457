/* SPDX-License-Identifier: MIT */
/* pirn/promise.h - a value that is set once, for everybody who waits for it.
 *
 * Any number of tasks may try to set it; the first one does.  From then on every
 * get returns that value, at once.
 *
 *     rc = pirn_promise_set(promise, &answer);
 *     if (rc == -EALREADY)
 *         return 0;           // somebody else was faster
 *
 * Fairness: the value wakes everybody who waits, in the order of coming.
 */
#ifndef PIRN_PROMISE_H
#define PIRN_PROMISE_H

#include <pirn/channel.h>

PIRN_BEGIN_DECLS

/* A counted handle, for setting and getting alike. */
typedef struct pirn_promise pirn_promise;

/* Make one without a value.  Of the options message_size and discard are used;
 * discard is called with the value when the last handle goes.
 *
 * Thread    any
 * Owns      on success *out is the caller's; on error it is NULL
 * Errors    -EINVAL  an argument is NULL, or an option is out of range
 *           -ENOMEM  no memory
 */
PIRN_API PIRN_MUST_CHECK int
pirn_promise_new(const pirn_channel_options *options, pirn_promise **out);

/* One more handle; give one up.  unref(NULL) does nothing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API pirn_promise *pirn_promise_ref(pirn_promise *promise);
PIRN_API void pirn_promise_unref(pirn_promise *promise);

/* Set the value and wake everybody who waits for it.
 *
 * Thread    any
 * Suspends  no
 * Owns      on success what the value owns is the promise's; on error it is
 *           still the caller's
 * Errors    -EALREADY  it has a value
 */
PIRN_API PIRN_MUST_CHECK int pirn_promise_set(pirn_promise *promise,
                                              const void *value);

/* True once there is a value.
 *
 * Thread    any
 */
PIRN_API bool pirn_promise_is_set(const pirn_promise *promise);

/* Copy the value out, waiting for it.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    nothing is lost
 * Owns      what the value owns stays the promise's
 * Errors    -ECANCELED  the caller was cancelled
 *           -ETIMEDOUT  there is no value at the deadline
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_promise_get(pirn_promise *promise,
                                              void *value,
                                              pirn_deadline deadline);

/* Copy the value out if there is one.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_promise_get()
 * Errors    -EAGAIN  there is none yet
 */
PIRN_API PIRN_MUST_CHECK int pirn_promise_try_get(const pirn_promise *promise,
                                                  void *value);

/* The same as a future.  It borrows the handle. */
typedef struct pirn_promise_get_op {
    pirn_future future;
    pirn_waiter waiter_;
    pirn_promise *promise_;
    void *value_;
} pirn_promise_get_op;

/* Prepare one.  When it has ended, which it does not without success, the value
 * is in *value.
 *
 * Thread    any
 * Cancel    dropping it loses nothing
 * Owns      as pirn_promise_get()
 */
PIRN_API void pirn_promise_get_init(pirn_promise_get_op *op,
                                    pirn_promise *promise, void *value);

PIRN_END_DECLS

#endif /* PIRN_PROMISE_H */
