/* SPDX-License-Identifier: MIT */
/* src/task/future.c - calling a future's operations, the coop budget, failing. */
#include <pirn/future.h>

#include <stdarg.h>
#include <stdio.h>

#include "task/local.h"
#include "task/task.h"

pirn_cx pirn_cx_of_waker(const pirn_waker *waker)
{
    return (pirn_cx){.waker = waker, .turn_ = NULL};
}

enum pirn_poll pirn_future_poll(pirn_future *future, pirn_cx *cx)
{
    struct pirn__local *local = pirn__local();

    return local == NULL ? future->ops->poll(future, cx)
                         : pirn__local_poll(local, future, cx);
}

void pirn_future_drop(pirn_future *future)
{
    struct pirn__local *local = pirn__local();

    if (local != NULL)
        pirn__no_suspend_begin(local);
    future->ops->drop(future);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

void pirn_future_discard(pirn_future *future)
{
    struct pirn__local *local;

    if (future->ops->discard == NULL)
        return;
    local = pirn__local();
    if (local != NULL)
        pirn__no_suspend_begin(local);
    future->ops->discard(future);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

int pirn_future_outcome(const pirn_future *future)
{
    return future->ops->outcome == NULL ? 0 : future->ops->outcome(future);
}

void pirn_future_describe(const pirn_future *future, pirn_text *out)
{
    struct pirn__local *local;

    if (future->ops->describe == NULL) {
        pirn_text_append(out, "?");
        return;
    }
    local = pirn__local();
    if (local != NULL)
        pirn__no_suspend_begin(local);
    future->ops->describe(future, out);
    if (local != NULL)
        pirn__no_suspend_end(local);
}

void pirn__turn_defer(pirn_cx *cx, enum pirn__defer until)
{
    struct pirn__turn *turn = cx->turn_;

    /* The flag alone runs the task again; a waker that is not the task's own
     * may have to tell a combinator which child to poll.  Another child may have
     * to wait for longer. */
    if (turn->deferred != PIRN__DEFER_TO_EVENTS)
        turn->deferred = (uint8_t)until;
    if (turn->task == NULL || !pirn__waker_is_of(cx->waker, turn->task))
        pirn_waker_wake_by_ref(cx->waker);
}

bool pirn__coop_spend_last(pirn_cx *cx)
{
    if (cx->turn_ == NULL)
        return true;
    pirn__turn_defer(cx, PIRN__DEFER_TO_OTHERS);
    return false;
}

bool pirn_coop_spend(pirn_cx *cx)
{
    return pirn__coop_spend(cx);
}

void pirn_cx_fail(pirn_cx *cx, const char *format, ...)
{
    struct pirn__turn *turn = cx->turn_;
    va_list args;

    if (turn == NULL)
        return;
    turn->failed = true;
    va_start(args, format);
    vsnprintf(turn->message, sizeof turn->message, format, args);
    va_end(args);
}
