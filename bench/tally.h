/* SPDX-License-Identifier: MIT */
/* bench/tally.h - a future that is ready once a number of tasks, on whatever
 * threads, have said that they are done.
 *
 * One task awaits it, and awaits it to its end: nobody cancels a benchmark.  So
 * after a hit that was not the last nobody touches the tally, and after the last
 * one only the waiter does.
 */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <pirn/future.h>

#include "base/atomic.h"

struct tally {
    pirn_future future;
    PIRN_ATOMIC(uint64_t) left;
    PIRN_ATOMIC(uint32_t) state; /* enum tally_state in tally.c */
    pirn_waker waker;
};

void tally_init(struct tally *tally, uint64_t count);

/* One more is done; the last one wakes the waiter. */
void tally_hit(struct tally *tally);

/* Wait in a fiber or on a plain thread. */
void tally_await(struct tally *tally);

#endif /* BENCH_TALLY_H */
