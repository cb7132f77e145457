/* SPDX-License-Identifier: MIT */
/* src/sched/taskpool.h - the seam between the worker loop and where ready tasks
 * wait.
 *
 * The loop decides when to look, when to sleep and whom to wake; a task pool
 * decides where a task is put and which one comes next.  Pushing cannot fail:
 * links are intrusive.  Two stand behind it: stealable.c, the usual one, where
 * any worker may run any task, and computational.c, where each task belongs to
 * one worker.
 */
#ifndef PIRN_SCHED_TASKPOOL_H
#define PIRN_SCHED_TASKPOOL_H

#include "base/list.h"
#include "task/home.h"

enum { PIRN__CLASSES = PIRN_PRIORITY_LOW + 1 };

struct pirn__pool;
struct pirn__task;
struct pirn__worker;

struct pirn__taskpool_ops {
    const char *name;
    /* A worker that is being made: what it needs besides; and whether tasks wait at
     * the places of threads outside.  A negative code when that cannot be had. */
    int (*prepare)(struct pirn__worker *worker);
    /* Put a task that has just become QUEUED.  Its class is in its word, its
     * origin is given.  `worker` is the one that this thread runs, or NULL on any
     * other thread.  True if a sleeper may be needed for it. */
    bool (*push)(struct pirn__pool *pool, struct pirn__worker *worker,
                 struct pirn__task *task, enum pirn__origin origin);
    /* The same for a batch of tasks that this worker ran last, while it runs none;
     * NULL: one by one. */
    void (*push_all)(struct pirn__worker *worker, struct pirn__queue *batch);
    /* The next for this worker from where only it looks first, or NULL. */
    struct pirn__task *(*pop)(struct pirn__worker *worker);
    /* The next from where all look; how far is bounded. */
    struct pirn__task *(*pop_shared)(struct pirn__worker *worker);
    /* Look at the others; NULL if they have nothing to give.  Without this
     * operation no worker can help another one, and none is woken to. */
    struct pirn__task *(*steal)(struct pirn__worker *worker);
    /* Is there anything this worker could run?  After it has said that it
     * sleeps; seq_cst. */
    bool (*has_some)(struct pirn__worker *worker);
    /* The same only for what threads outside have put, wherever it waits.  Goes
     * with `steal`. */
    bool (*has_outside)(struct pirn__worker *worker);
    /* A worker does not move: make what waits for it reachable for the others.
     * How many tasks that were. */
    uint64_t (*rescue)(struct pirn__worker *stuck);
    /* The runtime ends, and a worker may not come back: the same for all it has
     * that may be dropped by another thread.  They are found by pop_shared(). */
    uint64_t (*reclaim)(struct pirn__worker *stuck);
};

extern const struct pirn__taskpool_ops pirn__stealable_ops;
extern const struct pirn__taskpool_ops pirn__computational_ops;

#endif /* PIRN_SCHED_TASKPOOL_H */
