/* SPDX-License-Identifier: MIT */
/* pirn/histogram.h - how long polls take, and how long tasks wait for theirs.
 *
 *     pirn_histogram polls;
 *     if (pirn_runtime_get_histogram(rt, PIRN_HISTOGRAM_POLL_TIME, &polls) == 0)
 *         printf("p99 %llu ns\n",
 *                (unsigned long long)pirn_histogram_quantile(&polls, 0.99));
 *
 * A runtime measures only if it was asked to (the option `histograms`, or
 * PIRN_HISTOGRAMS=1 in the environment).  Then each poll costs two reads of the
 * clock and each time that a task is queued one more, some 50 ns each with the
 * counting; each task takes 8 bytes more, and each worker 8 KiB.  Otherwise
 * nothing is measured and no clock is read.
 */
#ifndef PIRN_HISTOGRAM_H
#define PIRN_HISTOGRAM_H

#include <pirn/task.h>

PIRN_BEGIN_DECLS

enum pirn_histogram_kind {
    PIRN_HISTOGRAM_POLL_TIME,        /* from the start of a poll to its end */
    PIRN_HISTOGRAM_SCHEDULE_LATENCY, /* from being queued, by a wake, a spawn or
                                        a yield, to the start of the poll */
    PIRN_HISTOGRAM_KINDS
};

enum { PIRN_HISTOGRAM_BUCKETS = 496 };

/* Times in nanoseconds.  Each power of two is divided into eight buckets, so a
 * bucket is at most an eighth as wide as its values are large. */
typedef struct pirn_histogram {
    uint64_t count; /* in all buckets together */
    uint64_t sum_ns;
    uint64_t max_ns;
    uint64_t buckets[PIRN_HISTOGRAM_BUCKETS];
} pirn_histogram;

/* Read what all workers together have measured since the runtime was made.  What
 * is being measured meanwhile may be in one field and not yet in another.
 *
 * Thread    any
 * Errors    -EINVAL   rt or out is NULL, or no such kind
 *           -ENODATA  the runtime does not measure
 */
PIRN_API PIRN_MUST_CHECK int
pirn_runtime_get_histogram(pirn_runtime *rt, enum pirn_histogram_kind kind,
                           pirn_histogram *out);

/* The time that a share of the counted times, 0 to 1, do not exceed; too long by
 * at most an eighth.  0 of an empty one. */
PIRN_API uint64_t pirn_histogram_quantile(const pirn_histogram *histogram,
                                          double share);

/* The longest time that bucket `index` counts, for those who export them; the
 * bucket before ends one below the shortest. */
PIRN_API uint64_t pirn_histogram_bucket_end(uint32_t index);

PIRN_END_DECLS

#endif /* PIRN_HISTOGRAM_H */
