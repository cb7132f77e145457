/* SPDX-License-Identifier: MIT */
/* src/reactor/hold.h - a descriptor whose reading rests for a while.
 *
 * When the process runs out of descriptors, a listener cannot accept and its
 * readiness does not go away: trying again at once would burn the processor.
 * So it is held.  Waiters stay in line and nobody is woken, until the hold ends:
 * by its timer, which waits twice as long each time in a row, or because a
 * descriptor of ours was closed.  The shortage is the whole process's, therefore
 * all holds stand in one list.
 *
 * Lock order: the list, then an entry's own lock, then the wheel's.
 */
#ifndef PIRN_REACTOR_HOLD_H
#define PIRN_REACTOR_HOLD_H

#include <pirn/time.h>

#include "reactor/io.h"

struct pirn__hold {
    pirn_link link;      /* list lock; in the list while held */
    struct pirn__io *io; /* constant; outlives the hold */
    pirn_timer timer;    /* list lock */
    struct pirn__home *home; /* list lock: whose wheel the timer is in, or NULL;
                                kept by that */
    uint32_t fork_generation; /* list lock: of the process that began it */
    uint64_t until_ns;   /* list lock: without a timer, when to end; else 0 */
    PIRN_ATOMIC(uint32_t) pause_ms; /* the next one; 0: the shortest */
    PIRN_ATOMIC(uint64_t) count;    /* how often it was held */
};

void pirn__hold_init(struct pirn__hold *hold, struct pirn__io *io);

/* Hold, if it is not held yet.  The timer of the context's runtime ends it, or
 * of the one that the descriptor is bound to.  False if there is neither: then
 * it is not held. */
bool pirn__hold_begin(struct pirn__hold *hold, const pirn_cx *cx);

/* Hold without a timer.  The caller ends it: when pirn__hold_until() has come,
 * and in any case before it goes. */
void pirn__hold_begin_untimed(struct pirn__hold *hold);

/* When an untimed hold must be ended; PIRN_NEVER without one. */
pirn_deadline pirn__hold_until(struct pirn__hold *hold);

/* End it, if it is held; end up to a few of all there are. */
void pirn__hold_end(struct pirn__hold *hold);
void pirn__hold_end_all(void);

/* What was short is there again: the next pause is the shortest. */
void pirn__hold_succeeded(struct pirn__hold *hold);

uint64_t pirn__hold_count(const struct pirn__hold *hold);

#endif /* PIRN_REACTOR_HOLD_H */
