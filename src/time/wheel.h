/* SPDX-License-Identifier: MIT */
/* src/time/wheel.h - a hierarchical timer wheel.
 *
 * Pure: time is an argument, there is no lock and no clock; the caller
 * serialises.  Any deadline of 64 bits has a place.  Insert and remove are
 * O(1).  After G. Varghese and T. Lauck, "Hashed and Hierarchical Timing
 * Wheels" (1987).
 */
#ifndef PIRN_TIME_WHEEL_H
#define PIRN_TIME_WHEEL_H

#include <pirn/time.h>

enum {
    PIRN__WHEEL_TICK_SHIFT = 10, /* a tick is 1,024 ns */
    PIRN__WHEEL_SLOT_BITS = 6, /* a slot is 2^6 of the level below */
    PIRN__WHEEL_SLOTS = 2 << PIRN__WHEEL_SLOT_BITS,
    PIRN__WHEEL_LEVELS = 9, /* 10 + 9 * 6 = 64 bits */
    PIRN__WHEEL_DUE = 0xff, /* level of an entry that is already due */
};

struct pirn__wheel {
    uint64_t elapsed;   /* ticks; everything before has been handed out */
    uint64_t latest_ns; /* the latest time that pop() was told */
    size_t count;       /* entries, due ones included */
    pirn_link due;      /* in order of time */
    uint64_t occupied[PIRN__WHEEL_LEVELS][2]; /* a bit for each non-empty slot */
    pirn_link slots[PIRN__WHEEL_LEVELS][PIRN__WHEEL_SLOTS];
};

void pirn__wheel_init(struct pirn__wheel *wheel, uint64_t now_ns);

/* Enter `timer` at timer->when_ns_; its link must not be in a list. */
void pirn__wheel_insert(struct pirn__wheel *wheel, pirn_timer *timer);

/* Take out a timer that is in the wheel. */
void pirn__wheel_remove(struct pirn__wheel *wheel, pirn_timer *timer);

/* When the wheel next needs pirn__wheel_pop() and pirn__wheel_settle(): never
 * later than the earliest entry, UINT64_MAX when empty, and exact when the earliest
 * occupied slots hold few entries.  A time that has passed if there is more to
 * settle. */
uint64_t pirn__wheel_next_ns(const struct pirn__wheel *wheel);

/* Bring up to `limit` entries whose time comes near to where they are quick to be
 * had.  What was not settled costs its whole time when it is due. */
void pirn__wheel_settle(struct pirn__wheel *wheel, size_t limit);

/* Take out one timer with when_ns_ <= now_ns, or NULL when none is left.  A
 * `now_ns` below an earlier one counts as that earlier one. */
pirn_timer *pirn__wheel_pop(struct pirn__wheel *wheel, uint64_t now_ns);

/* Any timer, whatever its time, or NULL when empty; for tearing down. */
pirn_timer *pirn__wheel_pop_any(struct pirn__wheel *wheel);

/* Assert every invariant. */
void pirn__wheel_validate(const struct pirn__wheel *wheel);

#endif /* PIRN_TIME_WHEEL_H */
