/* SPDX-License-Identifier: MIT */
/* src/sched/outside.h - what threads that are no workers spawn with.
 *
 * A thread that drives nothing has no cache of cells, no ledger and no queue.  Each
 * pool has a few places with all three for such threads, each under one lock, and a
 * thread keeps to one of them: so threads that spawn at the same time do not meet.
 * Workers take what waits there from one place after the other, in batches, and
 * leave what is too much for them apart, under a lock of its own.  (In a
 * pool where each task has a worker of its own none waits here.)
 *
 * Whoever spawns looks at the gate of the root group under the lock, and counts the
 * task there.  Who has closed the gate takes each lock once: after that everybody
 * who has seen it open has been counted, and nobody takes a cell any more.
 */
#ifndef PIRN_SCHED_OUTSIDE_H
#define PIRN_SCHED_OUTSIDE_H

#include "base/hint.h"
#include "base/slab.h"
#include "sched/injection.h"
#include "task/group.h"
#include "task/local.h"

struct pirn_runtime;
struct pirn__pool;
struct pirn__task;
struct pirn__task_ops;

#ifndef PIRN__OUTSIDES
#define PIRN__OUTSIDES 4
#endif

/* So far ahead a task is fetched. */
enum { PIRN__OUTSIDE_AHEAD = 16 };

struct pirn__outside {
    /* What was spawned and nobody has taken.  Its lock guards all the rest but
     * `front`. */
    struct pirn__injection queue PIRN_CACHE_ALIGNED;
    bool keeps_tasks;              /* constant: they wait in the queue */
    pirn_slink *behind;            /* in the queue; see push_locked() */
    struct pirn__ledger ledger;    /* of the root group */
    struct pirn__slab_cache cache;
    /* What came before all that, and a worker has taken, but was too much for it:
     * for the next one, who then does not meet the threads that spawn. */
    struct pirn__injection front PIRN_CACHE_ALIGNED;
};

/* Choose the place that this thread keeps to: local->outside. */
PIRN__COLD void pirn__outside_choose(struct pirn__pool *pool,
                                     struct pirn__local *local);

/* Spawn a task without options or handle on a pool that this thread does not work
 * for, where pirn__outside_serves(). */
int pirn__outside_spawn(struct pirn_runtime *rt, struct pirn__outside *outside,
                        const struct pirn__task_ops *ops,
                        const pirn_future *future, size_t size,
                        const char *site);

/* Put any other task that a thread outside has spawned; `local` may be NULL.  True if
 * a sleeper may be needed for it. */
bool pirn__outside_push(struct pirn__pool *pool, struct pirn__local *local,
                        struct pirn__task *task);

/* How many tasks wait at all places together. */
uint64_t pirn__outside_len(const struct pirn__pool *pool);

/* The gate has been closed: wait for those that have seen it open. */
void pirn__outside_close(struct pirn_runtime *rt);

/* Give all cells back; after the close. */
void pirn__outside_flush(struct pirn_runtime *rt);

#endif /* PIRN_SCHED_OUTSIDE_H */
