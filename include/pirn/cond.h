/* SPDX-License-Identifier: MIT */
/* pirn/cond.h - wait, with a mutex, until a condition holds.
 *
 *     rc = pirn_mutex_lock(&queue->mutex, PIRN_NEVER);
 *     if (rc < 0)
 *         return rc;
 *     while (rc == 0 && queue->length == 0)
 *         rc = pirn_cond_wait(&queue->filled, &queue->mutex, deadline);
 *     if (queue->length > 0)
 *         take(queue);
 *     pirn_mutex_unlock(&queue->mutex);
 *
 * The wait gives the mutex up and has it again when it returns, whatever the
 * answer, so there is one unlock at the end and no special case.  Test the
 * condition in a loop: others may have been quicker.
 *
 * Fairness: a signal reaches who has waited longest.
 */
#ifndef PIRN_COND_H
#define PIRN_COND_H

#include <pirn/mutex.h>

PIRN_BEGIN_DECLS

/* Caller-placed; it must not move, and it outlives every call on it. */
typedef struct pirn_cond {
    pirn_lock lock_;
    pirn_waitlist waiters_;
} pirn_cond;

/* One for which nobody waits, as an initialiser. */
#define PIRN_COND_INIT {{{0}}, {{NULL, NULL}}}

/* Prepare one; end one for which nobody waits.
 *
 * Thread    any
 */
PIRN_API void pirn_cond_init(pirn_cond *cond);
PIRN_API void pirn_cond_deinit(pirn_cond *cond);

/* Give the locked mutex up, wait for a signal, and lock the mutex again.  The
 * mutex is locked afterwards in every case.  To lock it again may take longer
 * than the deadline, and cancellation does not cut that short.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts the wait short
 * Cancel    a signal that has come goes to another
 * Owns      the mutex is the caller's before and afterwards
 * Errors    -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  the deadline passed first
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_cond_wait(pirn_cond *cond, pirn_mutex *mutex,
                                            pirn_deadline deadline);

/* The wait as a future; it cannot fail.  READY means that the mutex is locked
 * again. */
typedef struct pirn_cond_wait_op {
    pirn_future future;
    pirn_cond *cond_;
    pirn_mutex *mutex_;
    pirn_waiter waiter_;
    pirn_mutex_lock_op lock_op_;
    uint8_t stage_;
    bool locked; /* the mutex is the caller's: before the first poll and after
                    PIRN_READY; ask this after a drop */
} pirn_cond_wait_op;

/* Prepare a wait with a mutex that is locked.  Discarding its result unlocks.
 *
 * Thread    any
 * Cancel    dropped after its first poll it leaves the mutex unlocked, because
 *           a drop cannot wait; `locked` says so.  A signal that has come goes
 *           to another */
PIRN_API void pirn_cond_wait_init(pirn_cond_wait_op *op, pirn_cond *cond,
                                  pirn_mutex *mutex);

/* Wake the one that has waited longest; or everybody who waits now.  Usually
 * called with the mutex locked, so that nobody misses it between the test of
 * the condition and the wait.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_cond_signal(pirn_cond *cond);
PIRN_API void pirn_cond_broadcast(pirn_cond *cond);

PIRN_END_DECLS

#endif /* PIRN_COND_H */
