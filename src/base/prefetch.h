/* SPDX-License-Identifier: MIT */
/* src/base/prefetch.h - have memory fetched that is needed a little later.
 *
 * With a thousand connections what belongs to one of them has left the nearer
 * caches by the time it is needed again, and each line is waited for in turn.
 * Who knows what comes next says so here, and works on something else meanwhile.
 *
 * A prefetch reads nothing that the program can see, and never faults: the
 * address may be stale, and the memory another thread's.
 */
#ifndef PIRN_BASE_PREFETCH_H
#define PIRN_BASE_PREFETCH_H

#include <pirn/base.h>

#include "base/atomic.h"

/* `size` bytes that will be written, or read and written. */
static inline void pirn__prefetch(const void *memory, size_t size)
{
    const char *line = memory;

    for (size_t offset = 0; offset < size; offset += PIRN__CACHE_LINE)
        __builtin_prefetch(line + offset, 1);
}

#endif /* PIRN_BASE_PREFETCH_H */
