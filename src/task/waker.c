/* SPDX-License-Identifier: MIT */
/* src/task/waker.c - wakers: the generic operations, and a task's own.
 *
 * Foreign wakers run foreign code, in which nothing may suspend; a task's own
 * is known to be ours and skips that bookkeeping.
 */
#include "task/waker.h"

#include "base/assert.h"
#include "task/group.h"
#include "task/local.h"
#include "task/task.h"

void pirn__task_submit(struct pirn__task *task, enum pirn__wake wake)
{
    if (wake == PIRN__WAKE_SUBMIT) {
        /* QUEUED by us and not yet in a queue: nobody can settle it, so its
         * group and home are there. */
        struct pirn__home *home = task->group->home;

        home->ops->submit(home, task, PIRN__ORIGIN_WAKE);
    }
}

static pirn_waker task_waker_clone(const pirn_waker *self)
{
    struct pirn__task *task = self->data;

    pirn__state_ref(pirn__task_state(task));
    return *self;
}

static void task_waker_wake_by_ref(const pirn_waker *self)
{
    struct pirn__task *task = self->data;

    pirn__task_submit(task, pirn__state_wake(pirn__task_state(task)));
}

static void task_waker_wake(pirn_waker self)
{
    /* Our reference keeps the cell, and with it the home, until submit has
     * returned. */
    task_waker_wake_by_ref(&self);
    pirn__task_unref(self.data);
}

static void task_waker_drop(pirn_waker self)
{
    pirn__task_unref(self.data);
}

static const pirn_waker_ops task_waker_ops = {
    .clone = task_waker_clone,
    .wake = task_waker_wake,
    .wake_by_ref = task_waker_wake_by_ref,
    .drop = task_waker_drop,
};

pirn_waker pirn__task_waker_borrowed(struct pirn__task *task)
{
    return (pirn_waker){.data = task, .ops = &task_waker_ops};
}

pirn_waker pirn__task_waker(struct pirn__task *task)
{
    pirn__state_ref(pirn__task_state(task));
    return pirn__task_waker_borrowed(task);
}

bool pirn__waker_is_of(const pirn_waker *waker, const struct pirn__task *task)
{
    return waker->data == task && waker->ops == &task_waker_ops;
}

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
    if (waker->ops == &task_waker_ops)
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
    if (waker.ops == &task_waker_ops) {
        task_waker_wake(waker);
        return;
    }
    local = enter_foreign();
    waker.ops->wake(waker);
    leave_foreign(local);
}

void pirn_waker_wake_by_ref(const pirn_waker *waker)
{
    struct pirn__local *local;

    if (waker->ops == NULL)
        return;
    if (waker->ops == &task_waker_ops) {
        task_waker_wake_by_ref(waker);
        return;
    }
    local = enter_foreign();
    waker->ops->wake_by_ref(waker);
    leave_foreign(local);
}

void pirn_waker_drop(pirn_waker waker)
{
    struct pirn__local *local;

    if (waker.ops == NULL)
        return;
    if (waker.ops == &task_waker_ops) {
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
    if (cx->waker->ops == &task_waker_ops)
        fresh = task_waker_clone(cx->waker);
    else if (fresh.ops == NULL && cx->waker->ops != NULL)
        return false;
    *spare = *slot;
    *slot = fresh;
    return true;
}
