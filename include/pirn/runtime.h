/* SPDX-License-Identifier: MIT */
/* pirn/runtime.h - make a runtime, drive it, stop it.
 *
 * A program that is all Pirn needs one line:
 *
 *     int main(void) { return pirn_exit_code(pirn_run(start, NULL)); }
 *
 * A program with a loop of its own drives the runtime itself, on one thread:
 *
 *     pirn_runtime *rt;
 *     int rc = pirn_runtime_new(NULL, &rt);
 *     ...
 *     // when pirn_runtime_fd(rt) is readable, or its next deadline is reached
 *     rc = pirn_runtime_turn(rt, pirn_after_ms(5));
 *
 * Handles may be used from any thread: spawn, wake, cancel and shut down reach
 * the thread that drives.
 */
#ifndef PIRN_RUNTIME_H
#define PIRN_RUNTIME_H

#include <pirn/alloc.h>
#include <pirn/fiber.h>

PIRN_BEGIN_DECLS

/* A task that ended badly and whose outcome nobody joined. */
typedef struct pirn_failure {
    pirn_task_id id;
    const char *name; /* or NULL */
    const char *site;
    int outcome;         /* negative, never -ECANCELED */
    const char *message; /* of pirn_panic() or pirn_cx_fail(), or "" */
} pirn_failure;

enum {
    PIRN_WORKERS_AUTO = INT32_MAX /* see pirn_runtime_options.workers */
};

/* Which worker of a runtime with workers may run a task. */
enum pirn_pool_kind {
    /* Any, whoever is free: the usual choice. */
    PIRN_POOL_STEALABLE,
    /* One, for all its life.  Tasks go to the workers in turn as they are
     * spawned, pinned ones to the worker that spawns them, and wait for that one
     * although others may be free: for tasks that compute, of similar length,
     * or with data that should stay in one cache.  Heeds priorities. */
    PIRN_POOL_COMPUTATIONAL
};

/* Called on the thread that noticed; may not suspend.  A failure is told once: at
 * the end of its task, if there is no handle then, else when the last handle is
 * given up and nobody has joined. */
typedef void pirn_failure_fn(void *arg, const pirn_failure *failure);

/* A task that begins, or that has ended. */
typedef struct pirn_task_event {
    pirn_task_id id;
    const char *name; /* or NULL */
    const char *site;
    int outcome; /* of its end; 0 before */
} pirn_task_event;

/* Hooks may spawn and wake, and may not suspend. */
typedef void pirn_task_event_fn(void *arg, const pirn_task_event *event);
typedef void pirn_worker_fn(void *arg, uint32_t worker);

/* Zero is always the default.  Where an option that has a variable in the
 * environment, named here in brackets, is left at its default, the variable
 * counts if it is set and not empty. */
