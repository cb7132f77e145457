/* SPDX-License-Identifier: MIT */
/* src/task/run_hot.h - pirn__task_run() for the loops of drivers and workers.
 *
 * In place, for a fiber is entered from the loop itself, without a call; see
 * pirn__host_enter().
 */
#ifndef PIRN_TASK_RUN_HOT_H
#define PIRN_TASK_RUN_HOT_H

#include "task/task.h"

/* What a loop hands to each poll that it makes.  On the stack of the loop: where a
 * worker goes on on another thread during a poll, it has another one there. */
struct pirn__loop_cx {
    pirn_waker waker; /* of the task that is polled */
    pirn_cx cx;
};

static inline void pirn__loop_cx_init(struct pirn__loop_cx *loop,
                                      struct pirn__turn *turn)
{
    turn->local = pirn__local();
    loop->waker = pirn__task_waker_borrowed(NULL);
    loop->cx = (pirn_cx){.waker = &loop->waker, .turn_ = turn};
}

/* False if the worker has gone on without us, with its turn and its cache. */
static inline bool pirn__loop_has_turn(const struct pirn__loop_cx *loop,
                                       const struct pirn__turn *turn)
{
    return loop->cx.turn_ == turn;
}

/* task.c: settle a task that said READY; with NULL for a cache that is another
 * one's. */
void pirn__task_end(struct pirn__task *task, struct pirn__turn *turn,
                    struct pirn__slab_cache *cache);
/* The same of one that has ended well and unseen, and has been counted. */
PIRN__COLD void pirn__task_end_counted(struct pirn__task *task,
                                       struct pirn__turn *turn,
                                       struct pirn__slab_cache *cache);
/* What a start that does not simply poll asks for; true: poll it all the same. */
PIRN__COLD bool pirn__task_start_aside(struct pirn__task *task,
                                       struct pirn__turn *turn,
                                       enum pirn__start start,
                                       struct pirn__slab_cache *cache);

/* The usual end, of a task that has ended well: it has nothing to keep or tell, and
 * nobody has a reference to it, so that its cell is free at once.  False, and
 * nothing done, if it is not like that. */
static inline bool pirn__task_end_unseen(struct pirn__task *task,
                                         struct pirn__turn *turn,
                                         struct pirn__slab_cache *cache)
{
    pirn__state *state = pirn__task_state(task);
    uint64_t word = pirn__state_guess(state);

    if (!pirn__state_may_finish(word) || turn->loan != PIRN__LOAN ||
        turn->failed || turn->quiet_ledger == NULL ||
        pirn__task_future(task)->ops->discard != NULL)
        return false;
    pirn__ledger_count_end(turn->quiet_ledger, 0);
    if (!pirn__state_finish_from(state, word)) {
        pirn__task_end_counted(task, turn, cache);
        return true;
    }
    turn->task = NULL;
    if (cache == NULL ||
        !pirn__slab_give_cached(cache, &task->cell, task->size))
        pirn__slabs_give(cache, &task->cell);
    return true;
}

/* pirn__task_run() with the loop's own cx, for which `turn` is made.  After SUBMIT
 * the task is loop->cx.turn_->task, which a loop reads there: nothing is at hand
 * any more where a fiber was entered. */
__attribute__((always_inline)) static inline enum pirn__wake
pirn__task_run_here(struct pirn__task *task, struct pirn__turn *turn,
                    struct pirn__slab_cache *cache, struct pirn__loop_cx *loop)
{
    pirn_future *future = pirn__task_future(task);
    enum pirn__start start;
    enum pirn_poll poll;

    loop->waker.data = task;
    turn->task = task;
    turn->own_waker = &loop->waker;
    turn->failed = false;
    turn->deferred = PIRN__DEFER_NOT;
    turn->loan = PIRN__LOAN;
    start = pirn__state_start(pirn__task_state(task), turn->worker_index);
    if (start != PIRN__START_POLL &&
        !pirn__task_start_aside(task, turn, start, cache))
        return PIRN__WAKE_NONE;
    poll = future->ops->poll(future, &loop->cx);
    if (poll == PIRN__POLL_ENTERS) {
        poll = (enum pirn_poll)pirn__host_enter(&turn->local->host,
                                               turn->context);
        task = loop->cx.turn_->task;
    }
    if (poll == PIRN_PENDING) {
        turn = loop->cx.turn_;
        turn->own_waker = NULL;
        return pirn__state_end(pirn__task_state(task),
                               turn->deferred != PIRN__DEFER_NOT, turn->loan);
    }
    if (!pirn__loop_has_turn(loop, turn))
        pirn__task_end(task, loop->cx.turn_, NULL);
    else if (pirn__task_future(task)->ops->outcome != NULL ||
             !pirn__task_end_unseen(task, turn, cache))
        pirn__task_end(task, turn, cache);
    return PIRN__WAKE_NONE;
}

#endif /* PIRN_TASK_RUN_HOT_H */
