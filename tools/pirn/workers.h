/* SPDX-License-Identifier: MIT */
/* tools/pirn/workers.h - what each worker of a runtime has done. */
#ifndef PIRN_TOOLS_WORKERS_H
#define PIRN_TOOLS_WORKERS_H

#include <pirn/pirn.h>
#include <stdio.h>

/* All zero is empty. */
struct workers {
    uint32_t count;
    const char *source; /* where their number is from */
    pirn_worker_info *info;
};

/* Read the counters of the runtime that the calling task belongs to.  Empty
 * without memory for them. */
void workers_read(struct workers *workers);

/* Their number, and a line for each. */
void workers_print(FILE *stream, const struct workers *workers);

/* One array of objects. */
void workers_print_json(FILE *stream, const struct workers *workers);

void workers_free(struct workers *workers);

#endif /* PIRN_TOOLS_WORKERS_H */
