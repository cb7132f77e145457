/* SPDX-License-Identifier: MIT */
/* pirn/task.h - start work, wait for it, stop it.
 *
 * A task is a future that a runtime owns and polls: a fiber (pirn/fiber.h) or
 * a struct of yours (pirn/async.h).  It ends with an outcome: 0 or a count, or
 * a negative code.
 *
 *     pirn_task *task;
 *     int outcome;
 *     int rc = pirn_go_with(worker, job, NULL, &task);
 *
 *     if (rc < 0)
 *         return rc;
 *     rc = pirn_task_join(task, pirn_after_ms(1000), &outcome);
 *     pirn_task_unref(task);
 *
 * A task whose handle is given up runs on: it is still owned by its runtime,
 * which stops it at shutdown at the latest.
 */
#ifndef PIRN_TASK_H
#define PIRN_TASK_H

#include <pirn/future.h>

PIRN_BEGIN_DECLS

typedef struct pirn_runtime pirn_runtime;

/* A counted handle; every one you are given is yours to unref. */
typedef struct pirn_task pirn_task;

/* Names a task without keeping it.  Once the task is gone the id is stale for
 * ever and every call answers -ESRCH. */
typedef struct pirn_task_id {
    uint64_t value; /* 0 names no task */
} pirn_task_id;

enum pirn_task_state {
    PIRN_TASK_IDLE,      /* waits for a wake */
    PIRN_TASK_QUEUED,    /* will run */
    PIRN_TASK_RUNNING,   /* runs now */
    PIRN_TASK_SUSPENDED, /* held by pirn_id_suspend() */
    PIRN_TASK_DONE       /* has ended */
};

/* Who runs first among the ready tasks of one worker of a computational pool;
 * elsewhere all are equal.  A higher one never stops a task that runs, and even
 * the lowest gets a turn every few dozen polls. */
enum pirn_priority {
    PIRN_PRIORITY_NORMAL,
    PIRN_PRIORITY_HIGH,
    PIRN_PRIORITY_LOW
};

/* Everything about a spawn that has a default: zero is always the default. */
typedef struct pirn_spawn_options {
    pirn_runtime *runtime;   /* NULL: the current one */
    const char *name;        /* copied, cut at 31 bytes; NULL: none */
    void *context;           /* what pirn_task_context() returns inside */
    size_t stack_size_bytes; /* fibers only; 0: the runtime's default */
    bool pinned; /* only the worker on which it is spawned runs it, always on the
                    same thread; of a current-thread runtime, whoever drives */
    bool fp_controls; /* fibers only: rounding mode and exception masks are
                         the fiber's own and survive its switches */
    enum pirn_priority priority;
} pirn_spawn_options;

/* Run a stackless future as a task.
 *
 *     pirn_spawn(future, size, options, out)
 *
 * `future` is the first member of a struct of `size` bytes that has not been
 * polled.  The struct is moved into the task: afterwards the caller's copy is
 * dead memory.  Its alignment may be at most 16, its size at most 16 MiB.  With
 * `out` NULL nobody joins; options may be NULL.
 *
 * Thread    any
 * Suspends  no
 * Owns      on success the task owns the future; on error it is still the
 *           caller's, live and unpolled, and *out is NULL
 * Errors    -EINVAL         future or its operations NULL, size too small or
 *                           too large; priority not one of the three; pinned,
 *                           outside a worker of the runtime
 *           -EMFILE, -ENFILE  no descriptor for the worker's own wait (pinned)
 *           -ENOMEM         no memory for the task
 *           PIRN_ENORUNTIME no runtime given and none is current
 *           PIRN_ESHUTDOWN  the runtime is stopping
 *           PIRN_EFORKED    the runtime belongs to the parent process
 */
#define pirn_spawn(...) pirn_spawn_at(__VA_ARGS__, PIRN_SITE)
PIRN_API PIRN_MUST_CHECK int
pirn_spawn_at(pirn_future *future, size_t size,
              const pirn_spawn_options *options, pirn_task **out,
              const char *site);

/* One more handle; give one up.  When the last handle goes, an output nobody
 * took is discarded and the task, if it still runs, runs on.  unref(NULL) does
 * nothing.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API pirn_task *pirn_task_ref(pirn_task *task);
PIRN_API void pirn_task_unref(pirn_task *task);

/* Wait until the task has ended and store its outcome.  One waiter at a time;
 * after the end any number may ask, one after the other.
 *
 * Thread    a fiber, or a plain thread outside any task
 * Suspends  yes; cancellation cuts the wait short, not the task
 * Cancel    nothing is lost: join again
 * Errors    -EINVAL     task or outcome is NULL
 *           -EBUSY      another waiter is joining
 *           -ENOTSUP    it still runs and was spawned without a handle, so that
 *                       it has no place for a waiter
 *           -EDEADLK    a task cannot join itself; also inside a poll, a drop,
 *                       a waker or a hook
 *           -ECANCELED  the caller was cancelled
 *           -ETIMEDOUT  the task still runs at the deadline
 *           PIRN_EFORKED  it has not ended, and runs in the parent process
 *           -ENOMEM     a plain thread's first call found no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_task_join(pirn_task *task,
                                            pirn_deadline deadline,
                                            int *outcome);

/* The same as a future.  It borrows the handle, which must stay until then.  Its
 * own outcome, in a branch say, is rc if that is negative, else the task's. */
