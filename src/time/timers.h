/* SPDX-License-Identifier: MIT */
/* src/time/timers.h - a wheel that any thread may use, on a clock that can be
 * paused.
 *
 * The timers of one runtime: a wheel under a four-byte lock.  An entry carries
 * a waker; it is woken, outside the lock, by whoever drives.
 *
 * States of an entry:
 *
 *   IDLE --arm--> ARMED --due--> FIRED --the owner looks--> ENDED
 *     |             |--cancel--> CANCELLED -------------------^
 *     '--cancel-----'--the runtime ends--> DEAD --------------^
 *
 * IDLE is left under the entry's own lock.  Reset and cancel from another thread hold
 * the entry's own lock all the time, and so does an owner that ends an entry
 * which they may find: a wheel that they have found stays until they are done,
 * for an entry that has not ended keeps it.  A reset of an IDLE entry makes it
 * MOVING meanwhile.  All else changes under the lock of the wheel.  `owner_` is
 * set by the first arming and stays; only the entry of a fiber, which nobody else
 * resets, changes it when the fiber has moved.
 */
#ifndef PIRN_TIME_TIMERS_H
#define PIRN_TIME_TIMERS_H

#include <pirn/time.h>

#include "base/atomic.h"
#include "time/wheel.h"

struct pirn__home;

enum pirn__timer_state {
    PIRN__TIMER_IDLE,
    PIRN__TIMER_MOVING, /* IDLE, and being reset */
    PIRN__TIMER_ARMED,
    PIRN__TIMER_FIRED,
    PIRN__TIMER_CANCELLED,
    PIRN__TIMER_DEAD, /* its runtime has ended */
    PIRN__TIMER_ENDED, /* what follows: out of use, and why */
    PIRN__TIMER_ENDED_CANCELLED,
    PIRN__TIMER_ENDED_SHUTDOWN,
    PIRN__TIMER_ENDED_NORUNTIME,
};

struct pirn__timers {
    pirn_lock lock;
    bool dead;                  /* lock */
    struct pirn__home *home;    /* whose wheel it is; may be NULL */
    /* Called after an earlier deadline was published; NULL: home->ops->wake. */
    void (*earlier)(struct pirn__timers *timers);
    PIRN_ATOMIC(uint64_t) next; /* ns of the next due entry, a lower bound */
    /* The clock: paused, its time is `paused_ns`; else it is the system's plus
     * `offset_ns`, which only pause and resume change. */
    PIRN_ATOMIC(uint64_t) paused_ns; /* 0: not paused */
    PIRN_ATOMIC(uint64_t) offset_ns;
    size_t users; /* lock: entries that were armed and not disarmed; they keep
                     the home alive after shutdown */
    struct pirn__wheel wheel; /* lock */
    pirn_link endless; /* lock: waits for ever, which only shutdown ends */
};

/* The wheel for entries that are armed in this poll: of the worker that makes
 * it, else the first of the runtime.  The poll has a home. */
struct pirn__timers *pirn__cx_timers(const pirn_cx *cx);

void pirn__timers_init(struct pirn__timers *timers, struct pirn__home *home);

/* The runtime's time. */
uint64_t pirn__timers_now(struct pirn__timers *timers);

/* How many entries are waiting. */
size_t pirn__timers_count(struct pirn__timers *timers);

/* When a time of this clock will be on the system's; PIRN_NEVER while the clock
 * is paused and the time is ahead. */
pirn_deadline pirn__timers_to_system(struct pirn__timers *timers, uint64_t ns);

/* The test clock; see pirn/runtime.h. */
bool pirn__timers_are_paused(struct pirn__timers *timers);
void pirn__timers_pause(struct pirn__timers *timers);
int pirn__timers_advance(struct pirn__timers *timers, uint64_t ns);
void pirn__timers_resume(struct pirn__timers *timers);

/* Prepare an entry. */
void pirn__timer_init(pirn_timer *timer, pirn_deadline deadline);

enum pirn__timer_state pirn__timer_state(const pirn_timer *timer);

/* When an entry that its caller found IDLE is due. */
pirn_deadline pirn__timer_deadline(pirn_timer *timer);

/* Arm an IDLE entry, or renew the waker of an ARMED one; any other is woken at
 * once through `cx`.  The waker is cloned.  An entry for PIRN_NEVER is ARMED and
 * never fires.  PIRN_ESHUTDOWN when the wheel is dead. */
int pirn__timer_arm(pirn_timer *timer, struct pirn__timers *timers,
                    const pirn_cx *cx);

/* The same for an entry that is not to wait if its time has come: 1 then, and it
 * is to be ended.  The poll has a turn. */
int pirn__timer_start(pirn_timer *timer, struct pirn__timers *timers,
                      const pirn_cx *cx);

/* Take the entry out for good; `how` is one of the ENDED states. */
void pirn__timer_end(pirn_timer *timer, enum pirn__timer_state how);

/* The same, ENDED, where no other thread can reset or cancel it now. */
void pirn__timer_drop(pirn_timer *timer);

/* Move the entry, IDLE, ARMED or FIRED, to another time. */
void pirn__timer_reset(pirn_timer *timer, pirn_deadline deadline);

/* End the wait: CANCELLED, and woken. */
void pirn__timer_cancel(pirn_timer *timer);

/* The single entry of a fiber, which only the fiber touches.  rearm: whatever
 * the state, ARMED at `deadline`, with a waker that is not cloned: the fiber
 * ends the entry before its task can go.  stop: IDLE again. */
int pirn__timer_rearm(pirn_timer *timer, struct pirn__timers *timers,
                      pirn_waker waker, pirn_deadline deadline);
void pirn__timer_stop(pirn_timer *timer);

/* Fire everything that is due; returns how many were woken, at most `limit`. */
size_t pirn__timers_fire(struct pirn__timers *timers, size_t limit);

/* The same for a caller that has just read this clock. */
size_t pirn__timers_fire_at(struct pirn__timers *timers, uint64_t now,
                            size_t limit);

/* Mark every entry DEAD and wake it; later arms are refused. */
void pirn__timers_shutdown(struct pirn__timers *timers);

#endif /* PIRN_TIME_TIMERS_H */
