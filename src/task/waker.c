/* SPDX-License-Identifier: MIT */
/* src/task/waker.c - wakers: the generic operations, and a task's own.
 *
 * Foreign wakers run foreign code, in which nothing may suspend; a task's own
 * is known to be ours and skips that bookkeeping.
 */
#include "task/waker.h"

#include "base/assert.h"
#include "base/hint.h"
#include "task/group.h"
#include "task/local.h"
#include "task/task.h"

static pirn_waker task_waker_clone(const pirn_waker *self)
{
    struct pirn__task *task = self->data;

    pirn__state_ref(pirn__task_state(task));
    return *self;
}

/* The home that we do not work for is kept until submit has returned; up to then
 * the task, QUEUED by us, keeps it. */
PIRN__COLD static void submit_elsewhere(struct pirn__task *task)
{
    struct pirn__home *home = task->group->home;

    pirn__home_ref(home);
    home->ops->submit(home, task, PIRN__ORIGIN_WAKE);
    pirn__home_unref(home);
}

/* The poll of a task that this thread is in, or NULL. */
static inline struct pirn__turn *turn_here(const struct pirn__local *local)
{
    return local == NULL ? NULL : pirn__turn_of_task(local->turn);
}

/* It has become QUEUED in a poll of `turn`: true if that has queued it. */
static inline bool queue_in_turn(struct pirn__task *task,
                                 struct pirn__turn *turn)
{
    if (turn->queue_woken == NULL || task->group->home != turn->home)
        return false;
    turn->queue_woken(turn, task);
    return true;
}

/* The caller has a reference. */
static inline void wake_task(struct pirn__task *task)
{
    struct pirn__turn *turn;

    if (pirn__state_wake(pirn__task_state(task)) != PIRN__WAKE_SUBMIT)
        return;
    turn = turn_here(pirn__local());
    if (turn == NULL || !queue_in_turn(task, turn))
        pirn__task_submit(task, PIRN__WAKE_SUBMIT);
}

static void task_waker_wake_by_ref(const pirn_waker *self)
{
    wake_task(self->data);
}

/* Wake it, and give the reference up.  True if it is to be submitted: up to then
 * the cell stays, for it is QUEUED and in no queue, and after that the home if we
 * work for it. */
static inline bool wake_and_unref(struct pirn__task *task)
{
    enum pirn__wake wake = pirn__state_wake_and_unref(pirn__task_state(task));

    if (wake == PIRN__WAKE_FREE)
        pirn__task_free(task);
    return wake == PIRN__WAKE_SUBMIT;
}

static inline void submit_by_driver(struct pirn__task *task,
                                    const struct pirn__home *driven)
{
    struct pirn__home *home = task->group->home;

    if (home != driven)
        submit_elsewhere(task);
    else
        home->ops->submit(home, task, PIRN__ORIGIN_WAKE);
}

static void task_waker_wake(pirn_waker self)
{
    const struct pirn__local *local = pirn__local();
    struct pirn__turn *turn = turn_here(local);

    if (local != NULL && local->driving != NULL) {
        if (wake_and_unref(self.data) &&
            (turn == NULL || !queue_in_turn(self.data, turn)))
            submit_by_driver(self.data, local->driving);
        return;
    }
    /* Our reference keeps the cell, and with it the home, until submit has
     * returned. */
    wake_task(self.data);
    pirn__task_unref(self.data);
}

void pirn__waker_wake_by_driver(pirn_waker waker,
                                const struct pirn__home *home)
{
    if (waker.ops != &pirn__task_waker_ops)
        pirn_waker_wake(waker);
    else if (wake_and_unref(waker.data))
        submit_by_driver(waker.data, home);
}

void pirn__waker_wake_in_turn(pirn_waker waker, struct pirn__turn *turn)
{
    if (waker.ops != &pirn__task_waker_ops)
        pirn_waker_wake(waker);
    else if (wake_and_unref(waker.data) && !queue_in_turn(waker.data, turn))
        submit_by_driver(waker.data, turn->home);
}

static void task_waker_drop(pirn_waker self)
{
    pirn__task_unref(self.data);
}

const pirn_waker_ops pirn__task_waker_ops = {
    .clone = task_waker_clone,
    .wake = task_waker_wake,
    .wake_by_ref = task_waker_wake_by_ref,
    .drop = task_waker_drop,
};

