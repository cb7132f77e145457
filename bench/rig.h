/* SPDX-License-Identifier: MIT */
/* bench/rig.h - the same work on a pool of one worker and on one of two.
 *
 * Both pools live all the time, and the samples of a row are taken on them in
 * alternation, so that the n-th value of "pool1/ROW" and the n-th of "pool2/ROW"
 * are a pair that met the same machine.
 *
 *     --quick         fewer samples, and less work in each
 *     --row NAME      only the rows whose names contain NAME
 *     --only NAME     only the row of that name
 *     --workers N     only the pool of N workers
 *     --samples N     so many of each
 */
#ifndef BENCH_RIG_H
#define BENCH_RIG_H

#include <pirn/pirn.h>

/* A pool, as a row sees it. */
struct rig {
    pirn_runtime *rt;
    uint32_t workers;
    bool warm; /* false: a first run, whose values count for nothing */
};

typedef void rig_fn(const struct rig *rig, void *arg);

/* Make the pools. */
void rig_begin(int argc, char **argv);
void rig_end(void);

/* `large`, or with --quick `small`. */
uint64_t rig_scale(uint64_t small, uint64_t large);

/* Call fn(rig, arg) for each sample of each pool.  The pool is current on this
 * thread meanwhile. */
void rig_each(const char *row, rig_fn *fn, void *arg);

/* Print a value of the pool, unless it is only warming up. */
void rig_print(const struct rig *rig, const char *row, const char *unit,
               double value);

/* A row that is timed as a whole, and printed in ns for each operation: the time
 * that passed as ROW, the processor time of all threads as ROW.cpu. */
struct rig_row {
    const char *name;
    uint64_t operations;
    bool from_outside; /* fn runs on this thread; else in a fiber of the pool */
    void (*fn)(void *arg);
    void *arg;
};
void rig_time(const struct rig_row *row);

#endif /* BENCH_RIG_H */
