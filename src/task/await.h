/* SPDX-License-Identifier: MIT */
/* src/task/await.h - waiting, for the straight-line calls. */
#ifndef PIRN_TASK_AWAIT_H
#define PIRN_TASK_AWAIT_H

#include <pirn/fiber.h>

#include "task/local.h"
#include "task/task.h"

/* pirn_await() without the check of its arguments. */
int pirn__await(pirn_future *future, pirn_deadline deadline);

/* The same on a plain thread. */
int pirn__thread_await(struct pirn__local *local, pirn_future *future,
                       pirn_deadline deadline);

/* Try to take one coop unit for a fast path that skips the future: 0; a
 * negative code when the call must not go on (-ECANCELED, -EDEADLK); 1 when
 * the fast path may not be used and the future must be built: also for a fiber
 * that was cancelled, which knows whether it is shielded.  `local` is this
 * thread's; NULL is -ENOMEM. */
static inline int pirn__fast_path(struct pirn__local *local)
{
    struct pirn__turn *turn;

    if (__builtin_expect(local == NULL, 0))
        return -ENOMEM;
    if (__builtin_expect(local->no_suspend > 0, 0))
        return -EDEADLK;
    if (local->waiter == NULL)
        return 0;
    /* Inside a fiber that is not inside a poll: the turn is the fiber's. */
    turn = local->turn;
    if (__builtin_expect(turn->budget <= 0, 0) ||
        __builtin_expect(pirn__task_is_cancelled(turn->task), 0))
        return 1;
    turn->budget--;
    return 0;
}

/* The same where pirn__fast_path(local) has just found nothing against it. */
static inline int pirn__await_here(struct pirn__local *local,
                                   pirn_future *future, pirn_deadline deadline)
{
    if (local->waiter != NULL)
        return local->waiter->await(local, future, deadline);
    return pirn__thread_await(local, future, deadline);
}

/* clock.c: a time of the clock that is current here, on the system's, by which
 * threads sleep.  While that clock is paused it is only a guess. */
pirn_deadline pirn__deadline_to_system(pirn_deadline deadline);

/* Poll as the turn says, with its runtime current meanwhile; for threads that
 * wait outside tasks. */
enum pirn_poll pirn__poll_outside(pirn_future *future, pirn_cx *cx);

/* 0 if a straight-line call may wait here, else -EDEADLK. */
int pirn__may_suspend(void);

#endif /* PIRN_TASK_AWAIT_H */
