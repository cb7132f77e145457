/* SPDX-License-Identifier: MIT */
/* pirn/testing.h - what happens to your code if it is cancelled at each await?
 *
 * A cancel sweep runs a scenario of yours again and again.  In the first round
 * it cancels one of the tasks before it has run, in the second one step later,
 * and so on until the task ends untouched.  A step is one poll of any task, or
 * the arrival of an event or a deadline, so that the task is met both while it
 * waits and after it was woken but has not looked yet.
 *
 *     static int begin(void *arg, pirn_task **victim)
 *     {
 *         struct transfer *t = arg;
 *
 *         t->from = 100;
 *         t->to = 0;
 *         return pirn_go_with(move_money, t, NULL, victim);
 *     }
 *
 *     static int end(void *arg, int outcome)
 *     {
 *         const struct transfer *t = arg;
 *
 *         return t->from + t->to == 100 ? 0 : -EIO;      // no money is lost
 *     }
 *
 *     const pirn_cancel_case transfer = {.begin = begin, .end = end, .arg = &t};
 *     pirn_cancel_report report;
 *
 *     if (pirn_cancel_sweep(&transfer, &report) < 0)
 *         fail(report.problem);
 *
 * Besides what `end` checks, the sweep itself finds a task that does not end
 * when it is cancelled, tasks that shutdown has to abort, and connections,
 * buffers, channels and handles that are never given up.
 *
 * Nothing in a sweep takes time: the runtime's clock stands still while anything
 * runs, and when nothing has happened for a millisecond it jumps to the next
 * deadline.
 */
#ifndef PIRN_TESTING_H
#define PIRN_TESTING_H

#include <pirn/runtime.h>

PIRN_BEGIN_DECLS

/* Build everything a round needs and spawn its tasks, on the runtime of the
 * round, which is current.  *victim is a handle of the task to cancel; the sweep
 * gives it up.  Returns 0, or a negative code, which ends the sweep: then
 * nothing may be left. */
typedef int pirn_cancel_begin_fn(void *arg, pirn_task **victim);

/* The task has ended, its handle is given up, and nobody else can go on without
 * it.  Say whether all is as it must be, 0 or a negative code, and give up what
 * begin has made.  Other tasks that still live are cancelled when this returns. */
typedef int pirn_cancel_end_fn(void *arg, int outcome);

/* A scenario.  Zero is the default. */
typedef struct pirn_cancel_case {
    pirn_cancel_begin_fn *begin;
    pirn_cancel_end_fn *end; /* may be NULL */
    void *arg;
    uint32_t points;      /* cancel at no more than so many; 0: 100000 */
    uint32_t patience_ms; /* of real time to wait for an event; 0: 5000 */
} pirn_cancel_case;

/* What a sweep found. */
typedef struct pirn_cancel_report {
    uint32_t points;   /* at which the task was cancelled */
    bool untouched;    /* the last round was the one without a cancellation */
    uint32_t point;    /* of the last round: so many steps after the begin */
    bool woken;        /* there it had been woken, and had not looked yet */
    char waits_for[PIRN_WAIT_SIZE]; /* what it waited for there */
    int outcome;       /* of the task in the last round */
    char problem[256]; /* a sentence; "" if there is none */
} pirn_cancel_report;

/* Run a scenario with a cancellation at every step.  It stops at the first
 * problem.  Returns at how many points it has cancelled.  `report` may be NULL;
 * on -EINVAL of the call itself and -EDEADLK it is empty.
 *
 * Thread    a plain thread outside any task
 * Suspends  blocks the thread
 * Errors    -EINVAL       no scenario, or without a begin
 *           -EDEADLK      called inside a task, a poll, a waker or a hook
 *           -ENOMEM       a plain thread's first call found no memory
 *           PIRN_EFAILED  the task did not end, or something was left behind;
 *                         see the report
 *           -EOVERFLOW    the points were not enough to come to the end
 *           those of pirn_runtime_new(), and what begin and end return
 */
PIRN_API PIRN_MUST_CHECK int pirn_cancel_sweep(const pirn_cancel_case *scenario,
                                               pirn_cancel_report *report);

PIRN_END_DECLS

#endif /* PIRN_TESTING_H */
