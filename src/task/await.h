/* SPDX-License-Identifier: MIT */
/* src/task/await.h - waiting, for the straight-line calls. */
#ifndef PIRN_TASK_AWAIT_H
#define PIRN_TASK_AWAIT_H

#include <pirn/fiber.h>

#include "task/local.h"

/* pirn_await() without the check of its arguments. */
int pirn__await(pirn_future *future, pirn_deadline deadline);

/* The same on a plain thread. */
int pirn__thread_await(struct pirn__local *local, pirn_future *future,
                       pirn_deadline deadline);

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
