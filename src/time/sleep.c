/* SPDX-License-Identifier: MIT */
/* src/time/sleep.c - a sleep as a future and as a call. */
#include <pirn/time.h>

#include <errno.h>

#include "task/await.h"
#include "task/home.h"
#include "task/local.h"
#include "time/timers.h"

static enum pirn_poll sleep_end(pirn_sleep_op *op, enum pirn__timer_state how)
{
    pirn__timer_end(&op->timer_, how);
    return PIRN_READY;
}

static enum pirn_poll poll_alone(pirn_sleep_op *op, pirn_cx *cx)
{
    if (!pirn_deadline_expired(pirn__timer_deadline(&op->timer_)))
        return sleep_end(op, PIRN__TIMER_ENDED_NORUNTIME);
    return pirn_coop_spend(cx) ? sleep_end(op, PIRN__TIMER_ENDED)
                               : PIRN_PENDING;
}

/* A sleep that is not over.  To wait costs nothing: the clock of a task that has
 * used its budget up runs all the same. */
static enum pirn_poll wait_on(pirn_sleep_op *op, pirn_cx *cx)
{
    int rc;

    if (pirn__cx_home(cx) == NULL)
        return poll_alone(op, cx);
    rc = pirn__timer_start(&op->timer_, pirn__cx_timers(cx), cx);
    if (rc < 0)
        return sleep_end(op, PIRN__TIMER_ENDED_SHUTDOWN);
    if (rc > 0 && pirn_coop_spend(cx))
        return sleep_end(op, PIRN__TIMER_ENDED);
    return PIRN_PENDING;
}

static enum pirn_poll sleep_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_sleep_op *op = PIRN_CONTAINER_OF(self, pirn_sleep_op, future);

    switch (pirn__timer_state(&op->timer_)) {
    case PIRN__TIMER_IDLE:
    case PIRN__TIMER_MOVING:
    case PIRN__TIMER_ARMED:
        return wait_on(op, cx);
    case PIRN__TIMER_CANCELLED:
        return sleep_end(op, PIRN__TIMER_ENDED_CANCELLED);
    case PIRN__TIMER_DEAD:
        return sleep_end(op, PIRN__TIMER_ENDED_SHUTDOWN);
    case PIRN__TIMER_FIRED:
    case PIRN__TIMER_ENDED:
    case PIRN__TIMER_ENDED_CANCELLED:
    case PIRN__TIMER_ENDED_SHUTDOWN:
    case PIRN__TIMER_ENDED_NORUNTIME:
        break;
    }
    return sleep_end(op, PIRN__TIMER_ENDED);
}

static void sleep_drop(pirn_future *self)
{
    pirn__timer_drop(&PIRN_CONTAINER_OF(self, pirn_sleep_op, future)->timer_);
}

static void sleep_describe(const pirn_future *self, pirn_text *out)
{
    (void)self;
    pirn_text_append(out, "sleep");
}

static int sleep_outcome(const pirn_future *self)
{
    return pirn_sleep_rc(PIRN_CONTAINER_OF(self, const pirn_sleep_op, future));
}

static const pirn_future_ops sleep_ops = {
    .poll = sleep_poll,
    .drop = sleep_drop,
    .describe = sleep_describe,
    .outcome = sleep_outcome,
};

void pirn_sleep_init(pirn_sleep_op *op, pirn_deadline until)
{
    op->future.ops = &sleep_ops;
    pirn__timer_init(&op->timer_, until);
}

int pirn_sleep_rc(const pirn_sleep_op *op)
{
    enum pirn__timer_state state = pirn__timer_state(&op->timer_);

    if (state == PIRN__TIMER_ENDED_CANCELLED)
        return -ECANCELED;
    if (state == PIRN__TIMER_ENDED_SHUTDOWN)
        return PIRN_ESHUTDOWN;
    return state == PIRN__TIMER_ENDED_NORUNTIME ? PIRN_ENORUNTIME : 0;
}

void pirn_sleep_reset(pirn_sleep_op *op, pirn_deadline until)
{
    pirn__timer_reset(&op->timer_, until);
}

void pirn_sleep_cancel(pirn_sleep_op *op)
{
    pirn__timer_cancel(&op->timer_);
}

/* A future that is never ready: what a sleeper awaits until its deadline, so
 * that the waiter's own timer entry is the only one. */
static enum pirn_poll never_poll(pirn_future *self, pirn_cx *cx)
{
    (void)self;
    (void)cx;
    return PIRN_PENDING;
}

static void never_drop(pirn_future *self)
{
    (void)self;
}

static const pirn_future_ops never_ops = {
    .poll = never_poll,
    .drop = never_drop,
    .describe = sleep_describe,
};

/* A plain thread has no task that is told of the end of its runtime; an entry
 * of its own in that runtime's wheel is. */
static int sleep_entered(pirn_deadline until)
{
    pirn_sleep_op op;
    int rc;

    pirn_sleep_init(&op, until);
    rc = pirn__await(&op.future, until);
    return rc < 0 ? rc : pirn_sleep_rc(&op);
}

int pirn_sleep(pirn_deadline until)
{
    struct pirn__local *local = pirn__local();
    pirn_future never = {&never_ops};
    int rc;

    if (local != NULL && local->waiter == NULL && local->entered != NULL)
        rc = sleep_entered(until);
    else
        rc = pirn__await(&never, until);
    return rc == -ETIMEDOUT ? 0 : rc;
}
