/* SPDX-License-Identifier: MIT */
/* pirn/notify.h - wake who waits, without saying why.
 *
 * The condition is the program's own; a notify only tells others to look at it
 * again.  A notification for which nobody waits is kept for the next one who
 * waits, one at most, so it is not lost between a look and a wait.
 *
 *     static int consume(void *arg)
 *     {
 *         struct box *box = arg;
 *
 *         while (!box_is_full(box)) {
 *             int rc = pirn_notify_wait(&box->filled, PIRN_NEVER);
 *
 *             if (rc < 0)
 *                 return rc;
 *         }
 *         return box_use(box);
 *     }
 *
 *     box_fill(box);
 *     pirn_notify_one(&box->filled);
 *
 * With several who wait for the same condition: prepare the wait (init), look
 * at the condition, then await; or use a pirn_cond.  From the init on, the wait
 * is reached by pirn_notify_all(); from pirn_notify_enable() or its first poll
 * on, by the others too.
 *
 * Fairness: pirn_notify_one() reaches who came first, pirn_notify_last() who
 * came last.  What was written before a notification is seen after the wait
 * that it ends.
 */
#ifndef PIRN_NOTIFY_H
#define PIRN_NOTIFY_H

#include <pirn/waiter.h>

PIRN_BEGIN_DECLS

/* Caller-placed; it must not move, and it outlives every call on it; whoever
 * was reached by notify_one or notify_last may deinit it at once. */
typedef struct pirn_notify {
    pirn_lock lock_;
    bool stored_;        /* lock_: a notification that nobody has got */
    uint32_t all_count_; /* lock_: calls of pirn_notify_all() */
    pirn_waitlist waiters_;
} pirn_notify;

/* One without a stored notification, as an initialiser. */
#define PIRN_NOTIFY_INIT {{{0}}, false, 0, {{NULL, NULL}}}

/* Prepare one; end one for which nobody waits.
 *
 * Thread    any
 */
PIRN_API void pirn_notify_init(pirn_notify *notify);
PIRN_API void pirn_notify_deinit(pirn_notify *notify);

/* Wait for a notification, or take the stored one.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    no notification is lost
 * Errors    -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  the deadline passed first
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_notify_wait(pirn_notify *notify,
                                              pirn_deadline deadline);

/* Take the stored notification.
 *
 * Thread    any
 * Suspends  no
 * Errors    -EAGAIN  none is stored
 */
PIRN_API PIRN_MUST_CHECK int pirn_notify_try_wait(pirn_notify *notify);

/* The wait as a future.  READY means notified; it cannot fail. */
typedef struct pirn_notify_op {
    pirn_future future;
    pirn_notify *notify_;
    uint32_t all_count_; /* when it was prepared */
    pirn_waiter waiter_;
} pirn_notify_op;

/* Prepare a wait.  From here on pirn_notify_all() reaches it, even if it is
 * polled only afterwards.  Discarding its result keeps the notification for
 * another.
 *
 * Thread    any
 * Cancel    dropping it loses nothing: a notification for one goes on to
 *           another, or is stored
 */
PIRN_API void pirn_notify_wait_init(pirn_notify_op *op, pirn_notify *notify);

/* Stand in line before the first poll, so that notifications for one reach it,
 * too.  True: it has been notified already, and the next poll says READY.  It
 * does not move from here on.
 *
 * Thread    the one that may touch the future
 * Suspends  no
 */
PIRN_API bool pirn_notify_enable(pirn_notify_op *op);

/* Notify the one that has waited longest, or the one that came last; store the
 * notification if nobody waits.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_notify_one(pirn_notify *notify);
PIRN_API void pirn_notify_last(pirn_notify *notify);

/* Notify everybody who waits now, or has prepared to.  Nothing is stored.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_notify_all(pirn_notify *notify);

PIRN_END_DECLS

#endif /* PIRN_NOTIFY_H */
