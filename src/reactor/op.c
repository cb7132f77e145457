/* SPDX-License-Identifier: MIT */
/* src/reactor/op.c - the two sides of an operation and what they hand over.
 *
 * The word
 *
 *     bit 0  COMPLETE  the result is there; set once, by the back end
 *     bit 1  WAKER     the waker field is lent to complete()
 *     bit 2  DETACHED  the owner is gone; set once, by the owner
 *     3..31            references
 *
 * Every transition is one function below.  Which of complete() and detach()
 * comes second is decided by the order of their changes of this one word, so
 * exactly one of them discards an unwanted result.
 */
#include "reactor/op.h"

#include "base/assert.h"

enum {
    OP_COMPLETE = 1,
    OP_WAKER = 2,
    OP_DETACHED = 4,
    OP_REFERENCE = 8,
};

void pirn__op_init(struct pirn__op *op, const struct pirn__op_ops *ops)
{
    const pirn_waker none = {0};

    op->ops = ops;
    /* Two: the owner's and the back end's. */
    pirn__init(&op->word, 2 * OP_REFERENCE);
    pirn_cell_write(&op->result, 0);
    pirn_cell_write(&op->waker, none);
}

void pirn__op_ref(struct pirn__op *op)
{
    /* relaxed: the caller holds a reference, so the record cannot go. */
    (void)pirn__add(&op->word, OP_REFERENCE, relaxed);
}

void pirn__op_unref(struct pirn__op *op)
{
    /* release [op.refs]: what this side did to the record comes before its
     * end. */
    uint32_t before = pirn__sub(&op->word, OP_REFERENCE, release);

    PIRN_ASSERT(before >= OP_REFERENCE);
    if (before >= 2 * OP_REFERENCE)
        return;
    /* acquire [op.refs]: the end comes after what every other side did. */
    (void)pirn__load(&op->word, acquire);
    op->ops->free(op);
}

/* Lend the waker field to complete().  False: complete() was first and never
 * saw the waker, which is still the owner's. */
static bool lend_waker(struct pirn__op *op)
{
    /* acquire [op.result]: complete() may be found to be first. */
    uint32_t word = pirn__load(&op->word, acquire);

    do {
        if (word & OP_COMPLETE)
            return false;
        /* release [op.waker]: complete() sees the waker written before.
         * acquire on failure [op.result]: as above. */
    } while (
        !pirn__cas_weak(&op->word, &word, word | OP_WAKER, release, acquire));
    return true;
}

/* Get the waker field back.  False: complete() was first, and has moved the
 * waker out if it was lent. */
static bool reclaim_waker(struct pirn__op *op)
{
    /* acquire [op.result]: false lets the caller read the result.  The field
     * itself needs no order: only the owner ever writes it, and complete()
     * reads it only if its own change of the word found the bit set. */
    return (pirn__and(&op->word, ~(uint32_t)OP_WAKER, acquire) &
            OP_COMPLETE) == 0;
}

/* The owner goes.  Returns the word before; without COMPLETE in it the waker
 * field is the owner's again. */
static uint32_t mark_detached(struct pirn__op *op)
{
    /* acquire [op.result]: discarding reads the result. */
    uint32_t word = pirn__load(&op->word, acquire);
    uint32_t next;

    do {
        PIRN_DASSERT(!(word & OP_DETACHED));
        next = word | OP_DETACHED;
        if (!(word & OP_COMPLETE))
            next &= ~(uint32_t)OP_WAKER;
        /* release [op.detach]: what the owner wrote into the record comes
         * before complete() discards.  acquire on failure [op.result]: as
         * above. */
    } while (!pirn__cas_weak(&op->word, &word, next, release, acquire));
    return word;
}

/* The result is there.  Returns the word before: WAKER in it gives the waker
 * to the caller, DETACHED the duty to discard. */
static uint32_t mark_complete(struct pirn__op *op)
{
    /* acq_rel: release [op.result] publishes the result to the owner; acquire
     * [op.waker] sees the waker it lent, and acquire [op.detach] what it wrote
     * before it went. */
    return pirn__or(&op->word, OP_COMPLETE, acq_rel);
}

static void discard_result(struct pirn__op *op)
{
    if (op->ops->discard != NULL)
        op->ops->discard(op);
}

enum pirn_poll pirn__op_poll(struct pirn__op *op, pirn_cx *cx)
{
    /* acquire [op.result]: PIRN_READY lets the caller read the result. */
    uint32_t word = pirn__load(&op->word, acquire);
    pirn_waker old = {0};
    pirn_waker fresh;

    if (word & OP_COMPLETE)
        return PIRN_READY;
    if (word & OP_WAKER) {
        /* Reading a lent waker is no race: complete() only reads it, too. */
        old = pirn_cell_read(&op->waker);
        if (pirn_waker_same(&old, cx->waker))
            return PIRN_PENDING;
        if (!reclaim_waker(op))
            return PIRN_READY;
    }
    fresh = pirn_waker_clone(cx->waker);
    pirn_cell_write(&op->waker, fresh);
    pirn_waker_drop(old);
    if (lend_waker(op))
        return PIRN_PENDING;
    pirn_waker_drop(fresh);
    return PIRN_READY;
}

void pirn__op_withdraw(struct pirn__op *op)
{
    pirn_waker own = {0};

    /* relaxed: only the owner sets and clears this bit. */
    if (!(pirn__load(&op->word, relaxed) & OP_WAKER))
        return;
    if (reclaim_waker(op))
        own = pirn_cell_read(&op->waker);
    pirn_waker_drop(own);
}

void pirn__op_detach(struct pirn__op *op)
{
    uint32_t before = mark_detached(op);

    if (before & OP_COMPLETE)
        discard_result(op);
    else if (before & OP_WAKER)
        pirn_waker_drop(pirn_cell_read(&op->waker));
    pirn__op_unref(op);
}

void pirn__op_release(struct pirn__op *op)
{
    PIRN_DASSERT(pirn__op_is_complete(op));
    pirn__op_unref(op);
}

bool pirn__op_is_complete(const struct pirn__op *op)
{
    /* acquire [op.result]: true lets the caller read the result. */
    return (pirn__load(&op->word, acquire) & OP_COMPLETE) != 0;
}

int pirn__op_result(const struct pirn__op *op)
{
    return pirn_cell_read(&op->result);
}

void pirn__op_complete(struct pirn__op *op, int result)
{
    uint32_t before;

    pirn_cell_write(&op->result, result);
    before = mark_complete(op);
    PIRN_DASSERT(!(before & OP_COMPLETE));
    if (before & OP_WAKER)
        pirn_waker_wake(pirn_cell_read(&op->waker));
    if (before & OP_DETACHED)
        discard_result(op);
    pirn__op_unref(op);
}
