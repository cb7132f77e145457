/* SPDX-License-Identifier: MIT */
/* tools/pirn/load.h - what `pirn load` measures, and how it is shown. */
#ifndef PIRN_TOOLS_LOAD_H
#define PIRN_TOOLS_LOAD_H

#include <pthread.h>
#include <stdbool.h>
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

/* Filled by all workers. */
struct load_stats {
    pthread_mutex_t lock;
    uint64_t requests; /* whole answers, of any status */
    uint64_t bytes;    /* received, heads included */
    uint64_t errors[LOAD_ERROR_COUNT];
    uint64_t unfinished; /* in flight at the end: neither */
    uint64_t last_ns;    /* when the last answer was whole */
    struct histogram latency_ns;
};

/* All errors together; the caller holds the lock, or is alone. */
uint64_t load_error_total(const struct load_stats *stats);

/* The closing table, or one JSON object, on standard output. */
void load_print_table(const struct load_stats *stats, double seconds);
void load_print_json(const struct load_stats *stats, double seconds);

/* "45,210" */
enum { LOAD_NUMBER_SIZE = 32 };
const char *load_number(uint64_t value, char buf[LOAD_NUMBER_SIZE]);

#endif /* PIRN_TOOLS_LOAD_H */