typedef struct pirn_runtime_options {
    const pirn_alloc *alloc;  /* NULL: malloc and free */
    size_t stack_size_bytes;  /* of fibers; 0: 64 KiB; 16 KiB..1 GiB
                                 [PIRN_STACK_SIZE] */
    uint32_t blocking_threads; /* at most so many; 0: 64; at most 4096
                                  [PIRN_BLOCKING_THREADS] */
    uint32_t blocking_queue;   /* jobs that may wait; 0: 1024 */
    bool overflow_report; /* name the fiber that overran its stack: installs
                             handlers for SIGSEGV and SIGBUS, which chain */
    /* Threads of its own that run its tasks, at most 512; 0: none, it is a
     * current-thread runtime and the host drives it.  PIRN_WORKERS_AUTO: as many
     * as the process may use processors, by its affinity mask and the quota of
     * its control groups [PIRN_WORKERS]. */
    uint32_t workers;
    /* With PIRN_POOL_COMPUTATIONAL 0 workers, too, mean PIRN_WORKERS_AUTO
     * [PIRN_POOL=stealable or computational, where there are workers]. */
    enum pirn_pool_kind pool;
    uint64_t seed; /* of the choice of victims; 0: from the system [PIRN_SEED] */
    /* The threads are called "<name>-<worker>"; copied.  1 to 11 bytes; NULL:
     * "pirn-worker". */
    const char *worker_name;
    size_t worker_stack_size_bytes; /* of those threads, not of fibers; 0: the
                                       system's default; 64 KiB..1 GiB */
    /* Fairness.  A worker looks at what other threads have put for all, and for
     * events, at least every so many polls; at most 1000000 each. */
    uint32_t shared_interval; /* 0: 61, without workers 31
                                 [PIRN_SHARED_INTERVAL] */
    uint32_t event_interval;  /* 0: 128 [PIRN_EVENT_INTERVAL] */
    bool lifo_off;   /* a task woken by a running one waits in line as all others
                        do, instead of running next [PIRN_LIFO=0] */
    bool histograms; /* see pirn_runtime_get_histogram() [PIRN_HISTOGRAMS=1] */
    /* Each hook may be NULL.  None is called any more once shutdown has
     * returned: what a thread that came too late for the deadline has yet to
     * tell, on_thread_stop among it, nobody is told, and a failure that shows
     * up later is only counted.  Shutdown waits a moment for a call that is
     * under way; a hook has to return.
     * These are called on a worker's thread: first and
     * last there, and around each sleep.  One that is about to sleep may find
     * something to do after all; the two are called in pairs all the same.
     * Without workers the second pair is called on the thread that drives, with
     * 0, around the waits of pirn_block_on() and shutdown. */
    pirn_worker_fn *on_thread_start;
    pirn_worker_fn *on_thread_stop;
    pirn_worker_fn *on_park;
    pirn_worker_fn *on_unpark;
    /* Called on the spawning thread before the task can run, and on the thread
     * that ran it last, when what it held is gone and nobody knows of its end
     * yet. */
    pirn_task_event_fn *on_task_spawn;
    pirn_task_event_fn *on_task_end;
    void *hook_arg; /* of these six */
    pirn_failure_fn *on_failure; /* a hook, too; NULL: one line on standard
                                    error */
    void *on_failure_arg;
} pirn_runtime_options;

/* Say whether a runtime would be made with these options, NULL for the defaults,
 * in this environment.  If not, *field is the name of the option or of the
 * variable that is wrong, a constant; else NULL.  `field` may be NULL.
 *
 * Thread    any
 * Errors    -EINVAL  an option or a variable is out of its range
 */
PIRN_API PIRN_MUST_CHECK int
pirn_runtime_check(const pirn_runtime_options *options, const char **field);

/* Make a runtime.  Without workers it is a current-thread runtime: whoever
 * drives it runs its tasks.  `options` may be NULL.
 *
 * Thread    any
 * Owns      on success the caller owns one reference; on error *out is NULL
 * Errors    -EINVAL  out is NULL, or see pirn_runtime_check()
 *           -EAGAIN  the system refuses the thread of a worker
 *           -ENOMEM  no memory
 *           -EMFILE, -ENFILE, -ENOSPC  no descriptors for its wait set, or as
 *                    many watched as the system allows to the user
 */
PIRN_API PIRN_MUST_CHECK int
pirn_runtime_new(const pirn_runtime_options *options, pirn_runtime **out);

/* One more reference; give one up.  The last one shuts the runtime down with
 * an expired deadline if nobody has; use pirn_runtime_shutdown() for an orderly
 * end.  unref(NULL) does nothing.
 *
 * Thread    any; the last unref outside any task, poll, waker or hook
 */
PIRN_API pirn_runtime *pirn_runtime_ref(pirn_runtime *rt);
PIRN_API void pirn_runtime_unref(pirn_runtime *rt);

/* Run what is ready until nothing is, or until `until`.  It never waits.  Where
 * `until` has passed already it makes one round, of at most event_interval polls.
 * Binds the runtime to this thread.  Returns the number of polls made.
 *
 * Thread    always the same one, outside any task
 * Errors    -EINVAL   rt is NULL
 *           -EPERM    the runtime is bound to another thread
 *           -EBUSY    another host call is driving it
 *           -EDEADLK  called inside a task, a poll, a waker or a hook
 *           PIRN_ESHUTDOWN  the runtime has ended
 *           PIRN_EFORKED    the runtime belongs to the parent process
 *           -ENOMEM   this thread's first call found no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_runtime_turn(pirn_runtime *rt,
                                               pirn_deadline until);

/* A descriptor that polls readable when a turn would find something from
 * outside to do.  Borrowed: never read, write or close it.
 *
 * Thread    any
 * Errors    -EINVAL  rt is NULL
 *           -EPERM   the runtime has workers, which drive it
 *           -1       the runtime has ended
 */
PIRN_API int pirn_runtime_fd(const pirn_runtime *rt);

