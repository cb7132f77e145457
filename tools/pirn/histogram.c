/* SPDX-License-Identifier: MIT */
/* tools/pirn/histogram.c - log-linear buckets.
 *
 * A value below 2^BITS is its own bucket.  A larger one is shifted right until
 * BITS + 1 bits are left; the shift and these bits name its bucket. */
#include "histogram.h"

#include <stddef.h>

enum { LINEAR = 1 << HISTOGRAM_BITS };

static unsigned shift_of(uint64_t value)
{
    if (value < LINEAR)
        return 0;
    return (unsigned)(63 - __builtin_clzll(value)) - HISTOGRAM_BITS;
}

static size_t bucket_of(uint64_t value)
{
    unsigned shift = shift_of(value);

    return ((size_t)shift << HISTOGRAM_BITS) + (size_t)(value >> shift);
}

/* The middle of a bucket. */
static uint64_t value_of(size_t bucket)
{
    if (bucket < 2 * LINEAR)
        return bucket;
    unsigned shift = (unsigned)(bucket >> HISTOGRAM_BITS) - 1;
    uint64_t lowest = (uint64_t)(bucket - ((size_t)shift << HISTOGRAM_BITS))
                      << shift;
    return lowest + ((UINT64_C(1) << shift) - 1) / 2;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->buckets[bucket_of(value)]++;
    histogram->count++;
    if (value > histogram->max)
        histogram->max = value;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    if (from->max > into->max)
        into->max = from->max;
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    double exact = (double)histogram->count * percent / 100;
    uint64_t rank = (uint64_t)exact;
    uint64_t seen = 0;

    if ((double)rank < exact || rank == 0)
        rank++;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen < rank)
            continue;
        uint64_t value = value_of(i);
        return value < histogram->max ? value : histogram->max;
    }
    return histogram->max;
}
