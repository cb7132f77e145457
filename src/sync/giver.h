/* SPDX-License-Identifier: MIT */
/* src/sync/giver.h - who has handed an object over gives way.
 *
 * A release that finds somebody in line hands over: nobody passes.  If the task
 * that did so wants the object back at once and stands in line, and so do the
 * others, they are in line for ever once they have been in line together (the
 * kernel has stopped a holder, say): each release a hand-over, each acquire a
 * wait and a switch of tasks.  Instead such a task lets the others run for a
 * turn, once, before it stands in line.  So the line gets shorter, until there
 * is none.
 *
 * Where the object is held across suspensions there is always a line, and the
 * turns are waited in vain.  That shows: a line that has dissolved is followed by
 * many acquires that find no line.  When these do not come, nobody gives way for
 * many hand-overs, so that the attempts cost next to nothing.
 *
 * All of this is a hint.  The task is remembered by a part of its address, and
 * counts may be lost; the worst that comes of it is a turn in vain.
 */
#ifndef PIRN_SYNC_GIVER_H
#define PIRN_SYNC_GIVER_H

#include <pirn/waiter.h>

#include "base/atomic.h"
#include "task/local.h"

enum {
    PIRN__GIVER_WORTH = 4, /* acquires without a line that are worth a turn */
    PIRN__GIVER_DEBT = 64 * PIRN__GIVER_WORTH, /* so much may be outstanding, */
    PIRN__GIVER_REST = 60000, /* before so many hand-overs without a turn */
};

_Static_assert(PIRN__GIVER_REST <= UINT16_MAX && PIRN__GIVER_DEBT <= UINT16_MAX,
               "both counts fit");

/* Whether an operation may give way; kind_ of its waiter. */
enum { PIRN__GIVER_PATIENT, PIRN__GIVER_AT_ONCE };

static inline void pirn__giver_init(pirn_giver *giver)
{
    pirn__init(&giver->task_, 0);
    pirn__init(&giver->debt_, 0);
    pirn__init(&giver->rest_, 0);
}

/* What stands for the task of a turn; 0: for none. */
static inline uint32_t pirn__giver_of(const struct pirn__turn *turn)
{
    return turn == NULL ? 0 : (uint32_t)((uintptr_t)turn->task >> 4);
}

/* The task that runs here.  Not under a lock: a thread's first call allocates.
 */
static inline uint32_t pirn__giver_here(void)
{
    const struct pirn__local *local = pirn__local();

    return local == NULL ? 0 : pirn__giver_of(local->turn);
}

/* Under the object's lock: this task hands it over. */
static inline void pirn__giver_note_locked(pirn_giver *giver, uint32_t task)
{
    /* relaxed, all three: hints. */
    uint16_t rest = pirn__load(&giver->rest_, relaxed);

    if (rest > 0) {
        /* relaxed: as above. */
        pirn__store(&giver->rest_, (uint16_t)(rest - 1), relaxed);
        task = 0;
    }
    /* relaxed: as above. */
    pirn__store(&giver->task_, task, relaxed);
}

/* The task of this turn was the last to hand over. */
static inline bool pirn__giver_is(const pirn_giver *giver,
                                  const struct pirn__turn *turn)
{
    uint32_t task = pirn__giver_of(turn);

    /* relaxed: a hint. */
    return task != 0 && pirn__load(&giver->task_, relaxed) == task;
}

/* A turn is given away. */
static inline void pirn__giver_owe(pirn_giver *giver)
{
    /* relaxed, all: hints. */
    uint32_t debt = pirn__load(&giver->debt_, relaxed) + PIRN__GIVER_WORTH;

    if (debt > PIRN__GIVER_DEBT) {
        debt = 0;
        /* relaxed: as above. */
        pirn__store(&giver->rest_, PIRN__GIVER_REST, relaxed);
    }
    /* relaxed: as above. */
    pirn__store(&giver->debt_, (uint16_t)debt, relaxed);
}

/* The object was acquired without standing in line. */
static inline void pirn__giver_repay(pirn_giver *giver)
{
    /* relaxed: a hint. */
    uint16_t debt = pirn__load(&giver->debt_, relaxed);

    if (__builtin_expect(debt > 0, 0))
        /* relaxed: as above. */
        pirn__store(&giver->debt_, (uint16_t)(debt - 1), relaxed);
}

/* In a poll that found the object taken: true if this task gives way.  Then a
 * wake has been arranged, and the poll returns PIRN_PENDING. */
static inline bool pirn__giver_gives_way(pirn_giver *giver, pirn_cx *cx,
                                         pirn_waiter *waiter)
{
    if (waiter->kind_ == PIRN__GIVER_AT_ONCE ||
        !pirn__giver_is(giver, cx->turn_))
        return false;
    waiter->kind_ = PIRN__GIVER_AT_ONCE; /* the next time */
    pirn__giver_owe(giver);
    pirn__turn_defer(cx, PIRN__DEFER_TO_EVENTS);
    return true;
}

#endif /* PIRN_SYNC_GIVER_H */
