/* SPDX-License-Identifier: MIT */
/* src/sched/host.c - the calls with which a thread drives a runtime.
 *
 * block_on and the waiting plain thread are both built on the same turn that
 * the host calls itself.
 */
#include <errno.h>
#include <limits.h>

#include "reactor/reactor.h"
#include "sched/runtime.h"
#include "sched/worker.h"
#include "sys/fork.h"
#include "task/await.h"

/* What every host call checks first. */
static int may_drive(struct pirn_runtime *rt)
{
    struct pirn__local *local = pirn__local();

    if (local == NULL)
        return -ENOMEM;
    if (local->no_suspend > 0 || local->turn != NULL)
        return -EDEADLK;
    if (rt->home.fork_generation != pirn__fork_generation())
        return PIRN_EFORKED;
    return pirn__runtime_phase(rt) == PIRN__PHASE_OPEN ? 0 : PIRN_ESHUTDOWN;
}

static void get_up(struct pirn_runtime *rt, struct pirn__home *outer)
{
    pirn__driver_leave(rt, outer);
    pirn__seat_leave(&rt->seat);
}

/* Get up, and finish a shutdown that could not wait for us.  Looked at after we
 * left the seat: either shutdown finds it free, or we find it abandoned. */
static void leave_seat(struct pirn_runtime *rt, struct pirn__home *outer)
{
    struct pirn__seat_request again = {.force = true,
                                       .deadline = PIRN_EXPIRED};

    get_up(rt, outer);
    if (pirn__runtime_phase(rt) == PIRN__PHASE_ABANDONED &&
        pirn__seat_take(&rt->seat, &rt->home, &again) == 0) {
        pirn__driver_enter(rt, &outer);
        if (pirn__runtime_phase(rt) == PIRN__PHASE_ABANDONED)
            pirn__shutdown_finish_abandoned(rt);
        get_up(rt, outer);
    }
    pirn__home_unref(&rt->home);
}

/* Sit down; the seat keeps the memory. */
static int take_seat(struct pirn_runtime *rt,
                     const struct pirn__seat_request *request,
                     struct pirn__home **outer)
{
    int rc = pirn__seat_take(&rt->seat, &rt->home, request);

    if (rc < 0)
        return rc;
    pirn__home_ref(&rt->home);
    pirn__driver_enter(rt, outer);
    return 0;
}

static size_t take_turns(struct pirn_runtime *rt, pirn_deadline until)
{
    size_t polls = 0;

    do {
        polls += pirn__driver_turn(rt, PIRN_EXPIRED);
    } while (pirn__driver_has_ready(rt) && !pirn_deadline_expired(until) &&
             pirn__runtime_phase(rt) == PIRN__PHASE_OPEN);
    return polls;
}

int pirn_runtime_turn(pirn_runtime *rt, pirn_deadline until)
{
    const struct pirn__seat_request request = {.bind = true,
                                               .deadline = PIRN_NEVER};
    struct pirn__home *outer;
    size_t polls = 0;
    int rc;

    if (rt == NULL)
        return -EINVAL;
    rc = may_drive(rt);
    if (rc == 0 && rt->pool != NULL)
        rc = -EPERM;
    if (rc == 0)
        rc = take_seat(rt, &request, &outer);
    if (rc < 0)
        return rc;
    /* It may have ended while we waited for the seat. */
    if (pirn__runtime_phase(rt) != PIRN__PHASE_OPEN)
        rc = PIRN_ESHUTDOWN;
    else
        polls = take_turns(rt, until);
    leave_seat(rt, outer);
    if (rc < 0)
        return rc;
    return polls > INT_MAX ? INT_MAX : (int)polls;
}

int pirn_runtime_fd(const pirn_runtime *rt)
{
    if (rt == NULL)
        return -EINVAL;
    return rt->pool != NULL ? -EPERM : pirn__reactor_fd(rt->home.reactor);
}

pirn_deadline pirn_runtime_next_deadline(pirn_runtime *rt)
{
    /* The queues of a runtime that ends belong to whoever ends it. */
    if (rt == NULL || rt->pool != NULL ||
        pirn__runtime_phase(rt) != PIRN__PHASE_OPEN)
        return PIRN_NEVER;
    return pirn__driver_has_ready(rt) ? PIRN_EXPIRED : pirn__driver_next(rt);
}

