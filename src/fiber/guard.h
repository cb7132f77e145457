/* SPDX-License-Identifier: MIT */
/* src/fiber/guard.h - the pages below a stack that nobody may touch.
 *
 * A guard region (Linux 6.13) costs no mapping.  A guard by protection splits
 * the mapping around it: two entries of the process's table each, which is why
 * their number is bounded for the whole process.
 */
#ifndef PIRN_FIBER_GUARD_H
#define PIRN_FIBER_GUARD_H

#include <pirn/base.h>

enum pirn__guard_kind {
    PIRN__GUARD_REGION,  /* MADV_GUARD_INSTALL, proven by effect */
    PIRN__GUARD_PROTECT, /* mprotect; two mappings each */
};

/* The kind that works here; found out once per process. */
enum pirn__guard_kind pirn__guard_probe(size_t page_size);

/* How many guards by protection the process may have. */
size_t pirn__guard_limit(void);

/* Guard whole pages, by protection if a region is refused.  Returns the kind
 * that it became, or an error: -ENOMEM also beyond `limit` guards by
 * protection. */
int pirn__guard_install(enum pirn__guard_kind kind, size_t limit, void *base,
                        size_t size);

/* How far a page table reaches: guards in the same of these aligned spans share
 * one. */
size_t pirn__guard_span(size_t page_size);

/* Guard pages that share a page table with a region that is in place.  It cannot
 * fail for want of memory.  If the program has locked its memory meanwhile, it
 * becomes a guard by protection beyond any limit; if the kernel has no mapping
 * left for it either, the process ends.  Returns the kind that it became. */
enum pirn__guard_kind pirn__guard_beside(void *base, size_t size);

/* So many guards by protection were unmapped. */
void pirn__guard_forget(size_t protected_count);

#endif /* PIRN_FIBER_GUARD_H */
