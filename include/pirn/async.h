/* SPDX-License-Identifier: MIT */
/* pirn/async.h - stackless tasks: a struct and a poll function that resumes.
 *
 * The struct starts with a pirn_frame; what must live across an await is one of
 * its fields.  The poll function is a resumable switch: between PIRN_ASYNC_BEGIN
 * and PIRN_ASYNC_END each await returns PIRN_PENDING and is entered again by
 * the next poll.
 *
 *     struct ticker {
 *         pirn_frame frame;
 *         pirn_sleep_op sleep;
 *         int count;
 *     };
 *
 *     static enum pirn_poll ticker_poll(pirn_future *self, pirn_cx *cx)
 *     {
 *         struct ticker *t = PIRN_FRAME_OF(self, struct ticker, frame);
 *
 *         PIRN_ASYNC_BEGIN(&t->frame, cx);
 *         while (t->count-- > 0) {
 *             pirn_sleep_init(&t->sleep, pirn_after_ms(100));
 *             PIRN_AWAIT(&t->sleep.future);
 *             if (pirn_sleep_rc(&t->sleep) < 0)
 *                 PIRN_ASYNC_RETURN(pirn_sleep_rc(&t->sleep));
 *         }
 *         PIRN_ASYNC_END();
 *     }
 *
 *     static const pirn_async_ops ticker_ops =
 *         PIRN_ASYNC_OPS(ticker_poll, NULL);
 *
 * Rules: an await may not stand inside a `switch` of yours; locals do not
 * survive an await; two awaits may not share a source line.
 */
#ifndef PIRN_ASYNC_H
#define PIRN_ASYNC_H

#include <pirn/time.h>

PIRN_BEGIN_DECLS

typedef struct pirn_frame pirn_frame;

/* The clean-up of a frame: runs exactly once, after the awaited child is gone,
 * whether the frame returned, failed or was dropped.  It may not suspend. */
typedef void pirn_cleanup_fn(pirn_frame *frame);

typedef struct pirn_async_ops {
    pirn_future_ops future; /* first: the frame's future points here */
    pirn_cleanup_fn *cleanup;
} pirn_async_ops;

/* First member of a stackless task's struct. */
struct pirn_frame {
    pirn_future future;
    pirn_future *child_; /* the awaited future, or NULL */
    uint32_t resume_;    /* the line to continue at; 0 = from the start */
    int rc;              /* the outcome, once PIRN_READY */
};

/* A table for a poll function and an optional clean-up.  Give a discard or a
 * describe by writing the struct out. */
#define PIRN_ASYNC_OPS(poll_fn, cleanup_fn) \
    { \
        {(poll_fn), pirn_frame_drop, NULL, pirn_frame_describe, \
         pirn_frame_outcome}, \
            (cleanup_fn) \
    }

/* Make a frame ready for its first poll.  The clean-up becomes due here.
 *
 * Thread    any
 */
PIRN_API void pirn_frame_init(pirn_frame *frame, const pirn_async_ops *ops);

/* Parts of PIRN_ASYNC_OPS: give up a frame (its awaited child first, then the
 * clean-up); its outcome; what it waits for. */
PIRN_API void pirn_frame_drop(pirn_future *future);
PIRN_API int pirn_frame_outcome(const pirn_future *future);
PIRN_API void pirn_frame_describe(const pirn_future *future, pirn_text *out);

/* Parts of the macros below, not for direct use. */
PIRN_API bool pirn_frame_wait_(pirn_frame *frame, pirn_cx *cx);
PIRN_API enum pirn_poll pirn_frame_finish_(pirn_frame *frame, int rc);

/* The struct whose frame's future is `self`. */
#define PIRN_FRAME_OF(self, type, frame_member) \
    PIRN_CONTAINER_OF(self, type, frame_member.future)

/* Open the body. */
#define PIRN_ASYNC_BEGIN(frame, cx) \
    pirn_frame *const pirn_frame_in_use_ = (frame); \
    pirn_cx *const pirn_cx_in_use_ = (cx); \
    switch (pirn_frame_in_use_->resume_) { \
    case 0:

/* Poll `child` until it is ready.  On the next line its result is a field of
 * its struct.  The child must not move, nor be reused, before then. */
#define PIRN_AWAIT(child) \
    do { \
        pirn_frame_in_use_->child_ = (child); \
        pirn_frame_in_use_->resume_ = __LINE__; \
        __attribute__((fallthrough)); \
    case __LINE__: \
        if (!pirn_frame_wait_(pirn_frame_in_use_, pirn_cx_in_use_)) \
            return PIRN_PENDING; \
    } while (0)

/* The same with a deadline: `timeout` is a pirn_timeout_op field of the frame.
 * Afterwards timeout->rc is 0 if the child ended, and -ETIMEDOUT (or another
 * code of pirn_timeout_op) if it was dropped. */
#define PIRN_AWAIT_UNTIL(timeout, child, deadline) \
    do { \
        pirn_timeout_init((timeout), (child), (deadline)); \
        pirn_frame_in_use_->child_ = &(timeout)->future; \
        pirn_frame_in_use_->resume_ = __LINE__; \
        __attribute__((fallthrough)); \
    case __LINE__: \
        if (!pirn_frame_wait_(pirn_frame_in_use_, pirn_cx_in_use_)) \
            return PIRN_PENDING; \
    } while (0)

/* Leave early with an outcome: 0 or a count, or a negative code. */
#define PIRN_ASYNC_RETURN(outcome) \
    return pirn_frame_finish_(pirn_frame_in_use_, (outcome))

/* Close the body; falling out of it is outcome 0. */
#define PIRN_ASYNC_END() \
    } \
    return pirn_frame_finish_(pirn_frame_in_use_, 0)

PIRN_END_DECLS

#endif /* PIRN_ASYNC_H */
