/* SPDX-License-Identifier: MIT */
/* src/task/await.c - straight-line waiting: in a fiber by its waiter, on a
 * plain thread by parking, nowhere else.
 */
#include "task/await.h"

#include <pirn/time.h>

#include <errno.h>

#include "task/home.h"
#include "task/local.h"

int pirn__may_suspend(void)
{
    struct pirn__local *local = pirn__local();

    if (local == NULL)
        return -ENOMEM;
    return local->no_suspend > 0 ? -EDEADLK : 0;
}

static int give_up(pirn_future *future, int rc)
{
    pirn_future_drop(future);
    return rc;
}

enum pirn_poll pirn__poll_outside(pirn_future *future, pirn_cx *cx)
{
    struct pirn__local *local = pirn__local();
    struct pirn__turn *outer = local->turn;
    enum pirn_poll poll;

    local->turn = cx->turn_;
    poll = pirn_future_poll(future, cx);
    local->turn = outer;
    return poll;
}

/* Sleep until something may have changed. */
static void wait_once(struct pirn__local *local, pirn_deadline deadline)
{
    struct pirn__parker *parker = local->parker;
    struct pirn__home *home =
        parker->home != NULL ? parker->home : local->entered;

    if (home != NULL && parker->fd_count == 0)
        home->ops->drive_or_park(home, parker, deadline);
    else
        pirn__parker_park(parker, pirn__deadline_to_system(deadline));
}

int pirn__thread_await(struct pirn__local *local, pirn_future *future,
                       pirn_deadline deadline)
{
    struct pirn__parker *parker = pirn__parker_of(local);
    struct pirn__turn turn = {
        .home = local->entered,
        .timers = local->entered == NULL ? NULL : local->entered->timers,
        .parker = parker,
    };
    pirn_waker waker;
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};
    int rc = 0;

    if (parker == NULL)
        return give_up(future, -ENOMEM);
    waker = pirn__parker_waker(parker);
    for (;;) {
        pirn__parker_reset(parker);
        turn.budget = PIRN__COOP_UNLIMITED;
        turn.now_ns = 0;
        if (pirn__poll_outside(future, &cx) == PIRN_READY)
            break;
        if (pirn_deadline_expired(deadline)) {
            rc = give_up(future, -ETIMEDOUT);
            break;
        }
        wait_once(local, deadline);
    }
    pirn__parker_reset(parker);
    pirn_waker_drop(waker);
    return rc;
}

int pirn__await(pirn_future *future, pirn_deadline deadline)
{
    struct pirn__local *local = pirn__local();

    if (local == NULL)
        return give_up(future, -ENOMEM);
    if (local->no_suspend > 0)
        return give_up(future, -EDEADLK);
    return pirn__await_here(local, future, deadline);
}

int pirn_await(pirn_future *future, pirn_deadline deadline)
{
    return future == NULL ? -EINVAL : pirn__await(future, deadline);
}

int pirn_yield(void)
{
    struct pirn__local *local = pirn__local();

    if (local == NULL)
        return -ENOMEM;
    if (local->no_suspend > 0)
        return -EDEADLK;
    return local->waiter == NULL ? 0 : local->waiter->yield(local);
}
