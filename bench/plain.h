/* SPDX-License-Identifier: MIT */
/* bench/plain.h - clocks, sleeping, percentiles and the form of a value, for Pirn's
 * programs and for those that it is held against.
 *
 * It has no part of Pirn.
 */
#ifndef BENCH_PLAIN_H
#define BENCH_PLAIN_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t plain_clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sleep until the monotonic clock shows `ns`. */
static inline void plain_sleep_until(uint64_t ns)
{
    struct timespec until = {
        .tv_sec = (time_t)(ns / 1000000000u),
        .tv_nsec = (long)(ns % 1000000000u),
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
           EINTR)
        continue;
}

static inline int plain_compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static inline void plain_sort(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, plain_compare);
}

/* Of values that have been sorted. */
static inline double plain_percentile(const uint64_t *values, size_t count,
                                      unsigned percent)
{
    return (double)values[(count - 1) * percent / 100];
}

/* One JSON object a line, for the program that collects them. */
static inline void plain_print(const char *name, const char *unit, double value)
{
    printf("{\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.4f}\n", name,
           unit, value);
    fflush(stdout);
}

#endif /* BENCH_PLAIN_H */
