/* SPDX-License-Identifier: MIT */
/* src/task/run_hot.h - pirn__task_run() for the loops of drivers and workers.
 *
 * In place, for a fiber is entered from the loop itself, without a call; see
 * pirn__host_enter().
 */
#ifndef PIRN_TASK_RUN_HOT_H
#define PIRN_TASK_RUN_HOT_H

#include "task/task.h"

/* task.c: the ends of a run.  Drop the future; settle one that said READY. */
PIRN__COLD void pirn__task_drop(struct pirn__task *task,
                                struct pirn__turn *turn, int outcome,
                                struct pirn__slab_cache *cache);
void pirn__task_end(struct pirn__task *task, struct pirn__turn *turn,
                    struct pirn__slab_cache *cache);

__attribute__((always_inline)) static inline enum pirn__wake
pirn__task_run_here(struct pirn__task *task, struct pirn__turn *turn,
                    struct pirn__slab_cache *cache)
{
    pirn__state *state = pirn__task_state(task);
    pirn_waker waker = pirn__task_waker_borrowed(task);
    pirn_cx cx = {.waker = &waker, .turn_ = turn};
    pirn_future *future = pirn__task_future(task);
    enum pirn_poll poll;

    turn->task = task;
    turn->own_waker = &waker;
    turn->failed = false;
    turn->deferred = PIRN__DEFER_NOT;
    turn->loan = PIRN__LOAN;
    switch (pirn__state_start(state, turn->worker_index)) {
    case PIRN__START_LEAVE:
        turn->own_waker = NULL;
        return PIRN__WAKE_NONE;
    case PIRN__START_ABORT:
        pirn__task_drop(task, turn, PIRN_EABORTED, cache);
        return PIRN__WAKE_NONE;
    case PIRN__START_CANCEL:
        if (!task->ops->injects) {
            pirn__task_drop(task, turn, -ECANCELED, cache);
            return PIRN__WAKE_NONE;
        }
        break;
    case PIRN__START_POLL:
        break;
    }
    poll = future->ops->poll(future, &cx);
    if (poll == PIRN__POLL_ENTERS)
        poll = (enum pirn_poll)pirn__host_enter(&turn->local->host,
                                               turn->context);
    if (poll == PIRN_PENDING) {
        cx.turn_->own_waker = NULL;
        return pirn__state_end(state, cx.turn_->deferred != PIRN__DEFER_NOT,
                               cx.turn_->loan);
    }
    /* The worker may have gone on without us, with its turn and its cache. */
    pirn__task_end(task, cx.turn_, cx.turn_ == turn ? cache : NULL);
    return PIRN__WAKE_NONE;
}

#endif /* PIRN_TASK_RUN_HOT_H */
