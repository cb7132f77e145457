/* SPDX-License-Identifier: MIT */
/* src/base/atomic.h - the only atomics in the library.
 *
 * A shared value is declared PIRN_ATOMIC(type) and touched only through the
 * calls below, each of which names its memory order.  There is no fence: a race
 * over two variables is settled by seq_cst operations on both.
 *
 * Directly above each use stands a comment that starts with the order and says
 * what it orders against what, with a [file.what] tag that its other half
 * carries too.  tools/tidy checks that.
 *
 * Plain data handed over by such a protocol is declared PIRN_SHARED(type) and
 * touched through pirn_cell_read() and pirn_cell_write().
 */
#ifndef PIRN_BASE_ATOMIC_H
#define PIRN_BASE_ATOMIC_H

#include <pirn/base.h>

#ifdef PIRN_MODEL

/* The model build: the explorer makes every operation. */
#include "engine/explore_atomic.h"

#else

#define PIRN__ORDER_relaxed __ATOMIC_RELAXED
#define PIRN__ORDER_acquire __ATOMIC_ACQUIRE
#define PIRN__ORDER_release __ATOMIC_RELEASE
#define PIRN__ORDER_acq_rel __ATOMIC_ACQ_REL
#define PIRN__ORDER_seq_cst __ATOMIC_SEQ_CST

#define pirn__load(object, order) \
    __atomic_load_n(&(object)->v_, PIRN__ORDER_##order)
#define pirn__store(object, value, order) \
    __atomic_store_n(&(object)->v_, (value), PIRN__ORDER_##order)
#define pirn__swap(object, value, order) \
    __atomic_exchange_n(&(object)->v_, (value), PIRN__ORDER_##order)

/* Each returns the value before the operation. */
#define pirn__add(object, value, order) \
    __atomic_fetch_add(&(object)->v_, (value), PIRN__ORDER_##order)
#define pirn__sub(object, value, order) \
    __atomic_fetch_sub(&(object)->v_, (value), PIRN__ORDER_##order)
#define pirn__or(object, value, order) \
    __atomic_fetch_or(&(object)->v_, (value), PIRN__ORDER_##order)
#define pirn__and(object, value, order) \
    __atomic_fetch_and(&(object)->v_, (value), PIRN__ORDER_##order)

/* Compare and swap.  On failure *expected holds what was found; the failure
 * order is relaxed or acquire.  The weak form may fail without a reason and is
 * for loops. */
#define pirn__cas(object, expected, desired, order, failure_order) \
    __atomic_compare_exchange_n(&(object)->v_, (expected), (desired), false, \
                                PIRN__ORDER_##order, \
                                PIRN__ORDER_##failure_order)
#define pirn__cas_weak(object, expected, desired, order, failure_order) \
    __atomic_compare_exchange_n(&(object)->v_, (expected), (desired), true, \
                                PIRN__ORDER_##order, \
                                PIRN__ORDER_##failure_order)

/* Give a value its first content before anyone else can see the object. */
#define pirn__init(object, value) ((void)((object)->v_ = (value)))

/* Plain data under a hand-over protocol. */
#define PIRN_SHARED(type) \
    struct { \
        type c_; \
    }
#define pirn_cell_read(cell) ((cell)->c_)
#define pirn_cell_write(cell, value) ((void)((cell)->c_ = (value)))

#endif /* PIRN_MODEL */

#define PIRN__CACHE_LINE 64
#define PIRN_CACHE_ALIGNED __attribute__((aligned(PIRN__CACHE_LINE)))

/* Tell the processor that this is a bounded spin. */
static inline void pirn__spin_hint(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif /* PIRN_BASE_ATOMIC_H */
