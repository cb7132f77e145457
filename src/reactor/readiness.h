/* SPDX-License-Identifier: MIT */
/* src/reactor/readiness.h - what is believed about a descriptor, in one word.
 *
 *     | tick (55 bits) | WATCHED HELD URGENT FAILED HUNG_UP ENDED ALWAYS W R |
 *
 * An event adds bits and advances the tick.  A system call that would block
 * clears its direction, naming the word that was read before the call: if the
 * tick has moved since, the event is newer than the answer and the clear does
 * nothing.  So a late clear never erases a fresh event, whatever thread it
 * comes from.  The tick cannot come round during one system call.
 */
#ifndef PIRN_REACTOR_READINESS_H
#define PIRN_REACTOR_READINESS_H

#include <pirn/io.h>

#include "base/atomic.h"

enum {
    PIRN__READY_READ = PIRN_READABLE,
    PIRN__READY_WRITE = PIRN_WRITABLE,
    PIRN__READY_ALWAYS = 1 << 2,  /* the kernel keeps no readiness for it */
    PIRN__READY_ENDED = 1 << 3,   /* the peer will send no more: still data */
    PIRN__READY_HUNG_UP = 1 << 4, /* both directions are over */
    PIRN__READY_FAILED = 1 << 5,  /* an error waits to be read */
    PIRN__READY_URGENT = 1 << 6,  /* a short read may stand at an urgent byte */
    PIRN__READY_HELD = 1 << 7,    /* reading rests; see hold.h */
    PIRN__READY_WATCHED = 1 << 8, /* a reactor will tell of events */
    PIRN__READY_TICK_SHIFT = 9,
};

#define PIRN__READY_TICK (UINT64_C(1) << PIRN__READY_TICK_SHIFT)

struct pirn__readiness {
    PIRN_ATOMIC(uint64_t) word;
};

static inline uint64_t
pirn__readiness_get(const struct pirn__readiness *readiness)
{
    /* acquire [readiness.word]: the system call that follows is made after
     * this look, so that its answer is at least as new as the tick. */
    return pirn__load(&readiness->word, acquire);
}

/* The same for who has just entered a line. */
static inline uint64_t
pirn__readiness_look(const struct pirn__readiness *readiness)
{
    /* seq_cst [readiness.word] [line.front]: see line.h. */
    return pirn__load(&readiness->word, seq_cst);
}

/* True if a call in this direction is worth a try. */
static inline bool pirn__readiness_has(uint64_t word, unsigned direction)
{
    if (direction == PIRN__READY_READ && (word & PIRN__READY_HELD) != 0)
        return false;
    return (word & (direction | PIRN__READY_ALWAYS)) != 0;
}

/* True if no event has been seen yet, so that the bits are an assumption. */
static inline bool pirn__readiness_is_assumed(uint64_t word)
{
    return word < PIRN__READY_TICK && (word & PIRN__READY_ALWAYS) == 0;
}

/* True if a transfer of less than was asked for says that the next one would
 * block: not at the end, an error or an urgent byte, where more may stand
 * behind.  Only for kinds of descriptors that promise it. */
static inline bool pirn__readiness_trusts_short(uint64_t word,
                                                unsigned direction)
{
    uint64_t doubts = PIRN__READY_HUNG_UP | PIRN__READY_FAILED;

    if (direction == PIRN__READY_READ)
        doubts |= PIRN__READY_ENDED | PIRN__READY_URGENT;
    return (word & doubts) == 0;
}

/* An event.  Returns the word after it. */
static inline uint64_t pirn__readiness_add(struct pirn__readiness *readiness,
                                           unsigned bits)
{
    /* relaxed: a first guess for the swap below, which decides. */
    uint64_t word = pirn__load(&readiness->word, relaxed);

    /* seq_cst [readiness.word] [line.front]: release, for whoever reads this tick
     * makes its system call after the kernel's event; and before the look for
     * who waits, see line.h. */
    while (!pirn__cas_weak(&readiness->word, &word,
                           (word | bits) + PIRN__READY_TICK, seq_cst, relaxed))
        continue;
    return (word | bits) + PIRN__READY_TICK;
}

/* A call that was made after `seen` was read would block: take `bits` away.
 * Nothing if an event has come since. */
static inline void pirn__readiness_clear(struct pirn__readiness *readiness,
                                         uint64_t seen, unsigned bits)
{
    uint64_t word = seen;

    /* relaxed: it takes a belief away and publishes nothing; the comparison
     * with `seen` orders it before or after each event. */
    while (!pirn__cas_weak(&readiness->word, &word, word & ~(uint64_t)bits,
                           relaxed, relaxed)) {
        if ((word ^ seen) >> PIRN__READY_TICK_SHIFT != 0)
            return;
    }
}

/* Bits that are no events: ALWAYS, HELD and WATCHED. */
static inline void pirn__readiness_mark(struct pirn__readiness *readiness,
                                        unsigned bits)
{
    /* release [readiness.word]: who finds it WATCHED sees by whom. */
    pirn__or(&readiness->word, (uint64_t)bits, release);
}

static inline void pirn__readiness_unmark(struct pirn__readiness *readiness,
                                          unsigned bits)
{
    /* seq_cst [readiness.word] [line.front]: before the look for who waits. */
    pirn__and(&readiness->word, ~(uint64_t)bits, seq_cst);
}

#endif /* PIRN_REACTOR_READINESS_H */
