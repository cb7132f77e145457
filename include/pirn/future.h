/* SPDX-License-Identifier: MIT */
/* pirn/future.h - futures, wakers and the context of a poll.
 *
 * Everything in Pirn that waits is a future: a struct whose first member
 * `future` points to a constant table of operations.  The caller owns its
 * memory.  It is live from its init until poll() says PIRN_READY or drop() is
 * called; one of the two ends it.  Once polled it does not move until then.
 *
 *     static enum pirn_poll once_poll(pirn_future *self, pirn_cx *cx)
 *     {
 *         struct once *once = PIRN_CONTAINER_OF(self, struct once, future);
 *
 *         if (once->asked)
 *             return PIRN_READY;
 *         once->asked = true;
 *         pirn_waker_wake_by_ref(cx->waker);    // be polled again
 *         return PIRN_PENDING;
 *     }
 *
 * Most programs never write one: straight-line calls in fibers (pirn/fiber.h)
 * and the PIRN_ASYNC_ macros (pirn/async.h) do it for them.
 */
#ifndef PIRN_FUTURE_H
#define PIRN_FUTURE_H

#include <pirn/base.h>

PIRN_BEGIN_DECLS

enum pirn_poll {
    PIRN_PENDING, /* not yet; the waker has been stored and will be used */
    PIRN_READY    /* ended; the result is in the concrete struct */
};

typedef struct pirn_future pirn_future;
typedef struct pirn_cx pirn_cx;
typedef struct pirn_waker pirn_waker;

/* A bounded text under construction; see pirn_text_append(). */
typedef struct pirn_text {
    char *buf;
    size_t size;
    size_t len; /* without the closing NUL; always < size */
} pirn_text;

typedef struct pirn_future_ops {
    /* One step.  PIRN_PENDING: the waker of `cx` has been stored, or an earlier
     * one renewed; it is cloned only if it differs.  PIRN_READY: all is
     * released but the result, a plain field of the concrete struct. */
    enum pirn_poll (*poll)(pirn_future *self, pirn_cx *cx);
    /* Give up while live.  Releases everything at once and never suspends. */
    void (*drop)(pirn_future *self);
    /* After PIRN_READY, when the result has no taker: close the descriptor,
     * free the message.  NULL when a result owns nothing. */
    void (*discard)(pirn_future *self);
    /* Say in a few words what it waits for.  Called only while nobody else can
     * poll the future; may be NULL. */
    void (*describe)(const pirn_future *self, pirn_text *out);
    /* After PIRN_READY: 0 or a count on success, a negative code on failure.
     * NULL means that it cannot fail.  It becomes the outcome of a task whose
     * future this is. */
    int (*outcome)(const pirn_future *self);
} pirn_future_ops;

struct pirn_future {
    const pirn_future_ops *ops;
};

/* A waker runs a task again.  Waking is idempotent while the task waits: any
 * number of wakes before the next poll make one poll. */
typedef struct pirn_waker_ops {
    /* A second waker equal to this one.  Never fails. */
    pirn_waker (*clone)(const pirn_waker *self);
    /* Wake and give the waker up. */
    void (*wake)(pirn_waker self);
    /* Wake and keep it. */
    void (*wake_by_ref)(const pirn_waker *self);
    /* Give it up without waking. */
    void (*drop)(pirn_waker self);
} pirn_waker_ops;

struct pirn_waker {
    void *data;
    const pirn_waker_ops *ops; /* NULL: the empty waker, which does nothing */
};

/* What a poll may use.  Lives on the poller's stack; a combinator that needs
 * its own waker copies the context and replaces `waker`. */
struct pirn_cx {
    const pirn_waker *waker; /* valid during the poll; clone to keep */
    struct pirn__turn *turn_; /* the runtime's side of this poll, or NULL */
};

/* Poll by hand, outside any runtime: `waker` is told when to poll again.
 * Timers answer PIRN_ENORUNTIME and the coop budget is unlimited.
 *
 * Thread    any
 */
PIRN_API pirn_cx pirn_cx_of_waker(const pirn_waker *waker);

/* Poll a live future once.  Suspending calls made inside answer -EDEADLK.
 *
 * Thread    the one that may touch the future
 */
PIRN_API PIRN_MUST_CHECK enum pirn_poll
pirn_future_poll(pirn_future *future, pirn_cx *cx);

/* Give up a live future.
 *
 * Thread    the one that may touch the future
 * Suspends  no
 */
PIRN_API void pirn_future_drop(pirn_future *future);

/* Throw away the result of a future that said PIRN_READY.
 *
 * Thread    the one that may touch the future
 * Suspends  no
 */
PIRN_API void pirn_future_discard(pirn_future *future);

/* The outcome of a future that said PIRN_READY. */
PIRN_API int pirn_future_outcome(const pirn_future *future);

/* Append what a future waits for, or "?" if it does not say. */
PIRN_API void pirn_future_describe(const pirn_future *future, pirn_text *out);

/* The four operations of a waker; each does nothing on the empty waker.
 * clone and wake_by_ref leave `waker` alone; wake and drop use it up.
 * The waker of a task takes no allocation and may outlive its runtime.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API PIRN_MUST_CHECK pirn_waker pirn_waker_clone(const pirn_waker *waker);
PIRN_API void pirn_waker_wake(pirn_waker waker);
PIRN_API void pirn_waker_wake_by_ref(const pirn_waker *waker);
PIRN_API void pirn_waker_drop(pirn_waker waker);

/* True if both would wake the same thing. */
PIRN_API bool pirn_waker_same(const pirn_waker *a, const pirn_waker *b);

/* Move the waker out, leaving the empty one. */
PIRN_API PIRN_MUST_CHECK pirn_waker pirn_waker_take(pirn_waker *waker);

/* Store the waker of `cx` in `slot`: nothing if it is already the same one,
 * else a clone.  Returns the replaced waker, which the caller drops after it
 * has released its locks. */
PIRN_API PIRN_MUST_CHECK pirn_waker
pirn_waker_store(pirn_waker *slot, const pirn_cx *cx);

/* Spend one unit of the task's coop budget.  False: it is used up, a wake has
 * been arranged for after the others, return PIRN_PENDING now.  Events and timers
 * are served meanwhile, at the latest every few times.
 * Every operation that can be ready many times in a row calls it first. */
PIRN_API PIRN_MUST_CHECK bool pirn_coop_spend(pirn_cx *cx);

/* Mark the current task as failed with a message; its future then returns
 * PIRN_READY and the outcome is PIRN_EFAILED.  The message is cut at 127
 * bytes.  Outside a task of a runtime it does nothing.  It is for this poll: in a
 * future that a fiber awaits it counts only if the fiber ends before it is
 * suspended again; what a fiber has to say of its end is its return value.
 *
 * Thread    the poller
 */
PIRN_API void pirn_cx_fail(pirn_cx *cx, const char *format, ...)
    PIRN_PRINTF(2, 3);

/* Append formatted text; what does not fit is cut, and the text stays
 * terminated. */
PIRN_API void pirn_text_append(pirn_text *text, const char *format, ...)
    PIRN_PRINTF(2, 3);

PIRN_END_DECLS

#endif /* PIRN_FUTURE_H */
