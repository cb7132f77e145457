/* SPDX-License-Identifier: MIT */
/* pirn/blocking.h - run code that blocks on a thread of its own.
 *
 * A job is one call of a function on the runtime's blocking pool: file reads,
 * name look-ups, anything that would hold up every other task.
 *
 *     static int load(void *arg)
 *     {
 *         return read_whole_file(arg);
 *     }
 *
 *     rc = pirn_blocking_run(load, file);     // this fiber waits, others run
 *
 * Threads start on demand up to a limit, and end after ten idle seconds.
 */
#ifndef PIRN_BLOCKING_H
#define PIRN_BLOCKING_H

#include <pirn/task.h>

PIRN_BEGIN_DECLS

/* A counted handle of a job. */
typedef struct pirn_job pirn_job;

/* Runs on a pool thread, outside any task.  0 or a count, or a negative
 * code. */
typedef int pirn_blocking_fn(void *arg);

/* Queue fn(arg) on the current runtime's pool.
 *
 *     pirn_spawn_blocking(fn, arg, options, out)
 *
 * `options` may be NULL; runtime and name are used.  `out` may be NULL: then
 * nobody learns the outcome, and a negative one goes to the failure hook.
 *
 * Thread    any
 * Suspends  no
 * Owns      `arg` passes to fn on success; on error it is the caller's, fn will
 *           not run, and *out is NULL
 * Errors    -EINVAL  fn is NULL
 *           -EAGAIN  the queue is full, or not one pool thread could be started
 *           -ENOMEM  no memory
 *           PIRN_ENORUNTIME  no runtime given and none is current
 *           PIRN_ESHUTDOWN   the runtime is stopping
 *           PIRN_EFORKED     the runtime belongs to the parent process
 */
#define pirn_spawn_blocking(...) pirn_spawn_blocking_at(__VA_ARGS__, PIRN_SITE)
PIRN_API PIRN_MUST_CHECK int
pirn_spawn_blocking_at(pirn_blocking_fn *fn, void *arg,
                       const pirn_spawn_options *options, pirn_job **out,
                       const char *site);

/* One more handle; give one up.  The job runs on without one.  unref(NULL) does
 * nothing.
 *
 * Thread    any
 */
PIRN_API pirn_job *pirn_job_ref(pirn_job *job);
PIRN_API void pirn_job_unref(pirn_job *job);

/* Take a job that has not started back out of the queue: its outcome becomes
 * -ECANCELED and fn will not run, so `arg` is the caller's again.
 *
 * Thread    any
 * Suspends  no
 * Errors    -EINVAL  job is NULL
 *           -EBUSY   it has started or ended
 */
PIRN_API PIRN_MUST_CHECK int pirn_job_cancel(pirn_job *job);

/* Wait until the job has ended and store what fn returned; PIRN_ESHUTDOWN if
 * shutdown took it out of the queue.  One waiter at a time.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts the wait short, not the job
 * Cancel    nothing is lost: join again
 * Errors    -EINVAL     job or outcome is NULL
 *           -EBUSY      another waiter is joining
 *           -ECANCELED  the caller was cancelled
 *           -ETIMEDOUT  the job still runs at the deadline
 *           PIRN_EFORKED  it has not ended, and runs in the parent process
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_job_join(pirn_job *job,
                                           pirn_deadline deadline,
                                           int *outcome);

/* The same as a future.  It holds a reference of its own. */
typedef struct pirn_job_join_op {
    pirn_future future;
    pirn_job *job_;
    bool waiting_;
    int rc;      /* 0, -EBUSY or PIRN_EFORKED */
    int outcome; /* the job's, when rc is 0 */
} pirn_job_join_op;

/* Prepare a join.
 *
 * Thread    any
 * Cancel    dropping it loses nothing
 */
PIRN_API void pirn_job_join_init(pirn_job_join_op *op, pirn_job *job);

/* Run fn(arg) on the pool and wait for it; the result is fn's.  `arg` may live
 * on the caller's stack, therefore cancellation does not cut the wait short.
 * On a plain thread outside any task fn runs right there.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancelling the caller does not cut the wait short
 * Cancel    fn runs to its end, and its result is returned
 * Errors    -ECANCELED  the caller was cancelled already; fn has not run
 *           -EDEADLK    called inside a poll, a drop, a waker or a hook
 *           -ENOMEM     a plain thread's first call found no memory
 *           those of pirn_spawn_blocking(), and fn's own
 */
PIRN_API PIRN_MUST_CHECK int pirn_blocking_run(pirn_blocking_fn *fn, void *arg);

/* Run fn(arg) right here although it blocks: the other tasks of this worker go
 * on on another thread first.  For code that must stay on the fiber's stack; a
 * job on the pool is cheaper.  fn may not call what suspends.
 *
 * Thread    a fiber of a runtime with workers, or a plain thread outside any
 *           task, where fn simply runs
 * Suspends  no; it blocks the thread
 * Errors    -EINVAL   fn is NULL
 *           -EPERM    a current-thread runtime, or a worker that has had pinned
 *                     tasks; fn has not run
 *           -EAGAIN, -ENOMEM  no thread could be started; fn has not run
 *           -EDEADLK  called inside a poll, a drop, a waker or a hook
 *           and fn's own
 */
PIRN_API PIRN_MUST_CHECK int pirn_block_in_place(pirn_blocking_fn *fn,
                                                 void *arg);

PIRN_END_DECLS

#endif /* PIRN_BLOCKING_H */
