/* SPDX-License-Identifier: MIT */
/* pirn/once.h - make something the first time it is needed, exactly once.
 *
 * The making may suspend: connect, read a file, ask another service.  Whoever
 * comes meanwhile waits for it.  If it fails or is cancelled, one of those who
 * wait takes over.
 *
 *     static pirn_once once = PIRN_ONCE_INIT;
 *     static struct config config;        // made once, then read by everybody
 *
 *     rc = pirn_once_call(&once, load_config, &config, PIRN_NEVER);
 *     if (rc < 0)
 *         return rc;
 *     use(&config);
 *
 * Fairness: who has waited longest takes over.
 *
 * What was written before the finish is seen by everybody who is told that it
 * has been made.
 */
#ifndef PIRN_ONCE_H
#define PIRN_ONCE_H

#include <pirn/waiter.h>

PIRN_BEGIN_DECLS

/* Caller-placed; it must not move, and it outlives every call on it. */
typedef struct pirn_once {
    PIRN_ATOMIC(uint32_t) state_; /* not made, being made, made */
    pirn_lock lock_;
    pirn_waitlist waiters_;
} pirn_once;

/* Nothing has been made yet, as an initialiser. */
#define PIRN_ONCE_INIT {{0}, {{0}}, {{NULL, NULL}}}

/* Nothing has been made yet; and the end of one for which nobody waits.
 *
 * Thread    any
 */
PIRN_API void pirn_once_init(pirn_once *once);
PIRN_API void pirn_once_deinit(pirn_once *once);

/* True if it has been made.
 *
 * Thread    any
 */
PIRN_API bool pirn_once_is_done(const pirn_once *once);

/* Makes it; may suspend.  0 or more: it has been made.  Negative: not. */
typedef int pirn_once_fn(void *arg);

/* Call fn(arg) if it has not been made yet, or wait for whoever is making it.
 * 0: it has been made.  If fn fails its code is returned here, and another one
 * that waits calls its own fn.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts the wait short, and what fn waits for
 * Cancel    whoever waits for a cancelled fn takes over
 * Errors    -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  the deadline passed before it was the caller's turn; fn
 *                       sees to its own deadlines
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 *           and fn's own
 */
PIRN_API PIRN_MUST_CHECK int pirn_once_call(pirn_once *once, pirn_once_fn *fn,
                                            void *arg, pirn_deadline deadline);

/* The same in parts.  0: it has been made.  1: the caller has to make it now,
 * and then calls finish, or abandon.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    no duty is taken; one that was handed over unseen goes to the next
 * Owns      after 1 the duty to finish or abandon is the caller's
 * Errors    -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  the deadline passed first
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_once_begin(pirn_once *once,
                                             pirn_deadline deadline);

/* The same without waiting.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_once_begin()
 * Errors    -EAGAIN  somebody is making it
 */
PIRN_API PIRN_MUST_CHECK int pirn_once_try_begin(pirn_once *once);

/* It has been made; or it could not be, and who has waited longest is told to
 * make it.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_once_finish(pirn_once *once);
PIRN_API void pirn_once_abandon(pirn_once *once);

/* pirn_once_begin() as a future; it cannot fail. */
typedef struct pirn_once_begin_op {
    pirn_future future;
    pirn_once *once_;
    bool must_make; /* after PIRN_READY: the caller has to make it */
    pirn_waiter waiter_;
} pirn_once_begin_op;

/* Prepare it.  Discarding a duty abandons.
 *
 * Thread    any
 * Cancel    dropping it loses nothing: a duty unseen goes to the next in line
 * Owns      as pirn_once_begin(), where must_make stands for 1
 */
PIRN_API void pirn_once_begin_init(pirn_once_begin_op *op, pirn_once *once);

/* pirn_once_call() as a future, with a future that makes it: it has been made
 * when that is READY with an outcome of 0 or more. */
typedef struct pirn_once_op {
    pirn_future future;
    pirn_once_begin_op begin_;
    pirn_future *make_;
    bool making_;
    int rc; /* after PIRN_READY: 0, or the outcome of a `make` that failed */
} pirn_once_op;

/* Prepare it.  `make` is polled only if it is needed.
 *
 * Thread    any
 * Cancel    dropping it while it makes hands over to the next in line
 * Owns      `make` is the operation's to poll and drop; after PIRN_READY it has
 *           ended
 */
PIRN_API void pirn_once_call_init(pirn_once_op *op, pirn_once *once,
                                  pirn_future *make);

PIRN_END_DECLS

#endif /* PIRN_ONCE_H */
