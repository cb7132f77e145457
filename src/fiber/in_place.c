/* SPDX-License-Identifier: MIT */
/* src/fiber/in_place.c - blocking on a worker's own thread.
 *
 * The worker, with everything that waits in its queues, goes on on another
 * thread; the fiber stays on this one, calls the function, and is a task without
 * a worker until it waits next.  Then the thread ends.
 */
#include <pirn/blocking.h>

#include <errno.h>

#include "fiber/fiber.h"
#include "sched/worker.h"
#include "task/local.h"

/* See to it that the worker of this fiber does not depend on this thread. */
static int leave_worker(struct pirn__local *local, struct pirn__fiber *fiber)
{
    int rc;

    if (local->turn == &local->lone)
        return 0; /* it has left already */
    if (local->worker == NULL)
        return -EPERM;
    /* Nothing of it is left to go on. */
    if (pirn__pool_is_stopped(local->worker->pool))
        return 0;
    rc = pirn__worker_hand_off(local);
    if (rc == 0)
        fiber->cx->turn_ = &local->lone;
    return rc;
}

int pirn_block_in_place(pirn_blocking_fn *fn, void *arg)
{
    struct pirn__local *local = pirn__local();
    int rc = 0;

    if (fn == NULL)
        return -EINVAL;
    if (local == NULL)
        return -ENOMEM;
    if (local->no_suspend > 0)
        return -EDEADLK;
    if (local->fiber != NULL)
        rc = leave_worker(local, local->fiber);
    if (rc < 0)
        return rc;
    pirn__no_suspend_begin(local);
    rc = fn(arg);
    pirn__no_suspend_end(local);
    return rc;
}
