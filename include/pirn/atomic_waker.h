/* SPDX-License-Identifier: MIT */
/* pirn/atomic_waker.h - one waker that any thread may wake: for futures of your
 * own that are waited for by one task at a time.
 *
 * The future registers its waker first and looks at its condition afterwards;
 * who makes the condition true does that first and wakes afterwards.  So one of
 * the two sees the other.
 *
 *     static enum pirn_poll done_poll(pirn_future *self, pirn_cx *cx)
 *     {
 *         struct done *done = PIRN_CONTAINER_OF(self, struct done, future);
 *
 *         pirn_atomic_waker_register(&done->waker, cx);
 *         return done_is_set(done) ? PIRN_READY : PIRN_PENDING;
 *     }
 *
 *     static void done_drop(pirn_future *self)
 *     {
 *         struct done *done = PIRN_CONTAINER_OF(self, struct done, future);
 *
 *         pirn_atomic_waker_deinit(&done->waker);
 *     }
 *
 *     done_set(done);
 *     pirn_atomic_waker_wake(&done->waker);
 *
 * The register and the wake are ordered by a lock, so the condition itself may
 * be a relaxed atomic.  For several who wait there is pirn/waker_set.h.
 */
#ifndef PIRN_ATOMIC_WAKER_H
#define PIRN_ATOMIC_WAKER_H

#include <pirn/future.h>
#include <pirn/link.h>

PIRN_BEGIN_DECLS

/* Caller-placed; it must not move. */
typedef struct pirn_atomic_waker {
    pirn_lock lock_;
    pirn_waker waker_; /* lock_ */
} pirn_atomic_waker;

/* An empty one, as an initialiser. */
#define PIRN_ATOMIC_WAKER_INIT {{{0}}, {NULL, NULL}}

/* Prepare an empty one; end one, dropping the waker that it holds.
 *
 * Thread    any
 */
PIRN_API void pirn_atomic_waker_init(pirn_atomic_waker *slot);
PIRN_API void pirn_atomic_waker_deinit(pirn_atomic_waker *slot);

/* Keep the waker of this poll instead of an earlier one; it is cloned only if
 * it differs.
 *
 * Thread    the poller; at the same time as wake and take of others
 * Suspends  no
 */
PIRN_API void pirn_atomic_waker_register(pirn_atomic_waker *slot,
                                         const pirn_cx *cx);

/* Wake the waker and forget it; nothing if there is none.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_atomic_waker_wake(pirn_atomic_waker *slot);

/* Move the waker out, to wake it after a lock of your own is free.
 *
 * Thread    any
 */
PIRN_API PIRN_MUST_CHECK pirn_waker
pirn_atomic_waker_take(pirn_atomic_waker *slot);

PIRN_END_DECLS

#endif /* PIRN_ATOMIC_WAKER_H */
