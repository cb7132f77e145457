/* SPDX-License-Identifier: MIT */
/* bench/countdown.h - a future that is ready once a number of tasks on the same
 * thread have said that they are done. */
#ifndef BENCH_COUNTDOWN_H
#define BENCH_COUNTDOWN_H

#include <stddef.h>

#include <pirn/future.h>

struct countdown {
    pirn_future future;
    size_t left;
    pirn_waker waker;
};

void countdown_init(struct countdown *countdown, size_t count);

/* One more is done; the last one wakes the waiter. */
void countdown_hit(struct countdown *countdown);

#endif /* BENCH_COUNTDOWN_H */
