/* SPDX-License-Identifier: MIT */
/* tests/engine/explore_atomic.h - atomics under the explorer.
 *
 * With PIRN_MODEL defined, src/base/atomic.h and src/base/lock.h end here
 * instead of in the compiler's builtins.  Outside an exploration every call is
 * the plain operation.
 */
#ifndef PIRN_TESTS_ENGINE_EXPLORE_ATOMIC_H
#define PIRN_TESTS_ENGINE_EXPLORE_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum explore_order {
    EXPLORE_relaxed,
    EXPLORE_acquire,
    EXPLORE_release,
    EXPLORE_acq_rel,
    EXPLORE_seq_cst,
};

enum explore_rmw {
    EXPLORE_SWAP,
    EXPLORE_ADD,
    EXPLORE_SUB,
    EXPLORE_OR,
    EXPLORE_AND,
};

/* Where an operation stands in the source, or, without a file, in the
 * program. */
struct explore_place {
    const char *file;
    int line;
    const void *pc;
};

uint64_t explore_load(const void *address, size_t size,
                      enum explore_order order, struct explore_place place);
void explore_store(void *address, size_t size, uint64_t value,
                   enum explore_order order, struct explore_place place);
uint64_t explore_rmw(void *address, size_t size, enum explore_rmw what,
                     uint64_t operand, enum explore_order order,
                     struct explore_place place);
/* *expected is replaced on failure. */
bool explore_cas(void *address, size_t size, uint64_t *expected,
                 uint64_t desired, enum explore_order order,
                 enum explore_order failure_order, bool weak,
                 struct explore_place place);

/* The first content of an object that is new or reused. */
void explore_init(void *address, size_t size, uint64_t value,
                  struct explore_place place);

/* A lock: held by one thread, ordered like an acquire and a release. */
void explore_lock(void *address, struct explore_place place);
void explore_unlock(void *address, struct explore_place place);

/* Plain data under a protocol: races are findings. */
void explore_cell(const void *address, size_t size, bool write,
                  struct explore_place place);

/* Memory that is ours but in nobody's use, and the end of that. */
void explore_hide(const void *address, size_t size, struct explore_place place);
void explore_show(const void *address, size_t size);

#define EXPLORE_PLACE ((struct explore_place){__FILE__, __LINE__, NULL})

/* A value of up to eight bytes as a number, and back. */
#define EXPLORE_BITS(type, value) \
    ({ \
        type explore_value_ = (value); \
        uint64_t explore_bits_ = 0; \
        _Static_assert(sizeof explore_value_ <= 8, "atomics are words"); \
        memcpy(&explore_bits_, &explore_value_, sizeof explore_value_); \
        explore_bits_; \
    })
#define EXPLORE_VALUE(type, bits) \
    ({ \
        uint64_t explore_from_ = (bits); \
        type explore_to_; \
        memcpy(&explore_to_, &explore_from_, sizeof explore_to_); \
        explore_to_; \
    })
#define EXPLORE_TYPE(object) __typeof__((object)->v_)

/* The comma takes the const of a const object off. */
#define pirn__load(object, order) \
    EXPLORE_VALUE(__typeof__(((void)0, (object)->v_)), \
                  explore_load(&(object)->v_, sizeof(object)->v_, \
                               EXPLORE_##order, EXPLORE_PLACE))
#define pirn__store(object, value, order) \
    explore_store(&(object)->v_, sizeof(object)->v_, \
                  EXPLORE_BITS(EXPLORE_TYPE(object), (value)), \
                  EXPLORE_##order, EXPLORE_PLACE)
#define EXPLORE_RMW(object, what, value, order) \
    EXPLORE_VALUE(EXPLORE_TYPE(object), \
                  explore_rmw(&(object)->v_, sizeof(object)->v_, (what), \
                              EXPLORE_BITS(EXPLORE_TYPE(object), \
                                           (EXPLORE_TYPE(object))(value)), \
                              EXPLORE_##order, EXPLORE_PLACE))
#define pirn__swap(object, value, order) \
    EXPLORE_RMW(object, EXPLORE_SWAP, value, order)
#define pirn__add(object, value, order) \
    EXPLORE_RMW(object, EXPLORE_ADD, value, order)
#define pirn__sub(object, value, order) \
    EXPLORE_RMW(object, EXPLORE_SUB, value, order)
#define pirn__or(object, value, order) \
    EXPLORE_RMW(object, EXPLORE_OR, value, order)
#define pirn__and(object, value, order) \
    EXPLORE_RMW(object, EXPLORE_AND, value, order)

#define EXPLORE_CAS(object, expected, desired, order, failure_order, weak) \
    ({ \
        EXPLORE_TYPE(object) *explore_expected_ = (expected); \
        uint64_t explore_found_ = \
            EXPLORE_BITS(EXPLORE_TYPE(object), *explore_expected_); \
        bool explore_done_ = explore_cas( \
            &(object)->v_, sizeof(object)->v_, &explore_found_, \
            EXPLORE_BITS(EXPLORE_TYPE(object), (desired)), EXPLORE_##order, \
            EXPLORE_##failure_order, (weak), EXPLORE_PLACE); \
        if (!explore_done_) \
            *explore_expected_ = \
                EXPLORE_VALUE(EXPLORE_TYPE(object), explore_found_); \
        explore_done_; \
    })
#define pirn__cas(object, expected, desired, order, failure_order) \
    EXPLORE_CAS(object, expected, desired, order, failure_order, false)
#define pirn__cas_weak(object, expected, desired, order, failure_order) \
    EXPLORE_CAS(object, expected, desired, order, failure_order, true)

#define pirn__init(object, value) \
    explore_init(&(object)->v_, sizeof(object)->v_, \
                 EXPLORE_BITS(EXPLORE_TYPE(object), (value)), EXPLORE_PLACE)

#define PIRN_SHARED(type) \
    struct { \
        type c_; \
    }
#define pirn_cell_read(cell) \
    (*({ \
        explore_cell(&(cell)->c_, sizeof(cell)->c_, false, EXPLORE_PLACE); \
        &(cell)->c_; \
    }))
#define pirn_cell_write(cell, value) \
    do { \
        explore_cell(&(cell)->c_, sizeof(cell)->c_, true, EXPLORE_PLACE); \
        (cell)->c_ = (value); \
    } while (0)

#endif /* PIRN_TESTS_ENGINE_EXPLORE_ATOMIC_H */
