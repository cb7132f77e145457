/* SPDX-License-Identifier: MIT */
/* src/sched/seat.h - who drives a current-thread runtime.
 *
 * There is one driver's seat.  A host call (turn, block_on, shutdown) sits down
 * as HOST.  A plain thread that waits for something of the runtime sits down as
 * WAITER, but only while nobody else does and no thread is bound to the runtime
 * by another thread's turn(); otherwise it parks among the waiters.  A host call takes the seat
 * over from a WAITER, which gets up after its current task.  Whoever leaves
 * wakes one parked waiter, which may then sit down.
 *
 *   FREE --host--> HOST --leave--> FREE
 *   FREE --waiter--> WAITER --leave, or asked by a host--> FREE
 */
#ifndef PIRN_SCHED_SEAT_H
#define PIRN_SCHED_SEAT_H

#include <pirn/link.h>

#include "base/atomic.h"

struct pirn__home;
struct pirn__parker;

enum pirn__seat_state {
    PIRN__SEAT_FREE,
    PIRN__SEAT_HOST,
    PIRN__SEAT_WAITER,
};

struct pirn__seat {
    pirn_lock lock;
    enum pirn__seat_state state;  /* lock */
    const void *bound; /* lock: the record of the thread that called turn() */
    uint32_t hosts_waiting;       /* lock: host calls that wait for a WAITER */
    pirn_link waiters;            /* lock: parked plain threads */
    PIRN_ATOMIC(uint32_t) change; /* counts departures, for futex waits */
    PIRN_ATOMIC(uint32_t) wanted; /* 1: a WAITER should get up */
};

void pirn__seat_init(struct pirn__seat *seat);

/* Sit down for a host call; `bind` makes this thread the only one for turn and
 * block_on.  Waits for a WAITER to get up, until the deadline.  -EBUSY if
 * another host call sits there, -EPERM if another thread is bound (`force`
 * passes over both: it waits for HOST, too), -ETIMEDOUT. */
struct pirn__seat_request {
    bool bind;
    bool force;
    pirn_deadline deadline;
};
int pirn__seat_take(struct pirn__seat *seat, struct pirn__home *home,
                    const struct pirn__seat_request *request);

/* Sit down as a WAITER; false: park instead, the parker has been entered among
 * the waiters. */
bool pirn__seat_try_waiter(struct pirn__seat *seat,
                           struct pirn__parker *parker);
/* Only enter the waiters. */
void pirn__seat_enter_waiters(struct pirn__seat *seat,
                              struct pirn__parker *parker);
/* Wake all waiters: the runtime ends. */
void pirn__seat_wake_waiters(struct pirn__seat *seat);
/* After parking. */
void pirn__seat_leave_waiters(struct pirn__seat *seat,
                              struct pirn__parker *parker);

/* Get up. */
void pirn__seat_leave(struct pirn__seat *seat);

/* True if a WAITER should get up. */
bool pirn__seat_is_wanted(struct pirn__seat *seat);

#endif /* PIRN_SCHED_SEAT_H */
