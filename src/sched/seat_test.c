/* SPDX-License-Identifier: MIT */
/* src/sched/seat_test.c - the driver's seat alone: a home that only counts how
 * often its driver is called, and parkers that nobody sleeps on. */
#include "sched/seat.h"

#include "base/list.h"
#include "sched/runtime_test.h"
#include "task/home.h"
#include "task/local.h"

/* A seat and the home whose driver it is for. */
struct room {
    struct pirn__home home; /* first */
    struct pirn__seat seat;
    tally calls; /* of its driver */
};

static void call_driver(struct pirn__home *home)
{
    tally_up(&PIRN_CONTAINER_OF(home, struct room, home)->calls);
}

static void room_init(struct room *room)
{
    static const struct pirn__home_ops ops = {.wake = call_driver};

    *room = (struct room){.home.ops = &ops};
    pirn__seat_init(&room->seat);
}

static int sit(struct room *room, bool bind)
{
    struct pirn__seat_request request = {.bind = bind, .deadline = PIRN_NEVER};

    return pirn__seat_take(&room->seat, &room->home, &request);
}

static int force(struct room *room, pirn_deadline deadline)
{
    struct pirn__seat_request request = {.force = true, .deadline = deadline};

    return pirn__seat_take(&room->seat, &room->home, &request);
}

static void parker_init(struct pirn__parker *parker)
{
    *parker = (struct pirn__parker){.wake_fd = -1};
    pirn__init(&parker->refs, 1);
    pirn__list_init(&parker->seat_link);
}

/* Goal: between host calls the second one is refused at once.
 * Method: sit down twice, leave, sit down again. */
TEST(seat_taken_by_a_host_refuses_another)
{
    struct room room;

    room_init(&room);
    EXPECT_EQ(0, sit(&room, false));
    EXPECT_EQ(-EBUSY, sit(&room, false));
    EXPECT_EQ(-EBUSY, sit(&room, true));
    pirn__seat_leave(&room.seat);
    EXPECT_EQ(0, sit(&room, false));
    pirn__seat_leave(&room.seat);
}

static void expect_other_thread(void *arg, size_t index)
{
    struct room *room = arg;

    (void)index;
    EXPECT_EQ(-EPERM, sit(room, true));
    EXPECT_EQ(-EPERM, sit(room, false));
    EXPECT_EQ(0, force(room, PIRN_EXPIRED));
    pirn__seat_leave(&room->seat);
}

/* Goal: once a thread is bound, other threads sit down by force only, and the
 * bound one still may.
 * Method: bind here, try there. */
TEST(seat_bound_to_a_thread_refuses_others)
{
    struct room room;

    room_init(&room);
    EXPECT_EQ(0, sit(&room, false));
    pirn__seat_leave(&room.seat);
    EXPECT_EQ(0, sit(&room, true));
    pirn__seat_leave(&room.seat);
    on_another_thread(expect_other_thread, &room);
    EXPECT_EQ(0, sit(&room, false));
    pirn__seat_leave(&room.seat);
}

/* Goal: force waits for a host, until its deadline.
 * Method: one that has expired; the seat is as before afterwards. */
TEST(seat_forced_while_a_host_sits_times_out)
{
    struct room room;

    room_init(&room);
    EXPECT_EQ(0, sit(&room, false));
    EXPECT_EQ(-ETIMEDOUT, force(&room, PIRN_EXPIRED));
    EXPECT(!pirn__seat_is_wanted(&room.seat));
    EXPECT_EQ(0, room.seat.hosts_waiting);
    pirn__seat_leave(&room.seat);
    EXPECT_EQ(0, force(&room, PIRN_EXPIRED));
    pirn__seat_leave(&room.seat);
}

/* Goal: a waiter sits only while nobody else does and no other thread is bound;
 * the bound one, which is the only one that could drive, may.
 * Method: each in turn; what matters of another thread is that it is not this
 * one. */
