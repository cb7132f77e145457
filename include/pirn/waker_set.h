/* SPDX-License-Identifier: MIT */
/* pirn/waker_set.h - a line of waiting futures: for objects of your own that
 * several tasks wait for.
 *
 * Each of your operations has a place, and in its poll stands in line first and
 * looks at its condition afterwards; who makes the condition true does that
 * first and wakes afterwards.  So one of the two sees the other.
 *
 *     static enum pirn_poll take_poll(pirn_future *self, pirn_cx *cx)
 *     {
 *         struct take_op *op = PIRN_CONTAINER_OF(self, struct take_op, future);
 *
 *         pirn_waker_set_enter(&op->pool->waiting, &op->waiter, cx);
 *         op->item = pool_try_take(op->pool);
 *         if (op->item == NULL)
 *             return PIRN_PENDING;
 *         pirn_waker_set_leave(&op->pool->waiting, &op->waiter);
 *         return PIRN_READY;
 *     }
 *
 *     static void take_drop(pirn_future *self)
 *     {
 *         struct take_op *op = PIRN_CONTAINER_OF(self, struct take_op, future);
 *
 *         pirn_waker_set_leave(&op->pool->waiting, &op->waiter);
 *     }
 *
 *     pool_put(pool, item);
 *     pirn_waker_set_wake_one(&pool->waiting);
 *
 * Fairness: the one that has waited longest is woken first.  The set does not
 * keep a newcomer from being quicker than the one that was woken, who then
 * stands in line again, at the end.
 */
#ifndef PIRN_WAKER_SET_H
#define PIRN_WAKER_SET_H

#include <pirn/waiter.h>

PIRN_BEGIN_DECLS

/* Caller-placed; it must not move, and it outlives every call on it. */
typedef struct pirn_waker_set {
    pirn_lock lock_;
    pirn_waitlist waiters_;
} pirn_waker_set;

/* An empty one, as an initialiser. */
#define PIRN_WAKER_SET_INIT {{{0}}, {{NULL, NULL}}}

/* Prepare an empty set; end one in which nobody is.
 *
 * Thread    any
 */
PIRN_API void pirn_waker_set_init(pirn_waker_set *set);
PIRN_API void pirn_waker_set_deinit(pirn_waker_set *set);

/* Prepare a place; by the init of your operation.
 *
 * Thread    any
 */
PIRN_API void pirn_waker_set_prepare(pirn_waiter *waiter);

/* Stand in line, at the end; who is in line already stays there and renews its
 * waker.
 *
 * Thread    the one that may touch the future
 * Suspends  no
 */
PIRN_API void pirn_waker_set_enter(pirn_waker_set *set, pirn_waiter *waiter,
                                   const pirn_cx *cx);

/* Out of the line, with what it waited for or, by the drop of your operation,
 * without.  A wake for one that has come since the last enter goes to the next,
 * for it may mean more than what this one has found.
 *
 * Thread    the one that may touch the future
 * Suspends  no
 */
PIRN_API void pirn_waker_set_leave(pirn_waker_set *set, pirn_waiter *waiter);

/* Wake the one that has waited longest, who leaves the line; false if nobody
 * waits.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API bool pirn_waker_set_wake_one(pirn_waker_set *set);

/* Wake everybody who is in line now; all leave it.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_waker_set_wake_all(pirn_waker_set *set);

PIRN_END_DECLS

#endif /* PIRN_WAKER_SET_H */
