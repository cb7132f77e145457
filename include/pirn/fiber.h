/* SPDX-License-Identifier: MIT */
/* pirn/fiber.h - tasks written as straight-line code.
 *
 * A fiber is a function on a small stack of its own.  Where an ordinary
 * function would block its thread, a fiber is set aside and another task runs.
 *
 *     static int greet(void *arg)
 *     {
 *         int rc = pirn_sleep(pirn_after_ms(100));
 *
 *         if (rc == 0)
 *             puts(arg);
 *         return rc;              // the outcome, for whoever joins
 *     }
 *
 *     rc = pirn_go(greet, "hello");
 *
 * A cancelled fiber is not torn down: its current wait and every later call
 * that could suspend answer -ECANCELED, and it returns by its own error path.
 * After any suspending call the fiber may continue on another thread, so
 * neither errno nor the address of a thread-local means anything across one.
 *
 * Below each stack lies a guard, which ends the process when it is touched.  A
 * frame larger than the guard, a page (64 KiB on 64-bit ARM), is sure to touch it
 * only if its code was compiled with -fstack-clash-protection.  The guard is put in
 * when the fiber first runs, if not before, at a place that the start has reserved.
 * A program that locks its memory, with mlockall(), does so before it starts tens of
 * thousands of fibers, or the reserve is void and it may end there.
 */
#ifndef PIRN_FIBER_H
#define PIRN_FIBER_H

#include <pirn/task.h>

PIRN_BEGIN_DECLS

/* The body of a fiber.  Returns 0 or a count, or a negative code. */
typedef int pirn_fiber_fn(void *arg);

/* Run fn(arg) on a new fiber of the current runtime.  It runs exactly once,
 * also when it is cancelled before it started, for it owns its argument; only
 * an abort, by pirn_task_abort() or at the deadline of a shutdown, keeps one that
 * has not started from ever running.
 *
 *     pirn_go(fn, arg)
 *     pirn_go_with(fn, arg, options, out)
 *
 * Thread    any
 * Suspends  no
 * Owns      `arg` passes to fn on success; on error it is still the caller's,
 *           fn will not run, and *out is NULL
 * Errors    -EINVAL         fn is NULL; a stack size outside 16 KiB..1 GiB;
 *                           priority not one of the three; pinned, outside a
 *                           worker of the runtime
 *           -EMFILE, -ENFILE  no descriptor for the worker's own wait (pinned)
 *           -ENOMEM         no memory for the task or its stack, or the
 *                           system's limit on mappings is reached
 *           PIRN_ENORUNTIME no runtime given and none is current
 *           PIRN_ESHUTDOWN  the runtime is stopping
 *           PIRN_EFORKED    the runtime belongs to the parent process
 */
#define pirn_go(...) pirn_go_at(__VA_ARGS__, PIRN_SITE)
#define pirn_go_with(...) pirn_go_with_at(__VA_ARGS__, PIRN_SITE)
PIRN_API PIRN_MUST_CHECK int pirn_go_at(pirn_fiber_fn *fn, void *arg,
                                        const char *site);
PIRN_API PIRN_MUST_CHECK int
pirn_go_with_at(pirn_fiber_fn *fn, void *arg, const pirn_spawn_options *options,
                pirn_task **out, const char *site);

/* Wait for any future.  0: it said PIRN_READY and its result is in its struct.
 * On every error it has been dropped.  On entry a cancelled fiber is answered
 * first, even if the future is ready; otherwise it is polled once before the
 * deadline is looked at, so success beats an expired deadline.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts it short
 * Cancel    the future is withdrawn; if it completed in that moment the call
 *           returns 0 and the next one answers -ECANCELED
 * Owns      the future is no longer live afterwards, whatever the answer
 * Errors    -EINVAL         future is NULL
 *           -ECANCELED      the fiber was cancelled
 *           -ETIMEDOUT      the deadline passed first
 *           -EDEADLK        called inside a poll, a drop, a waker or a hook
 *           PIRN_ESHUTDOWN  the runtime that would have to wake us is gone
 *           -ENOMEM         a plain thread's first call found no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_await(pirn_future *future,
                                        pirn_deadline deadline);

/* Let every other ready task run once.  On a plain thread it does nothing.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes
 * Cancel    nothing is lost
 * Errors    -ECANCELED  the fiber was cancelled
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_yield(void);

/* Between begin and end cancellation is not reported, so that clean-up can
 * talk to a peer; the request is kept.  Sections nest.  Outside a fiber they
 * do nothing.  Give the calls inside a deadline: shutdown will not wait longer
 * than its own.
 *
 * Thread    a fiber
 * Suspends  no
 */
PIRN_API void pirn_fiber_shield_begin(void);
PIRN_API void pirn_fiber_shield_end(void);

/* End this fiber at once with the outcome PIRN_EPANIC and a message for the
 * failure hook.  Nothing on its stack is unwound: stack and task are
 * quarantined and counted in the report.  Outside a fiber it ends the process
 * with the message.
 *
 * Thread    any
 */
PIRN_API PIRN_NORETURN void pirn_panic(const char *format, ...)
    PIRN_PRINTF(1, 2);

/* How much of this fiber's stack has been used, to within a page, and how
 * large it is.  Both 0 outside a fiber.
 *
 * Thread    a fiber
 */
typedef struct pirn_stack_usage {
    size_t high_water_bytes;
    size_t size_bytes;
} pirn_stack_usage;
PIRN_API pirn_stack_usage pirn_fiber_stack_usage(void);

PIRN_END_DECLS

#endif /* PIRN_FIBER_H */
