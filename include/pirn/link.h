/* SPDX-License-Identifier: MIT */
/* pirn/link.h - the links inside caller-placed structs.
 *
 * They are named here only so that such structs have a size; a program never
 * touches them.
 */
#ifndef PIRN_LINK_H
#define PIRN_LINK_H

#include <pirn/base.h>

PIRN_BEGIN_DECLS

/* A place in a doubly linked list, or the head of one. */
typedef struct pirn_link {
    struct pirn_link *next_;
    struct pirn_link *prev_;
} pirn_link;

/* A place in a singly linked list. */
typedef struct pirn_slink {
    struct pirn_slink *next_;
} pirn_slink;

/* A lock of four bytes: 0 free, 1 held, 2 held with waiters. */
typedef struct pirn_lock {
    PIRN_ATOMIC(uint32_t) word_;
} pirn_lock;

PIRN_END_DECLS

#endif /* PIRN_LINK_H */
