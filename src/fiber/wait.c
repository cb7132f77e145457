/* SPDX-License-Identifier: MIT */
/* src/fiber/wait.c - how a fiber waits: poll, switch out, poll again.
 *
 * Deadlines.  A fiber has one timer entry.  It is left armed when a wait ends
 * before its deadline, because the next wait usually has a later one: then
 * nothing is to be done, and when the entry fires too early for the wait of that
 * moment it is armed again.  So a server that reads with a deadline of 30 s
 * touches the wheel twice a minute, not twice a request.  A wait without a
 * deadline takes a forgotten entry out, so that an idle runtime has no timer.
 */
#include <errno.h>

#include "fiber/fiber.h"
#include "task/home.h"
#include "task/local.h"
#include "time/timers.h"

/* True if the fiber has been asked to stop and may be told so. */
static bool must_stop(struct pirn__fiber *fiber)
{
    return fiber->shield == 0 &&
           pirn__task_is_cancelled(pirn__fiber_task(fiber));
}

/* Answer -ECANCELED.  It costs budget, and without any left one turn, so that a
 * fiber that ignores the answer cannot hold up the others. */
PIRN__COLD static int refuse(struct pirn__fiber *fiber)
{
    if (!pirn_coop_spend(fiber->cx))
        (void)pirn__fiber_switch_out(fiber);
    return -ECANCELED;
}

static int arm_clock(struct pirn__fiber *fiber, pirn_deadline deadline)
{
    struct pirn__task *task = pirn__fiber_task(fiber);

    fiber->has_clock = true;
    if (!fiber->has_timer) {
        fiber->has_timer = true;
        fiber->top->timer = (pirn_timer){.when_ns_ = 0};
    }
    return pirn__timer_rearm(&fiber->top->timer, pirn__cx_timers(fiber->cx),
                             pirn__task_waker_borrowed(task), deadline);
}

/* Apart, as the next one, for those who wait without a deadline. */
__attribute__((noinline)) static int change_clock(struct pirn__fiber *fiber,
                                                  pirn_deadline deadline)
{
    pirn_timer *timer = &fiber->top->timer;
    bool armed;

    armed = fiber->has_clock && pirn__timer_state(timer) == PIRN__TIMER_ARMED;
    if (deadline.ns == UINT64_MAX) {
        if (armed)
            pirn__timer_stop(timer);
        fiber->has_clock = false;
        return 0;
    }
    if (armed && timer->when_ns_ <= deadline.ns)
        return 0;
    return arm_clock(fiber, deadline);
}

/* Before a wait. */
static inline int set_clock(struct pirn__fiber *fiber, pirn_deadline deadline)
{
    if (deadline.ns == UINT64_MAX && !fiber->has_clock)
        return 0;
    return change_clock(fiber, deadline);
}

__attribute__((noinline)) static int read_clock(struct pirn__fiber *fiber,
                                                pirn_deadline deadline)
{
    /* Only want of budget has led here, and by now the one try was made. */
    if (deadline.ns == 0)
        return -ETIMEDOUT;
    switch (pirn__timer_state(&fiber->top->timer)) {
    case PIRN__TIMER_FIRED:
        if (pirn_now_ns() >= deadline.ns)
            return -ETIMEDOUT;
        return arm_clock(fiber, deadline);
    case PIRN__TIMER_DEAD:
        return PIRN_ESHUTDOWN;
    case PIRN__TIMER_IDLE:
    case PIRN__TIMER_MOVING:
    case PIRN__TIMER_ARMED:
    case PIRN__TIMER_CANCELLED:
    case PIRN__TIMER_ENDED:
    case PIRN__TIMER_ENDED_CANCELLED:
    case PIRN__TIMER_ENDED_SHUTDOWN:
    case PIRN__TIMER_ENDED_NORUNTIME:
        break;
    }
    return 0;
}

/* After a switch: 0 while there is time. */
static inline int check_clock(struct pirn__fiber *fiber,
                              pirn_deadline deadline)
{
    return deadline.ns == UINT64_MAX ? 0 : read_clock(fiber, deadline);
}

/* Apart, for it seldom comes to that. */
PIRN__COLD static int give_up(pirn_future *future, int rc)
{
    pirn_future_drop(future);
    return rc;
}

/* Switch out until the future is ready or must be given up. */
static int wait_for(struct pirn__fiber *fiber, pirn_future *future,
                    pirn_deadline deadline)
{
    int rc;

    fiber->awaiting = future;
    do {
        (void)pirn__fiber_switch_out(fiber);
        /* What completed at the last moment is returned, not thrown away. */
        if (pirn__local_poll(fiber->local, future, fiber->cx) == PIRN_READY) {
            fiber->awaiting = NULL;
            return 0;
        }
        rc = must_stop(fiber) ? -ECANCELED : check_clock(fiber, deadline);
    } while (rc == 0);
    fiber->awaiting = NULL;
    return give_up(future, rc);
}

static int fiber_await(struct pirn__local *local, pirn_future *future,
                       pirn_deadline deadline)
{
    struct pirn__fiber *fiber = local->fiber;
    int rc;

    if (must_stop(fiber)) {
        (void)give_up(future, -ECANCELED);
        return refuse(fiber);
    }
    if (pirn__local_poll(local, future, fiber->cx) == PIRN_READY)
        return 0;
    /* Another deadline that has passed is found by its timer, one turn later,
     * which saves everybody else a clock read.  Without budget the future has
     * not really been tried: it is after the turn that is arranged already. */
    if (deadline.ns != 0)
        rc = set_clock(fiber, deadline);
    else
        rc = pirn__turn_is_deferred(fiber->cx->turn_) ? 0 : -ETIMEDOUT;
    if (rc < 0)
        return give_up(future, rc);
    return wait_for(fiber, future, deadline);
}

static int fiber_yield(struct pirn__local *local)
{
    struct pirn__fiber *fiber = local->fiber;

    if (must_stop(fiber))
        return refuse(fiber);
    fiber->cx->turn_->deferred = PIRN__DEFER_TO_EVENTS;
    return pirn__fiber_switch_out(fiber);
}

const struct pirn__waiter_ops pirn__fiber_waiter_ops = {
    .await = fiber_await,
    .yield = fiber_yield,
};
