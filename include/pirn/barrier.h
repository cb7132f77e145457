/* SPDX-License-Identifier: MIT */
/* pirn/barrier.h - a place where so many tasks meet before they go on.
 *
 *     rc = pirn_barrier_wait(&phase->barrier, PIRN_NEVER);
 *     if (rc < 0)
 *         return rc;
 *     if (rc > 0)
 *         publish(phase);         // one of them: the leader
 *
 * It can be used again and again: who has gone on may wait for the next round
 * at once.  The leader is the one that came last.
 *
 * Fairness: nobody of a round is passed.  The one that completes it wakes all the
 * others, in the order in which they came; who comes later is of the next round.
 */
#ifndef PIRN_BARRIER_H
#define PIRN_BARRIER_H

#include <pirn/waiter.h>

PIRN_BEGIN_DECLS

/* Caller-placed; it must not move, and it outlives every call on it. */
typedef struct pirn_barrier {
    pirn_lock lock_;
    uint32_t count_;   /* constant */
    uint32_t arrived_; /* lock_: in this round */
    uint32_t round_;   /* lock_ */
    pirn_waitlist waiters_;
} pirn_barrier;

/* A barrier for `count` tasks, at least one, as an initialiser. */
#define PIRN_BARRIER_INIT(count) {{{0}}, (count), 0, 0, {{NULL, NULL}}}

/* Prepare a barrier for `count` tasks.
 *
 * Thread    any
 * Errors    -EINVAL  count is 0
 */
PIRN_API PIRN_MUST_CHECK int pirn_barrier_init(pirn_barrier *barrier,
                                               uint32_t count);

/* End a barrier at which nobody waits.
 *
 * Thread    any
 */
PIRN_API void pirn_barrier_deinit(pirn_barrier *barrier);

/* Wait until `count` tasks have come.  1 for the leader, 0 for the others.
 * What any of them wrote before is seen by all of them afterwards.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes, but for the leader; cancellation cuts it short
 * Cancel    it has not come: the others wait for one more
 * Errors    -ECANCELED  the task was cancelled
 *           -ETIMEDOUT  the deadline passed first
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 */
PIRN_API PIRN_MUST_CHECK int pirn_barrier_wait(pirn_barrier *barrier,
                                               pirn_deadline deadline);

/* The wait as a future; its outcome is what pirn_barrier_wait() returns. */
typedef struct pirn_barrier_op {
    pirn_future future;
    pirn_barrier *barrier_;
    uint32_t round_;
    bool is_leader; /* after PIRN_READY */
    pirn_waiter waiter_;
} pirn_barrier_op;

/* Prepare a wait.  It has come when it is first polled.
 *
 * Thread    any
 * Cancel    dropped before the round was complete, it has not come
 */
PIRN_API void pirn_barrier_wait_init(pirn_barrier_op *op,
                                     pirn_barrier *barrier);

PIRN_END_DECLS

#endif /* PIRN_BARRIER_H */
