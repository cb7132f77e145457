/* SPDX-License-Identifier: MIT */
/* tools/pirn/load_stats.h - what `pirn load` measures.
 *
 * No lock: what clients on several workers count is kept in several of these
 * and added up.
 */
#ifndef PIRN_TOOLS_LOAD_STATS_H
#define PIRN_TOOLS_LOAD_STATS_H

#include <stdint.h>

#include "histogram.h"

/* How a request ended. */
enum load_result {
    LOAD_CONNECT, /* no connection */
    LOAD_RESET,   /* it broke, or ended early */
    LOAD_TIMEOUT, /* no whole answer in time */
    LOAD_STATUS,  /* an answer that is no success */
    LOAD_PARSE,   /* what came is not HTTP */
    LOAD_ERROR_COUNT,
    LOAD_FINE = LOAD_ERROR_COUNT,
    LOAD_CANCELLED
};

/* All zero is none. */
struct load_stats {
    uint64_t requests; /* whole answers, of any status */
    uint64_t bytes;    /* received, heads included */
    uint64_t errors[LOAD_ERROR_COUNT];
    uint64_t unfinished; /* in flight at the end: neither */
    uint64_t last_ns;    /* when the last answer was whole */
    struct histogram latency_ns;
};

/* A request that ended now. */
struct load_sample {
    enum load_result result;
    uint64_t bytes;
    uint64_t start_ns;
    uint64_t now_ns;
};

void load_stats_count(struct load_stats *stats,
                      const struct load_sample *sample);

/* Add what `part` has counted to `sum`. */
void load_stats_add(struct load_stats *sum, const struct load_stats *part);

/* All errors together. */
uint64_t load_stats_errors(const struct load_stats *stats);

#endif /* PIRN_TOOLS_LOAD_STATS_H */
