/* SPDX-License-Identifier: MIT */
/* src/reactor/gate.h - who is inside a system call on a descriptor, and whether
 * anybody else may still go in.
 *
 * One word: the bit SEALED and the number of calls inside.  Everything that
 * uses the descriptor enters first and leaves afterwards.  Sealing is for ever.
 * Exactly one side learns that the gate is sealed and empty, and may then close
 * the descriptor: the sealer if nobody was inside, else the last one out.  As
 * nobody enters a sealed gate, there is only one last one.
 */
#ifndef PIRN_REACTOR_GATE_H
#define PIRN_REACTOR_GATE_H

#include "base/atomic.h"

#define PIRN__GATE_SEALED (UINT32_C(1) << 31)

struct pirn__gate {
    PIRN_ATOMIC(uint32_t) word;
};

enum pirn__gate_seal {
    PIRN__GATE_WAS_SEALED, /* by somebody else */
    PIRN__GATE_EMPTY,      /* the descriptor is the sealer's to close */
    PIRN__GATE_BUSY,       /* the last one out will close it */
};

/* False: the gate is sealed. */
static inline bool pirn__gate_enter(struct pirn__gate *gate)
{
    /* relaxed: a first guess for the swap below, which decides. */
    uint32_t word = pirn__load(&gate->word, relaxed);

    do {
        if ((word & PIRN__GATE_SEALED) != 0)
            return false;
        /* relaxed: the order of the changes of this one word says who waits for
         * whom; what the call does is ordered when it leaves. */
    } while (!pirn__cas_weak(&gate->word, &word, word + 1, relaxed, relaxed));
    return true;
}

/* True: the gate is sealed and the caller was the last one out. */
static inline bool pirn__gate_leave(struct pirn__gate *gate)
{
    /* acq_rel [gate.out]: release ends our use of the descriptor before the
     * last one out closes it; acquire is that one's half. */
    return pirn__sub(&gate->word, 1, acq_rel) == (PIRN__GATE_SEALED | 1);
}

static inline bool pirn__gate_is_sealed(const struct pirn__gate *gate)
{
    /* acquire [gate.seal]: what the sealer did before is seen. */
    return (pirn__load(&gate->word, acquire) & PIRN__GATE_SEALED) != 0;
}

static inline enum pirn__gate_seal pirn__gate_seal(struct pirn__gate *gate)
{
    /* acq_rel [gate.seal] [gate.out]: release for those who find it sealed;
     * acquire comes after everybody who has left. */
    uint32_t before = pirn__or(&gate->word, PIRN__GATE_SEALED, acq_rel);

    if ((before & PIRN__GATE_SEALED) != 0)
        return PIRN__GATE_WAS_SEALED;
    return before == 0 ? PIRN__GATE_EMPTY : PIRN__GATE_BUSY;
}

/* Seal only if nobody is inside; anything but EMPTY leaves it as it was. */
static inline enum pirn__gate_seal pirn__gate_try_seal(struct pirn__gate *gate)
{
    uint32_t word = 0;

    /* acq_rel [gate.seal] [gate.out]: as in pirn__gate_seal(). */
    if (pirn__cas(&gate->word, &word, PIRN__GATE_SEALED, acq_rel, relaxed))
        return PIRN__GATE_EMPTY;
    return (word & PIRN__GATE_SEALED) != 0 ? PIRN__GATE_WAS_SEALED
                                           : PIRN__GATE_BUSY;
}

#endif /* PIRN_REACTOR_GATE_H */
