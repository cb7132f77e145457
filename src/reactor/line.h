/* SPDX-License-Identifier: MIT */
/* src/reactor/line.h - those who wait for one direction of a descriptor, first
 * come first.
 *
 * The first is called up when there is readiness.  It leaves the line and is
 * then WOKEN: it tries its system call, and when its operation ends, or is
 * dropped, the next one is called up if readiness remains.  While one is WOKEN
 * nobody else is called, so nobody overtakes.
 *
 * Everything here is under the lock of the io, but for two reads that say so.
 */
#ifndef PIRN_REACTOR_LINE_H
#define PIRN_REACTOR_LINE_H

#include <pirn/io.h>

#include "base/atomic.h"
#include "base/list.h"

/* Changed only under the lock; who finds its own waiter WOKEN without the lock
 * may rely on it, for nobody else takes that state away. */
enum pirn__waiter_state {
    PIRN__WAITER_OUT,    /* in no line */
    PIRN__WAITER_QUEUED, /* in line, or in a list that is being woken */
    PIRN__WAITER_WOKEN,  /* out of line; has to try or to pass on */
    PIRN__WAITER_ENDED,  /* its runtime has ended */
};

struct pirn__line {
    pirn_link waiters;
    uint32_t woken;               /* called up and not back yet */
    PIRN_ATOMIC(uint32_t) length; /* not 0: somebody waits or is WOKEN */
};

static inline uint8_t pirn__waiter_state(const pirn_io_waiter *waiter)
{
    /* relaxed: the lock orders it.  Who is found WOKEN without the lock may try,
     * if it sees the readiness, and touches nothing else before it locks. */
    return pirn__load(&waiter->state_, relaxed);
}

static inline void pirn__waiter_set_state(pirn_io_waiter *waiter, uint8_t state)
{
    /* relaxed: under the lock; see pirn__waiter_state(). */
    pirn__store(&waiter->state_, state, relaxed);
}

void pirn__line_init(struct pirn__line *line);

/* Without the lock, as a hint: would a newcomer overtake somebody?  Who misses
 * one that has just come overtakes it, as if it had been a little earlier. */
static inline bool pirn__line_is_busy(const struct pirn__line *line)
{
    /* relaxed: a hint. */
    return pirn__load(&line->length, relaxed) != 0;
}

/* There is readiness: is it this waiter's turn?  If it was the first in line it
 * is WOKEN now. */
bool pirn__line_is_turn_of(struct pirn__line *line, pirn_io_waiter *waiter);

/* To the end of the line; who is in it stays where it is, and who was WOKEN and
 * found nothing is the first again. */
void pirn__line_enter(struct pirn__line *line, pirn_io_waiter *waiter);

/* Out of the line, or of being WOKEN. */
void pirn__line_leave(struct pirn__line *line, pirn_io_waiter *waiter);

/* True if there is somebody to call up. */
static inline bool pirn__line_can_call(const struct pirn__line *line)
{
    return line->woken == 0 && !pirn__list_empty(&line->waiters);
}

/* Call the first up; the waker is to be woken after unlock. */
PIRN_MUST_CHECK pirn_waker pirn__line_call_up(struct pirn__line *line);

/* Move all that wait to `out`. */
void pirn__line_empty(struct pirn__line *line, pirn_link *out);

#endif /* PIRN_REACTOR_LINE_H */