/* When the next turn is due even if the descriptor stays silent: PIRN_EXPIRED
 * when tasks are ready now, PIRN_NEVER when only the descriptor matters, or when
 * the runtime has ended.
 *
 * Thread    the one that drives
 */
PIRN_API pirn_deadline pirn_runtime_next_deadline(pirn_runtime *rt);

/* Drive the runtime on this thread until `future` is ready.  Other tasks run
 * meanwhile.  On every error the future has been dropped.
 *
 * Thread    a plain thread outside any task
 * Suspends  blocks the thread
 * Errors    -EINVAL     rt or future is NULL
 *           -ETIMEDOUT  the deadline passed first
 *           -EBUSY      another host call is driving it
 *           -EPERM      the runtime is bound to another thread
 *           -EDEADLK    called inside a task, a poll, a waker or a hook
 *           PIRN_ESHUTDOWN  the runtime has ended
 *           PIRN_EFORKED    the runtime belongs to the parent process
 *           -ENOMEM     this thread's first call found no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_block_on(pirn_runtime *rt,
                                           pirn_future *future,
                                           pirn_deadline deadline);

/* Make `rt` (NULL: none) current on this thread for pirn_go(), pirn_spawn() and
 * timers outside tasks.  Returns what was current, for the matching call that
 * restores it.  The caller keeps its reference meanwhile.  On a thread whose first
 * call this is, and for which there is no memory, nothing is current then.
 *
 * Thread    a plain thread outside any task
 */
PIRN_API pirn_runtime *pirn_runtime_enter(pirn_runtime *rt);

/* The runtime whose task runs here, or the entered one, or NULL.  Borrowed.
 *
 * Thread    any
 */
PIRN_API pirn_runtime *pirn_runtime_current(void);

enum {
    PIRN_REPORT_TASKS = 16, /* named in a report; more are only counted */
    PIRN_NAME_SIZE = 32,
    PIRN_WAIT_SIZE = 64
};

/* A task that shutdown could not end in order. */
typedef struct pirn_report_task {
    pirn_task_id id;
    char name[PIRN_NAME_SIZE];      /* "" without one */
    char site[PIRN_WAIT_SIZE];      /* "file:line" of its spawn */
    char waits_for[PIRN_WAIT_SIZE]; /* what it waited for, if it was waiting and
                                       could be asked in time; else "" */
    bool running;                   /* still on a thread: it never came back */
} pirn_report_task;

/* What a runtime did with everything that was given to it. */
typedef struct pirn_report {
    uint64_t spawned;
    uint64_t completed;     /* ended with an outcome >= 0 */
    uint64_t failed;        /* ended with another negative outcome */
    uint64_t cancelled;     /* ended with -ECANCELED */
    uint64_t aborted;       /* ended by force, quarantined fibers included;
                               also those that only a thread that never came
                               back may touch, pinned ones among them */
    uint64_t quarantined;   /* stacks and tasks left behind, panics included */
    uint64_t still_running; /* tasks on a thread that never came back */
    uint64_t jobs_completed;
    uint64_t jobs_refused;       /* queued blocking jobs that never started */
    uint64_t jobs_still_running; /* on threads that were left behind */
    bool in_time;                /* everything ended before the deadline */
    uint32_t task_count;         /* entries used below */
    pirn_report_task tasks[PIRN_REPORT_TASKS];
} pirn_report;

/* Stop: admit nothing more, cancel what remains, drive it to its end, wait for
 * blocking jobs, all until one deadline; abort and count what is left then.
 * Repeatable: a later call never extends the first deadline and gets the same
 * report.  `report` may be NULL; on an error other than -ETIMEDOUT it is empty.
 *
 * Thread    any, outside any task, poll, waker or hook.  A host call that
 *           drives on another thread ends with PIRN_ESHUTDOWN
 * Suspends  blocks the thread, until the deadline and a little more
 * Errors    -EINVAL    rt is NULL
 *           -EDEADLK   called inside a task, a poll, a waker or a hook
 *           -ETIMEDOUT something had to be aborted or left running: see report
 *           PIRN_EFORKED  the runtime belongs to the parent process
 */
PIRN_API PIRN_MUST_CHECK int pirn_runtime_shutdown(pirn_runtime *rt,
                                                   pirn_deadline deadline,
                                                   pirn_report *report);

/* Write a report as a few lines of text; returns the length without the NUL,
 * which may be more than fits. */
PIRN_API size_t pirn_report_format(const pirn_report *report, char *buf,
                                   size_t size);