typedef struct pirn_join_op {
    pirn_future future;
    pirn_task *task_;
    bool waiting_; /* our waker is in the task's join slot */
    int rc;        /* 0, -EBUSY, -ENOTSUP, -EDEADLK or PIRN_EFORKED */
    int outcome;   /* the task's, when rc is 0 */
} pirn_join_op;

/* Prepare a join.
 *
 * Thread    any
 * Cancel    dropping it loses nothing
 */
PIRN_API void pirn_join_init(pirn_join_op *op, pirn_task *task);

/* Ask a task to stop.  A fiber's current wait and each later suspending call
 * answer -ECANCELED and it leaves by its own error path; a stackless task is
 * dropped by its runtime and ends with -ECANCELED.  Repeatable; nothing happens
 * to a task that has ended.
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_task_cancel(pirn_task *task);

/* End a task without its cooperation, with the outcome PIRN_EABORTED.  A
 * stackless task is dropped by its runtime.  A suspended fiber is not resumed
 * again: its waits are withdrawn, its stack and what it owns stay behind
 * (quarantined, never freed).  Prefer pirn_task_cancel().
 *
 * Thread    any
 * Suspends  no
 */
PIRN_API void pirn_task_abort(pirn_task *task);

/* True once the task has ended. */
PIRN_API bool pirn_task_is_done(const pirn_task *task);

/* Move the finished future, with its result fields, out of a stackless task
 * whose outcome was its own.  `size` is the struct's.  It can be taken once.
 *
 * Thread    any
 * Owns      on success the caller owns whatever the result owns
 * Errors    -EAGAIN  the task has not ended yet
 *           -EINVAL  task or out is NULL, size is not the spawned one, or the task
 *                    is a fiber
 *           -ENOENT  there is no output: it was taken before, or the task was
 *                    cancelled, aborted or had no handle when it ended
 */
PIRN_API PIRN_MUST_CHECK int pirn_task_take_output(pirn_task *task, void *out,
                                                   size_t size);

/* Facts that never change. */
PIRN_API pirn_task_id pirn_task_get_id(const pirn_task *task);
PIRN_API const char *pirn_task_name(const pirn_task *task); /* or NULL */
/* Where it was spawned: "file:line", or "pirn_run". */
PIRN_API const char *pirn_task_site(const pirn_task *task);

/* The task that runs on this thread: its id (0 outside) and its context from
 * the spawn options (NULL without).
 *
 * Thread    any
 */
PIRN_API pirn_task_id pirn_task_self(void);
PIRN_API void *pirn_task_context(void);

/* True if the task that runs on this thread has been asked to stop, for code
 * that computes long between suspending calls.
 *
 * Thread    any
 */
PIRN_API bool pirn_task_cancelled(void);

/* Look a task up by its id; O(1), any value is safe.
 *
 * Thread    any
 * Owns      on success *out is a handle to unref; NULL on error
 * Errors    -ESRCH  no such task any more
 */
PIRN_API PIRN_MUST_CHECK int pirn_id_find(pirn_task_id id, pirn_task **out);

/* Wake a task from outside; this also ends a suspension.  Suspend: from now on
 * ordinary wakes are remembered but the task does not run until it is woken by
 * id, cancelled, aborted, or its runtime shuts down.  Cancel: as
 * pirn_task_cancel().
 *
 * Thread    any
 * Suspends  no
 * Errors    -ESRCH  no such task any more
 */
PIRN_API PIRN_MUST_CHECK int pirn_id_wake(pirn_task_id id);
PIRN_API PIRN_MUST_CHECK int pirn_id_suspend(pirn_task_id id);
PIRN_API PIRN_MUST_CHECK int pirn_id_cancel(pirn_task_id id);

/* What the task does at this moment; stale as soon as it is known.
 *
 * Thread    any
 * Errors    -ESRCH  no such task any more
 */
PIRN_API PIRN_MUST_CHECK int pirn_id_state(pirn_task_id id,
                                           enum pirn_task_state *out);

PIRN_END_DECLS

#endif /* PIRN_TASK_H */
