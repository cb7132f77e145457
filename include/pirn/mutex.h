/* SPDX-License-Identifier: MIT */
/* pirn/mutex.h - a lock that may be held across a suspension.
 *
 * A task that holds it may sleep, read and write; who wants it meanwhile is set
 * aside and its thread does other work.  For a few instructions that never
 * suspend, a pthread mutex is as good.
 *
 *     struct account {
 *         pirn_mutex mutex;       // guards the rest
 *         int64_t balance;
 *     };
 *
 *     rc = pirn_mutex_lock(&account->mutex, PIRN_NEVER);
 *     if (rc < 0)
 *         return rc;
 *     account->balance += amount;
 *     pirn_mutex_unlock(&account->mutex);
 *
 * Fairness: who waits gets it in the order of coming; an unlock hands it to the
 * first in line, and nobody passes.  While nobody waits a newcomer that finds
 * it locked tries again for a moment before it stands in line; and a task that
 * has handed it over and wants it back at once lets the others run for a turn.
 *
 * It knows no owner: a task may lock it and another one unlock it.  Nothing is
 * poisoned: a task that ends without unlocking leaves it locked.  Whoever locks
 * twice waits for itself.
 */
#ifndef PIRN_MUTEX_H
#define PIRN_MUTEX_H

#include <pirn/waiter.h>

PIRN_BEGIN_DECLS

/* Caller-placed; it must not move.  Who has locked it last may unlock and
 * deinit it, even if the unlock before has only just returned. */
typedef struct pirn_mutex {
    PIRN_ATOMIC(uint32_t) word_; /* free, locked, locked with waiters */
    pirn_lock lock_;
    pirn_waitlist waiters_;
    pirn_giver giver_;
} pirn_mutex;

/* An unlocked mutex, as an initialiser. */
#define PIRN_MUTEX_INIT {{0}, {{0}}, {{NULL, NULL}}, {{0}, {0}, {0}}}

/* Prepare an unlocked mutex; end one that is unlocked.
 *
 * Thread    any
 */
PIRN_API void pirn_mutex_init(pirn_mutex *mutex);
PIRN_API void pirn_mutex_deinit(pirn_mutex *mutex);

/* Lock.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    it is not locked, and the place in line is lost
 * Owns      on success the duty to unlock is the caller's
 * Errors    -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  the deadline passed first
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_mutex_lock(pirn_mutex *mutex,
                                             pirn_deadline deadline);

/* Lock unless that means to wait.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_mutex_lock()
 * Errors    -EAGAIN  it is locked
 */
PIRN_API PIRN_MUST_CHECK int pirn_mutex_try_lock(pirn_mutex *mutex);

/* Unlock what is locked, by whomever.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_mutex_unlock(pirn_mutex *mutex);

/* Locking as a future.  READY means locked; it cannot fail. */
typedef struct pirn_mutex_lock_op {
    pirn_future future;
    pirn_mutex *mutex_;
    pirn_waiter waiter_;
} pirn_mutex_lock_op;

/* Prepare it.  Discarding its result unlocks.
 *
 * Thread    any
 * Cancel    dropping it leaves the line; a mutex that was handed over unseen
 *           goes to the next
 * Owns      after PIRN_READY the duty to unlock is the caller's
 */
PIRN_API void pirn_mutex_lock_init(pirn_mutex_lock_op *op, pirn_mutex *mutex);

/* The duty to unlock, as a value: to be handed to another task, or stored.  A
 * zeroed one is empty. */
typedef struct pirn_mutex_guard {
    pirn_mutex *mutex_;
} pirn_mutex_guard;

/* Make one of a mutex that the caller has locked.
 *
 * Thread    any
 * Owns      the duty to unlock belongs to the value
 */
PIRN_API pirn_mutex_guard pirn_mutex_guard_of(pirn_mutex *mutex);

/* Move the duty out, leaving the value empty.
 *
 * Thread    any
 * Owns      the duty to unlock belongs to the value returned
 */
PIRN_API pirn_mutex_guard pirn_mutex_guard_take(pirn_mutex_guard *guard);

/* Unlock and leave the value empty; nothing if it is.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_mutex_guard_unlock(pirn_mutex_guard *guard);

PIRN_END_DECLS

#endif /* PIRN_MUTEX_H */
