/* SPDX-License-Identifier: MIT */
/* src/sched/taskpool.h - the seam between the worker loop and where ready tasks
 * wait.
 *
 * The loop decides when to look, when to sleep and whom to wake; a task pool
 * decides where a task is put and which one comes next.  Pushing cannot fail:
 * links are intrusive.  stealable.c is the pool of the multi-thread runtime.
 */
#ifndef PIRN_SCHED_TASKPOOL_H
#define PIRN_SCHED_TASKPOOL_H

#include "base/list.h"
#include "task/home.h"

struct pirn__pool;
struct pirn__task;
struct pirn__worker;

struct pirn__taskpool_ops {
    const char *name;
    /* Put a task that has just become QUEUED.  `worker` is the one that this
     * thread runs, or NULL on any other thread.  True if a sleeper may be needed
     * for it. */
    bool (*push)(struct pirn__pool *pool, struct pirn__worker *worker,
                 struct pirn__task *task, enum pirn__origin origin);
    /* The next for this worker from where only it looks first, or NULL. */
    struct pirn__task *(*pop)(struct pirn__worker *worker);
    /* The next from where all look; how far is bounded. */
    struct pirn__task *(*pop_shared)(struct pirn__worker *worker);
    /* Look at the others; NULL if they have nothing to give. */
    struct pirn__task *(*steal)(struct pirn__worker *worker);
    /* Is there anything this worker could run?  After it has said that it
     * sleeps; seq_cst. */
    bool (*has_some)(struct pirn__worker *worker);
    /* A worker does not move: make what waits for it reachable for the others.
     * How many tasks that were. */
    uint64_t (*rescue)(struct pirn__worker *stuck);
};

extern const struct pirn__taskpool_ops pirn__stealable_ops;

#endif /* PIRN_SCHED_TASKPOOL_H */