/* Make a default runtime (a worker for each processor that the process may use,
 * or as many as PIRN_WORKERS in the environment says, and the overflow report),
 * run fn(arg) as its first fiber, shut down within 30 s once it returns, and return its outcome.
 *
 * Thread    a plain thread outside any task
 * Suspends  blocks the thread
 * Owns      `arg` passes to fn unless the runtime could not be made
 * Errors    those of pirn_runtime_new() and pirn_go(), and fn's own
 *           -EDEADLK  called inside a task, a poll, a waker or a hook
 *           -ENOMEM   a plain thread's first call found no memory
 */
PIRN_API PIRN_MUST_CHECK int pirn_run(pirn_fiber_fn *fn, void *arg);

/* The same with options and, if `report` is not NULL, the shutdown report. */
PIRN_API PIRN_MUST_CHECK int
pirn_run_with(pirn_fiber_fn *fn, void *arg, const pirn_runtime_options *options,
              pirn_report *report);

/* Counters of one worker of a pool. */
typedef struct pirn_worker_info {
    uint64_t polls;
    uint64_t steals;    /* times it took tasks from another worker */
    uint64_t overflows; /* times its queue was full */
    uint64_t parks;     /* times it went to sleep */
    uint64_t wakes;     /* times it woke another worker */
    uint64_t lifo_runs; /* polls of a task right after the one that woke it */
    uint64_t yields;    /* polls ended by the coop budget or a yield */
    uint64_t rescues;   /* times it helped a worker that did not move */
    uint32_t queued;    /* tasks in its queue now */
    uint64_t inbox;     /* tasks that other threads have handed to it, now */
} pirn_worker_info;

/* Read the counters of worker `index`, from 0.
 *
 * Thread    any
 * Errors    -EINVAL  an argument is NULL, the runtime has no pool, or no such
 *                    worker
 */
PIRN_API PIRN_MUST_CHECK int pirn_runtime_get_worker(pirn_runtime *rt,
                                                     uint32_t index,
                                                     pirn_worker_info *out);

/* Counters and facts about a running runtime. */
typedef struct pirn_runtime_info {
    uint64_t tasks;      /* alive now */
    uint64_t spawned;    /* ever */
    uint64_t polls;      /* of tasks */
    uint64_t turns;      /* times the driver looked for events */
    uint64_t wakes;      /* writes to the wake descriptor */
    uint64_t deferred;   /* polls ended by the coop budget or a yield */
    uint64_t timers;     /* armed now */
    uint64_t failures;   /* unjoined bad outcomes */
    size_t task_bytes;   /* memory of task cells */
    size_t stacks;       /* in use, or promised to fibers that have not run */
    size_t stack_limit;  /* how many the guards allow; SIZE_MAX: no limit */
    uint32_t workers;    /* of its pool; 0 without one */
    /* Where their number is from: "option", "environment", "affinity",
     * "cgroup v2", "cgroup v1"; "" without a pool. */
    const char *workers_source;
    const char *pool;    /* "stealable", "computational"; "" without one */
    uint64_t injected;   /* tasks in the queue that all workers share, now */
    uint64_t steals;     /* by its workers */
    uint64_t rescues;    /* of workers that did not move */
    const char *backend; /* "epoll" */
    const char *guards;  /* "region" or "protect" */
} pirn_runtime_info;

/* Thread    any; the counters are exact only on the driving thread */
PIRN_API void pirn_runtime_get_info(pirn_runtime *rt, pirn_runtime_info *out);

/* A clock for tests: pause it (time stands still for this runtime's timers and
 * for pirn_now_ns() in its tasks), move it forward, let it follow the real one
 * again.  Deadlines that become due fire on the next turn.
 *
 * Thread    any
 * Errors    -EINVAL  rt is NULL; advance on a clock that is not paused
 *           -EPERM   the runtime has workers: only a current-thread runtime has
 *                    such a clock
 */
PIRN_API PIRN_MUST_CHECK int pirn_runtime_clock_pause(pirn_runtime *rt);
PIRN_API PIRN_MUST_CHECK int pirn_runtime_clock_advance(pirn_runtime *rt,
                                                        uint64_t ns);
PIRN_API PIRN_MUST_CHECK int pirn_runtime_clock_resume(pirn_runtime *rt);

PIRN_END_DECLS

#endif /* PIRN_RUNTIME_H */
