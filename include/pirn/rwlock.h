/* SPDX-License-Identifier: MIT */
/* pirn/rwlock.h - a lock that many may hold to read, or one to write.
 *
 *     rc = pirn_rwlock_read(&table->lock, PIRN_NEVER);
 *     if (rc < 0)
 *         return rc;
 *     value = table_look_up(table, key);
 *     pirn_rwlock_read_unlock(&table->lock);
 *
 * Fairness: strictly first come, first served, as with a semaphore.  A reader
 * that comes while a writer waits stands behind it, so that writers do not
 * starve; readers that stand in line next to each other go in together.
 * Therefore who reads and asks to read again may wait for a writer that waits
 * for the first read to end: do not nest.
 *
 * Like a mutex it knows no owner, and may be held across a suspension.
 */
#ifndef PIRN_RWLOCK_H
#define PIRN_RWLOCK_H

#include <pirn/sem.h>

PIRN_BEGIN_DECLS

/* The most readers that may be inside at a time. */
#define PIRN_RWLOCK_READERS_MAX PIRN_SEM_MAX

/* Caller-placed; it must not move, and it outlives every call on it. */
typedef struct pirn_rwlock {
    pirn_sem sem_; /* a reader takes one permit, a writer all of them */
    uint32_t readers_max_;
} pirn_rwlock;

/* An unlocked one without a limit on readers, as an initialiser. */
#define PIRN_RWLOCK_INIT \
    {PIRN_SEM_INIT(PIRN_RWLOCK_READERS_MAX), PIRN_RWLOCK_READERS_MAX}

/* Prepare an unlocked one that lets in at most `readers_max` readers at a time;
 * 0: as many as there can be.
 *
 * Thread    any
 * Errors    -EINVAL  more than PIRN_RWLOCK_READERS_MAX
 */
PIRN_API PIRN_MUST_CHECK int pirn_rwlock_init(pirn_rwlock *lock,
                                              uint32_t readers_max);

/* End one that nobody holds or waits for.
 *
 * Thread    any
 */
PIRN_API void pirn_rwlock_deinit(pirn_rwlock *lock);

/* Lock for reading, or for writing.
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
PIRN_API PIRN_MUST_CHECK int pirn_rwlock_read(pirn_rwlock *lock,
                                              pirn_deadline deadline);
PIRN_API PIRN_MUST_CHECK int pirn_rwlock_write(pirn_rwlock *lock,
                                               pirn_deadline deadline);

/* The same unless that means to wait.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_rwlock_read()
 * Errors    -EAGAIN  somebody is inside who does not go with it, or waits
 */
PIRN_API PIRN_MUST_CHECK int pirn_rwlock_try_read(pirn_rwlock *lock);
PIRN_API PIRN_MUST_CHECK int pirn_rwlock_try_write(pirn_rwlock *lock);

/* Unlock what was locked for reading, or for writing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_rwlock_read_unlock(pirn_rwlock *lock);
PIRN_API void pirn_rwlock_write_unlock(pirn_rwlock *lock);

/* Go from writing to reading without letting a writer in between.  Readers that
 * stand first in line come in.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_rwlock_downgrade(pirn_rwlock *lock);

/* Locking as a future.  READY means locked; it cannot fail. */
typedef struct pirn_rwlock_op {
    pirn_future future;
    pirn_rwlock *lock_;
    pirn_sem_acquire_op acquire_;
} pirn_rwlock_op;

/* Prepare to lock for reading, or for writing.  Discarding its result unlocks.
 *
 * Thread    any
 * Cancel    dropping it leaves the line; what was granted unseen goes to the
 *           next
 * Owns      after PIRN_READY the duty to unlock is the caller's
 */
PIRN_API void pirn_rwlock_read_init(pirn_rwlock_op *op, pirn_rwlock *lock);
PIRN_API void pirn_rwlock_write_init(pirn_rwlock_op *op, pirn_rwlock *lock);

PIRN_END_DECLS

#endif /* PIRN_RWLOCK_H */
