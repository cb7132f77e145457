/* SPDX-License-Identifier: MIT */
/* src/reactor/op.h - the record of an operation that may outlive its future.
 *
 * Two sides know a record.  The owner is the future that waits for it (or the
 * handle that may wait later); the back end is whoever carries the operation
 * out: a thread of the blocking pool, a kernel queue.  The owner may go at any
 * moment; the record then stays until the back end has reported, because memory
 * that the back end still knows must not be freed.
 *
 * States, in one word:
 *
 *     ACTIVE --complete--> COMPLETE --detach--> (result discarded)
 *        '-----detach----> DETACHED --complete--> (result discarded)
 *
 * Each side holds one reference; the record is freed with the last.
 *
 * The waker field belongs to the owner while the bit WAKER is clear.  Setting
 * the bit lends it to complete(); the owner gets it back by clearing the bit,
 * which fails once the operation is complete, for then it was moved out.
 */
#ifndef PIRN_REACTOR_OP_H
#define PIRN_REACTOR_OP_H

#include <pirn/future.h>

#include "base/atomic.h"

struct pirn__op;

struct pirn__op_ops {
    /* Nobody knows the record any more. */
    void (*free)(struct pirn__op *op);
    /* The result has no taker: close the descriptor it is, and the like.  Runs
     * once, on the side that came second.  NULL when a result owns nothing. */
    void (*discard)(struct pirn__op *op);
};

struct pirn__op {
    const struct pirn__op_ops *ops;
    PIRN_ATOMIC(uint32_t) word;    /* bits and references, see op.c */
    PIRN_SHARED(int) result;       /* back end, until COMPLETE */
    PIRN_SHARED(pirn_waker) waker; /* see above */
};

/* Make a record ACTIVE with two references: the owner's and the back end's. */
void pirn__op_init(struct pirn__op *op, const struct pirn__op_ops *ops);

/* One more reference for code that touches the record; give one up. */
void pirn__op_ref(struct pirn__op *op);
void pirn__op_unref(struct pirn__op *op);

/* The owner's calls; one thread at a time. */

/* PIRN_PENDING: the waker of `cx` is stored.  PIRN_READY: the result may be
 * read, and either pirn__op_release() or pirn__op_detach() ends the owner. */
PIRN_MUST_CHECK enum pirn_poll pirn__op_poll(struct pirn__op *op, pirn_cx *cx);

/* Stop waiting without giving the operation up: take the waker back. */
void pirn__op_withdraw(struct pirn__op *op);

/* Give the operation up.  Its result, now or later, is discarded.  Uses up the
 * owner's reference. */
void pirn__op_detach(struct pirn__op *op);

/* After PIRN_READY: the result was taken.  Uses up the owner's reference. */
void pirn__op_release(struct pirn__op *op);

/* Any thread that holds a reference. */
bool pirn__op_is_complete(const struct pirn__op *op);

/* Only once the operation is known to be complete. */
int pirn__op_result(const struct pirn__op *op);

/* The back end's call, once: publish the result, wake the owner, and give the
 * back end's reference up. */
void pirn__op_complete(struct pirn__op *op, int result);

#endif /* PIRN_REACTOR_OP_H */
