/* SPDX-License-Identifier: MIT */
/* src/sched/outside.h - what threads that are no workers spawn with.
 *
 * A thread that drives nothing has no cache of cells and no ledger.  Each pool has
 * a few of both for such threads, each under a lock of its own, and a thread keeps
 * to one of them: so threads that spawn at the same time do not meet here.
 *
 * Whoever spawns looks at the gate of the root group under the lock, and counts the
 * task there.  Who has closed the gate takes each lock once: after that everybody
 * who has seen it open has been counted, and nobody takes a cell any more.
 */
#ifndef PIRN_SCHED_OUTSIDE_H
#define PIRN_SCHED_OUTSIDE_H

#include "base/slab.h"
#include "task/group.h"
#include "task/local.h"

struct pirn_runtime;
struct pirn__task_ops;

#ifndef PIRN__OUTSIDES
#define PIRN__OUTSIDES 4
#endif

struct pirn__outside {
    pirn_lock lock PIRN_CACHE_ALIGNED;
    struct pirn__ledger ledger;    /* lock; of the root group */
    struct pirn__slab_cache cache; /* lock */
};

/* Spawn a task without options or handle on a pool that this thread does not work
 * for.  1, and nothing done, where it takes another way. */
int pirn__outside_spawn(struct pirn_runtime *rt, struct pirn__local *local,
                        const struct pirn__task_ops *ops,
                        const pirn_future *future, size_t size,
                        const char *site);

/* The gate has been closed: wait for those that have seen it open. */
void pirn__outside_close(struct pirn_runtime *rt);

/* Give all cells back; after the close. */
void pirn__outside_flush(struct pirn_runtime *rt);

#endif /* PIRN_SCHED_OUTSIDE_H */