/* Poll until ready, one turn in between.  The seat is held. */
static int drive_future(struct pirn_runtime *rt, pirn_future *future,
                        struct pirn__parker *parker, pirn_deadline deadline)
{
    pirn_waker waker = pirn__parker_waker(parker);
    struct pirn__turn turn = {
        .home = &rt->home, .timers = rt->home.timers, .parker = parker};
    pirn_cx cx = {.waker = &waker, .turn_ = &turn};
    bool woken = true;
    int rc = -EINPROGRESS;

    pirn__parker_reset(parker);
    while (rc == -EINPROGRESS) {
        turn.budget = PIRN__COOP_BUDGET;
        turn.now_ns = 0;
        if (woken && pirn__poll_outside(future, &cx) == PIRN_READY)
            rc = 0;
        else if (pirn_deadline_expired(deadline))
            rc = -ETIMEDOUT;
        else if (pirn__runtime_phase(rt) != PIRN__PHASE_OPEN)
            rc = PIRN_ESHUTDOWN;
        if (rc != -EINPROGRESS)
            break;
        woken = !pirn__parker_drive_begin(parker, &rt->home);
        (void)pirn__driver_turn(rt, woken || turn.deferred
                                        ? PIRN_EXPIRED
                                        : pirn__deadline_to_system(deadline));
        woken = woken ? pirn__parker_consume(parker)
                      : pirn__parker_drive_end(parker);
        woken = woken || turn.deferred != PIRN__DEFER_NOT;
        turn.deferred = PIRN__DEFER_NOT;
    }
    if (rc < 0)
        pirn_future_drop(future);
    pirn__parker_drive_over(parker);
    pirn__parker_reset(parker);
    pirn_waker_drop(waker);
    return rc;
}

int pirn_block_on(pirn_runtime *rt, pirn_future *future, pirn_deadline deadline)
{
    /* A waiting thread that drives may take its time to get up. */
    const struct pirn__seat_request request = {
        .deadline = pirn__deadline_to_system(deadline)};
    struct pirn__parker *parker;
    struct pirn__home *outer;
    int rc = rt == NULL ? -EINVAL : may_drive(rt);

    if (future == NULL)
        return -EINVAL;
    parker = rc == 0 ? pirn__parker_of(pirn__local()) : NULL;
    if (rc == 0 && parker == NULL)
        rc = -ENOMEM;
    if (rc == 0 && rt->pool != NULL)
        return pirn__pool_block_on(rt, future, parker, deadline);
    if (rc == 0)
        rc = take_seat(rt, &request, &outer);
    if (rc < 0) {
        pirn_future_drop(future);
        return rc;
    }
    rc = drive_future(rt, future, parker, deadline);
    leave_seat(rt, outer);
    return rc;
}

/* Drive as a waiter until unparked, asked to leave, or the deadline. */
static void drive_as_waiter(struct pirn_runtime *rt,
                            struct pirn__parker *parker, pirn_deadline deadline)
{
    struct pirn__home *outer;
    bool unparked = false;

    pirn__home_ref(&rt->home);
    pirn__driver_enter(rt, &outer);
    while (!unparked && !pirn__seat_is_wanted(&rt->seat) &&
           pirn__runtime_phase(rt) == PIRN__PHASE_OPEN &&
           !pirn_deadline_expired(deadline)) {
        if (!pirn__parker_drive_begin(parker, &rt->home))
            break;
        (void)pirn__driver_turn(rt, pirn__deadline_to_system(deadline));
        unparked = pirn__parker_drive_end(parker);
    }
    pirn__parker_drive_over(parker);
    leave_seat(rt, outer);
}

void pirn__host_drive_or_park(struct pirn__home *home,
                              struct pirn__parker *parker,
                              pirn_deadline deadline)
{
    struct pirn_runtime *rt = pirn__runtime_of(home);

    if (pirn__home_is_forked(home)) {
        pirn__parker_park(parker, pirn__deadline_to_system(deadline));
        return;
    }
    if (pirn__runtime_phase(rt) == PIRN__PHASE_OPEN &&
        pirn__seat_try_waiter(&rt->seat, parker)) {
        drive_as_waiter(rt, parker, deadline);
        return;
    }
    pirn__parker_park(parker, pirn__deadline_to_system(deadline));
    pirn__seat_leave_waiters(&rt->seat, parker);
}
