/* SPDX-License-Identifier: MIT */
/* tools/pirn/roster_test.c - guests come and go; the departure is polled by
 * hand, with a waker that counts. */
#include "roster.h"

#include "engine/test.h"

static pirn_waker count_clone(const pirn_waker *self)
{
    return *self;
}

static void count_wake(pirn_waker self)
{
    (*(int *)self.data)++;
}

static void count_wake_by_ref(const pirn_waker *self)
{
    (*(int *)self->data)++;
}

static void count_drop(pirn_waker self)
{
    (void)self;
}

static const pirn_waker_ops count_ops = {count_clone, count_wake,
                                         count_wake_by_ref, count_drop};

/* Goal: no more guests than there is room for.
 * Method: fill it, one leaves, one more comes. */
TEST(roster_admits_up_to_its_limit)
{
    struct roster roster;
    struct guest guests[3];

    roster_init(&roster, 2);
    EXPECT(roster_admit(&roster, &guests[0]));
    EXPECT(roster_admit(&roster, &guests[1]));
    EXPECT(!roster_admit(&roster, &guests[2]));
    EXPECT_EQ(2, roster_count(&roster));
    roster_leave(&roster, &guests[0]);
    EXPECT(roster_admit(&roster, &guests[2]));
    roster_leave(&roster, &guests[1]);
    roster_leave(&roster, &guests[2]);
    EXPECT_EQ(0, roster_count(&roster));
    roster_deinit(&roster);
}

/* Goal: a closed roster admits nobody and lets nobody rest.
 * Method: one guest works while it closes. */
TEST(roster_closed_sends_guests_home)
{
    struct roster roster;
    struct guest guest;
    struct guest late;

    roster_init(&roster, 2);
    REQUIRE(roster_admit(&roster, &guest));
    EXPECT(roster_rest(&roster, &guest));
    EXPECT(roster_work(&guest));
    EXPECT(!roster_is_closed(&roster));
    roster_close(&roster);
    EXPECT(roster_is_closed(&roster));
    EXPECT(!roster_rest(&roster, &guest));
    EXPECT(!roster_admit(&roster, &late));
    roster_leave(&roster, &guest);
    roster_deinit(&roster);
}

/* Goal: who rested when the roster closed does not begin to work, even if it
 * has something to do before the cancellation comes; who worked goes on.
 * Method: one of each. */
TEST(roster_close_claims_who_rests)
{
    struct roster roster;
    struct guest resting;
    struct guest working;

    roster_init(&roster, 2);
    REQUIRE(roster_admit(&roster, &resting));
    REQUIRE(roster_admit(&roster, &working));
    EXPECT(roster_rest(&roster, &resting));
    EXPECT(roster_rest(&roster, &working));
    EXPECT(roster_work(&working));
    roster_close(&roster);
    EXPECT(!roster_work(&resting));
    EXPECT(roster_work(&working));
    roster_leave(&roster, &resting);
    roster_leave(&roster, &working);
    roster_deinit(&roster);
}

/* Goal: the departure is ready when the last guest has left, not before.
 * Method: two guests leave one after the other; the waker counts. */
TEST(roster_departure_waits_for_the_last)
{
    int wakes = 0;
    pirn_waker waker = {&wakes, &count_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    struct roster_departure departure;
    struct roster roster;
    struct guest guests[2];

    roster_init(&roster, 2);
    REQUIRE(roster_admit(&roster, &guests[0]));
    REQUIRE(roster_admit(&roster, &guests[1]));
    roster_departure_init(&departure, &roster);
    EXPECT_EQ(PIRN_PENDING, (int)pirn_future_poll(&departure.future, &cx));
    roster_leave(&roster, &guests[0]);
    EXPECT_EQ(0, wakes);
    EXPECT_EQ(PIRN_PENDING, (int)pirn_future_poll(&departure.future, &cx));
    roster_leave(&roster, &guests[1]);
    EXPECT_EQ(1, wakes);
    EXPECT_EQ(PIRN_READY, (int)pirn_future_poll(&departure.future, &cx));
    roster_deinit(&roster);
}

/* Goal: an abandoned roster is not waited for.
 * Method: a guest stays; abandoning wakes, and its leaving later wakes
 * nobody. */
TEST(roster_abandon_ends_the_departure)
{
    int wakes = 0;
    pirn_waker waker = {&wakes, &count_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    struct roster_departure departure;
    struct roster roster;
    struct guest guest;

    roster_init(&roster, 1);
    REQUIRE(roster_admit(&roster, &guest));
    roster_departure_init(&departure, &roster);
    EXPECT_EQ(PIRN_PENDING, (int)pirn_future_poll(&departure.future, &cx));
    roster_abandon(&roster);
    EXPECT_EQ(1, wakes);
    EXPECT_EQ(PIRN_READY, (int)pirn_future_poll(&departure.future, &cx));
    roster_leave(&roster, &guest);
    EXPECT_EQ(1, wakes);
    roster_deinit(&roster);
}

/* Goal: a departure that is given up is not woken.
 * Method: drop it while a guest is there, then let the guest leave. */
TEST(roster_departure_dropped_is_not_woken)
{
    int wakes = 0;
    pirn_waker waker = {&wakes, &count_ops};
    pirn_cx cx = pirn_cx_of_waker(&waker);
    struct roster_departure departure;
    struct roster roster;
    struct guest guest;

    roster_init(&roster, 1);
    REQUIRE(roster_admit(&roster, &guest));
    roster_departure_init(&departure, &roster);
    EXPECT_EQ(PIRN_PENDING, (int)pirn_future_poll(&departure.future, &cx));
    pirn_future_drop(&departure.future);
    roster_leave(&roster, &guest);
    EXPECT_EQ(0, wakes);
    roster_deinit(&roster);
}
