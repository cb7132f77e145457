/* SPDX-License-Identifier: MIT */
/* pirn/waiter.h - the places of operations that stand in line.
 *
 * Locks, channels and other objects for which tasks wait keep those tasks in
 * the order in which they came.  The places lie inside the operations, so that
 * waiting takes no memory.  They, and what else such objects have in common, are
 * named here only so that the structs have a size; a program never touches them.
 */
#ifndef PIRN_WAITER_H
#define PIRN_WAITER_H

#include <pirn/future.h>
#include <pirn/link.h>

PIRN_BEGIN_DECLS

/* Those who wait for an object, the one that came first at the head.  A zeroed
 * list is an empty one. */
typedef struct pirn_waitlist {
    pirn_link waiters_;
} pirn_waitlist;

/* Who has handed an object over last, and whether to give way for it.  Hints; all
 * zero is nobody. */
typedef struct pirn_giver {
    PIRN_ATOMIC(uint32_t) task_;
    PIRN_ATOMIC(uint16_t) debt_;
    PIRN_ATOMIC(uint16_t) rest_;
} pirn_giver;

/* One who waits.  Lives in an operation. */
typedef struct pirn_waiter {
    pirn_link link_;
    pirn_waker waker_;
    uint8_t state_;  /* the object's lock */
    bool entered_;   /* the operation's own: it has been in line */
    uint16_t kind_;  /* the object's own use */
    uint32_t count_; /* the object's own use */
} pirn_waiter;

PIRN_END_DECLS

#endif /* PIRN_WAITER_H */
