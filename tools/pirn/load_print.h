/* SPDX-License-Identifier: MIT */
/* tools/pirn/load_print.h - how the results of `pirn load` are shown. */
#ifndef PIRN_TOOLS_LOAD_PRINT_H
#define PIRN_TOOLS_LOAD_PRINT_H

#include "load_stats.h"
#include "workers.h"

/* The closing table, or one JSON object, on standard output.  `workers` may be
 * NULL. */
void load_print_table(const struct load_stats *stats, double seconds,
                      const struct workers *workers);
void load_print_json(const struct load_stats *stats, double seconds,
                     const struct workers *workers);

/* "45,210" */
enum { LOAD_NUMBER_SIZE = 32 };
const char *load_number(uint64_t value, char buf[LOAD_NUMBER_SIZE]);

#endif /* PIRN_TOOLS_LOAD_PRINT_H */
