/* SPDX-License-Identifier: MIT */
/* tools/pirn/load_stats.c - counting requests and how they ended. */
#include "load_stats.h"

void load_stats_count(struct load_stats *stats,
                      const struct load_sample *sample)
{
    enum load_result result = sample->result;

    stats->bytes += sample->bytes;
    if (result == LOAD_CANCELLED)
        stats->unfinished++;
    else if (result < LOAD_ERROR_COUNT)
        stats->errors[result]++;
    if (result != LOAD_FINE && result != LOAD_STATUS)
        return;
    stats->requests++;
    if (sample->now_ns > stats->last_ns)
        stats->last_ns = sample->now_ns;
    histogram_add(&stats->latency_ns, sample->now_ns - sample->start_ns);
}

void load_stats_add(struct load_stats *sum, const struct load_stats *part)
{
    sum->requests += part->requests;
    sum->bytes += part->bytes;
    for (int i = 0; i < LOAD_ERROR_COUNT; i++)
        sum->errors[i] += part->errors[i];
    sum->unfinished += part->unfinished;
    if (part->last_ns > sum->last_ns)
        sum->last_ns = part->last_ns;
    histogram_merge(&sum->latency_ns, &part->latency_ns);
}

uint64_t load_stats_errors(const struct load_stats *stats)
{
    uint64_t total = 0;

    for (int i = 0; i < LOAD_ERROR_COUNT; i++)
        total += stats->errors[i];
    return total;
}