TEST(seat_waiter_sits_only_on_a_free_unbound_seat)
{
    struct room room;
    struct pirn__parker first;
    struct pirn__parker second;

    room_init(&room);
    parker_init(&first);
    parker_init(&second);
    EXPECT(pirn__seat_try_waiter(&room.seat, &first));
    EXPECT(!pirn__seat_try_waiter(&room.seat, &second));
    pirn__seat_leave_waiters(&room.seat, &second);
    pirn__seat_leave(&room.seat);

    EXPECT_EQ(0, sit(&room, true));
    EXPECT(!pirn__seat_try_waiter(&room.seat, &first));
    pirn__seat_leave_waiters(&room.seat, &first);
    pirn__seat_leave(&room.seat);
    EXPECT(pirn__seat_try_waiter(&room.seat, &first));
    pirn__seat_leave(&room.seat);
    room.seat.bound = &room;
    EXPECT(!pirn__seat_try_waiter(&room.seat, &first));
    pirn__seat_leave_waiters(&room.seat, &first);
    EXPECT(pirn__list_empty(&room.seat.waiters));
}

static void sit_and_leave(void *arg, size_t index)
{
    struct room *room = arg;

    (void)index;
    EXPECT_EQ(0, sit(room, false));
    EXPECT(!pirn__seat_is_wanted(&room->seat));
    pirn__seat_leave(&room->seat);
}

/* Goal: a host call takes the seat over from a waiter: it asks, calls the
 * driver, and sits down when the waiter has left; meanwhile no other waiter
 * gets the seat.
 * Method: the host is another thread; the waiter leaves once it is asked. */
TEST(seat_host_takes_over_from_a_waiter)
{
    struct room room;
    struct pirn__parker first;
    struct pirn__parker second;
    struct crew crew;

    room_init(&room);
    parker_init(&first);
    parker_init(&second);
    EXPECT(pirn__seat_try_waiter(&room.seat, &first));
    EXPECT(!pirn__seat_try_waiter(&room.seat, &second));
    crew_start(&crew, 1, sit_and_leave, &room);
    while (!pirn__seat_is_wanted(&room.seat))
        sched_yield();
    wait_for_tally(&room.calls, 1);
    pirn__seat_leave(&room.seat);
    crew_join(&crew);
    /* The host, when it left, passed the seat on. */
    EXPECT(pirn__parker_consume(&second));
    pirn__seat_leave_waiters(&room.seat, &second);
}

/* Goal: whoever leaves wakes one parked waiter, not all of them.
 * Method: two are parked; look which were told. */
TEST(seat_left_wakes_one_parked_waiter)
{
    struct room room;
    struct pirn__parker first;
    struct pirn__parker second;

    room_init(&room);
    parker_init(&first);
    parker_init(&second);
    EXPECT_EQ(0, sit(&room, false));
    EXPECT(!pirn__seat_try_waiter(&room.seat, &first));
    EXPECT(!pirn__seat_try_waiter(&room.seat, &second));
    pirn__seat_leave(&room.seat);
    EXPECT(pirn__parker_consume(&first));
    EXPECT(!pirn__parker_consume(&second));
    /* It leaves the list and sits down. */
    pirn__seat_leave_waiters(&room.seat, &first);
    EXPECT(pirn__seat_try_waiter(&room.seat, &first));
    pirn__seat_leave(&room.seat);
    EXPECT(pirn__parker_consume(&second));
    pirn__seat_leave_waiters(&room.seat, &second);
}

/* Goal: a bound seat wakes no waiter, who could not sit down anyway.
 * Method: bind while one is parked. */
TEST(seat_bound_and_left_wakes_no_waiter)
{
    struct room room;
    struct pirn__parker waiter;

    room_init(&room);
    parker_init(&waiter);
    EXPECT_EQ(0, sit(&room, true));
    EXPECT(!pirn__seat_try_waiter(&room.seat, &waiter));
    pirn__seat_leave(&room.seat);
    EXPECT(!pirn__parker_consume(&waiter));
    pirn__seat_leave_waiters(&room.seat, &waiter);
}

/* Goal: a waiter that was woken for the seat but needs it no more passes that
 * on; otherwise the next one would sleep beside a free seat for ever.
 * Method: two are parked, the first is woken and goes away. */
TEST(seat_woken_waiter_that_goes_away_passes_it_on)
{
    struct room room;
    struct pirn__parker first;
    struct pirn__parker second;

    room_init(&room);
    parker_init(&first);
    parker_init(&second);
    EXPECT_EQ(0, sit(&room, false));
    EXPECT(!pirn__seat_try_waiter(&room.seat, &first));
    EXPECT(!pirn__seat_try_waiter(&room.seat, &second));
    pirn__seat_leave(&room.seat);
    EXPECT(pirn__parker_consume(&first));
    pirn__seat_leave_waiters(&room.seat, &first);
    EXPECT(pirn__parker_consume(&second));
    pirn__seat_leave_waiters(&room.seat, &second);
}
