/* SPDX-License-Identifier: MIT */
/* src/sched/pinned.h - tasks that only one worker, on one thread, may run.
 *
 * They stand in an inbox that nobody else takes.  A worker that has ever had one
 * sleeps where it can be woken by name, on a descriptor of its own; it also
 * watches the shared wait set, but only while nobody else sleeps there, so that
 * events still wake one.  Whoever leaves the shared set as the last sleeper tells
 * one such worker to watch it.  In a computational pool all workers sleep so.
 */
#ifndef PIRN_SCHED_PINNED_H
#define PIRN_SCHED_PINNED_H

#include "sched/worker.h"

/* Owner, or before it runs.  Let it be woken by name: it gets its descriptor. */
int pirn__pinned_name(struct pirn__worker *worker);

/* Owner.  Prepare for pinned tasks: woken by name, and from now on the worker
 * keeps its thread.  Because they are spawned only there, a worker that has not
 * been prepared never has any. */
int pirn__pinned_prepare(struct pirn__worker *worker);

/* True once it is woken by name. */
bool pirn__pinned_has(const struct pirn__worker *worker);

/* Put a task and wake its worker.  Any thread. */
void pirn__pinned_push(struct pirn__worker *worker, pirn_slink *link);

/* Owner.  The next pinned task, or NULL. */
pirn_slink *pirn__pinned_pop(struct pirn__worker *worker);

/* Owner.  Is there one?  seq_cst, after it has said that it sleeps. */
bool pirn__pinned_has_some(struct pirn__worker *worker);

/* Wake it by name, if it sleeps.  Any thread. */
void pirn__pinned_wake(struct pirn__worker *worker);

/* Any thread.  Move what has yielded on this worker to the end of `taken`; pinned
 * tasks stay with it. */
void pirn__pinned_take_deferred(struct pirn__worker *worker,
                                struct pirn__queue *taken);

/* The last sleeper has left the shared set: have a pinned one watch it. */
void pirn__pinned_nudge(struct pirn__pool *pool);

/* Owner.  Sleep until woken by name or, watching the set, by an event that may
 * be there for the harvest; true in the latter case. */
bool pirn__pinned_sleep(struct pirn__worker *worker, bool searching);

#endif /* PIRN_SCHED_PINNED_H */
