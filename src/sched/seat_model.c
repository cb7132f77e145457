/* SPDX-License-Identifier: MIT */
/* src/sched/seat_model.c - plain threads that wait for the seat, and those that
 * leave it.
 *
 * The seat alone, with a home whose wakes are counted; runtime_model.c has it
 * with all around it.
 */
#include "sched/seat.h"

#include "engine/model_home.h"

static struct model_home model;
static struct pirn__seat seat;
static PIRN_ATOMIC(int) ended; /* what a waiter looks at, as the phase */

static void begin(void)
{
    model_home_begin(&model);
    pirn__seat_init(&seat);
}

static struct pirn__parker *own_parker(void)
{
    struct pirn__parker *parker = pirn__parker_of(pirn__local());

    EXPLORE_CHECK(parker != NULL);
    return parker;
}

/* As a block_on beside the workers of a pool does. */
static void wait_for_the_end(void *arg)
{
    struct pirn__parker *parker = own_parker();

    (void)arg;
    while (pirn__load(&ended, acquire) == 0) {
        pirn__parker_reset(parker);
        pirn__seat_enter_waiters(&seat, parker);
        if (pirn__load(&ended, acquire) == 0)
            pirn__parker_park(parker, PIRN_NEVER);
        pirn__seat_leave_waiters(&seat, parker);
    }
}

/* Goal: all who wait are told of the end, those who come meanwhile and those
 * who go too. */
MODEL(seat_wakes_all_waiters_at_the_end, .preemptions = 3, .stale = 2,
      .spurious = -1)
{
    begin();
    explore_thread(wait_for_the_end, NULL);
    explore_thread(wait_for_the_end, NULL);
    pirn__store(&ended, 1, release);
    pirn__seat_wake_waiters(&seat);
    explore_join();
    EXPLORE_CHECK(pirn__list_empty(&seat.waiters));
}

static PIRN_ATOMIC(uint32_t) sitting;
static PIRN_SHARED(int) turns; /* only who sits writes */

static void sit_and_leave(void)
{
    EXPLORE_CHECK(pirn__add(&sitting, 1, relaxed) == 0);
    pirn_cell_write(&turns, pirn_cell_read(&turns) + 1);
    pirn__sub(&sitting, 1, relaxed);
    pirn__seat_leave(&seat);
}

/* Waits until it has sat there once. */
static void drive_as_waiter(void *arg)
{
    struct pirn__parker *parker = own_parker();

    (void)arg;
    pirn__parker_reset(parker);
    while (!pirn__seat_try_waiter(&seat, parker)) {
        pirn__parker_park(parker, PIRN_NEVER);
        pirn__seat_leave_waiters(&seat, parker);
        pirn__parker_reset(parker);
    }
    sit_and_leave();
}

static void drive_as_host(void *arg)
{
    const struct pirn__seat_request request = {.force = true,
                                               .deadline = PIRN_NEVER};

    (void)arg;
    EXPLORE_CHECK(pirn__seat_take(&seat, &model.home, &request) == 0);
    sit_and_leave();
}

/* Goal: one sits at a time and sees what the one before did; nobody is left
 * waiting beside a free seat. */
MODEL(seat_is_handed_on, .preemptions = 3, .stale = 2, .spurious = -1)
{
    begin();
    explore_thread(drive_as_waiter, NULL);
    explore_thread(drive_as_waiter, NULL);
    drive_as_host(NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&turns) == 3);
    EXPLORE_CHECK(seat.hosts_waiting == 0);
}

/* Goal: the same for two host calls, one of which asks a waiter to get up. */
MODEL(seat_two_hosts_and_a_waiter, .preemptions = 3, .stale = 2,
      .spurious = -1)
{
    begin();
    explore_thread(drive_as_waiter, NULL);
    explore_thread(drive_as_host, NULL);
    drive_as_host(NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&turns) == 3);
    EXPLORE_CHECK(!pirn__seat_is_wanted(&seat));
}

/* Sits until it is asked to get up. */
static void sit_until_asked(void *arg)
{
    (void)arg;
    for (;;) {
        uint32_t seen = model_home_wakes(&model);

        if (pirn__seat_is_wanted(&seat))
            break;
        model_home_wait(&model, seen);
    }
    sit_and_leave();
}

/* Goal: a waiter that sleeps in the seat gets up for a host call. */
MODEL(seat_host_gets_a_sleeping_waiter_up, .preemptions = 4, .stale = 3,
      .spurious = -1)
{
    begin();
    EXPLORE_CHECK(pirn__seat_try_waiter(&seat, own_parker()));
    explore_thread(sit_until_asked, NULL);
    drive_as_host(NULL);
    explore_join();
    EXPLORE_CHECK(pirn_cell_read(&turns) == 2);
}
