/* SPDX-License-Identifier: MIT */
/* src/sched/histogram.c - log-linear buckets.
 *
 * A time below 2^BITS is its own bucket.  A longer one is shifted right until
 * BITS + 1 bits are left; the shift and these bits name its bucket.  (After the
 * buckets of G. Tene's HdrHistogram.)
 */
#include "sched/histogram.h"

#include <errno.h>
#include <string.h>

#include "sched/runtime.h"
#include "sched/worker.h"
#include "task/run_hot.h"

enum { HISTOGRAM_BITS = 3, HISTOGRAM_LINEAR = 1 << HISTOGRAM_BITS };

_Static_assert(PIRN_HISTOGRAM_BUCKETS == (64 - HISTOGRAM_BITS + 1)
                                             << HISTOGRAM_BITS,
               "every 64-bit value has a bucket");

static uint32_t bucket_of(uint64_t ns)
{
    uint32_t shift;

    if (ns < HISTOGRAM_LINEAR)
        return (uint32_t)ns;
    shift = 63 - (uint32_t)__builtin_clzll(ns) - HISTOGRAM_BITS;
    return (shift << HISTOGRAM_BITS) + (uint32_t)(ns >> shift);
}

uint64_t pirn_histogram_bucket_end(uint32_t index)
{
    uint64_t first;
    uint32_t shift;

    if (index >= PIRN_HISTOGRAM_BUCKETS)
        return UINT64_MAX;
    if (index < 2 * HISTOGRAM_LINEAR)
        return index;
    shift = (index >> HISTOGRAM_BITS) - 1;
    first = (uint64_t)(index - (shift << HISTOGRAM_BITS)) << shift;
    return first + ((UINT64_C(1) << shift) - 1);
}

/* Owner. */

struct pirn__histograms *pirn__histograms_new(const pirn_alloc *alloc)
{
    struct pirn__histograms *histograms =
        alloc->take(alloc->ctx, sizeof *histograms, PIRN__CACHE_LINE);

    if (histograms != NULL)
        memset(histograms, 0, sizeof *histograms);
    return histograms;
}

void pirn__histograms_free(struct pirn__histograms *histograms,
                           const pirn_alloc *alloc)
{
    if (histograms != NULL)
        alloc->give(alloc->ctx, histograms, sizeof *histograms,
                    PIRN__CACHE_LINE);
}

static uint64_t read_count(const pirn__histogram_count *count)
{
    /* relaxed: a statistic. */
    return pirn__load(count, relaxed);
}

static void set_count(pirn__histogram_count *count, uint64_t value)
{
    /* relaxed: only the owner writes; readers want any recent value. */
    pirn__store(count, value, relaxed);
}

void pirn__histogram_add(struct pirn__histogram *histogram, uint64_t ns)
{
    pirn__histogram_count *bucket = &histogram->buckets[bucket_of(ns)];

    set_count(bucket, read_count(bucket) + 1);
    set_count(&histogram->sum_ns, read_count(&histogram->sum_ns) + ns);
    if (ns > read_count(&histogram->max_ns))
        set_count(&histogram->max_ns, ns);
}

static void add_since(struct pirn__histogram *histogram, uint64_t since,
                      uint64_t now)
{
    pirn__histogram_add(histogram, now > since ? now - since : 0);
}

bool pirn__histograms_run(struct pirn__histograms *histograms,
                          struct pirn__task *task, struct pirn__loop *loop,
                          bool *again)
{
    uint64_t begun = pirn__sys->clock_ns();
    bool has_turn;

    add_since(&histograms->of[PIRN_HISTOGRAM_SCHEDULE_LATENCY],
              *pirn__task_stamp(task), begun);
    has_turn = pirn__task_run_here(task, loop, again);
    if (has_turn)
        add_since(&histograms->of[PIRN_HISTOGRAM_POLL_TIME], begun,
                  pirn__sys->clock_ns());
    return has_turn;
}

/* Readers. */

void pirn__histogram_read(const struct pirn__histogram *histogram,
                          pirn_histogram *out)
{
    uint64_t max = read_count(&histogram->max_ns);

    for (uint32_t i = 0; i < PIRN_HISTOGRAM_BUCKETS; i++) {
        uint64_t count = read_count(&histogram->buckets[i]);

        out->buckets[i] += count;
        out->count += count;
    }
    out->sum_ns += read_count(&histogram->sum_ns);
    out->max_ns = max > out->max_ns ? max : out->max_ns;
}

int pirn_runtime_get_histogram(pirn_runtime *rt, enum pirn_histogram_kind kind,
                               pirn_histogram *out)
{
    if (rt == NULL || out == NULL || (uint32_t)kind >= PIRN_HISTOGRAM_KINDS)
        return -EINVAL;
    memset(out, 0, sizeof *out);
    if (!rt->home.stamps)
        return -ENODATA;
    if (rt->pool == NULL) {
        pirn__histogram_read(&rt->histograms->of[kind], out);
        return 0;
    }
    for (uint32_t i = 0; i < rt->pool->count; i++)
        pirn__histogram_read(&rt->pool->workers[i]->histograms->of[kind], out);
    return 0;
}

/* How many of `count` make up the share; at least one. */
static uint64_t rank_of(uint64_t count, double share)
{
    double exact = (double)count * share;
    uint64_t rank;

    if (!(exact >= 1))
        return 1;
    if (exact >= (double)count)
        return count;
    rank = (uint64_t)exact;
    return (double)rank < exact ? rank + 1 : rank;
}

uint64_t pirn_histogram_quantile(const pirn_histogram *histogram, double share)
{
    uint64_t rank = rank_of(histogram->count, share);
    uint64_t seen = 0;

    if (histogram->count == 0)
        return 0;
    for (uint32_t i = 0; i < PIRN_HISTOGRAM_BUCKETS; i++) {
        uint64_t end = pirn_histogram_bucket_end(i);

        seen += histogram->buckets[i];
        if (seen >= rank)
            return end < histogram->max_ns ? end : histogram->max_ns;
    }
    return histogram->max_ns;
}
