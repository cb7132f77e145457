/* SPDX-License-Identifier: MIT */
/* tools/pirn/workers.c - counters of workers, read while they still run. */
#include "workers.h"

#include <inttypes.h>
#include <stdlib.h>

void workers_read(struct workers *workers)
{
    pirn_runtime *rt = pirn_runtime_current();
    pirn_runtime_info info;

    *workers = (struct workers){0};
    pirn_runtime_get_info(rt, &info);
    workers->source = info.workers_source;
    workers->info = calloc(info.workers, sizeof *workers->info);
    if (workers->info == NULL)
        return;
    while (workers->count < info.workers &&
           pirn_runtime_get_worker(rt, workers->count,
                                   &workers->info[workers->count]) == 0)
        workers->count++;
}

void workers_print(FILE *stream, const struct workers *workers)
{
    if (workers->count > 0)
        (void)fprintf(stream, "workers: %" PRIu32 " (%s)\n", workers->count,
                      workers->source);
    for (uint32_t i = 0; i < workers->count; i++) {
        const pirn_worker_info *info = &workers->info[i];

        (void)fprintf(stream,
                      "worker %" PRIu32 ": %" PRIu64 " polls, %" PRIu64
                      " steals, %" PRIu64 " parks\n",
                      i, info->polls, info->steals, info->parks);
    }
}

void workers_print_json(FILE *stream, const struct workers *workers)
{
    (void)fputc('[', stream);
    for (uint32_t i = 0; i < workers->count; i++) {
        const pirn_worker_info *info = &workers->info[i];

        (void)fprintf(stream,
                      "%s{\"polls\": %" PRIu64 ", \"steals\": %" PRIu64
                      ", \"parks\": %" PRIu64 "}",
                      i == 0 ? "" : ", ", info->polls, info->steals,
                      info->parks);
    }
    (void)fputc(']', stream);
}

void workers_free(struct workers *workers)
{
    free(workers->info);
    *workers = (struct workers){0};
}
