/* SPDX-License-Identifier: MIT */
/* pirn/time.h - the clock, deadlines, sleeping.
 *
 * All times are nanoseconds on the monotonic clock, which does not move while
 * the machine is suspended and never goes backward.  A wait ends at its
 * deadline or a little later, never before.
 *
 *     pirn_deadline deadline = pirn_after_ms(500);    // for the whole exchange
 *
 *     rc = pirn_sleep(pirn_after_ms(20));
 */
#ifndef PIRN_TIME_H
#define PIRN_TIME_H

#include <pirn/future.h>
#include <pirn/link.h>

PIRN_BEGIN_DECLS

/* The time now.  On a runtime whose clock is paused, that clock's time.
 *
 * Thread    any
 */
PIRN_API uint64_t pirn_now_ns(void);

/* A deadline that far from now; it reads the clock.  Saturates at the largest
 * time before PIRN_NEVER; the argument UINT64_MAX gives PIRN_NEVER itself.
 *
 * Thread    any
 */
PIRN_API pirn_deadline pirn_after_ns(uint64_t ns);
PIRN_API pirn_deadline pirn_after_us(uint64_t us);
PIRN_API pirn_deadline pirn_after_ms(uint64_t ms);

/* The earlier of two deadlines. */
PIRN_API pirn_deadline pirn_deadline_min(pirn_deadline a, pirn_deadline b);

/* True if the deadline has passed; reads the clock unless the answer is
 * certain. */
PIRN_API bool pirn_deadline_expired(pirn_deadline deadline);

/* Sleep until `until`; at once if it has passed, and for ever on PIRN_NEVER.
 * On a plain thread it blocks the thread.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    it ends before the time
 * Errors    -ECANCELED  the task was cancelled
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           PIRN_ESHUTDOWN  the runtime is gone before the time
 *           -ENOMEM     a plain thread's first call found no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_sleep(pirn_deadline until);

/* An entry of a timer wheel, for embedding. */
typedef struct pirn_timer {
    pirn_link link_;
    uint64_t when_ns_;
    uint8_t level_;
    uint8_t slot_;
    PIRN_ATOMIC(uint8_t) state_;
    uint8_t flags_;
    pirn_lock lock_; /* its first arming against reset and cancel */
    pirn_waker waker_;
    PIRN_ATOMIC(struct pirn__timers *) owner_; /* the wheel it is entered on */
} pirn_timer;

/* A sleep as a future.  Drop is always safe and loses nothing. */
typedef struct pirn_sleep_op {
    pirn_future future;
    pirn_timer timer_;
} pirn_sleep_op;

/* Prepare a sleep until `until`.
 *
 * Thread    any
 * Cancel    dropping it loses nothing
 * Errors    pirn_sleep_rc() after PIRN_READY: 0; PIRN_ENORUNTIME without a
 *           runtime to keep the time; PIRN_ESHUTDOWN if that runtime ended
 */
PIRN_API void pirn_sleep_init(pirn_sleep_op *op, pirn_deadline until);
PIRN_API int pirn_sleep_rc(const pirn_sleep_op *op);

/* Move a sleep that is not READY yet to another time, earlier or later; one
 * that has fired and was not polled since sleeps again.
 *
 * Thread    any; not at the same time as init or drop
 */
PIRN_API void pirn_sleep_reset(pirn_sleep_op *op, pirn_deadline until);

/* End a sleep now: the next poll says PIRN_READY with -ECANCELED.
 *
 * Thread    any; not at the same time as init or drop
 */
PIRN_API void pirn_sleep_cancel(pirn_sleep_op *op);

/* A deadline around another future.  The inner future is polled first, so that
 * success beats an expired deadline; the deadline spends no coop budget. */
typedef struct pirn_timeout_op {
    pirn_future future;
    pirn_future *inner_;
    pirn_timer timer_;
    int rc; /* 0: the inner future ended; -ETIMEDOUT: it was dropped */
} pirn_timeout_op;

/* Wrap `inner`, which becomes the timeout's to poll and drop.
 *
 * Thread    any
 * Cancel    dropping the timeout drops the inner future
 * Errors    rc after PIRN_READY: 0; -ETIMEDOUT; PIRN_ENORUNTIME if it has to
 *           wait without a runtime to keep the time; PIRN_ESHUTDOWN if that
 *           runtime ended.  On an error the inner future has been dropped
 */
PIRN_API void pirn_timeout_init(pirn_timeout_op *op, pirn_future *inner,
                                pirn_deadline deadline);

PIRN_END_DECLS

#endif /* PIRN_TIME_H */
