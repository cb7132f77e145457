/* SPDX-License-Identifier: MIT */
/* tools/pirn/load_print.c - the results of `pirn load`. */
#include "load_print.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const error_names[LOAD_ERROR_COUNT] = {
    [LOAD_CONNECT] = "connect", [LOAD_RESET] = "reset",
    [LOAD_TIMEOUT] = "timeout", [LOAD_STATUS] = "status",
    [LOAD_PARSE] = "parse",
};

static const double percentiles[] = {50, 90, 99};

enum { PERCENTILE_COUNT = sizeof percentiles / sizeof percentiles[0] };

const char *load_number(uint64_t value, char buf[LOAD_NUMBER_SIZE])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, value);
    int used = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
    return buf;
}

static double per_second(uint64_t value, double seconds)
{
    return seconds > 0 ? (double)value / seconds : 0;
}

static void print_latency(const char *name, uint64_t ns)
{
    if (ns < 1000 * 1000)
        (void)printf("  %-12s %12.1f us\n", name, (double)ns / 1e3);
    else
        (void)printf("  %-12s %12.2f ms\n", name, (double)ns / 1e6);
}

void load_print_table(const struct load_stats *stats, double seconds,
                      const struct workers *workers)
{
    const struct histogram *latency = &stats->latency_ns;
    char number[LOAD_NUMBER_SIZE];

    (void)printf("  %-12s %12s in %.2f s\n", "requests",
                 load_number(stats->requests, number), seconds);
    (void)printf(
        "  %-12s %12s requests/s\n", "throughput",
        load_number((uint64_t)per_second(stats->requests, seconds), number));
    (void)printf("  %-12s %12.2f MB/s\n", "",
                 per_second(stats->bytes, seconds) / 1e6);
    for (int i = 0; i < PERCENTILE_COUNT; i++) {
        char name[LOAD_NUMBER_SIZE];

        (void)snprintf(name, sizeof name, "%s p%.0f",
                       i == 0 ? "latency" : "       ", percentiles[i]);
        print_latency(name, histogram_percentile(latency, percentiles[i]));
    }
    print_latency("        max", latency->max);
    (void)printf("  %-12s %12s", "errors",
                 load_number(load_stats_errors(stats), number));
    for (int i = 0; i < LOAD_ERROR_COUNT; i++) {
        if (stats->errors[i] > 0)
            (void)printf("  %s %s", error_names[i],
                         load_number(stats->errors[i], number));
    }
    (void)printf("\n");
    if (stats->unfinished > 0)
        (void)printf("  %-12s %12s at the end\n", "unfinished",
                     load_number(stats->unfinished, number));
    if (workers != NULL)
        workers_print(stdout, workers);
}

void load_print_json(const struct load_stats *stats, double seconds,
                     const struct workers *workers)
{
    const struct histogram *latency = &stats->latency_ns;

    (void)printf("{\"seconds\": %.3f, \"requests\": %" PRIu64
                 ", \"requests_per_s\": %.1f, \"mb_per_s\": %.3f, "
                 "\"latency_us\": {",
                 seconds, stats->requests, per_second(stats->requests, seconds),
                 per_second(stats->bytes, seconds) / 1e6);
    for (int i = 0; i < PERCENTILE_COUNT; i++)
        (void)printf("\"p%.0f\": %.1f, ", percentiles[i],
                     (double)histogram_percentile(latency, percentiles[i]) /
                         1e3);
    (void)printf("\"max\": %.1f}, \"errors\": {", (double)latency->max / 1e3);
    for (int i = 0; i < LOAD_ERROR_COUNT; i++)
        (void)printf("%s\"%s\": %" PRIu64, i == 0 ? "" : ", ", error_names[i],
                     stats->errors[i]);
    (void)printf("}, \"unfinished\": %" PRIu64, stats->unfinished);
    if (workers != NULL) {
        (void)printf(", \"workers\": ");
        workers_print_json(stdout, workers);
    }
    (void)printf("}\n");
}
