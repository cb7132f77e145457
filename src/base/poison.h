/* SPDX-License-Identifier: MIT */
/* src/base/poison.h - memory that is ours but in nobody's use.
 *
 * Under AddressSanitizer and under the explorer a touch of hidden memory is
 * reported; in debug builds hiding overwrites it, so that a stale reader meets
 * nonsense soon.  Elsewhere both cost nothing.
 */
#ifndef PIRN_BASE_POISON_H
#define PIRN_BASE_POISON_H

#include <pirn/base.h>

#ifdef PIRN_DEBUG
#include <string.h>
#endif

#ifdef PIRN_MODEL
#include "base/atomic.h"
#endif

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define PIRN__HAS_ASAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define PIRN__HAS_ASAN 1
#endif

#ifdef PIRN__HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum {
    PIRN__HIDDEN_BYTE = 0xdb, /* was in use */
    PIRN__FRESH_BYTE = 0xa5   /* has not been written yet */
};

/* In the hostile build memory that is given and taken is overwritten, stacks
 * too. */
#ifdef PIRN_HOSTILE
enum { PIRN__IS_HOSTILE = 1 };
#else
enum { PIRN__IS_HOSTILE = 0 };
#endif

static inline void pirn__memory_hide(void *base, size_t size)
{
#ifdef PIRN_DEBUG
    memset(base, PIRN__HIDDEN_BYTE, size);
#endif
#ifdef PIRN_MODEL
    explore_hide(base, size, EXPLORE_PLACE);
#elif defined PIRN__HAS_ASAN
    ASAN_POISON_MEMORY_REGION(base, size);
#else
    (void)base;
    (void)size;
#endif
}

static inline void pirn__memory_show(void *base, size_t size)
{
#ifdef PIRN_MODEL
    explore_show(base, size);
#elif defined PIRN__HAS_ASAN
    ASAN_UNPOISON_MEMORY_REGION(base, size);
#else
    (void)base;
    (void)size;
#endif
}

#endif /* PIRN_BASE_POISON_H */
