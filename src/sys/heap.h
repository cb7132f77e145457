/* SPDX-License-Identifier: MIT */
/* src/sys/heap.h - the C library's heap behind the allocator contract.
 *
 * It serves a runtime that was given no allocator of its own, and what belongs
 * to the process instead of a runtime.
 */
#ifndef PIRN_SYS_HEAP_H
#define PIRN_SYS_HEAP_H

#include <pirn/alloc.h>

/* Any thread; needs no initialisation. */
extern const pirn_alloc pirn__alloc_malloc;

#endif /* PIRN_SYS_HEAP_H */
