/* SPDX-License-Identifier: MIT */
/* src/task/run_hot.h - pirn__task_run() for the loops of drivers and workers.
 *
 * In place, for a fiber is entered from the loop itself, without a call; see
 * pirn__host_enter().
 */
#ifndef PIRN_TASK_RUN_HOT_H
#define PIRN_TASK_RUN_HOT_H

#include "task/task.h"

/* A loop that runs tasks.  On its stack: where a worker goes on on another thread
 * during a poll, it has another one there. */
struct pirn__loop {
    pirn_waker waker; /* of the task that was polled last */
    pirn_cx cx;       /* handed to each poll */
    struct pirn__turn *turn;
    struct pirn__slab_cache *cache; /* or NULL, if the turn has no quiet_ledger */
    uint64_t claim; /* what its starts add to the word of a task */
};

static inline void pirn__loop_init(struct pirn__loop *loop,
                                   struct pirn__turn *turn,
                                   struct pirn__slab_cache *cache)
{
    turn->local = pirn__local();
    loop->waker = pirn__task_waker_borrowed(NULL);
    loop->cx = (pirn_cx){.waker = &loop->waker, .turn_ = turn};
    loop->turn = turn;
    loop->cache = cache;
    loop->claim = pirn__state_claim(turn->worker_index);
    turn->own_waker = &loop->waker;
}

static inline struct pirn__task *pirn__loop_task(const struct pirn__loop *loop)
{
    return loop->waker.data;
}

/* False if the worker has gone on without us, with its turn and its cache. */
static inline bool pirn__loop_has_turn(const struct pirn__loop *loop)
{
    return loop->cx.turn_ == loop->turn;
}

/* task.c: settle a task that said READY; with NULL for a cache that is another
 * one's. */
void pirn__task_end(struct pirn__task *task, struct pirn__turn *turn,
                    struct pirn__slab_cache *cache);
/* The same of one that has ended well and unseen, and has been counted. */
PIRN__COLD void pirn__task_end_counted(struct pirn__task *task,
                                       struct pirn__turn *turn,
                                       struct pirn__slab_cache *cache);
/* Any other start than the usual one, and what it asks for; true: poll it. */
PIRN__COLD bool pirn__task_start_aside(struct pirn__task *task,
                                       struct pirn__turn *turn,
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

    /* The fields of the turn are as its start has set them. */
    if (!pirn__state_may_finish(word) || turn->loan != PIRN__LOAN ||
        turn->deferred != PIRN__DEFER_NOT || turn->failed || turn->rest != 0 ||
        turn->quiet_ledger == NULL ||
        pirn__task_future(task)->ops->discard != NULL)
        return false;
    pirn__ledger_count_end(turn->quiet_ledger, 0);
    if (!pirn__state_finish_from(state, word)) {
        pirn__task_end_counted(task, turn, cache);
        return true;
    }
    turn->task = NULL;
    if (!pirn__slab_give_cached(cache, &task->cell, task->size))
        pirn__slabs_give(cache, &task->cell);
    return true;
}

/* pirn__task_run(), of a loop.  *again: the task, which is pirn__loop_task(), has to
 * be submitted.  False if the worker has gone on without us.
 *
 * Nothing but what `loop` holds is used after the poll: no register outlasts that a
 * fiber is entered. */
__attribute__((always_inline)) static inline bool
pirn__task_run_here(struct pirn__task *task, struct pirn__loop *loop,
                    bool *again)
{
    struct pirn__turn *turn = loop->turn;
    pirn_future *future;
    enum pirn_poll poll;

    *again = false;
    loop->waker.data = task;
    turn->task = task;
    turn->loan = PIRN__LOAN;
    turn->deferred = PIRN__DEFER_NOT;
    turn->failed = false;
    turn->rest = 0;
    if (!pirn__state_start_usually(pirn__task_state(task), loop->claim) &&
        !pirn__task_start_aside(task, turn, loop->cache))
        return true;
    future = pirn__task_future(task);
    poll = future->ops->poll(future, &loop->cx);
    if (poll == PIRN__POLL_ENTERS) {
        poll = (enum pirn_poll)pirn__host_enter(&turn->local->host,
                                               turn->context);
        task = pirn__loop_task(loop);
    }
    turn = loop->cx.turn_;
    if (poll == PIRN_PENDING) {
        pirn__state *state = pirn__task_state(task);

        turn->task = NULL;
        /* One or the other, so that what follows does not ask again. */
        if (turn->deferred == PIRN__DEFER_NOT)
            *again = pirn__state_end(state, false, turn->loan) ==
                     PIRN__WAKE_SUBMIT;
        else
            *again = pirn__state_end(state, true, turn->loan) ==
                     PIRN__WAKE_SUBMIT;
    } else if (pirn__task_future(task)->ops->outcome == NULL &&
               pirn__task_end_unseen(task, turn, loop->cache)) {
        return true;
    } else {
        pirn__task_end(task, turn,
                       pirn__loop_has_turn(loop) ? loop->cache : NULL);
    }
    return pirn__loop_has_turn(loop);
}

#endif /* PIRN_TASK_RUN_HOT_H */
