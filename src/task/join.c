/* SPDX-License-Identifier: MIT */
/* src/task/join.c - waiting for the end of a task.
 *
 * The waiter claims the task's join slot, leaves its waker there and hands it
 * over; state.h says who owns the slot when.  The claim stays after the end and
 * then means that somebody has seen the outcome.
 */
#include <errno.h>

#include "base/assert.h"
#include "task/await.h"
#include "task/local.h"
#include "task/task.h"

static struct pirn__task *task_of(const pirn_join_op *op)
{
    return (struct pirn__task *)(void *)op->task_;
}

static enum pirn_poll finish(pirn_join_op *op, int rc)
{
    op->waiting_ = false;
    op->rc = rc;
    if (rc == 0)
        op->outcome = pirn__task_outcome(task_of(op));
    return PIRN_READY;
}

/* Leave a waker in the slot, which is ours, and hand it over. */
static enum pirn_poll leave_waker(pirn_join_op *op, pirn_cx *cx)
{
    struct pirn__task *task = task_of(op);
    pirn_waker *slot = pirn__task_join_slot(task);
    pirn_waker old = pirn_waker_store(slot, cx);
    enum pirn__join published =
        pirn__state_join_publish(pirn__task_state(task));

    pirn_waker_drop(old);
    if (published == PIRN__JOIN_DONE) {
        pirn_waker_drop(pirn_waker_take(slot));
        return finish(op, 0);
    }
    pirn__turn_note_home(cx, pirn__task_home(task));
    return PIRN_PENDING;
}

static enum pirn_poll first_poll(pirn_join_op *op, pirn_cx *cx)
{
    struct pirn__task *task = task_of(op);

    switch (pirn__state_join_claim(pirn__task_state(task))) {
    case PIRN__JOIN_BUSY:
        return finish(op, -EBUSY);
    case PIRN__JOIN_DONE:
        return finish(op, 0);
    case PIRN__JOIN_OK:
        break;
    }
    op->waiting_ = true;
    return leave_waker(op, cx);
}

static enum pirn_poll join_poll(pirn_future *self, pirn_cx *cx)
{
    pirn_join_op *op = PIRN_CONTAINER_OF(self, pirn_join_op, future);
    struct pirn__task *task = task_of(op);

    if (cx->turn_ != NULL && cx->turn_->task == task)
        return finish(op, -EDEADLK);
    if (!pirn__task_has_join_slot(task) && !pirn_task_is_done(op->task_))
        return finish(op, -ENOTSUP);
    if (pirn__home_is_forked(pirn__task_home(task)) &&
        !pirn_task_is_done(op->task_))
        return finish(op, PIRN_EFORKED);
    if (!pirn_coop_spend(cx))
        return PIRN_PENDING;
    if (!op->waiting_)
        return first_poll(op, cx);
    if (pirn__state_join_retract(pirn__task_state(task)) == PIRN__JOIN_DONE)
        return finish(op, 0);
    return leave_waker(op, cx);
}

static void join_drop(pirn_future *self)
{
    pirn_join_op *op = PIRN_CONTAINER_OF(self, pirn_join_op, future);
    pirn__state *state = pirn__task_state(task_of(op));
    pirn_waker old = {0};

    if (!op->waiting_)
        return;
    op->waiting_ = false;
    if (pirn__state_join_retract(state) == PIRN__JOIN_OK)
        old = pirn_waker_take(pirn__task_join_slot(task_of(op)));
    pirn__state_join_unclaim(state);
    pirn_waker_drop(old);
}

static void join_describe(const pirn_future *self, pirn_text *out)
{
    const pirn_join_op *op = PIRN_CONTAINER_OF(self, pirn_join_op, future);
    const char *name = pirn_task_name(op->task_);

    pirn_text_append(out, "join %s", name != NULL ? name
                                                  : pirn_task_site(op->task_));
}

static int join_outcome(const pirn_future *self)
{
    const pirn_join_op *op = PIRN_CONTAINER_OF(self, pirn_join_op, future);

    return op->rc < 0 ? op->rc : op->outcome;
}

static const pirn_future_ops join_ops = {
    .poll = join_poll,
    .drop = join_drop,
    .describe = join_describe,
    .outcome = join_outcome,
};

void pirn_join_init(pirn_join_op *op, pirn_task *task)
{
    *op = (pirn_join_op){.future = {&join_ops}, .task_ = task};
}

int pirn_task_join(pirn_task *task, pirn_deadline deadline, int *outcome)
{
    pirn_join_op op;
    int rc;

    if (task == NULL || outcome == NULL)
        return -EINVAL;
    pirn_join_init(&op, task);
    rc = pirn__await(&op.future, deadline);
    if (rc < 0)
        return rc;
    if (op.rc == 0)
        *outcome = op.outcome;
    return op.rc;
}
