/* SPDX-License-Identifier: MIT */
/* src/base/checked.h - arithmetic on sizes that says when it overflows. */
#ifndef PIRN_BASE_CHECKED_H
#define PIRN_BASE_CHECKED_H

#include <pirn/base.h>

/* *out = a + b; false on overflow. */
static inline bool pirn__checked_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* *out = a * b; false on overflow. */
static inline bool pirn__checked_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* a + b, or UINT64_MAX on overflow. */
static inline uint64_t pirn__saturating_add(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* a * b, or UINT64_MAX on overflow. */
static inline uint64_t pirn__saturating_mul(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* `value` rounded up to a multiple of `align`, a power of two; the caller knows
 * that it does not overflow. */
static inline size_t pirn__round_up(size_t value, size_t align)
{
    return (value + align - 1) & ~(align - 1);
}

#endif /* PIRN_BASE_CHECKED_H */