/* Enter foreign code; undone by leave_foreign(). */
static struct pirn__local *enter_foreign(void)
{
    struct pirn__local *local = pirn__local();

    if (local != NULL)
        pirn__no_suspend_begin(local);
    return local;
}

static void leave_foreign(struct pirn__local *local)
{
    if (local != NULL)
        pirn__no_suspend_end(local);
}

pirn_waker pirn_waker_clone(const pirn_waker *waker)
{
    struct pirn__local *local;
    pirn_waker copy;

    if (waker->ops == NULL)
        return (pirn_waker){0};
    if (waker->ops == &pirn__task_waker_ops)
        return task_waker_clone(waker);
    local = enter_foreign();
    copy = waker->ops->clone(waker);
    leave_foreign(local);
    return copy;
}

void pirn_waker_wake(pirn_waker waker)
{
    struct pirn__local *local;

    if (waker.ops == NULL)
        return;
    if (waker.ops == &pirn__task_waker_ops) {
        task_waker_wake(waker);
        return;
    }
    local = enter_foreign();
    waker.ops->wake(waker);
    leave_foreign(local);
}

PIRN__COLD static void wake_foreign_by_ref(const pirn_waker *waker)
{
    struct pirn__local *local = enter_foreign();

    waker->ops->wake_by_ref(waker);
    leave_foreign(local);
}

/* A task that wakes itself in its poll runs again: a mark that this thread alone
 * reads, at the end of the poll.  False: it is another's waker. */
static inline bool wake_own(const pirn_waker *waker)
{
    struct pirn__local *local = pirn__tls_get();
    struct pirn__turn *turn = local == NULL ? NULL : local->turn;

    if (turn == NULL || turn->own_waker != waker)
        return false;
    if (turn->deferred == PIRN__DEFER_NOT)
        turn->deferred = PIRN__DEFER_AS_WOKEN;
    return true;
}

void pirn_waker_wake_by_ref(const pirn_waker *waker)
{
    if (wake_own(waker))
        return;
    if (waker->ops == &pirn__task_waker_ops)
        task_waker_wake_by_ref(waker);
    else if (waker->ops != NULL)
        wake_foreign_by_ref(waker);
}

void pirn_waker_drop(pirn_waker waker)
{
    struct pirn__local *local;

    if (waker.ops == NULL)
        return;
    if (waker.ops == &pirn__task_waker_ops) {
        task_waker_drop(waker);
        return;
    }
    local = enter_foreign();
    waker.ops->drop(waker);
    leave_foreign(local);
}

bool pirn_waker_same(const pirn_waker *a, const pirn_waker *b)
{
    return a->data == b->data && a->ops == b->ops;
}

pirn_waker pirn_waker_take(pirn_waker *waker)
{
    pirn_waker taken = *waker;

    *waker = (pirn_waker){0};
    return taken;
}

pirn_waker pirn_waker_store(pirn_waker *slot, const pirn_cx *cx)
{
    pirn_waker old = {0};

    if (!pirn_waker_same(slot, cx->waker)) {
        old = *slot;
        *slot = pirn_waker_clone(cx->waker);
    }
    return old;
}

bool pirn__waker_place(pirn_waker *slot, const pirn_cx *cx, pirn_waker *spare)
{
    pirn_waker fresh = *spare;

    if (pirn_waker_same(slot, cx->waker))
        return true;
    if (cx->waker->ops == &pirn__task_waker_ops)
        fresh = pirn__waker_get(cx);
    else if (fresh.ops == NULL && cx->waker->ops != NULL)
        return false;
    *spare = *slot;
    *slot = fresh;
    return true;
}

pirn_waker pirn__waker_get(const pirn_cx *cx)
{
    if (pirn__cx_task(cx) == NULL)
        return pirn_waker_clone(cx->waker);
    pirn__cx_ref_task(cx);
    return *cx->waker;
}

void pirn__waker_give(pirn_waker waker)
{
    const struct pirn__local *local = pirn__local();
    struct pirn__turn *turn = local == NULL ? NULL : local->turn;

    if (turn != NULL && turn->own_waker != NULL &&
        pirn__waker_is_of(&waker, turn->task))
        turn->loan++;
    else
        pirn_waker_drop(waker);
}
