/* SPDX-License-Identifier: MIT */
/* src/sched/ring.h - a worker's bounded run queue.
 *
 * One owner pushes at the tail and pops at the head; thieves take half from the
 * head.  After the run queue of Go and Tokio (D. Vyukov's design): the head word
 * holds two positions, so that a thief first claims a range and then copies it
 * out while the owner goes on.
 *
 *     head = | steal | real |     slots [steal, real) are being copied by a
 *                                 thief; equal when nobody steals
 *     tail                        slots [real, tail) hold tasks
 *
 * Positions run freely over 32 bits, far wider than the ring, so that a word
 * does not come back to an old value while a thief looks away: for that the
 * owner would have to run 2^32 tasks meanwhile (in the model build the width
 * is small, and the argument is tested by wrapping).
 */
#ifndef PIRN_SCHED_RING_H
#define PIRN_SCHED_RING_H

#include "base/atomic.h"
#include "base/list.h"

#ifndef PIRN__RING_SIZE
#define PIRN__RING_SIZE 1024
#endif

struct pirn__ring {
    PIRN_ATOMIC(uint64_t) head PIRN_CACHE_ALIGNED; /* owner and thieves */
    PIRN_ATOMIC(uint32_t) tail PIRN_CACHE_ALIGNED; /* the owner writes */
    uint32_t room_end; /* the owner's: what it fills is before this position; thieves
                          and its own pops may have made more room since */
    /* Each belongs to whoever may move the position it stands for: the owner
     * from `tail` on, and to who has claimed it by `head`. */
    PIRN_SHARED(pirn_slink *) slots[PIRN__RING_SIZE];
};

void pirn__ring_init(struct pirn__ring *ring);

/* Owner.  False when it is full; move half away with pirn__ring_overflow().
 * The push is seq_cst: after it a look at who sleeps is reliable. */
static inline bool pirn__ring_push(struct pirn__ring *ring, pirn_slink *link);

/* Owner.  Move from the head of `queue` what there is room for, published at once;
 * as seq_cst as a push. */
void pirn__ring_push_all(struct pirn__ring *ring, struct pirn__queue *queue);

/* Owner.  The oldest, or NULL. */
static inline pirn_slink *pirn__ring_pop(struct pirn__ring *ring);

/* Owner.  Take half out of a full ring, oldest first; false if a thief was
 * faster, so that there is room now. */
bool pirn__ring_overflow(struct pirn__ring *ring, struct pirn__queue *out);

/* Any thread that owns `into`.  Move half of `ring` there and return one of
 * them to run; NULL if there was nothing or another thief is at it. */
pirn_slink *pirn__ring_steal(struct pirn__ring *ring, struct pirn__ring *into);

/* Any thread.  Move all that can be had to the end of `out`; how many.  What is
 * pushed meanwhile, or what another thief is at, may stay. */
uint32_t pirn__ring_take(struct pirn__ring *ring, struct pirn__queue *out);

/* Any thread.  How many are in, a moment ago; the look is seq_cst. */
static inline uint32_t pirn__ring_len(const struct pirn__ring *ring);

/* The inline ones. */
#include "sched/ring_hot.h"

#endif /* PIRN_SCHED_RING_H */
