/* SPDX-License-Identifier: MIT */
/* src/scope/wakeset.h - which children of a combinator have been woken.
 *
 * A combinator of many futures gives each child a waker of its own, so that a
 * wake says which child to poll.  Such a waker must stay sound when the
 * combinator is long gone: somebody may have taken it out of a list under a
 * lock and wake it after a pause of any length.  So the wakers point into a
 * counted block of memory, not into the combinator:
 *
 *     | refs, lock, parent's waker | a number for each child | a bit for each |
 *
 * A child's waker is the address of its number, from which the block is found;
 * it stays the same from poll to poll, whoever the parent is.  Each copy holds
 * one reference, the combinator another; the last one frees the block.
 *
 * Protocol.  wake: set the child's bit; if it was not set, take the parent's
 * waker out under the lock and wake it after.  Poll: store the parent's waker
 * under the lock, then take the bits.  Either the waker comes into the lock
 * first, then the poll sees its bit, or it finds the waker that was stored.
 *
 * The bits are read and written by read-modify-writes only, so that a wake that
 * is merged into an earlier one still hands over what its caller wrote.
 *
 * Fields: `refs` and `bits` are atomic; `parent` is guarded by the lock; the
 * rest is constant.
 */
#ifndef PIRN_SCOPE_WAKESET_H
#define PIRN_SCOPE_WAKESET_H

#include <pirn/future.h>

#include "base/atomic.h"

struct pirn__home;
struct pirn__wakeset;

/* Up to so many children all are polled instead.  Measured (bench/bench_select.c):
 * a child that waits is polled in about 7 ns, in a merge in 14.  A join of more
 * than 8 is faster with a set, a merge of more than 4.  A select whose branches
 * are new in each turn pays for it, a quarter at 16, a tenth at 32; and it is
 * good to know that a few allocate nothing. */
enum { PIRN__WAKESET_FEW = 16, PIRN__WAKESET_FEW_STREAMS = 4 };

/* A set for `count` children of the combinator that is polled with `cx`, all of
 * them woken; NULL when they are not more than `few`, there is no memory, or a
 * plain thread polls: poll all then. */
struct pirn__wakeset *pirn__wakeset_for(size_t count, size_t few,
                                        const pirn_cx *cx);

/* The same for any count > 0, in the memory of `home`, which may be NULL. */
struct pirn__wakeset *pirn__wakeset_new(size_t count, struct pirn__home *home);

/* The combinator ends: later wakes do nothing.  NULL is fine. */
void pirn__wakeset_close(struct pirn__wakeset *set);

/* From now on a wake of a child wakes the waker of `cx`; called at the start of
 * each poll, before a round.  If it is a plain thread that polls, all children
 * count as woken. */
void pirn__wakeset_arm(struct pirn__wakeset *set, const pirn_cx *cx);

/* Wake a child by its index. */
void pirn__wakeset_wake(struct pirn__wakeset *set, size_t index);

/* The same for a parent that will poll again by itself. */
void pirn__wakeset_mark(struct pirn__wakeset *set, size_t index);

/* The children that may be ready, once each, from `start` round; all of them if
 * `set` is NULL. */
struct pirn__round {
    struct pirn__wakeset *set;
    size_t count;
    size_t start;
    size_t step;      /* how many children, or words of bits, are behind */
    size_t word;      /* whose bits these are: */
    uint64_t bits;    /* taken out of the set and not handed out yet; rotated
                         so that the lowest is the next */
    pirn_waker waker; /* of the child handed out last, borrowed */
};

struct pirn__round pirn__round_begin(struct pirn__wakeset *set, size_t count,
                                     size_t start);

/* The next child, and in `child` the context to poll it with, made from `cx`.
 * False at the end. */
bool pirn__round_next(struct pirn__round *round, const pirn_cx *cx,
                      pirn_cx *child, size_t *index);

/* Leave a round early: what it has not handed out stays woken. */
void pirn__round_end(struct pirn__round *round);

#endif /* PIRN_SCOPE_WAKESET_H */
