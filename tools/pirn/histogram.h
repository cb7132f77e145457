/* SPDX-License-Identifier: MIT */
/* tools/pirn/histogram.h - percentiles of many numbers in little memory.
 *
 * Buckets are linear within each power of two, so that every value is known to
 * within one part in 256, and small ones exactly.
 */
#ifndef PIRN_TOOLS_HISTOGRAM_H
#define PIRN_TOOLS_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_BITS = 7, /* 128 buckets for each power of two */
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS
};

/* All zero is empty. */
struct histogram {
    uint64_t count;
    uint64_t max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* Add all values of `from` to `into`. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The value that `percent` per cent of the values do not exceed; 0 when
 * empty. */
uint64_t histogram_percentile(const struct histogram *histogram,
                              double percent);

#endif /* PIRN_TOOLS_HISTOGRAM_H */
