/* SPDX-License-Identifier: MIT */
/* pirn/sem.h - a semaphore: so many permits, and a line for who wants some.
 *
 * It bounds how much goes on at once: connections, requests under way, bytes
 * in memory.  A task acquires some permits, works, and releases them.
 *
 *     static pirn_sem uploads = PIRN_SEM_INIT(4);
 *
 *     rc = pirn_sem_acquire(&uploads, 1, PIRN_NEVER);
 *     if (rc < 0)
 *         return rc;
 *     rc = upload(file);
 *     pirn_sem_release(&uploads, 1);
 *
 * Fairness: strictly first come, first served.  A request for many permits at
 * the head of the line is not passed by a smaller one behind it, and a newcomer
 * takes none while somebody waits.  Who has come is who stands in line: a task
 * that has just handed permits over to the line, and wants some back at once,
 * lets the others run for a turn before it does.
 *
 * What was written before a release is seen after the acquire that gets its
 * permits; so permits alone may guard data.
 */
#ifndef PIRN_SEM_H
#define PIRN_SEM_H

#include <pirn/waiter.h>

PIRN_BEGIN_DECLS

/* The most permits that a semaphore can hold. */
#define PIRN_SEM_MAX 0x3fffffffu

/* Caller-placed.  It must not move, and it outlives every call on it; whoever
 * acquires what the release of a single permit gave may deinit it at once. */
typedef struct pirn_sem {
    PIRN_ATOMIC(uint32_t) word_; /* permits, closed, somebody waits */
    pirn_lock lock_;
    pirn_waitlist waiters_;
    pirn_giver giver_;
} pirn_sem;

/* A semaphore with so many permits, as an initialiser. */
#define PIRN_SEM_INIT(permits) \
    {{(uint32_t)(permits) << 2}, {{0}}, {{NULL, NULL}}, {{0}, {0}, {0}}}

/* Prepare a semaphore with so many permits, at most PIRN_SEM_MAX.
 *
 * Thread    any
 * Errors    -EINVAL  more than PIRN_SEM_MAX
 */
PIRN_API PIRN_MUST_CHECK int pirn_sem_init(pirn_sem *sem, uint32_t permits);

/* End a semaphore for which nobody waits.
 *
 * Thread    any
 */
PIRN_API void pirn_sem_deinit(pirn_sem *sem);

/* Take `permits` permits, all at once, and wait in line until there are as
 * many.  Zero permits are there at once.  A request for more than there ever
 * are waits for ever, and everybody behind it.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    no permit is taken, and the place in line is lost
 * Owns      on success the permits are the caller's until it releases them
 * Errors    -EINVAL        more than PIRN_SEM_MAX
 *           -ECANCELED     the task was cancelled
 *           -ETIMEDOUT     the deadline passed first
 *           -EDEADLK       called inside a poll, a drop, a waker or a hook
 *           -ENOMEM        a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 *           PIRN_ECLOSED   the semaphore is closed
 */
PIRN_API PIRN_MUST_CHECK int pirn_sem_acquire(pirn_sem *sem, uint32_t permits,
                                              pirn_deadline deadline);

/* The same without waiting.
 *
 * Thread    any
 * Suspends  no
 * Owns      as pirn_sem_acquire()
 * Errors    -EINVAL        more than PIRN_SEM_MAX
 *           -EAGAIN        too few permits, or somebody waits for them
 *           PIRN_ECLOSED   the semaphore is closed
 */
PIRN_API PIRN_MUST_CHECK int pirn_sem_try_acquire(pirn_sem *sem,
                                                  uint32_t permits);

/* The same as a future. */
typedef struct pirn_sem_acquire_op {
    pirn_future future;
    pirn_sem *sem_;
    pirn_waiter waiter_;
    int rc; /* after PIRN_READY: 0, -EINVAL or PIRN_ECLOSED */
} pirn_sem_acquire_op;

/* Prepare an acquire.  Discarding its result releases the permits.
 *
 * Thread    any
 * Cancel    dropping it takes no permit; one that was granted unseen goes to
 *           the next in line
 * Owns      after PIRN_READY with 0 the permits are the caller's
 */
PIRN_API void pirn_sem_acquire_init(pirn_sem_acquire_op *op, pirn_sem *sem,
                                    uint32_t permits);

/* Give back permits, or add new ones: the semaphore does not care whether they
 * were ever acquired.  To forget permits, do not release them.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_sem_release(pirn_sem *sem, uint32_t permits);

/* Take away up to `permits` of those that are free now, without waiting, and
 * return how many.  To shrink a semaphore, remove, and forget the rest as they
 * are given back.  None is free for this while somebody waits.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API uint32_t pirn_sem_remove(pirn_sem *sem, uint32_t permits);

/* How many permits are free now.
 *
 * Thread    any
 */
PIRN_API uint32_t pirn_sem_available(const pirn_sem *sem);

/* Close for ever: who waits, and whoever acquires later, is told PIRN_ECLOSED.
 * Permits may still be released.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_sem_close(pirn_sem *sem);
PIRN_API bool pirn_sem_is_closed(const pirn_sem *sem);

/* Permits as a value that knows where they belong, to be handed to another task
 * or stored in an object.  A zeroed one is empty. */
typedef struct pirn_permit {
    pirn_sem *sem_;
    uint32_t count_;
} pirn_permit;

/* Make a value of permits that the caller has acquired.
 *
 * Thread    any
 * Owns      the permits belong to the value
 */
PIRN_API pirn_permit pirn_permit_of(pirn_sem *sem, uint32_t permits);

/* How many permits the value has. */
PIRN_API uint32_t pirn_permit_count(const pirn_permit *permit);

/* Move the permits out, leaving the value empty: to hand them over.
 *
 * Thread    any
 * Owns      the permits belong to the value returned
 */
PIRN_API pirn_permit pirn_permit_take(pirn_permit *permit);

/* Give the permits back; nothing if the value is empty.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_permit_release(pirn_permit *permit);

/* Leave the value empty without giving its permits back, and return how many
 * the semaphore has lost.
 *
 * Thread    any
 */
PIRN_API uint32_t pirn_permit_forget(pirn_permit *permit);

/* Move `permits` of the permits into a new value.
 *
 * Thread    any
 * Owns      on an error nothing moves, and *out is empty
 * Errors    -EINVAL  the value has fewer
 */
PIRN_API PIRN_MUST_CHECK int
pirn_permit_split(pirn_permit *permit, uint32_t permits, pirn_permit *out);

/* Move the permits of `source` into `target`, leaving `source` empty.
 *
 * Thread    any
 * Owns      on an error nothing moves
 * Errors    -EINVAL  they belong to different semaphores, or are too many
 */
PIRN_API PIRN_MUST_CHECK int pirn_permit_merge(pirn_permit *target,
                                               pirn_permit *source);

PIRN_END_DECLS

#endif /* PIRN_SEM_H */
