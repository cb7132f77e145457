/* SPDX-License-Identifier: MIT */
/* src/sched/histogram.h - what a worker, or the driver, measures of its polls.
 *
 * One record a worker, made only when the option asks for it.  The owner writes,
 * anybody reads; nothing is locked, so a reading may miss what is being written.
 *
 * How long a task has waited is known from the stamp in its cell (see task.h):
 * whoever queues it sets the stamp, whoever pops it reads it.
 */
#ifndef PIRN_SCHED_HISTOGRAM_H
#define PIRN_SCHED_HISTOGRAM_H

#include <pirn/histogram.h>

#include "base/atomic.h"
#include "sys/sys.h"
#include "task/task.h"

struct pirn__loop;

/* Written by the owner, read by anybody. */
typedef PIRN_ATOMIC(uint64_t) pirn__histogram_count;

struct pirn__histogram {
    pirn__histogram_count sum_ns;
    pirn__histogram_count max_ns;
    pirn__histogram_count buckets[PIRN_HISTOGRAM_BUCKETS];
};

struct pirn__histograms {
    struct pirn__histogram of[PIRN_HISTOGRAM_KINDS];
};

/* NULL without memory. */
struct pirn__histograms *pirn__histograms_new(const pirn_alloc *alloc);
void pirn__histograms_free(struct pirn__histograms *histograms,
                           const pirn_alloc *alloc);

/* Owner. */
void pirn__histogram_add(struct pirn__histogram *histogram, uint64_t ns);

/* Any thread: add to what `out` holds. */
void pirn__histogram_read(const struct pirn__histogram *histogram,
                          pirn_histogram *out);

/* Owner: pirn__task_run_here(), measured.  A poll during which the worker went on
 * without this thread is left out: the record went with it. */
bool pirn__histograms_run(struct pirn__histograms *histograms,
                          struct pirn__task *task, struct pirn__loop *loop,
                          bool *again);

/* By whoever queues a task, before anybody can pop it. */
static inline void pirn__histograms_stamp(const struct pirn__home *home,
                                          struct pirn__task *task)
{
    if (home->stamps)
        *pirn__task_stamp(task) = pirn__sys->clock_ns();
}

#endif /* PIRN_SCHED_HISTOGRAM_H */
