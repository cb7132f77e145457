/* SPDX-License-Identifier: MIT */
/* src/sched/seat.c - see seat.h. */
#include "sched/seat.h"

#include <errno.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "sys/sys.h"
#include "task/home.h"
#include "task/local.h"

void pirn__seat_init(struct pirn__seat *seat)
{
    *seat = (struct pirn__seat){0};
    pirn__list_init(&seat->waiters);
}

/* May this thread sit down?  0, or why not; -EAGAIN: when the other leaves. */
static int judge_locked(const struct pirn__seat *seat,
                        const struct pirn__seat_request *request)
{
    if (!request->force && seat->bound != NULL &&
        seat->bound != pirn__local())
        return -EPERM;
    if (seat->state == PIRN__SEAT_HOST)
        return request->force ? -EAGAIN : -EBUSY;
    return seat->state == PIRN__SEAT_WAITER ? -EAGAIN : 0;
}

static void sit_down_locked(struct pirn__seat *seat,
                            const struct pirn__seat_request *request)
{
    seat->state = PIRN__SEAT_HOST;
    if (request->bind)
        seat->bound = pirn__local();
}

/* Adjust how many hosts wait, and tell a WAITER. */
static void count_host_locked(struct pirn__seat *seat, int change)
{
    seat->hosts_waiting += (uint32_t)change;
    /* relaxed: the lock orders what matters, and the wake that follows shows it
     * to a WAITER that sleeps. */
    pirn__store(&seat->wanted, seat->hosts_waiting > 0, relaxed);
}

/* Wait until somebody leaves, at most until the deadline. */
static int wait_for_departure(struct pirn__seat *seat, uint32_t change,
                              struct pirn__home *home, pirn_deadline deadline)
{
    home->ops->wake(home);
    return pirn__sys->futex_wait(&seat->change.v_, change, deadline);
}

int pirn__seat_take(struct pirn__seat *seat, struct pirn__home *home,
                    const struct pirn__seat_request *request)
{
    bool counted = false;
    int waited = 0;
    int rc;

    /* Ends: each round follows a departure or an early return of the wait, and
     * a timed-out wait makes one last try. */
    for (;;) {
        uint32_t change;

        pirn__lock(&seat->lock);
        /* relaxed: under the lock, as every change of it: a departure after this
         * makes the wait return at once. */
        change = pirn__load(&seat->change, relaxed);
        rc = judge_locked(seat, request);
        if (rc == 0)
            sit_down_locked(seat, request);
        if (rc == -EAGAIN && waited == -ETIMEDOUT)
            rc = -ETIMEDOUT;
        if ((rc == -EAGAIN) != counted) {
            counted = !counted;
            count_host_locked(seat, counted ? 1 : -1);
        }
        pirn__unlock(&seat->lock);
        if (rc != -EAGAIN)
            return rc;
        waited = wait_for_departure(seat, change, home, request->deadline);
    }
}

bool pirn__seat_try_waiter(struct pirn__seat *seat, struct pirn__parker *parker)
{
    bool free;

    pirn__lock(&seat->lock);
    free = seat->state == PIRN__SEAT_FREE && seat->hosts_waiting == 0 &&
           (seat->bound == NULL || seat->bound == pirn__local());
    if (free)
        seat->state = PIRN__SEAT_WAITER;
    else
        pirn__list_push_tail(&seat->waiters, &parker->seat_link);
    pirn__unlock(&seat->lock);
    return free;
}

void pirn__seat_enter_waiters(struct pirn__seat *seat,
                              struct pirn__parker *parker)
{
    pirn__lock(&seat->lock);
    pirn__list_push_tail(&seat->waiters, &parker->seat_link);
    pirn__unlock(&seat->lock);
}

/* The first waiter, moved to the end, as a waker. */
static pirn_waker next_waiter_locked(struct pirn__seat *seat)
{
    pirn_link *link = pirn__list_pop_head(&seat->waiters);

    if (link == NULL)
        return (pirn_waker){0};
    pirn__list_push_tail(&seat->waiters, link);
    return pirn__parker_waker(
        PIRN_CONTAINER_OF(link, struct pirn__parker, seat_link));
}

static size_t count_waiters_locked(const struct pirn__seat *seat)
{
    size_t count = 0;

    for (pirn_link *link = seat->waiters.next_; link != &seat->waiters;
         link = link->next_)
        count++;
    return count;
}

void pirn__seat_wake_waiters(struct pirn__seat *seat)
{
    size_t left;

    pirn__lock(&seat->lock);
    left = count_waiters_locked(seat);
    pirn__unlock(&seat->lock);
    for (; left > 0; left--) {
        pirn_waker waker;

        pirn__lock(&seat->lock);
        waker = next_waiter_locked(seat);
        pirn__unlock(&seat->lock);
        pirn_waker_wake(waker);
    }
}

/* The parked waiter that should take over, or the empty waker. */
static pirn_waker successor_locked(const struct pirn__seat *seat)
{
    struct pirn__parker *next;

    if (seat->state != PIRN__SEAT_FREE || seat->hosts_waiting > 0 ||
        seat->bound != NULL || pirn__list_empty(&seat->waiters))
        return (pirn_waker){0};
    next = PIRN_CONTAINER_OF(seat->waiters.next_, struct pirn__parker,
                             seat_link);
    /* Its thread may leave the list and end once the lock is free. */
    return pirn__parker_waker(next);
}

void pirn__seat_leave_waiters(struct pirn__seat *seat,
                              struct pirn__parker *parker)
{
    pirn_waker waker;

    pirn__lock(&seat->lock);
    pirn__list_remove(&parker->seat_link);
    /* It may have been woken to take over and at the same time for its own
     * reason, and then will not come back. */
    waker = successor_locked(seat);
    pirn__unlock(&seat->lock);
    pirn_waker_wake(waker);
}

void pirn__seat_leave(struct pirn__seat *seat)
{
    pirn_waker waker;
    bool hosts;

    pirn__lock(&seat->lock);
    PIRN_ASSERT(seat->state != PIRN__SEAT_FREE);
    seat->state = PIRN__SEAT_FREE;
    hosts = seat->hosts_waiting > 0;
    waker = successor_locked(seat);
    /* relaxed: the lock shows the next driver what this one did. */
    pirn__add(&seat->change, 1, relaxed);
    pirn__unlock(&seat->lock);
    if (hosts)
        pirn__sys->futex_wake(&seat->change.v_, INT32_MAX);
    pirn_waker_wake(waker);
}

bool pirn__seat_is_wanted(struct pirn__seat *seat)
{
    /* relaxed: as in count_host_locked(). */
    return pirn__load(&seat->wanted, relaxed) != 0;
}
